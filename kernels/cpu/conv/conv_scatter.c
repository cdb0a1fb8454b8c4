#include <kernels/cpu/conv/conv_scatter.h>

#include <kernels/cpu/chunk.h>
#include <kernels/cpu/walk.h>

/* Products of a call at most, and places for each channel of the input: from there on columns are worth gathering, or the library
 * is worth its call. Where there are so few places that each number of the weights is hardly used, packing them is not. */
#define WORK_MOST 2e5
#define PLACES_EACH 2
#define WORK_MOST_FEW 1e6
#define PLACES_FEW 4

/* Numbers that a place gives. */
static int64_t given(const eddy_conv_plan *plan) {
    return plan->to_channels * plan->weight.height * plan->weight.width;
}

/* Whether what a channel of the input is multiplied with lies as one row. */
static bool lies_as_row(const eddy_conv_plan *plan) {
    const eddy_conv_weight *w = &plan->weight;
    return (w->width == 1 || w->column_stride == 1) && (w->height == 1 || w->row_stride == w->width) &&
           (plan->to_channels == 1 || w->to_stride == w->height * w->width);
}

static bool is_small(const eddy_conv_plan *plan) {
    int64_t places = plan->from.batch * plan->from.height * plan->from.width;
    double work = eddy_conv_plan_work(plan);
    return (places <= PLACES_EACH * plan->from_channels && work < WORK_MOST) ||
           (places <= PLACES_FEW && work < WORK_MOST_FEW);
}

bool eddy_conv_scatter_serves(const eddy_conv_plan *plan) {
    return plan->is_transposed && plan->from.dtype == plan->compute && plan->to.dtype == plan->compute &&
           plan->weight.dtype == plan->compute && plan->to_channels > 0 && is_small(plan) && lies_as_row(plan);
}

static size_t bias_bytes(const eddy_conv_plan *plan) {
    return (size_t)(plan->to.channels * plan->bytes + 63) / 64 * 64;
}

size_t eddy_conv_scatter_workspace(const eddy_conv_plan *plan) {
    return bias_bytes(plan) + (size_t)(given(plan) * plan->bytes);
}

/* Taps first .. end of a window at place i of the input lie in the result's `size`. */
typedef struct reach {
    int64_t at, first, end; /* at: of tap 0 */
} reach;

static reach reach_of(const eddy_conv_window *window, int64_t size, int64_t i) {
    reach r = {.at = i * window->stride - window->padding, .end = window->size};
    if (r.at < 0)
        r.first = (-r.at + window->dilation - 1) / window->dilation;
    while (r.end > r.first && r.at + (r.end - 1) * window->dilation >= size)
        r.end--;
    return r;
}

#define SCATTER(real)                                                                                                  \
    static void begin_##real(const eddy_conv_plan *plan, int64_t number, const real *biases) {                         \
        const eddy_conv_image *to = &plan->to;                                                                         \
        real *image = (real *)to->data + number * to->batch_stride;                                                    \
        for (int64_t c = 0; c < to->channels; c++)                                                                     \
            for (int64_t i = 0; i < to->height; i++)                                                                   \
                for (int64_t j = 0; j < to->width; j++)                                                                \
                    image[c * to->channel_stride + i * to->row_stride + j * to->column_stride] = biases[c];            \
    }                                                                                                                  \
    static void add_##real(const eddy_conv_plan *plan, real *restrict to, const reach *rows, const reach *columns,     \
                           const real *restrict gift) {                                                                \
        int64_t taps = plan->weight.height * plan->weight.width;                                                       \
        for (int64_t i = rows->first; i < rows->end; i++)                                                              \
            for (int64_t j = columns->first; j < columns->end; j++) {                                                  \
                real *there = to + (rows->at + i * plan->rows.dilation) * plan->to.row_stride +                        \
                              (columns->at + j * plan->columns.dilation) * plan->to.column_stride;                     \
                const real *here = gift + i * plan->weight.width + j;                                                  \
                for (int64_t c = 0; c < plan->to_channels; c++)                                                        \
                    there[c * plan->to.channel_stride] += here[c * taps];                                              \
            }                                                                                                          \
    }                                                                                                                  \
    static void scatter_##real(const eddy_kernel_call *call, const eddy_conv_plan *plan, int64_t number,               \
                               int64_t group, real *gift) {                                                            \
        const eddy_conv_image *from = &plan->from, *to = &plan->to;                                                    \
        const real *weights = (const real *)plan->weight.data + group * plan->weight.group_stride;                     \
        const real *image = (const real *)from->data + number * from->batch_stride +                                   \
                            group * plan->from_channels * from->channel_stride;                                        \
        real *result = (real *)to->data + number * to->batch_stride + group * plan->to_channels * to->channel_stride;  \
        for (int64_t i = 0; i < from->height; i++) {                                                                   \
            reach rows = reach_of(&plan->rows, to->height, i);                                                         \
            for (int64_t j = 0; j < from->width; j++) {                                                                \
                reach columns = reach_of(&plan->columns, to->width, j);                                                \
                eddy_conv_multiply(call, plan, true, false, 1, given(plan), plan->from_channels,                       \
                                   image + i * from->row_stride + j * from->column_stride, from->channel_stride,       \
                                   weights, plan->weight.from_stride, false, gift, given(plan));                       \
                add_##real(plan, result, &rows, &columns, gift);                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

SCATTER(float)
SCATTER(double)

void eddy_conv_scatter(const eddy_kernel_call *call, const eddy_conv_plan *plan, const eddy_op_view *bias) {
    char *workspace = call->workspace;
    void *gift = workspace + bias_bytes(plan);
    bool is_double = plan->compute == EDDY_F64;
    if (bias)
        eddy_chunk_load(plan->compute, workspace, bias->dtype, bias->data, bias->strides[0], plan->to.channels);
    else
        memset(workspace, 0, bias_bytes(plan));
    for (int64_t n = 0; n < plan->to.batch; n++) {
        if (is_double)
            begin_double(plan, n, (const double *)(void *)workspace);
        else
            begin_float(plan, n, (const float *)(void *)workspace);
        for (int64_t group = 0; group < plan->groups; group++) {
            if (is_double)
                scatter_double(call, plan, n, group, gift);
            else
                scatter_float(call, plan, n, group, gift);
        }
    }
}
