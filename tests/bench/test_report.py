#!/usr/bin/env python3
"""The page of figures: what a run records is enough to make its tables. bench/ stands in PYTHONPATH."""

import pathlib
import tempfile
import unittest

import report
import rows
import table

ROWS = {row.name: row for row in rows.all_rows()}
ABOUT = {"date": "2026-01-02", "command": "tools/bench.sh --rounds 1", "versions": {"libtorch, rows of 1 thread": "libtorch 9.1"},
         "machine": {"cpu": "some CPU", "cpus": 2, "system": "some system", "core_distance_ns_before": 100}}


def entry(name, samples=(), missing=""):
    made = table.Entry(name)
    made.figures = table.figures_of(samples) if samples else None
    made.missing = missing
    return made


class Report(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.path = pathlib.Path(holder.name) / "some.json"

    def recorded(self, *results):
        report.record(self.path, ABOUT, results)
        return report.Recorded(self.path)

    def test_each_row_belongs_to_one_group(self):
        for name in ROWS:
            groups = [title for title, beginnings in report.GROUPS if name.startswith(beginnings)]
            self.assertEqual(len(groups), 1, (name, groups))

    def test_what_is_recorded_gives_the_same_verdict(self):
        for name, ours, is_met in (("caller_run_add16", [59, 70], True), ("caller_run_add16", [61, 70], False),
                                   ("cost_add_1e4", [0.1, 1, 1.5], True), ("mlp_b64_1t", [1.06], False)):
            run = self.recorded(table.Result(ROWS[name], entry("Eddy", ours), [entry("by hand", [1.0, 3.0])], [], False))
            self.assertIs(run.results[0].is_met(), is_met, (name, ours))

    def test_a_line_has_ours_the_peers_and_the_goal(self):
        run = self.recorded(table.Result(ROWS["mlp_b64_1t"], entry("Eddy", [2.0, 3.0, 4.0]),
                                         [entry("by hand", [1.0]), entry("libtorch", missing="no libtorch")], [], True))
        text = report.page([run])
        self.assertIn("| row | unit | Eddy | median | by hand | libtorch | ratio | goal | path |", text)
        self.assertIn("| `mlp_b64_1t` | ms | 2 | 3 | 1 | - | 2.00 | <= 1.05 x by hand missed? |  |", text)
        self.assertIn("- `mlp_b64_1t`: libtorch was not measured: no libtorch\n", text)
        for part in ("some CPU", "2026-01-02", "tools/bench.sh --rounds 1", "100 ns apart", "libtorch 9.1"):
            self.assertIn(part, text)

    def test_a_figure_of_zero_is_a_figure(self):
        text = report.page([self.recorded(table.Result(ROWS["heap_per_op"], entry("Eddy", [0, 0]), [entry("libtorch", [3])], [], False))])
        self.assertIn("| `heap_per_op` | blocks | 0 | 0 | 3 |", text)

    def test_ops_and_estimates_have_tables_of_their_own(self):
        ops = [table.Result(ROWS[f"op_{name}_1e4_1t"], entry("Eddy", [ours]),
                            [entry("libtorch", [2.0]), entry("libtorch, given", [1.0]), entry("copy", [0.25])], ["noisy"], False)
               for name, ours in (("exp", 0.9), ("log", 1.5))]
        ops[0].ours.bytes = 4000
        text = report.page([self.recorded(*ops, table.Result(ROWS["cost_exp_1e4"], entry("Eddy", [3.0]), [], [], False))])
        self.assertIn("| exp | 0.90 | 4.4 (28%) |", text)
        self.assertIn("| log | 1.50 | 0.0 (17%) |", text)
        self.assertIn("1e4: 1 of 2 ops take no longer than libtorch.", text)
        self.assertIn("- `op_exp_1e4_1t` and 1 more: noisy", text)
        self.assertIn("| exp | 3.00 ! |", text)

    def test_a_row_that_is_gone_is_refused(self):
        self.recorded(table.Result(ROWS["mlp_b64_1t"], entry("Eddy", [1.0]), [], [], False))
        self.path.write_text(self.path.read_text().replace("mlp_b64_1t", "mlp_none"))
        with self.assertRaisesRegex(SystemExit, "no row mlp_none"):
            report.Recorded(self.path)


unittest.main()
