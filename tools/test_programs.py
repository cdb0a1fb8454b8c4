#!/usr/bin/env python3
"""Prints what the tests of the given suites need, as ninja targets. Usage: test_programs.py BUILD [--no-suite SUITE]... SUITE...

Without suites: of all. `meson test` builds so much itself only where tests are named, else what all tests need."""
import json
import pathlib
import subprocess
import sys


def introspect(build, what):
    done = subprocess.run(["meson", "introspect", "--" + what, build], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    build, *words = sys.argv[1:]
    left_out, suites = set(), set()
    while words:
        if words[0] == "--no-suite":
            left_out.add(words[1])
            words = words[2:]
        else:
            suites.add(words.pop(0))
    folder, found, needed = pathlib.Path(build).resolve(), set(), set()
    for test in introspect(build, "tests"):
        names = {suite.split(":")[-1] for suite in test["suite"]}
        if names & left_out or (suites and not names & suites):
            continue
        # A script receives the programs that it runs as arguments, whose paths begin in the build folder.
        found |= {str(folder / word) for word in test["cmd"]}
        needed |= set(test["depends"])
    targets = introspect(build, "targets")
    files = {name for target in targets for name in target["filename"]
             if target["id"] in needed or (target["type"] == "executable" and name in found)}
    print("\n".join(sorted(str(pathlib.Path(name).relative_to(folder)) for name in files)))


main()
