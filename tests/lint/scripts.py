#!/usr/bin/env python3
"""The scripts of tools/: help comes before anything is installed or built, long waits show life, jobs fit the memory.

Usage: scripts.py ROOT"""
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
# What would install, build or measure: stands first in the PATH, notes that it was called, and fails.
MUST_NOT_RUN = ("apt-get", "sudo", "meson", "ninja", "debootstrap", "chroot", "cc", "gcc")
SAID = ("[0/1] Regenerating build files.", "[1/3] one", "[3/3] two", "  1/2 eddy:unit / a   OK  0.1s", "2/2 eddy:unit / b FAIL 1s")
NINJA = "; ".join(f"print({line!r})" for line in SAID)


class Help(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name) / "eddy"
        for folder in ("tools", "bench", "functional", "include"):
            shutil.copytree(ROOT / folder, self.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.called, stubs = self.root / "called", self.root / "stubs"
        stubs.mkdir()
        for name in MUST_NOT_RUN:
            (stubs / name).write_text(f"#!/bin/sh\necho {name} >>{self.called}\nexit 1\n")
            (stubs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"}

    def expect_answer(self, script, argument):
        with self.subTest(script=script, argument=argument):
            done = subprocess.run([self.root / "tools" / script, argument], capture_output=True, text=True, check=False,
                                  env=self.environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.strip())
            self.assertFalse(self.called.exists(), "it has called something first")
            self.assertFalse((self.root / "build").exists(), "it has made build/")

    def test_help_and_lists_are_answered_at_once(self):
        for script in sorted(file.name for file in (ROOT / "tools").glob("*.sh")):
            for argument in ("--help", "-h"):
                self.expect_answer(script, argument)
        self.expect_answer("bench.sh", "--list")


class Progress(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.log = pathlib.Path(holder.name) / "log"

    def command(self, program):
        return [sys.executable, "-B", ROOT / "tools/progress.py", "build/x", self.log, sys.executable, "-c", program]

    def run_in_a_file(self, program, seconds):
        return subprocess.run(self.command(program), capture_output=True, text=True, check=False,
                              env={**os.environ, "EDDY_PROGRESS_SECONDS": seconds})

    def test_in_a_file_there_is_a_line_now_and_then(self):
        every = self.run_in_a_file(NINJA, "0").stdout.splitlines()
        self.assertEqual(every, ["building build/x 1/3", "building build/x 3/3", "tests of build/x 1/2, 0 failed",
                                 "tests of build/x 2/2, 1 failed"])
        self.assertEqual(self.run_in_a_file(NINJA, "1000").stdout.splitlines(), ["building build/x 1/3"])

    def test_on_a_terminal_one_line_is_rewritten(self):
        ours, theirs = pty.openpty()
        subprocess.run(self.command(NINJA), stdout=theirs, check=False)
        os.close(theirs)
        shown = os.read(ours, 10000)
        os.close(ours)
        self.assertNotIn(b"\n", shown)
        self.assertIn(b"\r\033[Kbuilding build/x 3/3\r\033[K", shown)
        self.assertTrue(shown.endswith(b"\r\033[K"), shown)

    def test_the_log_has_all_and_the_status_is_the_commands(self):
        self.assertEqual(self.run_in_a_file("import sys; print('all of it'); sys.exit(3)", "0").returncode, 3)
        self.assertEqual(self.log.read_text(), "all of it\n")


class Jobs(unittest.TestCase):
    def jobs(self, available_kb):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"MemTotal: 99999999 kB\nMemAvailable: {available_kb} kB\n")
            file.flush()
            return int(subprocess.run([ROOT / "tools/jobs.sh"], capture_output=True, text=True, check=True,
                                      env={**os.environ, "EDDY_MEMINFO": file.name}).stdout)

    def test_they_fit_the_memory(self):
        self.assertEqual(self.jobs(100 * 1024), 1)
        self.assertLessEqual(self.jobs(900 * 1024), 2)
        self.assertLessEqual(self.jobs(10 ** 9), len(os.sched_getaffinity(0)))


unittest.main()
