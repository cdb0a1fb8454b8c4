/* The pool_* rows: f32 images [n, c, h, w], square kernels. Averages count the padding, as in PyTorch. */
#ifndef BENCH_POOLS_H
#define BENCH_POOLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* row, is_max, is_last: channels last; n, c, h and w; kernel, stride, padding */
#define BENCH_POOL_LIST(row)                           \
    row(pool_max2_24,        1, 0, 64, 32, 24, 2, 2, 0) \
    row(pool_max2_24_last,   1, 1, 64, 32, 24, 2, 2, 0) \
    row(pool_max3_112,       1, 0, 4, 64, 112, 3, 2, 1) \
    row(pool_max3_112_last,  1, 1, 4, 64, 112, 3, 2, 1) \
    row(pool_max3_28,        1, 0, 16, 64, 28, 3, 1, 1) \
    row(pool_max3_28_last,   1, 1, 16, 64, 28, 3, 1, 1) \
    row(pool_avg2_56,        0, 0, 16, 64, 56, 2, 2, 0) \
    row(pool_avg2_56_last,   0, 1, 16, 64, 56, 2, 2, 0) \
    row(pool_avg3_28,        0, 0, 16, 64, 28, 3, 1, 1) \
    row(pool_avg3_28_last,   0, 1, 16, 64, 28, 3, 1, 1) \
    row(pool_avg7_7,         0, 0, 16, 512, 7, 7, 7, 0) \
    row(pool_avg7_7_last,    0, 1, 16, 512, 7, 7, 7, 0)
/* clang-format on */

typedef struct bench_pool {
    const char *row;
    int is_max, is_last, images, channels, side, kernel, stride, padding;
} bench_pool;

#define BENCH_POOL_ROW(name, is_max, is_last, n, c, side, kernel, stride, padding)                 \
    {#name, is_max, is_last, n, c, side, kernel, stride, padding},
static const bench_pool bench_pools[] = {BENCH_POOL_LIST(BENCH_POOL_ROW)};
#undef BENCH_POOL_ROW
#define BENCH_POOL_COUNT ((int)(sizeof(bench_pools) / sizeof(bench_pools[0])))

/* Ends the program if there is no such row. */
static inline const bench_pool *bench_pool_of(const char *row) {
    for (int i = 0; i < BENCH_POOL_COUNT; i++)
        if (!strcmp(row, bench_pools[i].row))
            return &bench_pools[i];
    fprintf(stderr, "pool: no such row: %s\n", row);
    exit(2);
}

/* Calls per sample: a few milliseconds at 1 ns per element. */
static inline int bench_pool_calls(const bench_pool *pool) {
    int calls = 5000000 / (pool->images * pool->channels * pool->side * pool->side);
    return calls < 1 ? 1 : calls;
}

#endif
