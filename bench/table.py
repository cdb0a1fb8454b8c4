"""Converts samples to figures, and figures to text, Markdown and JSON."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Figures of one program in one row. spread: the width of the middle 80 % of the samples over the median. A result read from a file
    has no spread, and may have no median."""
    best: float
    median: float | None = None
    spread: float = 0.0
    sample_count: int = 0


def figures_of(samples):
    ordered = sorted(samples)
    median = statistics.median(ordered)
    low, high = ordered[len(ordered) // 10], ordered[len(ordered) - 1 - len(ordered) // 10]
    return Figures(ordered[0], median, (high - low) / median if median else 0.0, len(ordered))


class Entry:
    """A program measured for a row: its figures, or the reason why there are none."""

    def __init__(self, name):
        self.name = name
        self.version = ""
        self.path = ""
        self.figures = None
        self.missing = ""
        self.bytes = 0.0  # that a call must read and write; 0 if not counted
        self.estimated_ns = 0.0  # cost rows: the kernels' estimate
        self.foreign = 0.0  # largest share of other processes' CPU time in a run that was used


class Result:
    """A measured row: the entries of Eddy and its peers, and remarks for the reader."""

    def __init__(self, row, ours, peers, remarks, is_disturbed):
        self.row, self.ours, self.peers, self.remarks = row, ours, peers, remarks
        self.is_disturbed = is_disturbed  # whether other processes used the machine in one of the runs

    def reference(self):
        """The best sample of the peers that the goal names; None if it names none, or none was measured."""
        of = self.row.goal.of if self.row.goal else ""
        bests = [peer.figures.best for peer in self.peers if of and peer.figures and (of == "*" or peer.name.startswith(of))]
        return min(bests) if bests else None

    def goal_limit(self):
        """The goal in the row's unit; None if there is none, or the peers that it names were not measured."""
        goal, reference = self.row.goal, self.reference()
        if not goal:
            return None
        if not goal.of:
            return goal.at_most
        return goal.at_most * reference + goal.more if reference is not None else None

    def is_met(self):
        """Compares the best sample with the goal, or the median if the goal has a lower bound. None if unknown."""
        limit = self.goal_limit()
        if limit is None or not self.ours.figures:
            return None
        if self.row.goal.at_least:
            return self.row.goal.at_least <= self.ours.figures.median <= limit
        return self.ours.figures.best <= limit

    def verdict(self):
        """The goal and whether it is met; "" if the row has none. A question mark: the run was disturbed."""
        if not self.row.goal:
            return ""
        verdict = {True: "met", False: "missed", None: "?"}[self.is_met()]
        return f"{self.row.goal.text(self.row.unit)} {verdict}" + ("?" if self.is_disturbed and verdict != "?" else "")


_NAME = 37  # width of the longest name, plus two
HEAD = f"{'row':{_NAME}}{'unit':8}{'who':28}{'best':>10}{'median':>10}{'spread':>8}  {'ours/peer':14}{'goal':34}path"


def number(value):
    if value == 0:
        return "0"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if theirs else "-"


def bandwidth(entry, unit):
    """GB/s of the best sample."""
    seconds = entry.figures.best * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]
    return entry.bytes / seconds / 1e9


def lines(result):
    """The lines of a row in the table."""
    row = result.row
    for entry in (result.ours, *result.peers):
        is_ours = entry is result.ours
        head = f"{row.name:{_NAME}}{row.unit if len(row.unit) < 8 else 'instr.':8}" if is_ours else " " * (_NAME + 8)
        if not entry.figures:
            yield f"{head}{entry.name:28}not measured: {entry.missing}"
            continue
        figures = entry.figures
        ratios = ""
        if not is_ours and result.ours.figures:
            mine = result.ours.figures
            ratios = f"{ratio(mine.best, figures.best)}, {ratio(mine.median, figures.median)}"
        goal = result.verdict() if is_ours else ""
        path = f"{entry.path} {bandwidth(entry, row.unit):.1f} GB/s".strip() if entry.bytes else entry.path
        if entry.estimated_ns:
            path = f"estimate {number(entry.estimated_ns)} ns"
        yield (f"{head}{entry.name:28}{number(figures.best):>10}{number(figures.median):>10}"
               f"{figures.spread:>7.0%}   {ratios:14}{goal:34}{path}").rstrip()
    for remark in result.remarks:
        yield f"{'':{_NAME + 8}}! {remark}"


def markdown(head, rows):
    """A Markdown table from lists of cells."""
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def _rounded(value):
    return float(f"{value:.4g}")


def _entry_json(entry):
    if not entry.figures:
        return {"missing": entry.missing}
    values = {"best": entry.figures.best, "median": entry.figures.median, "bytes": entry.bytes or None,
              "estimated_ns": entry.estimated_ns or None}
    kept = {name: _rounded(value) for name, value in values.items() if value is not None}
    return {**kept, "path": entry.path} if entry.path else kept


def as_json(result):
    """The recorded form of a row; bench/README.md describes the format."""
    values = {"name": result.row.name, "ours": _entry_json(result.ours)}
    if result.peers:
        values["peers"] = {peer.name: _entry_json(peer) for peer in result.peers}
    if result.is_disturbed:
        values["disturbed"] = True
    if result.remarks:
        values["remarks"] = result.remarks
    return values


def _entry_of(name, values):
    entry = Entry(name)
    entry.missing = values.get("missing", "")
    if not entry.missing:
        entry.figures = Figures(values["best"], values.get("median"))
    entry.bytes, entry.estimated_ns = values.get("bytes", 0), values.get("estimated_ns", 0)
    entry.path = values.get("path", "")
    return entry


def of_json(row, values):
    """The result that as_json recorded."""
    peers = [_entry_of(name, entry) for name, entry in values.get("peers", {}).items()]
    return Result(row, _entry_of("Eddy", values["ours"]), peers, values.get("remarks", []), values.get("disturbed", False))
