#!/usr/bin/env python3
"""The transformer on characters, run as a user runs it: its checkpoint, what reads it, and what is refused.
Usage: test_char_transformer.py PROGRAM [unittest's arguments]."""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
DEFAULT_CHECKPOINT = "char_transformer.safetensors"
LAYERS, PARAMETERS = 4, 3 + 4 * 7


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.text = self.write_text("text", "abcdefgh \n")

    def write_text(self, name, characters):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(characters + "".join(random.Random(1).choices(characters, k=3000)))
        return path

    def run_example(self, *options, text=None):
        return subprocess.run([PROGRAM, "--batch", "2", *options, text or self.text], cwd=self.folder, capture_output=True,
                              timeout=300, check=False)

    def succeed(self, *options):
        done = self.run_example(*options)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode("latin-1")

    def refused(self, *options, text=None):
        """One sentence on stderr, exit status 1."""
        done = self.run_example(*options, text=text)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr.decode("latin-1")


class Checkpoint(Case):
    def test_best_weights_are_in_the_file(self):
        shown = self.succeed("--steps", "3", "--sample", "20")
        self.assertRegex(shown.splitlines()[-1], r"^validation loss \d\.\d{3}$")
        self.assertEqual(sorted(os.listdir(self.folder)), [DEFAULT_CHECKPOINT, "text"])
        with open(os.path.join(self.folder, DEFAULT_CHECKPOINT), "rb") as file:
            data = file.read()
        length, = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        pairs = header.pop("__metadata__")
        self.assertEqual(pairs, {"step": "3", "validation_loss": shown.split()[-1]})
        self.assertEqual(len(header), PARAMETERS + 1)
        self.assertEqual(header[f"layers.{LAYERS - 1}.gate"]["shape"], [344, 128])
        begin, end = header["characters"]["data_offsets"]
        self.assertEqual(sorted(data[8 + length + begin:8 + length + end]), sorted(b"abcdefgh \n"))

    def test_reading_gives_the_same_loss_and_the_same_sample(self):
        trained = self.succeed("--steps", "2", "--sample", "0", "--checkpoint", "mine")
        read = [self.succeed("--steps", "0", "--sample", "50", "--checkpoint", "mine", "--threads", threads)
                for threads in ("1", "2")]
        self.assertEqual(read[0], read[1])
        self.assertEqual(read[0].splitlines()[-1], trained.splitlines()[-1])
        self.assertNotEqual(read[0], self.succeed("--steps", "0", "--sample", "50", "--checkpoint", "mine", "--seed", "2"))

    def test_a_new_run_replaces_the_file(self):
        first = self.succeed("--steps", "1", "--sample", "0")
        second = self.succeed("--steps", "4", "--sample", "0")
        self.assertNotEqual(first.splitlines()[-1], second.splitlines()[-1])
        self.assertEqual(self.succeed("--steps", "0", "--sample", "0").splitlines()[-1], second.splitlines()[-1])


class Shown(Case):
    def test_training_loss_is_a_number_from_the_first_step_on(self):
        shown = self.succeed("--steps", "1", "--sample", "0")
        self.assertRegex(shown, r"step 1, training \d\.\d{3}, validation \d\.\d{3}")

    def test_replays_are_the_calls(self):
        losses = []
        for more in ([], ["--replay"], ["--replay", "--threads", "1"]):
            shown = self.succeed("--steps", "6", "--sample", "0", "--losses", "losses", *more)
            with open(os.path.join(self.folder, "losses"), encoding="ascii") as file:
                losses.append(file.read().splitlines())
        self.assertEqual(len(losses[0]), 6)
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])
        self.assertRegex(shown, r"\(i64\[2, 129\]\): ran [23] times, replayed [34] times\n")
        self.assertIn("too few steps to compare", shown)

    def test_full_disk_is_a_failure(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PROGRAM, "--batch", "2", "--steps", "1", "--sample", "0", self.text], cwd=self.folder,
                                  stdout=full, stderr=subprocess.PIPE, timeout=300, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)


class Refused(Case):
    def test_missing_checkpoint(self):
        self.assertIn(f"{DEFAULT_CHECKPOINT}: No such file", self.refused("--steps", "0"))

    def test_checkpoint_that_cannot_be_written(self):
        """Before anything is read or trained: nothing is shown yet."""
        for path, reason in (("/nonexistent/c", "No such file"), (self.folder, "Is a directory"), ("x" * 5000, "too long")):
            with self.subTest(path):
                done = self.run_example("--steps", "1000000", "--checkpoint", path, text="/nonexistent/text")
                self.assertEqual((done.returncode, done.stdout), (1, b""))
                self.assertIn(f"{path}: ", done.stderr.decode())
                self.assertIn(reason, done.stderr.decode())
                self.assertEqual(os.listdir(self.folder), ["text"])

    def test_damaged_checkpoint(self):
        self.succeed("--steps", "1", "--sample", "0")
        os.truncate(os.path.join(self.folder, DEFAULT_CHECKPOINT), 100000)
        self.assertIn("ends too early", self.refused("--steps", "0"))

    def test_checkpoint_of_another_text(self):
        self.succeed("--steps", "1", "--sample", "0")
        for name, characters in (("other", "ABCDEFGH \n"), ("fewer", "abc \n")):
            other = self.write_text(name, characters)
            self.assertIn("other characters", self.refused("--steps", "0", text=other))

    def test_bad_options(self):
        for options in (["--steps", "-1"], ["--steps", "x"], ["--batch", "0"], ["--threads", "0"], ["--nonsense"]):
            with self.subTest(options):
                self.refused(*options)
        done = subprocess.run([PROGRAM, "--checkpoint"], capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, b"char_transformer: --checkpoint needs a file\n"))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
