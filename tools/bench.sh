#!/bin/sh
# Builds Eddy optimised, measures it beside its peers and prints one table (bench/README.md explains it).
#
#   --only NAME     one row; NAME* takes all that begin so; may be given again
#   --json FILE     also writes the rows there
#   --list          prints the rows' names
#   --rounds N, --samples N, --retries N, --libtorch DIR, --blas DIR: see bench/README.md
#
# Peers are measured where they are installed: libtorch-dev, libtbb-dev, libopenblas-serial-dev, libopenblas0-pthread,
# libblis-serial-dev, libdnnl-dev, gcc's OpenMP.
set -eu
cd "$(dirname "$0")/.."

tools/packages.sh libopenblas-serial-dev valgrind

build=build/bench
tools/build_folder.sh
log=build/bench.log
fail() {
    tail -n 40 "$log" >&2
    echo "the build failed; all of it is in $log; to begin afresh, delete build/" >&2
    exit 1
}
if [ ! -f "$build/build.ninja" ]; then
    echo "building (once, a minute or two)"
    meson setup "$build" --buildtype=release -Dbench=true -Dtests=false >"$log" 2>&1 || fail
fi
ninja -C "$build" >"$log" 2>&1 || fail

PYTHONDONTWRITEBYTECODE=1 exec python3 bench/run.py --build "$build" "$@"
