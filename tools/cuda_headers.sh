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
    # The first is a script's where that stands for nvcc.
    for toolkit in "$(dirname "$(dirname "$(readlink -f "$nvcc")")")" /usr/local/cuda; do
        if is_release "$toolkit/include"; then
            echo "$toolkit/include"
            exit 0
        fi
    done
fi

fetched=$PWD/build/cuda_headers/nvidia/cu13/include
if is_release "$fetched"; then
    echo "$fetched"
    exit 0
fi
$fetches || exit 0

python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
    tools/packages.sh python3-pip >&2
    python=/usr/bin/python3
fi
mkdir -p build
folder=$(mktemp -d build/cuda_headers.XXXXXX)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
echo "fetching CUDA's headers" >&2
# They are the same for all processors.
if ! $python -m pip download --quiet --no-deps --require-hashes --only-binary :all: --platform manylinux2014_x86_64 \
    --dest "$folder" --requirement tools/cuda_headers.txt >&2; then
    echo "CUDA's headers could not be fetched (tools/cuda_headers.txt)." >&2
    exit 1
fi
for wheel in "$folder"/*.whl; do
    python3 -m zipfile -e "$wheel" "$folder/headers"
done
# Whole or not at all: another run may have been faster.
mv -T "$folder/headers" build/cuda_headers 2>/dev/null || true
if ! is_release "$fetched"; then
    echo "CUDA's headers are not what tools/cuda_headers.txt says, or build/cuda_headers has others: delete it." >&2
    exit 1
fi
echo "$fetched"
