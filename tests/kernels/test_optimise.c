/* Optimiser steps against the formulas in long double: 4 ulp of the largest term, in the dtype (f16 and bf16 compute
 * in f32 and round once); clipping: three roundings of half an ulp each. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>

#define ITEMS 4
static const int64_t shapes[ITEMS][3] = {{3, 5, 7}, {1, 1, 1}, {0, 4, 2}, {7, 211, 31}};

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static void make_lists(tensor (*lists)[ITEMS], int count, eddy_dtype dtype, int variant) {
    for (int l = 0; l < count; l++)
        for (int i = 0; i < ITEMS; i++) {
            layout at = variant == 0            ? CONTIGUOUS
                        : l == 1 && variant % 2 ? BROADCAST
                                                : (layout)test_below(OUTPUT_LAYOUTS);
            lists[l][i] = tensor_make(dtype, 3, shapes[i], at);
            tensor_fill(&lists[l][i], l == 3 ? 0.01 : 1);
            if (l == 3)
                for (int64_t e = 0; e < lists[l][i].count; e++)
                    tensor_set(&lists[l][i], e, fabs(tensor_get(&lists[l][i], e)));
        }
}

static void check_sgd(eddy_dtype dtype, int variant, double decay, eddy_kernel_team *team) {
    tensor lists[2][ITEMS], *all[2 * ITEMS];
    make_lists(lists, 2, dtype, variant);
    for (int i = 0; i < 2 * ITEMS; i++)
        all[i] = &lists[i / ITEMS][i % ITEMS];
    double *before[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        before[i] = malloc((size_t)(lists[0][i].count + 1) * sizeof(double));
        for (int64_t e = 0; e < lists[0][i].count; e++)
            before[i][e] = tensor_get(&lists[0][i], e);
    }
    eddy_attributes_sgd_step attributes = {.lr = 0.1, .weight_decay = decay};
    run_kernel(&eddy_cpu_sgd_step, all, 2 * ITEMS, &attributes, team, NULL);
    for (int i = 0; i < ITEMS; i++) {
        for (int64_t e = 0; e < lists[0][i].count; e++) {
            long double p = before[i][e], g = tensor_get(&lists[1][i], e),
                        want = p - 0.1L * (g + decay * p);
            cr_assert(fabsl(tensor_get(&lists[0][i], e) - want) <= 4 * unit_of(dtype),
                      "%s element %lld", describe("sgd_step", &lists[0][i], CONTIGUOUS),
                      (long long)e);
        }
        cr_assert(tensor_guards_hold(&lists[0][i]) && tensor_guards_hold(&lists[1][i]));
        free(before[i]);
        tensor_free(&lists[0][i]), tensor_free(&lists[1][i]);
    }
}

static void check_momentum(eddy_dtype dtype, int variant, bool is_nesterov,
                           eddy_kernel_team *team) {
    tensor lists[3][ITEMS], *all[3 * ITEMS];
    make_lists(lists, 3, dtype, variant);
    double *before[3][ITEMS];
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < ITEMS; i++) {
            all[l * ITEMS + i] = &lists[l][i];
            before[l][i] = malloc((size_t)(lists[l][i].count + 1) * sizeof(double));
            for (int64_t e = 0; e < lists[l][i].count; e++)
                before[l][i][e] = tensor_get(&lists[l][i], e);
        }
    eddy_attributes_sgd_momentum_step attributes = {
        .lr = 0.1, .momentum = 0.75, .weight_decay = 0.01, .is_nesterov = is_nesterov};
    run_kernel(&eddy_cpu_sgd_momentum_step, all, 3 * ITEMS, &attributes, team, NULL);
    for (int i = 0; i < ITEMS; i++) {
        for (int64_t e = 0; e < lists[0][i].count; e++) {
            long double p = before[0][i][e], g = before[1][i][e] + 0.01L * p,
                        v = 0.75L * before[2][i][e] + g;
            long double want = p - 0.1L * (is_nesterov ? g + 0.75L * v : v);
            cr_assert(fabsl(tensor_get(&lists[2][i], e) - v) <= 4 * unit_of(dtype));
            cr_assert(fabsl(tensor_get(&lists[0][i], e) - want) <= 4 * unit_of(dtype),
                      "%s element %lld", describe("sgd_momentum_step", &lists[0][i], CONTIGUOUS),
                      (long long)e);
        }
        for (int l = 0; l < 3; l++) {
            cr_assert(tensor_guards_hold(&lists[l][i]));
            free(before[l][i]);
            tensor_free(&lists[l][i]);
        }
    }
}

static void check_clip(eddy_dtype dtype, int variant, double max_norm, eddy_kernel_team *team) {
    tensor lists[1][ITEMS], *all[ITEMS + 1], norm = tensor_make(EDDY_F64, 0, NULL, CONTIGUOUS);
    make_lists(lists, 1, dtype, variant);
    double *before[ITEMS];
    long double squares = 0;
    for (int i = 0; i < ITEMS; i++) {
        all[i] = &lists[0][i];
        before[i] = malloc((size_t)(lists[0][i].count + 1) * sizeof(double));
        for (int64_t e = 0; e < lists[0][i].count; e++) {
            before[i][e] = tensor_get(&lists[0][i], e);
            squares += (long double)before[i][e] * before[i][e];
        }
    }
    all[ITEMS] = &norm;
    eddy_attributes_clip_grad_norm attributes = {.max_norm = max_norm};
    run_kernel(&eddy_cpu_clip_grad_norm, all, ITEMS + 1, &attributes, team, NULL);
    long double want = sqrtl(squares),
                scale = max_norm / ((long double)tensor_get(&norm, 0) + 1e-6L);
    cr_assert(fabsl(tensor_get(&norm, 0) - want) <= 1e-13L * want);
    for (int i = 0; i < ITEMS; i++) {
        for (int64_t e = 0; e < lists[0][i].count; e++) {
            long double clipped = scale < 1 ? before[i][e] * scale : before[i][e];
            cr_assert(fabsl(tensor_get(&lists[0][i], e) - clipped) <=
                          2 * unit_of(dtype) * fabsl(clipped) + 0x1p-24 * (dtype == EDDY_F16),
                      "%s element %lld", describe("clip_grad_norm", &lists[0][i], CONTIGUOUS),
                      (long long)e);
        }
        cr_assert(tensor_guards_hold(&lists[0][i]));
        free(before[i]);
        tensor_free(&lists[0][i]);
    }
    tensor_free(&norm);
}

/* decoupled: AdamW. */
static void check_adam(eddy_dtype dtype, int variant, double decay, bool decoupled,
                       eddy_kernel_team *team) {
    tensor lists[4][ITEMS], *all[4 * ITEMS + 1], step = tensor_make(EDDY_I64, 0, NULL, CONTIGUOUS);
    make_lists(lists, 4, dtype, variant);
    double *before[4][ITEMS];
    for (int l = 0; l < 4; l++)
        for (int i = 0; i < ITEMS; i++) {
            all[l * ITEMS + i] = &lists[l][i];
            before[l][i] = malloc((size_t)(lists[l][i].count + 1) * sizeof(double));
            for (int64_t e = 0; e < lists[l][i].count; e++)
                before[l][i][e] = tensor_get(&lists[l][i], e);
        }
    all[4 * ITEMS] = &step;
    int64_t number = variant * 7;
    tensor_set_int(&step, 0, number);
    eddy_attributes_adam_step attributes = {
        .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = decay};
    run_kernel(decoupled ? &eddy_cpu_adamw_step : &eddy_cpu_adam_step, all, 4 * ITEMS + 1,
               &attributes, team, NULL);
    cr_assert_eq(tensor_get_int(&step, 0), number + 1);
    long double bias1 = 1 - powl(0.9L, number + 1), bias2 = 1 - powl(0.999L, number + 1);
    double unit = unit_of(dtype);
    for (int i = 0; i < ITEMS; i++) {
        for (int64_t e = 0; e < lists[0][i].count; e++) {
            long double p = before[0][i][e], g = before[1][i][e] + (decoupled ? 0 : decay * p);
            if (decoupled)
                p -= 1e-2L * decay * p;
            long double m = 0.9L * before[2][i][e] + 0.1L * g,
                        v = 0.999L * before[3][i][e] + 0.001L * g * g;
            long double moved = 1e-2L / bias1 * m / (sqrtl(v) / sqrtl(bias2) + 1e-8L);
            cr_assert(fabsl(tensor_get(&lists[2][i], e) - m) <= 4 * unit);
            cr_assert(fabsl(tensor_get(&lists[3][i], e) - v) <=
                      8 * unit * (v + 1e-6L) + 0x1p-24 * (dtype == EDDY_F16));
            cr_assert(fabsl(tensor_get(&lists[0][i], e) - (p - moved)) <=
                          2 * unit + 64 * unit * fabsl(moved),
                      "%s element %lld: %a, not %a",
                      describe("adam_step", &lists[0][i], CONTIGUOUS), (long long)e,
                      tensor_get(&lists[0][i], e), (double)(p - moved));
        }
        for (int l = 0; l < 4; l++) {
            cr_assert(tensor_guards_hold(&lists[l][i]));
            free(before[l][i]);
            tensor_free(&lists[l][i]);
        }
    }
    tensor_free(&step);
}

Test(optimise, every_dtype_and_layout) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 4; d++)
        for (int variant = 0; variant < 4; variant++) {
            check_sgd(dtypes[d], variant, variant * 0.01,
                      variant % 2 ? &shuffling_team : &serial_team);
            eddy_kernel_team *team = variant % 2 ? &threaded_team : &serial_team;
            check_adam(dtypes[d], variant, variant * 0.01, false, team);
            check_adam(dtypes[d], variant, variant * 0.01, true, team);
            check_momentum(dtypes[d], variant, variant / 2, team);
            check_clip(dtypes[d], variant, variant == 3 ? 1e6 : 2.5, team);
        }
}

Test(optimise, slices_do_not_show) {
    int64_t n = 100003;
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    tensor lists[3][5];
    for (int t = 0; t < 3; t++) {
        for (int l = 0; l < 4; l++) {
            lists[t][l] = tensor_make(EDDY_F32, 1, &n, UNALIGNED);
            for (int64_t i = 0; i < n; i++)
                tensor_set(&lists[t][l], i,
                           l == 3 ? (double)(i % 17) * 0.01 : sin((double)(i * (l + 1))));
        }
        lists[t][4] = tensor_make(EDDY_I64, 0, NULL, CONTIGUOUS);
        tensor_set_int(&lists[t][4], 0, 0);
        eddy_attributes_adam_step attributes = {
            .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
        for (int step = 0; step < 3; step++)
            run_kernel(
                &eddy_cpu_adam_step,
                (tensor *[]){&lists[t][0], &lists[t][1], &lists[t][2], &lists[t][3], &lists[t][4]},
                5, &attributes, teams[t], NULL);
        cr_assert(tensor_same(&lists[0][0], &lists[t][0]) &&
                  tensor_same(&lists[0][3], &lists[t][3]));
    }
    for (int t = 0; t < 3; t++)
        for (int l = 0; l < 5; l++)
            tensor_free(&lists[t][l]);
}

Test(optimise, the_norm_of_a_list_shows_neither_slices_nor_layout) {
    int64_t n = 100003;
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    double first = 0;
    for (int t = 0; t < 3; t++) {
        tensor grads = tensor_make(EDDY_F32, 1, &n, t == 0 ? CONTIGUOUS : UNALIGNED);
        tensor norm = tensor_make(EDDY_F64, 0, NULL, CONTIGUOUS);
        for (int64_t i = 0; i < n; i++)
            tensor_set(&grads, i, sin((double)i));
        eddy_attributes_clip_grad_norm attributes = {.max_norm = 1};
        run_kernel(&eddy_cpu_clip_grad_norm, (tensor *[]){&grads, &norm}, 2, &attributes, teams[t],
                   NULL);
        if (t == 0)
            first = tensor_get(&norm, 0);
        cr_assert_eq(tensor_get(&norm, 0), first);
        tensor_set(&grads, 5, NAN);
        run_kernel(&eddy_cpu_clip_grad_norm, (tensor *[]){&grads, &norm}, 2, &attributes, teams[t],
                   NULL);
        cr_assert(isnan(tensor_get(&norm, 0)) && isnan(tensor_get(&grads, 0)),
                  "a NaN shows everywhere");
        tensor_free(&grads), tensor_free(&norm);
    }
}
