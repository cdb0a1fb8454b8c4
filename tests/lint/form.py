#!/usr/bin/env python3
"""Sources have the form that .clang-format says. Versions of clang-format differ in what they make of a file: 14 decides.

Usage: form.py ROOT   (renew with: clang-format-14 -i SOURCE)"""
import pathlib
import shutil
import subprocess
import sys


FOLDERS = ("include", "base", "trace", "streams", "kernels", "vm", "interpreter", "exchange", "functional", "tests", "bench", "examples", "tools")
SUFFIXES = {".c", ".h", ".cpp", ".cu", ".cuh"}


def main():
    root = pathlib.Path(sys.argv[1])
    sources = sorted(str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
    tool = shutil.which("clang-format-14")
    if not tool:
        print("clang-format-14 is not there: nothing was looked at")
        sys.exit(77)
    result = subprocess.run([tool, "--style=file", "--dry-run", "-Werror", *sources], cwd=root, capture_output=True, text=True)
    differing = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error: code should be clang-formatted" in line})
    print("\n".join(f"{name}: clang-format-14 -i {name}" for name in differing) or result.stderr or f"{len(sources)} files")
    sys.exit(1 if result.returncode != 0 or not sources else 0)


main()
