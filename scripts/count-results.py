#!/usr/bin/env python3
"""Prints the closing line of a test run, from lit's list of results and the outcome of checks."""

import argparse
import json
import sys

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def count(results):
    """Numbers of passed, failed and skipped tests; a code that is not known counts as failed."""
    codes = [test["code"] for test in results["tests"]]
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    return passed, len(codes) - passed - skipped, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="append", default=[], metavar="NAME=CODE",
                        help="a check beside lit and its exit code")
    parser.add_argument("--exit-code", type=int, default=0, help="what the run of lit returned")
    parser.add_argument("results", help="the file that lit --output wrote")
    arguments = parser.parse_args()
    try:
        with open(arguments.results) as file:
            passed, failed, skipped = count(json.load(file))
    except (OSError, ValueError, KeyError) as error:
        print(f"error: expected the results of a test run, got {error}", file=sys.stderr)
        passed, failed, skipped = 0, 1, 0
    if passed + failed == 0:
        print("error: expected at least one test to run, got none", file=sys.stderr)
        failed = 1
    if arguments.exit_code and not failed:
        print(f"error: expected exit code 0 of lit, got {arguments.exit_code}", file=sys.stderr)
        failed = 1
    for check in arguments.check:
        name, code = check.rsplit("=", 1)
        if code == "0":
            passed += 1
        else:
            print(f"error: check '{name}' failed", file=sys.stderr)
            failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
