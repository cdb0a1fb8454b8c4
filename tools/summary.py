#!/usr/bin/env python3
"""Prints the results of the tests: failures with their output, minutes per suite, and the line "N passed, N failed".

Usage: summary.py BUILDS FAILED-BUILD...   BUILDS holds one folder per kind of build, each with meson's log."""
import collections
import json
import pathlib
import sys

TAIL_LINES = 60


def results(builds):
    """(kind of build, suite, name, result, seconds, output) of each test that was run."""
    for log in sorted(pathlib.Path(builds).glob("*/meson-logs/testlog*.json")):
        way = log.parent.parent.name
        for line in log.read_text().splitlines():
            test = json.loads(line)
            # "eddy:unit+again / base-memory"
            suite, _, name = test["name"].rpartition(" / ")
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            yield way, suite.split(":")[-1].split("+")[0], name, test["result"], test["duration"], output


def main():
    builds, *failed_builds = sys.argv[1:]
    passed, failed, skipped = 0, len(failed_builds), 0
    minutes = collections.defaultdict(float)
    counts = collections.Counter()
    for way, suite, name, result, seconds, output in results(builds):
        minutes[way, suite] += seconds / 60
        counts[way, suite] += 1
        if result in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif result == "SKIP":
            skipped += 1
            print(f"skipped: {name} ({way}) {output.strip().splitlines()[-1] if output.strip() else ''}")
        else:
            failed += 1
            print(f"---- {name} ({way}): {result}")
            print("\n".join(output.splitlines()[-TAIL_LINES:]))
    for name in failed_builds:
        print(f"---- build/{name} does not build: build/{name}.log")
    for (way, suite), spent in minutes.items():
        print(f"{way:5} {suite:10} {counts[way, suite]:4} tests {spent:7.2f} minutes")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed or not passed else 0)


main()
