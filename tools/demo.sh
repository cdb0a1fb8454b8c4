#!/bin/sh
# Makes an optimised build of Eddy and trains a network on Fashion-MNIST with it: demo.sh [OPTION...]
#
# Installs missing packages. Options are passed to the example: demo.sh --epochs 1 --model cnn. examples/README.md describes
# them, and after the build build/release/examples/fashion_mnist --help lists them.
set -eu
cd "$(dirname "$0")/.."

for argument; do
    case $argument in
    --help | -h)
        sed -n '2,5s/^# \{0,1\}//p' tools/demo.sh
        exit 0
        ;;
    esac
done

tools/packages.sh dataset-fashion-mnist
tools/build.sh release 200 --buildtype=release -Dtests=false

exec build/release/examples/fashion_mnist "$@"
