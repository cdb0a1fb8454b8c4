#!/bin/sh
# Builds what tools/gpu-check.sh needs on a machine that has a GPU and nothing else: gpu-kit.sh [ARCHITECTURE...]
#
# build/gpu-kit.tar.gz holds the libraries, the tests for CUDA devices and those that run there once more, the bench and an example, all
# stripped, and the shared libraries that they need besides the C library. The architectures (90 by default, for sm_90) get machine code;
# others compile the kernels when they first load them. The machine needs the driver of CUDA 13 or later.
set -eu
cd "$(dirname "$0")/.."

for argument; do
    case $argument in
    --help | -h)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *[!0-9]* | '')
        echo "gpu-kit.sh: $argument is no architecture, as 90 is (--help)" >&2
        exit 1
        ;;
    esac
done
[ $# -gt 0 ] || set -- 90
architectures=$(echo "$*" | tr ' ' ',')

most_bytes=50331648 # 48 MB
build=build/gpu
kit=build/gpu-kit

tools/packages.sh g++ binutils cmake libcriterion-dev libdlpack-dev python3-numpy
tools/cuda_headers.sh >/dev/null
# Of the CPU's instruction sets what each processor has, and one for the loops: the others would take 10 MB.
options="--buildtype=debugoptimized -Dcuda=enabled -Dbench=true -Disa=portable,v3 -Dgpu_architectures=$architectures"
if [ -f "$build/build.ninja" ]; then
    # shellcheck disable=SC2086  # a list of options
    meson configure "$build" $options >/dev/null
fi
# shellcheck disable=SC2086  # a list of options
tools/build.sh gpu 1000 $options -- bench/op_rows.h
measuring='bench/cuda/cuda_measure bench/cuda/cuda_bare bench/ours/add16 bench/ours/ops bench/ours/mlp bench/ours/training'
others='bench/cuda/cuda_lost examples/char_transformer'
tools/gpu_suite.py "$build" >"$build/suite"
programs=
for room in functional program interpreter streams exchange; do
    for test in $(find "tests/$room" -name 'test_cuda*.c' | sort); do
        programs="$programs tests/test-$room-$(basename "$test" .c | cut -c6-)"
    done
done
programs="$programs $(awk '{ print "tests/test-" $1 }' "$build/suite" | tr '\n' ' ')"
# shellcheck disable=SC2086  # lists of names
tools/build.sh gpu 1000 -- libeddy-cuda.so $measuring $others $programs

rm -rf "$kit"
mkdir -p "$kit/lib" "$kit/tests" "$kit/bin" "$kit/bench/cuda" "$kit/bench/ours" "$kit/bench/peers"
for program in $programs; do
    cp "$build/$program" "$kit/tests/"
done
for program in $others; do
    cp "$build/$program" "$kit/bin/"
done
for program in $measuring; do
    cp "$build/$program" "$kit/$program"
done
cp "$build/suite" "$kit/tests/"
cp bench/*.py bench/shapes.h bench/pools.h "$build/bench/op_rows.h" "$kit/bench/"
cp bench/peers/torch_cuda.py "$kit/bench/peers/"
cp "$build/libeddy-cuda.so" "$kit/lib/"
cp tools/gpu-check.sh LICENSE kernels/cuda/LICENSE.cub "$kit/"
cat docs/*.md >"$kit/text"
git rev-parse --short HEAD >"$kit/commit"

# What the programs are linked to, but for the C library.
# shellcheck disable=SC2086  # a list of names
(cd "$build" && ldd $measuring $others $programs) | awk '$2 == "=>" { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt)\.so' | xargs -I '{}' cp -L '{}' "$kit/lib/"
find "$kit/bin" "$kit/tests" "$kit/lib" "$kit/bench" -type f ! -name '*.py' ! -name '*.h' ! -name suite -exec strip --strip-unneeded '{}' +

tar -C build -czf "$kit.tar.gz" gpu-kit
bytes=$(stat -c %s "$kit.tar.gz")
if [ "$bytes" -gt "$most_bytes" ]; then
    echo "$kit.tar.gz has $bytes bytes, and $most_bytes are the most" >&2
    exit 1
fi
echo "$kit.tar.gz: $((bytes / 1000000)) MB. There: tar xzf gpu-kit.tar.gz && gpu-kit/gpu-check.sh"
