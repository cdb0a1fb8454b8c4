#!/bin/sh
# Makes an optimised build of Eddy, measures it beside its peers and prints one table (bench/README.md explains it).
#
#   --only NAME     measures one row, or with NAME* all rows with that prefix; may be repeated
#   --json FILE     also writes the rows to FILE
#   --list          prints the rows' names
#   --rounds N, --samples N, --retries N, --libtorch DIR, --blas DIR, --python PROGRAM: see bench/README.md
#
# Peers are measured if they are installed: libtorch-dev, libtbb-dev, libopenblas-serial-dev, libopenblas0-pthread,
# libblis-serial-dev, libdnnl-dev, gcc's OpenMP.
set -eu
cd "$(dirname "$0")/.."

for argument; do
    case $argument in
    --help | -h)
        sed -n '2,10s/^# \{0,1\}//p' tools/bench.sh
        exit 0
        ;;
    --list) PYTHONDONTWRITEBYTECODE=1 exec python3 bench/run.py --build build/bench "$@" ;;
    esac
done

tools/packages.sh libopenblas-serial-dev valgrind
tools/build.sh bench 300 --buildtype=release -Dbench=true -Dtests=false

PYTHONDONTWRITEBYTECODE=1 exec python3 bench/run.py --build build/bench "$@"
