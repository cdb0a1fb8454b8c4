#!/usr/bin/env python3
"""Checks the spin models of vm/model: each must hold, and each of its seeded bugs must be found.

A seeded bug is any BUG_ name that a model tests with #ifdef, #ifndef or defined(). Bounds are small unless --long is
given.
Exits 77 where spin or a C compiler is missing, 1 when a model fails or a bug goes unseen.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing

# name: (bounds, larger bounds, bounds for the seeded bugs: "" for those not named)
MODELS = {
    "lock": ([""], ["-DROUNDS=3"], {}),
    "doorbell": ([""], ["-DROUNDS=4"], {}),
    "storage": (
        ["-DPROGRAM=1", "-DPROGRAM=2", "-DPROGRAM=3", "-DPROGRAM=4"],
        ["-DPROGRAM=1 -DLONG", "-DPROGRAM=2 -DLONG", "-DPROGRAM=3 -DWORKERS=2", "-DPROGRAM=4 -DWORKERS=2"],
        {"": "-DPROGRAM=2", "BUG_CALLER_RUNS_UNLOCKED": "-DPROGRAM=1"},
    ),
    "wake": (
        ["", "-DISSUERS=1 -DHELPER", "-DDRIVEN"],
        ["-DHELPER", "-DRECORDS=2", "-DDRIVEN -DRECORDS=2"],
        {"BUG_DRIVER_ASKS_NOBODY": "-DDRIVEN", "BUG_DRIVER_LEAVES_WORK": "-DDRIVEN",
         "BUG_HELPER_LEAVES_WORK": "-DISSUERS=1 -DHELPER", "BUG_WAKE_WORD_READ_AFTER_FLAG": "-DISSUERS=1 -DHELPER -DRECORDS=2"},
    ),
    "attend": (
        ["", "-DLONG", "-DLONG -DOTHERS=2"],
        ["-DLONG -DCALLS=4 -DOTHERS=3"],
        {"": "-DLONG", "BUG_FORGETS_WHO_ASKED": "-DLONG -DCALLS=3 -DOTHERS=2", "BUG_TURN_ENDS_IN_SILENCE": "-DOTHERS=2"},
    ),
    "waiter": ([""], ["-DWAITS=4"], {}),
    "pressure": (
        ["", "-DHIGH=1", "-DISSUERS=2 -DCALLS=2"],
        ["-DCALLS=5", "-DISSUERS=2 -DCALLS=3"],
        {"BUG_EMPTY_DEVICE_REFUSES": "-DHIGH=1"},
    ),
    "lend": (["-DACTIONS=2"], ["-DACTIONS=3"], {"": "-DACTIONS=2"}),
    "permit": ([""], ["-DPERMITS=2 -DWORKS=3"], {}),
    "crew": (["", "-DSEGMENTS=1 -DHELPERS=2"], ["-DSEGMENTS=3"], {}),
    "fork_gate": (["", "-DTHREADS=1 -DFORKS=2"], ["-DROUNDS=3"], {"BUG_FORK_OPENS_FOR_ALL": "-DTHREADS=1 -DFORKS=2"}),
    "callback": ([""], ["-DCALLS=5 -DMARK=2"], {}),
    "closing": ([""], [""], {}),
    "listener": ([""], ["-DEVENTS=3 -DLISTENERS=3"], {}),
    "trace_ring": ([""], ["-DEVENTS=4"], {}),
    "numbers": ([""], ["-DTAKES=7"], {}),
    "token": ([""], ["-DWORKS=3"], {}),
    "sharing": (
        ["-DPROGRAM=1", "-DPROGRAM=2", "-DPROGRAM=3", "-DPROGRAM=4"],
        ["-DPROGRAM=1", "-DPROGRAM=2", "-DPROGRAM=3", "-DPROGRAM=4"],
        {"": "-DPROGRAM=1", "BUG_PARTS_IN_SILENCE": "-DPROGRAM=3", "BUG_SAYS_SO_BEFORE_RELEASES": "-DPROGRAM=4"},
    ),
    "poison": (
        ["-DOPS=3"],
        ["-DOPS=4 -DFIRST_PART=0 -DLAST_PART=0", "-DOPS=4 -DFIRST_PART=1 -DLAST_PART=2"],
        {"": "-DOPS=3"},
    ),
    "ticket": (
        ["-DOPS=3 -DFAILS=3", "-DOPS=3 -DFAILS=3 -DRUNS_ON", "-DOPS=4 -DFAILS=2 -DWINDOW=2"],
        ["-DOPS=4 -DFAILS=1", "-DOPS=4 -DFAILS=4", "-DOPS=4 -DFAILS=2 -DRUNS_ON", "-DOPS=5 -DFAILS=1 -DWINDOW=3"],
        {"": "-DOPS=3", "BUG_NOT_LAUNCHED_DOES_NOT_WAIT": "-DOPS=4 -DFAILS=1", "BUG_ONE_ROW_LESS": "-DOPS=4 -DWINDOW=2",
         "BUG_RUNS_ON_IN_SILENCE": "-DOPS=3 -DRUNS_ON", "BUG_WINDOW_TOO_LARGE": "-DOPS=4 -DWINDOW=2"},
    ),
    "rounds": (
        ["", "-DROUND_CALLS=2 -DWINDOW=4"],
        ["-DOPS=4", "-DROUNDS=3 -DROUND_CALLS=2 -DWINDOW=4"],
        {},
    ),
    "lend_there": (
        ["-DCALLS=1 -DLENDS=1 -DCLOSES -DCAPTURES", "-DCALLS=0 -DLENDS=2 -DCLOSES -DCAPTURES"],
        ["-DCALLS=1 -DLENDS=2", "-DCALLS=2 -DLENDS=1 -DCAPTURES"],
        {"": "-DCALLS=1 -DLENDS=1", "BUG_CLOSES_OVER_A_LEND": "-DCALLS=1 -DLENDS=1 -DCLOSES",
         "BUG_END_DOES_NOT_LOOK": "-DCALLS=1 -DLENDS=1 -DCAPTURES"},
    ),
    "wait_list": (
        ["-DTICKETS=5 -DONE_USER", "-DTICKETS=4 -DQUEUES=4"],
        ["-DTICKETS=6 -DCLOCKS_ONLY", "-DTICKETS=5", "-DTICKETS=5 -DQUEUES=4 -DONE_USER"],
        {"": "-DTICKETS=4", "BUG_NEWER_CLOCK_IS_JOINED": "-DTICKETS=5 -DONE_USER", "BUG_ONLY_OLDER_CLOCK_IS_JOINED": "-DTICKETS=5 -DONE_USER"},
    ),
}
# Bugs that show only in millions of states: on request.
SLOW_BUGS = ["BUG_NOT_LAUNCHED_DOES_NOT_WAIT"]
DEPTH = 100000


class Bounds(typing.NamedTuple):
    """Of one search. States that are compressed take a third of the memory, and half as long again."""

    memory_mb: int
    seconds: int
    store: list
    table_bits: int


SMALL, LONG = Bounds(2800, 170, [], 23), Bounds(12000, 3600, ["-DCOLLAPSE"], 22)


def seeded_bugs(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names = re.findall(r"^#(?:ifn?def|(?:el)?if\s+.*?defined\()\s*(BUG_\w+)", text, re.MULTILINE)
    return sorted(set(names))


def check(path, flags, compiler, bounds, is_bug):
    """Returns ("holds" | "error" | what went wrong, states, megabytes, first error)."""
    with tempfile.TemporaryDirectory(prefix="eddy-model-") as folder:

        def step(command, limit):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False)
            return done.returncode, done.stdout + done.stderr

        try:
            code, text = step(["spin", "-a", *flags, path], 60)
            if code != 0 or "Error" in text:
                return "spin: " + text.strip(), 0, 0.0, ""
            # Half of gcc's time at -O1 would be one pass over pan's largest function, of which its search gains nothing.
            build = [compiler, *(["-O0"] if is_bug else ["-O1", "-fno-dse"]), "-w", "-DSAFETY", *bounds.store,
                     f"-DMEMLIM={bounds.memory_mb}"]
            code, text = step([*build, "-o", "pan", "pan.c"], 120)
            if code != 0:
                return "compiler: " + text.strip(), 0, 0.0, ""
            code, text = step(["./pan", f"-m{DEPTH}", f"-w{bounds.table_bits}"], bounds.seconds)
        except subprocess.TimeoutExpired:
            return f"took more than {bounds.seconds} s", 0, 0.0, ""
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d+) states, stored", text)
    memory = re.search(r"([\d.]+)\s+total actual memory usage", text)
    first = re.search(r"^pan:\d+: (.*)", text, re.MULTILINE)
    counted = int(states.group(1)) if states else 0
    used = float(memory.group(1)) if memory else 0.0
    if errors is None:
        return "no verdict: " + text.strip()[-200:], counted, used, ""
    if int(errors.group(1)) > 0:
        return "error", counted, used, first.group(1) if first else ""
    if "Search not completed" in text or "max search depth too small" in text:
        return "search not completed", counted, used, ""
    return "holds", counted, used, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="larger bounds (tens of minutes, up to 12 GB)")
    parser.add_argument("--only", metavar="MODEL", choices=sorted(MODELS), help="one model")
    parser.add_argument("--list", action="store_true", help="prints the names of the models")
    here = os.path.dirname(os.path.abspath(__file__))
    default = os.path.join(here, "..", "..", "vm", "model")
    parser.add_argument("--models", metavar="DIR", default=default, help="folder of the models")
    arguments = parser.parse_args()
    if arguments.list:
        there = {name[:-4] for name in os.listdir(default) if name.endswith(".pml")} - {"primitives"}
        if there != set(MODELS):
            print(f"vm/model and the table of bounds differ: {sorted(there ^ set(MODELS))}", file=sys.stderr)
            return 1
        print("\n".join(MODELS))
        return 0

    compiler = shutil.which(os.environ.get("CC", "cc").split()[0]) or shutil.which("gcc") or shutil.which("clang")
    for tool, is_there in (("spin", shutil.which("spin")), ("a C compiler", compiler)):
        if not is_there:
            print(f"skipped: {tool} is not installed")
            return 77

    bounds = LONG if arguments.long else SMALL
    passed = failed = total_states = 0
    for name, (small, large, bug_flags) in MODELS.items():
        if arguments.only not in (None, name):
            continue
        path = os.path.abspath(os.path.join(arguments.models, name + ".pml"))
        runs = [(flags, None) for flags in (large if arguments.long else small)]
        for bug in seeded_bugs(path):
            if bug in SLOW_BUGS and not arguments.long:
                continue
            runs.append((bug_flags.get(bug, bug_flags.get("", "")), bug))
        for flags, bug in runs:
            begin = time.monotonic()
            defines = flags.split() + ([f"-D{bug}"] if bug else [])
            verdict, states, used, first = check(path, defines, compiler, bounds, bug is not None)
            is_right = verdict == ("error" if bug else "holds")
            passed, failed = passed + is_right, failed + (not is_right)
            total_states += states
            label = " ".join(filter(None, (name, flags, bug)))
            said = "holds" if verdict == "holds" else f"{verdict}: {first}" if first else verdict
            took = time.monotonic() - begin
            mark = "ok  " if is_right else "FAIL"
            print(f"{mark} {label:62} {states:>10} states {used:5.0f} MB {took:6.1f} s  {said}", flush=True)
    print(f"{total_states} states")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
