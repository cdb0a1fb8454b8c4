/* What the kernels of bincount touch. */
#include <kernels/cuda/bincount.h>
#include <kernels/cuda/sort.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_in(const eddy_cuda_bincount_call &p, touch_fn *say, void *context) {
    touch_line(p.in, p.count, p.step, p.element_bytes, false, say, context);
}

static void touch_chunks(const eddy_cuda_bincount_call &p, bool is_write, touch_fn *say,
                         void *context) {
    const int64_t chunks = (p.count + EDDY_CUDA_BINCOUNT_CHUNK - 1) / EDDY_CUDA_BINCOUNT_CHUNK;
    say(context, p.most, (size_t)chunks * sizeof(*p.most), is_write);
}

static void touch_most(const eddy_cuda_bincount_call &p, int, touch_fn *say, void *context) {
    touch_in(p, say, context);
    touch_chunks(p, true, say, context);
}

static void touch_length(const eddy_cuda_bincount_call &p, int, touch_fn *say, void *context) {
    touch_chunks(p, false, say, context);
}

static void touch_counts(const eddy_cuda_bincount_call &p, int, touch_fn *say, void *context) {
    touch_in(p, say, context);
    touch_line(p.out, p.length, p.out_step, sizeof(int64_t), true, say, context);
}

static void touch_sum(const eddy_cuda_bincount_call &p, int64_t record_bytes, int64_t bytes,
                      touch_fn *say, void *context) {
    say(context, p.records, (size_t)(p.count * record_bytes), false);
    touch_line(p.weights, p.count, p.weight_step, bytes, false, say, context);
    touch_line(p.out, p.length, p.out_step, bytes, true, say, context);
}

TOUCHES(eddy_bincount_most, eddy_cuda_bincount_call, touch_most, 0)
TOUCHES(eddy_bincount_length, eddy_cuda_bincount_call, touch_length, 0)
TOUCHES(eddy_bincount_few, eddy_cuda_bincount_call, touch_counts, 0)
TOUCHES(eddy_bincount_many, eddy_cuda_bincount_call, touch_counts, 0)
static const int64_t bytes_of_narrow = 8, bytes_of_wide = sizeof(eddy_cuda_sort_wide);
#define SUM(width, name, type)                                                                     \
    TOUCHES(eddy_bincount_sum_##width##_##name, eddy_cuda_bincount_call, touch_sum,                \
            bytes_of_##width, sizeof(type))
EDDY_CUDA_BINCOUNT_SUMS(SUM)
