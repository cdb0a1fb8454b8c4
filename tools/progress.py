#!/usr/bin/env python3
"""Runs a build or the tests and shows the progress: "building build/test 120/295", "tests of build/test 31/166, 0 failed".

Usage: progress.py LABEL LOG COMMAND...
The command's output is appended to the log. On a terminal one line is rewritten; in a file a line is written at the start and
every half minute, and none at the end. The exit status is the command's."""
import os
import re
import subprocess
import sys
import time

SECONDS = float(os.environ.get("EDDY_PROGRESS_SECONDS", "30"))
BUILDING = re.compile(r"^\[(\d+)/(\d+)\] ")
TESTED = re.compile(r"^ *(\d+)/(\d+) .* (OK|EXPECTEDFAIL|SKIP|FAIL|TIMEOUT|ERROR|INTERRUPT|UNEXPECTEDPASS)\b")
GOOD = ("OK", "EXPECTEDFAIL", "SKIP")


class Line:
    """The line that shows the progress."""

    def __init__(self):
        self.is_terminal = sys.stdout.isatty()
        self.told_at = None

    def show(self, text):
        now = time.monotonic()
        if self.is_terminal:
            print(f"\r\033[K{text}", end="", flush=True)
        elif self.told_at is None or now - self.told_at >= SECONDS:
            print(text, flush=True)
            self.told_at = now

    def end(self):
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)


def main():
    label, log, *command = sys.argv[1:]
    line, failed, is_testing = Line(), 0, False
    with open(log, "a", encoding="utf-8") as kept:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              text=True, errors="replace", env={**os.environ, "PYTHONUNBUFFERED": "1"}) as running:
            for text in running.stdout:
                kept.write(text)
                kept.flush()
                tested, built = TESTED.match(text), BUILDING.match(text)
                if tested:
                    is_testing = True
                    failed += tested.group(3) not in GOOD
                    line.show(f"tests of {label} {tested.group(1)}/{tested.group(2)}, {failed} failed")
                # When ninja first updates its own files, it reports step 0 of 1.
                elif built and built.group(1) != "0" and not is_testing:
                    line.show(f"building {label} {built.group(1)}/{built.group(2)}")
    line.end()
    return running.returncode


sys.exit(main())
