#!/usr/bin/env python3
"""Each folder of the house has a README, no file has more than 800 lines, nothing is left to be done later, docs/README.md lists
every page of docs/ but the plan, and what pages link to is there.

Usage: house.py ROOT"""
import pathlib
import re
import sys

ROOMS = ("base", "trace", "streams", "kernels", "vm", "interpreter", "program", "functional", "tests", "bench", "examples", "tools")
LINES_MAX = 800
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".pml", ".toml", ".in"}
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)\)")


def problems_of_pages(root):
    listed = set(LINK.findall((root / "docs/README.md").read_text()))
    for page in sorted((root / "docs").glob("*.md")):
        if page.name not in listed | {"README.md", "plan.md"}:
            yield f"docs/README.md does not list {page.name}"
    for page in [*root.glob("*.md"), *(root / "docs").glob("*.md"), *root.glob("*/README.md")]:
        for link in LINK.findall(re.sub(r"`[^`]*`", "", page.read_text())):
            if not (page.parent / link).exists():
                yield f"{page.relative_to(root)} links to {link}, which is not there"


def main():
    root = pathlib.Path(sys.argv[1])
    problems = []
    for room in ROOMS + ("include",):
        folder = root / room
        files = [f for f in sorted(folder.rglob("*")) if f.is_file() and f.suffix in SUFFIXES] if folder.is_dir() else []
        if files and room != "include" and not (folder / "README.md").is_file():
            problems.append(f"{room}/README.md is missing")
        for file in files:
            text = file.read_text()
            lines = text.count("\n")
            where = file.relative_to(root)
            if lines > LINES_MAX:
                problems.append(f"{where} has {lines} lines: more than one noun")
            if UNFINISHED.search(text):
                problems.append(f"{where} says {UNFINISHED.search(text).group()}")
    problems += problems_of_pages(root)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


main()
