#!/usr/bin/env python3
"""The list of rows: names, batches, goals and peers fit together. bench/ stands in PYTHONPATH."""

import pathlib
import re
import unittest

import peers
import rows
import run

MESON = pathlib.Path(rows.HERE) / "meson.build"
ROWS = {row.name: row for row in rows.all_rows()}


class Rows(unittest.TestCase):
    def test_names_are_given_once(self):
        self.assertEqual(len(ROWS), len(rows.all_rows()))

    def test_a_batch_stands_together_and_is_run_in_one_way(self):
        seen = set()
        for batch in run.batches(rows.all_rows()):
            self.assertNotIn(batch[0].batch or batch[0].name, seen)
            seen.add(batch[0].batch or batch[0].name)
            ways = {(row.program, row.peers, row.threads, row.is_pinned, row.kind) for row in batch}
            self.assertEqual(len(ways), 1, batch[0].batch)

    def test_a_goal_refers_to_peers_of_its_row(self):
        for row in ROWS.values():
            if row.goal and row.goal.of not in ("", "*"):
                self.assertTrue(any(peer.name.startswith(row.goal.of) for peer in row.peers), row.name)

    def test_every_peer_has_a_builder(self):
        for row in ROWS.values():
            for peer in row.peers:
                if not peer.program.startswith((*peers.MODES, *peers.BUILDS)):
                    self.assertTrue(hasattr(peers.Peers, "_build_" + peer.program), peer.program)


class Installed(unittest.TestCase):
    """What `eddy bench` measures."""

    def test_the_usual_rows_come_first(self):
        built = re.findall(r"'(\w+)'", re.search(r"public_programs = (.*?)if has_tool", MESON.read_text(encoding="utf-8"), re.S)[1])
        chosen = list(rows.installed_rows(built))
        self.assertEqual([row["name"] for row in chosen if row["is_usual"]], list(rows.USUAL))
        self.assertEqual([row["name"] for row in chosen[:len(rows.USUAL)]], list(rows.USUAL))
        self.assertLessEqual({row["program"] for row in chosen}, set(built))


class Small(unittest.TestCase):
    """The programs of small ops."""

    def test_goals_are_against_one_thread_mode(self):
        for row in ROWS.values():
            if row.name.startswith("small_"):
                self.assertEqual(row.goal.of, "Eddy, one thread", row.name)

    def test_each_is_measured_beside_libtorch_with_one_thread_and_two(self):
        for name in rows.SMALL:
            for suffix in ("", "_cpu", "_memory"):
                row = ROWS[f"small_{name}{suffix}"]
                self.assertEqual((row.threads, row.is_pinned), (2, False))
                for program in ("libtorch_small", "given_libtorch_small"):
                    self.assertEqual([peer.threads_in(row) for peer in row.peers if peer.program == program], [1, 2])

    def test_each_is_measured_on_one_cpu_in_both_modes(self):
        for row in [ROWS[f"small_{name}_pinned"] for name in rows.SMALL]:
            self.assertEqual((row.threads, row.is_pinned, row.goal.at_most), (1, True, 1.02))
            self.assertEqual([peer.program for peer in row.peers], ["one_thread/small"])
        self.assertEqual(ROWS["small_gru_b64_pinned_memory"].unit, "MiB")

    def test_ours_and_libtorchs_know_every_program(self):
        for source in ("ours/small_programs.c", "peers/torch_small.cpp"):
            formats = re.findall(r'\{"(small_\w+(?:%lld)?)",', (pathlib.Path(rows.HERE) / source).read_text())
            patterns = [re.compile(text.replace("%lld", r"\d+")) for text in formats]
            for name in rows.SMALL:
                self.assertEqual(sum(bool(pattern.fullmatch("small_" + name)) for pattern in patterns), 1, (source, name))


class Replayed(unittest.TestCase):
    """Recorded programs."""

    def test_programs_of_small_ops_are_measured_beside_their_calls(self):
        for name in rows.REPLAYED_SMALL:
            row = ROWS["replay_" + name]
            self.assertEqual([(peer.program, peer.row) for peer in row.peers], [("one_thread/small", "small_" + name)])
            self.assertEqual((row.threads, row.is_pinned, row.goal.of), (1, True, "Eddy, calls"))

    def test_a_chain_is_measured_beside_itself_without_passes(self):
        for row in [row for row in ROWS.values() if row.program == "fused"]:
            unfused = row.peers[0]
            self.assertEqual((unfused.name, unfused.program, unfused.row), (row.goal.of, "no_passes/fused", ""))

    def test_a_program_in_a_mode_has_its_variables(self):
        at = peers.Peers.__new__(peers.Peers)
        for program, variables in (("ours/small", {}), ("one_thread/small", {"EDDY_ONE_THREAD": "1"}),
                                   ("no_passes/steps", {"EDDY_PASSES": "none"})):
            self.assertEqual(at.environment(program, 1), variables)
        self.assertEqual(ROWS["replay_small_sum"].ours().program, "no_passes/steps")
        self.assertEqual(ROWS["replay_tree"].ours().program, "no_passes/small")
        self.assertEqual(ROWS["replay_gru_b1"].ours().program, "ours/small")


class Kernels(unittest.TestCase):
    def test_the_programs_know_every_kernel(self):
        source = (pathlib.Path(rows.HERE) / "ours/small_calls.c").read_text()
        listed = source.split("small_calls[] = {")[1].split("\n};")[0]
        self.assertEqual(re.findall(r'\{"(\w+)",', listed), list(rows.KERNELS))

    def test_the_program_knows_every_call(self):
        source = (pathlib.Path(rows.HERE) / "ours/issued.c").read_text()
        self.assertEqual(re.findall(r'\{"count_call_(\w+)",', source), list(rows.ISSUED))


unittest.main()
