"""The op rows as one table: one line per op, the ratio to libtorch and the bandwidth for each size."""

import table


def text(results):
    """Markdown, or "" if no op row was measured."""
    rows = [result for result in results if result.row.batch and result.row.name.startswith("op_")]
    parts = []
    for threads in sorted({result.row.threads for result in rows}):
        chosen = {result.row.name: result for result in rows if result.row.threads == threads}
        parts.append(_one(threads, chosen))
    return "".join(parts)


def _one(threads, chosen):
    sizes = list(dict.fromkeys(result.row.batch.split("_")[0] for result in chosen.values()))
    ops = list(dict.fromkeys(_op(name) for name in chosen))
    head = ["op", *(cell for size in sizes for cell in (size, "GB/s"))]
    lines = [[op, *(cell for size in sizes for cell in _cells(chosen.get(f"op_{op}_{size}_{threads}t")))] for op in ops]
    return "\n".join([f"\nThreads: {threads}. Time of Eddy over that of libtorch (of the faster one, where there are two), best of the "
                      "samples; GB/s, and their share of a plain copy's.\n",
                      *table.markdown(head, lines), "", *_counts(sizes, chosen.values())])


def _counts(sizes, results):
    """For each size, how many ops take no longer than libtorch."""
    for size in sizes:
        of_size = [result for result in results if result.row.batch.startswith(size + "_") and result.is_met() is not None]
        met = sum(result.ours.figures.best <= result.reference() for result in of_size)
        yield f"{size}: {met} of {len(of_size)} ops take no longer than libtorch.\n"


def _op(name):
    return name[3:].rsplit("_", 2)[0]


def _cells(result):
    if not result or not result.ours.figures:
        return "-", "-"
    copies = [peer.figures.best for peer in result.peers if peer.name == "copy" and peer.figures]
    share = f" ({copies[0] / result.ours.figures.best:.0%})" if copies else ""
    reference = result.reference()
    return (table.ratio(result.ours.figures.best, reference) if reference else "-",
            f"{table.bandwidth(result.ours, result.row.unit):.1f}{share}")
