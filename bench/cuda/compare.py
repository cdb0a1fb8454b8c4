"""Rows of Eddy's programs on a CUDA device beside PyTorch's on the same device, in one run: compare.py FOLDER [ROW...]

FOLDER holds the programs ops, mlp and training, op_rows.h, and torch_cuda.py. Prints a line for each row: name, Eddy's best sample, PyTorch's, its
unit, what Eddy's is of PyTorch's ("-" where one has none). Rows: op_<name>_<size> (all, if none is named), mlp_b64, cnn_b64, transformer_b16, and with
replay_ before it the step as a program, with graph_ as one whose launches are graphs, both beside a graph that PyTorch has captured. SIZES says which sizes of ops, parted by commas; SAMPLES how many."""

import importlib.util
import json
import os
import re
import subprocess
import sys

NETWORKS = ("mlp_b64", "cnn_b64", "transformer_b16")
SIZES = "1e4,1e6,1e7"
SECONDS = 400  # of one program
GRAPH = "graph_"  # ahead of the name of a row that the programs know with replay_


def op_names(folder):
    with open(os.path.join(folder, "op_rows.h"), encoding="utf-8") as file:
        return re.findall(r"^\s*op\((\w+),", file.read(), re.MULTILINE)


def batches(folder, asked):
    """Eddy's program, and rows that it measures in one run."""
    names = asked
    if not names:
        sizes = os.environ.get("SIZES", SIZES).split(",")
        names = [f"op_{name}_{size}" for size in sizes for name in op_names(folder)]
        names += [prefix + network for network in NETWORKS for prefix in ("", "replay_", GRAPH)]
    sizes = {}
    for name in names:
        size = re.fullmatch(r"op_\w+_(\de\d)", name)
        if size:
            sizes.setdefault(size[1], []).append(name)
        else:
            yield ("mlp" if "mlp_" in name else "training"), [name]
    for rows in sizes.values():
        yield "ops", rows


def output_of(command, environment):
    try:
        return subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False).stdout
    except subprocess.TimeoutExpired as ended:
        return (ended.stdout or b"").decode()


def best_of(program, rows, samples, environment):
    """By row: the least sample and the unit. A program that ends in the middle is started again behind the row that ended it."""
    found = {}
    while rows:
        for line in output_of([*program, ",".join(rows), samples], environment).splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # of a program that was stopped while it printed
                continue
            found[row["row"]] = (min(row["samples"]), row["unit"]) if "samples" in row else (None, "-")
            if "error" in row:
                print(f"{row['row']}: {row['error']}", file=sys.stderr)
        missing = [at for at, row in enumerate(rows) if row not in found]
        rows = rows[missing[0] + 1:] if missing else []
    return found


def main():
    folder, asked = sys.argv[1], sys.argv[2:]
    samples = os.environ.get("SAMPLES", "9")
    for program, names in batches(folder, asked):
        # The programs name the number of threads in their rows.
        has_graphs = names[0].startswith(GRAPH)
        known = {name: (name.replace(GRAPH, "replay_", 1) if has_graphs else name) + "_1t" for name in names}
        rows = list(known.values())
        environment = {"EDDY_DEVICE": "cuda", "EDDY_CUDA_GRAPHS": "1" if has_graphs else "0"}
        ours = best_of([os.path.join(folder, program)], rows, samples, environment)
        peer = [sys.executable, os.path.join(folder, "torch_cuda.py"), os.path.join(folder, "op_rows.h")]
        peers = best_of(peer, rows, samples, {}) if importlib.util.find_spec("torch") else {}
        for name in names:
            (mine, unit), (theirs, other) = (of.get(known[name], (None, "-")) for of in (ours, peers))
            figures = [f"{value:.4g}" if value else "-" for value in (mine, theirs)]
            ratio = f"{mine / theirs:.3f}" if mine and theirs else "-"
            print("cuda_" + name, *figures, unit if mine else other, ratio, flush=True)


if __name__ == "__main__":
    main()
