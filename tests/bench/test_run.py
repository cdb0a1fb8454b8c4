#!/usr/bin/env python3
"""The driver, with programs that only sleep in place of Eddy's and libtorch's. Usage: test_run.py SLEEPER [unittest's arguments];
bench/ stands in PYTHONPATH."""

import argparse
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import peers
import run
import table

SLEEPER = sys.argv.pop(1)
# In place of Eddy's ops: says of each row how often it was started, cannot do log, and ends at exp.
OPS = """#!/bin/sh
echo start >>"$0.starts"
for row in $(echo "$1" | tr , ' '); do
    case $row in
    op_log_*) echo '{"row": "'$row'", "version": "1", "error": "no log"}' ;;
    op_exp_*) echo 'no exp' >&2; exit 1 ;;
    *) echo '{"row": "'$row'", "unit": "us", "version": "1", "samples": ['$(wc -l <"$0.starts")']}' ;;
    esac
done
"""
# Of sleeper.c.
SLEEP_MS, KEPT_MIB = 20, 24


class Driver(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        ours = pathlib.Path(holder.name) / "bench/ours"
        ours.mkdir(parents=True)
        os.symlink(SLEEPER, ours / "small")
        (ours / "ops").write_text(OPS, encoding="utf-8")
        (ours / "ops").chmod(0o755)
        options = argparse.Namespace(build=holder.name, rounds=1, samples=2, retries=0, libtorch=None, blas=None, python="python3")
        self.bench = run.Bench(options)
        self.bench.peers._compile_with_debians_libtorch = lambda program: SLEEPER

    def measure(self, *names):
        """Results by the row's name."""
        return {result.row.name: result for batch in run.batches(run.selected(names)) for result in self.bench.measure(batch)}

    def how(self, result):
        """How each was called, by name."""
        return {entry.name: dict(word.split("=") for word in entry.version.split())
                for entry in (result.ours, *result.peers)}

    def test_time_cpu_time_and_memory_are_told_apart(self):
        results = self.measure("small_tree", "small_tree_cpu", "small_tree_memory")
        best = {name: result.ours.figures.best for name, result in results.items()}
        self.assertGreaterEqual(best["small_tree"], SLEEP_MS)
        self.assertLess(best["small_tree_cpu"], SLEEP_MS / 2)
        self.assertGreaterEqual(best["small_tree_memory"], KEPT_MIB - 1)
        self.assertLess(best["small_tree_memory"], 2 * KEPT_MIB)
        self.assertEqual(results["small_tree"].ours.figures.sample_count, 2)

    def test_one_figure_is_measured_alone(self):
        for name, least in (("small_tree", SLEEP_MS), ("small_tree_cpu", 0), ("small_gru_b64_memory", KEPT_MIB - 1),
                            ("small_gru_b64_pinned_memory", KEPT_MIB - 1)):
            results = self.measure(name)
            self.assertEqual(list(results), [name])
            for entry in (results[name].ours, *results[name].peers):
                self.assertGreaterEqual(entry.figures.best, least, (name, entry.name))

    def test_a_pinned_row_has_one_cpu_and_both_modes(self):
        how = self.how(self.measure("small_gru_b64_pinned")["small_gru_b64_pinned"])
        self.assertEqual(how, {"Eddy": {"cpus": "1", "one_thread": "", "openmp": "1", "threads": "1"},
                               "Eddy, one thread": {"cpus": "1", "one_thread": "1", "openmp": "1", "threads": "1"}})

    def test_libtorch_has_one_thread_and_two_on_all_cpus(self):
        how = self.how(self.measure("small_tree")["small_tree"])
        every = str(len(os.sched_getaffinity(0)))
        for name, threads in (("Eddy", "2"), ("libtorch, one thread", "1"), ("libtorch, two threads", "2")):
            self.assertEqual((how[name]["cpus"], how[name]["openmp"], how[name]["one_thread"]), (every, threads, ""), name)
        self.assertEqual((how["Eddy, one thread"]["cpus"], how["Eddy, one thread"]["one_thread"]), (every, "1"))

    def test_a_peer_that_is_not_there_is_a_line(self):
        def refuse(program):
            raise peers.Missing("no libtorch (libtorch-dev, or --libtorch DIR)")
        self.bench.peers._compile_with_debians_libtorch = refuse
        result = self.measure("small_tree")["small_tree"]
        self.assertIsNotNone(result.is_met())
        missing = [line for line in table.lines(result) if "not measured: no libtorch" in line]
        self.assertEqual(len(missing), 2)
        self.assertEqual(table.as_json(result)["peers"]["libtorch, two threads"],
                         {"missing": "no libtorch (libtorch-dev, or --libtorch DIR)"})

    def test_a_program_that_ends_is_started_again_behind_the_row(self):
        names = [f"op_{name}_1e4_1t" for name in ("add", "exp", "log", "sqrt")]
        self.bench.peers._build_copy = self.bench.peers._compile_with_debians_libtorch = lambda *_: str(pathlib.Path(self.bench.options.build) / "bench/ours/ops")
        results = self.measure(*names)
        self.assertEqual({name: results[name].ours.missing for name in names}, dict(zip(names, ("", "no exp", "no log", ""))))
        self.assertEqual([results[names[at]].ours.figures.best for at in (0, 3)], [1, 2])

    def test_a_program_that_fails_behind_its_last_row_is_a_line(self):
        ops = pathlib.Path(self.bench.options.build) / "bench/ours/ops"
        ops.write_text(OPS + "echo late >&2; exit 1\n", encoding="utf-8")
        self.bench.peers._build_copy = self.bench.peers._compile_with_debians_libtorch = lambda *_: str(ops)
        self.assertEqual(self.measure("op_add_1e4_1t")["op_add_1e4_1t"].ours.missing, "late")

    def test_rows_on_a_gpu_are_asked_for_by_the_names_of_the_cpus(self):
        ops = pathlib.Path(self.bench.options.build) / "bench/ours/ops"
        ops.write_text(OPS.replace('"version": "1"', '"version": "\'$EDDY_DEVICE\'"'), encoding="utf-8")
        result = self.measure("cuda_op_add_1e4")["cuda_op_add_1e4"]
        self.assertEqual((result.ours.version, result.ours.figures.best), ("cuda", 1))

    def test_without_a_gpu_its_rows_are_a_line(self):
        self.assertIn("cuda_measure", self.bench.peers.gpu_missing())
        options = self.bench.options
        options.only, options.list, options.json = ["cuda_gemm*", "small_tree"], False, None
        said = io.StringIO()
        with unittest.mock.patch.object(run, "arguments", lambda: options), contextlib.redirect_stdout(said):
            self.assertEqual(run.main(), 0)
        lines = said.getvalue().splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("skipped: 15 rows on a GPU, for ")]), 1)
        self.assertFalse([line for line in lines if "cuda_gemm" in line])
        self.assertTrue([line for line in lines if line.startswith("small_tree")])

    def test_a_program_without_the_row_is_a_line(self):
        result = self.measure("small_mixed")["small_mixed"]
        self.assertEqual(result.ours.missing, "sleeper: no such row: small_mixed")
        self.assertIsNone(result.is_met())


unittest.main()
