/* What the kernels of nonzero and masked_select touch. */
#include <kernels/cuda/held.h>
#include <kernels/cuda/selection.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_begins(const eddy_cuda_selection_call &p, bool is_write, touch_fn *say,
                         void *context) {
    say(context, p.begins, (size_t)eddy_cuda_held_chunks(p.count) * sizeof(*p.begins), is_write);
}

static void touch_places(const eddy_cuda_selection_call &p, int operand, const void *data,
                         int64_t bytes, touch_fn *say, void *context) {
    range all = {0, bytes};
    for (int d = 0; d < p.places.rank; d++)
        all.reach(p.places.sizes[d] - 1, p.places.strides[operand][d]);
    all.touch(say, context, data, false);
}

static void touch_tested(const eddy_cuda_selection_call &p, touch_fn *say, void *context) {
    touch_places(p, EDDY_CUDA_SELECTION_TESTED, p.tested, p.tested_bytes, say, context);
}

static void touch_count(const eddy_cuda_selection_call &p, int, touch_fn *say, void *context) {
    touch_tested(p, say, context);
    touch_begins(p, true, say, context);
}

static void touch_begin(const eddy_cuda_selection_call &p, int, touch_fn *say, void *context) {
    touch_begins(p, true, say, context);
}

static void touch_put(const eddy_cuda_selection_call &p, bool has_elements, touch_fn *say,
                      void *context) {
    touch_tested(p, say, context);
    touch_begins(p, false, say, context);
    if (has_elements)
        touch_places(p, EDDY_CUDA_SELECTION_IN, p.in, p.element_bytes, say, context);
    say(context, p.out, (size_t)(p.found * p.step), true);
}

TOUCHES(eddy_selection_count, eddy_cuda_selection_call, touch_count, 0)
TOUCHES(eddy_selection_begin, eddy_cuda_selection_call, touch_begin, 0)
TOUCHES(eddy_selection_indices, eddy_cuda_selection_call, touch_put, false)
TOUCHES(eddy_selection_elements, eddy_cuda_selection_call, touch_put, true)
