#!/usr/bin/env python3
"""docs/pictures/: what the command `eddy` draws of the training examples. Times are those of the machine.

usage: manual_pictures.py [BUILD]: an optimised build with examples; build/release, which tools/demo.sh makes, if none is named.
Needs Graphviz (graphviz), and the images of the example (dataset-fashion-mnist)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/pictures"
# Steps of training before the ones that are drawn: caches are warm by then.
STEPS_BEFORE, STEPS_DRAWN = 200, 2


def eddy(build, *words, **how):
    return subprocess.run([build / "tools/eddy/eddy", *words], check=True, **how)


def draw_timeline(build, folder, threads):
    """Two steps of training the layers of fashion_mnist."""
    trace, picture = folder / f"{threads}.json", FOLDER / f"fashion_mnist_{threads}t.svg"
    subprocess.run([build / "examples/fashion_mnist", "--epochs", "1", "--threads", str(threads)], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "EDDY_TRACE": str(trace)})
    events = [event for event in json.loads(trace.read_text(encoding="utf-8")) if event["ph"] == "X"]
    first_us = min(event["ts"] for event in events)
    steps = sorted((event["ts"], event["dur"]) for event in events if event.get("cat") == "range" and event["name"] == "step")
    begin_us = steps[STEPS_BEFORE][0]
    end_us = sum(steps[STEPS_BEFORE + STEPS_DRAWN - 1])
    eddy(build, "trace", "svg", trace, "--from", str((begin_us - first_us) / 1000), "--to", str((end_us - first_us) / 1000), "--width", "1000",
         "--output", picture)
    return picture


def draw_graph(build, folder):
    """The step of training these layers."""
    program, picture = folder / "mlp.program", FOLDER / "mlp_step.svg"
    subprocess.run([build / "examples/save_step", "mlp", program], check=True)
    graph = eddy(build, "dot", program, stdout=subprocess.PIPE).stdout
    picture.write_bytes(subprocess.run(["dot", "-Tsvg"], input=graph, stdout=subprocess.PIPE, check=True).stdout)
    return picture


def draw_memory(build, folder):
    """Over a step of training the transformer of char_transformer, by op."""
    picture = FOLDER / "char_transformer_memory.svg"
    subprocess.run([build / "examples/save_step", "transformer", "char_transformer.program"], check=True, cwd=folder)
    eddy(build, "plan", "char_transformer.program", "--output", picture, cwd=folder)
    return picture


def main():
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
        return
    if len(sys.argv) > 2 or sys.argv[1:2] and sys.argv[1].startswith("-"):
        sys.exit("usage: manual_pictures.py [BUILD]")
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    if not (build / "examples/save_step").exists():
        sys.exit(f"there are no examples in {build}: tools/demo.sh builds them")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for picture in (draw_timeline(build, folder, 1), draw_timeline(build, folder, 2), draw_graph(build, folder), draw_memory(build, folder)):
            print(picture.relative_to(ROOT))


main()
