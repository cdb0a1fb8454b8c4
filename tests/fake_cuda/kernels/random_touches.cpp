/* What kernels touch that draw random numbers. */
#include <kernels/cuda/multinomial.h>
#include <kernels/cuda/parameters.h>
#include <kernels/cuda/random.h>
#include <kernels/cuda/randperm.h>
#include <tests/fake_cuda/kernels/touches.h>

/* Operands: the inputs, the number, which is no memory, the output. */
static void touch_dense(const eddy_cuda_dense &p, int inputs, int64_t bytes, touch_fn *say,
                        void *context) {
    for (int i = 0; i < inputs; i++)
        range{0, (p.broadcast >> i & 1 ? 1 : p.count) * bytes}.touch(say, context, p.data[i],
                                                                     false);
    range{0, p.count * bytes}.touch(say, context, p.data[inputs + 1], true);
}

static void touch_strided(const eddy_cuda_strided &p, int inputs, int64_t bytes, touch_fn *say,
                          void *context) {
    for (int i = 0; i < inputs + 2; i++) {
        range all = {0, bytes};
        for (int d = 0; d < p.rank; d++)
            all.reach((int64_t)p.dims[d].divisor - 1, p.strides[i][d]);
        if (i != inputs)
            all.touch(say, context, p.data[i], i > inputs);
    }
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4, bytes_of_i64 = 8;
#define FORMS(op, name, inputs)                                                                    \
    TOUCHES(eddy_##op##_##name##_dense, eddy_cuda_dense, touch_dense, inputs, bytes_of_##name)     \
    TOUCHES(eddy_##op##_##name##_strided, eddy_cuda_strided, touch_strided, inputs, bytes_of_##name)
#define FILL(op, name, dtype) FORMS(op, name, 0)
#define DECISION(op, name, dtype) FORMS(op, name, 1)
EDDY_CUDA_RANDOM_FILLS(FILL)
EDDY_CUDA_RANDOM_DECISIONS(DECISION)

/* ---- randperm ---- */

static void touch_words(const int64_t *words, int64_t count, bool is_write, touch_fn *say,
                        void *context) {
    range{0, count * (int64_t)sizeof(*words)}.touch(say, context, words, is_write);
}

static void touch_lists(const eddy_cuda_shuffle &p, bool is_write, touch_fn *say, void *context) {
    touch_words(p.drawn, p.count, is_write, say, context);
    touch_words(p.heads, p.count, is_write, say, context);
    touch_words(p.links, p.count, is_write, say, context);
}

static void touch_follow(const eddy_cuda_shuffle &p, int64_t bytes, touch_fn *say, void *context) {
    touch_lists(p, false, say, context);
    range out = {0, bytes};
    out.reach(p.count - 1, p.stride);
    out.touch(say, context, p.out, true);
}

TOUCHES(eddy_randperm_link, eddy_cuda_shuffle, touch_lists, true)
#define FOLLOW(bits) TOUCHES(eddy_randperm_follow_##bits, eddy_cuda_shuffle, touch_follow, bits / 8)
EDDY_CUDA_RANDPERM_FOLLOWS(FOLLOW)

/* ---- multinomial ---- */

/* What lies row by row, and the output. */
static void touch_multinomial(const eddy_cuda_multinomial_call &p, bool writes_weights,
                              bool writes_out, touch_fn *say, void *context) {
    range{0, p.rows * p.classes * (int64_t)sizeof(double)}.touch(say, context, p.weights,
                                                                 writes_weights);
    if (p.totals)
        range{0, p.rows * (int64_t)sizeof(*p.totals)}.touch(say, context, p.totals, writes_weights);
    else if (writes_out)
        range{0, p.rows * p.draws * (int64_t)sizeof(*p.chosen)}.touch(say, context, p.chosen, true);
    range out = {0, sizeof(int64_t)};
    out.reach(p.rows - 1, p.row_stride);
    out.reach(p.draws - 1, p.draw_stride);
    if (writes_out)
        out.touch(say, context, p.out, true);
}

TOUCHES(eddy_multinomial_sum, eddy_cuda_multinomial_call, touch_multinomial, true, false)
TOUCHES(eddy_multinomial_search, eddy_cuda_multinomial_call, touch_multinomial, false, true)
TOUCHES(eddy_multinomial_keys, eddy_cuda_multinomial_call, touch_multinomial, true, false)
TOUCHES(eddy_multinomial_choose, eddy_cuda_multinomial_call, touch_multinomial, false, true)
