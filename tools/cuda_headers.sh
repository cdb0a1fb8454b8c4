#!/bin/sh
# Prints the folder of CUDA's headers that the tests compile kernels with for this processor: the toolkit's, if its CCCL is release 3.0, else
# build/cuda_headers, to which they are fetched from PyPI (6 MB) if they are not there. Exit status 1, with a sentence, if that fails.
#
#   --present   fetches nothing: prints nothing, with exit status 0, where they are not there
#   --fetched   no toolkit's: for a system without one that gets this folder
set -eu
cd "$(dirname "$0")/.."

fetches=true
takes_toolkit=true
for argument; do
    case $argument in
    --present) fetches=false ;;
    --fetched) takes_toolkit=false ;;
    --help | -h)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "cuda_headers.sh: unknown option $argument (--help lists them)" >&2
        exit 1
        ;;
    esac
done

# The tests stand in for parts of CCCL that change with its releases (tests/fake_cuda/kernels/cccl).
is_release() {
    grep -qs '^#define CCCL_VERSION 3000' "$1/cccl/cuda/std/__cccl/version.h"
}

nvcc=$(PATH="$PATH:/usr/local/cuda/bin" command -v nvcc || true)
if [ -n "$nvcc" ] && $takes_toolkit; then
    toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
    if is_release "$toolkit"; then
        echo "$toolkit"
        exit 0
    fi
fi

fetched=$PWD/build/cuda_headers/nvidia/cu13/include
if ! is_release "$fetched" && $fetches; then
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        tools/packages.sh python3-pip >&2
        python=/usr/bin/python3
    fi
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    echo "fetching CUDA's headers" >&2
    # They are the same for all processors.
    if ! $python -m pip download --quiet --no-deps --require-hashes --only-binary :all: --platform manylinux2014_x86_64 \
        --dest "$folder" --requirement tools/cuda_headers.txt >&2; then
        echo "CUDA's headers could not be fetched (tools/cuda_headers.txt)." >&2
        exit 1
    fi
    # Whole or not at all.
    rm -rf build/cuda_headers
    for wheel in "$folder"/*.whl; do
        python3 -m zipfile -e "$wheel" "$folder/headers"
    done
    mkdir -p build
    mv "$folder/headers" build/cuda_headers
fi
if is_release "$fetched"; then
    echo "$fetched"
fi
