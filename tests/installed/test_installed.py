#!/usr/bin/env python3
"""What `meson install` lays down serves a program: C and C++, shared and static, found by pkg-config or by CMake.

Usage: test_installed.py pkg-config|cmake MESON BUILD   ($CC and $CXX name the compilers)
The files go to a folder that is deleted in the end. Exit status 77: no CMake."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
EXIT_SKIPPED = 77

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(user C CXX)
find_package(eddy 99 QUIET)
if(eddy_FOUND)
  message(FATAL_ERROR "version 99 is not there")
endif()
find_package(eddy @SERIES@ REQUIRED)
foreach(source @SOURCES@)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE eddy::eddy)
  add_executable(${name}_static ${source})
  target_link_libraries(${name}_static PRIVATE eddy::eddy_static)
endforeach()
"""


def output(command, **environment):
    """What it prints; ends the test where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


class PkgConfig:
    """eddy.pc below a folder that stands for the root of the file system."""

    def __init__(self, root):
        file = next(root.rglob("eddy.pc"))
        self.prefix = root / re.search("^prefix=/?(.*)$", file.read_text(), re.M).group(1)
        # No other library's .pc is to be found, as on a machine without the packages that Eddy is built with.
        self.environment = {"PKG_CONFIG_LIBDIR": str(file.parent), "PKG_CONFIG_PATH": ""}
        self.libraries = str(file.parent.parent)
        self.pages = next(root.rglob("share/doc/eddy"))

    def ask(self, *question):
        return output(["pkg-config", f"--define-variable=prefix={self.prefix}", *question, "eddy"],
                      **self.environment).split()


def expect(holds, sentence):
    if not holds:
        sys.exit(sentence)


def check_flags(package):
    """A program needs where the headers lie, where the library lies, and its name."""
    flags = package.ask("--cflags", "--libs")
    expect(flags == [f"-I{package.prefix}/include", f"-L{package.libraries}", "-leddy"], f"eddy.pc says {flags}")


def check_library(package):
    """What it needs lies where it looks: folders of the system, and BLIS's, which is none."""
    dynamic = output(["readelf", "-d", f"{package.libraries}/libeddy.so"])
    expect("libblis" not in dynamic or re.search(r"RUNPATH.*blis-serial", dynamic), f"no way to BLIS:\n{dynamic}")


def check_pages(package):
    for name in ("LICENSE", "README.md", "docs/errors.md", "docs/install.md", "examples/README.md", "examples/hello.c"):
        expect((package.pages / name).is_file(), f"{name} is not installed")
    manual = package.prefix / "share/man/man3"
    for name in ("eddy", "eddy_softmax", "eddy_scope_begin"):
        expect((manual / f"{name}.3").is_file(), f"{name}.3 is not installed")


def check_tool(package):
    """The command finds the library and the op list from where it lies; a build without it has none of its files."""
    tool = package.prefix / "bin/eddy"
    files = [package.prefix / "share" / name for name in (
        "man/man1/eddy.1", "bash-completion/completions/eddy", "zsh/site-functions/_eddy", "fish/vendor_completions.d/eddy.fish")]
    expect(all(file.is_file() == tool.is_file() for file in files), f"of {files} some are there alone")
    if tool.is_file():
        expect("eddy_relu" in output([tool, "ops", "relu"]), "eddy ops")


def check_uninstall(build, root):
    output(["ninja", "-C", build, "uninstall"])
    left = [str(file) for file in root.rglob("*") if not file.is_dir()]
    expect(not left, f"left behind: {left}")


def with_pkg_config(package, folder):
    examples = package.pages / "examples"
    check_flags(package)
    shared = package.ask("--cflags", "--libs")
    static = package.ask("--cflags") + [flag.replace("-leddy", "-l:libeddy.a")
                                        for flag in package.ask("--static", "--libs")]
    c = [CC, "-std=c11", "-Wpedantic", *WARNINGS]
    ways = [(compiler, examples / name, flags) for name in ("hello.c", "custom_op.c")
            for compiler, flags in ((c, shared), (c, static))]
    if shutil.which(CXX):
        # The examples are C: as C++ they take extensions of GNU's, which warnings would name.
        ways += [([CXX, "-std=c++17", "-x", "c++"], examples / name, ["-x", "none", *shared])
                 for name in ("hello.c", "custom_op.c")]
        ways += [([CXX, "-std=c++17", *WARNINGS], HERE / "in_cpp.cpp", shared)]
    else:
        print("no C++ compiler: C only")
    program = folder / "program"
    for compiler, source, flags in ways:
        output([*compiler, source, "-o", program, *flags])
        output([program], LD_LIBRARY_PATH=package.libraries)


def with_cmake(package, folder):
    examples = package.pages / "examples"
    version = package.ask("--modversion")[0]
    sources = [examples / "hello.c", examples / "custom_op.c", HERE / "in_cpp.cpp"]
    text = CMAKE_LISTS.replace("@SERIES@", ".".join(version.split(".")[:2]))
    (folder / "CMakeLists.txt").write_text(text.replace("@SOURCES@", " ".join(map(str, sources))))
    output(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={package.prefix}",
            f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}"])
    output(["cmake", "--build", folder / "build"])
    for source in sources:
        output([folder / "build" / source.stem])
        output([folder / "build" / (source.stem + "_static")])


def main():
    way, meson, build = sys.argv[1:]
    if way == "cmake" and not (shutil.which("cmake") and shutil.which(CXX)):
        print("no CMake, or no C++ compiler")
        sys.exit(EXIT_SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        target = pathlib.Path(name)
        root, folder = target / "root", target / "user"
        output([meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root])
        folder.mkdir()
        package = PkgConfig(root)
        check_library(package)
        check_pages(package)
        check_tool(package)
        (with_cmake if way == "cmake" else with_pkg_config)(package, folder)
        check_uninstall(build, root)


main()
