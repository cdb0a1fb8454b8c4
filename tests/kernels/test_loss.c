/* cross_entropy and its gradient against plain loops in long double. Bounds: 6 ulp of max(|loss|, largest |logit|, 1) for the
 * loss, 8 ulp of the row's gradient scale for the gradient (each in the dtype or f32, whichever is coarser). */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static long double logit(const tensor *input, int64_t row, int64_t class) {
    return tensor_get(input, row * input->shape[1] + class);
}

static void row_total(const tensor *input, int64_t row, long double *max, long double *sum) {
    *max = -INFINITY;
    *sum = 0;
    for (int64_t c = 0; c < input->shape[1]; c++)
        *max = fmaxl(*max, logit(input, row, c));
    for (int64_t c = 0; c < input->shape[1]; c++)
        *sum += expl(logit(input, row, c) - *max);
}

static void check(eddy_dtype dtype, int64_t n, int64_t classes, layout a, int32_t reduction,
                  bool ignores, eddy_kernel_team *team) {
    int64_t shape[] = {n, classes};
    tensor input = tensor_make(dtype, 2, shape, a),
           target = tensor_make(EDDY_I64, 1, &n, a == BROADCAST ? STRIDED : a);
    tensor out = tensor_make(dtype, reduction == EDDY_REDUCTION_NONE ? 1 : 0, &n, CONTIGUOUS);
    tensor grad = tensor_make(dtype, reduction == EDDY_REDUCTION_NONE ? 1 : 0, &n, CONTIGUOUS);
    tensor dinput = tensor_make(dtype, 2, shape, a == BROADCAST ? TURNED : a);
    tensor_fill(&input, 5);
    tensor_fill(&grad, 1);
    eddy_attributes_cross_entropy attributes = {
        .reduction = reduction, .has_ignore_index = ignores, .ignore_index = -100};
    int64_t counted = 0;
    long double sum = 0, magnitude = 0;
    for (int64_t r = 0; r < n; r++) {
        bool ignored = ignores && test_below(3) == 0;
        tensor_set_int(&target, r, ignored ? -100 : test_below(classes));
        if (ignored)
            continue;
        long double max, total;
        row_total(&input, r, &max, &total);
        long double loss = logl(total) + max - logit(&input, r, tensor_get_int(&target, r));
        sum += loss;
        magnitude += fabsl(loss) + fabsl(max) + 1;
        counted++;
    }
    cr_assert_eq(run_kernel(&eddy_cpu_cross_entropy, (tensor *[]){&input, &target, &out}, 3,
                            &attributes, team, NULL),
                 0);
    double unit = unit_of(dtype);
    if (reduction != EDDY_REDUCTION_NONE) {
        double got = tensor_get(&out, 0);
        long double want = reduction == EDDY_REDUCTION_MEAN ? sum / counted : sum;
        long double scale = reduction == EDDY_REDUCTION_MEAN ? magnitude / counted : magnitude;
        if (counted == 0 && reduction == EDDY_REDUCTION_MEAN)
            cr_assert(isnan(got));
        else
            cr_assert(fabsl(got - want) <= 6 * unit * (scale + 1), "%s: %a, not %a",
                      describe("cross_entropy", &input, a), got, (double)want);
    }
    cr_assert_eq(run_kernel(&eddy_cpu_cross_entropy_backward,
                            (tensor *[]){&grad, &input, &target, &dinput}, 4, &attributes, team,
                            NULL),
                 0);
    for (int64_t r = 0; r < n; r++) {
        int64_t label = tensor_get_int(&target, r);
        long double max, total;
        row_total(&input, r, &max, &total);
        if (reduction == EDDY_REDUCTION_NONE) {
            long double want = label == -100 ? 0 : logl(total) + max - logit(&input, r, label);
            cr_assert(fabsl(tensor_get(&out, r) - want) <=
                      6 * unit * (fabsl(want) + fabsl(max) + 1));
        }
        long double g = tensor_get(&grad, reduction == EDDY_REDUCTION_NONE ? r : 0);
        if (reduction == EDDY_REDUCTION_MEAN)
            g /= counted;
        for (int64_t c = 0; c < classes; c++) {
            long double want =
                label == -100 ? 0 : (expl(logit(&input, r, c) - max) / total - (c == label)) * g;
            double got = tensor_get(&dinput, r * classes + c);
            cr_assert(fabsl(got - want) <= 16 * unit * fabsl(g) + 0x1p-24 * (dtype == EDDY_F16),
                      "%s row %lld class %lld: %a, not %a",
                      describe("cross_entropy_backward", &input, a), (long long)r, (long long)c,
                      got, (double)want);
        }
    }
    cr_assert(tensor_guards_hold(&out) && tensor_guards_hold(&dinput));
    tensor_free(&input), tensor_free(&target), tensor_free(&out), tensor_free(&grad),
        tensor_free(&dinput);
}

Test(loss, every_dtype_layout_and_reduction) {
    const int64_t sizes[][2] = {{1, 1}, {0, 10}, {64, 10}, {7, 17}, {33, 128}, {2, 5000}};
    const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 6; s++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int32_t reduction = 0; reduction < 3; reduction++)
                    check(floats[d], sizes[s][0], sizes[s][1], (layout)a, reduction, test_below(2),
                          &serial_team);
}

Test(loss, many_rows_on_threads) {
    check(EDDY_F32, 20011, 10, CONTIGUOUS, EDDY_REDUCTION_MEAN, true, &threaded_team);
    check(EDDY_F32, 20011, 10, STRIDED, EDDY_REDUCTION_NONE, false, &shuffling_team);
}

Test(loss, the_first_label_out_of_range_is_reported_whatever_the_slices) {
    int64_t n = 20000, shape[] = {20000, 10};
    tensor input = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           target = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS),
           dinput = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor grad = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    tensor_fill(&input, 1);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&target, i, i % 10);
    tensor_set_int(&target, 19999, -1);
    tensor_set_int(&target, 12345, 10);
    tensor_set_int(&target, 7001, INT64_MIN);
    eddy_attributes_cross_entropy attributes = {0};
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    for (int t = 0; t < 3; t++)
        for (int backward = 0; backward < 2; backward++) {
            eddy_kernel_error error;
            eddy_status status =
                backward ? run_kernel(&eddy_cpu_cross_entropy_backward,
                                      (tensor *[]){&grad, &input, &target, &dinput}, 4, &attributes,
                                      teams[t], &error)
                         : run_kernel(&eddy_cpu_cross_entropy, (tensor *[]){&input, &target, &out},
                                      3, &attributes, teams[t], &error);
            cr_assert_eq(status, EDDY_OUT_OF_RANGE);
            cr_assert(error.position == 7001 && error.value == INT64_MIN && error.bound == 10);
        }
    tensor_free(&input), tensor_free(&target), tensor_free(&out), tensor_free(&dinput),
        tensor_free(&grad);
}

static void check_nll(eddy_dtype dtype, int64_t n, layout a, int32_t reduction, bool weighted,
                      eddy_kernel_team *team) {
    const int64_t classes = 7, shape[] = {n, 7};
    bool is_whole = reduction == EDDY_REDUCTION_NONE;
    tensor input = tensor_make(dtype, 2, shape, a),
           target = tensor_make(EDDY_I64, 1, &n, a == BROADCAST ? STRIDED : a);
    tensor weight = tensor_make(dtype, 1, &classes, STRIDED),
           out = tensor_make(dtype, is_whole, &n, CONTIGUOUS);
    tensor grad = tensor_make(dtype, is_whole, &n, CONTIGUOUS),
           dinput = tensor_make(dtype, 2, shape, NEGATIVE);
    tensor_fill(&input, 5), tensor_fill(&grad, 1), tensor_fill(&weight, 2);
    eddy_attributes_cross_entropy attributes = {
        .reduction = reduction, .has_ignore_index = true, .ignore_index = 3};
    tensor *given = weighted ? &weight : NULL;
    double sum = 0, total = 0, size = 0, unit = unit_of(dtype);
    for (int64_t r = 0; r < n; r++) {
        int64_t label = test_below(classes);
        tensor_set_int(&target, r, label);
        tensor_set(&weight, label, fabs(tensor_get(&weight, label)) + 0.5);
    }
    for (int64_t r = 0; r < n; r++) {
        int64_t label = tensor_get_int(&target, r);
        double w = label == 3 ? 0 : weighted ? tensor_get(&weight, label) : 1;
        sum -= w * tensor_get(&input, r * classes + label);
        size += w * fabs(tensor_get(&input, r * classes + label));
        total += w;
    }
    cr_assert_eq(run_kernel(&eddy_cpu_nll_loss, (tensor *[]){&input, &target, given, &out}, 4,
                            &attributes, team, NULL),
                 0);
    cr_assert_eq(run_kernel(&eddy_cpu_nll_loss_backward,
                            (tensor *[]){&grad, &target, given, &dinput}, 4, &attributes, team,
                            NULL),
                 0);
    if (reduction != EDDY_REDUCTION_MEAN)
        total = 1;
    if (!is_whole)
        cr_assert(fabs(tensor_get(&out, 0) - sum / total) <=
                  unit * (fabs(sum / total) + size / total * 0x1p-40));
    for (int64_t i = 0; i < input.count; i++) {
        int64_t r = i / classes, label = tensor_get_int(&target, r);
        double w = label == 3 ? 0 : weighted ? tensor_get(&weight, label) : 1;
        if (is_whole)
            cr_assert(fabs(tensor_get(&out, r) + w * tensor_get(&input, r * classes + label)) <=
                      unit * fabs(tensor_get(&out, r)));
        double want = label == i % classes ? -w * tensor_get(&grad, is_whole ? r : 0) / total : 0;
        cr_assert(fabs(tensor_get(&dinput, i) - want) <= unit * fabs(want),
                  "%s element %lld: %g, not %g", describe("nll_loss_backward", &input, a),
                  (long long)i, tensor_get(&dinput, i), want);
    }
    cr_assert(tensor_guards_hold(&out) && tensor_guards_hold(&dinput));
    tensor_free(&input), tensor_free(&target), tensor_free(&weight), tensor_free(&out);
    tensor_free(&grad), tensor_free(&dinput);
}

Test(loss, nll_of_every_dtype_layout_and_reduction) {
    const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 4; d++)
        for (int a = 0; a < LAYOUT_COUNT; a++)
            for (int32_t reduction = 0; reduction < 3; reduction++)
                for (int weighted = 0; weighted < 2; weighted++)
                    check_nll(floats[d], 61, (layout)a, reduction, weighted,
                              a % 2 ? &serial_team : &shuffling_team);
}

Test(loss, nll_of_many_rows_on_threads) {
    for (int32_t reduction = 0; reduction < 3; reduction++)
        for (int weighted = 0; weighted < 2; weighted++) {
            check_nll(EDDY_BF16, 12345, CONTIGUOUS, reduction, weighted, &threaded_team);
            check_nll(EDDY_F32, 12345, TURNED, reduction, weighted, &shuffling_team);
        }
}

/* 64 in a row, and then halves that are cut at a multiple of 64. */
static double pairwise(const double *losses, int64_t count) {
    double sum = 0;
    int64_t half = (count / 2 + 63) / 64 * 64;
    if (count > 64)
        return pairwise(losses, half) + pairwise(losses + half, count - half);
    for (int64_t i = 0; i < count; i++)
        sum += losses[i];
    return sum;
}

Test(loss, nll_is_added_up_in_one_order) {
    const int64_t sizes[] = {1,   63,  64,  65,  127,  128,  129,  255,
                             256, 257, 300, 320, 1000, 4096, 4097, 10007};
    eddy_kernel_team *teams[] = {&serial_team, &shuffling_team, &threaded_team};
    eddy_attributes_cross_entropy attributes = {.reduction = EDDY_REDUCTION_SUM};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        int64_t n = sizes[s], shape[] = {n, 3};
        tensor input = tensor_make(EDDY_F64, 2, shape, CONTIGUOUS),
               target = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
        tensor out = tensor_make(EDDY_F64, 0, NULL, CONTIGUOUS);
        tensor_fill(&input, 5);
        double *losses = malloc((size_t)n * sizeof(double));
        for (int64_t r = 0; r < n; r++) {
            tensor_set_int(&target, r, r % 3);
            losses[r] = -tensor_get(&input, r * 3 + r % 3);
        }
        for (int t = 0; t < 3; t++) {
            run_kernel(&eddy_cpu_nll_loss, (tensor *[]){&input, &target, NULL, &out}, 4,
                       &attributes, teams[t], NULL);
            cr_assert_eq(tensor_get(&out, 0), pairwise(losses, n), "%lld rows: %a, not %a",
                         (long long)n, tensor_get(&out, 0), pairwise(losses, n));
        }
        free(losses);
        tensor_free(&input), tensor_free(&target), tensor_free(&out);
    }
}

Test(loss, nll_reports_the_first_label_out_of_range) {
    const int64_t n = 3, shape[] = {3, 2};
    tensor input = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           target = tensor_make(EDDY_I64, 1, &n, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS),
           dinput = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor_fill(&input, 1);
    const int64_t labels[] = {-100, 2, -1};
    for (int64_t i = 0; i < n; i++)
        tensor_set_int(&target, i, labels[i]);
    eddy_attributes_cross_entropy attributes = {.has_ignore_index = true, .ignore_index = -100};
    eddy_kernel_error error;
    cr_assert_eq(run_kernel(&eddy_cpu_nll_loss, (tensor *[]){&input, &target, NULL, &out}, 4,
                            &attributes, &serial_team, &error),
                 EDDY_OUT_OF_RANGE);
    cr_assert(error.position == 1 && error.value == 2 && error.bound == 2);
    cr_assert_eq(run_kernel(&eddy_cpu_nll_loss_backward, (tensor *[]){&out, &target, NULL, &dinput},
                            4, &attributes, &serial_team, &error),
                 EDDY_OUT_OF_RANGE);
    cr_assert(error.position == 1 && error.value == 2 && error.bound == 2);
    tensor_free(&input), tensor_free(&target), tensor_free(&out), tensor_free(&dinput);
}
