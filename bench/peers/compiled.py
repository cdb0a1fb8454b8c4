"""Peers that compile or replay a chain of ops, through their Python packages: TorchScript's traces, torch.compile (inductor), JAX, ONNX
Runtime, Paddle's executor of static programs. The chains are those of the rows replay_add16_* and replay_fused_*.

    python3 compiled.py jax replay_add16_1e3 [samples]

A run is one call from Python: what that costs is part of the time, as the call of eddy_program_run is."""

import json
import os
import re
import sys
import time

import numpy

SAMPLE_SECONDS = 0.02

# Steps of replay_fused_*, in turn (ours/fused.c).
FUSED = ("scale", "add", "relu", "sub", "abs")
NUMBER = 0.75


def chain_of(row):
    """The names of the steps, the number of elements, and by what a run's time is divided: one of its adds, or a run in us."""
    add16 = re.fullmatch(r"replay_add16_(\w+)", row)
    if add16:
        ops = int(float(add16[1]))
        return ["add"] * ops, 16, ops * 1e-9, "ns"
    fused = re.fullmatch(r"replay_fused_(\d+)_(\d+)", row)
    if fused:
        return [FUSED[i % len(FUSED)] for i in range(int(fused[1]))], int(fused[2]), 1e-6, "us"
    sys.exit(f"compiled: no such row: {row}")


def function_of(steps, relu):
    """The chain as a function of x and the other operand."""
    meaning = {"scale": lambda x, other: x * NUMBER, "add": lambda x, other: x + other, "sub": lambda x, other: x - other,
               "relu": lambda x, other: relu(x), "abs": lambda x, other: abs(x)}

    def chain(x, other):
        for step in steps:
            x = meaning[step](x, other)
        return x
    return chain


# Each framework: from steps and operands to a function that makes a run and waits for it, and the version.

def with_torch(steps, x, other, compiler):
    import torch
    torch.set_num_threads(threads())
    operands = torch.from_numpy(x), torch.from_numpy(other)
    chain = function_of(steps, torch.relu)
    with torch.inference_mode():
        compiled = compiler(torch, chain, operands)

    def run():
        with torch.inference_mode():
            return compiled(*operands).numpy()
    return run, f"torch {torch.__version__}"


def torchscript(steps, x, other):
    return with_torch(steps, x, other, lambda torch, chain, operands: torch.jit.trace(chain, operands, check_trace=False))


def inductor(steps, x, other):
    return with_torch(steps, x, other, lambda torch, chain, operands: torch.compile(chain, fullgraph=True))


def jax(steps, x, other):
    import jax as package
    compiled = package.jit(function_of(steps, package.nn.relu))
    operands = package.device_put(x), package.device_put(other)
    return lambda: compiled(*operands).block_until_ready(), f"JAX {package.__version__}"


def onnxruntime(steps, x, other):
    import onnxruntime as package
    options = package.SessionOptions()
    options.intra_op_num_threads = threads()
    session = package.InferenceSession(onnx_model(steps, len(x)), options, providers=["CPUExecutionProvider"])
    result = package.OrtValue.ortvalue_from_numpy(numpy.empty_like(x))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", package.OrtValue.ortvalue_from_numpy(x))
    if {"add", "sub"} & set(steps):
        binding.bind_ortvalue_input("other", package.OrtValue.ortvalue_from_numpy(other))
    binding.bind_ortvalue_output(f"v{len(steps)}", result)

    def run():
        session.run_with_iobinding(binding)
        return result.numpy()
    return run, f"ONNX Runtime {package.__version__}"


def onnx_model(steps, elements):
    """A model of the chain, whose values are v0 (x), v1, ... Bytes."""
    from onnx import TensorProto, helper
    meaning = {"scale": ("Mul", "number"), "add": ("Add", "other"), "sub": ("Sub", "other"), "relu": ("Relu",), "abs": ("Abs",)}
    nodes, last = [], "x"
    for i, step in enumerate(steps):
        kind, *second = meaning[step]
        nodes.append(helper.make_node(kind, [last, *second], [f"v{i + 1}"]))
        last = f"v{i + 1}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [elements]) for name in ("x", "other", last)]
    numbers = [helper.make_tensor("number", TensorProto.FLOAT, [], [NUMBER])] if "scale" in steps else []
    graph = helper.make_graph(nodes, "chain", values[:2], values[2:], numbers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def paddle(steps, x, other):
    import paddle as package
    package.enable_static()
    # Its ops one after the other on the calling thread: by default it hands each to threads, which takes longer on one CPU.
    package.set_flags({"FLAGS_enable_pir_in_executor_trace_run": True})
    program = package.static.Program()
    with package.static.program_guard(program, package.static.Program()):
        operands = [package.static.data(name, [len(x)], "float32") for name in ("x", "other")]
        result = function_of(steps, package.nn.functional.relu)(*operands)
    executor = package.static.Executor(package.CPUPlace())
    feed = {"x": x, "other": other}
    return lambda: executor.run(program, feed=feed, fetch_list=[result])[0], f"Paddle {package.__version__}"


FRAMEWORKS = {function.__name__: function for function in (torchscript, inductor, jax, onnxruntime, paddle)}


def threads():
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def seconds_of(run, count):
    began = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - began) / count


def main():
    framework, row = sys.argv[1:3]
    samples = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    steps, elements, divisor, unit = chain_of(row)
    random = numpy.random.default_rng(1)
    x, other = (random.uniform(-1, 1, elements).astype(numpy.float32) for _ in range(2))
    run, version = FRAMEWORKS[framework](steps, x, other)
    expected = function_of(steps, lambda value: numpy.maximum(value, 0))(x, other)
    if not numpy.allclose(numpy.asarray(run()), expected, rtol=1e-5, atol=1e-5):
        sys.exit(f"compiled: {framework} computes something else")
    seconds_of(run, 3)
    count = 1 + int(SAMPLE_SECONDS / seconds_of(run, 3))
    print(json.dumps({"row": row, "unit": unit, "version": f"{version}, {threads()} threads",
                      "samples": [seconds_of(run, count) / divisor for _ in range(samples)]}))


if __name__ == "__main__":
    main()
