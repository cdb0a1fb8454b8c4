"""The rows of the table: what each measures, its programs and its goal. The name of a row never changes.

usage: rows.py FILE PROGRAM...: writes the rows of these programs to FILE for `eddy bench`, as JSON."""

import dataclasses
import functools
import glob
import json
import os
import re
import subprocess
import sys

import peers

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Goal:
    """At most `at_most` units; if `of` names peers (by a prefix of their names), at most `at_most` times the best of them. at_least: a
    lower bound, in the same unit. more: units that may be added to what the peers take."""
    at_most: float
    of: str = ""
    at_least: float = 0
    more: float = 0

    def text(self, unit):
        if self.at_least:
            return f"{self.at_least:g} to {self.at_most:g} {unit}"
        if not self.of:
            return f"<= {self.at_most:g} {unit}"
        more = f" + {self.more:g} {unit}" if self.more else ""
        return f"<= {self.at_most:.3g} x {'best peer' if self.of == '*' else self.of}{more}"


@dataclasses.dataclass(frozen=True)
class Peer:
    """name: in the table. program: a name of peers.Peers, or a program of ours with its mode, "ours/NAME" or "one_thread/NAME" (peers.MODES).
    row: the row that the program is called with, if it is not this one. threads: number of its threads, if it is not the row's."""
    name: str
    program: str
    row: str = ""
    threads: int = 0

    def threads_in(self, row):
        return self.threads or row.threads


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    unit: str
    program: str  # Eddy's; with a mode in front of it, if it is not run as it is (peers.MODES)
    goal: Goal | None  # None: the row is only reported
    peers: tuple
    threads: int = 1
    is_pinned: bool = True  # to one CPU, the peers too
    kind: str = "time"      # or "instructions", "heap", "exact" (neither load nor chance changes it)
    batch: str = ""         # rows with the same batch are measured in the same runs of the programs
    known_as: str = ""      # what the programs call the row, if not by its name

    def ours(self):
        return Peer("Eddy", self.program if "/" in self.program else "ours/" + self.program)

    def asked(self):
        return self.known_as or self.name

    def needs_gpu(self):
        return self.program.startswith(peers.GPU_MODES)


LIBTORCH = (Peer("libtorch", "libtorch"), Peer("libtorch, given", "given_libtorch"))
LIBTORCH_TRAINING = (Peer("libtorch", "libtorch_training"), Peer("libtorch, given", "given_libtorch_training"))
LIBTORCH_OPS = (Peer("libtorch", "libtorch_ops"), Peer("libtorch, given", "given_libtorch_ops"))
LIBTORCH_SMALL = (Peer("libtorch, one thread", "libtorch_small", threads=1),
                  Peer("libtorch, two threads", "libtorch_small", threads=2),
                  Peer("libtorch, given, one thread", "given_libtorch_small", threads=1),
                  Peer("libtorch, given, two threads", "given_libtorch_small", threads=2))
TASKS = (Peer("OpenMP", "openmp"), Peer("oneTBB", "tbb"))
BY_HAND = Peer("by hand", "by_hand")
BY_HAND_THREADED = Peer("by hand, threaded BLAS", "by_hand_threaded_blas")
CNN_BY_HAND = Peer("by hand", "cnn_by_hand")
CNN_BY_HAND_THREADED = Peer("by hand, threaded BLAS", "cnn_by_hand_threaded_blas")
TRANSFORMER_BY_HAND = Peer("by hand", "transformer_by_hand")
TRANSFORMER_BY_HAND_THREADED = Peer("by hand, threaded BLAS", "transformer_by_hand_threaded_blas")
LIBRARIES = (Peer("OpenBLAS", "openblas"), Peer("BLIS", "blis"), Peer("oneDNN", "onednn"))


def _gemm_names():
    """From the list in shapes.h, which the programs use."""
    with open(os.path.join(HERE, "shapes.h"), encoding="utf-8") as file:
        return re.findall(r"^\s*row\((gemm_\w+),", file.read(), re.MULTILINE)


def _gemm_rows():
    return [Row(name, "us", "gemm", Goal(1.02, "*"), LIBRARIES) for name in _gemm_names()]


def _pool_rows():
    """From the list in pools.h, which the programs use."""
    with open(os.path.join(HERE, "pools.h"), encoding="utf-8") as file:
        names = re.findall(r"^\s*row\((pool_\w+),", file.read(), re.MULTILINE)
    return [Row(name, "us", "pool", Goal(1.0, "oneDNN"), (Peer("oneDNN", "onednn_pool"),)) for name in names]


@functools.cache
def _op_rows_header():
    """The programs' header op_rows.h, made of the op list, or beside this file where the list is not (tools/gpu-kit.sh)."""
    beside = os.path.join(HERE, "op_rows.h")
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as file:
            return file.read()
    functional = os.path.join(os.path.dirname(HERE), "functional")
    command = [sys.executable, "-B", os.path.join(functional, "generate/main.py"), "bench", "/dev/stdout",
               *sorted(glob.glob(os.path.join(functional, "ops/*.toml")))]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def op_names():
    return re.findall(r"^\s*op\((\w+),", _op_rows_header(), re.MULTILINE)


def streamed_op_names():
    """Elementwise ops and reductions."""
    return set(re.findall(r"\bname\((\w+)\)", _op_rows_header()))


# Goals relative to libtorch that are not 1.0: (op, size), with one thread.
_OP_GOALS = {("exp", "1e4"): 1 / 1.6, ("tanh", "1e4"): 1 / 2, ("softmax", "1e4"): 1 / 2, ("layer_norm", "1e4"): 1 / 1.2}
OP_SIZES = ("1e2", "1e4", "1e6", "1e7")


def _op_rows():
    peers = (*LIBTORCH_OPS, Peer("copy", "copy"))
    for threads in (1, 2):
        for size in OP_SIZES:
            batch = f"{size}_{threads}t"
            for name in op_names():
                goal = Goal(_OP_GOALS.get((name, size), 1) if threads == 1 else 1, "libtorch")
                yield Row(f"op_{name}_{batch}", "us", "ops", goal, peers, threads, threads == 1, batch=batch)


COST_SIZES = ("1e2", "1e3", "1e4", "1e5", "1e6", "1e7")


def _cost_rows():
    """Estimated over measured times. Below 1e3 elements there is no goal: a call is cheap whatever its estimate."""
    for size in COST_SIZES:
        goal = None if size == "1e2" else Goal(2, at_least=0.5)
        for name in op_names():
            yield Row(f"cost_{name}_{size}", "x", "costs", goal, (), batch=f"cost_{size}")


# Reference number of instructions per call, and the share of it that is the goal.
KERNELS = {"sum": (1483, 0.5), "mean": (1510, 0.85), "add_row": (1134, 0.5), "add_column": (1138, 0.5), "layer_norm": (8377, 0.5),
           "softmax": (1118, 0.85), "linear": (4087, 0.85), "matmul": (5131, 0.85), "cross_entropy": (1355, 0.85)}


def _kernel_rows():
    for name, (base, share) in KERNELS.items():
        yield Row(f"kernel_small_{name}", "instructions", "kernels", Goal(round(base * share)), (), kind="instructions")
        yield Row(f"kernel_small_{name}_ns", "ns", "kernels", None, ())


def _step_rows():
    """The same calls as steps of a program, without passes; the peer prepares its kernel at each call."""
    for name, (base, share) in KERNELS.items():
        yield Row(f"replay_small_{name}", "instructions", "no_passes/steps", Goal(round(base * share)),
                  (Peer("kernel alone", "ours/kernels", f"kernel_small_{name}"),), kind="instructions")


ISSUED = ("sum", "add_row", "add_turned", "add_mixed", "softmax", "layer_norm", "matmul", "linear", "cat", "zeros")


def _issued_rows():
    for name in ISSUED:
        yield Row(f"instructions_call_{name}", "instructions", "issued", None, (), kind="instructions")


SMALL = ("gru_b64", "gru_b1", "mlp_b1", "mlp_b8", "lenet_b1", "decode_b1", "tree", "chain_1000", "chain_10000", "chain_30000",
         "chain_100000", "mixed")

# Without mlp_b1, for which there is replay_mlp_b1_1t. mixed runs its cheap ops beside its product, and a replay one after the other.
REPLAYED_SMALL = tuple(name for name in SMALL if name not in ("mlp_b1", "mixed"))


def _small_rows():
    """Programs of small ops, in default mode beside one-thread mode and libtorch: time, CPU time and peak memory of the same runs; then
    default mode beside one-thread mode, both pinned to one CPU."""
    one_thread = Peer("Eddy, one thread", "one_thread/small")
    for name in SMALL:
        batch = f"small_{name}"
        most = 0.75 if name == "mixed" else 1.02  # its product can run beside the cheap ops
        for suffix, unit, goal in (("", "ms", most), ("_cpu", "ms", 1.2), ("_memory", "MiB", 1.3)):
            yield Row(batch + suffix, unit, "small", Goal(goal, one_thread.name), (one_thread, *LIBTORCH_SMALL), 2, False,
                      batch=batch)
        pinned = batch + "_pinned"
        yield Row(pinned, "ms", "small", Goal(1.02, one_thread.name), (one_thread,), batch=pinned)
        if name == "gru_b64":  # here instructions in flight take the most memory
            yield Row(pinned + "_memory", "MiB", "small", Goal(1.3, one_thread.name), (one_thread,), batch=pinned)


TRACES = (Peer("TorchScript trace", "torchscript"), Peer("ONNX Runtime", "onnxruntime"), Peer("Paddle", "paddle"))
COMPILERS = (Peer("inductor", "inductor"), Peer("JAX", "jax"))


def _replay_rows():
    # What a step costs beyond its loop: fused, the chain would be one step. Compilers, which fuse it, take minutes for 100,000 ops.
    for size, compilers in (("1e3", COMPILERS), ("1e5", ())):
        yield Row(f"replay_add16_{size}", "ns", "no_passes/replay", None,
                  (Peer("innermost loop", "ours/replay", f"loop_add16_{size}"), Peer("Eddy, calls", "ours/replay", f"calls_add16_{size}"),
                   *TRACES, *compilers))
    yield Row("replay_build_1e4", "us", "replay", None, ())
    yield Row("replay_build_again_1e4", "us", "replay", None, ())
    yield Row("replay_loop_add16", "ns", "loop", None, (Peer("Eddy, calls", "ours/loop", "calls_loop_add16"),))
    yield Row("replay_scan_64", "ns", "scan", None, (Peer("Eddy, calls", "ours/scan", "calls_scan_64"), Peer("unrolled", "ours/scan", "unrolled_scan_64")))

    # Two chains of steps that have no helpers.
    one_stream = Peer("Eddy, one stream", "ours/towers", "one_stream_towers_2")
    yield Row("replay_towers_2", "us", "towers", Goal(0.7, one_stream.name), (one_stream, Peer("Eddy, calls", "ours/towers", "calls_towers_2")), 2, False)
    ways = (("runs", "runs"), ("named", "runs by name"), ("stored", "through a store"))
    yield Row("replay_jobs", "instructions", "jobs", None, tuple(Peer(name, "ours/jobs", f"jobs_{way}") for way, name in ways), kind="instructions")
    ways = (("calls", "Eddy, calls"), ("functions", "two functions"), ("unread", "without the read"))
    yield Row("replay_path", "instructions", "decided", None, tuple(Peer(name, "ours/decided", f"path_{way}") for way, name in ways), kind="instructions")
    for name in ("decode", "gru"):
        yield Row(f"replay_growing_{name}", "us", "growing", None,
                  (Peer("exact", "ours/growing", f"exact_growing_{name}"), Peer("Eddy, calls", "ours/growing", f"calls_growing_{name}")))

    # Beside the same step by calls, and by hand.
    steps = {"mlp_b64": ("mlp", BY_HAND, {1: Goal(1, "by hand"), 2: Goal(1, "by hand")}),
             "mlp_b1": ("mlp", None, {1: Goal(0.85, "Eddy, calls")}),
             "cnn_b64": ("training", CNN_BY_HAND, {1: Goal(0.9, "Eddy, calls"), 2: Goal(0.9, "Eddy, calls")}),
             "transformer_b16": ("training", TRANSFORMER_BY_HAND, {1: Goal(0.96, "Eddy, calls"), 2: Goal(0.96, "Eddy, calls")})}
    fast = {"cnn_b64": Goal(0.85, "Eddy, calls"), "transformer_b16": Goal(0.94, "Eddy, calls")}
    for name, (program, by_hand, goals) in steps.items():
        for threads, goal in goals.items():
            row = f"{name}_{threads}t"
            peers = [Peer("Eddy, calls", f"ours/{program}", row)]
            if by_hand:
                peers.append(Peer(by_hand.name, by_hand.program, row))
            yield Row(f"replay_{row}", "ms", program, goal, tuple(peers), threads, threads == 1)
            if name in fast:
                yield Row(f"replay_{row}_fast", "ms", f"fast/{program}", fast[name], (peers[0],), threads, threads == 1)

    for threads in (1, 2):
        row = f"images_b64_{threads}t"
        yield Row(f"replay_{row}", "ms", "layout/images", Goal(0.95, "Eddy, without it"),
                  (Peer("Eddy, without it", "ours/images"), Peer("Eddy, channels-last", "ours/images", f"replay_last_{row}"), Peer("Eddy, calls", "ours/images", row)),
                  threads, threads == 1)
        yield Row(f"replay_{row}_subbatch", "ms", "subbatch/images", None, (Peer("Eddy, without it", "ours/images", f"replay_{row}"),), threads, threads == 1)

    # The programs of the rows small_*, by default mode; the goals are against calls, in one-thread mode.
    goals = {"gru_b64": 0.6, "decode_b1": 0.6}
    for name in REPLAYED_SMALL:
        calls = Peer("Eddy, calls", "one_thread/small", f"small_{name}")
        # All leaves are one tensor: 13 adds of the tree are different ones.
        program = "no_passes/small" if name == "tree" else "small"
        yield Row(f"replay_{name}", "ms", program, Goal(goals.get(name, 1.02), calls.name), (calls,))


# Chains of cheap elementwise ops: (ops, elements, goal against the same program without passes). 4,096 floats stay in a fast cache: there
# passes save dispatch alone.
FUSED = ((2, 704512, 0.5), (3, 704512, 0.5), (5, 704512, 0.5), (10, 704512, 0.5), (20, 704512, 0.5), (10, 4096, 1))


def _fused_rows():
    for ops, elements, most in FUSED:
        chain = f"fused_{ops}_{elements}"
        unfused = Peer("Eddy, passes off", "no_passes/fused")
        yield Row(f"replay_{chain}", "us", "fused", Goal(most, unfused.name), (unfused, Peer("Eddy, calls", "ours/fused", f"calls_{chain}"), *TRACES, *COMPILERS))


# Formulas with reductions of rows, of single ops: 64 rows stay in a fast cache, 4,000 do not.
ROW_FORMULAS = (("softmax", 64, 1000), ("softmax", 4000, 1000), ("layer_norm", 64, 1000), ("layer_norm", 4000, 1000))


def _row_formula_rows():
    for name, rows, columns in ROW_FORMULAS:
        row = f"{name}_{rows}_{columns}"
        kernel = Peer("Eddy, its kernel", "ours/row_formulas", f"kernel_{row}")
        peers = (kernel, Peer("Eddy, passes off", "no_passes/row_formulas"), Peer("Eddy, calls", "ours/row_formulas", f"calls_{row}"))
        yield Row(f"replay_{row}", "us", "row_formulas", Goal(1.25, kernel.name), peers)


def _arena_rows():
    """The arena over what is alive at once."""
    for name in ("mlp", "cnn", "transformer", "branchy"):
        yield Row(f"replay_arena_{name}", "x", "arena", Goal(1.05), (), kind="exact")
    # With the pass `subbatch`, over the arena without it: the transformer's is what its forward pass saves.
    for name, most in (("images", 0.75), ("cnn", 1), ("transformer", 1)):
        yield Row(f"replay_arena_{name}_subbatch", "x", "arena", Goal(most), (), kind="exact")


# On a GPU. A product below so many multiplications is over before its launch.
LEAST_CUDA_PRODUCT = 5e7
CUDA_OP_SIZES = ("1e4", "1e6", "1e7")
# Sizes that no cache of a GPU holds, of ops with few operands.
CUDA_LARGE_OPS = ("add", "exp", "sum", "sum_rows")
CUDA_NETWORKS = ("mlp_b64", "mlp_b256", "mlp_adam_b64", "mlp_adam_b256", "cnn_b64", "transformer_b16")
CUDA_RECORDED_NETWORKS = ("mlp_b64", "cnn_b64", "transformer_b16")

PYTORCH = Peer("PyTorch", "torch_cuda")
DRIVER = Peer("driver", "cuda/cuda_bare")
CUBLASLT = Peer("cuBLASLt", "cuda/cuda_bare")
DEVICE_COPY = Peer("device copy", "cuda/cuda_bare")


def _cuda_gemm_names():
    for name in (*_gemm_names(), "gemm_4096x4096x4096_nn"):
        m, n, k = map(int, name.split("_")[1].split("x"))
        if m * n * k >= LEAST_CUDA_PRODUCT:
            yield from (f"{name}_f32", f"{name}_f16")
    yield "gemm_4096x4096x4096_nn_bf16"


def _cuda_op_rows():
    from_memory, streamed = Goal(1 / 0.9, DEVICE_COPY.name), streamed_op_names()
    for size in CUDA_OP_SIZES:
        for name in op_names():
            # Smaller operands stay in caches, and a launch is most of what they take.
            goal = from_memory if size == "1e7" and name in streamed else Goal(1, PYTORCH.name)
            yield Row(f"cuda_op_{name}_{size}", "us", "cuda/ops", goal, (PYTORCH, DEVICE_COPY), batch=f"cuda_{size}", known_as=f"op_{name}_{size}_1t")
    for name in CUDA_LARGE_OPS:
        yield Row(f"cuda_op_{name}_1e8", "us", "cuda/cuda_measure", from_memory, (DEVICE_COPY,), batch="cuda_1e8", known_as=f"op_{name}_1e8_1t")


def _cuda_network_rows():
    for name in CUDA_NETWORKS:
        program, step = "mlp" if name.startswith("mlp") else "training", f"{name}_1t"
        yield Row(f"cuda_{name}", "ms", f"cuda/{program}", Goal(1, PYTORCH.name), (PYTORCH,), known_as=step)
        if name in CUDA_RECORDED_NETWORKS:
            calls, captured = Peer("Eddy, calls", f"cuda/{program}", step), Peer("PyTorch, captured", PYTORCH.program)
            yield Row(f"cuda_replay_{name}", "ms", f"cuda/{program}", Goal(1, calls.name), (calls, captured), known_as=f"replay_{step}")
            yield Row(f"cuda_graph_{name}", "ms", f"cuda_graphs/{program}", Goal(1.05, captured.name), (captured,), known_as=f"replay_{step}")


def _cuda_rows():
    rows = [
        Row("cuda_issue_add16", "ns", "cuda/add16", Goal(50), (PYTORCH,), known_as="issue_add16"),
        Row("cuda_launch_rate", "ns", "cuda/add16", Goal(1 / 0.9, DRIVER.name), (DRIVER, PYTORCH), known_as="end_to_end_add16"),
        Row("cuda_issue_read", "ns", "cuda/add16", Goal(1, DRIVER.name, more=2000), (DRIVER, PYTORCH), known_as="issue_read"),
        Row("cuda_alloc_hit", "ns", "cuda/cuda_measure", Goal(1, PYTORCH.name), (PYTORCH,), known_as="alloc_hit"),
        Row("cuda_h2d_1e8", "ms", "cuda/cuda_measure", Goal(1 / 0.9, DRIVER.name), (DRIVER,), known_as="h2d_1e8"),
        *(Row(f"cuda_{name}", "us", "cuda/cuda_measure", Goal(1.02, CUBLASLT.name), (CUBLASLT,), batch="cuda_gemm", known_as=name)
          for name in _cuda_gemm_names()),
        # By our own kernel, and with weights that are rounded to bf16, by cuDNN.
        Row("cuda_sdpa_bf16_2048", "us", "cuda/cuda_measure", None, (PYTORCH,), known_as="sdpa_bf16_2048"),
        Row("cuda_sdpa_bf16_2048_rounded", "us", "cuda_rounded/cuda_measure", Goal(1, PYTORCH.name), (PYTORCH,), known_as="sdpa_bf16_2048"),
        *_cuda_network_rows(),
        *_cuda_op_rows(),
    ]
    # Threads that launch and wait are beside the caller's.
    return [dataclasses.replace(row, threads=2, is_pinned=False) for row in rows]


def all_rows():
    apart = {"threads": 2, "is_pinned": False}
    return [
        Row("issue_add16", "ns", "add16", Goal(50), LIBTORCH, **apart),
        Row("end_to_end_add16", "ns", "add16", Goal(80), LIBTORCH, **apart),
        Row("caller_run_add16", "ns", "add16", Goal(60), LIBTORCH),
        Row("sparse_add16", "us", "sparse", Goal(1), (), **apart),
        Row("sparse_add16_completion", "us", "sparse", Goal(50), (), **apart),
        Row("sparse_wake", "us", "sparse", Goal(1), (), **apart),
        Row("sparse_wake_completion", "us", "sparse", Goal(50), (), **apart),
        Row("instructions_add16", "instructions", "add16", Goal(600), LIBTORCH, kind="instructions"),
        Row("empty_chain", "ns", "empty", Goal(50), TASKS, **apart),
        Row("empty_independent", "ns", "empty", Goal(50), TASKS, **apart),
        Row("empty_fan", "ns", "empty", Goal(50), TASKS, **apart),
        Row("empty_dag", "ns", "empty", Goal(50), TASKS, **apart),
        Row("fake_launch", "ns", "launched", Goal(300), (), **apart),
        # Where nobody listens: beside a build without events, and beside one without NVTX. 0 to 1 ns of about 40.
        Row("observe_off", "ns", "add16", Goal(1.025, "without events"), (Peer("without events", "no_events/add16"),)),
        Row("observe_nvtx_unwatched", "ns", "add16", Goal(1.025, "without NVTX"), (Peer("without NVTX", "no_nvtx/add16"),)),
        Row("observe_listener", "ns", "observed", None, ()),
        Row("observe_nvtx_listener", "ns", "observed", Goal(60), ()),
        Row("observe_trace_1t", "ns", "traced", Goal(100), (), **apart),
        Row("observe_trace_2t", "ns", "traced", Goal(100), (), **apart),
        Row("observe_trace_rate", "ns", "traced", Goal(200), (), **apart),
        Row("observe_trace_bytes", "MB", "traced", Goal(60), (), is_pinned=False),
        Row("observe_trace_gzip_bytes", "MB", "traced", Goal(8), (), is_pinned=False),
        Row("observe_trace_mlp_b64_1t", "x", "traced", Goal(1.1), (), is_pinned=False),
        Row("observe_top", "%", "topped", Goal(1), (), **apart),
        Row("observe_summary", "s", "summed", Goal(10), (), is_pinned=False, batch="observe_summary"),
        Row("observe_summary_memory", "MB", "summed", Goal(1000), (), is_pinned=False, batch="observe_summary"),
        Row("issue_read", "ns", "add16", Goal(100), LIBTORCH),
        Row("heap_per_op", "blocks", "add16", Goal(0), LIBTORCH, kind="heap", **apart),
        Row("mlp_b64_1t", "ms", "mlp", Goal(1.05, "by hand"), (BY_HAND, *LIBTORCH)),
        Row("mlp_b64_2t", "ms", "mlp", Goal(1.05, "by hand"), (BY_HAND, BY_HAND_THREADED, *LIBTORCH), **apart),
        Row("mlp_b256_1t", "ms", "mlp", Goal(1.05, "by hand"), (BY_HAND, *LIBTORCH)),
        Row("mlp_b256_2t", "ms", "mlp", Goal(1.05, "by hand"), (BY_HAND, BY_HAND_THREADED, *LIBTORCH), **apart),
        Row("mlp_adam_b64_1t", "ms", "mlp", Goal(1.10, "Eddy, SGD"),
            (Peer("Eddy, SGD", "ours/mlp", "mlp_b64_1t"), BY_HAND, *LIBTORCH)),
        Row("cnn_b64_1t", "ms", "training", Goal(1, "libtorch"), (*LIBTORCH_TRAINING, CNN_BY_HAND)),
        Row("cnn_b64_2t", "ms", "training", Goal(1, "libtorch"),
            (*LIBTORCH_TRAINING, CNN_BY_HAND, CNN_BY_HAND_THREADED), **apart),
        Row("transformer_b16_1t", "ms", "training", Goal(1, "libtorch"), (*LIBTORCH_TRAINING, TRANSFORMER_BY_HAND)),
        Row("transformer_b16_2t", "ms", "training", Goal(1, "libtorch"),
            (*LIBTORCH_TRAINING, TRANSFORMER_BY_HAND, TRANSFORMER_BY_HAND_THREADED), **apart),
        Row("inference_memory_b16_1t", "MiB", "inference", Goal(1, "libtorch"), LIBTORCH_TRAINING),
        Row("inference_memory_b16_2t", "MiB", "inference", Goal(1, "libtorch"), LIBTORCH_TRAINING, **apart),
        Row("relu_1e7_fresh", "ms", "relu", Goal(1 / 0.9, "copy"), (Peer("copy", "copy"), *LIBTORCH)),
        *_replay_rows(),
        *_fused_rows(),
        *_row_formula_rows(),
        *_step_rows(),
        *_arena_rows(),
        *_small_rows(),
        *_gemm_rows(),
        *_pool_rows(),
        *_op_rows(),
        *_issued_rows(),
        *_kernel_rows(),
        *_cost_rows(),
        *_cuda_rows(),
    ]


# What `eddy bench` measures where it is not told which.
USUAL = ("issue_add16", "end_to_end_add16", "caller_run_add16", "issue_read", "mlp_b64_1t", "mlp_b64_2t", "cnn_b64_1t", "transformer_b16_1t",
         "replay_mlp_b64_1t", "replay_cnn_b64_1t", "replay_transformer_b16_1t", "replay_fused_10_704512", "small_gru_b64", "small_decode_b1",
         "op_add_1e6_1t", "op_exp_1e6_1t", "op_sum_1e6_1t", "op_softmax_1e6_1t", "op_matmul_1e6_1t", "op_conv2d_1e6_1t")


def installed_rows(programs):
    """Those that a program of `programs` prints, and that are measured as they stand there; the usual ones first."""
    chosen = [row for row in all_rows()
              if row.kind in ("time", "exact") and not row.needs_gpu() and row.program.split("/")[-1] in programs]
    chosen.sort(key=lambda row: USUAL.index(row.name) if row.name in USUAL else len(USUAL))
    for row in chosen:
        mode, _, program = row.ours().program.partition("/")
        yield {"name": row.name, "unit": row.unit, "program": program, "environment": peers.MODES[mode + "/"], "threads": row.threads,
               "is_pinned": row.is_pinned, "batch": row.batch, "is_usual": row.name in USUAL}


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as to:
        json.dump(list(installed_rows(sys.argv[2:])), to, indent=0)
