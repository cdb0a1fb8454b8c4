#!/usr/bin/env python3
"""Measures Eddy and its peers in one run and prints one table. tools/bench.sh builds what it needs and calls it."""

import argparse
import datetime
import itertools
import os
import sys

import costs
import machine
import matrix
import peers
import process
import report
import rows
import table

# Number of operations in the two runs under callgrind; their difference is counted.
COUNT_FEW, COUNT_MANY = 200, 2200


def arguments():
    parser = argparse.ArgumentParser(prog="bench.sh", description=__doc__)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="this row (may be given again; NAME* takes all that begin so)")
    parser.add_argument("--json", metavar="FILE", help="also record the rows here")
    parser.add_argument("--list", action="store_true", help="print the rows' names and end")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program, taken in turns (3)")
    parser.add_argument("--samples", type=int, default=11, help="samples a run (11)")
    parser.add_argument("--retries", type=int, default=2, help="further tries of a run that others disturbed (2)")
    parser.add_argument("--libtorch", metavar="DIR", help="folder of a libtorch besides Debian's")
    parser.add_argument("--blas", metavar="DIR", help="folder of a threaded libopenblas.so.0")
    parser.add_argument("--python", metavar="PROGRAM", default="python3", help="an interpreter with the packages torch, jax, onnxruntime, onnx, paddle")
    return parser.parse_args()


class Bench:
    """Measures rows: finds each program, runs Eddy's and the peers' in turns, collects the samples."""

    def __init__(self, options):
        self.options = options
        self.peers = peers.Peers(options.build, options.libtorch, options.blas, options.python)

    def measure(self, batch):
        """The results of rows that are measured in the same runs, in the order of the rows."""
        first = batch[0]
        peers_of = {row.name: (row.ours(), *filter(self._is_wanted, row.peers))
                    for row in batch}
        entries = {row.name: [table.Entry(peer.name) for peer in peers_of[row.name]] for row in batch}
        samples = {row.name: {peer.name: [] for peer in peers_of[row.name]} for row in batch}
        for _ in range(1 if first.kind in ("instructions", "exact") else self.options.rounds):
            for at, peer in enumerate(peers_of[first.name]):
                measured = {row.asked(): (entries[row.name][at], samples[row.name][peer.name]) for row in batch if not entries[row.name][at].missing}
                if measured:
                    self._measure_once(first, peer, measured)
        return [self._result(row, entries[row.name], peers_of[row.name], samples[row.name]) for row in batch]

    def _is_wanted(self, peer):
        return self.options.libtorch or not peer.program.startswith("given_")

    def _result(self, row, entries, peers_of, samples):
        remarks = []
        for entry, peer in zip(entries, peers_of):
            if samples[entry.name]:
                entry.figures = table.figures_of(samples[entry.name])
            elif not entry.missing:
                entry.missing = "it has no such row"
            remark = self.peers.remark(peer.program, row, peer.threads_in(row))
            if remark and entry.figures:
                remarks.append(remark)
        disturbed = [f"{entry.name} {entry.foreign:.0%}" for entry in entries if machine.is_disturbed(entry.foreign)]
        if disturbed:
            remarks.append("disturbed, others' share of the machine: " + ", ".join(disturbed))
        return table.Result(row, entries[0], entries[1:], remarks, bool(disturbed))

    def _measure_once(self, row, peer, measured):
        """One run of a program. What it prints is added to `measured`: what the programs call a row -> (entry, samples). A program that ends in the
        middle of a batch is started again behind the row that ended it."""
        left = list(measured)
        while left:
            try:
                self._add(row, peer, self._run(row, peer, left), measured)
                return
            except peers.Missing as error:
                for name in left:
                    measured[name][0].missing = str(error)
                return
            except process.Failed as error:
                printed = [self._name(row, peer, line) for line in error.rows]
                ended = min(left.index(printed[-1]) + 1 if printed else 0, len(left) - 1)
                self._add(row, peer, process.Run([line for line, name in zip(error.rows, printed) if name != left[ended]], 0), measured)
                measured[left[ended]][0].missing = str(error)
                left = left[ended + 1:]

    def _run(self, row, peer, names):
        """What the program prints of rows that it is asked for by these names."""
        program = self._program(peer.program)
        threads = peer.threads_in(row)
        extra = self.peers.environment(peer.program, threads)
        if row.kind == "instructions":
            counted = self._instructions(program, peer.row or row.asked(), extra)
            path = {"path": "caller"} if peer.name == "Eddy" else {}
            return process.Run([{"row": row.asked(), "version": "", "samples": [counted], **path}], 0)
        if row.kind == "heap":
            extra = {**extra, "LD_PRELOAD": self.peers.heap_counter()}
        command = [program, peer.row or ",".join(names), str(self.options.samples)]
        if row.kind == "exact":
            return process.Run(process.run(command, threads, row.is_pinned, extra).rows, 0)
        return self._calm_run(command, threads, row.is_pinned, extra)

    @staticmethod
    def _name(row, peer, printed):
        """The row that a line is of: where a peer is asked for another one, this one."""
        return row.asked() if peer.row else printed["row"]

    def _add(self, row, peer, run, measured):
        for printed in run.rows:
            entry, samples = measured[self._name(row, peer, printed)]
            entry.version = printed["version"]
            if "error" in printed:
                entry.missing = printed["error"]
                continue
            samples.extend(printed["samples"])
            entry.foreign = max(entry.foreign, run.foreign)
            entry.path = printed.get("path", "")
            entry.bytes = printed.get("bytes", 0)
            entry.estimated_ns = printed.get("estimated_ns", 0)

    def _calm_run(self, command, threads, is_pinned, extra):
        """The least disturbed of several runs."""
        best = None
        for _ in range(1 + self.options.retries):
            run = process.run(command, threads, is_pinned, extra)
            if best is None or run.foreign < best.foreign:
                best = run
            if not machine.is_disturbed(run.foreign):
                break
        return best

    def _instructions(self, program, name, extra):
        counted = "count_" + name.removeprefix("instructions_")
        few = process.instructions([program, counted, str(COUNT_FEW)], extra)
        many = process.instructions([program, counted, str(COUNT_MANY)], extra)
        return (many - few) / (COUNT_MANY - COUNT_FEW)

    def _program(self, name):
        if not name.startswith(tuple(peers.MODES)):
            return self.peers.program(name)
        return self.peers.program_of_ours(name)

    def core_distance(self):
        try:
            return machine.core_distance_ns(self.peers.probe())
        except peers.Missing:
            return None


def selected(names):
    """The rows with the given names; ends the program on an unknown name."""
    every = rows.all_rows()
    if not names:
        return every
    for name in names:
        if not any(_matches(row, name) for row in every):
            sys.exit(f"bench: no such row: {name} (--list prints the names)")
    return [row for row in every if any(_matches(row, name) for name in names)]


def _matches(row, name):
    return row.name == name or (name.endswith("*") and row.name.startswith(name[:-1]))


def batches(chosen):
    """Lists of rows: those of one batch together, each other row alone, in order."""
    for batch, members in itertools.groupby(chosen, lambda row: row.batch):
        if batch:
            yield list(members)
        else:
            yield from ([row] for row in members)


def versions_of(results):
    """The version that each program prints, by peer and number of threads."""
    versions = {}
    for result in results:
        for entry in (result.ours, *result.peers):
            if entry.version and not entry.name.startswith("Eddy,"):
                threads = f"{result.row.threads} thread{'s' if result.row.threads > 1 else ''}"
                versions.setdefault(f"{entry.name}, rows of {threads}", entry.version)
    return dict(sorted(versions.items()))


def command(options):
    """The command line, without the folders of this machine."""
    words = ["tools/bench.sh"]
    words += [f"--{name} DIR" for name in ("libtorch", "blas") if getattr(options, name)]
    words += ["--python PROGRAM"] if options.python != "python3" else []
    words += [f"--only '{name}'" if "*" in name else f"--only {name}" for name in options.only or []]
    return " ".join([*words, f"--rounds {options.rounds} --samples {options.samples} --retries {options.retries}"])


def main():
    options = arguments()
    chosen = selected(options.only)
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    bench = Bench(options)
    here = machine.describe()
    before = bench.core_distance()
    print(f"{here['cpu']}, {here['cpus']} CPUs, {here['system']}; two cores {before or '?'} ns apart (round trip)\n")
    on_gpu = [row for row in chosen if row.needs_gpu()]
    missing = bench.peers.gpu_missing() if on_gpu else ""
    if missing:
        chosen = [row for row in chosen if not row.needs_gpu()]
        print(f"skipped: {len(on_gpu)} rows on a GPU, for {missing}\n")
    print(table.HEAD, flush=True)
    results = []
    for batch in batches(chosen):
        for result in bench.measure(batch):
            results.append(result)
            print("\n".join(table.lines(result)), flush=True)
    print(matrix.text(results) + costs.text(results), end="")
    after = bench.core_distance()
    print(f"\ntwo cores {after or '?'} ns apart after the run", end="")
    print(" (they moved: compare two-thread rows with care)" if before and after
          and not 0.5 <= after / before <= 2 else "")
    versions = versions_of(results)
    print("\n".join(f"{name}: {version}" for name, version in versions.items()))
    if options.json:
        here.update({"core_distance_ns_before": before, "core_distance_ns_after": after})
        report.record(options.json, {"date": datetime.date.today().isoformat(), "command": command(options), "machine": here,
                                     "versions": versions}, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
