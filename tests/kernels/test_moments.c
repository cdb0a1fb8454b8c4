/* var, std, norm and logsumexp where test_reduce.c does not look: with other numbers than their options' defaults, and what single ones
 * promise. */
#include "axes.h"
#include "reducing.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>

/* Those with an option that is a number come first. */
typedef enum moment { VAR, STD, NORM, LOGSUMEXP, MOMENTS } moment;
#define NUMBERED LOGSUMEXP

static const eddy_kernel *const kernels[] = {&eddy_cpu_var, &eddy_cpu_std, &eddy_cpu_norm,
                                             &eddy_cpu_logsumexp};
static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
static const double orders[] = {2, 1, 0, INFINITY, -INFINITY, 3, 0.5, -1.5};
#define ORDERS ((int64_t)(sizeof(orders) / sizeof(orders[0])))

typedef union moment_attributes {
    eddy_attributes_reduce reduce;
    eddy_attributes_var var;
    eddy_attributes_norm norm;
} moment_attributes;

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

static double any_parameter(moment m) {
    return m == NORM ? orders[test_below(ORDERS)] : (double)(test_below(4)) / 2;
}

Test(moments, every_dtype_layout_and_set_of_axes) {
    for (int d = 0; d < 4; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (uint32_t axes = 0; axes < 1u << small_shapes[s].rank; axes++)
                for (int m = 0; m < NUMBERED; m++)
                    reducing_check((reducing){.op = kernels[m]->name,
                                              .dtype = floats[d],
                                              .shape = &small_shapes[s],
                                              .axes = axes,
                                              .keeps_dims = test_below(2),
                                              .parameter = any_parameter((moment)m),
                                              .in = (layout)test_below(LAYOUT_COUNT),
                                              .out = (layout)test_below(OUTPUT_LAYOUTS),
                                              .team = &shuffling_team});
}

Test(moments, every_order_of_norm) {
    for (int d = 0; d < 4; d++)
        for (int64_t p = 0; p < ORDERS; p++)
            for (size_t s = 7; s < 14; s++)
                reducing_check((reducing){.op = "norm",
                                          .dtype = floats[d],
                                          .shape = &small_shapes[s],
                                          .axes = (uint32_t)(1 + test_below(2)),
                                          .parameter = orders[p],
                                          .in = (layout)test_below(LAYOUT_COUNT),
                                          .has_specials = p % 2,
                                          .team = &shuffling_team});
}

Test(moments, nan_and_infinities) {
    for (int round = 0; round < 4; round++)
        for (int d = 0; d < 4; d++)
            for (size_t s = 1; s < SMALL_SHAPES; s++)
                for (int m = 0; m < NUMBERED; m++)
                    reducing_check(
                        (reducing){.op = kernels[m]->name,
                                   .dtype = floats[d],
                                   .shape = &small_shapes[s],
                                   .axes = (uint32_t)test_below(1 << small_shapes[s].rank),
                                   .parameter = any_parameter((moment)m),
                                   .in = (layout)test_below(BROADCAST),
                                   .has_specials = true,
                                   .team = &serial_team});
}

Test(moments, big_ones_do_not_depend_on_slices) {
    const shape_case shapes[] = {{1, {500009}}, {2, {3, 200003}}, {2, {200003, 3}}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (int d = 0; d < 2; d++)
            reducing_check((reducing){.op = "norm",
                                      .dtype = floats[d],
                                      .shape = &shapes[s],
                                      .axes = 1,
                                      .parameter = d ? 1 : 3,
                                      .in = d ? UNALIGNED : TURNED,
                                      .team = d ? &shuffling_team : &threaded_team});
}

/* Where outputs lie side by side they are taken in strips of vectors, the last of which overlap; strided ones go row by row. */
Test(moments, strips_of_columns_give_what_single_rows_do) {
    const int64_t rows[] = {1, 2, 31, 33, 65, 1030};
    for (int64_t columns = 1; columns <= 140; columns += columns < 20 ? 1 : 9)
        for (int m = 0; m < NUMBERED; m++)
            for (int d = 0; d < 2; d++) {
                shape_case shape = {2, {rows[(columns + m) % 6], columns}};
                reducing_check((reducing){.op = kernels[m]->name,
                                          .dtype = d ? EDDY_F64 : EDDY_F32,
                                          .shape = &shape,
                                          .axes = 1,
                                          .parameter = any_parameter((moment)m),
                                          .in = columns % 2 ? STRIDED : TURNED,
                                          .has_specials = columns % 3 == 0,
                                          .team = &threaded_team});
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
        reduction_element *values = malloc(sizeof(reduction_element) * (size_t)n);
        double mean = d ? 0x1p40 : 0x1p20;
        for (int64_t i = 0; i < n; i++) {
            tensor_set(&in, i, mean + 2 * test_unit() - 1);
            values[i].real = tensor_get(&in, i);
        }
        eddy_attributes_var attributes = {.axes = 1, .correction = 1};
        run_kernel(&eddy_cpu_var, (tensor *[]){&in, &out}, 2, &attributes, &threaded_team, NULL);
        reduction_value variance;
        cr_assert(
            reduction_apply("var", &(reduction_elements){values, n, floats[d], 1}, &variance));
        double want = (double)variance.real, got = tensor_get(&out, 0);
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
