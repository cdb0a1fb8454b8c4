/* What kernels of losses touch. */
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

/* ---- by name ---- */

extern "C" void eddy_loss_rows_touches(const void *parameters, touch_fn *say, void *context);
void eddy_loss_rows_touches(const void *parameters, touch_fn *say, void *context) {
    touch_rows(*(const eddy_cuda_loss_total *)parameters, say, context);
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
