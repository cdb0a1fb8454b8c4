#!/usr/bin/env python3
"""The training example, run as a user runs it: bad files, the same numbers for every run and number of threads, a
damaged batch, accuracy. Usage: test_fashion_mnist.py PROGRAM [--long] [unittest's arguments]."""

import gzip
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import unittest

import idx_files

REAL_DATA = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
ACCURACY_WANTED = 0.87
ACCURACY_WANTED_OF_CNN = 0.9
SEEDS = (1, 2, 3, 4, 5)
EXIT_SKIPPED = 77

PROGRAM = ""
IS_LONG = False


def has_real_data():
    return all(os.path.exists(os.path.join(REAL_DATA, name)) for name in idx_files.NAMES)


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_example(self, *options, data=None, variables=None):
        return subprocess.run([PROGRAM, "--data", data or self.folder, *options], capture_output=True, text=True,
                              timeout=900, check=False, env={**os.environ, **(variables or {})})

    def train(self, *options, data=None, variables=None):
        """The run's output and its losses; the run must succeed."""
        with tempfile.NamedTemporaryFile("r") as losses:
            done = self.run_example("--losses", losses.name, *options, data=data, variables=variables)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            return done, losses.read().splitlines()


class BadFiles(Case):
    def setUp(self):
        super().setUp()
        idx_files.make(self.folder, train_count=200, test_count=40)

    def refused(self, *options):
        """One sentence on stderr, nothing on stdout, exit status 1."""
        done = self.run_example(*options)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def damage(self, name, change):
        with open(self.path(name), "rb") as file:
            data = file.read()
        with open(self.path(name), "wb") as file:
            file.write(change(data))

    def repack(self, name, change):
        with gzip.open(self.path(name)) as file:
            data = file.read()
        idx_files.write_gzip(self.path(name), change(data))

    def test_missing_folder(self):
        done = self.run_example(data="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_each_missing_file_is_named(self):
        for name in idx_files.NAMES:
            with self.subTest(name):
                os.rename(self.path(name), self.path("aside"))
                self.assertIn(name, self.refused())
                os.rename(self.path("aside"), self.path(name))

    def test_folder_instead_of_file(self):
        os.remove(self.path(idx_files.NAMES[0]))
        os.mkdir(self.path(idx_files.NAMES[0]))
        self.assertIn(idx_files.NAMES[0], self.refused())

    def test_truncated_gzip(self):
        for name in idx_files.NAMES:
            with self.subTest(name):
                with open(self.path(name), "rb") as file:
                    whole = file.read()
                for kept in (0, 5, 20, len(whole) // 2, len(whole) - 4):
                    with open(self.path(name), "wb") as file:
                        file.write(whole[:kept])
                    self.assertIn(name, self.refused())
                with open(self.path(name), "wb") as file:
                    file.write(whole)

    def test_flipped_bits(self):
        self.damage(idx_files.NAMES[0], lambda data: data[:3000] + bytes([data[3000] ^ 0x55]) + data[3001:])
        self.assertIn(idx_files.NAMES[0], self.refused())

    def test_wrong_magic(self):
        self.repack(idx_files.NAMES[0], lambda data: b"\0\0\x0d\3" + data[4:])
        self.assertIn(idx_files.NAMES[0], self.refused())
        self.repack(idx_files.NAMES[1], lambda data: b"\0\0\x08\2" + data[4:])

    def test_labels_where_images_belong(self):
        os.replace(self.path(idx_files.NAMES[1]), self.path(idx_files.NAMES[0]))
        self.assertIn(idx_files.NAMES[0], self.refused())

    def test_huge_sizes_in_the_header(self):
        self.repack(idx_files.NAMES[0], lambda data: data[:4] + b"\xff\xff\xff\xff" * 3 + data[16:])
        self.assertIn(idx_files.NAMES[0], self.refused())

    def test_more_data_than_the_header_says(self):
        self.repack(idx_files.NAMES[1], lambda data: data + b"\0")
        self.assertIn(idx_files.NAMES[1], self.refused())

    def test_counts_of_images_and_labels_differ(self):
        idx_files.write_gzip(self.path(idx_files.NAMES[1]), idx_files.labels_bytes([0] * 199))
        self.assertIn("199", self.refused())

    def test_losses_file_cannot_be_written(self):
        self.assertIn("/nonexistent/losses", self.refused("--losses", "/nonexistent/losses"))

    def test_losses_file_fills_its_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        done = self.run_example("--epochs", "1", "--losses", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full", done.stderr)

    def test_full_disk_under_stdout(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PROGRAM, "--data", self.folder, "--epochs", "1"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=900, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_bad_options(self):
        for options in (["--epochs", "0"], ["--epochs", "x"], ["--batch", "-1"], ["--threads", "0"], ["--seed", "-3"],
                        ["--epochs"], ["--nonsense"], ["--batch", "100000000"], ["--model", "rnn"], ["--model"],
                        ["--dtype", "f64"]):
            with self.subTest(options):
                self.refused(*options)

    def test_too_little_memory(self):
        done = self.run_example("--epochs", "1", variables={"EDDY_MEMORY_LIMIT": "100K"})
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertIn("memory", done.stderr)


class SmallTraining(Case):
    OPTIONS = ("--epochs", "2", "--batch", "64", "--seed", "7")

    def setUp(self):
        super().setUp()
        idx_files.make(self.folder)

    def test_last_line_and_learning(self):
        done, losses = self.train(*self.OPTIONS)
        self.assertRegex(done.stdout.splitlines()[-1], r"^test accuracy [01]\.\d{4}$")
        self.assertGreater(float(done.stdout.split()[-1]), 0.5)
        self.assertEqual(len(losses), 2 * -(-2000 // 64))
        self.assertTrue(all(re.fullmatch(r"0x1?[0-9a-f.]+p[+-]\d+", line) for line in losses), losses[:3])

    def test_one_line_per_epoch_without_a_terminal(self):
        done, _ = self.train(*self.OPTIONS)
        self.assertEqual(len(done.stdout.splitlines()), 3, done.stdout)
        self.assertNotIn("\r", done.stdout)
        self.assertEqual(done.stderr, "")

    def show_on_a_terminal(self, columns):
        """What a terminal so wide gets to see."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, columns))
        with subprocess.Popen([PROGRAM, "--data", self.folder, *self.OPTIONS], stdout=theirs, stderr=theirs) as child:
            os.close(theirs)
            shown = b""
            try:
                while chunk := os.read(ours, 65536):
                    shown += chunk
            except OSError:  # how a terminal says that nobody writes any more
                pass
            os.close(ours)
        self.assertEqual(child.returncode, 0, shown)
        return shown

    def test_bar_on_a_terminal(self):
        shown = self.show_on_a_terminal(80)
        for part in (b"epoch 1/2 [", b"images/s", b"loss ", b"ETA "):
            self.assertIn(part, shown)
        self.assertRegex(shown.splitlines()[-1], rb"test accuracy [01]\.\d{4}$")

    def test_bar_stays_on_one_line(self):
        for columns in (1, 20, 60, 80, 200):
            bars = re.findall(rb"\r\033\[K(epoch[^\r]*)(?=\r\033)", self.show_on_a_terminal(columns))
            self.assertTrue(all(len(bar) < columns for bar in bars), bars)
            self.assertTrue(bars or columns == 1)

    def test_same_numbers_on_every_run(self):
        self.assertEqual(self.train(*self.OPTIONS)[1], self.train(*self.OPTIONS)[1])

    def test_bf16_learns(self):
        for model in ("mlp", "cnn"):
            with self.subTest(model):
                options = ("--model", model, "--epochs", "1", "--batch", "64")
                done, losses = self.train(*options, "--dtype", "bf16")
                values = [float.fromhex(line) for line in losses]
                self.assertLess(sum(values[-5:]), sum(values[:5]) / 2)
                self.assertGreater(float(done.stdout.split()[-1]), 0.5)
                self.assertNotEqual(losses, self.train(*options)[1])

    def test_seeds_differ(self):
        self.assertNotEqual(self.train(*self.OPTIONS)[1], self.train(*self.OPTIONS[:-1], "8")[1])

    def test_same_numbers_for_any_number_of_threads(self):
        one = self.train(*self.OPTIONS, "--threads", "1")[1]
        for threads in ("2", "3"):
            self.assertEqual(one, self.train(*self.OPTIONS, "--threads", threads)[1])

    def test_same_numbers_in_every_mode(self):
        usual = self.train(*self.OPTIONS)[1]
        for mode in ("EDDY_ONE_THREAD", "EDDY_FULL_PATH", "EDDY_SYNC_EACH_OP"):
            self.assertEqual(usual, self.train(*self.OPTIONS, variables={mode: "1"})[1], mode)

    def test_damaged_batch_equals_a_run_without_it(self):
        # First, last of an epoch, first of the next, the last of all, and somewhere between.
        for batch in ("0", "10", "31", "32", "63"):
            with self.subTest(batch):
                damaged, losses = self.train(*self.OPTIONS, "--damage-batch", batch)
                without, expected = self.train(*self.OPTIONS, "--leave-out-batch", batch)
                self.assertEqual(losses, expected)
                self.assertEqual(damaged.stdout.splitlines()[-1], without.stdout.splitlines()[-1])
                self.assertEqual(len(damaged.stderr.splitlines()), 1, damaged.stderr)
                self.assertIn(f"batch {batch} ", damaged.stderr)
                self.assertNotEqual(losses, self.train(*self.OPTIONS)[1])

    def test_damaged_batch_in_every_mode(self):
        expected = self.train(*self.OPTIONS, "--leave-out-batch", "10")[1]
        for mode in ("EDDY_ONE_THREAD", "EDDY_FULL_PATH", "EDDY_SYNC_EACH_OP"):
            self.assertEqual(expected, self.train(*self.OPTIONS, "--damage-batch", "10", variables={mode: "1"})[1])

    def test_replays_are_the_calls(self):
        done, losses = self.train(*self.OPTIONS, "--replay")
        self.assertEqual(losses, self.train(*self.OPTIONS)[1])
        self.assertRegex(done.stdout, r"\(u8\[64, 784\], i64\[64\]\): ran \d+ times, replayed \d\d times")
        self.assertRegex(done.stdout, r"a step took \d+ us by calls, \d+ us replayed: \d+\.\d\d times as fast\n")
        for threads in ("1", "3"):
            self.assertEqual(losses, self.train(*self.OPTIONS, "--replay", "--threads", threads)[1])
        for mode in ("EDDY_ONE_THREAD", "EDDY_FULL_PATH", "EDDY_SYNC_EACH_OP"):
            self.assertEqual(losses, self.train(*self.OPTIONS, "--replay", variables={mode: "1"})[1], mode)

    def test_damaged_batch_of_a_replay(self):
        for batch in ("1", "10", "31", "32", "40", "63"):
            with self.subTest(batch):
                damaged, losses = self.train(*self.OPTIONS, "--replay", "--damage-batch", batch)
                self.assertEqual(losses, self.train(*self.OPTIONS, "--leave-out-batch", batch)[1])
                self.assertEqual(len(damaged.stderr.splitlines()), 1, damaged.stderr)
                self.assertIn(f"batch {batch} ", damaged.stderr)

    def test_bad_label_in_the_file(self):
        """Each epoch skips the batch that the label falls into and goes on."""
        with gzip.open(self.path(idx_files.NAMES[1])) as file:
            data = bytearray(file.read())
        data[8 + 100] = 77
        idx_files.write_gzip(self.path(idx_files.NAMES[1]), bytes(data))
        done, losses = self.train(*self.OPTIONS)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.assertEqual(len(losses), 2 * -(-2000 // 64) - 2)
        self.assertGreater(float(done.stdout.split()[-1]), 0.5)


class SmallConvolutions(Case):
    OPTIONS = ("--model", "cnn", "--epochs", "1", "--batch", "64", "--seed", "7")

    def setUp(self):
        super().setUp()
        idx_files.make(self.folder)

    def test_learning_with_any_number_of_threads(self):
        done, one = self.train(*self.OPTIONS, "--threads", "1")
        self.assertGreater(float(done.stdout.split()[-1]), 0.5)
        self.assertEqual(one, self.train(*self.OPTIONS, "--threads", "3")[1])

    def test_damaged_batch_equals_a_run_without_it(self):
        damaged = self.train(*self.OPTIONS, "--damage-batch", "3")[1]
        self.assertEqual(damaged, self.train(*self.OPTIONS, "--leave-out-batch", "3")[1])

    def test_replays_are_the_calls(self):
        self.assertEqual(self.train(*self.OPTIONS, "--replay")[1], self.train(*self.OPTIONS)[1])
        self.assertEqual(self.train(*self.OPTIONS, "--replay", "--damage-batch", "4")[1],
                         self.train(*self.OPTIONS, "--leave-out-batch", "4")[1])


@unittest.skipUnless(has_real_data(), f"no images in {REAL_DATA} (apt install dataset-fashion-mnist)")
class RealTraining(Case):
    def test_one_epoch_twice_and_with_other_threads(self):
        runs = [self.train("--epochs", "1", "--seed", "1", *more, data=REAL_DATA)[1]
                for more in ([], [], ["--threads", "1"], ["--threads", "2"])]
        self.assertEqual(len(runs[0]), 469)
        for other in runs[1:]:
            self.assertEqual(runs[0], other)

    def test_five_seeds_reach_the_accuracy(self):
        if not IS_LONG:
            self.skipTest("only with --long")
        for seed in SEEDS:
            with self.subTest(seed=seed):
                done, _ = self.train("--epochs", "5", "--seed", str(seed), data=REAL_DATA)
                accuracy = float(done.stdout.split()[-1])
                print(f"seed {seed}: test accuracy {accuracy:.4f}", file=sys.stderr)
                self.assertGreaterEqual(accuracy, ACCURACY_WANTED)

    def test_convolutions_reach_their_accuracy(self):
        """The median of three seeds."""
        if not IS_LONG:
            self.skipTest("only with --long")
        accuracies = []
        for seed in SEEDS[:3]:
            done, _ = self.train("--model", "cnn", "--epochs", "5", "--seed", str(seed), data=REAL_DATA)
            accuracies.append(float(done.stdout.split()[-1]))
            print(f"cnn, seed {seed}: test accuracy {accuracies[-1]:.4f}", file=sys.stderr)
        self.assertGreaterEqual(sorted(accuracies)[1], ACCURACY_WANTED_OF_CNN)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    IS_LONG = "--long" in sys.argv
    if IS_LONG:
        sys.argv.remove("--long")
        if not has_real_data():
            print(f"skipped: no images in {REAL_DATA} (apt install dataset-fashion-mnist)")
            sys.exit(EXIT_SKIPPED)
    unittest.main()
