/* cumsum and cumprod against plain loops in long double (floats) or i64, and against themselves: the same bits for every
 * layout and slicing, also where long lines are cut. cumprod_backward against a sum over products, and against finite
 * differences of cumprod.
 *
 * Bounds: a running sum is within n / 1024 + 1024 units of f64 of the magnitudes before it, a product within n units, and
 * another half for rounding to shorter formats. */
#include "axes.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static eddy_dtype scan_dtype(eddy_dtype dtype) {
    return eddy_dtype_is_float(dtype) ? dtype : EDDY_I64;
}

/* Half a unit of the last place. */
static double rounding(eddy_dtype dtype, double value) {
    switch (dtype) {
    case EDDY_F32:
        return 0x1p-24 * fabs(value) + 0x1p-150;
    case EDDY_F16:
        return 0x1p-11 * fabs(value) + 0x1p-25;
    case EDDY_BF16:
        return 0x1p-8 * fabs(value) + 0x1p-134;
    default:
        return 0;
    }
}

/* Flat numbers of the elements of each line, one line after the other. */
static int64_t *lines_of(const shape_case *c, int32_t axis, int64_t elements, int64_t *count) {
    *count = c->rank == 0 ? 1 : c->shape[axis];
    int64_t *flats = malloc(sizeof(*flats) * (size_t)(elements + 1));
    for (int64_t i = 0; i < elements; i++) {
        int64_t within, line = output_of(c, c->rank == 0 ? 0 : 1u << axis, i, &within);
        flats[line * *count + within] = i;
    }
    return flats;
}

static void check_line(bool is_sum, const tensor *in, const tensor *out, layout l,
                       const int64_t *flats, int64_t count) {
    bool is_float = eddy_dtype_is_float(in->view.dtype);
    long double total = !is_sum;
    double magnitude = 0;
    int64_t whole = !is_sum;
    const char *name = is_sum ? "cumsum" : "cumprod";
    for (int64_t i = 0; i < count; i++) {
        double x = tensor_get(in, flats[i]), got = tensor_get(out, flats[i]);
        if (!is_float) {
            uint64_t integer = (uint64_t)tensor_get_int(in, flats[i]);
            whole = (int64_t)(is_sum ? (uint64_t)whole + integer : (uint64_t)whole * integer);
            cr_assert_eq(tensor_get_int(out, flats[i]), whole, "%s element %lld",
                         describe(name, in, l), (long long)flats[i]);
            continue;
        }
        total = is_sum ? total + x : total * x;
        magnitude += fabs(x);
        double want = (double)total;
        double bound = is_sum ? (1026 + (double)i / 1024) * 0x1p-53 * magnitude
                              : (double)(i + 1) * 0x1p-52 * fabs(want);
        bound += rounding(out->view.dtype, want);
        bool is_right = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= bound;
        if (out->view.dtype == EDDY_F16 && fabs(want) > 65500)
            is_right = fabs(got) > 65500;
        cr_assert(is_right, "%s element %lld: %a, not %a", describe(name, in, l),
                  (long long)flats[i], got, want);
    }
}

static void fill(bool is_sum, tensor *in, bool has_specials) {
    bool is_float = eddy_dtype_is_float(in->view.dtype);
    tensor_fill(in, is_float ? 10 : 100);
    for (int64_t i = 0; i < in->count; i++) {
        if (!is_sum && is_float) /* no overflow, no zero */
            tensor_set(in, i, (test_below(2) ? 1 : -1) * (1 + (double)(test_below(3) - 1) / 64));
        if (has_specials && test_below(200) == 0)
            tensor_set(in, i, test_below(3) == 0 ? NAN : test_below(2) ? INFINITY : 0);
    }
}

static void check(bool is_sum, eddy_dtype dtype, const shape_case *c, int32_t axis,
                  layout in_layout, layout out_layout, bool has_specials, eddy_kernel_team *team) {
    const eddy_kernel *kernel = is_sum ? &eddy_cpu_cumsum : &eddy_cpu_cumprod;
    tensor in = tensor_make(dtype, c->rank, c->shape, in_layout),
           plain = tensor_make(dtype, c->rank, c->shape, CONTIGUOUS);
    tensor out = tensor_make(scan_dtype(dtype), c->rank, c->shape, out_layout);
    tensor again = tensor_make(scan_dtype(dtype), c->rank, c->shape, TURNED);
    fill(is_sum, &in, has_specials);
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(kernel, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    int64_t count, *flats = lines_of(c, axis, in.count, &count);
    for (int64_t done = 0; done < in.count; done += count)
        check_line(is_sum, &in, &out, in_layout, flats + done, count);
    cr_assert(tensor_guards_hold(&out), "%s", describe(kernel->name, &in, in_layout));
    for (int64_t i = 0; i < in.count; i++)
        memcpy(tensor_at(&plain, i), tensor_at(&in, i), eddy_dtype_bytes(dtype));
    run_kernel(kernel, (tensor *[]){&plain, &again}, 2, &attributes, team, NULL);
    cr_assert(tensor_agrees(&out, &again), "%s axis %d: bits differ from the contiguous tensor's",
              describe(kernel->name, &in, in_layout), (int)axis);
    free(flats);
    tensor_free(&in), tensor_free(&plain), tensor_free(&out), tensor_free(&again);
}

Test(scan, every_dtype_layout_and_axis) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (int32_t axis = 0; axis < small_shapes[s].rank || axis == 0; axis++)
                for (int is_sum = 0; is_sum < 2; is_sum++)
                    check(is_sum, (eddy_dtype)d, &small_shapes[s], axis,
                          (layout)test_below(LAYOUT_COUNT), (layout)test_below(OUTPUT_LAYOUTS),
                          false, &shuffling_team);
}

Test(scan, nan_and_infinities_stay_from_where_they_are) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int round = 0; round < 4; round++)
        for (int d = 0; d < 4; d++)
            for (size_t s = 1; s < SMALL_SHAPES; s++)
                check(test_below(2), dtypes[d], &small_shapes[s],
                      (int32_t)test_below(small_shapes[s].rank), (layout)test_below(BROADCAST),
                      CONTIGUOUS, true, &serial_team);
}

Test(scan, big_ones_do_not_depend_on_slices) {
    const shape_case shapes[] = {
        {1, {300007}}, {2, {3, 150001}}, {2, {150001, 3}}, {2, {1030, 517}}, {2, {9, 20000}}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (int32_t axis = 0; axis < shapes[s].rank; axis++)
            for (int is_sum = 0; is_sum < 2; is_sum++)
                for (int t = 0; t < 3; t++)
                    check(is_sum,
                          t == 0   ? EDDY_F64
                          : t == 1 ? EDDY_F32
                                   : EDDY_I32,
                          &shapes[s], axis, t ? UNALIGNED : TURNED, CONTIGUOUS, false,
                          t ? &threaded_team : &shuffling_team);
}

Test(scan, a_product_that_has_become_zero_stays_zero) {
    int64_t n = 5000;
    tensor in = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set(&in, i, i == 0 ? 0 : 2);
    eddy_attributes_axis attributes = {.axis = 0};
    run_kernel(&eddy_cpu_cumprod, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(tensor_get(&out, i), 0);
    tensor_free(&in), tensor_free(&out);
}

Test(scan, a_negative_zero_stays_one) {
    int64_t n = 3;
    tensor in = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS);
    for (int64_t i = 0; i < n; i++)
        tensor_set(&in, i, -0.0);
    eddy_attributes_axis attributes = {.axis = 0};
    run_kernel(&eddy_cpu_cumsum, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    cr_assert(signbit(tensor_get(&out, 2)));
    tensor_free(&in), tensor_free(&out);
}

/* The gradient of element k: over all i from k on, grad[i] times the product of all elements up to i but k. */
static double gradient_of(const tensor *in, const tensor *grad, const int64_t *flats, int64_t count,
                          int64_t k) {
    long double product = 1, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        product *= i == k ? 1 : tensor_get(in, flats[i]);
        sum += i >= k ? tensor_get(grad, flats[i]) * product : 0;
    }
    return (double)sum;
}

static void check_backward(eddy_dtype dtype, const shape_case *c, int32_t axis, layout l,
                           eddy_kernel_team *team) {
    tensor in = tensor_make(dtype, c->rank, c->shape, l),
           grad = tensor_make(dtype, c->rank, c->shape, CONTIGUOUS);
    tensor out = tensor_make(dtype, c->rank, c->shape, (layout)test_below(OUTPUT_LAYOUTS));
    fill(false, &in, false);
    tensor_fill(&grad, 1);
    for (int64_t i = 0; i < in.count; i++)
        if (test_below(30) == 0)
            tensor_set(&in, i, 0);
    eddy_attributes_axis attributes = {.axis = axis};
    run_kernel(&eddy_cpu_cumprod_backward, (tensor *[]){&grad, &in, &out}, 3, &attributes, team,
               NULL);
    int64_t count, *flats = lines_of(c, axis, in.count, &count);
    for (int64_t done = 0; done < in.count; done += count)
        for (int64_t k = 0; k < count; k += 1 + count / 50) {
            double want = gradient_of(&in, &grad, flats + done, count, k),
                   got = tensor_get(&out, flats[done + k]);
            double bound = rounding(dtype, want) + 0x1p-40 * (1 + fabs(want));
            cr_assert(fabs(got - want) <= bound || (dtype == EDDY_F16 && fabs(want) > 65500),
                      "%s axis %d element %lld: %a, not %a", describe("cumprod_backward", &in, l),
                      (int)axis, (long long)flats[done + k], got, want);
        }
    cr_assert(tensor_guards_hold(&out));
    free(flats);
    tensor_free(&in), tensor_free(&grad), tensor_free(&out);
}

Test(scan, gradient_of_cumprod_with_zeros) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    const shape_case more[] = {{1, {2500}}, {2, {2100, 3}}};
    for (int d = 0; d < 4; d++) {
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (int32_t axis = 0; axis < small_shapes[s].rank || axis == 0; axis++)
                check_backward(dtypes[d], &small_shapes[s], axis, (layout)test_below(LAYOUT_COUNT),
                               &shuffling_team);
        for (int s = 0; s < 2; s++)
            check_backward(dtypes[d], &more[s], 0, UNALIGNED, &threaded_team);
    }
}

Test(scan, gradient_of_cumprod_is_the_finite_difference) {
    enum { N = 7 };
    int64_t n = N;
    tensor in = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS),
           grad = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS),
           d = tensor_make(EDDY_F64, 1, &n, CONTIGUOUS);
    tensor_fill(&in, 2), tensor_fill(&grad, 1);
    tensor_set(&in, 3, 0);
    eddy_attributes_axis attributes = {.axis = 0};
    run_kernel(&eddy_cpu_cumprod_backward, (tensor *[]){&grad, &in, &d}, 3, &attributes,
               &serial_team, NULL);
    for (int64_t k = 0; k < N; k++) {
        double x = tensor_get(&in, k), step = 0x1p-20, loss[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            tensor_set(&in, k, side ? x + step : x - step);
            run_kernel(&eddy_cpu_cumprod, (tensor *[]){&in, &out}, 2, &attributes, &serial_team,
                       NULL);
            for (int64_t i = 0; i < N; i++)
                loss[side] += tensor_get(&grad, i) * tensor_get(&out, i);
        }
        tensor_set(&in, k, x);
        /* Linear in each element: the difference is the gradient but for rounding. */
        cr_assert_float_eq(tensor_get(&d, k), (loss[1] - loss[0]) / (2 * step), 1e-7,
                           "element %lld", (long long)k);
    }
    tensor_free(&in), tensor_free(&grad), tensor_free(&out), tensor_free(&d);
}
