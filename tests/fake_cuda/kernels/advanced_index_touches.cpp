/* What the kernel touches that finds the places of several indices. */
#include <kernels/cuda/advanced_index.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_places(const eddy_cuda_places_call &p, touch_fn *say, void *context) {
    for (int i = 0; i < p.index_count; i++) {
        range all = {0, p.is_wide >> i & 1 ? 8 : 4};
        for (int d = 0; d < p.rank; d++)
            all.reach(p.dims[d] - 1, p.indices[i].strides[d]);
        all.touch(say, context, p.indices[i].data, false);
    }
    say(context, p.offsets, (size_t)p.count * sizeof(*p.offsets), 1);
}

extern "C" void eddy_places_touches(const void *parameters, touch_fn *say, void *context);
void eddy_places_touches(const void *parameters, touch_fn *say, void *context) {
    touch_places(*(const eddy_cuda_places_call *)parameters, say, context);
}
