/* What the kernels of unique touch. */
#include <kernels/cuda/held.h>
#include <kernels/cuda/sort.h>
#include <kernels/cuda/unique.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_begins(const eddy_cuda_unique_call &p, bool is_write, touch_fn *say,
                         void *context) {
    say(context, p.begins, (size_t)eddy_cuda_held_chunks(p.count) * sizeof(*p.begins), is_write);
}

static void touch_records(const eddy_cuda_unique_call &p, int64_t bytes, touch_fn *say,
                          void *context) {
    say(context, p.records, (size_t)(p.count * bytes), false);
}

static void touch_count(const eddy_cuda_unique_call &p, int64_t bytes, touch_fn *say,
                        void *context) {
    touch_records(p, bytes, say, context);
    touch_begins(p, true, say, context);
}

static void touch_begin(const eddy_cuda_unique_call &p, int64_t, touch_fn *say, void *context) {
    touch_begins(p, true, say, context);
}

static void touch_put(const eddy_cuda_unique_call &p, int64_t bytes, touch_fn *say, void *context) {
    touch_records(p, bytes, say, context);
    touch_begins(p, false, say, context);
    touch_line(p.in, p.count, p.step, p.element_bytes, false, say, context);
    touch_line(p.values, p.found, p.value_step, p.element_bytes, true, say, context);
    if (!p.inverse)
        return;
    range inverse = {0, sizeof(int64_t)};
    for (int d = 0; d < p.places.rank; d++)
        inverse.reach(p.places.sizes[d] - 1, p.places.strides[0][d]);
    inverse.touch(say, context, p.inverse, true);
    say(context, p.firsts, (size_t)p.found * sizeof(*p.firsts), true);
}

static void touch_lengths(const eddy_cuda_unique_call &p, int64_t, touch_fn *say, void *context) {
    say(context, p.firsts, (size_t)p.found * sizeof(*p.firsts), false);
    touch_line(p.counts, p.found, p.count_step, sizeof(int64_t), true, say, context);
}

static const int64_t bytes_of_narrow = 8, bytes_of_wide = sizeof(eddy_cuda_sort_wide);
#define KERNELS(width)                                                                             \
    TOUCHES(eddy_unique_count_##width, eddy_cuda_unique_call, touch_count, bytes_of_##width)       \
    TOUCHES(eddy_unique_begin_##width, eddy_cuda_unique_call, touch_begin, bytes_of_##width)       \
    TOUCHES(eddy_unique_put_##width, eddy_cuda_unique_call, touch_put, bytes_of_##width)
EDDY_CUDA_SORT_WIDTHS(KERNELS)
TOUCHES(eddy_unique_lengths, eddy_cuda_unique_call, touch_lengths, 0)
