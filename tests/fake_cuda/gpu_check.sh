#!/bin/sh
# Steps of tools/gpu-check.sh, on the fake driver with one device, as a GPU's machine mostly has: gpu_check.sh SOURCE BUILD. What needs two devices, or what the fake alone can do, has to be skipped
# or left out there, since a test that fails without a fault hides one that has found it. Of steps that take minutes, a part.
set -eu
source=$1
build=$2
kit=$(mktemp -d)
trap 'rm -rf "$kit"' EXIT
mkdir -p "$kit/tests" "$kit/bin" "$kit/lib" "$kit/bench/peers"
for test in exchange-cuda_dlpack interpreter-apply interpreter-cuda interpreter-cuda_across interpreter-cuda_copies program-cuda_fusion_cache program-feeds streams-cuda \
    functional-cuda functional-cuda_attention functional-cuda_late functional-cuda_product functional-cuda_reduce functional-cuda_scatter \
    functional-cuda_softmax functional-cuda_sort functional-elementwise; do
    ln -s "$build/tests/test-$test" "$kit/tests/"
done
"$source/tools/gpu_suite.py" "$build" | grep '^program-feeds \|^interpreter-apply ' >"$kit/tests/suite"
# The fake runs no text of PTX, as the kernel is that traps.
printf '#!/bin/sh\necho "lost: not tried"\n' >"$kit/bin/cuda_lost"
# A sanitizer that finds nothing.
printf '#!/bin/sh\nshift 6\nexec "$@"\n' >"$kit/bin/compute-sanitizer"
chmod +x "$kit/bin/cuda_lost" "$kit/bin/compute-sanitizer"
ln -s "$build/bench/cuda" "$build/bench/ours" "$kit/bench/"
cp "$source"/bench/*.py "$source/bench/shapes.h" "$source/bench/pools.h" "$build/bench/op_rows.h" "$kit/bench/"
cp "$source/bench/peers/torch_cuda.py" "$kit/bench/peers/"
cp "$source/tools/gpu-check.sh" "$kit/"
unset FAKE_CUDA_SEED
export OUT="$kit/out" FAKE_CUDA_DEVICES=1 GPU_CHECK_TOOLS=memcheck GPU_CHECK_ROWS='cuda_alloc_hit cuda_op_add_1e4'
PATH=$kit/bin:$PATH "$kit/gpu-check.sh" smoke life programs sanitize bench || {
    tail -n 40 "$kit"/out/*.log "$kit"/out/*.err
    exit 1
}
"$kit/gpu-check.sh" nsys >/dev/null # one that has little to do

# What the rows of the bench measure, in sizes that the fake can compute, with its library of products.
[ "$(LD_LIBRARY_PATH=$build/tests/fake_cuda/blas:$LD_LIBRARY_PATH "$build/bench/cuda/cuda_bare" \
    end_to_end_add16,issue_read,h2d_1e4,op_add_1e2_1t,gemm_16x8x4_nt_f32,gemm_16x8x4_tn_f16,gemm_16x8x4_nn_bf16 1 | grep -c '"samples"')" -eq 7 ]
[ "$(EDDY_DEVICE=cuda "$build/bench/cuda/cuda_measure" \
    alloc_hit,h2d_1e4,op_add_1e2_1t,op_exp_1e2_1t,op_sum_1e2_1t,op_sum_rows_1e2_1t,gemm_16x8x4_nt_f32,gemm_16x8x4_tn_f16,gemm_16x8x4_nn_bf16,sdpa_bf16_1 1 |
    grep -c '"samples"')" -eq 10 ]

# expect STEP NAME VERDICT...: a line of the report
expect() {
    grep -q "\"step\": \"$1\", \"name\": \"$2\", \"verdict\": \"$3\"" "$kit/out/report.json" || {
        echo "gpu_check.sh: not $3: $1 $2" >&2
        exit 1
    }
}
expect smoke products seen
expect life streams passed
expect life conformance passed
expect life across skipped # it wants two devices
expect programs program-cuda_fusion_cache passed
expect programs program-feeds passed
expect programs interpreter-apply passed
for noun in cuda cuda_attention cuda_late cuda_product cuda_reduce cuda_scatter cuda_softmax cuda_sort elementwise; do
    expect sanitize "$noun-memcheck" passed
done
expect bench cuda_alloc_hit measured
expect bench cuda_op_add_1e4 measured
expect nsys seconds measured
