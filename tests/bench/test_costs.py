#!/usr/bin/env python3
"""The table of the cost rows, and what judges them. bench/ stands in PYTHONPATH."""

import unittest

import costs
import rows
import run
import table

ROWS = {row.name: row for row in rows.all_rows()}


def measured(name, ratio, estimated_ns=1000.0):
    ours = table.Entry("Eddy")
    ours.figures = table.figures_of([ratio])
    ours.estimated_ns = estimated_ns
    return table.Result(ROWS[name], ours, [], [], False)


class Costs(unittest.TestCase):
    def test_too_much_and_too_little_both_miss(self):
        for ratio, is_met in ((0.49, False), (0.5, True), (1, True), (2, True), (2.01, False)):
            self.assertIs(measured("cost_add_1e4", ratio).is_met(), is_met, ratio)

    def test_the_median_judges(self):
        result = measured("cost_add_1e4", 1)
        result.ours.figures = table.figures_of([0.3, 2.1, 2.2])
        self.assertIs(result.is_met(), False)

    def test_a_hundred_elements_have_no_goal(self):
        result = measured("cost_add_1e2", 9)
        self.assertIsNone(result.is_met())
        self.assertEqual(result.verdict(), "")
        self.assertNotIn("missed", "".join(table.lines(result)))

    def test_the_row_says_what_was_estimated(self):
        result = measured("cost_add_1e4", 3, 1234.0)
        self.assertIn("0.5 to 2 x missed", "".join(table.lines(result)))
        self.assertIn("estimate 1234 ns", "".join(table.lines(result)))
        self.assertEqual(table.as_json(result)["ours"]["estimated_ns"], 1234.0)

    def test_the_table_has_a_line_an_op_and_ends_with_those_that_are_off(self):
        text = costs.text([measured("cost_sum_rows_1e2", 5), measured("cost_add_1e3", 0.4), measured("cost_add_1e4", 1.25)])
        self.assertIn("| op | 1e2 | 1e3 | 1e4 |", text)
        self.assertIn("| sum_rows | 5.00 | - | - |", text)
        self.assertIn("| add | - | 0.40 ! | 1.25 |", text)
        self.assertIn("1 of 2 rows with a goal miss it:\n\n- cost_add_1e3 ", text)

    def test_other_rows_have_no_such_table(self):
        self.assertEqual(costs.text([]), "")

    def test_what_was_not_measured_is_no_verdict(self):
        result = measured("cost_add_1e4", 1)
        result.ours.figures = None
        self.assertIn("| add | - |", costs.text([result]))
        self.assertIn("0 of 0 rows", costs.text([result]))

    def test_the_program_is_asked_for_a_size_at_once(self):
        batches = list(run.batches(run.selected(["cost_*"])))
        self.assertEqual([len(batch) for batch in batches], [len(rows.op_names())] * len(rows.COST_SIZES))


unittest.main()
