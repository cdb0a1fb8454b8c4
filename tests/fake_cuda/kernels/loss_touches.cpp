/* What kernels of losses touch. */
#include <kernels/cuda/loss.h>
#include <kernels/cuda/pair_loss.h>
#include <kernels/loss_tree.h>
#include <tests/fake_cuda/kernels/touches.h>

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;

static void touch_numbers(const double *data, int64_t count, bool is_write, touch_fn *say,
                          void *context) {
    if (data && count > 0)
        say(context, data, (size_t)count * sizeof(double), is_write);
}

/* ---- sums ---- */

static void touch_rows(const eddy_cuda_loss_total &p, touch_fn *say, void *context) {
    touch_numbers(p.losses, p.count, false, say, context);
    touch_numbers(p.sums, (p.count + EDDY_LOSS_ROW - 1) / EDDY_LOSS_ROW, true, say, context);
}

static void touch_total(const eddy_cuda_loss_total &p, int64_t bytes, touch_fn *say,
                        void *context) {
    const int64_t rows = (p.count + EDDY_LOSS_ROW - 1) / EDDY_LOSS_ROW;
    touch_numbers(p.losses, p.are_summed ? rows : p.count, false, say, context);
    touch_numbers(p.divisor.parts, p.divisor.count, false, say, context);
    say(context, p.out, (size_t)bytes, true);
}

/* ---- pairs ---- */

static void touch_pairs(const eddy_cuda_pair_loss &p, int64_t bytes, touch_fn *say, void *context) {
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++) {
        range all = {0, bytes};
        for (int d = 0; d < p.rank; d++)
            all.reach(p.sizes[d] - 1, p.strides[o][d]);
        if (p.data[o])
            all.touch(say, context, p.data[o], o == EDDY_CUDA_LOSS_OUT);
    }
    if (p.factor)
        say(context, p.factor, (size_t)bytes, false);
    touch_numbers(p.sums, (p.count + EDDY_CUDA_LOSS_CHUNK - 1) / EDDY_CUDA_LOSS_CHUNK, true, say,
                  context);
}

/* ---- rows and labels ---- */

static void touch_grid(const void *data, int64_t rows, int64_t columns, const int64_t *strides,
                       int64_t bytes, bool is_write, touch_fn *say, void *context) {
    range all = {0, bytes};
    all.reach(rows - 1, strides[0] * bytes);
    all.reach(columns - 1, strides[1] * bytes);
    if (data && rows > 0 && columns > 0)
        all.touch(say, context, data, is_write);
}

static void touch_vector(const void *data, int64_t count, int64_t stride, int64_t bytes,
                         bool is_write, touch_fn *say, void *context) {
    const int64_t strides[] = {stride, 0};
    touch_grid(data, count, 1, strides, bytes, is_write, say, context);
}

static void touch_target(const eddy_cuda_label_loss &p, touch_fn *say, void *context) {
    touch_vector(p.target, p.rows, p.target_stride, 8, false, say, context);
}

static void touch_weight(const eddy_cuda_label_loss &p, int64_t bytes, touch_fn *say,
                         void *context) {
    touch_target(p, say, context);
    touch_vector(p.weight, p.classes, p.weight_stride, bytes, false, say, context);
}

static void touch_counts(const eddy_cuda_label_loss &p, touch_fn *say, void *context) {
    touch_target(p, say, context);
    touch_numbers(p.divisors, p.divisor.count, true, say, context);
}

static void touch_weights(const eddy_cuda_label_loss &p, int64_t bytes, touch_fn *say,
                          void *context) {
    touch_weight(p, bytes, say, context);
    touch_numbers(p.divisors, 1, true, say, context);
}

static void touch_loss(const eddy_cuda_label_loss &p, int64_t bytes, touch_fn *say, void *context) {
    touch_weight(p, bytes, say, context);
    touch_grid(p.input, p.rows, p.classes, p.input_strides, bytes, false, say, context);
    if (p.losses)
        touch_numbers(p.losses, p.rows, true, say, context);
    else
        touch_vector(p.out, p.rows, p.out_strides[0], bytes, true, say, context);
}

static void touch_gradient(const eddy_cuda_label_loss &p, int64_t bytes, touch_fn *say,
                           void *context) {
    touch_weight(p, bytes, say, context);
    touch_grid(p.input, p.rows, p.classes, p.input_strides, bytes, false, say, context);
    touch_vector(p.grad, p.rows, p.grad_stride, bytes, false, say, context);
    touch_numbers(p.divisor.parts, p.divisor.count, false, say, context);
    touch_grid(p.out, p.rows, p.classes, p.out_strides, bytes, true, say, context);
}

/* ---- by name ---- */

extern "C" void eddy_loss_rows_touches(const void *parameters, touch_fn *say, void *context);
void eddy_loss_rows_touches(const void *parameters, touch_fn *say, void *context) {
    touch_rows(*(const eddy_cuda_loss_total *)parameters, say, context);
}
extern "C" void eddy_label_counts_touches(const void *parameters, touch_fn *say, void *context);
void eddy_label_counts_touches(const void *parameters, touch_fn *say, void *context) {
    touch_counts(*(const eddy_cuda_label_loss *)parameters, say, context);
}
#define TOTAL(of, of_dtype)                                                                        \
    TOUCHES(eddy_loss_total_##of, eddy_cuda_loss_total, touch_total, bytes_of_##of)
EDDY_CUDA_LOSS_DTYPES(TOTAL)

#define ELEMENTS(name, of, of_dtype)                                                               \
    TOUCHES(eddy_loss_##name##_##of##_dense, eddy_cuda_pair_loss, touch_pairs, bytes_of_##of)      \
    TOUCHES(eddy_loss_##name##_##of##_strided, eddy_cuda_pair_loss, touch_pairs, bytes_of_##of)
#define SUMS(name, of, of_dtype)                                                                   \
    TOUCHES(eddy_loss_##name##_##of##_sums, eddy_cuda_pair_loss, touch_pairs, bytes_of_##of)
#define PAIRS(of, of_dtype)                                                                        \
    EDDY_CUDA_PAIR_LOSSES(ELEMENTS, of, of_dtype)                                                  \
    EDDY_CUDA_PAIR_LOSSES(SUMS, of, of_dtype)                                                      \
    EDDY_CUDA_PAIR_LOSS_GRADIENTS(ELEMENTS, of, of_dtype)
EDDY_CUDA_LOSS_DTYPES(PAIRS)

#define LABELS(of, of_dtype)                                                                       \
    TOUCHES(eddy_label_weights_##of, eddy_cuda_label_loss, touch_weights, bytes_of_##of)           \
    TOUCHES(eddy_cross_entropy_##of, eddy_cuda_label_loss, touch_loss, bytes_of_##of)              \
    TOUCHES(eddy_nll_loss_##of, eddy_cuda_label_loss, touch_loss, bytes_of_##of)                   \
    TOUCHES(eddy_cross_entropy_backward_##of, eddy_cuda_label_loss, touch_gradient, bytes_of_##of) \
    TOUCHES(eddy_nll_loss_backward_##of, eddy_cuda_label_loss, touch_gradient, bytes_of_##of)
EDDY_CUDA_LOSS_DTYPES(LABELS)
