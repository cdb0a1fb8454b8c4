#!/usr/bin/env python3
"""Prints the tests that a build runs once more with every tensor on a CUDA device (tests/meson.build), for tools/gpu-check.sh: gpu_suite.py BUILD

A line for each: name, share of its cases (tests/rounds.h), filter. The program is tests/test-<name>."""
import json
import re
import subprocess
import sys


def main():
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", sys.argv[1]], capture_output=True, text=True, check=True).stdout)
    for test in tests:
        suites = [suite.split(":")[-1] for suite in test["suite"]]
        name = re.fullmatch(r"cuda-(\w+-\w+)-\d(?:-share)?", test["name"])
        if name and "cuda" in suites and "long" not in suites and "--filter" in test["cmd"]:
            print(name[1], test["env"]["EDDY_TEST_SHARE"], test["cmd"][-1])


main()
