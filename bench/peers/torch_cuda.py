"""Peer on GPUs: PyTorch's ops and training steps, eager, on the device that TORCH_DEVICE names (cuda). The rows are those of bench/ours/add16.c, ops.c,
mlp.c and training.c, and some of bench/cuda/measure.c; those of ops are read from the header that both use, whose C++ expressions are Python's but for
some signs.

    torch_cuda.py OP_ROWS_H ROW[,ROW...] [samples]

Prints a line of JSON for each row, as the programs do. What PyTorch cannot do there is a line with "error" instead of samples."""

import json
import math
import os
import re
import sys
import time

SAMPLE_SECONDS = 0.003
STEPS = 3  # of training in a sample
ADDS = 20000  # in a sample
WARM = 2  # samples that are not counted
BURST = 1000  # adds that are issued before the device is waited for: a device holds a few more


def expressions(header):
    """From op to libtorch's call, in C++."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    rows = {}
    for line in re.findall(r"^\s*op\((.*)\) ?\\?$", text, re.MULTILINE):
        name, _, rest = line.split(", ", 2)
        rows[name] = rest[end_of_call(rest) + 2:]
    return rows


def end_of_call(text):
    """Where the first of two expressions ends, which a comma parts that is in no brackets."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            return at
    raise ValueError(f"one expression: {text}")


def in_python(expression):
    """A call of libtorch as a call of PyTorch: what has no value stands for None, lists and names look different."""
    expression = expression.replace("{}", "None").replace("{", "[").replace("}", "]").replace("::", ".")
    expression = re.sub(r"torch\.kBFloat16", "torch.bfloat16", expression)
    return re.sub(r"\b(true|false)\b", lambda word: word[0].capitalize(), expression)


class Names:
    """What C++ calls torch: PyTorch spreads it over three modules."""

    def __init__(self, torch):
        self.modules = torch, torch.nn.functional, torch.ops.aten

    def __getattr__(self, name):
        for module in self.modules:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


class Shape:
    """As bench_op_shape_of (bench/ops.h)."""

    def __init__(self, n):
        self.n, self.columns, self.channels = n, 100 if n < 1000000 else 1000, 16
        self.rows = n // self.columns
        per_head = n // 32
        self.tokens = per_head if per_head < 4 else min(per_head // 4, 1024)
        self.heads = per_head // self.tokens
        self.side = 2 if n < 1000 else 7 if n < 10000 else 25 if n < 1000000 else 56
        self.batch = n // (self.channels * self.side * self.side)


def operands(torch, n):
    """By the names of bench/ops.h."""
    s = Shape(n)

    def randoms(dims, low, high):
        return torch.rand(dims) * (high - low) + low

    def integers(count, low, high):
        return torch.randint(low, high, (count,))

    images = randoms((s.batch, s.channels, s.side, s.side), -1, 1)
    q = randoms((1, s.heads, s.tokens, 32), -1, 1)
    m = randoms((s.rows, s.columns), -1, 1)
    x = randoms((n,), 0.1, 0.9)
    angles = torch.outer(torch.arange(s.tokens).float(), torch.pow(10000.0, torch.arange(16) / -16.0))
    few = {name: randoms((s.channels,), 0.1, 0.9) for name in ("means", "variances", "gain", "shift")}
    state = {"parameters": randoms((n,), -1, 1), "gradients": randoms((n,), -1, 1), "first": torch.zeros(n), "second": torch.zeros(n), "steps": 0}
    names = {
        "shape": s, "columns": s.columns, "x": x, "y": randoms((n,), 0.1, 0.9), "z": randoms((n,), 0.1, 0.9), "s": randoms((n,), -1, 1),
        "w": randoms((n,), 0.1, 0.9), "same": x.clone(), "i": integers(n, 1, 1001).int(), "j": integers(n, 1, 1001).int(),
        "b": integers(n, 0, 2).bool(), "c": integers(n, 0, 2).bool(), "numbers": integers(n, 0, 1000), "m": m,
        "o": randoms((s.rows, s.columns), -1, 1), "transposed": m.t(), "near": randoms((s.rows, s.columns), 0.9, 1.1),
        "row": randoms((s.columns,), 0.1, 0.9), "column": randoms((s.rows, 1), 0.1, 0.9), "tall": randoms((s.rows,), 0.1, 0.9),
        "weight": randoms((s.columns,), 0.1, 0.9), "bias": randoms((s.columns,), 0.1, 0.9), "square": randoms((s.columns, s.columns), -1, 1),
        "labels": integers(s.rows, 0, s.columns), "picks": integers(s.rows, 0, s.rows), "table": randoms((1000, s.columns), -1, 1),
        "words": integers(s.rows, 0, 1000), "places": integers(n, 0, s.columns).reshape(s.rows, s.columns), "q": q,
        "k": randoms(q.shape, -1, 1), "v": randoms(q.shape, -1, 1), "turned_q": q[0].transpose(1, 2), "images": images,
        "signals": images.reshape(s.batch, s.channels, s.side * s.side), "filters": randoms((16, 16, 3, 3), -1, 1),
        "filters_1d": randoms((16, 16, 3), -1, 1), **few}
    return {**names, **functions(torch, state, angles, s.columns)}


def functions(torch, state, angles, columns):
    """What bench/peers/torch_ops.cpp has functions for."""

    def rotated(x):
        sines, cosines = torch.sin(angles), torch.cos(angles)
        first, second = torch.chunk(x, 2, -1)
        return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)

    def root_mean_square_norm(x, scale):
        return torch.nn.functional.rms_norm(x, [columns], scale, 1e-5)

    def stepped_sgd():
        return state["parameters"].add_(state["gradients"], alpha=-1e-6)

    def stepped_momentum():
        state["first"].mul_(0.9).add_(state["gradients"])
        return state["parameters"].add_(state["first"], alpha=-1e-6)

    def stepped_adam(decays):
        if "optimiser" not in state:
            state["parameters"].grad = state["gradients"]
            kind = torch.optim.AdamW if decays else torch.optim.Adam
            state["optimiser"] = kind([state["parameters"]], lr=1e-6)
        return state["optimiser"].step()

    def clipped():
        state["parameters"].grad = state["gradients"]
        return torch.nn.utils.clip_grad_norm_([state["parameters"]], 1e9)

    return {"attention": torch.nn.functional.scaled_dot_product_attention, "rotated": rotated, "root_mean_square_norm": root_mean_square_norm,
            "stepped_sgd": stepped_sgd, "stepped_momentum": stepped_momentum, "stepped_adam": stepped_adam, "clipped": clipped}


# ---- networks: one training step each; the result is its loss ----

def mlp(torch, rows, is_captured, with_adam=False):
    images, labels = torch.rand(rows, 784) * 2 - 1, torch.randint(0, 10, (rows,))
    layers = [torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)]
    net = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-6, capturable=is_captured) if with_adam else torch.optim.SGD(net.parameters(), lr=0.01)
    return optimiser, lambda: torch.nn.functional.cross_entropy(net(images), labels), None


def mlp_adam(torch, rows, is_captured):
    return mlp(torch, rows, is_captured, with_adam=True)


def cnn(torch, rows, is_captured):
    """As examples/network.c: channels-last, pools before ReLU."""
    images, labels = torch.randint(0, 256, (rows, 784)).to(torch.uint8), torch.randint(0, 10, (rows,))
    last = torch.channels_last
    layers = [torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, padding=1),
              torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 7 * 7, 10)]
    net = torch.nn.Sequential(*layers).to(memory_format=last)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-6, capturable=is_captured)

    def loss():
        x = images.float().div(255.0).view(-1, 28, 28, 1).permute(0, 3, 1, 2)
        return torch.nn.functional.cross_entropy(net(x), labels)
    return optimiser, loss, None


def transformer(torch, rows, is_captured):
    """As examples/transformer.c, with the sizes of bench/shapes.h."""
    vocabulary, width, count, heads, hidden, sequence = 96, 128, 4, 4, 344, 128
    parameters = []

    def matrix(high, wide):
        parameters.append((torch.randn(high, wide) * 0.02).requires_grad_())
        return parameters[-1]

    def ones():
        parameters.append(torch.ones(width).requires_grad_())
        return parameters[-1]

    embedding = matrix(vocabulary, width)
    layers = [(ones(), matrix(3 * width, width), matrix(width, width), ones(), matrix(hidden, width), matrix(hidden, width),
               matrix(width, hidden)) for _ in range(count)]
    norm, output = ones(), matrix(vocabulary, width)
    half = width // heads // 2
    angles = torch.outer(torch.arange(sequence).float(), torch.pow(10000.0, -torch.arange(half).float() / half))
    cosines, sines = torch.cos(angles), torch.sin(angles)
    numbers = torch.randint(0, vocabulary, (rows, sequence + 1))
    function = torch.nn.functional

    def rms(x, weight):
        return function.rms_norm(x, [width], weight, 1e-5)

    def turn(x):
        first, second = x.chunk(2, -1)
        return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)

    def loss():
        x = function.embedding(numbers[:, :sequence], embedding)
        for norm_1, mixed, attention_output, norm_2, gate, up, down in layers:
            q, k, v = function.linear(rms(x, norm_1), mixed).view(rows, sequence, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = function.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
            x = x + function.linear(seen.permute(0, 2, 1, 3).reshape(rows, sequence, width), attention_output)
            normed = rms(x, norm_2)
            x = x + function.linear(function.silu(function.linear(normed, gate)) * function.linear(normed, up), down)
        logits = function.linear(rms(x, norm), output)
        return function.cross_entropy(logits.view(-1, vocabulary), numbers[:, 1:].reshape(-1))
    optimiser = torch.optim.AdamW(parameters, lr=1e-6, betas=(0.9, 0.99), weight_decay=0.1, capturable=is_captured)
    return optimiser, loss, parameters


NETWORKS = {"mlp": mlp, "mlp_adam": mlp_adam, "cnn": cnn, "transformer": transformer}


def training_step(torch, network, rows, is_captured):
    """A function that makes a step and gives its loss. Captured: as a CUDA graph, as PyTorch's documentation has it."""
    optimiser, loss_of, clipped = NETWORKS[network](torch, rows, is_captured)

    def step():
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        if clipped:
            torch.nn.utils.clip_grad_norm_(clipped, 1.0)
        optimiser.step()
        return loss
    if not is_captured:
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay


# ---- adds, memory, attention ----

def settle(torch):
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def issue_add16(torch):
    """What the caller waits."""
    a, b = torch.rand(16), torch.rand(16)
    spent = 0
    for _ in range(ADDS // BURST):
        begun = time.perf_counter()
        for _ in range(BURST):
            torch.add(a, b)
        spent += time.perf_counter() - begun
        settle(torch)
    return spent / ADDS


def end_to_end_add16(torch):
    a, b = torch.rand(16), torch.rand(16)
    return seconds(torch, lambda: torch.add(a, b), ADDS)


def issue_read(torch):
    a, b = torch.rand(1), torch.rand(1)
    return seconds(torch, lambda: torch.add(a, b).item(), ADDS)


def alloc_hit(torch):
    return seconds(torch, lambda: torch.empty(1 << 20, dtype=torch.uint8), ADDS)


# By row: a sample, in seconds of a call.
CALLS = {"issue_add16": issue_add16, "end_to_end_add16": end_to_end_add16, "issue_read": issue_read, "alloc_hit": alloc_hit}


def attention(torch, tokens):
    q, k = (torch.ones(8, 16, tokens, 64, dtype=torch.bfloat16) for _ in range(2))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True)


# ---- measuring ----

# Names of rows, but for CALLS.
STEP = re.compile(r"(replay_)?(mlp_adam|mlp|cnn|transformer)_b(\d+)_.*")
ATTENTION = re.compile(r"sdpa_bf16_(\d+)")
OP = re.compile(r"op_(\w+)_(\de\d)_.*")


def seconds(torch, call, count):
    begun = time.perf_counter()
    for _ in range(count):
        call()
    settle(torch)
    return (time.perf_counter() - begun) / count


def samples_of(torch, call, count):
    """Seconds of a call; each sample is of so many that it takes long enough to be measured."""
    seconds(torch, call, 1)
    calls = max(1, int(SAMPLE_SECONDS / seconds(torch, call, 1)))
    calls = max(1, int(SAMPLE_SECONDS / seconds(torch, call, calls)))
    return [seconds(torch, call, calls) for _ in range(count)]


def measure(torch, row, calls, made, count):
    """The unit and the samples of a row. made: operands, by size, which rows share."""
    if row in CALLS:
        with torch.inference_mode():
            return "ns", [CALLS[row](torch) * 1e9 for _ in range(WARM + count)][WARM:]
    tokens = ATTENTION.fullmatch(row)
    if tokens:
        with torch.inference_mode():
            return "us", [taken * 1e6 for taken in samples_of(torch, attention(torch, int(tokens[1])), count)]
    step = STEP.fullmatch(row)
    if step:
        run = training_step(torch, step[2], int(step[3]), step[1] is not None)
        for _ in range(3):
            run()
        found = [seconds(torch, run, STEPS) * 1e3 for _ in range(count)]
        if not math.isfinite(run().item()):
            raise ValueError("the loss is not finite")
        return "ms", found
    op, size = OP.fullmatch(row).groups()
    n = int(float(size))
    if n not in made:
        made.clear()
        made[n] = operands(torch, n)
    code = compile(in_python(calls[op]), op, "eval")
    names = {**made[n], "torch": Names(torch)}
    with torch.inference_mode(op not in ("adam_step", "adamw_step", "clip_grad_norm")):
        return "us", [taken * 1e6 for taken in samples_of(torch, lambda: eval(code, names), count)]


def main():
    import torch
    header, rows = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    torch.set_default_device(os.environ.get("TORCH_DEVICE", "cuda"))
    calls, made = expressions(header), {}
    for row in rows.split(","):
        line = {"row": row, "version": f"PyTorch {torch.__version__}"}
        try:
            line["unit"], line["samples"] = measure(torch, row, calls, made, count)
        except Exception as error:  # whatever it cannot do: the next row may go
            line["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
