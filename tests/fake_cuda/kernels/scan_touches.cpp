/* What the kernels of running totals touch. */
#include <kernels/cuda/scan.h>
#include <tests/fake_cuda/kernels/lines_touches.h>

static void touch_scan(const eddy_cuda_scan_call &p, int64_t in_bytes, int64_t out_bytes,
                       touch_fn *say, void *context) {
    touch_lines(p.lines, 1, p.in[0], in_bytes, false, say, context);
    if (!p.finds_totals)
        touch_lines(p.lines, 0, p.out, out_bytes, true, say, context);
    if (p.blocks > 1)
        say(context, p.totals, (size_t)(p.lines.lines * p.blocks) * 8, p.finds_totals);
}

static void touch_join(const eddy_cuda_scan_call &p, int64_t bytes, touch_fn *say, void *context) {
    say(context, p.totals, (size_t)(p.lines.lines * p.blocks * bytes), true);
}

static void touch_backward(const eddy_cuda_scan_call &p, int64_t bytes, touch_fn *say,
                           void *context) {
    const int64_t steps = (p.lines.count + EDDY_CUDA_SCAN_STEP - 1) / EDDY_CUDA_SCAN_STEP;
    for (int k = 0; k < 2; k++)
        touch_lines(p.lines, k + 1, p.in[k], bytes, false, say, context);
    touch_lines(p.lines, 0, p.out, bytes, true, say, context);
    say(context, p.totals, (size_t)(p.lines.lines * steps) * 8, true);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_u8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4,
                     bytes_of_i64 = 8, bytes_of_truth = 1;
#define SCAN(op, of, dtype, compute, result)                                                       \
    TOUCHES(eddy_##op##_##of, eddy_cuda_scan_call, touch_scan, bytes_of_##of, bytes_of_##result)
EDDY_CUDA_SCANS(SCAN)
TOUCHES(eddy_scan_join_f64, eddy_cuda_scan_call, touch_join, 8)
TOUCHES(eddy_scan_join_i64, eddy_cuda_scan_call, touch_join, 8)
#define BACKWARD(op, of, dtype)                                                                    \
    TOUCHES(eddy_##op##_##of, eddy_cuda_scan_call, touch_backward, bytes_of_##of)
EDDY_CUDA_SCANS_BACKWARD(BACKWARD)
