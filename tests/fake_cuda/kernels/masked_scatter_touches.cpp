/* What the kernels of masked_scatter touch. */
#include <kernels/cuda/held.h>
#include <kernels/cuda/masked_scatter.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_begins(const eddy_cuda_masked_scatter_call &p, bool is_write, touch_fn *say,
                         void *context) {
    const int64_t chunks = eddy_cuda_held_chunks(p.count);
    say(context, p.begins, (size_t)chunks * sizeof(*p.begins), is_write);
}

static range places_of(const eddy_cuda_masked_scatter_call &p, int operand, int64_t bytes) {
    range all = {0, bytes};
    for (int d = 0; d < p.rank; d++)
        all.reach(p.dims[d] - 1, p.strides[operand][d]);
    return all;
}

static void touch_mask(const eddy_cuda_masked_scatter_call &p, touch_fn *say, void *context) {
    places_of(p, EDDY_CUDA_MASKED_SCATTER_MASK, 1).touch(say, context, p.mask, false);
}

static void touch_count(const eddy_cuda_masked_scatter_call &p, int, touch_fn *say, void *context) {
    touch_mask(p, say, context);
    touch_begins(p, true, say, context);
}

static void touch_begin(const eddy_cuda_masked_scatter_call &p, int, touch_fn *say, void *context) {
    touch_begins(p, true, say, context);
}

/* Of the source all that the mask may ask for. */
static void touch_scatter(const eddy_cuda_masked_scatter_call &p, int64_t bytes, touch_fn *say,
                          void *context) {
    touch_mask(p, say, context);
    touch_begins(p, false, say, context);
    places_of(p, EDDY_CUDA_MASKED_SCATTER_IN, bytes).touch(say, context, p.in, false);
    places_of(p, EDDY_CUDA_MASKED_SCATTER_OUT, bytes).touch(say, context, p.out, true);
    range source = {0, bytes};
    for (int d = 0; d < p.source_rank; d++)
        source.reach(p.source_dims[d] - 1, p.source_strides[d]);
    if (p.source_count > 0)
        source.touch(say, context, p.source, false);
}

TOUCHES(eddy_masked_scatter_count, eddy_cuda_masked_scatter_call, touch_count, 0)
TOUCHES(eddy_masked_scatter_begin, eddy_cuda_masked_scatter_call, touch_begin, 0)
#define SCATTER(bits)                                                                              \
    TOUCHES(eddy_masked_scatter_##bits, eddy_cuda_masked_scatter_call, touch_scatter, bits / 8)
EDDY_CUDA_MASKED_SCATTERS(SCATTER)
