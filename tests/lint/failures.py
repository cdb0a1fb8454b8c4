#!/usr/bin/env python3
"""Each public function that returns a status is tried with an older error in the slot (tests/functional/test_failures.c), but for ops,
which test_op_errors.c tries all.

Usage: failures.py ROOT"""
import pathlib
import re
import sys

FUNCTION = re.compile(r"^EDDY_API eddy_status (eddy_\w+)\(", re.MULTILINE)
# The first takes that error itself; the others fail on threads that may not call, or without memory.
LEFT_OUT = {"eddy_error_take", "eddy_runtime_use", "eddy_stream_scope_begin"}


def main():
    root = pathlib.Path(sys.argv[1])
    tried = set(re.findall(r"\beddy_\w+", (root / "tests/functional/test_failures.c").read_text()))
    found = {name for header in (root / "include/eddy").glob("*.h") for name in FUNCTION.findall(header.read_text())}
    problems = [f"{name} is not tried in tests/functional/test_failures.c" for name in sorted(found - tried - LEFT_OUT)]
    problems += [f"{name} is left out, and gone" for name in sorted(LEFT_OUT - found)]
    print("\n".join(problems))
    sys.exit(1 if problems or not found else 0)


main()
