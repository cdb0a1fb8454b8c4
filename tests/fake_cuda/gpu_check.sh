#!/bin/sh
# The step `life` of tools/gpu-check.sh, on the fake driver with one device, as a GPU's machine mostly has: gpu_check.sh SOURCE BUILD. What needs two devices, or what the fake alone can do, has to be skipped
# or left out there, since a test that fails without a fault hides one that has found it.
set -eu
source=$1
build=$2
kit=$(mktemp -d)
trap 'rm -rf "$kit"' EXIT
mkdir "$kit/tests" "$kit/bin" "$kit/lib"
for program in "$build"/tests/test-interpreter-cuda "$build"/tests/test-interpreter-cuda_across "$build"/tests/test-interpreter-cuda_copies "$build"/tests/test-streams-cuda "$build"/tests/test-exchange-cuda_dlpack; do
    ln -s "$program" "$kit/tests/"
done
# The fake runs no text of PTX, as the kernel is that traps.
printf '#!/bin/sh\necho "lost: not tried"\n' >"$kit/bin/cuda_lost"
chmod +x "$kit/bin/cuda_lost"
cp "$source/tools/gpu-check.sh" "$kit/"
unset FAKE_CUDA_SEED
OUT=$kit/out FAKE_CUDA_DEVICES=1 "$kit/gpu-check.sh" life || {
    tail -n 40 "$kit"/out/*.log
    exit 1
}
OUT=$kit/out FAKE_CUDA_DEVICES=1 "$kit/gpu-check.sh" nsys >/dev/null # one that has little to do
for name in streams conformance; do
    grep -q '"step": "life", "name": "'$name'", "verdict": "passed", "value": "[1-9]' "$kit/out/report.json"
done
grep -q '"step": "nsys", "name": "seconds"' "$kit/out/report.json"
