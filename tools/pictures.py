#!/usr/bin/env python3
"""docs/pictures/*.svg: the pictures of the pages, drawn with the standard library alone. The figures of steps.svg are from
the newest file in bench/results/ that has all of them.

pictures.py draws the files; pictures.py --check names the files that differ from what it draws."""
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/pictures"
sys.path.insert(0, str(ROOT / "bench"))

import report  # noqa: E402

INK, PALE = "#222222", "#777777"
BLUE, GREEN, RED, ORANGE, GREY = "#cfe2ff", "#d1e7dd", "#f5b5b5", "#ffe0b3", "#eeeeee"


class Picture:
    """Shapes on a white background. Coordinates are pixels from the top left corner."""

    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def box(self, x, y, width, height, fill, text="", dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="{fill}" stroke="{INK}"{dash}/>')
        lines = text.split("\n") if text else []
        for i, line in enumerate(lines):
            self.text(x + width / 2, y + height / 2 + 5 + 16 * (i - (len(lines) - 1) / 2), line, "middle")

    def text(self, x, y, text, anchor="start", colour=INK, bold=False, size=13):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{weight}>{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, dashed=False, arrow=False, colour=INK):
        more = ' stroke-dasharray="5 4"' if dashed else ""
        more += ' marker-end="url(#tip)"' if arrow else ""
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"{more}/>')

    def arrow(self, x1, y1, x2, y2):
        self.line(x1, y1, x2, y2, arrow=True)

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            'font-family="DejaVu Sans, Verdana, sans-serif">',
            '<!-- Drawn by tools/pictures.py; not to be edited. -->',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>', *self.parts, "</svg>", ""])


def threads():
    """Which thread runs what over time: a cheap op, an expensive op, an op that waits for it, a read."""
    p = Picture(780, 270)
    lanes = {"caller": 40, "worker 1": 120, "worker 2": 190}
    for name, y in lanes.items():
        p.text(10, y + 23, name, bold=True)
        p.line(100, y + 18, 770, y + 18, colour="#cccccc")
    p.box(110, 40, 52, 36, GREEN, "add")
    p.box(172, 40, 60, 36, BLUE, "linear")
    p.box(242, 40, 60, 36, BLUE, "softmax")
    p.box(312, 40, 124, 36, "white", "the program\ngoes on", dashed=True)
    p.box(452, 40, 62, 36, GREY, "read:\nwaits")
    p.box(522, 40, 130, 36, ORANGE, "softmax, slice 2")
    p.box(662, 40, 66, 36, GREEN, "has it")
    p.text(100, 30, "runs at once", colour=PALE, size=11)
    p.text(190, 30, "a record each, no more", colour=PALE, size=11)
    p.text(522, 30, "and helps", colour=PALE, size=11)
    p.box(262, 120, 122, 36, ORANGE, "linear, slice 1")
    p.box(262, 190, 122, 36, ORANGE, "linear, slice 2")
    p.box(390, 120, 122, 36, BLUE, "done: what\nis next?")
    p.box(522, 120, 130, 36, ORANGE, "softmax, slice 1")
    p.arrow(202, 76, 261, 134)
    p.arrow(202, 76, 261, 204)
    p.arrow(274, 76, 400, 119)
    p.arrow(384, 204, 410, 157)
    p.arrow(587, 119, 587, 77)
    p.arrow(652, 134, 690, 77)
    p.line(110, 250, 770, 250, arrow=True, colour=PALE)
    p.text(440, 264, "time", "middle", PALE, size=11)
    return p


def poison():
    """Which tensors a late error affects, and which it does not."""
    p = Picture(780, 330)
    p.box(20, 40, 120, 44, GREEN, "scores")
    p.box(20, 120, 120, 44, GREEN, "labels\none out of range")
    p.box(210, 80, 150, 44, RED, "cross_entropy\nfails as it runs")
    p.box(430, 30, 130, 44, ORANGE, "loss\npoisoned")
    p.box(430, 130, 130, 44, ORANGE, "gradient\npoisoned")
    p.box(630, 30, 130, 44, GREY, "read(loss)\nis the error")
    p.box(630, 130, 130, 44, ORANGE, "sgd_step on w\ndoes not run")
    p.box(630, 220, 130, 44, GREY, "w: skipped\nas it was before")
    p.box(210, 220, 150, 44, GREEN, "argmax(scores)\nruns")
    p.box(430, 220, 130, 44, GREEN, "accuracy\nis right")
    p.arrow(140, 62, 209, 94)
    p.arrow(140, 142, 209, 112)
    p.arrow(360, 94, 429, 56)
    p.arrow(360, 112, 429, 148)
    p.arrow(560, 52, 629, 52)
    p.arrow(560, 152, 629, 152)
    p.arrow(695, 174, 695, 219)
    p.parts.append(f'<path d="M20 62 H8 V242 H208" fill="none" stroke="{INK}" marker-end="url(#tip)"/>')
    p.arrow(360, 242, 429, 242)
    for x, fill, text in ((20, GREEN, "healthy"), (150, RED, "where it happened"), (340, ORANGE, "holds that error, does not run"), (580, GREY, "what the program sees")):
        p.box(x, 296, 18, 18, fill)
        p.text(x + 26, 310, text)
    return p


def scope():
    """The lifetimes of the tensors of docs/tutorial.md, step 2."""
    p = Picture(780, 330)
    marks = {150: "scope_begin", 250: "scope_begin\n(inner)", 490: "scope_end\n(inner)", 610: "scope_end", 720: "release"}
    for x, text in marks.items():
        for i, line in enumerate(text.split("\n")):
            p.text(x, 20 + 15 * i, line, "middle", PALE, size=11)
        p.line(x, 42, x, 315, dashed=True, colour="#999999")
    p.box(150, 50, 460, 26, GREY, "outer scope")
    p.box(250, 86, 240, 26, GREY, "inner scope")
    rows = [("x", 170, 610, BLUE, "the outer scope's"), ("mean(x)", 270, 490, ORANGE, "the inner scope's"), ("centred", 310, 490, ORANGE, ""),
            ("std(x)", 350, 490, ORANGE, "")]
    for i, (name, begin, end, fill, text) in enumerate(rows):
        p.text(140, 140 + 32 * i, name, "end")
        p.box(begin, 122 + 32 * i, end - begin, 26, fill, text)
    p.text(140, 268, "y", "end")
    p.box(390, 250, 80, 26, ORANGE, "inner")
    p.box(470, 250, 140, 26, BLUE, "outer")
    p.text(480, 292, "scope_return hands it out", "middle", PALE, size=11)
    p.text(140, 308, "kept", "end")
    p.box(560, 296, 160, 22, GREEN, "retain: one's own")
    return p


def cells(p, x, y, rows, numbers, lit=(), size=34):
    """A grid of numbers; the numbers in `lit` are coloured."""
    columns = len(numbers) // rows
    for i, number in enumerate(numbers):
        p.box(x + size * (i % columns), y + size * (i // columns), size, size, BLUE if number in lit else "white", str(number))


def strides():
    """Four tensors over one storage."""
    p = Picture(780, 350)
    p.text(20, 28, "the storage: six elements in a row", bold=True)
    cells(p, 20, 40, 1, range(6), range(6))
    p.text(250, 54, "address of x[i, j] =", colour=PALE)
    p.text(250, 72, "offset + i * stride 0 + j * stride 1", colour=PALE)
    views = [(20, "x", "[2, 3]", "3, 1", 0, 2, [0, 1, 2, 3, 4, 5], "row after row"),
             (210, "transpose(x, 0, 1)", "[3, 2]", "1, 3", 0, 3, [0, 3, 1, 4, 2, 5], "the same, read down"),
             (420, "slice(x, 1, 1, 3, 1)", "[2, 2]", "3, 1", 1, 2, [1, 2, 4, 5], "begins at element 1"),
             (610, "expand(x[0], [3, 3])", "[3, 3]", "0, 1", 0, 3, [0, 1, 2] * 3, "a row, three times")]
    for x, name, shape, steps, offset, rows, numbers, what in views:
        p.text(x, 120, name, bold=True)
        cells(p, x, 132, rows, numbers, set(numbers))
        for i, line in enumerate((f"shape {shape}", f"strides {steps}", f"offset {offset}", what)):
            p.text(x, 258 + 18 * i, line, colour=PALE if i == 3 else INK)
    p.text(20, 340, "Views copy nothing: a write to x is seen through all.", colour=PALE)
    return p


NETWORKS = {"mlp_b64": "linear layers", "cnn_b64": "convolutions", "transformer_b16": "transformer"}
COLOURS = {"Eddy": "#3b82c4", "libtorch": "#c9c9c9", "libtorch, given": "#a0a0a0", "by hand": ORANGE}


def milliseconds(run):
    """The times of each row in the order of COLOURS; a row that lacks one of them is left out."""
    times = {}
    for result in run.results:
        bests = {entry.name: entry.figures.best for entry in (result.ours, *result.peers) if entry.figures}
        if COLOURS.keys() <= bests.keys():
            times[result.row.name] = [bests[name] for name in COLOURS]
    return times


def newest_training():
    """The newest run that has the figures of all bars, and its times."""
    needed = {f"{network}_{threads_count}t" for network in NETWORKS for threads_count in (1, 2)}
    for run in report.recorded():
        times = milliseconds(run)
        if needed <= times.keys():
            return run, times
    sys.exit("bench/results has no run with all training rows, libtorch twice and the program by hand")


def legend(run):
    """The names of COLOURS as they appear in the picture."""
    for name in COLOURS:
        stated = [version for peer, version in run.about["versions"].items() if re.sub(", rows of .*", "", peer) == name]
        yield {"Eddy": name, "by hand": "by hand, C over OpenBLAS"}.get(name) or f"libtorch {re.search('[0-9]+[.][0-9]+', stated[0])[0]}"


def steps():
    """Bar chart of a training step: Eddy, libtorch, and C by hand. Shorter is faster."""
    p = Picture(780, 350)
    run, times_of = newest_training()
    for i, (name, fill) in enumerate(zip(legend(run), COLOURS.values())):
        x = (20, 100, 240, 380)[i]
        p.box(x, 14, 14, 14, fill)
        p.text(x + 20, 26, name)
    for column, threads_count in enumerate((1, 2)):
        left = 130 + 330 * column
        p.text(left, 62, f"{threads_count} thread" + "s" * column, bold=True)
        for i, (row, title) in enumerate(NETWORKS.items()):
            top = 74 + 86 * i
            if column == 0:
                p.text(120, top + 38, title, "end")
            times = times_of[f"{row}_{threads_count}t"]
            for j, (time, fill) in enumerate(zip(times, COLOURS.values())):
                width = round(220 * time / max(times))
                p.parts.append(f'<rect x="{left}" y="{top + 17 * j}" width="{width}" height="14" fill="{fill}"/>')
                p.text(left + width + 6, top + 17 * j + 12, f"{time:g} ms", size=11)
    p.text(20, 340, "One step of training, best of the samples; each group to its own scale. docs/figures.md", colour=PALE, size=11)
    return p


PICTURES = [threads, poison, scope, strides, steps]


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    old = []
    for draw in PICTURES:
        file, text = FOLDER / f"{draw.__name__}.svg", draw().svg()
        if sys.argv[1:]:
            old += [] if file.is_file() and file.read_text(encoding="utf-8") == text else [file.name]
        else:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if old:
        print(f"docs/pictures: {', '.join(old)} not as drawn by python3 tools/pictures.py")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
