/* The block functions of pools give the bits of their portable forms on every instruction set of this machine. */
#include "isa.h"
#include <float.h>
#include <kernels/cpu/pool/pool_average_block.h>
#include <kernels/cpu/pool/pool_block.h>
#include <math.h>

/* Rows side by side at every step that has a loop of its own, and channels. */
Test(isa_pool, pools_agree) {
    need_another();
    enum { SIDE = 40 };
    static const eddy_pool_run runs[] = {
        {3, 3, SIDE, 1, 30, 1, 1, 1, 0, 0, false},
        {2, 2, SIDE, 1, 19, 2, 1, 1, 0, 0, true},
        {2, 3, SIDE, 2, 9, 3, 2, 1, 0, 0, true},
        {2, 2, 10 * SIDE, 80, 77, 1, 1, 3, 80, 77, true},
        {1, 1, 0, 0, 130, 1, 3, 2, 130, 400, false},
        {3, 2, SIDE, 1, 5, 2, 1, 4, 80, 5, false},
    };
    static float x[SIDE * SIDE], want[SIDE * SIDE], got[SIDE * SIDE];
    static double x64[SIDE * SIDE], want64[SIDE * SIDE], got64[SIDE * SIDE];
    fill_f32(x, SIDE * SIDE, -1, 1), fill_f64(x64, SIDE * SIDE, -1, 1);
    for (int i = 0; i < 20; i++)
        x[test_below(SIDE * SIDE)] = NAN, x64[test_below(SIDE * SIDE)] = NAN;
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < 2; k++)
            EACH_OTHER (isa) {
                const eddy_pool_ops *first = eddy_cpu_pool_f32_for(EDDY_ISA_PORTABLE),
                                    *other = eddy_cpu_pool_f32_for(isa);
                (k ? first->average : first->max)(want, x, &runs[r], 3);
                (k ? other->average : other->max)(got, x, &runs[r], 3);
                ASSERT_SAME(want, got, sizeof(want), isa, "f32", (long long)r);
                first = eddy_cpu_pool_f64_for(EDDY_ISA_PORTABLE),
                other = eddy_cpu_pool_f64_for(isa);
                (k ? first->average : first->max)(want64, x64, &runs[r], 3);
                (k ? other->average : other->max)(got64, x64, &runs[r], 3);
                ASSERT_SAME(want64, got64, sizeof(want64), isa, "f64", (long long)r);
            }
    /* As gradients of windows side by side, dense and every other element. */
    static float small[SIDE * SIDE];
    static double small64[SIDE * SIDE];
    fill_f32(small, SIDE * SIDE, -1, 1), fill_f64(small64, SIDE * SIDE, -1, 1);
    for (int r = 0; r < 6; r++)
        EACH_OTHER (isa) {
            const eddy_pool_steps to = {runs[r].row_step, runs[r].column_step, runs[r].step,
                                        runs[r].place_step};
            eddy_cpu_pool_f32_for(EDDY_ISA_PORTABLE)->max_route(want, small, x, &runs[r], &to);
            eddy_cpu_pool_f32_for(isa)->max_route(got, small, x, &runs[r], &to);
            ASSERT_SAME(want, got, sizeof(want), isa, "f32's gradient", (long long)r);
            eddy_cpu_pool_f64_for(EDDY_ISA_PORTABLE)
                ->max_route(want64, small64, x64, &runs[r], &to);
            eddy_cpu_pool_f64_for(isa)->max_route(got64, small64, x64, &runs[r], &to);
            ASSERT_SAME(want64, got64, sizeof(want64), isa, "f64's gradient", (long long)r);
        }
    static int64_t at[2][SIDE * SIDE];
    for (int r = 0; r < 6; r++)
        EACH_OTHER (isa) {
            eddy_pool_indices to[2];
            for (int b = 0; b < 2; b++)
                to[b] = (eddy_pool_indices){
                    at[b], 7, SIDE, 1, 2, runs[r].out_step, 5, runs[r].out_place_step};
            eddy_cpu_pool_f32_for(EDDY_ISA_PORTABLE)->max_index(want, x, &runs[r], &to[0]);
            eddy_cpu_pool_f32_for(isa)->max_index(got, x, &runs[r], &to[1]);
            ASSERT_SAME(want, got, sizeof(want), isa, "f32", (long long)r);
            ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "f32's indices", (long long)r);
            eddy_cpu_pool_f64_for(EDDY_ISA_PORTABLE)->max_index(want64, x64, &runs[r], &to[0]);
            eddy_cpu_pool_f64_for(isa)->max_index(got64, x64, &runs[r], &to[1]);
            ASSERT_SAME(want64, got64, sizeof(want64), isa, "f64", (long long)r);
            ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "f64's indices", (long long)r);
        }
}

/* One number at each place; the edges of what is a number at all. */
Test(isa_pool, pools_find_what_is_not_plain) {
    need_another();
    static float x[70];
    const float plain[] = {-FLT_MAX, FLT_MAX, INFINITY, -0.0F}, others[] = {NAN, -NAN, -INFINITY};
    EACH_OTHER (isa)
        for (int64_t count = 0; count <= 70; count++)
            for (int64_t at = 0; at < count; at++) {
                const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks_for(isa);
                x[at] = plain[at % 4];
                cr_assert(blocks->is_plain(x, count) &&
                          eddy_cpu_pool_blocks_for(EDDY_ISA_PORTABLE)->is_plain(x, count));
                x[at] = others[at % 3];
                cr_assert(!blocks->is_plain(x, count) &&
                          !eddy_cpu_pool_blocks_for(EDDY_ISA_PORTABLE)->is_plain(x, count));
                x[at] = 0;
            }
}

/* What windows have of rows, with steps that have loops of their own, and then the rows together. */
Test(isa_pool, pools_in_two_sweeps_agree) {
    need_another();
    enum { ROWS = 4, ROW = 200, OUT = 2 * 64 };
    static float x[ROWS * ROW], best[2][ROWS * ROW + OUT];
    static double x64[ROWS * ROW], best64[2][ROWS * ROW + OUT];
    static int64_t at[2][ROWS * ROW], to[2][OUT];
    fill_f32(x, ROWS * ROW, -1, 1), fill_f64(x64, ROWS * ROW, -1, 1);
    for (int i = 0; i < 20; i++)
        x[test_below(ROWS * ROW)] = NAN, x64[test_below(ROWS * ROW)] = NAN;
    EACH_OTHER (isa)
        for (int64_t step = 1; step <= 3; step++)
            for (int64_t count = 1; count <= 64; count++)
                for (int64_t out_step = 1; out_step <= 2; out_step++) {
                    const eddy_pool_run take = {1,        3,    0,   1,   count, step,
                                                out_step, ROWS, ROW, ROW, false};
                    const eddy_pool_run join = {3, 1, ROW, 0, count, 1, 1, 2, ROW, 64, false};
                    for (int b = 0; b < 2; b++) {
                        const eddy_isa of = b ? isa : EDDY_ISA_PORTABLE;
                        const eddy_pool_ops *f32 = eddy_cpu_pool_f32_for(of),
                                            *f64 = eddy_cpu_pool_f64_for(of);
                        const eddy_pool_indices indices = {to[b], 7, ROW, 0, 2, 1, ROW, 64};
                        f32->max_at(best[b], at[b], x, &take);
                        f32->max_join(best[b] + ROWS * ROW, best[b], at[b], &join, &indices);
                        f64->average(best64[b], x64, &take, 1);
                    }
                    ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "f32", (long long)count);
                    ASSERT_SAME(at[0], at[1], sizeof(at[0]), isa, "places", (long long)count);
                    ASSERT_SAME(to[0], to[1], sizeof(to[0]), isa, "indices", (long long)count);
                    ASSERT_SAME(best64[0], best64[1], sizeof(best64[0]), isa, "f64",
                                (long long)count);
                    for (int b = 0; b < 2; b++) {
                        const eddy_isa of = b ? isa : EDDY_ISA_PORTABLE;
                        const eddy_pool_ops *f32 = eddy_cpu_pool_f32_for(of),
                                            *f64 = eddy_cpu_pool_f64_for(of);
                        const eddy_pool_indices indices = {to[b], 7, ROW, 0, 2, 1, ROW, 64};
                        f64->max_at(best64[b], at[b], x64, &take);
                        f64->max_join(best64[b] + ROWS * ROW, best64[b], at[b], &join, &indices);
                        f32->average(best[b], x, &take, 1);
                    }
                    ASSERT_SAME(best64[0], best64[1], sizeof(best64[0]), isa, "f64",
                                (long long)count);
                    ASSERT_SAME(to[0], to[1], sizeof(to[0]), isa, "indices", (long long)count);
                    ASSERT_SAME(best[0], best[1], sizeof(best[0]), isa, "f32", (long long)count);
                }
}

enum { SPREAD_ROW = 70, SPREAD_ROWS = 4, SPREAD_PLACES = SPREAD_ROW * SPREAD_ROWS };

/* What one instruction set makes of terms: in rows, one after the other, and in places with `count` channels. */
static void spread(const eddy_pool_average_ops *ops, const void *x, const void *y, int64_t size,
                   int64_t count, int64_t stride, char *made, char *wide) {
    int64_t width = count / stride, rest = stride > 1 ? stride - 1 : 0;
    char *part = wide + size * SPREAD_PLACES;
    eddy_pool_shadow shadow = {made, SPREAD_ROW, 2, 2};
    ops->divide(wide, x, y, count);
    memcpy(made, wide, (size_t)(size * count));
    ops->widen(wide, part, x, width, stride, 1, rest);
    /* The first windows are the left neighbours of what is added to. */
    ops->windows(&shadow, wide + size * 2 * stride, rest > 0 ? part + size * 2 * stride : NULL, 2,
                 stride, (width - 2) * stride);
    ops->windows(&shadow, x, NULL, 1, stride, count);
    ops->span(&shadow, y, count);
    ops->channels(&shadow, count / 2, 2, 1, x, 3, count / 2);
}

Test(isa_pool, gradients_of_averages_agree) {
    need_another();
    static double x64[SPREAD_PLACES], y64[SPREAD_PLACES], made[2][SPREAD_PLACES],
        wide[2][2 * SPREAD_PLACES];
    static float x[SPREAD_PLACES], y[SPREAD_PLACES];
    fill_f64(x64, SPREAD_PLACES, -1, 1), fill_f64(y64, SPREAD_PLACES, 1, 2);
    fill_f32(x, SPREAD_PLACES, -1, 1), fill_f32(y, SPREAD_PLACES, 1, 2);
    EACH_OTHER (isa) {
        const eddy_isa of[] = {EDDY_ISA_PORTABLE, isa};
        for (int64_t stride = 1; stride <= 5; stride++)
            for (int64_t count = 3 * stride; count <= SPREAD_ROW; count++)
                for (int is_f32 = 0; is_f32 < 2; is_f32++) {
                    for (int b = 0; b < 2; b++) {
                        memcpy(made[b], x64, sizeof(made[b]));
                        memset(wide[b], 0, sizeof(wide[b]));
                        spread(is_f32 ? eddy_cpu_pool_average_f32_for(of[b])
                                      : eddy_cpu_pool_average_f64_for(of[b]),
                               is_f32 ? (void *)x : x64, is_f32 ? (void *)y : y64, is_f32 ? 4 : 8,
                               count, stride, (char *)made[b], (char *)wide[b]);
                    }
                    ASSERT_SAME(made[0], made[1], sizeof(made[0]), isa, "gradient",
                                (long long)count);
                    ASSERT_SAME(wide[0], wide[1], sizeof(wide[0]), isa, "windows",
                                (long long)stride);
                }
    }
}
