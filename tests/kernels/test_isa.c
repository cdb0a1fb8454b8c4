/* Every block function gives the bits of its portable form on every instruction set of this machine. That the portable
 * forms are right is for the families' own tests. */
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <float.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/gemm_block.h>
#include <kernels/cpu/loss_block.h>
#include <kernels/cpu/mask_block.h>
#include <kernels/cpu/norm_block.h>
#include <kernels/cpu/optimise_block.h>
#include <kernels/cpu/pool_average_block.h>
#include <kernels/cpu/pool_block.h>
#include <kernels/cpu/random_block.h>
#include <kernels/cpu/reduce_block.h>
#include <kernels/cpu/scan_block.h>
#include <kernels/cpu/sdpa_block.h>
#include <kernels/cpu/softmax_block.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The levels beyond the portable one that this machine has. */
#define EACH_OTHER(isa) for (eddy_isa isa = EDDY_ISA_V2; isa <= eddy_isa_machine(); isa++)

static void need_another(void) {
    if (eddy_isa_machine() == EDDY_ISA_PORTABLE)
        cr_skip_test("this machine has no second instruction set");
}

static void fill_f32(float *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(low + (high - low) * test_unit());
}

static void fill_f64(double *x, int64_t count, double low, double high) {
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * test_unit();
}

#define ASSERT_SAME(want, got, bytes, isa, ...)                                                                        \
    cr_assert_eq(memcmp(want, got, bytes), 0, "%s, seed %llu: %s[%lld]", eddy_isa_name(isa),                           \
                 (unsigned long long)test_seed, __VA_ARGS__)

Test(isa, tables_are_apart) {
    EACH_OTHER(isa) {
        cr_assert_neq(eddy_cpu_cast_blocks_for(isa), eddy_cpu_cast_blocks_for((eddy_isa)(isa - 1)));
        cr_assert_neq(eddy_cpu_softmax_blocks_for(isa), eddy_cpu_softmax_blocks_for((eddy_isa)(isa - 1)));
    }
}

#define CASTS 1037

/* Elements that sit on the targets' bounds, and any bits at all. */
static void fill_source(eddy_dtype dtype, char *x) {
    static const double edges[] = {0,           -0.0,         0.5,      -0.5,     127,         128,        -128.5,
                                   255.5,       256,          32767.5,  -32769,   65504,       65520,      2147483647,
                                   2147483648., -2147483649., 0x1p63,   -0x1p63,  INFINITY,    NAN,        0x1p-24,
                                   0x1p-25,     0x1p-126,     0x1p-149, 0x1p-150, 1 + 0x1p-11, 1 + 0x1p-24};
    int64_t size = (int64_t)eddy_dtype_bytes(dtype);
    for (int64_t i = 0; i < CASTS; i++) {
        uint64_t bits = test_random();
        memcpy(x + i * size, &bits, (size_t)size);
        if (dtype == EDDY_BOOL)
            x[i] = (char)(bits & 1);
        else if (eddy_dtype_is_float(dtype) && i % 3 == 0)
            eddy_dtype_store_f64(dtype, x + i * size, edges[test_below(sizeof(edges) / sizeof(edges[0]))]);
    }
}

Test(isa, casts_agree) {
    need_another();
    for (int from = 0; from < EDDY_DTYPE_COUNT; from++)
        for (int to = 0; to < EDDY_DTYPE_COUNT; to++) {
            static _Alignas(64) char in[8 * CASTS + 8], want[8 * CASTS], got[8 * CASTS];
            size_t bytes = CASTS * eddy_dtype_bytes((eddy_dtype)to);
            fill_source((eddy_dtype)from, in + 8);
            eddy_cpu_cast_blocks_portable.cast[to][from](want, in + 8, CASTS);
            EACH_OTHER(isa) {
                eddy_cpu_cast_blocks_for(isa)->cast[to][from](got, in + 8, CASTS);
                ASSERT_SAME(want, got, bytes, isa, eddy_dtype_name((eddy_dtype)from), (long long)to);
            }
        }
}

Test(isa, gemm_tiles_agree) {
    need_another();
    enum { DEPTH = 128 };
    static float a[DEPTH * EDDY_GEMM_ROWS], b[DEPTH * EDDY_GEMM_WIDTH_F32];
    static double a64[DEPTH * EDDY_GEMM_ROWS], b64[DEPTH * EDDY_GEMM_WIDTH_F64];
    float want[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F32], got[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F32];
    double want64[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F64], got64[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F64];
    fill_f32(a, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f32(b, DEPTH * EDDY_GEMM_WIDTH_F32, -1, 1);
    fill_f64(a64, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f64(b64, DEPTH * EDDY_GEMM_WIDTH_F64, -1, 1);
    for (int64_t k = 0; k <= DEPTH; k++) {
        eddy_cpu_gemm_blocks_portable.tile_f32(k, a, b, want);
        eddy_cpu_gemm_blocks_portable.tile_f64(k, a64, b64, want64);
        EACH_OTHER(isa) {
            eddy_cpu_gemm_blocks_for(isa)->tile_f32(k, a, b, got);
            eddy_cpu_gemm_blocks_for(isa)->tile_f64(k, a64, b64, got64);
            ASSERT_SAME(want, got, sizeof(got), isa, "tile_f32", (long long)k);
            ASSERT_SAME(want64, got64, sizeof(got64), isa, "tile_f64", (long long)k);
        }
    }
}

#define STEPS 131

/* One step of each optimiser from the same start; out: parameters, and what Adam keeps. */
typedef struct steps {
    float sgd[STEPS], adam[3][STEPS];
    double sgd64[STEPS], adam64[3][STEPS];
} steps;

static void step(const eddy_optimise_blocks *blocks, steps *s, const float *g, const double *g64, int64_t count) {
    static const eddy_sgd_numbers sgd = {.lr = 0.1, .weight_decay = 0.01};
    static const eddy_adam_numbers adam = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .step_size = 0.01, .root_of_bias2 = 0.03};
    blocks->sgd_f32(&sgd, s->sgd, g, count);
    blocks->sgd_f64(&sgd, s->sgd64, g64, count);
    blocks->adam_f32(&adam, s->adam[0], g, s->adam[1], s->adam[2], count);
    blocks->adam_f64(&adam, s->adam64[0], g64, s->adam64[1], s->adam64[2], count);
}

Test(isa, optimisers_agree) {
    need_another();
    static steps start, want, got;
    float g[STEPS];
    double g64[STEPS];
    fill_f32(g, STEPS, -1, 1), fill_f64(g64, STEPS, -1, 1);
    fill_f32(start.sgd, STEPS, -1, 1), fill_f64(start.sgd64, STEPS, -1, 1);
    fill_f32(start.adam[0], 3 * STEPS, 0, 0.1), fill_f64(start.adam64[0], 3 * STEPS, 0, 0.1);
    for (int64_t count = 0; count <= STEPS; count++) {
        want = start;
        step(&eddy_cpu_optimise_blocks_portable, &want, g, g64, count);
        EACH_OTHER(isa) {
            got = start;
            step(eddy_cpu_optimise_blocks_for(isa), &got, g, g64, count);
            ASSERT_SAME(&want, &got, sizeof(got), isa, "step", (long long)count);
        }
    }
}

typedef struct numbers {
    uint32_t words[4 * EDDY_RANDOM_BLOCKS];
    float uniform[4 * EDDY_RANDOM_BLOCKS], normal[4 * EDDY_RANDOM_BLOCKS];
    double uniform64[2 * EDDY_RANDOM_BLOCKS], normal64[2 * EDDY_RANDOM_BLOCKS];
    int64_t below[EDDY_RANDOM_BLOCKS], is_complete;
} numbers;

static void draw(const eddy_random_blocks *blocks, numbers *n, uint64_t block) {
    blocks->words(n->words, 11, 2, block);
    blocks->uniform_f32(n->uniform, 24, 11, 2, block);
    blocks->normal_f32(n->normal, 11, 2, block);
    blocks->uniform_f64(n->uniform64, 11, 2, block);
    blocks->normal_f64(n->normal64, 11, 2, block);
    n->is_complete = blocks->below(n->below, -7, 4000000000u, 294967296, 11, 2, block);
}

Test(isa, random_numbers_agree) {
    need_another();
    for (uint64_t block = 0; block < EDDY_RANDOM_BLOCKS * UINT64_C(2000); block += EDDY_RANDOM_BLOCKS) {
        numbers want, got;
        draw(&eddy_cpu_random_blocks_portable, &want, block);
        EACH_OTHER(isa) {
            draw(eddy_cpu_random_blocks_for(isa), &got, block);
            ASSERT_SAME(&want, &got, sizeof(got), isa, "numbers of block", (long long)block);
        }
    }
}

/* Blocks, rows and combining of one op on `count` elements; `results` are any of the type that it computes in. */
static void check_reduce(const eddy_reduce_op *portable, const eddy_reduce_op *other, eddy_isa isa, const char *x,
                         size_t size, int64_t count, const char *results) {
    static _Alignas(64) char want[8 * EDDY_REDUCE_LANES * EDDY_REDUCE_COLUMNS];
    static _Alignas(64) char got[8 * EDDY_REDUCE_LANES * EDDY_REDUCE_COLUMNS];
    portable->block(x, count, want);
    other->block(x, count, got);
    ASSERT_SAME(want, got, size, isa, "block", (long long)count);
    if (count >= EDDY_REDUCE_GROUP) {
        portable->group(x, count / EDDY_REDUCE_GROUP, want);
        other->group(x, count / EDDY_REDUCE_GROUP, got);
        ASSERT_SAME(want, got, size, isa, "group", (long long)count);
    }
    int64_t columns = count < EDDY_REDUCE_COLUMNS ? count : EDDY_REDUCE_COLUMNS, rows = EDDY_REDUCE_BLOCK / columns;
    rows = rows < 2 * EDDY_REDUCE_LANES ? rows : 2 * EDDY_REDUCE_LANES;
    memset(want, 0, sizeof(want)), memset(got, 0, sizeof(got));
    portable->rows(want, x, columns, 0, rows, columns);
    other->rows(got, x, columns, 0, rows, columns);
    ASSERT_SAME(want, got, sizeof(got), isa, "rows of", (long long)columns);
    portable->combine(want, results, columns);
    other->combine(got, results, columns);
    ASSERT_SAME(want, got, sizeof(got), isa, "combine", (long long)columns);
}

/* The second sweep of a pair and its merging; `results` stand for what the first one found. */
static void check_pair(const eddy_reduce_pair *portable, const eddy_reduce_pair *other, eddy_isa isa, const char *x,
                       const char *results, size_t size, int64_t count) {
    static _Alignas(64) char lanes[2][8 * EDDY_REDUCE_LANES * EDDY_REDUCE_COLUMNS], pairs[2][2][8 * EDDY_REDUCE_BLOCK];
    const eddy_reduce_pair *both[] = {portable, other};
    int64_t columns = count < EDDY_REDUCE_COLUMNS ? count : EDDY_REDUCE_COLUMNS, rows = EDDY_REDUCE_BLOCK / columns;
    rows = rows < 2 * EDDY_REDUCE_LANES ? rows : 2 * EDDY_REDUCE_LANES;
    memset(lanes, 0, sizeof(lanes)), memset(pairs, 0, sizeof(pairs));
    for (int i = 0; i < 2; i++)
        both[i]->block(x, count, results, lanes[i]);
    ASSERT_SAME(lanes[0], lanes[1], size, isa, "second block", (long long)count);
    for (int i = 0; i < 2; i++) {
        both[i]->rows(lanes[i], x, columns, 0, rows, columns, results);
        memcpy(pairs[i][0], results, size * (size_t)count), memcpy(pairs[i][1], results, size * (size_t)count);
        if (both[i]->merge != NULL)
            both[i]->merge(pairs[i][0], pairs[i][1], 3072, results + size, results, 1024, count - 1);
    }
    ASSERT_SAME(lanes[0], lanes[1], sizeof(lanes[0]), isa, "second rows of", (long long)columns);
    ASSERT_SAME(pairs[0], pairs[1], sizeof(pairs[0]), isa, "merge", (long long)count);
}

/* What reduces f32 (0) or f64 (1) in f64. */
static void check_wide(const eddy_reduce_blocks *portable, const eddy_reduce_blocks *other, eddy_isa isa, int type,
                       const char *x, const char *f64, int64_t count) {
    const eddy_reduce_op *const ops[][2] = {{portable->wide_sum, other->wide_sum},
                                            {portable->wide_prod, other->wide_prod},
                                            {portable->squares, other->squares},
                                            {portable->magnitudes, other->magnitudes},
                                            {portable->nonzeros, other->nonzeros},
                                            {portable->max_magnitude, other->max_magnitude},
                                            {portable->min_magnitude, other->min_magnitude}};
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
        check_reduce(&ops[o][0][type], &ops[o][1][type], isa, x, 8, count, f64);
    check_pair(&portable->variance[type], &other->variance[type], isa, x, f64, 8, count);
}

Test(isa, reductions_agree) {
    need_another();
    static float f32[EDDY_REDUCE_BLOCK];
    static double f64[EDDY_REDUCE_BLOCK];
    static int64_t i64[EDDY_REDUCE_BLOCK];
    static uint8_t truth[EDDY_REDUCE_BLOCK];
    fill_f32(f32, EDDY_REDUCE_BLOCK, -1, 1), fill_f64(f64, EDDY_REDUCE_BLOCK, -1, 1);
    for (int i = 0; i < EDDY_REDUCE_BLOCK; i++) {
        i64[i] = (int64_t)test_random();
        truth[i] = i64[i] & 1;
    }
    const char *x[EDDY_REDUCE_TYPES] = {(char *)f32, (char *)f64, (char *)i64, (char *)truth};
    const size_t sizes[EDDY_REDUCE_TYPES] = {4, 8, 8, 1};
    EACH_OTHER(isa) {
        const eddy_reduce_blocks *portable = &eddy_cpu_reduce_blocks_portable, *other = eddy_cpu_reduce_blocks_for(isa);
        for (int type = 0; type < EDDY_REDUCE_TYPES; type++)
            for (int64_t count = 1; count <= EDDY_REDUCE_BLOCK; count++) {
                check_reduce(&portable->max[type], &other->max[type], isa, x[type], sizes[type], count, x[type]);
                check_reduce(&portable->min[type], &other->min[type], isa, x[type], sizes[type], count, x[type]);
                if (type == EDDY_REDUCE_TRUTH)
                    continue;
                check_reduce(&portable->sum[type], &other->sum[type], isa, x[type], sizes[type], count, x[type]);
                check_reduce(&portable->prod[type], &other->prod[type], isa, x[type], sizes[type], count, x[type]);
                int64_t columns = count < 64 ? count : 64, indices[2][64] = {{0}};
                int64_t best[2][64] = {{0}};
                portable->argmax_row[type](best[0], indices[0], x[type], 7, columns);
                other->argmax_row[type](best[1], indices[1], x[type], 7, columns);
                portable->argmin_row[type](best[0], indices[0], x[type] + sizes[type], 8, columns - 1);
                other->argmin_row[type](best[1], indices[1], x[type] + sizes[type], 8, columns - 1);
                ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "argmax", (long long)columns);
                ASSERT_SAME(indices[0], indices[1], sizeof(indices[0]), isa, "argmax's indices", (long long)columns);
                const char *last = x[type] + (size_t)(count - 1) * sizes[type];
                cr_assert_eq(portable->find[type](x[type], last), other->find[type](x[type], last));
            }
        for (int64_t count = 1; count <= EDDY_REDUCE_BLOCK; count += count < 70 ? 1 : 53) {
            check_wide(portable, other, isa, EDDY_REDUCE_F32, x[EDDY_REDUCE_F32], x[EDDY_REDUCE_F64], count);
            check_wide(portable, other, isa, EDDY_REDUCE_F64, x[EDDY_REDUCE_F64], x[EDDY_REDUCE_F64], count);
            check_pair(&portable->deviation, &other->deviation, isa, (char *)f64, (char *)f64, 8, count);
            check_pair(&portable->log_sum_exp[0], &other->log_sum_exp[0], isa, (char *)f32, (char *)f32, 4, count);
            check_pair(&portable->log_sum_exp[1], &other->log_sum_exp[1], isa, (char *)f64, (char *)f64, 8, count);
            double powers[2][EDDY_REDUCE_BLOCK];
            portable->power(powers[0], f64, count, 1.5);
            other->power(powers[1], f64, count, 1.5);
            ASSERT_SAME(powers[0], powers[1], 8 * (size_t)count, isa, "powers", (long long)count);
        }
    }
}

#define FILLED 331

/* Beside each other and apart, and in place. */
static void check_fill(eddy_mask_fill *portable, eddy_mask_fill *other, eddy_isa isa, size_t size, int64_t count) {
    static _Alignas(64) char in[3 * 8 * FILLED], outs[2][2 * 8 * FILLED];
    static uint8_t mask[2 * FILLED];
    eddy_mask_fill *const both[] = {portable, other};
    uint64_t value = test_random();
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)test_random();
    for (size_t i = 0; i < sizeof(mask); i++)
        mask[i] = (uint8_t)(test_random() & 1);
    for (int64_t stride = 1; stride <= 2; stride++) {
        for (int i = 0; i < 2; i++) {
            memset(outs[i], 0, sizeof(outs[i]));
            both[i](outs[i], stride, in, 2 * stride - 1, mask, stride, &value, count);
        }
        ASSERT_SAME(outs[0], outs[1], sizeof(outs[0]), isa, "fill of", (long long)count);
        for (int i = 0; i < 2; i++)
            both[i](outs[i], 1, outs[i], 1, mask + 1, stride, &value, count);
        ASSERT_SAME(outs[0], outs[1], sizeof(outs[0]), isa, "fill in place of", (long long)count);
        for (int64_t i = 0; i < count; i++)
            if (mask[1 + i * stride])
                cr_assert_eq(memcmp(outs[1] + (size_t)i * size, &value, size), 0);
    }
}

Test(isa, fills_by_mask_agree) {
    need_another();
    EACH_OTHER(isa) {
        const eddy_mask_blocks *portable = &eddy_cpu_mask_blocks_portable, *other = eddy_cpu_mask_blocks_for(isa);
        for (int64_t count = 0; count < FILLED; count++) {
            check_fill(portable->fill_8, other->fill_8, isa, 1, count);
            check_fill(portable->fill_16, other->fill_16, isa, 2, count);
            check_fill(portable->fill_32, other->fill_32, isa, 4, count);
            check_fill(portable->fill_64, other->fill_64, isa, 8, count);
        }
    }
}

/* Elements are doubles or int64_t alike: 8 bytes. */
static void check_scan(const eddy_scan_op *portable, const eddy_scan_op *other, eddy_isa isa, const char *x,
                       int64_t lines, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_SCAN_LINES * EDDY_SCAN_BLOCK];
    const eddy_scan_op *both[] = {portable, other};
    double totals[2][EDDY_SCAN_COLUMNS];
    for (int i = 0; i < 2; i++) {
        memcpy(rows[i], x, sizeof(rows[i]));
        memcpy(totals[i], x + 8, sizeof(totals[i]));
        both[i]->lines(rows[i], lines, EDDY_SCAN_BLOCK, count, totals[i]);
        both[i]->shift(rows[i], count, x);
        both[i]->row(rows[i], totals[i], x + 16, count < EDDY_SCAN_COLUMNS ? count : EDDY_SCAN_COLUMNS);
    }
    ASSERT_SAME(rows[0], rows[1], sizeof(rows[0]), isa, "scan of", (long long)count);
    ASSERT_SAME(totals[0], totals[1], sizeof(totals[0]), isa, "totals of", (long long)count);
}

Test(isa, scans_agree) {
    need_another();
    static double f64[EDDY_SCAN_LINES * EDDY_SCAN_BLOCK];
    static int64_t i64[EDDY_SCAN_LINES * EDDY_SCAN_BLOCK];
    fill_f64(f64, EDDY_SCAN_LINES * EDDY_SCAN_BLOCK, -1, 1);
    for (int i = 0; i < EDDY_SCAN_LINES * EDDY_SCAN_BLOCK; i++)
        i64[i] = (int64_t)test_random();
    EACH_OTHER(isa) {
        const eddy_scan_blocks *portable = &eddy_cpu_scan_blocks_portable, *other = eddy_cpu_scan_blocks_for(isa);
        for (int64_t count = 1; count <= EDDY_SCAN_BLOCK; count += 1 + count / 3)
            for (int64_t lines = 1; lines <= EDDY_SCAN_LINES; lines++) {
                check_scan(&portable->sum_f64, &other->sum_f64, isa, (char *)f64, lines, count);
                check_scan(&portable->prod_f64, &other->prod_f64, isa, (char *)f64, lines, count);
                check_scan(&portable->sum_i64, &other->sum_i64, isa, (char *)i64, lines, count);
                check_scan(&portable->prod_i64, &other->prod_i64, isa, (char *)i64, lines, count);
            }
    }
}

/* Each function of a row once; x and y have `count` elements of `size` bytes, y is as softmax leaves it. */
static void check_softmax(const eddy_softmax_ops *portable, const eddy_softmax_ops *other, eddy_isa isa, const char *x,
                          const char *y, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_SOFTMAX_CHUNK];
    const eddy_softmax_ops *both[] = {portable, other};
    size_t bytes = size * (size_t)count;
    double values[2][6];
#define BOTH(name, statement)                                                                                          \
    for (int b = 0; b < 2; b++) {                                                                                      \
        memcpy(rows[b], x, bytes);                                                                                     \
        statement;                                                                                                     \
    }                                                                                                                  \
    ASSERT_SAME(rows[0], rows[1], bytes, isa, name, (long long)count)
    BOTH("exp_sum", values[b][0] = both[b]->exp_sum(rows[b], 0.75, count));
    BOTH("scale", both[b]->scale(rows[b], 0.37, count));
    BOTH("shift", both[b]->shift(rows[b], 0.75, 0.11, count));
    BOTH("backward", both[b]->backward(rows[b], y, 0.37, count));
    BOTH("log_backward", both[b]->log_backward(rows[b], y, 0.37, count));
    int64_t whole = count - count / EDDY_SOFTMAX_LANES % EDDY_SOFTMAX_LANES;
    BOTH("row", both[b]->row(rows[b], x, whole, false));
    BOTH("row of logarithms", both[b]->row(rows[b], x, whole, true));
#undef BOTH
    for (int b = 0; b < 2; b++) {
        values[b][1] = both[b]->max(x, count);
        values[b][2] = both[b]->sum(x, count);
        values[b][3] = both[b]->dot(x, y, count);
        values[b][4] = both[b]->total(x, whole, &values[b][5]);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "values", (long long)count);
}

Test(isa, softmax_rows_agree) {
    need_another();
    static float x[EDDY_SOFTMAX_CHUNK], y[EDDY_SOFTMAX_CHUNK];
    static double x64[EDDY_SOFTMAX_CHUNK], y64[EDDY_SOFTMAX_CHUNK];
    /* Far enough down that results become subnormal and 0. */
    fill_f32(x, EDDY_SOFTMAX_CHUNK, -120, 0.75), fill_f32(y, EDDY_SOFTMAX_CHUNK, -20, 0);
    fill_f64(x64, EDDY_SOFTMAX_CHUNK, -760, 0.75), fill_f64(y64, EDDY_SOFTMAX_CHUNK, -20, 0);
    x[5] = -INFINITY, x64[5] = -(double)INFINITY;
    EACH_OTHER(isa) {
        const eddy_softmax_blocks *portable = &eddy_cpu_softmax_blocks_portable;
        const eddy_softmax_blocks *other = eddy_cpu_softmax_blocks_for(isa);
        for (int64_t count = EDDY_SOFTMAX_LANES; count <= EDDY_SOFTMAX_CHUNK; count += EDDY_SOFTMAX_LANES) {
            check_softmax(&portable->f32, &other->f32, isa, (char *)x, (char *)y, sizeof(float), count);
            check_softmax(&portable->f64, &other->f64, isa, (char *)x64, (char *)y64, sizeof(double), count);
        }
    }
}

static void check_norm(const eddy_norm_ops *portable, const eddy_norm_ops *other, eddy_isa isa, const char *g,
                       const char *x, const char *w, size_t size, int64_t count) {
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
        eddy_norm_rows one = {.to = rows[b], .from = rows[b], .to_stride = count, .from_stride = count, .count = 1};
        both[b]->places(&one, w, x, 1e-5, true, count);
        both[b]->places(&one, w, x, 1e-5, false, count);
        memset(sums[b], 0, sizeof(sums[b]));
        both[b]->accumulate(sums[b], g, x, 0.25, 1.5, count);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "sums", (long long)count);
    ASSERT_SAME(rows[0], rows[1], size * (size_t)count, isa, "rows", (long long)count);
    ASSERT_SAME(sums[0], sums[1], sizeof(sums[0]), isa, "accumulate", (long long)count);
}

Test(isa, normalisations_agree) {
    need_another();
    static float f32[3][EDDY_NORM_CHUNK];
    static double f64[3][EDDY_NORM_CHUNK];
    fill_f32(f32[0], 3 * EDDY_NORM_CHUNK, -1, 1), fill_f64(f64[0], 3 * EDDY_NORM_CHUNK, -1, 1);
    EACH_OTHER(isa) {
        const eddy_norm_blocks *portable = &eddy_cpu_norm_blocks_portable, *other = eddy_cpu_norm_blocks_for(isa);
        for (int64_t count = 1; count <= EDDY_NORM_CHUNK; count += count < 100 ? 1 : 37) {
            check_norm(&portable->f32, &other->f32, isa, (char *)f32[0], (char *)f32[1], (char *)f32[2], sizeof(float),
                       count);
            check_norm(&portable->f64, &other->f64, isa, (char *)f64[0], (char *)f64[1], (char *)f64[2], sizeof(double),
                       count);
        }
    }
}

static void check_losses(const eddy_loss_ops *portable, const eddy_loss_ops *other, eddy_isa isa, const char *x,
                         const char *t, const char *p, size_t size, int64_t count) {
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

Test(isa, losses_agree) {
    need_another();
    static float f32[3][EDDY_LOSS_CHUNK];
    static double f64[3][EDDY_LOSS_CHUNK];
    fill_f32(f32[0], EDDY_LOSS_CHUNK, -90, 90), fill_f32(f32[1], 2 * EDDY_LOSS_CHUNK, 0, 1);
    fill_f64(f64[0], EDDY_LOSS_CHUNK, -90, 90), fill_f64(f64[1], 2 * EDDY_LOSS_CHUNK, 0, 1);
    EACH_OTHER(isa) {
        const eddy_loss_blocks *portable = &eddy_cpu_loss_blocks_portable, *other = eddy_cpu_loss_blocks_for(isa);
        for (int64_t count = 1; count <= EDDY_LOSS_CHUNK; count += 31) {
            check_losses(&portable->f32, &other->f32, isa, (char *)f32[0], (char *)f32[1], (char *)f32[2],
                         sizeof(float), count);
            check_losses(&portable->f64, &other->f64, isa, (char *)f64[0], (char *)f64[1], (char *)f64[2],
                         sizeof(double), count);
        }
    }
}

/* Longer than any loop is unrolled. */
#define ATTENTION_COLUMNS 160

static void check_sdpa(const eddy_sdpa_ops *portable, const eddy_sdpa_ops *other, eddy_isa isa, const char *x,
                       const char *y, const float *chances, const unsigned char *bytes, size_t size, int64_t count) {
    static _Alignas(64) char rows[2][8 * ATTENTION_COLUMNS];
    const eddy_sdpa_ops *both[] = {portable, other};
    double values[2][3];
    for (int b = 0; b < 2; b++) {
        memcpy(rows[b], x, size * (size_t)count);
        both[b]->scale(rows[b], 0.375, count);
        both[b]->add(rows[b], y, count);
        both[b]->hide(rows[b], bytes, count);
        values[b][0] = both[b]->max(rows[b], count);
        values[b][1] = both[b]->exp_sum(rows[b], 0.25, count);
        both[b]->slope(rows[b], y, 0.125, count);
        both[b]->drop(rows[b], chances, 0.25f, 1.5, count);
        values[b][2] = both[b]->dot(rows[b], y, count);
    }
    ASSERT_SAME(values[0], values[1], sizeof(values[0]), isa, "sums", (long long)count);
    ASSERT_SAME(rows[0], rows[1], size * (size_t)count, isa, "rows", (long long)count);
}

Test(isa, attention_rows_agree) {
    need_another();
    static float f32[2][ATTENTION_COLUMNS];
    static double f64[2][ATTENTION_COLUMNS];
    unsigned char bytes[ATTENTION_COLUMNS];
    fill_f32(f32[0], ATTENTION_COLUMNS, -200, 2), fill_f32(f32[1], ATTENTION_COLUMNS, -1, 1);
    fill_f64(f64[0], ATTENTION_COLUMNS, -2000, 2), fill_f64(f64[1], ATTENTION_COLUMNS, -1, 1);
    for (int i = 0; i < ATTENTION_COLUMNS; i++)
        bytes[i] = i % 3 != 0;
    EACH_OTHER(isa)
    for (int64_t count = 0; count <= ATTENTION_COLUMNS; count++) {
        check_sdpa(&eddy_cpu_sdpa_blocks_portable.f32, &eddy_cpu_sdpa_blocks_for(isa)->f32, isa, (char *)f32[0],
                   (char *)f32[1], f32[1], bytes, sizeof(float), count);
        check_sdpa(&eddy_cpu_sdpa_blocks_portable.f64, &eddy_cpu_sdpa_blocks_for(isa)->f64, isa, (char *)f64[0],
                   (char *)f64[1], f32[1], bytes, sizeof(double), count);
    }
}

/* Rows side by side at every step that has a loop of its own, and channels. */
Test(isa, pools_agree) {
    need_another();
    enum { SIDE = 40 };
    static const eddy_pool_run runs[] = {
        {3, 3, SIDE, 1, 30, 1, 1, 1, 0, 0, false},   {2, 2, SIDE, 1, 19, 2, 1, 1, 0, 0, true},
        {2, 3, SIDE, 2, 9, 3, 2, 1, 0, 0, true},     {2, 2, 10 * SIDE, 80, 77, 1, 1, 3, 80, 77, true},
        {1, 1, 0, 0, 130, 1, 3, 2, 130, 400, false}, {3, 2, SIDE, 1, 5, 2, 1, 4, 80, 5, false},
    };
    static float x[SIDE * SIDE], want[SIDE * SIDE], got[SIDE * SIDE];
    static double x64[SIDE * SIDE], want64[SIDE * SIDE], got64[SIDE * SIDE];
    fill_f32(x, SIDE * SIDE, -1, 1), fill_f64(x64, SIDE * SIDE, -1, 1);
    for (int i = 0; i < 20; i++)
        x[test_below(SIDE * SIDE)] = NAN, x64[test_below(SIDE * SIDE)] = NAN;
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < 2; k++)
            EACH_OTHER(isa) {
                const eddy_pool_ops *first = &eddy_cpu_pool_blocks_portable.f32,
                                    *other = &eddy_cpu_pool_blocks_for(isa)->f32;
                (k ? first->average : first->max)(want, x, &runs[r], 3);
                (k ? other->average : other->max)(got, x, &runs[r], 3);
                ASSERT_SAME(want, got, sizeof(want), isa, "f32", (long long)r);
                first = &eddy_cpu_pool_blocks_portable.f64, other = &eddy_cpu_pool_blocks_for(isa)->f64;
                (k ? first->average : first->max)(want64, x64, &runs[r], 3);
                (k ? other->average : other->max)(got64, x64, &runs[r], 3);
                ASSERT_SAME(want64, got64, sizeof(want64), isa, "f64", (long long)r);
            }
    static int64_t at[2][SIDE * SIDE];
    for (int r = 0; r < 6; r++)
        EACH_OTHER(isa) {
            eddy_pool_indices to[2];
            for (int b = 0; b < 2; b++)
                to[b] = (eddy_pool_indices){at[b], 7, SIDE, 1, 2, runs[r].out_step, 5, runs[r].out_place_step};
            eddy_cpu_pool_blocks_portable.f32.max_index(want, x, &runs[r], &to[0]);
            eddy_cpu_pool_blocks_for(isa)->f32.max_index(got, x, &runs[r], &to[1]);
            ASSERT_SAME(want, got, sizeof(want), isa, "f32", (long long)r);
            ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "f32's indices", (long long)r);
            eddy_cpu_pool_blocks_portable.f64.max_index(want64, x64, &runs[r], &to[0]);
            eddy_cpu_pool_blocks_for(isa)->f64.max_index(got64, x64, &runs[r], &to[1]);
            ASSERT_SAME(want64, got64, sizeof(want64), isa, "f64", (long long)r);
            ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "f64's indices", (long long)r);
        }
}

/* One number at each place; the edges of what is a number at all. */
Test(isa, pools_find_what_is_not_plain) {
    need_another();
    static float x[70];
    const float plain[] = {-FLT_MAX, FLT_MAX, INFINITY, -0.0F}, others[] = {NAN, -NAN, -INFINITY};
    EACH_OTHER(isa)
    for (int64_t count = 0; count <= 70; count++)
        for (int64_t at = 0; at < count; at++) {
            const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks_for(isa);
            x[at] = plain[at % 4];
            cr_assert(blocks->is_plain(x, count) && eddy_cpu_pool_blocks_portable.is_plain(x, count));
            x[at] = others[at % 3];
            cr_assert(!blocks->is_plain(x, count) && !eddy_cpu_pool_blocks_portable.is_plain(x, count));
            x[at] = 0;
        }
}

/* What windows have of rows, with steps that have loops of their own, and then the rows together. */
Test(isa, pools_in_two_sweeps_agree) {
    need_another();
    enum { ROWS = 4, ROW = 200, OUT = 2 * 64 };
    static float x[ROWS * ROW], best[2][ROWS * ROW + OUT];
    static double x64[ROWS * ROW], best64[2][ROWS * ROW + OUT];
    static int64_t at[2][ROWS * ROW], to[2][OUT];
    fill_f32(x, ROWS * ROW, -1, 1), fill_f64(x64, ROWS * ROW, -1, 1);
    for (int i = 0; i < 20; i++)
        x[test_below(ROWS * ROW)] = NAN, x64[test_below(ROWS * ROW)] = NAN;
    EACH_OTHER(isa)
    for (int64_t step = 1; step <= 3; step++)
        for (int64_t count = 1; count <= 64; count++)
            for (int64_t out_step = 1; out_step <= 2; out_step++) {
                const eddy_pool_run take = {1, 3, 0, 1, count, step, out_step, ROWS, ROW, ROW, false};
                const eddy_pool_run join = {3, 1, ROW, 0, count, 1, 1, 2, ROW, 64, false};
                for (int b = 0; b < 2; b++) {
                    const eddy_pool_blocks *blocks = b ? eddy_cpu_pool_blocks_for(isa) : &eddy_cpu_pool_blocks_portable;
                    const eddy_pool_indices indices = {to[b], 7, ROW, 0, 2, 1, ROW, 64};
                    blocks->f32.max_at(best[b], at[b], x, &take);
                    blocks->f32.max_join(best[b] + ROWS * ROW, best[b], at[b], &join, &indices);
                    blocks->f64.sum(best64[b], x64, &take, 1);
                }
                ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "f32", (long long)count);
                ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "places", (long long)count);
                ASSERT_SAME(to[0], to[1], sizeof(to[0]), isa, "indices", (long long)count);
                ASSERT_SAME(best64[0], best64[1], sizeof(best64[0]), isa, "f64", (long long)count);
                for (int b = 0; b < 2; b++) {
                    const eddy_pool_blocks *blocks = b ? eddy_cpu_pool_blocks_for(isa) : &eddy_cpu_pool_blocks_portable;
                    const eddy_pool_indices indices = {to[b], 7, ROW, 0, 2, 1, ROW, 64};
                    blocks->f64.max_at(best64[b], at[b], x64, &take);
                    blocks->f64.max_join(best64[b] + ROWS * ROW, best64[b], at[b], &join, &indices);
                    blocks->f32.sum(best[b], x, &take, 1);
                }
                ASSERT_SAME(best64[0], best64[1], sizeof(best64[0]), isa, "f64", (long long)count);
                ASSERT_SAME(to[0], to[1], sizeof(to[0]), isa, "indices", (long long)count);
                ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "f32", (long long)count);
            }
}

enum { SPREAD_ROW = 70, SPREAD_ROWS = 4, SPREAD_PLACES = SPREAD_ROW * SPREAD_ROWS };

/* What one instruction set makes of terms: in rows, one after the other, and in places with `count` channels. */
static void spread(const eddy_pool_average_ops *ops, const void *x, const void *y, int64_t size, int64_t count,
                   int64_t stride, char *made, char *wide) {
    int64_t width = count / stride, rest = stride > 1 ? stride - 1 : 0;
    char *part = wide + size * SPREAD_PLACES;
    eddy_pool_shadow shadow = {made, SPREAD_ROW, 2, 2};
    ops->divide(wide, x, y, count);
    memcpy(made, wide, (size_t)(size * count));
    ops->widen(wide, part, x, width, stride, 1, rest);
    /* The first windows are the left neighbours of what is added to. */
    ops->windows(&shadow, wide + size * 2 * stride, rest > 0 ? part + size * 2 * stride : NULL, 2, stride,
                 (width - 2) * stride);
    ops->windows(&shadow, x, NULL, 1, stride, count);
    ops->span(&shadow, y, count);
    ops->channels(&shadow, count / 2, 2, 1, x, 3, count / 2);
}

Test(isa, gradients_of_averages_agree) {
    need_another();
    static double x64[SPREAD_PLACES], y64[SPREAD_PLACES], made[2][SPREAD_PLACES], wide[2][2 * SPREAD_PLACES];
    static float x[SPREAD_PLACES], y[SPREAD_PLACES];
    fill_f64(x64, SPREAD_PLACES, -1, 1), fill_f64(y64, SPREAD_PLACES, 1, 2);
    fill_f32(x, SPREAD_PLACES, -1, 1), fill_f32(y, SPREAD_PLACES, 1, 2);
    EACH_OTHER(isa) {
        const eddy_pool_average_blocks *both[] = {&eddy_cpu_pool_average_blocks_portable,
                                                  eddy_cpu_pool_average_blocks_for(isa)};
        for (int64_t stride = 1; stride <= 5; stride++)
            for (int64_t count = 3 * stride; count <= SPREAD_ROW; count++)
                for (int is_f32 = 0; is_f32 < 2; is_f32++) {
                    for (int b = 0; b < 2; b++) {
                        memcpy(made[b], x64, sizeof(made[b]));
                        memset(wide[b], 0, sizeof(wide[b]));
                        spread(is_f32 ? &both[b]->f32 : &both[b]->f64, is_f32 ? (void *)x : x64,
                               is_f32 ? (void *)y : y64, is_f32 ? 4 : 8, count, stride, (char *)made[b],
                               (char *)wide[b]);
                    }
                    ASSERT_SAME(made[0], made[1], sizeof(made[0]), isa, "gradient", (long long)count);
                    ASSERT_SAME(wide[0], wide[1], sizeof(wide[0]), isa, "windows", (long long)stride);
                }
    }
}
