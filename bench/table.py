"""Samples into figures, figures into text and JSON."""

import statistics


class Figures:
    """Best, median and spread (the middle 80 % of the samples over the median) of one who was measured."""

    def __init__(self, samples):
        ordered = sorted(samples)
        self.samples = samples
        self.best = ordered[0]
        self.median = statistics.median(ordered)
        low, high = ordered[len(ordered) // 10], ordered[len(ordered) - 1 - len(ordered) // 10]
        self.spread = (high - low) / self.median if self.median else 0.0


class Entry:
    """One who was measured for a row: figures, or the reason why there are none."""

    def __init__(self, name):
        self.name = name
        self.version = ""
        self.path = ""
        self.figures = None
        self.missing = ""
        self.bytes = 0.0  # that a call must move; 0 where nobody counts them
        self.estimated_ns = 0.0  # of cost rows: what the kernels say that they take
        self.foreign = 0.0  # worst share of foreign CPU time in a run that counts


class Result:
    """A measured row: ours, its peers, and what a reader should know."""

    def __init__(self, row, ours, peers, remarks, is_disturbed):
        self.row, self.ours, self.peers, self.remarks = row, ours, peers, remarks
        self.is_disturbed = is_disturbed  # whether somebody's figures may be others' doing

    def goal_limit(self):
        """The goal in the row's unit; None where there is none, or what it refers to was not measured."""
        goal = self.row.goal
        if not goal:
            return None
        if not goal.of:
            return goal.at_most
        bests = [peer.figures.best for peer in self.peers
                 if peer.figures and (goal.of == "*" or peer.name.startswith(goal.of))]
        return goal.at_most * min(bests) if bests else None

    def is_met(self):
        """By the best sample, or by their median where too little is a miss as well; None where it cannot be said."""
        limit = self.goal_limit()
        if limit is None or not self.ours.figures:
            return None
        if self.row.goal.at_least:
            return self.row.goal.at_least <= self.ours.figures.median <= limit
        return self.ours.figures.best <= limit


_NAME = 34  # columns of the longest name and one more
HEAD = f"{'row':{_NAME}}{'unit':8}{'who':28}{'best':>10}{'median':>10}{'spread':>8}  {'ours/peer':14}{'goal':34}path"


def _number(value):
    if value == 0:
        return "0"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if theirs else "-"


def bandwidth(entry, unit):
    """GB/s of the best sample."""
    seconds = entry.figures.best * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]
    return entry.bytes / seconds / 1e9


def lines(result):
    """The row's lines of the table."""
    row, verdict = result.row, {True: "met", False: "missed", None: "?"}[result.is_met()]
    if result.is_disturbed and verdict != "?":
        verdict += "?"
    for entry in (result.ours, *result.peers):
        is_ours = entry is result.ours
        head = f"{row.name:{_NAME}}{row.unit if len(row.unit) < 8 else 'instr.':8}" if is_ours else " " * (_NAME + 8)
        if not entry.figures:
            yield f"{head}{entry.name:28}not measured: {entry.missing}"
            continue
        figures = entry.figures
        ratio = ""
        if not is_ours and result.ours.figures:
            mine = result.ours.figures
            ratio = f"{_ratio(mine.best, figures.best)}, {_ratio(mine.median, figures.median)}"
        goal = f"{row.goal.text(row.unit)} {verdict}" if is_ours and row.goal else ""
        path = f"{entry.path} {bandwidth(entry, row.unit):.1f} GB/s".strip() if entry.bytes else entry.path
        if entry.estimated_ns:
            path = f"estimate {_number(entry.estimated_ns)} ns"
        yield (f"{head}{entry.name:28}{_number(figures.best):>10}{_number(figures.median):>10}"
               f"{figures.spread:>7.0%}   {ratio:14}{goal:34}{path}").rstrip()
    for remark in result.remarks:
        yield f"{'':{_NAME + 8}}! {remark}"


def _entry_json(entry):
    if not entry.figures:
        return {"missing": entry.missing}
    figures = entry.figures
    values = {"best": figures.best, "median": figures.median, "spread": round(figures.spread, 4),
              "version": entry.version}
    if entry.bytes:
        values["bytes"] = entry.bytes
    if entry.estimated_ns:
        values["estimated_ns"] = entry.estimated_ns
    if entry.path:
        values["path"] = entry.path
    return values


def _goal_json(result):
    goal = result.row.goal
    values = {"at_most": goal.at_most, "of": goal.of or None, "limit": result.goal_limit(), "met": result.is_met()}
    return {**values, "at_least": goal.at_least} if goal.at_least else values


def as_json(result):
    """The row for --json."""
    return {
        "name": result.row.name,
        "unit": result.row.unit,
        "ours": _entry_json(result.ours),
        "peers": {peer.name: _entry_json(peer) for peer in result.peers},
        "goal": _goal_json(result) if result.row.goal else None,
        "samples": {entry.name: entry.figures.samples
                    for entry in (result.ours, *result.peers) if entry.figures},
        "disturbed": result.is_disturbed,
        "remarks": result.remarks,
    }
