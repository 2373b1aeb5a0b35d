#!/usr/bin/env python3
"""Check that the links of the pages lead to files and headings that there are.

usage: check-links.py SOURCE_DIR

Looks at README.md and all pages of docs. The anchor of a heading is made as GitHub makes it: lower case, hyphens for
spaces, and nothing but letters, digits, hyphens and underscores.
"""

import pathlib
import re
import sys


def without_code(text):
    """The text without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """The anchors of the headings of a page."""
    found = {}
    for heading in re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        count = found[anchor] = found.get(anchor, -1) + 1
        if count:
            found[f"{anchor}-{count}"] = 0
    return found


def problems(page, root):
    """An error for each link that leads nowhere."""
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists():
            yield f"{page.relative_to(root)}: error: expected a file, got '{link}'"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page.relative_to(root)}: error: expected a heading, got '{link}'"


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [problem for page in pages for problem in problems(page, root)]
    print("\n".join([*found, f"{len(pages)} pages, {len(found)} links that lead nowhere"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
