/* Every block function gives the bits of its portable form on every instruction set of this machine. That the portable
 * forms are right is for the families' own tests. */
#include "isa.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/index/mask_block.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <kernels/cpu/move/fill_block.h>
#include <kernels/cpu/move/move_block.h>
#include <kernels/cpu/optimise/optimise_block.h>
#include <kernels/cpu/random/random_block.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/reduce/scan_block.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/cpu/sort/sort_block.h>
#include <math.h>
#include <string.h>

Test(isa, tables_are_apart) {
    EACH_OTHER (isa) {
        cr_assert_neq(eddy_cpu_cast_blocks_for(isa), eddy_cpu_cast_blocks_for((eddy_isa)(isa - 1)));
        cr_assert_neq(eddy_cpu_softmax_f32_for(isa), eddy_cpu_softmax_f32_for((eddy_isa)(isa - 1)));
    }
}

Test(isa, a_level_that_was_not_built_has_the_next_lower_ones_tables) {
    for (int isa = EDDY_ISA_PORTABLE; isa < EDDY_ISA_COUNT; isa++) {
        eddy_isa serving = eddy_isa_served_by((eddy_isa)isa);
        cr_assert_eq(eddy_cpu_cast_blocks_for((eddy_isa)isa), eddy_cpu_cast_blocks_for(serving));
        cr_assert_eq(eddy_isa_served_by(serving), serving);
    }
}

#define CASTS 1037

/* Elements that sit on the targets' bounds, and any bits at all. */
static void fill_source(eddy_dtype dtype, char *x) {
    static const double edges[] = {
        0,           -0.0,         0.5,      -0.5,     127,         128,        -128.5,
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
            eddy_dtype_store_f64(dtype, x + i * size,
                                 edges[test_below(sizeof(edges) / sizeof(edges[0]))]);
    }
}

Test(isa, casts_agree) {
    need_another();
    for (int from = 0; from < EDDY_DTYPE_COUNT; from++)
        for (int to = 0; to < EDDY_DTYPE_COUNT; to++) {
            static _Alignas(64) char in[8 * CASTS + 8], want[8 * CASTS], got[8 * CASTS];
            size_t bytes = CASTS * eddy_dtype_bytes((eddy_dtype)to);
            fill_source((eddy_dtype)from, in + 8);
            eddy_cpu_cast_blocks_for(EDDY_ISA_PORTABLE)->cast[to][from](want, in + 8, CASTS);
            EACH_OTHER (isa) {
                eddy_cpu_cast_blocks_for(isa)->cast[to][from](got, in + 8, CASTS);
                ASSERT_SAME(want, got, bytes, isa, eddy_dtype_name((eddy_dtype)from),
                            (long long)to);
            }
        }
}

Test(isa, gemm_tiles_agree) {
    need_another();
    enum { DEPTH = 128 };
    static float a[DEPTH * EDDY_GEMM_ROWS], b[DEPTH * EDDY_GEMM_WIDTH_F32];
    static double a64[DEPTH * EDDY_GEMM_ROWS], b64[DEPTH * EDDY_GEMM_WIDTH_F64];
    float want[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F32], got[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F32];
    double want64[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F64],
        got64[EDDY_GEMM_ROWS * EDDY_GEMM_WIDTH_F64];
    fill_f32(a, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f32(b, DEPTH * EDDY_GEMM_WIDTH_F32, -1, 1);
    fill_f64(a64, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f64(b64, DEPTH * EDDY_GEMM_WIDTH_F64, -1, 1);
    for (int64_t k = 0; k <= DEPTH; k++) {
        eddy_cpu_gemm_block_f32_for(EDDY_ISA_PORTABLE)->tile(k, a, b, EDDY_GEMM_WIDTH_F32, want);
        eddy_cpu_gemm_block_f64_for(EDDY_ISA_PORTABLE)
            ->tile(k, a64, b64, EDDY_GEMM_WIDTH_F64, want64);
        EACH_OTHER (isa) {
            eddy_cpu_gemm_block_f32_for(isa)->tile(k, a, b, EDDY_GEMM_WIDTH_F32, got);
            eddy_cpu_gemm_block_f64_for(isa)->tile(k, a64, b64, EDDY_GEMM_WIDTH_F64, got64);
            ASSERT_SAME(want, got, sizeof(got), isa, "tile_f32", (long long)k);
            ASSERT_SAME(want64, got64, sizeof(got64), isa, "tile_f64", (long long)k);
        }
    }
}

#define VECTOR_ROWS 10
#define VECTOR_COLUMNS 70

/* Products with a vector, along rows and along columns. */
#define CHECK_VECTOR(name, real)                                                                   \
    static void check_vector_##name(eddy_isa isa, const real *rows, const real *vector,            \
                                    int64_t count, int64_t k) {                                    \
        real want[VECTOR_COLUMNS], got[VECTOR_COLUMNS];                                            \
        eddy_cpu_gemm_block_##name##_for(EDDY_ISA_PORTABLE)                                        \
            ->dots(count, k, rows, VECTOR_COLUMNS, vector, want);                                  \
        eddy_cpu_gemm_block_##name##_for(isa)->dots(count, k, rows, VECTOR_COLUMNS, vector, got);  \
        ASSERT_SAME(want, got, sizeof(real) * (size_t)count, isa, "dots_" #name, (long long)k);    \
        eddy_cpu_gemm_block_##name##_for(EDDY_ISA_PORTABLE)                                        \
            ->sums(k, count, rows, VECTOR_COLUMNS, vector, want);                                  \
        eddy_cpu_gemm_block_##name##_for(isa)->sums(k, count, rows, VECTOR_COLUMNS, vector, got);  \
        ASSERT_SAME(want, got, sizeof(real) * (size_t)k, isa, "sums_" #name, (long long)k);        \
    }

CHECK_VECTOR(f32, float)
CHECK_VECTOR(f64, double)

Test(isa, products_with_a_vector_agree) {
    need_another();
    float rows[VECTOR_ROWS * VECTOR_COLUMNS], vector[VECTOR_COLUMNS];
    double rows64[VECTOR_ROWS * VECTOR_COLUMNS], vector64[VECTOR_COLUMNS];
    fill_f32(rows, VECTOR_ROWS * VECTOR_COLUMNS, -1, 1), fill_f32(vector, VECTOR_COLUMNS, -1, 1);
    fill_f64(rows64, VECTOR_ROWS * VECTOR_COLUMNS, -1, 1),
        fill_f64(vector64, VECTOR_COLUMNS, -1, 1);
    for (int64_t count = 1; count <= VECTOR_ROWS; count++)
        for (int64_t k = 1; k <= VECTOR_COLUMNS; k++)
            EACH_OTHER (isa) {
                check_vector_f32(isa, rows, vector, count, k);
                check_vector_f64(isa, rows64, vector64, count, k);
            }
}

#define MOVED 1000

/* From numbers that are not exact in f32, over the counts that fit vectors and the longest piece. */
Test(isa, sequences_agree_with_plain_loops) {
    static const int64_t counts[] = {0, 1, 7, 8, 15, 16, 17, 1000, 65535, 65536, 65537, 140003};
    enum { MOST = 140003 };
    static int64_t whole[MOST + 1];
    static float line[MOST + 1];
    static double line64[MOST + 1];
    EACH_ISA(isa) {
        const eddy_fill_blocks *blocks = eddy_cpu_fill_blocks_for(isa);
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (int turn = -1; turn <= 1; turn += 2) {
                int64_t count = counts[c], first = INT64_MAX - 1000;
                double base = 0.7, step = 1 / 3.0, from = 0x1p33 + 1;
                whole[count] = 17, line[count] = 17, line64[count] = 17;
                blocks->count_i64(whole, first, turn * 3, count);
                blocks->line_f32(line, base, step, from, turn, count);
                blocks->line_f64(line64, base, step, from, turn, count);
                for (int64_t i = 0; i < count; i++) {
                    double want = base + step * (from + (double)(turn * i));
                    cr_assert_eq((uint64_t)whole[i], (uint64_t)first + (uint64_t)(turn * 3 * i));
                    cr_assert(line[i] == (float)want && line64[i] == want,
                              "%s, element %lld of %lld", eddy_isa_name(isa), (long long)i,
                              (long long)count);
                }
                cr_assert(whole[count] == 17 && line[count] == 17 && line64[count] == 17);
            }
    }
}

Test(isa, moves_agree_with_plain_loops) {
    static char from[MOVED + 64], line[EDDY_MOVE_LINE], got[MOVED + 2];
    static uint64_t numbers[100], reversed[101];
    static uint32_t halves[101];
    for (int i = 0; i < MOVED + 64; i++)
        from[i] = (char)test_random();
    for (size_t i = 0; i < sizeof(line); i++)
        line[i] = from[i % 8];
    memcpy(numbers, from, sizeof(numbers));
    EACH_ISA(isa) {
        const eddy_move_blocks *blocks = eddy_cpu_move_blocks_for(isa);
        for (size_t bytes = 0; bytes <= MOVED; bytes++) {
            got[bytes] = got[bytes + 1] = 77;
            blocks->copy(got, from + bytes % 64, bytes);
            cr_assert(memcmp(got, from + bytes % 64, bytes) == 0 && got[bytes] == 77, "copy %zu",
                      bytes);
            blocks->copy_short(got + 1, from + bytes % 64, bytes);
            cr_assert(memcmp(got + 1, from + bytes % 64, bytes) == 0 && got[bytes + 1] == 77,
                      "short copy %zu", bytes);
            got[bytes] = 77;
            blocks->fill(got, line, bytes);
            for (size_t i = 0; i < bytes; i++)
                cr_assert_eq(got[i], line[i % sizeof(line)], "fill %zu", bytes);
            cr_assert_eq(got[bytes], 77, "fill %zu", bytes);
        }
        for (int64_t count = 0; count < 100; count++) {
            reversed[count] = halves[count] = 77;
            blocks->reverse_64(reversed, numbers + 99, count);
            blocks->reverse_32(halves, (uint32_t *)numbers + 99, count);
            for (int64_t i = 0; i < count; i++)
                cr_assert(reversed[i] == numbers[99 - i] &&
                          memcmp(&halves[i], (char *)numbers + 4 * (99 - i), 4) == 0);
            cr_assert(reversed[count] == 77 && halves[count] == 77, "reverse %lld",
                      (long long)count);
        }
    }
}

Test(isa, sorted_lines_agree) {
    need_another();
    static int64_t numbers[100 * EDDY_SORT_LANES], want[100 * EDDY_SORT_LANES],
        got[100 * EDDY_SORT_LANES];
    for (int64_t count = 1; count <= 100; count++) {
        for (int64_t i = 0; i < count * EDDY_SORT_LANES; i++)
            numbers[i] = (int64_t)(i % 3 ? test_random() : test_random() % 5);
        memcpy(want, numbers, sizeof(want));
        eddy_cpu_sort_blocks_for(EDDY_ISA_PORTABLE)->lines(want, count);
        EACH_OTHER (isa) {
            memcpy(got, numbers, sizeof(got));
            eddy_cpu_sort_blocks_for(isa)->lines(got, count);
            ASSERT_SAME(want, got, sizeof(want), isa, "lines", (long long)count);
        }
    }
}

/* The least of lines against the lines sorted; records from keys. */
Test(isa, least_numbers_of_lines) {
    enum { COUNT = 70 };
    static int64_t numbers[COUNT * EDDY_SORT_LANES], sorted[COUNT * EDDY_SORT_LANES],
        got[(COUNT + 1) * EDDY_SORT_LANES];
    static uint32_t keys[COUNT * EDDY_SORT_LANES];
    EACH_ISA(isa) {
        const eddy_sort_blocks *blocks = eddy_cpu_sort_blocks_for(isa);
        for (int64_t count = 1; count <= COUNT; count++) {
            for (int64_t i = 0; i < count * EDDY_SORT_LANES; i++)
                keys[i] = (uint32_t)(i % 3 ? test_random() : test_random() % 5);
            blocks->join(numbers, keys, count);
            for (int64_t i = 0; i < count * EDDY_SORT_LANES; i++) {
                uint64_t record = (uint64_t)keys[i % EDDY_SORT_LANES * count + i / EDDY_SORT_LANES]
                                      << 32 |
                                  (uint64_t)(i / EDDY_SORT_LANES);
                cr_assert_eq((uint64_t)numbers[i], record ^ EDDY_SORT_TURNED, "%s",
                             eddy_isa_name(isa));
            }
            memcpy(sorted, numbers, sizeof(sorted));
            blocks->lines(sorted, count);
            for (int64_t kept = 1; kept <= count; kept += 1 + kept / 2) {
                int64_t *end = got + kept * EDDY_SORT_LANES;
                *end = 77;
                blocks->least(got, kept, numbers, count);
                ASSERT_SAME(sorted, got, sizeof(int64_t) * (size_t)(kept * EDDY_SORT_LANES), isa,
                            "least of", (long long)count);
                cr_assert_eq(*end, 77);
            }
        }
    }
}

Test(isa, keys_of_floats_sort_as_they_do) {
    const float ascending[] = {-INFINITY, -3e38F, -1, -1e-45F, 0, 1e-45F, 2, 3e38F, INFINITY, NAN};
    float x[40];
    uint32_t keys[40];
    EACH_ISA(isa)
    for (int64_t count = 0; count <= 40; count++) {
        for (int64_t i = 0; i < count; i++)
            x[i] = ascending[(i + count) % 10];
        eddy_cpu_sort_blocks_for(isa)->keys_f32(keys, x, count);
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < count; j++)
                cr_assert_eq(keys[i] < keys[j], (i + count) % 10 < (j + count) % 10, "%s",
                             eddy_isa_name(isa));
        const float zeros[] = {-0.0F, 0.0F};
        eddy_cpu_sort_blocks_for(isa)->keys_f32(keys, zeros, 2);
        cr_assert_eq(keys[0], keys[1]);
    }
}

#define STEPS 131

/* One step of each optimiser from the same start; out: parameters, and what Adam keeps. */
typedef struct steps {
    float sgd[STEPS], momentum[2][STEPS], adam[3][STEPS];
    double sgd64[STEPS], momentum64[2][STEPS], adam64[3][STEPS];
} steps;

static void step(eddy_isa isa, steps *s, const float *g, const double *g64, int64_t count) {
    static const eddy_sgd_numbers sgd = {.lr = 0.1, .weight_decay = 0.01};
    static const eddy_adam_numbers adam = {.beta1 = 0.9,
                                           .beta2 = 0.999,
                                           .eps = 1e-8,
                                           .weight_decay = 0.01,
                                           .step_size = 0.01,
                                           .root_of_bias2 = 0.03};
    static const eddy_momentum_numbers momentum = {
        .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .is_nesterov = true};
    const eddy_optimise_ops *f32 = eddy_cpu_optimise_f32_for(isa),
                            *f64 = eddy_cpu_optimise_f64_for(isa);
    f32->sgd(&sgd, s->sgd, g, count);
    f64->sgd(&sgd, s->sgd64, g64, count);
    f32->momentum(&momentum, s->momentum[0], g, s->momentum[1], count);
    f64->momentum(&momentum, s->momentum64[0], g64, s->momentum64[1], count);
    f32->adam(&adam, s->adam[0], g, s->adam[1], s->adam[2], count);
    f64->adam(&adam, s->adam64[0], g64, s->adam64[1], s->adam64[2], count);
}

Test(isa, optimisers_agree) {
    need_another();
    static steps start, want, got;
    float g[STEPS];
    double g64[STEPS];
    fill_f32(g, STEPS, -1, 1), fill_f64(g64, STEPS, -1, 1);
    fill_f32(start.sgd, STEPS, -1, 1), fill_f64(start.sgd64, STEPS, -1, 1);
    fill_f32(start.momentum[0], 2 * STEPS, -1, 1), fill_f64(start.momentum64[0], 2 * STEPS, -1, 1);
    fill_f32(start.adam[0], 3 * STEPS, 0, 0.1), fill_f64(start.adam64[0], 3 * STEPS, 0, 0.1);
    for (int64_t count = 0; count <= STEPS; count++) {
        want = start;
        step(EDDY_ISA_PORTABLE, &want, g, g64, count);
        EACH_OTHER (isa) {
            got = start;
            step(isa, &got, g, g64, count);
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
    for (uint64_t block = 0; block < EDDY_RANDOM_BLOCKS * UINT64_C(2000);
         block += EDDY_RANDOM_BLOCKS) {
        numbers want, got;
        draw(eddy_cpu_random_blocks_for(EDDY_ISA_PORTABLE), &want, block);
        EACH_OTHER (isa) {
            draw(eddy_cpu_random_blocks_for(isa), &got, block);
            ASSERT_SAME(&want, &got, sizeof(got), isa, "numbers of block", (long long)block);
        }
    }
}

/* Blocks, rows and combining of one op on `count` elements; `results` are any of the type that it computes in. */
static void check_reduce(const eddy_reduce_op *portable, const eddy_reduce_op *other, eddy_isa isa,
                         const char *x, size_t size, int64_t count, const char *results) {
    static _Alignas(64) char want[8 * EDDY_REDUCE_COLUMNS], got[8 * EDDY_REDUCE_COLUMNS];
    portable->block(x, count, 0, want);
    other->block(x, count, 0, got);
    ASSERT_SAME(want, got, size, isa, "block", (long long)count);
    other->block(x, count, count, got);
    ASSERT_SAME(want, got, size, isa, "block and what comes after", (long long)count);
    if (count >= EDDY_REDUCE_GROUP) {
        portable->group(x, count / EDDY_REDUCE_GROUP, want);
        other->group(x, count / EDDY_REDUCE_GROUP, got);
        ASSERT_SAME(want, got, size, isa, "group", (long long)count);
    }
    int64_t columns = count < EDDY_REDUCE_COLUMNS ? count : EDDY_REDUCE_COLUMNS,
            rows = EDDY_REDUCE_BLOCK / columns;
    memset(want, 0, sizeof(want)), memset(got, 0, sizeof(got));
    portable->columns(want, x, columns, rows, columns, NULL);
    other->columns(got, x, columns, rows, columns, NULL);
    ASSERT_SAME(want, got, sizeof(got), isa, "columns", (long long)columns);
    for (int r = 0; r < 2; r++) {
        portable->row(want, r == 0, x, columns, NULL);
        other->row(got, r == 0, x, columns, NULL);
        ASSERT_SAME(want, got, sizeof(got), isa, "row of", (long long)columns);
    }
    portable->combine(want, results, columns);
    other->combine(got, results, columns);
    ASSERT_SAME(want, got, sizeof(got), isa, "combine", (long long)columns);
}

/* The second sweep of a pair and its merging; `results` stand for what the first one found. */
static void check_pair(const eddy_reduce_pair *portable, const eddy_reduce_pair *other,
                       eddy_isa isa, const char *x, const char *results, size_t size,
                       int64_t count) {
    static _Alignas(64) char lanes[2][8 * EDDY_REDUCE_COLUMNS], pairs[2][2][8 * EDDY_REDUCE_BLOCK];
    const eddy_reduce_pair *both[] = {portable, other};
    int64_t columns = count < EDDY_REDUCE_COLUMNS ? count : EDDY_REDUCE_COLUMNS,
            rows = EDDY_REDUCE_BLOCK / columns;
    memset(lanes, 0, sizeof(lanes)), memset(pairs, 0, sizeof(pairs));
    for (int i = 0; i < 2; i++)
        both[i]->block(x, count, results, lanes[i]);
    ASSERT_SAME(lanes[0], lanes[1], size, isa, "second block", (long long)count);
    for (int i = 0; i < 2; i++) {
        both[i]->columns(lanes[i], x, columns, rows, columns, results);
        both[i]->row(lanes[i], false, x, columns, results);
        memcpy(pairs[i][0], results, size * (size_t)count),
            memcpy(pairs[i][1], results, size * (size_t)count);
        if (both[i]->merge != NULL)
            both[i]->merge(pairs[i][0], pairs[i][1], 3072, results + size, results, 1024,
                           count - 1);
    }
    ASSERT_SAME(lanes[0], lanes[1], sizeof(lanes[0]), isa, "second columns", (long long)columns);
    ASSERT_SAME(pairs[0], pairs[1], sizeof(pairs[0]), isa, "merge", (long long)count);
}

/* What reduces f32 (0) or f64 (1) in f64. */
static void check_wide(eddy_isa isa, eddy_reduce_type type, const char *x, const char *f64,
                       int64_t count) {
    const eddy_reduce_wide_blocks *portable = eddy_reduce_wide_blocks_for(EDDY_ISA_PORTABLE, type),
                                  *other = eddy_reduce_wide_blocks_for(isa, type);
    const eddy_reduce_op *const ops[][2] = {{&portable->sum, &other->sum},
                                            {&portable->prod, &other->prod},
                                            {&portable->squares, &other->squares},
                                            {&portable->magnitudes, &other->magnitudes},
                                            {&portable->nonzeros, &other->nonzeros},
                                            {&portable->max_magnitude, &other->max_magnitude},
                                            {&portable->min_magnitude, &other->min_magnitude}};
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
        check_reduce(ops[o][0], ops[o][1], isa, x, 8, count, f64);
    check_pair(&portable->variance, &other->variance, isa, x, f64, 8, count);
    if (type != EDDY_REDUCE_F64)
        return;
    check_pair(&portable->deviation, &other->deviation, isa, x, f64, 8, count);
    double powers[2][EDDY_REDUCE_BLOCK];
    portable->power(powers[0], (const double *)(const void *)x, count, 1.5);
    other->power(powers[1], (const double *)(const void *)x, count, 1.5);
    ASSERT_SAME(powers[0], powers[1], 8 * (size_t)count, isa, "powers", (long long)count);
}

/* Which element of a row of up to 64, or of `count`, is the largest or the smallest. */
static void check_choice(const eddy_reduce_blocks *portable, const eddy_reduce_blocks *other,
                         eddy_isa isa, const char *x, size_t size, int64_t count) {
    int64_t columns = count < 64 ? count : 64, indices[2][64] = {{0}};
    int64_t best[2][64] = {{0}};
    portable->argmax_row(best[0], indices[0], x, 7, columns);
    other->argmax_row(best[1], indices[1], x, 7, columns);
    portable->argmin_row(best[0], indices[0], x + size, 8, columns - 1);
    other->argmin_row(best[1], indices[1], x + size, 8, columns - 1);
    ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "argmax", (long long)columns);
    ASSERT_SAME(indices[0], indices[1], sizeof(indices[0]), isa, "argmax's indices",
                (long long)columns);
    const char *last = x + (size_t)(count - 1) * size;
    cr_assert_eq(portable->find(x, count, last), other->find(x, count, last));
}

/* What there is for elements of a type, in that type. */
static void check_plain(eddy_isa isa, eddy_reduce_type type, const char *x, size_t size,
                        int64_t count) {
    const eddy_reduce_blocks *portable = eddy_reduce_blocks_for(EDDY_ISA_PORTABLE, type),
                             *other = eddy_reduce_blocks_for(isa, type);
    check_reduce(&portable->max, &other->max, isa, x, size, count, x);
    check_reduce(&portable->min, &other->min, isa, x, size, count, x);
    if (type == EDDY_REDUCE_TRUTH)
        return;
    check_reduce(&portable->sum, &other->sum, isa, x, size, count, x);
    if (type == EDDY_REDUCE_I64)
        check_reduce(&portable->prod, &other->prod, isa, x, size, count, x);
    else if (count < 70 || count % 53 == 17)
        check_pair(&portable->log_sum_exp, &other->log_sum_exp, isa, x, x, size, count);
    check_choice(portable, other, isa, x, size, count);
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
    EACH_OTHER (isa) {
        for (int64_t count = 1; count <= EDDY_REDUCE_BLOCK; count++)
            for (int type = 0; type < EDDY_REDUCE_TYPES; type++)
                check_plain(isa, (eddy_reduce_type)type, x[type], sizes[type], count);
        for (int64_t count = 1; count <= EDDY_REDUCE_BLOCK; count += count < 70 ? 1 : 53) {
            check_wide(isa, EDDY_REDUCE_F32, x[EDDY_REDUCE_F32], x[EDDY_REDUCE_F64], count);
            check_wide(isa, EDDY_REDUCE_F64, x[EDDY_REDUCE_F64], x[EDDY_REDUCE_F64], count);
        }
    }
}

#define FILLED 331

/* Beside each other and apart, and in place. */
static void check_fill(eddy_mask_fill *portable, eddy_mask_fill *other, eddy_isa isa, size_t size,
                       int64_t count) {
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
    EACH_OTHER (isa) {
        const eddy_mask_blocks *portable = eddy_cpu_mask_blocks_for(EDDY_ISA_PORTABLE),
                               *other = eddy_cpu_mask_blocks_for(isa);
        for (int64_t count = 0; count < FILLED; count++) {
            check_fill(portable->fill_8, other->fill_8, isa, 1, count);
            check_fill(portable->fill_16, other->fill_16, isa, 2, count);
            check_fill(portable->fill_32, other->fill_32, isa, 4, count);
            check_fill(portable->fill_64, other->fill_64, isa, 8, count);
        }
    }
}

/* Bytes of a mask that are not 0 hold, whatever they are. */
static void check_expand(eddy_mask_expand *block, eddy_isa isa, size_t size, int64_t count) {
    static _Alignas(64) char in[8 * FILLED], source[8 * FILLED], out[8 * FILLED];
    uint8_t mask[FILLED];
    int64_t next = 0;
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)test_random(), source[i] = (char)test_random();
    for (size_t i = 0; i < sizeof(mask); i++)
        mask[i] = test_below(2) ? (uint8_t)test_random() : 0;
    for (int in_place = 0; in_place < 2; in_place++) {
        memcpy(out, in, sizeof(in));
        int64_t taken = block(out, in_place ? out : in, mask, source, count);
        next = 0;
        for (int64_t i = 0; i < FILLED; i++) {
            const char *want =
                i < count && mask[i] ? source + (size_t)next++ * size : in + (size_t)i * size;
            ASSERT_SAME(want, out + (size_t)i * size, size, isa, "expanded element", (long long)i);
        }
        cr_assert_eq(taken, next);
    }
}

static void check_find(const eddy_mask_blocks *blocks, eddy_isa isa, int64_t count) {
    uint8_t mask[2 * FILLED];
    int32_t held[FILLED];
    for (size_t i = 0; i < sizeof(mask); i++)
        mask[i] = test_below(2) ? (uint8_t)test_random() : 0;
    for (int64_t stride = 1; stride <= 2; stride++) {
        int64_t found = blocks->find(held, mask, stride, count), next = 0;
        for (int32_t i = 0; i < count; i++)
            if (mask[i * stride])
                cr_assert(next < found && held[next++] == i, "%s: of %lld", eddy_isa_name(isa),
                          (long long)count);
        cr_assert_eq(found, next);
        cr_assert(stride > 1 || blocks->count(mask, count) == found);
    }
}

Test(isa, what_a_mask_holds_is_found) {
    EACH_ISA(isa) {
        const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks_for(isa);
        for (int64_t count = 0; count < FILLED; count++) {
            check_expand(blocks->expand_8, isa, 1, count);
            check_expand(blocks->expand_16, isa, 2, count);
            check_expand(blocks->expand_32, isa, 4, count);
            check_expand(blocks->expand_64, isa, 8, count);
            check_find(blocks, isa, count);
        }
        static uint8_t many[64 * 255 * 2 + 70];
        int64_t held = 0;
        for (size_t i = 0; i < sizeof(many); i++)
            held += (many[i] = (uint8_t)(i % 7)) != 0;
        cr_assert_eq(blocks->count(many, sizeof(many)), held);
    }
}

/* Elements are doubles or int64_t alike: 8 bytes. */
static void check_scan(const eddy_scan_op *portable, const eddy_scan_op *other, eddy_isa isa,
                       const char *x, int64_t lines, int64_t count) {
    static _Alignas(64) char rows[2][8 * EDDY_SCAN_LINES * EDDY_SCAN_BLOCK];
    const eddy_scan_op *both[] = {portable, other};
    double totals[2][EDDY_SCAN_COLUMNS];
    for (int i = 0; i < 2; i++) {
        memcpy(rows[i], x, sizeof(rows[i]));
        memcpy(totals[i], x + 8, sizeof(totals[i]));
        both[i]->lines(rows[i], lines, EDDY_SCAN_BLOCK, count, totals[i]);
        both[i]->shift(rows[i], count, x);
        both[i]->row(rows[i], totals[i], x + 16,
                     count < EDDY_SCAN_COLUMNS ? count : EDDY_SCAN_COLUMNS);
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
    EACH_OTHER (isa) {
        const eddy_scan_blocks *portable = eddy_cpu_scan_f64_for(EDDY_ISA_PORTABLE),
                               *other = eddy_cpu_scan_f64_for(isa);
        const eddy_scan_blocks *portable_i64 = eddy_cpu_scan_i64_for(EDDY_ISA_PORTABLE),
                               *other_i64 = eddy_cpu_scan_i64_for(isa);
        for (int64_t count = 1; count <= EDDY_SCAN_BLOCK; count += 1 + count / 3)
            for (int64_t lines = 1; lines <= EDDY_SCAN_LINES; lines++) {
                check_scan(&portable->sum, &other->sum, isa, (char *)f64, lines, count);
                check_scan(&portable->prod, &other->prod, isa, (char *)f64, lines, count);
                check_scan(&portable_i64->sum, &other_i64->sum, isa, (char *)i64, lines, count);
                check_scan(&portable_i64->prod, &other_i64->prod, isa, (char *)i64, lines, count);
            }
    }
}
