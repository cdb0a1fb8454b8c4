/* What convolutions touch. */
#include <kernels/cuda/conv.h>
#include <tests/fake_cuda/kernels/planes_touches.h>

static void touch_weight(const eddy_cuda_conv &p, int64_t bytes, bool is_write, touch_fn *say,
                         void *context) {
    range all = {0, bytes};
    all.reach(p.groups - 1, p.weight_group);
    all.reach(p.to_channels - 1, p.weight_to);
    all.reach(p.from_channels - 1, p.weight_from);
    all.reach(p.rows.size - 1, p.weight_row);
    all.reach(p.columns.size - 1, p.weight_column);
    all.touch(say, context, p.weight, is_write);
}

/* Without terms nothing is read. */
static void touch_inputs(const eddy_cuda_conv &p, int64_t bytes, touch_fn *say, void *context) {
    const bool has_x = p.from_channels * p.from.sizes[EDDY_CUDA_IMAGE] *
                           p.from.sizes[EDDY_CUDA_ROW] * p.from.sizes[EDDY_CUDA_COLUMN] >
                       0;
    if (has_x)
        touch_planes(p.from, bytes, false, say, context);
    if (has_x && p.sums_places)
        touch_planes(p.to, bytes, false, say, context);
    else if (has_x)
        touch_weight(p, bytes, false, say, context);
}

static void touch_output(const eddy_cuda_conv &p, int64_t bytes, touch_fn *say, void *context) {
    if (p.bias != nullptr) {
        range all = {0, bytes};
        all.reach(p.groups * p.to_channels - 1, p.bias_step);
        all.touch(say, context, p.bias, false);
    }
    if (p.sums_places)
        touch_weight(p, bytes, true, say, context);
    else
        touch_planes(p.to, bytes, true, say, context);
}

static void touch_partials(const eddy_cuda_conv &p, int64_t bytes, bool is_write, touch_fn *say,
                           void *context) {
    const int64_t count =
        p.splits * p.groups * p.row_phases * p.column_phases * p.to_channels * p.width;
    say(context, p.partials, (size_t)(count * (bytes == 8 ? 8 : 4)), is_write);
}

static void touch_tiled(const eddy_cuda_conv &p, int64_t bytes, touch_fn *say, void *context) {
    touch_inputs(p, bytes, say, context);
    if (p.partials != nullptr)
        touch_partials(p, bytes, true, say, context);
    else
        touch_output(p, bytes, say, context);
}

static void touch_join(const eddy_cuda_conv &p, int64_t bytes, touch_fn *say, void *context) {
    touch_partials(p, bytes, false, say, context);
    touch_output(p, bytes, say, context);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
#define CONVS(name, dtype)                                                                         \
    TOUCHES(eddy_conv_tiled_##name, eddy_cuda_conv, touch_tiled, bytes_of_##name)                  \
    TOUCHES(eddy_conv_direct_##name, eddy_cuda_conv, touch_tiled, bytes_of_##name)                 \
    TOUCHES(eddy_conv_join_##name, eddy_cuda_conv, touch_join, bytes_of_##name)
EDDY_CUDA_CONVS(CONVS)
