#!/usr/bin/env python3
"""Breaks the code on purpose, one fault at a time, and looks whether the test that is named beside it fails.

usage: run_mutants.py [--only NAME] [--list] [--check] [--jobs N]
Exits 1 when a fault goes unseen or does not build. The tree is copied; nothing of it is changed."""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A test that hangs ends itself after 60 or 100 seconds.
TEST_SECONDS = 130


def run(command, folder, seconds=3600, environment=None):
    """Exit status and output; 124 where it took too long."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=seconds,
                              check=False, stdin=subprocess.DEVNULL, env=environment)
    except subprocess.TimeoutExpired:
        return 124, ""
    return done.returncode, done.stdout + done.stderr


class Tree:
    """A copy of the project with a build folder of its own."""

    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"), dirs_exist_ok=True)
        status, text = run(["meson", "setup", "build", "-Dbuildtype=debugoptimized", "-Doptimization=1", "-Dchecks=true",
                            "-Dexamples=false"], folder)
        if status:
            sys.exit("the copy could not be configured: " + text[-500:])

    def build(self, mutant):
        return run(["ninja", "-C", "build", "-j", str(self.jobs), mutant["test"], *mutant.get("needs", [])], self.folder)

    def test(self, mutant):
        """Its status. Libraries that it needs are found."""
        build = os.path.join(self.folder, "build")
        folders = ":".join(dict.fromkeys(os.path.join(build, os.path.dirname(n)) for n in mutant.get("needs", [])))
        environment = {**os.environ, "LD_LIBRARY_PATH": folders, "FAKE_CUDA_ABORT": "1", "EDDY_CACHE_DIR": "none"} if folders else None
        program = os.path.join(build, mutant["test"])
        return run([program, *mutant.get("arguments", [])], build, TEST_SECONDS, environment)[0]

    def read(self, file):
        with open(os.path.join(self.folder, file), encoding="utf-8") as opened:
            return opened.read()

    def write(self, file, text):
        with open(os.path.join(self.folder, file), "w", encoding="utf-8") as opened:
            opened.write(text)


def judge(tree, mutant):
    """What came of a fault: "" where the test failed as it must."""
    text = tree.read(mutant["file"])
    if text.count(mutant["was"]) != 1:
        return f"its text stands {text.count(mutant['was'])} times in {mutant['file']}"
    status, output = tree.build(mutant)
    if status:
        return "the tree does not build: " + output[-300:]
    if not mutant.get("was_tried") and tree.test(mutant):
        return f"{mutant['test']} fails without it"
    tree.write(mutant["file"], text.replace(mutant["was"], mutant["is"]))
    try:
        status, output = tree.build(mutant)
        if status:
            return "it does not build: " + output[-300:]
        return "" if tree.test(mutant) else f"{mutant['test']} does not see it"
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
    options = parser.parse_args()
    mutants = {}
    for name in sorted(glob.glob(os.path.join(HERE, "*.toml"))):
        with open(name, "rb") as file:
            mutants.update(tomllib.load(file))
    chosen = {name: mutant for name, mutant in mutants.items()
              if not options.only or any(name == only or (only.endswith("*") and name.startswith(only[:-1]))
                                         for only in options.only)}
    if options.list:
        print("\n".join(chosen))
        return 0
    if options.check:
        return check(chosen)
    failed, tried = 0, set()
    with tempfile.TemporaryDirectory(prefix="eddy-mutants-") as folder:
        tree = Tree(folder, options.jobs)
        for name, mutant in chosen.items():
            key = (mutant["test"], *mutant.get("arguments", []))
            result = judge(tree, {**mutant, "was_tried": key in tried})
            tried.add(key)
            failed += bool(result)
            print(f"{'FAIL' if result else 'ok  '} {name}{': ' if result else ''}{result}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
