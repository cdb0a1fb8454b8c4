#include <kernels/cpu/conv/conv_plan.h>

#include <base/number.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/walk.h>

#define INLINE static inline __attribute__((always_inline))

/* Bytes that the columns of a tile may take, so that they stay in the second-level cache beside the weights. */
#define TILE_BYTES (256 << 10)
#define TILE_PLACES_MAX 512
#define TILE_PLACES_MIN 32
/* Rows of fewer taps are copied by an inlined loop: a function call would cost more. */
#define TAPS_SHORT 16

eddy_conv_image eddy_conv_image_of(const eddy_op_view *view) {
    const int64_t *shape = view->shape + view->rank - 3, *strides = view->strides + view->rank - 3;
    bool has_batch = view->rank == 4;
    return (eddy_conv_image){.data = view->data,
                             .dtype = view->dtype,
                             .batch = has_batch ? view->shape[0] : 1,
                             .channels = shape[0],
                             .height = shape[1],
                             .width = shape[2],
                             .batch_stride = has_batch ? view->strides[0] : 0,
                             .channel_stride = strides[0],
                             .row_stride = strides[1],
                             .column_stride = strides[2]};
}

static void init(eddy_conv_plan *plan, const eddy_op_view *x, const eddy_op_view *weight,
                 const eddy_op_view *out, const eddy_attributes_conv *attributes) {
    *plan = (eddy_conv_plan){
        .from = eddy_conv_image_of(x), .to = eddy_conv_image_of(out), .groups = attributes->groups};
    plan->from_channels = plan->from.channels / plan->groups;
    plan->to_channels = plan->to.channels / plan->groups;
    plan->weight = (eddy_conv_weight){.data = weight->data,
                                      .dtype = weight->dtype,
                                      .height = weight->shape[2],
                                      .width = weight->shape[3],
                                      .row_stride = weight->strides[2],
                                      .column_stride = weight->strides[3]};
    plan->rows = (eddy_conv_window){plan->weight.height, attributes->stride.height,
                                    attributes->padding.height, attributes->dilation.height};
    plan->columns = (eddy_conv_window){plan->weight.width, attributes->stride.width,
                                       attributes->padding.width, attributes->dilation.width};
    plan->row_phases = plan->column_phases = 1;
    plan->compute = eddy_chunk_compute_dtype(x->dtype);
    plan->bytes = plan->compute == EDDY_F64 ? 8 : 4;
}

void eddy_conv_plan_forward(eddy_conv_plan *plan, const eddy_op_view *x, const eddy_op_view *weight,
                            const eddy_op_view *out, const eddy_attributes_conv *attributes) {
    init(plan, x, weight, out, attributes);
    plan->weight.to_stride = weight->strides[0];
    plan->weight.from_stride = weight->strides[1];
    plan->weight.group_stride = plan->to_channels * weight->strides[0];
}

void eddy_conv_plan_transposed(eddy_conv_plan *plan, const eddy_op_view *x,
                               const eddy_op_view *weight, const eddy_op_view *out,
                               const eddy_attributes_conv *attributes) {
    init(plan, x, weight, out, attributes);
    plan->is_transposed = true;
    plan->weight.to_stride = weight->strides[1];
    plan->weight.from_stride = weight->strides[0];
    plan->weight.group_stride = plan->from_channels * weight->strides[0];
    plan->row_phases = eddy_max_i64(1, eddy_min_i64(plan->rows.stride, plan->to.height));
    plan->column_phases = eddy_max_i64(1, eddy_min_i64(plan->columns.stride, plan->to.width));
}

void eddy_conv_plan_phase(const eddy_conv_plan *plan, int64_t phase, eddy_conv_axis *rows,
                          eddy_conv_axis *columns) {
    if (!plan->is_transposed) {
        *rows = eddy_conv_axis_forward(&plan->rows, plan->to.height);
        *columns = eddy_conv_axis_forward(&plan->columns, plan->to.width);
        return;
    }
    *rows = eddy_conv_axis_transposed(&plan->rows, plan->to.height, phase / plan->column_phases);
    *columns =
        eddy_conv_axis_transposed(&plan->columns, plan->to.width, phase % plan->column_phases);
}

/* ---- reversed windows ---- */

static bool turn_window(eddy_conv_window *window) {
    window->padding = window->dilation * (window->size - 1) - window->padding;
    return window->stride == 1 && window->padding >= 0;
}

bool eddy_conv_plan_turn(const eddy_conv_plan *plan, eddy_conv_plan *turned) {
    eddy_conv_weight *w = &turned->weight;
    *turned = *plan;
    w->data = NULL;
    w->column_stride = 1;
    w->row_stride = w->width;
    w->from_stride = w->height * w->width;
    w->to_stride = plan->from_channels * w->from_stride;
    w->group_stride = plan->to_channels * w->to_stride;
    turned->is_transposed = false;
    return plan->is_transposed && turn_window(&turned->rows) && turn_window(&turned->columns);
}

int64_t eddy_conv_plan_weight_count(const eddy_conv_plan *plan) {
    return plan->groups * plan->to_channels * plan->from_channels * plan->weight.height *
           plan->weight.width;
}

/* Copies a row of a window from its last element to its first. */
INLINE void turn_row(int bits, void *to, const void *last, int64_t step, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        if (bits == 16)
            ((uint16_t *)to)[j] = ((const uint16_t *)last)[-j * step];
        else
            ((uint32_t *)to)[j] = ((const uint32_t *)last)[-j * step];
}

INLINE void turn(int bits, const eddy_conv_plan *plan, char *to) {
    const eddy_conv_weight *w = &plan->weight;
    const int64_t bytes = bits / 8, width = w->width;
    int64_t last = (w->height - 1) * w->row_stride + (width - 1) * w->column_stride;
    for (int64_t g = 0; g < plan->groups; g++)
        for (int64_t made = 0; made < plan->to_channels; made++)
            for (int64_t c = 0; c < plan->from_channels; c++)
                for (int64_t i = 0; i < w->height; i++, to += width * bytes) {
                    int64_t at = last + g * w->group_stride + made * w->to_stride +
                                 c * w->from_stride - i * w->row_stride;
                    turn_row(bits, to, (const char *)w->data + at * bytes, w->column_stride, width);
                }
}

void eddy_conv_plan_turn_weights(const eddy_conv_plan *plan, const eddy_conv_plan *turned) {
    void *to = turned->weight.data;
    if (eddy_dtype_bytes(plan->weight.dtype) == 2)
        turn(16, plan, to);
    else
        turn(32, plan, to);
}

/* ---- weights ---- */

/* Loads a row's taps from weights of the compute type, channel by channel. */
#define LOAD_TAPS(real)                                                                            \
    static void load_taps_##real(const eddy_conv_weight *weight, const eddy_conv_row *row,         \
                                 int64_t offset, real *to) {                                       \
        const eddy_conv_axis *rows = row->rows, *columns = row->columns;                           \
        const real *from = (const real *)weight->data + offset;                                    \
        int64_t row_step = rows->tap_step * weight->row_stride;                                    \
        int64_t column_step = columns->tap_step * weight->column_stride;                           \
        for (int64_t c = 0; c < row->count; c++, from += weight->from_stride)                      \
            for (int64_t i = 0; i < rows->tap_count; i++)                                          \
                for (int64_t j = 0; j < columns->tap_count; j++)                                   \
                    *to++ = from[i * row_step + j * column_step];                                  \
    }

LOAD_TAPS(float)
LOAD_TAPS(double)

static void move_row(const eddy_conv_plan *plan, const eddy_conv_row *row, char *buffer,
                     bool stores) {
    const eddy_conv_weight *weight = &plan->weight;
    const eddy_conv_axis *rows = row->rows, *columns = row->columns;
    int64_t taps = rows->tap_count * columns->tap_count;
    int64_t offset = row->group * weight->group_stride + row->to * weight->to_stride +
                     row->from * weight->from_stride + rows->tap * weight->row_stride +
                     columns->tap * weight->column_stride;
    /* A line is one row of taps of one channel, or all channels at one tap. */
    int64_t inner = row->is_last ? columns->tap_count : 1, outer = row->is_last ? 1 : row->count;
    int64_t count = row->is_last ? row->count : columns->tap_count;
    int64_t stride = row->is_last ? weight->from_stride : columns->tap_step * weight->column_stride;
    if (taps == 0 || row->count == 0)
        return;
    if (!stores && !row->is_last && weight->dtype == plan->compute &&
        columns->tap_count < TAPS_SHORT) {
        if (plan->compute == EDDY_F64)
            load_taps_double(weight, row, offset, (double *)(void *)buffer);
        else
            load_taps_float(weight, row, offset, (float *)(void *)buffer);
        return;
    }
    for (int64_t c = 0; c < outer; c++)
        for (int64_t i = 0; i < rows->tap_count; i++)
            for (int64_t j = 0; j < inner; j++) {
                int64_t at = offset + c * weight->from_stride +
                             i * rows->tap_step * weight->row_stride +
                             j * columns->tap_step * weight->column_stride;
                void *there = eddy_chunk_at(weight->data, weight->dtype, at);
                if (stores)
                    eddy_chunk_store(weight->dtype, there, stride, plan->compute, buffer, count);
                else
                    eddy_chunk_load(plan->compute, buffer, weight->dtype, there, stride, count);
                buffer += count * plan->bytes;
            }
}

void eddy_conv_row_load(const eddy_conv_plan *plan, const eddy_conv_row *row, void *to) {
    move_row(plan, row, to, false);
}

void eddy_conv_row_store(const eddy_conv_plan *plan, const eddy_conv_row *row, const void *from) {
    move_row(plan, row, (char *)from, true);
}

void eddy_conv_multiply(const eddy_kernel_call *call, const eddy_conv_plan *plan, bool transpose_a,
                        bool transpose_b, int64_t m, int64_t n, int64_t k, const void *a,
                        int64_t lda, const void *b, int64_t ldb, bool adds, void *c, int64_t ldc) {
    eddy_gemm_provider provider = eddy_gemm_choose(eddy_isa_chosen(), plan->compute, m, n, k);
    bool is_made;
    if (plan->compute == EDDY_F64)
        is_made = eddy_gemm_provider_f64(provider)(transpose_a, transpose_b, m, n, k, 1, a, lda, b,
                                                   ldb, adds, c, ldc);
    else
        is_made = eddy_gemm_provider_f32(provider)(transpose_a, transpose_b, m, n, k, 1, a, lda, b,
                                                   ldb, adds, c, ldc);
    if (!is_made)
        eddy_kernel_fail(call, EDDY_OUT_OF_MEMORY, 0, 0, 0);
}

/* ---- estimates ---- */

/* Calls of fewer multiply-adds use no library. */
#define SMALL_WORK 2e5

double eddy_conv_plan_work(const eddy_conv_plan *plan) {
    const eddy_conv_image *image = plan->is_transposed ? &plan->from : &plan->to;
    double places = (double)image->batch * (double)image->height * (double)image->width;
    double channels =
        (double)plan->groups * (double)plan->from_channels * (double)plan->to_channels;
    return places * channels * (double)plan->weight.height * (double)plan->weight.width;
}

int64_t eddy_conv_plan_cost(const eddy_conv_plan *plan) {
    double work = eddy_conv_plan_work(plan), each = plan->compute != EDDY_F32 ? 60
                                                    : work < SMALL_WORK       ? 100
                                                                              : 25;
    double gathered = work / (double)eddy_max_i64(1, plan->to_channels);
    double cost = work * each + gathered * 120;
    return 500000 + (int64_t)(cost < 1e15 ? cost : 1e15);
}

int64_t eddy_conv_tile_places(const eddy_conv_plan *plan, int64_t places, int64_t depth) {
    int64_t fit = TILE_BYTES / (eddy_max_i64(1, depth) * plan->bytes);
    fit = eddy_max_i64(TILE_PLACES_MIN, eddy_min_i64(TILE_PLACES_MAX, fit));
    int64_t tiles = eddy_max_i64(1, (places + fit - 1) / fit), even = (places + tiles - 1) / tiles;
    return eddy_max_i64(1, eddy_min_i64(places, (even + 15) / 16 * 16));
}
