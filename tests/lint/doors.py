#!/usr/bin/env python3
"""Each function of vm/vm.h has a row in EDDY_RECORDER_DOOR_LIST (interpreter/call/recorder.h) that says what a recording does there.

Usage: doors.py ROOT"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"^(?!typedef)[A-Za-z_][\w \*\n]*?\beddy_vm_(\w+)\(", re.M)
# For the end of runtimes and for programs themselves: no call of a thread that may be recording comes there.
ELSEWHERE = {"create", "destroy", "halt", "storage_generation", "run_poison", "run_poison_set", "run_fail", "run_has_failed", "run_skip",
             "run_checks_finite"}


def main():
    root = pathlib.Path(sys.argv[1])
    header = COMMENT.sub("", (root / "vm/vm.h").read_text())
    functions = set(FUNCTION.findall(header))
    rows = (root / "interpreter/call/recorder.h").read_text()
    listed = re.search(r"#define EDDY_RECORDER_DOOR_LIST\(row\)(.*?)\n\n", rows, re.S).group(1)
    doors = set(re.findall(r"row\(\W*(\w+),\W*\w+\)", listed))
    problems = [f"eddy_vm_{name} has no row in EDDY_RECORDER_DOOR_LIST" for name in sorted(functions - doors - ELSEWHERE)]
    problems += [f"EDDY_RECORDER_DOOR_LIST names {name}, which vm.h lacks" for name in sorted((doors | ELSEWHERE) - functions)]
    print("\n".join(problems) or f"{len(doors)} doors")
    sys.exit(1 if problems or not doors else 0)


main()
