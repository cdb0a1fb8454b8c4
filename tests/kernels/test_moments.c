/* var, std, norm and logsumexp against two-pass loops in long double, and against themselves: the same bits for every layout
 * and slicing.
 *
 * Bounds: var and std are sums of squares in f64, norm a sum of powers in f64, each rounded once at the end, so that the
 * wider formats are within half an ulp and the error of the f64 tree, at most 2 (log2 n + 40) units of it relative to what
 * is summed up; var's condition, the mean against the deviation, is kept small here but in its own test. logsumexp computes
 * in f32 or f64: the exponentials are within 2 ulp, their arguments within half an ulp of the distance to the maximum,
 * where the weight is e^-distance. */
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

typedef enum moment { VAR, STD, NORM, LOGSUMEXP, MOMENTS } moment;

static const eddy_kernel *const kernels[] = {&eddy_cpu_var, &eddy_cpu_std, &eddy_cpu_norm,
                                             &eddy_cpu_logsumexp};
static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
static const double orders[] = {2, 1, 0, INFINITY, -INFINITY, 3, 0.5, -1.5};
#define ORDERS ((int64_t)(sizeof(orders) / sizeof(orders[0])))

/* The elements of each output, in order. */
typedef struct gathered {
    double *values; /* [output][count] */
    int64_t count;
} gathered;

static gathered gather(const shape_case *c, uint32_t axes, const tensor *in, int64_t outputs) {
    gathered g = {.count = outputs > 0 ? in->count / outputs : 0};
    g.values = malloc(sizeof(double) * (size_t)(in->count + 1));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t within, output = output_of(c, axes, i, &within);
        g.values[output * g.count + within] = tensor_get(in, i);
    }
    return g;
}

static double var_of(const double *x, int64_t count, double correction) {
    long double mean = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        mean += x[i];
    mean /= count;
    for (int64_t i = 0; i < count; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    long double divisor = count - (long double)correction;
    return (double)(squares / (divisor < 0 ? 0 : divisor));
}

static double norm_of(const double *x, int64_t count, double p) {
    long double sum = 0, largest = 0, smallest = INFINITY;
    bool has_nan = false;
    for (int64_t i = 0; i < count; i++) {
        long double magnitude = fabsl((long double)x[i]);
        has_nan = has_nan || isnan(x[i]);
        largest = magnitude > largest ? magnitude : largest;
        smallest = magnitude < smallest ? magnitude : smallest;
        sum += p == 0 ? x[i] != 0 : powl(magnitude, p);
    }
    if (isinf(p))
        return has_nan ? NAN : (double)(p > 0 ? largest : smallest);
    return (double)(p == 0 ? sum : powl(sum, 1 / (long double)p));
}

static double logsumexp_of(const double *x, int64_t count) {
    long double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        max = x[i] > max || isnan(x[i]) ? x[i] : max;
    long double shift = isinf(max) || isnan(max) ? 0 : max;
    for (int64_t i = 0; i < count; i++)
        sum += expl(x[i] - shift);
    return (double)(shift + logl(sum));
}

typedef union moment_attributes {
    eddy_attributes_reduce reduce;
    eddy_attributes_var var;
    eddy_attributes_norm norm;
} moment_attributes;

/* What the result has to be, and how far it may be off before it is rounded. */
static double wanted(moment m, eddy_dtype dtype, const double *x, int64_t count,
                     const moment_attributes *a, double *bound) {
    double levels = log2((double)count + 1) + 40, value;
    if (m == LOGSUMEXP) {
        value = logsumexp_of(x, count);
        *bound = levels * (dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24);
        return value;
    }
    if (m == NORM) {
        value = norm_of(x, count, a->norm.p);
        *bound = 2 * levels * 0x1p-53 * fabs(value) *
                 (a->norm.p != 0 && !isinf(a->norm.p) ? 1 + fabs(1 / a->norm.p) : 0);
        return value;
    }
    /* The mean is off by an ulp of the largest element at most, which adds its square to each. */
    double largest = norm_of(x, count, INFINITY),
           divisor = fmax(0, (double)count - a->var.correction);
    value = var_of(x, count, a->var.correction);
    *bound = 4 * levels * 0x1p-53 * fabs(value) +
             0x1p-52 * largest * 0x1p-52 * largest * (double)count / divisor;
    if (m == VAR)
        return value;
    *bound = value > *bound ? *bound / (2 * sqrt(value)) : sqrt(*bound);
    return sqrt(value);
}

/* Half an ulp of the dtype at `value`. */
static double half_ulp(eddy_dtype dtype, double value) {
    double unit = dtype == EDDY_F64   ? 0x1p-53
                  : dtype == EDDY_F32 ? 0x1p-24
                  : dtype == EDDY_F16 ? 0x1p-11
                                      : 0x1p-8;
    double least = dtype == EDDY_F64 ? 0 : dtype == EDDY_F16 ? 0x1p-25 : 0x1p-134;
    return fmax(unit * fabs(value), least);
}

static void check_value(moment m, const tensor *in, const tensor *out, layout l, int64_t i,
                        double want, double bound, double parameter) {
    eddy_dtype dtype = out->view.dtype;
    double got = tensor_get(out, i),
           allowed = bound + half_ulp(dtype, want) + half_ulp(dtype, bound);
    double largest = dtype == EDDY_F16   ? 65504
                     : dtype == EDDY_F64 ? 0x1.fffffffffffffp1023
                                         : 0x1.fffffep127;
    bool is_right =
        isnan(want) ? isnan(got)
                    : got == want || fabs(got - want) <= allowed || (isinf(got) && want > largest);
    cr_assert(is_right, "%s (%g) output %lld: %a, not %a (off by %g, allowed %g)",
              describe(kernels[m]->name, in, l), parameter, (long long)i, got, want,
              fabs(got - want), allowed);
}

static moment_attributes make_attributes(moment m, uint32_t axes, bool keeps_dims,
                                         double parameter) {
    moment_attributes a = {.reduce = {.axes = axes, .keeps_dims = keeps_dims}};
    if (m == NORM)
        a.norm = (eddy_attributes_norm){.axes = axes, .keeps_dims = keeps_dims, .p = parameter};
    else if (m != LOGSUMEXP)
        a.var =
            (eddy_attributes_var){.axes = axes, .keeps_dims = keeps_dims, .correction = parameter};
    return a;
}

static void check(moment m, eddy_dtype dtype, const shape_case *c, uint32_t axes, bool keeps_dims,
                  double parameter, layout in_layout, layout out_layout, bool has_specials,
                  eddy_kernel_team *team) {
    int64_t shape[4];
    int32_t rank = output_shape(c, axes, keeps_dims, shape);
    tensor in = tensor_make(dtype, c->rank, c->shape, in_layout),
           plain = tensor_make(dtype, c->rank, c->shape, CONTIGUOUS);
    tensor out = tensor_make(dtype, rank, shape, out_layout),
           again = tensor_make(dtype, rank, shape, TURNED);
    tensor_fill(&in, 10);
    for (int64_t i = 0; i < in.count; i++)
        if (has_specials && test_below(40) == 0)
            tensor_set(&in, i, test_below(3) == 0 ? NAN : test_below(2) ? INFINITY : -INFINITY);
        else if (test_below(10) == 0)
            tensor_set(&in, i, 0);
    if (m == NORM && in.count == 0 && (parameter < 0 || isinf(parameter))) {
        tensor_free(&in), tensor_free(&out), tensor_free(&again), tensor_free(&plain);
        return;
    }
    moment_attributes attributes = make_attributes(m, axes, keeps_dims, parameter);
    run_kernel(kernels[m], (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    gathered g = gather(c, axes, &in, out.count);
    for (int64_t i = 0; i < out.count; i++) {
        double bound, want = wanted(m, dtype, g.values + i * g.count, g.count, &attributes, &bound);
        check_value(m, &in, &out, in_layout, i, want, bound, parameter);
    }
    cr_assert(tensor_guards_hold(&out), "%s", describe(kernels[m]->name, &in, in_layout));
    for (int64_t i = 0; i < in.count; i++)
        memcpy(tensor_at(&plain, i), tensor_at(&in, i), eddy_dtype_bytes(dtype));
    run_kernel(kernels[m], (tensor *[]){&plain, &again}, 2, &attributes, team, NULL);
    cr_assert(tensor_agrees(&out, &again), "%s: bits differ from the contiguous tensor's, axes %x",
              describe(kernels[m]->name, &in, in_layout), axes);
    free(g.values);
    tensor_free(&in), tensor_free(&out), tensor_free(&again), tensor_free(&plain);
}

static double any_parameter(moment m) {
    return m == NORM ? orders[test_below(ORDERS)] : (double)(test_below(4)) / 2;
}

Test(moments, every_dtype_layout_and_set_of_axes) {
    for (int d = 0; d < 4; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (uint32_t axes = 0; axes < 1u << small_shapes[s].rank; axes++)
                for (int m = 0; m < MOMENTS; m++)
                    check((moment)m, floats[d], &small_shapes[s], axes, test_below(2),
                          any_parameter((moment)m), (layout)test_below(LAYOUT_COUNT),
                          (layout)test_below(OUTPUT_LAYOUTS), false, &shuffling_team);
}

Test(moments, every_order_of_norm) {
    for (int d = 0; d < 4; d++)
        for (int64_t p = 0; p < ORDERS; p++)
            for (size_t s = 7; s < 14; s++)
                check(NORM, floats[d], &small_shapes[s], (uint32_t)(1 + test_below(2)), false,
                      orders[p], (layout)test_below(LAYOUT_COUNT), CONTIGUOUS, p % 2,
                      &shuffling_team);
}

Test(moments, nan_and_infinities) {
    for (int round = 0; round < 4; round++)
        for (int d = 0; d < 4; d++)
            for (size_t s = 1; s < SMALL_SHAPES; s++)
                for (int m = 0; m < MOMENTS; m++)
                    check((moment)m, floats[d], &small_shapes[s],
                          (uint32_t)test_below(1 << small_shapes[s].rank), false,
                          any_parameter((moment)m), (layout)test_below(BROADCAST), CONTIGUOUS, true,
                          &serial_team);
}

Test(moments, big_ones_do_not_depend_on_slices) {
    const shape_case shapes[] = {
        {1, {500009}}, {2, {3, 200003}}, {2, {200003, 3}}, {2, {1030, 517}}, {2, {70000, 9}}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (uint32_t axes = 1; axes < 1u << shapes[s].rank; axes++)
            for (int m = 0; m < MOMENTS; m++)
                check((moment)m, m % 2 ? EDDY_F32 : EDDY_F64, &shapes[s], axes, false, 1,
                      m % 2 ? TURNED : UNALIGNED, CONTIGUOUS, false,
                      m % 2 ? &threaded_team : &shuffling_team);
}

/* Where outputs lie side by side they are taken in strips of vectors, the last of which overlap; strided ones go row by row. */
Test(moments, strips_of_columns_give_what_single_rows_do) {
    const int64_t rows[] = {1, 2, 31, 33, 65, 1030};
    for (int64_t columns = 1; columns <= 140; columns += columns < 20 ? 1 : 9)
        for (int m = 0; m < MOMENTS; m++)
            for (int d = 0; d < 2; d++) {
                shape_case shape = {2, {rows[(columns + m) % 6], columns}};
                check((moment)m, d ? EDDY_F64 : EDDY_F32, &shape, 1, false,
                      any_parameter((moment)m), columns % 2 ? STRIDED : TURNED, CONTIGUOUS,
                      columns % 3 == 0, &threaded_team);
            }
}

Test(moments, equal_elements_have_no_variance) {
    const shape_case shapes[] = {{2, {37, 1}}, {2, {3000, 1}}, {2, {1000, 3}}, {2, {70001, 3}}};
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 4; s++) {
            tensor in = tensor_make(floats[d], 2, shapes[s].shape, CONTIGUOUS);
            tensor out = tensor_make(floats[d], 1, &shapes[s].shape[1], CONTIGUOUS);
            double value = 1000 * test_unit();
            for (int64_t i = 0; i < in.count; i++)
                tensor_set(&in, i, value);
            moment_attributes a = make_attributes(STD, 1, false, 1);
            run_kernel(&eddy_cpu_std, (tensor *[]){&in, &out}, 2, &a, &shuffling_team, NULL);
            for (int64_t i = 0; i < out.count; i++)
                cr_assert_eq(tensor_get(&out, i), 0, "%s of %a is %a",
                             describe("std", &in, CONTIGUOUS), value, tensor_get(&out, i));
            tensor_free(&in), tensor_free(&out);
        }
}

/* A deviation of 1 about a mean of 2^20: the squares' sum and the mean's square would cancel to nothing in f32, and to
 * 13 bits in f64. */
Test(moments, a_large_mean_costs_no_digits) {
    int64_t n = 300001;
    for (int d = 0; d < 2; d++) {
        tensor in = tensor_make(floats[d], 1, &n, CONTIGUOUS),
               out = tensor_make(floats[d], 0, NULL, CONTIGUOUS);
        double *values = malloc(sizeof(double) * (size_t)n), mean = d ? 0x1p40 : 0x1p20;
        for (int64_t i = 0; i < n; i++) {
            tensor_set(&in, i, mean + 2 * test_unit() - 1);
            values[i] = tensor_get(&in, i);
        }
        eddy_attributes_var attributes = {.axes = 1, .correction = 1};
        run_kernel(&eddy_cpu_var, (tensor *[]){&in, &out}, 2, &attributes, &threaded_team, NULL);
        double want = var_of(values, n, 1), got = tensor_get(&out, 0);
        /* The mean is off by a few units of 2^-53 of itself, which shows in each deviation. */
        double bound = want * 0x1p-24 + 8 * 0x1p-53 * mean;
        cr_assert(fabs(got - want) <= bound, "%s: %a, not %a seed %llu", eddy_dtype_name(floats[d]),
                  got, want, (unsigned long long)test_seed);
        free(values);
        tensor_free(&in), tensor_free(&out);
    }
}

Test(moments, of_nothing_and_of_one) {
    const double values[2][MOMENTS] = {{NAN, NAN, 0, -INFINITY}, {NAN, NAN, 3, -3}};
    for (int64_t count = 0; count < 2; count++)
        for (int d = 0; d < 4; d++)
            for (int m = 0; m < MOMENTS; m++) {
                int64_t shape[] = {2, count}, two = 2;
                tensor in = tensor_make(floats[d], 2, shape, CONTIGUOUS),
                       out = tensor_make(floats[d], 1, &two, STRIDED);
                for (int64_t i = 0; i < in.count; i++)
                    tensor_set(&in, i, -3);
                moment_attributes a = make_attributes((moment)m, 2, false, m == NORM ? 2 : 1);
                run_kernel(kernels[m], (tensor *[]){&in, &out}, 2, &a, &serial_team, NULL);
                for (int64_t i = 0; i < 2; i++)
                    cr_assert(tensor_get(&out, i) == values[count][m] ||
                                  (isnan(values[count][m]) && isnan(tensor_get(&out, i))),
                              "%s of %lld: %g", kernels[m]->name, (long long)count,
                              tensor_get(&out, i));
                tensor_free(&in), tensor_free(&out);
            }
}

/* e^1000 is beyond every format. */
Test(moments, logsumexp_does_not_overflow) {
    const double offsets[] = {1000, -1000, 60000};
    int64_t n = 5000;
    for (int d = 0; d < 2; d++)
        for (int o = 0; o < 3; o++) {
            tensor in = tensor_make(floats[d], 1, &n, CONTIGUOUS),
                   out = tensor_make(floats[d], 0, NULL, CONTIGUOUS);
            for (int64_t i = 0; i < n; i++)
                tensor_set(&in, i, offsets[o]);
            eddy_attributes_reduce attributes = {.axes = 1};
            run_kernel(&eddy_cpu_logsumexp, (tensor *[]){&in, &out}, 2, &attributes, &serial_team,
                       NULL);
            double want = offsets[o] + log(5000);
            cr_assert(fabs(tensor_get(&out, 0) - want) <= (d ? 0x1p-52 : 0x1p-23) * fabs(want));
            tensor_free(&in), tensor_free(&out);
        }
}
