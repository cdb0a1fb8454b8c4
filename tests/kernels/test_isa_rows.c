/* The block functions of rows (softmax, normalisations, losses, rotary positions, attention) give the bits of their portable forms on every
 * instruction set of this machine. */
#include "isa.h"
#include <criterion/criterion.h>
#include <kernels/cpu/attention/rope_block.h>
#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/cpu/loss/loss_block.h>
#include <kernels/cpu/norm/norm_block.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <math.h>
#include <string.h>

/* Each function of a row once; x and y have `count` elements of `size` bytes, y is as softmax leaves it. */
static void check_softmax(const eddy_softmax_ops *portable, const eddy_softmax_ops *other,
                          eddy_isa isa, const char *x, const char *y, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_SOFTMAX_CHUNK];
    const eddy_softmax_ops *both[] = {portable, other};
    size_t bytes = size * (size_t)count;
    double values[2][4];
#define BOTH(name, statement)                                                                      \
    for (int b = 0; b < 2; b++) {                                                                  \
        memcpy(rows[b], x, bytes);                                                                 \
        statement;                                                                                 \
    }                                                                                              \
    ASSERT_SAME(rows[0], rows[1], bytes, isa, name, (long long)count)
    BOTH("exp_sum", values[b][0] = both[b]->exp_sum(rows[b], 0.75, count));
    BOTH("scale", both[b]->scale(rows[b], 0.37, count));
    BOTH("shift", both[b]->shift(rows[b], 0.75, 0.11, count));
    BOTH("backward", both[b]->backward(rows[b], y, 0.37, count));
    BOTH("log_backward", both[b]->log_backward(rows[b], y, 0.37, count));
    int64_t whole = count - count / EDDY_SOFTMAX_LANES % EDDY_SOFTMAX_LANES;
    /* Rows that overlap in x, one behind the other in y. */
    for (int64_t together = 1;
         together <= EDDY_SOFTMAX_ROWS && together * count <= EDDY_SOFTMAX_CHUNK; together *= 2) {
        const void *from[EDDY_SOFTMAX_ROWS];
        for (int64_t r = 0; r < together; r++)
            from[r] = x + size * (size_t)r;
        int64_t length = whole - together + 1;
        bytes = size * (size_t)(together * count);
        for (int is_log = 0; is_log < 2; is_log++) {
            for (int b = 0; b < 2; b++) {
                void *to[EDDY_SOFTMAX_ROWS];
                memset(rows[b], 0, bytes);
                for (int64_t r = 0; r < together; r++)
                    to[r] = rows[b] + size * (size_t)(r * count);
                both[b]->rows(to, from, together, length, is_log != 0);
            }
            ASSERT_SAME(rows[0], rows[1], bytes, isa, is_log ? "rows of logarithms" : "rows",
                        (long long)count);
        }
        static eddy_softmax_total totals[2][EDDY_SOFTMAX_ROWS];
        for (int b = 0; b < 2; b++)
            both[b]->totals(from, together, length, totals[b]);
        ASSERT_SAME(totals[0], totals[1], sizeof(totals[0]), isa, "totals", (long long)count);
    }
#undef BOTH
    for (int b = 0; b < 2; b++) {
        values[b][1] = both[b]->max(x, count);
        values[b][2] = both[b]->sum(x, count);
        values[b][3] = both[b]->dot(x, y, count);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "values", (long long)count);
}

Test(isa_rows, softmax_rows_agree) {
    need_another();
    static float x[EDDY_SOFTMAX_CHUNK], y[EDDY_SOFTMAX_CHUNK];
    static double x64[EDDY_SOFTMAX_CHUNK], y64[EDDY_SOFTMAX_CHUNK];
    /* Far enough down that results become subnormal and 0. */
    fill_f32(x, EDDY_SOFTMAX_CHUNK, -120, 0.75), fill_f32(y, EDDY_SOFTMAX_CHUNK, -20, 0);
    fill_f64(x64, EDDY_SOFTMAX_CHUNK, -760, 0.75), fill_f64(y64, EDDY_SOFTMAX_CHUNK, -20, 0);
    x[5] = -INFINITY, x64[5] = -(double)INFINITY;
    EACH_OTHER (isa) {
        for (int64_t count = EDDY_SOFTMAX_LANES; count <= EDDY_SOFTMAX_CHUNK;
             count += EDDY_SOFTMAX_LANES) {
            check_softmax(eddy_cpu_softmax_f32_for(EDDY_ISA_PORTABLE),
                          eddy_cpu_softmax_f32_for(isa), isa, (char *)x, (char *)y, sizeof(float),
                          count);
            check_softmax(eddy_cpu_softmax_f64_for(EDDY_ISA_PORTABLE),
                          eddy_cpu_softmax_f64_for(isa), isa, (char *)x64, (char *)y64,
                          sizeof(double), count);
        }
    }
}

static void check_norm(const eddy_norm_ops *portable, const eddy_norm_ops *other, eddy_isa isa,
                       const char *g, const char *x, const char *w, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_NORM_CHUNK];
    static double sums[2][EDDY_NORM_CHUNK];
    const eddy_norm_ops *both[] = {portable, other};
    double values[2][6];
    for (int b = 0; b < 2; b++) {
        both[b]->moments(x, count, &values[b][0], &values[b][1]);
        values[b][2] = both[b]->square_sum(x, count);
        both[b]->products(g, x, w, 0.25, count, &values[b][3]);
        values[b][5] = both[b]->product(g, x, 0.25, count);
        both[b]->backward(rows[b], g, x, w, 1, 0.25, 1.5, 0.125, 0.375, count);
        both[b]->backward(rows[b], rows[b], x, w, 0, 0.25, 1.5, 0.125, 0.375, count);
        both[b]->apply(rows[b], rows[b], w, x, 1, 0.25, 1.5, count);
        both[b]->apply(rows[b], rows[b], w, x, 0, 0.25, 1.5, count);
        both[b]->apply_each(rows[b], w, x, x, w, count);
        eddy_norm_rows one = {
            .to = rows[b], .from = rows[b], .to_stride = count, .from_stride = count, .count = 1};
        both[b]->places(&one, w, x, 1e-5, true, count);
        both[b]->places(&one, w, x, 1e-5, false, count);
        one = (eddy_norm_rows){.to = rows[b], .from = x, .grad = rows[b], .count = 1};
        both[b]->places_back(&one, w, 1e-5, true, count);
        both[b]->places_back(&one, w, 1e-5, false, count);
        memset(sums[b], 0, sizeof(sums[b]));
        both[b]->accumulate(sums[b], g, x, 0.25, 1.5, count);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "sums", (long long)count);
    ASSERT_SAME(rows[0], rows[1], size * (size_t)count, isa, "rows", (long long)count);
    ASSERT_SAME(sums[0], sums[1], sizeof(sums[0]), isa, "accumulate", (long long)count);
}

Test(isa_rows, normalisations_agree) {
    need_another();
    static float f32[3][EDDY_NORM_CHUNK];
    static double f64[3][EDDY_NORM_CHUNK];
    fill_f32(f32[0], 3 * EDDY_NORM_CHUNK, -1, 1), fill_f64(f64[0], 3 * EDDY_NORM_CHUNK, -1, 1);
    EACH_OTHER (isa) {
        for (int64_t count = 1; count <= EDDY_NORM_CHUNK; count += count < 100 ? 1 : 37) {
            check_norm(eddy_cpu_norm_f32_for(EDDY_ISA_PORTABLE), eddy_cpu_norm_f32_for(isa), isa,
                       (char *)f32[0], (char *)f32[1], (char *)f32[2], sizeof(float), count);
            check_norm(eddy_cpu_norm_f64_for(EDDY_ISA_PORTABLE), eddy_cpu_norm_f64_for(isa), isa,
                       (char *)f64[0], (char *)f64[1], (char *)f64[2], sizeof(double), count);
        }
    }
}

static void check_losses(const eddy_loss_ops *portable, const eddy_loss_ops *other, eddy_isa isa,
                         const char *x, const char *t, const char *p, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_LOSS_CHUNK];
    const eddy_loss_ops *both[] = {portable, other};
    for (int kind = 0; kind < EDDY_LOSS_KINDS; kind++)
        for (int f = 0; f < 3; f++) {
            for (int b = 0; b < 2; b++) {
                eddy_loss_fn *function = f == 0   ? both[b]->forward[kind]
                                         : f == 1 ? both[b]->by_input[kind]
                                                  : both[b]->by_target[kind];
                memcpy(rows[b], x, size * (size_t)count);
                if (function)
                    function(rows[b], x, t, p, 0.5, count);
                both[b]->scale(rows[b], p, 0.375, count);
            }
            ASSERT_SAME(rows[0], rows[1], size * (size_t)count, isa, "loss", (long long)kind);
        }
}

Test(isa_rows, losses_agree) {
    need_another();
    static float f32[3][EDDY_LOSS_CHUNK];
    static double f64[3][EDDY_LOSS_CHUNK];
    fill_f32(f32[0], EDDY_LOSS_CHUNK, -90, 90), fill_f32(f32[1], 2 * EDDY_LOSS_CHUNK, 0, 1);
    fill_f64(f64[0], EDDY_LOSS_CHUNK, -90, 90), fill_f64(f64[1], 2 * EDDY_LOSS_CHUNK, 0, 1);
    EACH_OTHER (isa) {
        for (int64_t count = 1; count <= EDDY_LOSS_CHUNK; count += 31) {
            check_losses(eddy_cpu_loss_f32_for(EDDY_ISA_PORTABLE), eddy_cpu_loss_f32_for(isa), isa,
                         (char *)f32[0], (char *)f32[1], (char *)f32[2], sizeof(float), count);
            check_losses(eddy_cpu_loss_f64_for(EDDY_ISA_PORTABLE), eddy_cpu_loss_f64_for(isa), isa,
                         (char *)f64[0], (char *)f64[1], (char *)f64[2], sizeof(double), count);
        }
    }
}

/* Longer than any loop is unrolled. */
#define ATTENTION_COLUMNS 160

static void check_sdpa(const eddy_sdpa_ops *portable, const eddy_sdpa_ops *other, eddy_isa isa,
                       const char *x, const char *y, const float *chances,
                       const unsigned char *bytes, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * ATTENTION_COLUMNS], weights[2][8 * ATTENTION_COLUMNS];
    const eddy_sdpa_ops *both[] = {portable, other};
    double values[2][3];
    for (int b = 0; b < 2; b++) {
        memcpy(rows[b], x, size * (size_t)count);
        both[b]->scale(rows[b], 0.375, count);
        both[b]->add(rows[b], y, count);
        both[b]->hide(rows[b], bytes, count);
        values[b][0] = both[b]->max(rows[b], count);
        values[b][1] = both[b]->exp_sum(rows[b], 0.25, count);
        memcpy(weights[b], y, size * (size_t)count);
        both[b]->slope(rows[b], weights[b], 0.7, 0.125, count);
        both[b]->drop(rows[b], chances, 0.25f, 1.5, count);
        values[b][2] = both[b]->dot(rows[b], y, count);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "sums", (long long)count);
    ASSERT_SAME(rows[0], rows[1], size * (size_t)count, isa, "rows", (long long)count);
    ASSERT_SAME(weights[0], weights[1], size * (size_t)count, isa, "weights", (long long)count);
}

#define PAIRS 41

static void check_turn(eddy_rope_turn *portable, eddy_rope_turn *other, eddy_isa isa, char *x,
                       size_t size, int64_t pairs) {
    static _Alignas(64) char outs[2][8 * 4 * PAIRS];
    eddy_rope_turn *both[] = {portable, other};
    memset(outs, 0, sizeof(outs));
    for (int b = 0; b < 2; b++) {
        eddy_rope_rows out = {outs[b], outs[b] + size * (size_t)pairs, 2 * pairs};
        both[b](out, (eddy_rope_rows){x, x + size * PAIRS, 2 * PAIRS},
                (eddy_rope_angles){x, x + size, pairs}, 2, pairs);
    }
    ASSERT_SAME(outs[0], outs[1], sizeof(outs[0]), isa, "turned pairs", (long long)pairs);
}

Test(isa_rows, rotary_positions_agree) {
    need_another();
    static float f32[4 * PAIRS + 1], angles[2][2][PAIRS];
    static double f64[4 * PAIRS + 1];
    const double positions[] = {0, 1, -77, 1e4, 1e9};
    fill_f32(f32, 4 * PAIRS + 1, -2, 2), fill_f64(f64, 4 * PAIRS + 1, 0, 1);
    EACH_OTHER (isa) {
        const eddy_rope_blocks *portable = eddy_cpu_rope_blocks_for(EDDY_ISA_PORTABLE),
                               *other = eddy_cpu_rope_blocks_for(isa);
        for (int64_t pairs = 0; pairs <= PAIRS; pairs++) {
            for (int p = 0; p < 5; p++) {
                portable->angles(angles[0][0], angles[0][1], positions[p], f64, pairs);
                other->angles(angles[1][0], angles[1][1], positions[p], f64, pairs);
                ASSERT_SAME(angles[0], angles[1], sizeof(angles[0]), isa, "angles",
                            (long long)pairs);
            }
            check_turn(portable->turn_f32, other->turn_f32, isa, (char *)f32, sizeof(float), pairs);
            check_turn(portable->turn_f64, other->turn_f64, isa, (char *)f64, sizeof(double),
                       pairs);
        }
    }
}

Test(isa_rows, attention_rows_agree) {
    need_another();
    static float f32[2][ATTENTION_COLUMNS];
    static double f64[2][ATTENTION_COLUMNS];
    unsigned char bytes[ATTENTION_COLUMNS];
    fill_f32(f32[0], ATTENTION_COLUMNS, -200, 2), fill_f32(f32[1], ATTENTION_COLUMNS, -1, 1);
    fill_f64(f64[0], ATTENTION_COLUMNS, -2000, 2), fill_f64(f64[1], ATTENTION_COLUMNS, -1, 1);
    for (int i = 0; i < ATTENTION_COLUMNS; i++)
        bytes[i] = i % 3 != 0;
    EACH_OTHER (isa)
        for (int64_t count = 0; count <= ATTENTION_COLUMNS; count++) {
            check_sdpa(eddy_cpu_sdpa_f32_for(EDDY_ISA_PORTABLE), eddy_cpu_sdpa_f32_for(isa), isa,
                       (char *)f32[0], (char *)f32[1], f32[1], bytes, sizeof(float), count);
            check_sdpa(eddy_cpu_sdpa_f64_for(EDDY_ISA_PORTABLE), eddy_cpu_sdpa_f64_for(isa), isa,
                       (char *)f64[0], (char *)f64[1], f32[1], bytes, sizeof(double), count);
        }
}
