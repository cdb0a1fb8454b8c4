#!/usr/bin/env python3
"""The commands of docs/profiling.md for the program that is mended three times, and what they find.

Usage: test_profiling_page.py EDDY SLOW PAGE"""
import json
import os
import pathlib
import re
import subprocess
import sys

from command import EDDY, environment, expect, folder, has_program, run_checks

SLOW, PAGE = (os.path.abspath(argument) for argument in sys.argv[2:4])


def commands():
    text = pathlib.Path(PAGE).read_text(encoding="utf-8")
    section = text.split("## A slow program, mended three times\n")[1].split("\n## ")[0]
    found = re.findall(r"^\$ (.+)$", section, re.M)
    expect(len(found) >= 8, found)
    return found


def check_commands():
    """As they stand there, one after the other; those of a tool that is not installed are not run, which is said."""
    (folder / "slow").symlink_to(SLOW)
    places = f"{os.path.dirname(EDDY)}:{os.path.dirname(SLOW)}:{os.environ['PATH']}"
    for command in commands():
        if command.startswith("nsys") and not has_program("nsys"):
            continue
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False, env=environment(PATH=places))
        expect(done.returncode == 0, command, done)
        expect(done.stdout or "nsys" in command or "svg" in command or "=slow.json" in command or "mended.json" in command, command)


def ops(mended):
    """How often each ran, and the last number that is printed."""
    path = folder / f"slow{mended}.json"
    done = subprocess.run([SLOW, str(mended)], check=True, capture_output=True, env=environment(EDDY_TRACE=str(path)))
    said = json.loads(subprocess.run([EDDY, "trace", "summary", "--json", path], check=True, capture_output=True).stdout)
    expect(said["dropped"] == 0 or mended < 2, said["dropped"])
    return {op["name"]: op["count"] for op in said["op"]}, done.stdout.split(b"\r")[-1].split(b",")[0]


def check_what_is_mended():
    many, number = ops(1)
    whole, other = ops(2)
    last, third = ops(3)
    expect(number == other == third == ops(0)[1], number, other, third)
    expect(many["div"] > 1000 and whole["div"] == 32, many, whole)
    expect(whole["clone"] == 32 and "clone" not in last, whole, last)


run_checks(globals())
