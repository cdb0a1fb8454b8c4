/* softmax, log_softmax and their gradients against plain loops in double.
 *
 * Bounds in ulp of the dtype (f64 against long double): softmax 6, log_softmax 4 of max(|y|, 1); gradients 8 of the largest
 * magnitude in the row. exp itself: 2 ulp. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <string.h>

/* Flat number of element `at` of row `row`, where rows run along `axis`. */
static int64_t flat_of(const tensor *t, int32_t axis, int64_t row, int64_t at) {
    int64_t inner = 1;
    for (int32_t d = axis + 1; d < t->view.rank; d++)
        inner *= t->shape[d];
    int64_t count = t->view.rank == 0 ? 1 : t->shape[axis];
    return row / inner * count * inner + at * inner + row % inner;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static double least_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-1074
           : dtype == EDDY_F32 ? 0x1p-149
           : dtype == EDDY_F16 ? 0x1p-24
                               : 0x1p-133;
}

/* `sums`: ulps that the sums may add to the bound. */
static void check_forward(eddy_dtype dtype, int32_t rank, const int64_t *shape, int32_t axis,
                          layout a, layout b, double range, bool is_log, long double sums,
                          eddy_kernel_team *team) {
    const eddy_kernel *kernel = is_log ? &eddy_cpu_log_softmax : &eddy_cpu_softmax;
    tensor in = tensor_make(dtype, rank, shape, a), out = tensor_make(dtype, rank, shape, b);
    tensor_fill(&in, range);
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(kernel, (tensor *[]){&in, &out}, 2, &attributes, team, NULL);
    int64_t count = rank == 0 ? 1 : shape[axis], rows = count == 0 ? 0 : in.count / count;
    for (int64_t r = 0; r < rows; r++) {
        long double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < count; i++)
            max = fmaxl(max, tensor_get(&in, flat_of(&in, axis, r, i)));
        for (int64_t i = 0; i < count; i++)
            sum += expl(tensor_get(&in, flat_of(&in, axis, r, i)) - max);
        for (int64_t i = 0; i < count; i++) {
            long double x = tensor_get(&in, flat_of(&in, axis, r, i)), want, bound;
            double got = tensor_get(&out, flat_of(&in, axis, r, i));
            want = is_log ? x - max - logl(sum) : expl(x - max) / sum;
            /* x - max is rounded before exp in softmax too: half an ulp of it is as much relative error of the result. */
            double unit = unit_of(dtype == EDDY_F16 || dtype == EDDY_BF16 ? EDDY_F32 : dtype);
            bound = is_log ? (4 + sums) * unit * fmaxl(1, fabsl(want))
                           : (6 + sums + fabsl(x - max)) * unit * want;
            bound += unit_of(dtype) * fabsl(want) + least_of(dtype);
            cr_assert(fabsl(got - want) <= bound, "%s axis %d row %lld element %lld: %a, not %a",
                      describe(kernel->name, &in, a), axis, (long long)r, (long long)i, got,
                      (double)want);
        }
    }
    cr_assert(tensor_guards_hold(&out), "%s", describe(kernel->name, &in, a));
    tensor again = tensor_make(dtype, rank, shape, CONTIGUOUS);
    run_kernel(kernel, (tensor *[]){&in, &again}, 2, &attributes, &shuffling_team, NULL);
    cr_assert(tensor_same(&out, &again), "%s: slices or layout show",
              describe(kernel->name, &in, a));
    tensor_free(&in), tensor_free(&out), tensor_free(&again);
}

static void check_backward(eddy_dtype dtype, int32_t rank, const int64_t *shape, int32_t axis,
                           layout a, layout b, bool is_log, eddy_kernel_team *team) {
    const eddy_kernel *kernel =
        is_log ? &eddy_cpu_log_softmax_backward : &eddy_cpu_softmax_backward;
    tensor grad = tensor_make(dtype, rank, shape, a), output = tensor_make(dtype, rank, shape, b);
    tensor dinput = tensor_make(dtype, rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor_fill(&grad, 2);
    tensor_fill(&output, 1);
    for (int64_t i = 0; i < output.count; i++)
        tensor_set(&output, i,
                   is_log ? -3 * fabs(tensor_get(&output, i)) : fabs(tensor_get(&output, i)) / 8);
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(kernel, (tensor *[]){&grad, &output, &dinput}, 3, &attributes, team, NULL);
    int64_t count = rank == 0 ? 1 : shape[axis], rows = count == 0 ? 0 : grad.count / count;
    for (int64_t r = 0; r < rows; r++) {
        long double total = 0, magnitude = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = flat_of(&grad, axis, r, i);
            long double g = tensor_get(&grad, at), y = tensor_get(&output, at);
            total += is_log ? g : g * y;
            magnitude += fabsl(is_log ? g : g * y);
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t at = flat_of(&grad, axis, r, i);
            long double g = tensor_get(&grad, at), y = tensor_get(&output, at);
            long double want = is_log ? g - expl(y) * total : y * (g - total);
            double unit = unit_of(dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
            long double bound =
                (double)(8 + count / 16) * unit * (1 + magnitude) + unit_of(dtype) * fabsl(want);
            double got = tensor_get(&dinput, at);
            cr_assert(fabsl(got - want) <= bound + least_of(dtype),
                      "%s row %lld element %lld: %a, not %a", describe(kernel->name, &grad, a),
                      (long long)r, (long long)i, got, (double)want);
        }
    }
    cr_assert(tensor_guards_hold(&dinput), "%s", describe(kernel->name, &grad, a));
    tensor_free(&grad), tensor_free(&output), tensor_free(&dinput);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(softmax, every_dtype_layout_and_axis) {
    const int64_t shapes[][3] = {{3, 5, 7},   {1, 1, 1},   {2, 0, 3},
                                 {4, 17, 16}, {33, 2, 31}, {64, 10, 1}};
    check_forward(EDDY_F32, 0, NULL, 0, CONTIGUOUS, CONTIGUOUS, 1, false, 0, &serial_team);
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 6; s++)
            for (int32_t axis = 0; axis < 3; axis++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    for (int is_log = 0; is_log < 2; is_log++) {
                        layout b = (layout)test_below(OUTPUT_LAYOUTS);
                        check_forward(floats[d], 3, shapes[s], axis, (layout)a, b, a % 2 ? 80 : 2,
                                      is_log, 0, &serial_team);
                        check_backward(floats[d], 3, shapes[s], axis, (layout)a, b, is_log,
                                       &serial_team);
                    }
}

Test(softmax, rows_longer_than_a_chunk) {
    const int64_t shapes[][2] = {{3, 4095},  {3, 4096},  {3, 4097},
                                 {2, 20011}, {20011, 2}, {3000, 40}};
    for (int d = 0; d < 3; d++)
        for (int s = 0; s < 6; s++)
            for (int is_log = 0; is_log < 2; is_log++) {
                int32_t axis = shapes[s][0] == 20011 ? 0 : 1;
                check_forward(floats[d], 2, shapes[s], axis, UNALIGNED, CONTIGUOUS, 5, is_log, 0,
                              &threaded_team);
                /* Elements that are nearly alike: their sums may all round one way, in lanes of 16 and pieces of 4096. */
                int64_t length = shapes[s][axis];
                long double sums = (long double)(length < 4096 ? length / 16 : 256 + length / 4096);
                check_forward(floats[d], 2, shapes[s], axis, CONTIGUOUS, CONTIGUOUS, 0x1p-10,
                              is_log, sums, &threaded_team);
                check_backward(floats[d], 2, shapes[s], axis, CONTIGUOUS, STRIDED, is_log,
                               &threaded_team);
            }
}

Test(softmax, nan_and_infinities_as_pytorch) {
    int64_t shape[] = {4, 3};
    const double rows[4][3] = {
        {NAN, 1, 2}, {INFINITY, 1, 2}, {-INFINITY, -INFINITY, -INFINITY}, {-INFINITY, 0, 0}};
    for (int d = 0; d < 4; d++) {
        tensor in = tensor_make(floats[d], 2, shape, CONTIGUOUS),
               out = tensor_make(floats[d], 2, shape, CONTIGUOUS);
        for (int64_t i = 0; i < 12; i++)
            tensor_set(&in, i, rows[i / 3][i % 3]);
        eddy_attributes_axis attributes = {.axis = 1};
        run_kernel(&eddy_cpu_softmax, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
        cr_assert(isnan(tensor_get(&out, 0)) && isnan(tensor_get(&out, 1)) &&
                  isnan(tensor_get(&out, 3)));
        cr_assert(isnan(tensor_get(&out, 6)) && isnan(tensor_get(&out, 8)));
        cr_assert(tensor_get(&out, 9) == 0 && tensor_get(&out, 10) == 0.5);
        run_kernel(&eddy_cpu_log_softmax, (tensor *[]){&in, &out}, 2, &attributes, &serial_team,
                   NULL);
        for (int64_t i = 0; i < 9; i++)
            cr_assert(isnan(tensor_get(&out, i)) ||
                      (i >= 3 && i < 6 && tensor_get(&out, i) == -INFINITY));
        cr_assert(tensor_get(&out, 9) == -INFINITY && fabs(tensor_get(&out, 10) + log(2)) < 0x1p-8);
        tensor_free(&in), tensor_free(&out);
    }
}

/* Short rows that lie elsewhere are taken many at a time, the others one by one: the bits are the same. */
Test(softmax, in_place) {
    const int64_t shapes[][2] = {{3, 9001}, {37, 100}, {1, 4096}, {50, 16}, {35, 1}, {33, 255}};
    for (int s = 0; s < 6; s++)
        for (int d = 0; d < 2; d++)
            for (int is_log = 0; is_log < 2; is_log++) {
                const eddy_kernel *kernel = is_log ? &eddy_cpu_log_softmax : &eddy_cpu_softmax;
                tensor in = tensor_make(floats[d], 2, shapes[s], CONTIGUOUS);
                tensor out = tensor_make(floats[d], 2, shapes[s], CONTIGUOUS);
                tensor_fill(&in, s % 2 ? 400 : 4);
                eddy_attributes_axis attributes = {.axis = 1};
                run_kernel(kernel, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
                run_kernel(kernel, (tensor *[]){&in, &in}, 2, &attributes, &serial_team, NULL);
                cr_assert(tensor_same(&in, &out), "%s", describe(kernel->name, &in, CONTIGUOUS));
                tensor_free(&in), tensor_free(&out);
            }
}
