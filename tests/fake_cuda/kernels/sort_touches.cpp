/* What the kernels of sort touch. */
#include <kernels/cuda/sort.h>
#include <tests/fake_cuda/kernels/touches.h>

static range lines_of(const eddy_cuda_sort_call &p, int operand, int64_t bytes, int64_t of_line) {
    range all = {0, bytes};
    all.reach(of_line - 1, p.steps[operand]);
    for (int d = 0; d < p.rank; d++)
        all.reach(p.dims[d] - 1, p.strides[operand][d]);
    return all;
}

static void touch_results(const eddy_cuda_sort_call &p, touch_fn *say, void *context) {
    lines_of(p, EDDY_CUDA_SORT_IN, p.element_bytes, p.count).touch(say, context, p.in, false);
    lines_of(p, EDDY_CUDA_SORT_INDICES, 8, p.kept).touch(say, context, p.indices, true);
    if (p.values)
        lines_of(p, EDDY_CUDA_SORT_VALUES, p.element_bytes, p.kept)
            .touch(say, context, p.values, true);
}

static void touch_records(const eddy_cuda_sort_call &p, const void *records, int64_t bytes,
                          bool is_write, touch_fn *say, void *context) {
    say(context, records, (size_t)(p.lines * p.count * bytes), is_write);
}

static void touch_tile(const eddy_cuda_sort_call &p, int64_t bytes, touch_fn *say, void *context) {
    if (!p.to) {
        touch_results(p, say, context);
        return;
    }
    lines_of(p, EDDY_CUDA_SORT_IN, p.element_bytes, p.count).touch(say, context, p.in, false);
    touch_records(p, p.to, bytes, true, say, context);
}

static void touch_merge(const eddy_cuda_sort_call &p, int64_t bytes, touch_fn *say, void *context) {
    touch_records(p, p.from, bytes, false, say, context);
    touch_records(p, p.to, bytes, true, say, context);
}

static void touch_put(const eddy_cuda_sort_call &p, int64_t bytes, touch_fn *say, void *context) {
    touch_records(p, p.from, bytes, false, say, context);
    touch_results(p, say, context);
}

static const int64_t bytes_of_narrow = 8, bytes_of_wide = sizeof(eddy_cuda_sort_wide);
#define KERNELS(width)                                                                             \
    TOUCHES(eddy_sort_tile_##width, eddy_cuda_sort_call, touch_tile, bytes_of_##width)             \
    TOUCHES(eddy_sort_merge_##width, eddy_cuda_sort_call, touch_merge, bytes_of_##width)           \
    TOUCHES(eddy_sort_put_##width, eddy_cuda_sort_call, touch_put, bytes_of_##width)
EDDY_CUDA_SORT_WIDTHS(KERNELS)
