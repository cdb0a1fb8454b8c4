#!/usr/bin/env python3
"""Prints the programs that the tests of the given suites run, as ninja targets. Usage: test_programs.py BUILD [--no-suite SUITE] SUITE..."""
import json
import pathlib
import subprocess
import sys


def main():
    build, *suites = sys.argv[1:]
    left_out = suites[1] if suites[:1] == ["--no-suite"] else None
    suites = suites[2:] if left_out else suites
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True,
                                      check=True).stdout)
    folder, found = pathlib.Path(build).resolve(), set()
    for test in tests:
        names = [suite.split(":")[-1] for suite in test["suite"]]
        if left_out in names or (suites and not any(name in suites for name in names)):
            continue
        # A script receives the programs that it runs as arguments, whose paths begin in the build folder.
        found |= {str(folder / word) for word in test["cmd"]}
    targets = json.loads(subprocess.run(["meson", "introspect", "--targets", build], capture_output=True, text=True,
                                        check=True).stdout)
    programs = {name for target in targets if target["type"] == "executable" for name in target["filename"]}
    print("\n".join(sorted(str(pathlib.Path(name).relative_to(folder)) for name in found & programs)))


main()
