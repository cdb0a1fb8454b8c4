"""The peers: what each needs, where it is found, how its program is built. A missing peer is reported, and is no failure."""

import os
import shlex
import shutil
import subprocess

import process

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
HEADERS = ("sample.h", "calls.h", "shapes.h", "pools.h", "ops.h", "programs.h", "heap_count.h", "resident.h", "peers/by_hand.h",
           "peers/torch_transformer.h")


# Headers that meson generates in the build folder.
MADE_HEADERS = ("bench/op_rows.h",)

# Other builds of Eddy, named in front of a program of ours, and what tells them from the one that is measured. They take minutes, and are made when a row asks for one.
BUILDS = {"no_events/": ["-Devents=false"], "no_nvtx/": ["-Dnvtx=disabled"]}

# Ways to run a program of ours, named in front of it, and the environment variables of each.
MODES = {"ours/": {}, "one_thread/": {"EDDY_ONE_THREAD": "1"}, "no_passes/": {"EDDY_PASSES": "none"},
         "fast/": {"EDDY_PASSES": "all,fast"}, "layout/": {"EDDY_PASSES": "all,layout"}, "subbatch/": {"EDDY_PASSES": "all,subbatch"},
         "cuda/": {"EDDY_DEVICE": "cuda"}, "cuda_graphs/": {"EDDY_DEVICE": "cuda", "EDDY_CUDA_GRAPHS": "1"},
         "cuda_rounded/": {"EDDY_DEVICE": "cuda", "EDDY_ALLOW_ROUNDED_WEIGHTS": "1"}}
GPU_MODES = tuple(mode for mode in MODES if mode.startswith("cuda"))


class Missing(Exception):
    """The peer cannot be built here; the text says what is missing."""


class Peers:
    """Builds peers' programs on demand into a folder of the build, and remembers which could not be built.

    build: folder of Eddy's programs and of generated headers. libtorch: folder of a libtorch besides Debian's, or None. blas: folder of a threaded libopenblas.so.0, or None. python: the interpreter whose
    packages are peers."""

    def __init__(self, build, libtorch=None, blas=None, python="python3"):
        self.build = build
        self.folder = os.path.join(build, "peers")
        self.libtorch = libtorch
        self.python = python
        self.multiarch = _output(["gcc", "-print-multiarch"])
        self.threaded_blas = blas or self._library_folder("openblas-pthread", "libopenblas.so.0")
        self.serial_blas = self._library_folder("openblas-serial", "libopenblas.so.0")
        self._programs = {}
        os.makedirs(self.folder, exist_ok=True)

    def program(self, name):
        """Path of a peer's program, which is built on the first call. Raises Missing, with the same text each time."""
        if name not in self._programs:
            try:
                self._programs[name] = self._program_of_build(name) if name.startswith(tuple(BUILDS)) else getattr(self, "_build_" + name)()
            except Missing as error:
                self._programs[name] = error
        if isinstance(self._programs[name], Missing):
            raise self._programs[name]
        return self._programs[name]

    def environment(self, name, threads):
        """Environment variables of a peer's program besides the number of threads. Raises Missing."""
        if name.startswith(GPU_MODES):
            return {**MODES[name.split("/")[0] + "/"], **self._loaded(self.build, os.path.join(self.build, "lib"))}
        if name == "torch_cuda":
            return self._loaded()
        for mode, variables in MODES.items():
            if name.startswith(mode):
                return variables
        if name.endswith("by_hand_threaded_blas"):
            if not self.threaded_blas:
                raise Missing("no threaded OpenBLAS (libopenblas0-pthread, or --blas DIR)")
            return {"LD_LIBRARY_PATH": self.threaded_blas, "OMP_NUM_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": str(threads)}
        if name.endswith("by_hand"):
            # The serial OpenBLAS has no lock for its buffers: concurrent calls may corrupt each other's products.
            blas = (self.threaded_blas if threads > 1 else None) or self.serial_blas or self.threaded_blas
            return {"LD_LIBRARY_PATH": blas} if blas else {}
        if name.startswith("libtorch"):
            blas = (self.threaded_blas if threads > 1 else None) or self.serial_blas or self.threaded_blas
            return {"LD_LIBRARY_PATH": blas, "OPENBLAS_NUM_THREADS": str(threads)} if blas else {}
        return {}

    def program_of_ours(self, name):
        """Path of a program of ours, named with its mode. Raises Missing."""
        paths = [os.path.join(self.build, "bench", folder, name.split("/")[1]) for folder in ("ours", "cuda")]
        for path in paths:
            if os.path.exists(path):
                return path
        raise Missing(f"{paths[0]} is not built")

    def gpu_missing(self):
        """Why there is no GPU for Eddy, or ""."""
        try:
            process.run([self.program_of_ours("cuda/cuda_measure")], extra=self.environment("cuda/cuda_measure", 1))
            return ""
        except (Missing, process.Failed) as error:
            return str(error)

    @staticmethod
    def _loaded(*folders):
        """Where the loader finds the plug-in, the driver and NVIDIA's libraries: in these folders, and as in the user's shell."""
        path = ":".join([*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        return {"LD_LIBRARY_PATH": path} if path else {}

    def remark(self, name, row, threads):
        """A remark on a peer's figures in a row with this number of threads, or None."""
        if threads == 1 or self.threaded_blas:
            return None
        if name.startswith("libtorch") and row.program in ("mlp", "training", "small"):
            return "libtorch: its BLAS here is serial, so its matrix products use one thread"
        if name.endswith("by_hand"):
            return "by hand: its BLAS here is serial and takes no lock, so its threads may spoil each other's products"
        return None

    def probe(self):
        return self._compile("probe", ["gcc", "-O2"], ["probe.c"], ["-lpthread"])

    def heap_counter(self):
        """The library to preload for heap_per_op."""
        return self._compile("libheap_count.so", ["gcc", "-O2", "-shared", "-fPIC"], ["heap_count.c"], [])

    # One builder per program; each raises Missing if its library is not found.

    def _program_of_build(self, name):
        """A program of ours of another build."""
        build, _, program = name.partition("/")
        folder = os.path.join(self.folder, build)
        target = f"bench/ours/{program}"
        commands = [["meson", "setup", folder, ROOT, "--buildtype=release", "-Dbench=true", "-Dtests=false", "-Dexamples=false", "-Dcuda=disabled", *BUILDS[build + "/"]],
                    ["ninja", "-C", folder, target]]
        for command in commands[os.path.exists(os.path.join(folder, "build.ninja")):]:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(f"the build {build} failed: {(done.stdout.strip().splitlines() or ['no message'])[-1][:150]}")
        return os.path.join(folder, target)

    def _build_copy(self):
        return self._compile("copy", ["gcc", "-O2", "-fopenmp"], ["peers/copy.c"], [])

    def _build_openmp(self):
        return self._compile("openmp_tasks", ["gcc", "-O2", "-fopenmp"], ["peers/openmp_tasks.c"], [])

    def _build_tbb(self):
        self._need_header(["tbb/flow_graph.h"], "libtbb-dev")
        return self._compile("tbb_tasks", ["g++", "-O2", "-std=c++17"], ["peers/tbb_tasks.cpp"], ["-ltbb"])

    def _build_by_hand(self):
        return self._compile_by_hand("mlp_by_hand")

    def _build_cnn_by_hand(self):
        return self._compile_by_hand("cnn_by_hand")

    def _build_transformer_by_hand(self):
        return self._compile_by_hand("transformer_by_hand")

    _build_by_hand_threaded_blas = _build_by_hand
    _build_cnn_by_hand_threaded_blas = _build_cnn_by_hand
    _build_transformer_by_hand_threaded_blas = _build_transformer_by_hand

    def _compile_by_hand(self, program):
        blas = self.serial_blas or self.threaded_blas
        if not blas:
            raise Missing("no OpenBLAS (libopenblas-serial-dev)")
        return self._compile(program,
                             ["gcc", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp",
                              *self._openblas_include()],
                             [f"peers/{program}.c"], ["-L" + blas, "-l:libopenblas.so.0", "-lm"])

    def _build_openblas(self):
        if not self.serial_blas:
            raise Missing("no serial OpenBLAS (libopenblas-serial-dev)")
        return self._compile("gemm_openblas", ["gcc", "-O2", *self._openblas_include()], ["peers/gemm.c"],
                             ["-L" + self.serial_blas, "-l:libopenblas.so.0", "-Wl,-rpath," + self.serial_blas])

    def _build_blis(self):
        folder = self._library_folder("blis-serial", "libblis.so.4")
        include = f"/usr/include/{self.multiarch}/blis-serial"
        if not folder or not os.path.exists(include + "/cblas.h"):
            raise Missing("no serial BLIS (libblis-serial-dev)")
        return self._compile("gemm_blis", ["gcc", "-O2", "-isystem", include], ["peers/gemm.c"],
                             ["-L" + folder, "-l:libblis.so.4", "-Wl,-rpath," + folder])

    def _build_onednn(self):
        self._need_header(["oneapi/dnnl/dnnl.h"], "libdnnl-dev")
        return self._compile("gemm_dnnl", ["gcc", "-O2", "-DPEER_DNNL"], ["peers/gemm.c"], ["-ldnnl"])

    def _build_onednn_pool(self):
        self._need_header(["oneapi/dnnl/dnnl.h"], "libdnnl-dev")
        return self._compile("pool_dnnl", ["gcc", "-O2"], ["peers/pool.c"], ["-ldnnl"])

    def _build_libtorch(self):
        return self._compile_with_debians_libtorch("torch")

    def _build_libtorch_ops(self):
        return self._compile_with_debians_libtorch("torch_ops")

    def _build_libtorch_training(self):
        return self._compile_with_debians_libtorch("torch_training")

    def _build_libtorch_small(self):
        return self._compile_with_debians_libtorch("torch_small")

    def _build_given_libtorch(self):
        return self._compile_with_given_libtorch("torch")

    def _build_given_libtorch_ops(self):
        return self._compile_with_given_libtorch("torch_ops")

    def _build_given_libtorch_training(self):
        return self._compile_with_given_libtorch("torch_training")

    def _build_given_libtorch_small(self):
        return self._compile_with_given_libtorch("torch_small")

    def _build_torchscript(self):
        return self._python_peer("torchscript", "torch")

    def _build_inductor(self):
        return self._python_peer("inductor", "torch")

    def _build_jax(self):
        return self._python_peer("jax", "jax")

    def _build_onnxruntime(self):
        return self._python_peer("onnxruntime", "onnxruntime, onnx")

    def _build_paddle(self):
        return self._python_peer("paddle", "paddle")

    def _build_torch_cuda(self):
        return self._script("torch_cuda", "torch", ["torch_cuda.py", os.path.join(self.build, "bench", "op_rows.h")])

    def _python_peer(self, framework, modules):
        return self._script(framework, f"numpy, {modules}", ["compiled.py", framework])

    def _script(self, name, modules, words):
        """A program that calls a script in peers/."""
        done = subprocess.run([self.python, "-c", f"import {modules}"], capture_output=True, check=False) if shutil.which(self.python) else None
        if done is None or done.returncode:
            raise Missing(f"no Python package {modules.removeprefix('numpy, ')} (--python PROGRAM)")
        target = os.path.join(self.folder, name)
        command = shlex.join([self.python, os.path.join(HERE, "peers", words[0]), *words[1:]])
        with open(target, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {command} "$@"\n')
        os.chmod(target, 0o755)
        return target

    def _compile_with_debians_libtorch(self, program):
        api = "/usr/include/torch/csrc/api/include"
        if not os.path.exists(api + "/torch/torch.h"):
            raise Missing("no libtorch (libtorch-dev, or --libtorch DIR)")
        return self._compile(program, ["g++", "-O2", "-std=c++17", "-isystem", api], [f"peers/{program}.cpp"],
                             ["-ltorch", "-ltorch_cpu", "-lc10"])

    def _compile_with_given_libtorch(self, program):
        base = self.libtorch + "/include"
        api = base + "/torch/csrc/api/include"
        if not os.path.exists(api + "/torch/torch.h"):
            raise Missing(f"no libtorch in {self.libtorch}")
        # A CPU program does not need the dependencies of the wheel's device libraries.
        libraries = ["-L" + self.libtorch + "/lib", "-Wl,-rpath," + self.libtorch + "/lib",
                     "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-ltorch_cpu", "-lc10"]
        refusal = None
        # The newest versions require C++20; older wheels use the old ABI of std::string.
        for dialect in (["-std=c++20"], ["-std=c++17"], ["-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0"]):
            try:
                return self._compile("given_" + program, ["g++", "-O2", *dialect, "-isystem", base, "-isystem", api],
                                     [f"peers/{program}.cpp"], libraries)
            except Missing as error:
                refusal = refusal or error
        raise refusal

    def _openblas_include(self):
        for variant in ("openblas-serial", "openblas-pthread"):
            folder = f"/usr/include/{self.multiarch}/{variant}"
            if os.path.exists(folder + "/cblas.h"):
                return ["-isystem", folder]
        raise Missing("no cblas.h of OpenBLAS (libopenblas-serial-dev)")

    def _library_folder(self, variant, library):
        folder = f"/usr/lib/{self.multiarch}/{variant}"
        return folder if os.path.exists(f"{folder}/{library}") else None

    def _need_header(self, headers, package):
        for header in headers:
            if not any(os.path.exists(f"{folder}/{header}")
                       for folder in ("/usr/include", "/usr/local/include", f"/usr/include/{self.multiarch}")):
                raise Missing(f"no {header} ({package})")

    def _compile(self, name, compiler, sources, libraries):
        """Compiles, unless the program is newer than its sources and was compiled by the same command."""
        target = os.path.join(self.folder, name)
        paths = [os.path.join(HERE, source) for source in sources]
        command = [*compiler, "-I" + ROOT, "-I" + self.build, *paths, "-o", target, *libraries]
        note = target + ".command"
        inputs = paths + [os.path.join(HERE, header) for header in HEADERS]
        inputs += [path for path in (os.path.join(self.build, header) for header in MADE_HEADERS) if os.path.exists(path)]
        if os.path.exists(target) and _text(note) == shlex.join(command) \
                and os.path.getmtime(target) >= max(os.path.getmtime(path) for path in inputs):
            return target
        if not shutil.which(compiler[0]):
            raise Missing(f"no {compiler[0]}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
            raise Missing(f"{name} does not build: {(lines or ['no message'])[0][:150]}")
        with open(note, "w", encoding="utf-8") as file:
            file.write(shlex.join(command))
        return target


def _output(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None
