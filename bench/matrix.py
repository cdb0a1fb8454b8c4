"""The op rows as one table: an op a line, the ratio to libtorch and the bandwidth for each size."""

import table


def text(results):
    """Markdown, or nothing where no op row was measured."""
    rows = [result for result in results if result.row.batch and result.row.name.startswith("op_")]
    parts = []
    for threads in sorted({result.row.threads for result in rows}):
        chosen = {result.row.name: result for result in rows if result.row.threads == threads}
        parts.append(_one(threads, chosen))
    return "".join(parts)


def _one(threads, chosen):
    sizes = list(dict.fromkeys(result.row.batch.split("_")[0] for result in chosen.values()))
    ops = list(dict.fromkeys(_op(name) for name in chosen))
    head = "".join(f" {size} | GB/s |" for size in sizes)
    lines = [f"\nThreads: {threads}. Time of Eddy over libtorch's (the better one's), bests of the samples; GB/s, and the share of a "
             "plain copy's.\n",
             f"| op |{head}", "|---|" + "---|---|" * len(sizes)]
    for op in ops:
        cells = [_cells(chosen.get(f"op_{op}_{size}_{threads}t")) for size in sizes]
        lines.append(f"| {op} |" + "".join(cells))
    return "\n".join(lines) + "\n"


def _op(name):
    return name[3:].rsplit("_", 2)[0]


def _cells(result):
    if not result or not result.ours.figures:
        return " - | - |"
    bests = {peer.name: peer.figures.best for peer in result.peers if peer.figures}
    libtorch = [best for name, best in bests.items() if name.startswith("libtorch")]
    ratio = f"{result.ours.figures.best / min(libtorch):.2f}" if libtorch else "-"
    share = f" ({bests['copy'] / result.ours.figures.best:.0%})" if "copy" in bests else ""
    return f" {ratio} | {table.bandwidth(result.ours, result.row.unit):.1f}{share} |"
