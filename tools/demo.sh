#!/bin/sh
# Builds Eddy optimised and trains a network on Fashion-MNIST with it. Arguments go to the example: demo.sh --epochs 1
set -eu
cd "$(dirname "$0")/.."

tools/packages.sh dataset-fashion-mnist

build=build/release
tools/build_folder.sh
log=build/demo.log
fail() {
    tail -n 40 "$log" >&2
    echo "the build failed; all of it is in $log; to begin afresh, delete build/" >&2
    exit 1
}
if [ ! -f "$build/build.ninja" ]; then
    echo "building (once, a minute or two)"
    meson setup "$build" --buildtype=release -Dtests=false >"$log" 2>&1 || fail
fi
ninja -C "$build" >"$log" 2>&1 || fail

exec "$build/examples/fashion_mnist" "$@"
