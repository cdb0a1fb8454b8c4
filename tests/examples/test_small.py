#!/usr/bin/env python3
"""The small examples: what they print, and that nothing goes wrong in silence. Usage: test_small.py HELLO CUSTOM_OP SAVE_STEP SOURCE
[unittest's arguments]; SOURCE is the folder with README.md."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HELLO = CUSTOM_OP = SAVE_STEP = SOURCE = ""


def run(program, *words, stdout=subprocess.PIPE, **variables):
    return subprocess.run([program, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, **variables})


class Small(unittest.TestCase):
    def test_hello_prints_a_matrix_and_its_sum(self):
        done = run(HELLO)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("f32[2, 4]\nsum 2\n", done.stdout)

    def test_hello_tells_what_failed(self):
        done = run(HELLO, EDDY_THREADS="abc")
        self.assertEqual(done.returncode, 1)
        self.assertIn("EDDY_THREADS", done.stderr)

    def test_readme_shows_hello(self):
        """The same program, but for comments and blanks."""
        shown = re.search(r"```c\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).group(1)
        kept = [re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).strip()
                for text in (shown, (SOURCE / "examples/hello.c").read_text())]
        self.assertEqual(*kept)

    def test_custom_op_says_that_its_error_is_meant(self):
        done = run(CUSTOM_OP)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout.splitlines()[-1], r"^A matrix is refused, as it should be: .*signal of rank 1")

    def test_save_step_writes_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            for network in ("mlp", "transformer"):
                path = pathlib.Path(folder, network)
                done = run(SAVE_STEP, network, path)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
                self.assertGreater(path.stat().st_size, 1_000_000)
            done = run(SAVE_STEP, "mlp", pathlib.Path(folder, "nowhere", "mlp"))
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^save_step: .*No such file")
            self.assertEqual(run(SAVE_STEP, "mlp").returncode, 2)

    def test_full_disk_is_a_failure(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for program in (HELLO, CUSTOM_OP):
                self.assertEqual(run(program, stdout=full).returncode, 1)


if __name__ == "__main__":
    HELLO, CUSTOM_OP, SAVE_STEP, SOURCE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
    unittest.main()
