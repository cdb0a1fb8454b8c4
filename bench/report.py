#!/usr/bin/env python3
"""docs/figures.md: the tables of the runs that tools/bench.sh --json has recorded in bench/results/.

report.py writes the page; report.py --check fails if the page is outdated."""

import json
import pathlib
import sys

import costs
import matrix
import rows
import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
PAGE = ROOT / "docs/figures.md"

HEAD = """# Figures

Made of the files in `bench/results/` by `python3 bench/report.py`; not to be edited. [performance.md](performance.md) says what the goals are
and what limits the rows that miss them, [bench/README.md](../bench/README.md) what each row measures and how.

Less is better in every unit. A figure is the best of the samples, *median* the median of Eddy's, *ratio* Eddy over the best of the peers that the
goal names; *path* says on which threads Eddy's instructions ran. The notes below a table name the rows during which other processes used more than
3 % of the machine; their verdicts have a question mark. *libtorch* is Debian's, *libtorch, given* the one that the command names.

## Runs
"""

# Title of a group, and the prefixes of its rows' names; each row belongs to one group.
GROUPS = [
    ("Issue and latency", ("issue_", "end_to_end_", "caller_run_", "sparse_", "instructions_add16", "empty_", "fake_", "observe_", "heap_per_op", "relu_")),
    ("Training steps and memory", ("mlp_", "cnn_", "transformer_", "inference_")),
    ("Recorded programs", ("replay_",)),
    ("Programs of small ops", ("small_",)),
    ("Matrix products", ("gemm_",)),
    ("Pools", ("pool_",)),
    ("Whole calls, and kernels alone", ("instructions_call_", "kernel_small_")),
    ("Every op beside libtorch", ("op_",)),
    ("Estimates of kernels over what they take", ("cost_",)),
    ("On a GPU", ("cuda_",)),
]
# Groups that have their own kind of table.
TABLES = {"op_": matrix.text, "cost_": costs.text}


class Recorded:
    """A run of the bench, read from its file. about: date, command, machine, versions."""

    def __init__(self, path):
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {row.name: row for row in rows.all_rows()}
        self.name = path.stem
        self.about = {name: value for name, value in values.items() if name != "rows"}
        unknown = [row["name"] for row in values["rows"] if row["name"] not in known]
        if unknown:
            sys.exit(f"{path}: bench/rows.py has no row {unknown[0]}")
        self.results = [table.of_json(known[row["name"]], row) for row in values["rows"]]

    def results_of(self, beginnings):
        return [result for result in self.results if result.row.name.startswith(beginnings)]


def record(path, about, results):
    """Writes a run, one line per row, so that diffs are readable."""
    lines = ",\n".join(json.dumps(table.as_json(result), separators=(",", ":")) for result in results)
    head = json.dumps(about, indent=1)[:-2]
    pathlib.Path(path).write_text(f'{head},\n "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def recorded():
    """The runs in bench/results/, the newest first."""
    runs = [Recorded(path) for path in sorted(RESULTS.glob("*.json"))]
    return sorted(runs, key=lambda run: run.about["date"], reverse=True)


def _about(run):
    """The paragraph that describes a run."""
    here = run.about["machine"]
    distances = [str(here[key]) for key in ("core_distance_ns_before", "core_distance_ns_after") if here.get(key)]
    apart = f"; its cores are {' to '.join(dict.fromkeys(distances))} ns apart (round trip of a cache line)" if distances else ""
    yield f"\n**{run.name}**, {run.about['date']}, on {here['cpu']}, {here['cpus']} CPUs, {here['system']}{apart}:\n"
    yield f"```\n{run.about['command']}\n```\n"
    yield from (f"- {name}: {version}" for name, version in run.about["versions"].items())
    if "note" in run.about:
        yield f"- {run.about['note']}"


def _best(entry):
    return table.number(entry.figures.best) if entry.figures else "-"


def _line(result, names):
    """The cells of a row; names: the peers that have a column."""
    peers, figures, reference = {peer.name: peer for peer in result.peers}, result.ours.figures, result.reference()
    return [f"`{result.row.name}`", result.row.unit, _best(result.ours),
            table.number(figures.median) if figures and figures.median is not None else "-",
            *(_best(peers[name]) if name in peers else "" for name in names),
            table.ratio(figures.best, reference) if figures and reference else "",
            result.verdict(), result.ours.path]


def _rows_text(results):
    """The table of a group that is not in TABLES."""
    names = list(dict.fromkeys(peer.name for result in results for peer in result.peers))
    lines = table.markdown(["row", "unit", "Eddy", "median", *names, "ratio", "goal", "path"],
                           [_line(result, names) for result in results])
    return "\n" + "\n".join(lines) + "\n"


def _notes(results):
    """Which peers were not measured, and which runs were disturbed: each note once, with its rows."""
    rows_of = {}
    for result in results:
        missing = [f"{entry.name} was not measured: {entry.missing}" for entry in (result.ours, *result.peers) if entry.missing]
        for note in (*missing, *result.remarks):
            rows_of.setdefault(note, []).append(result.row.name)
    notes = [f"- `{names[0]}`{f' and {len(names) - 1} more' if names[1:] else ''}: {note}" for note, names in rows_of.items()]
    return "\n".join(["", *notes, ""]) if notes else ""


def page(runs):
    parts = [HEAD, *("\n".join(_about(run)) + "\n" for run in runs)]
    for title, beginnings in GROUPS:
        text = TABLES.get(beginnings[0], _rows_text)
        for run in runs:
            results = run.results_of(beginnings)
            if results:
                parts.append(f"\n## {title}: {run.name}\n{text(results)}{_notes(results)}")
    return "".join(parts)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    text = page(recorded())
    if not sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/figures.md is not what python3 bench/report.py makes of bench/results")
    return 1


if __name__ == "__main__":
    sys.exit(main())
