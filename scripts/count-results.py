#!/usr/bin/env python3
"""Prints the closing line of a test run, from lit's or pytest's list of results and the outcome of
checks; or, with --sum, that of several runs from theirs."""

import argparse
import json
import re
import sys
import xml.etree.ElementTree

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def count_lit(file):
    """Numbers of passed, failed and skipped tests; a code that is not known counts as failed."""
    codes = [test["code"] for test in json.load(file)["tests"]]
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    return passed, len(codes) - passed - skipped, skipped


def count_junit(file):
    """The same from pytest --junitxml."""
    suites = list(xml.etree.ElementTree.parse(file).getroot().iter("testsuite"))
    total, failures, errors, skipped = (sum(int(suite.get(name)) for suite in suites)
                                        for name in ("tests", "failures", "errors", "skipped"))
    return total - failures - errors - skipped, failures + errors, skipped


def add(lines):
    """The sums of closing lines; a line that is none counts as a failure."""
    total = [0, 0, 0]
    for line in lines:
        found = re.fullmatch(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", line)
        if not found:
            print(f"error: expected the closing line of a test run, got '{line}'", file=sys.stderr)
        counts = [int(number or 0) for number in found.groups()] if found else [0, 1, 0]
        total = [a + b for a, b in zip(total, counts)]
    return total


def close(passed, failed, skipped):
    """Prints the closing line; the exit code."""
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sum", nargs="+", metavar="LINE", help="closing lines to add up")
    parser.add_argument("--check", action="append", default=[], metavar="NAME=CODE",
                        help="a check beside lit and its exit code")
    parser.add_argument("--exit-code", type=int, default=0, help="what the run of lit returned")
    parser.add_argument("results", nargs="?",
                        help="the file that lit --output or, if its name ends in .xml, pytest --junitxml wrote")
    arguments = parser.parse_args()
    if arguments.sum:
        return close(*add(arguments.sum))
    if not arguments.results and not arguments.check:
        parser.error("expected a file of results or checks, got none")
    passed = failed = skipped = 0
    try:
        if arguments.results:
            with open(arguments.results) as file:
                count = count_junit if arguments.results.endswith(".xml") else count_lit
                passed, failed, skipped = count(file)
    except (OSError, ValueError, KeyError, TypeError, xml.etree.ElementTree.ParseError) as error:
        print(f"error: expected the results of a test run, got {error}", file=sys.stderr)
        passed, failed, skipped = 0, 1, 0
    if arguments.results and passed + failed == 0:
        print("error: expected at least one test to run, got none", file=sys.stderr)
        failed = 1
    if arguments.exit_code and not failed:
        print(f"error: expected exit code 0 of the tests, got {arguments.exit_code}", file=sys.stderr)
        failed = 1
    for check in arguments.check:
        name, code = check.rsplit("=", 1)
        if code == "0":
            passed += 1
        else:
            print(f"error: check '{name}' failed", file=sys.stderr)
            failed += 1
    return close(passed, failed, skipped)


if __name__ == "__main__":
    sys.exit(main())
