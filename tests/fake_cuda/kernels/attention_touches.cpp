/* What attention touches. */
#include <initializer_list>
#include <kernels/cuda/attention.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_operand(const eddy_cuda_attention &p, int operand, int64_t bytes, int64_t rows,
                          int64_t columns, bool is_write, touch_fn *say, void *context) {
    const eddy_cuda_attention_operand &of = p.operands[operand];
    if (of.data == nullptr || rows == 0 || columns == 0)
        return;
    range all = {0, bytes};
    all.reach(rows - 1, of.row);
    all.reach(columns - 1, of.column);
    for (int d = 0; d < p.rank; d++)
        all.reach(p.sizes[d] - 1, of.batch[d]);
    all.touch(say, context, of.data, is_write);
}

/* q, k, and the mask. */
static void touch_scores(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say,
                         void *context) {
    touch_operand(p, EDDY_CUDA_ATTENTION_Q, bytes, p.rows, p.width, false, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_K, bytes, p.columns, p.width, false, say, context);
    if (p.rows > 0)
        touch_operand(p, EDDY_CUDA_ATTENTION_MASK, p.mask == EDDY_CUDA_ATTENTION_HIDES ? 1 : bytes,
                      p.rows, p.columns, false, say, context);
}

/* Matrices with a row of each row, as wide as v. */
static void touch_values(const eddy_cuda_attention &p, std::initializer_list<int> operands,
                         int64_t bytes, bool is_write, touch_fn *say, void *context) {
    for (int operand : operands)
        touch_operand(p, operand, bytes, p.rows, p.value_width, is_write, say, context);
}

static void touch_statistics(const eddy_cuda_attention &p, int64_t bytes, bool is_write,
                             touch_fn *say, void *context) {
    if (p.rows > 0)
        say(context, p.statistics, (size_t)(p.batches * p.rows * 3 * (bytes == 8 ? 8 : 4)),
            is_write);
}

static void touch_forward(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say,
                          void *context) {
    touch_scores(p, bytes, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_V, bytes, p.columns, p.value_width, false, say, context);
    touch_values(p, {EDDY_CUDA_ATTENTION_OUT}, bytes, true, say, context);
}

static void touch_rows(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say, void *context) {
    touch_scores(p, bytes, say, context);
    touch_values(p, {EDDY_CUDA_ATTENTION_GRAD, EDDY_CUDA_ATTENTION_OUT}, bytes, false, say,
                 context);
    touch_statistics(p, bytes, true, say, context);
}

static void touch_slopes(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say,
                         void *context) {
    touch_scores(p, bytes, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_V, bytes, p.columns, p.value_width, false, say, context);
    touch_values(p, {EDDY_CUDA_ATTENTION_GRAD}, bytes, false, say, context);
    touch_statistics(p, bytes, false, say, context);
}

static void touch_dq(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say, void *context) {
    touch_slopes(p, bytes, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_DQ, bytes, p.rows, p.width, true, say, context);
}

static void touch_dkv(const eddy_cuda_attention &p, int64_t bytes, touch_fn *say, void *context) {
    touch_slopes(p, bytes, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_DK, bytes, p.columns, p.width, true, say, context);
    touch_operand(p, EDDY_CUDA_ATTENTION_DV, bytes, p.columns, p.value_width, true, say, context);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2;
#define ATTENTIONS(name, dtype)                                                                    \
    TOUCHES(eddy_attention_forward_##name, eddy_cuda_attention, touch_forward, bytes_of_##name)    \
    TOUCHES(eddy_attention_rows_##name, eddy_cuda_attention, touch_rows, bytes_of_##name)          \
    TOUCHES(eddy_attention_dq_##name, eddy_cuda_attention, touch_dq, bytes_of_##name)              \
    TOUCHES(eddy_attention_dkv_##name, eddy_cuda_attention, touch_dkv, bytes_of_##name)
EDDY_CUDA_ATTENTIONS(ATTENTIONS)
