"""The cost rows as one table: one line per op, estimate over measured time for each size; then the rows that miss their goal."""

import table

HEAD = "\nEstimate over measured time, one thread; ! misses its goal.\n"


def text(results):
    """Markdown, or "" if no cost row was measured."""
    measured = [result for result in results if result.row.program == "costs"]
    if not measured:
        return ""
    sizes = list(dict.fromkeys(_size(result) for result in measured))
    by_op = {}
    for result in measured:
        by_op.setdefault(_op(result), {})[_size(result)] = result
    lines = [[op, *(_cell(row.get(size)) for size in sizes)] for op, row in by_op.items()]
    return "\n".join([HEAD, *table.markdown(["op", *sizes], lines), "", *_summary(measured)]) + "\n"


def _op(result):
    return result.row.name.removeprefix("cost_").rsplit("_", 1)[0]


def _size(result):
    return result.row.name.rsplit("_", 1)[1]


def _cell(result):
    if not result or not result.ours.figures:
        return "-"
    return f"{result.ours.figures.median:.2f}" + (" !" if result.is_met() is False else "")


def _summary(measured):
    with_goal = [result for result in measured if result.is_met() is not None]
    missed = [result for result in with_goal if not result.is_met()]
    yield f"{len(missed)} of {len(with_goal)} rows with a goal miss it" + (":\n" if missed else ".")
    for result in sorted(missed, key=lambda result: result.ours.figures.median):
        yield (f"- {result.row.name:40}{result.ours.figures.median:6.2f} x, "
               f"estimate {result.ours.estimated_ns / 1e3:.4g} us")
