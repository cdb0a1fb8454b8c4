#!/usr/bin/env python3
"""Breaks the code on purpose, one fault at a time, and looks whether the test that is named beside it fails.

usage: run_mutants.py [--only NAME] [--list] [--check] [--jobs N] [--seeds N [--hang SECONDS]]
Exits 1 when a fault goes unseen or does not build. The tree is copied; nothing of it is changed."""

import argparse
import concurrent.futures
import contextlib
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A test that hangs ends itself after 60 or 100 seconds.
TEST_SECONDS = 130
# Of compilers at once, also where more tests than that run.
BUILD_JOBS = os.cpu_count() or 1
FAKE_DRIVER = "tests/fake_cuda/libcuda.so.1"
# Of the fake driver, in turns.
MODES = ["mixed", "lazy", "eager"]


def end_all(mark):
    """Kills all processes that have the mark in their environment: Criterion runs each case in a session of its own, which outlives it."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark.encode() in file.read():
                os.kill(int(name), signal.SIGKILL)


def run(command, folder, seconds=3600, environment=None):
    """Exit status and output; 124 where it took too long."""
    mark = f"MUTANTS_RUN={uuid.uuid4()}"
    environment = {**(environment or os.environ), **dict([mark.split("=")])}
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=seconds,
                              check=False, stdin=subprocess.DEVNULL, env=environment)
    except subprocess.TimeoutExpired:
        return 124, ""
    finally:
        end_all(mark)
    return done.returncode, done.stdout + done.stderr


class Tree:
    """A copy of the project with a build folder of its own."""

    def __init__(self, folder, jobs, hang_seconds=TEST_SECONDS):
        self.folder, self.jobs, self.hang_seconds = folder, min(jobs, BUILD_JOBS), hang_seconds
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"), dirs_exist_ok=True)
        status, text = run(["tools/cuda_headers.sh"], folder)
        if status:
            sys.exit("the copy has no headers of CUDA: " + text[-500:])
        status, text = run(["meson", "setup", "build", "-Dbuildtype=debugoptimized", "-Doptimization=1", "-Dchecks=true",
                            "-Dexamples=false"], folder)
        if status:
            sys.exit("the copy could not be configured: " + text[-500:])

    def build(self, mutant):
        return run(["ninja", "-C", "build", "-j", str(self.jobs), mutant["test"], *mutant.get("needs", [])], self.folder)

    def test(self, mutant, **variables):
        """Its status and output. Libraries that it needs are found."""
        build = os.path.join(self.folder, "build")
        folders = ":".join(dict.fromkeys(os.path.join(build, os.path.dirname(n)) for n in mutant.get("needs", [])))
        environment = None
        if folders:
            environment = {**os.environ, "LD_LIBRARY_PATH": folders, "FAKE_CUDA_ABORT": "1", "EDDY_CACHE_DIR": "none", **variables}
        program = os.path.join(build, mutant["test"])
        return run([program, *mutant.get("arguments", [])], build, self.hang_seconds, environment)

    def read(self, file):
        with open(os.path.join(self.folder, file), encoding="utf-8") as opened:
            return opened.read()

    def write(self, file, text):
        with open(os.path.join(self.folder, file), "w", encoding="utf-8") as opened:
            opened.write(text)


def see(tree, mutant):
    """What came of the test with the fault: "" where it failed as it must."""
    return "" if tree.test(mutant)[0] else f"{mutant['test']} does not see it"


def narrowed(mutant, output):
    """The part of its test that has just failed: a case, or the calls of the driver that are failed around one."""
    case = re.search(r"^\[FAIL\] (\w+)::(\w+)", output, re.MULTILINE)
    if case:
        return {**mutant, "arguments": ["--filter", f"{case[1]}/{case[2]}"]}
    call = re.search(r"^call (\d+) fails", output, re.MULTILINE)
    if call:
        first = max(int(call[1]) - 3, 1)
        return {**mutant, "arguments": [mutant["arguments"][0], "1", str(first), str(first + 6)]}
    return mutant


def see_by_seeds(tree, mutant, seeds, jobs):
    """The same with each seed of the fake driver: the part that sees it with the first seed, alone; where that passes, all of the test."""
    part = narrowed(mutant, tree.test(mutant, FAKE_CUDA_SEED="1")[1])

    def is_seen(seed):
        variables = {"FAKE_CUDA_SEED": str(seed), "FAKE_CUDA_MODE": MODES[seed % len(MODES)]}
        return tree.test(part, **variables)[0] != 0 or tree.test(mutant, **variables)[0] != 0

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        seen = sum(pool.map(is_seen, range(1, seeds + 1)))
    return "" if seen == seeds else f"{seen} of {seeds} seeds see it"


def judge(tree, mutant, look):
    """What `look` says of a fault, "" where it is seen; or why it could not be tried."""
    text = tree.read(mutant["file"])
    if text.count(mutant["was"]) != 1:
        return f"its text stands {text.count(mutant['was'])} times in {mutant['file']}"
    status, output = tree.build(mutant)
    if status:
        return "the tree does not build: " + output[-300:]
    if not mutant.get("was_tried") and tree.test(mutant)[0]:
        return f"{mutant['test']} fails without it"
    tree.write(mutant["file"], text.replace(mutant["was"], mutant["is"]))
    try:
        status, output = tree.build(mutant)
        return "it does not build: " + output[-300:] if status else look(tree, mutant)
    finally:
        tree.write(mutant["file"], text)


def check(mutants):
    """1 where code has changed that a fault names."""
    is_old = False
    for name, mutant in mutants.items():
        with open(os.path.join(ROOT, mutant["file"]), encoding="utf-8") as file:
            count = file.read().count(mutant["was"])
        if count != 1:
            print(f"{name}: its text stands {count} times in {mutant['file']}")
            is_old = True
    return 1 if is_old else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", action="append", help="NAME* takes all that begin so")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true", help="only asks whether the text of each still stands there, once")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, help="only what runs on the fake driver: each with so many of its seeds")
    parser.add_argument("--hang", type=int, metavar="SECONDS", default=TEST_SECONDS, help="a test that takes longer has seen the fault; many times what it takes without one")
    options = parser.parse_args()
    mutants = {}
    for name in sorted(glob.glob(os.path.join(HERE, "*.toml"))):
        with open(name, "rb") as file:
            mutants.update(tomllib.load(file))
    chosen = {name: mutant for name, mutant in mutants.items()
              if not options.only or any(name == only or (only.endswith("*") and name.startswith(only[:-1]))
                                         for only in options.only)}
    look = see
    if options.seeds:
        chosen = {name: mutant for name, mutant in chosen.items() if FAKE_DRIVER in mutant.get("needs", [])}
        look = functools.partial(see_by_seeds, seeds=options.seeds, jobs=options.jobs)
    if options.list:
        print("\n".join(chosen))
        return 0
    if options.check:
        return check(chosen)
    failed, tried = 0, set()
    with tempfile.TemporaryDirectory(prefix="eddy-mutants-") as folder:
        tree = Tree(folder, options.jobs, options.hang)
        for name, mutant in chosen.items():
            key = (mutant["test"], *mutant.get("arguments", []))
            result = judge(tree, {**mutant, "was_tried": key in tried}, look)
            tried.add(key)
            failed += bool(result)
            print(f"{'FAIL' if result else 'ok  '} {name}{': ' if result else ''}{result}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
