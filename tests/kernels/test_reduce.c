/* Every reduction of the op list against its oracle and against itself: the same bits for every layout and slicing (test_isa.c: and
 * instruction set). What single ones promise besides. max_dim and min_dim against argmax and argmin. */
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
#include <string.h>

Test(reduce, every_dtype_layout_and_set_of_axes) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (uint32_t axes = 0; axes < 1u << small_shapes[s].rank; axes++)
                for (size_t k = (s + axes) % 2; k < reduction_count; k += 2)
                    reducing_check_default((reducing){.op = reduction_names[k],
                                                      .dtype = (eddy_dtype)d,
                                                      .shape = &small_shapes[s],
                                                      .axes = axes,
                                                      .keeps_dims = test_below(2),
                                                      .in = (layout)test_below(LAYOUT_COUNT),
                                                      .out = (layout)test_below(OUTPUT_LAYOUTS),
                                                      .team = &shuffling_team});
}

Test(reduce, nan_and_infinities) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (int round = 0; round < 4; round++)
        for (int d = 0; d < 4; d++)
            for (size_t s = 1; s < SMALL_SHAPES; s++)
                for (size_t k = 0; k < reduction_count; k++)
                    reducing_check_default(
                        (reducing){.op = reduction_names[k],
                                   .dtype = dtypes[d],
                                   .shape = &small_shapes[s],
                                   .axes = (uint32_t)test_below(1 << small_shapes[s].rank),
                                   .in = (layout)test_below(BROADCAST),
                                   .has_specials = true,
                                   .team = &serial_team});
}

/* The largest, or the smallest, of elements among which infinities of both signs and, at `at`, a NaN may be. */
static double extreme_of(const eddy_kernel *kernel, eddy_dtype dtype, int64_t count, int64_t at) {
    tensor in = tensor_make(dtype, 1, &count, CONTIGUOUS),
           out = tensor_make(dtype, 0, NULL, CONTIGUOUS);
    tensor_fill(&in, 10);
    tensor_set(&in, 0, INFINITY);
    tensor_set(&in, count - 1, -INFINITY);
    if (at >= 0)
        tensor_set(&in, at, NAN);
    eddy_attributes_reduce attributes = {.axes = 1};
    run_kernel(kernel, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    double extreme = tensor_get(&out, 0);
    tensor_free(&in), tensor_free(&out);
    return extreme;
}

Test(reduce, one_nan_is_found_at_any_place_and_infinities_make_none) {
    for (int d = 0; d < 2; d++)
        for (int64_t count = 2; count < 140; count += 23) {
            eddy_dtype dtype = d ? EDDY_F64 : EDDY_F32;
            cr_assert_eq(extreme_of(&eddy_cpu_max, dtype, count, -1), (double)INFINITY);
            cr_assert_eq(extreme_of(&eddy_cpu_min, dtype, count, -1), -(double)INFINITY);
            for (int64_t at = 0; at < count; at++) {
                cr_assert(isnan(extreme_of(&eddy_cpu_max, dtype, count, at)), "%lld of %lld",
                          (long long)at, (long long)count);
                cr_assert(isnan(extreme_of(&eddy_cpu_min, dtype, count, at)), "%lld of %lld",
                          (long long)at, (long long)count);
            }
        }
}

/* 0.01 so many times over, `negatives` of them with a sign. */
static double small_product(eddy_dtype dtype, int64_t count, int64_t negatives) {
    tensor in = tensor_make(dtype, 1, &count, CONTIGUOUS),
           out = tensor_make(dtype, 0, NULL, CONTIGUOUS);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&in, i, i % 51 == 0 && i / 51 < negatives ? -0.01 : 0.01);
    eddy_attributes_reduce attributes = {.axes = 1};
    run_kernel(&eddy_cpu_prod, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    double product = tensor_get(&out, 0);
    tensor_free(&in), tensor_free(&out);
    return product;
}

Test(reduce, products_too_small_for_a_number_are_zeros_of_their_sign) {
    for (int64_t count = 200; count < 10000; count += 411)
        for (int64_t negatives = 0; negatives < 4; negatives++)
            for (int d = 0; d < 2; d++) {
                double product = small_product(d ? EDDY_F64 : EDDY_F32, count, negatives);
                cr_assert(product == 0 && !signbit(product) == (negatives % 2 == 0),
                          "%lld elements, %lld below 0", (long long)count, (long long)negatives);
            }
}

/* Halves in one block, twos in the next: the parts are far outside of f32. */
Test(reduce, parts_of_a_product_are_kept_where_the_whole_is_a_number) {
    int64_t count = 2048;
    tensor in = tensor_make(EDDY_F32, 1, &count, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&in, i, i % 1024 >= 1000 ? 1 : i < 1024 ? 0.5 : 2);
    eddy_attributes_reduce attributes = {.axes = 1};
    run_kernel(&eddy_cpu_prod, (tensor *[]){&in, &out}, 2, &attributes, &serial_team, NULL);
    cr_assert_eq(tensor_get(&out, 0), 1);
    tensor_free(&in), tensor_free(&out);
}

Test(reduce, big_reductions_do_not_depend_on_slices) {
    const shape_case shapes[] = {{1, {1000003}},    {2, {3, 400001}},    {2, {400001, 3}},
                                 {2, {1030, 1031}}, {3, {65, 1025, 17}}, {2, {9000, 129}},
                                 {2, {70000, 17}}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (uint32_t axes = 1; axes < 1u << shapes[s].rank; axes++)
            for (size_t k = (s + axes) % 4; k < reduction_count; k += 4)
                for (int t = 0; t < 2; t++)
                    reducing_check_default(
                        (reducing){.op = reduction_names[k],
                                   .dtype = t ? EDDY_BF16 : EDDY_F32,
                                   .shape = &shapes[s],
                                   .axes = axes,
                                   .in = t ? TURNED : UNALIGNED,
                                   .team = k % 2 ? &threaded_team : &shuffling_team});
}

/* Contiguous blocks are taken in groups, strided ones each by itself. */
Test(reduce, groups_of_blocks_give_what_single_blocks_do) {
    const shape_case shapes[] = {{1, {20500}}, {2, {3, 9300}}};
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < reduction_count; k++)
            for (int d = 0; d < 2; d++)
                for (int has_specials = 0; has_specials < 2; has_specials++)
                    reducing_check_default((reducing){.op = reduction_names[k],
                                                      .dtype = d ? EDDY_F64 : EDDY_F32,
                                                      .shape = &shapes[s],
                                                      .axes = 1u << s,
                                                      .in = STRIDED,
                                                      .has_specials = has_specials,
                                                      .team = &threaded_team});
}

/* Where outputs lie side by side they are taken in strips of vectors, the last of which overlap; strided ones go row by row. */
Test(reduce, strips_of_columns_give_what_single_rows_do) {
    const int64_t rows[] = {1, 2, 31, 33, 65, 1030};
    for (int64_t columns = 1; columns <= 263; columns += columns < 20 ? 1 : 9)
        for (size_t k = 0; k < reduction_count; k++)
            for (int d = 0; d < 3; d++) {
                const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_I64};
                shape_case shape = {2, {rows[(columns + (int64_t)k) % 6], columns}};
                reducing_check_default((reducing){.op = reduction_names[k],
                                                  .dtype = dtypes[d],
                                                  .shape = &shape,
                                                  .axes = 1,
                                                  .in = columns % 2 ? STRIDED : TURNED,
                                                  .has_specials = d < 2,
                                                  .team = &threaded_team});
            }
}

Test(reduce, an_axis_gives_the_bits_of_the_flat_sum) {
    int64_t n = 5000;
    tensor flat = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           total = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    tensor_fill(&flat, 100);
    eddy_attributes_reduce attributes = {.axes = 1};
    run_kernel(&eddy_cpu_sum, (tensor *[]){&flat, &total}, 2, &attributes, &serial_team, NULL);
    int64_t shape[] = {5000, 200}, columns = 200;
    tensor wide = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           sums = tensor_make(EDDY_F32, 1, &columns, CONTIGUOUS);
    for (int64_t i = 0; i < wide.count; i++)
        tensor_set(&wide, i, tensor_get(&flat, i / 200));
    run_kernel(&eddy_cpu_sum, (tensor *[]){&wide, &sums}, 2, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 200; i++)
        cr_assert(tensor_get(&sums, i) == tensor_get(&total, 0));
    tensor_free(&flat), tensor_free(&total), tensor_free(&wide), tensor_free(&sums);
}

/* A search of one axis is argmax (argmin) over it, and the element there. */
static void check_dim(bool is_min, eddy_dtype dtype, const shape_case *c, int32_t axis,
                      bool keeps_dims, layout l, eddy_kernel_team *team) {
    uint32_t axes = c->rank == 0 ? 0 : 1u << axis;
    int64_t shape[4];
    int32_t rank = output_shape(c, axes, keeps_dims, shape);
    tensor in = tensor_make(dtype, c->rank, c->shape, l);
    tensor_fill(&in, 20);
    for (int64_t i = 0; i < in.count && eddy_dtype_is_float(dtype); i++)
        if (test_below(60) == 0)
            tensor_set(&in, i, test_below(2) ? NAN : INFINITY);
    tensor values = tensor_make(dtype, rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor indices = tensor_make(EDDY_I64, rank, shape, (layout)test_below(OUTPUT_LAYOUTS));
    tensor best = tensor_make(dtype, rank, shape, CONTIGUOUS),
           at = tensor_make(EDDY_I64, rank, shape, CONTIGUOUS);
    eddy_attributes_axis_keepdim along = {.axis = axis, .keeps_dims = keeps_dims};
    eddy_attributes_reduce over = {.axes = axes, .keeps_dims = keeps_dims};
    run_kernel(is_min ? &eddy_cpu_min_dim : &eddy_cpu_max_dim, (tensor *[]){&in, &values, &indices},
               3, &along, team, NULL);
    run_kernel(is_min ? &eddy_cpu_min : &eddy_cpu_max, (tensor *[]){&in, &best}, 2, &over,
               &serial_team, NULL);
    run_kernel(is_min ? &eddy_cpu_argmin : &eddy_cpu_argmax, (tensor *[]){&in, &at}, 2, &over,
               &serial_team, NULL);
    for (int64_t i = 0; i < best.count; i++)
        cr_assert(tensor_get(&values, i) == tensor_get(&best, i) ||
                      (isnan(tensor_get(&values, i)) && isnan(tensor_get(&best, i))),
                  "%s output %lld", describe("max_dim", &in, l), (long long)i);
    cr_assert(tensor_agrees(&indices, &at), "%s", describe("max_dim", &in, l));
    cr_assert(tensor_guards_hold(&values) && tensor_guards_hold(&indices));
    tensor_free(&in), tensor_free(&values), tensor_free(&indices), tensor_free(&best),
        tensor_free(&at);
}

Test(reduce, one_axis_gives_values_and_indices) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t s = 0; s < SMALL_SHAPES; s++)
            for (int32_t axis = 0; axis < small_shapes[s].rank || axis == 0; axis++)
                if (small_shapes[s].rank == 0 || small_shapes[s].shape[axis] > 0)
                    check_dim(test_below(2), (eddy_dtype)d, &small_shapes[s], axis, test_below(2),
                              (layout)test_below(LAYOUT_COUNT), &shuffling_team);
    const shape_case big[] = {{1, {300007}}, {2, {3, 100001}}, {2, {100001, 3}}};
    for (int s = 0; s < 3; s++)
        for (int32_t axis = 0; axis < big[s].rank; axis++)
            for (int is_min = 0; is_min < 2; is_min++)
                check_dim(is_min, is_min ? EDDY_I32 : EDDY_F16, &big[s], axis, false, UNALIGNED,
                          &threaded_team);
}

Test(reduce, the_first_of_equals_is_chosen) {
    int64_t n = 3 * 65536;
    tensor in = tensor_make(EDDY_F32, 1, &n, CONTIGUOUS),
           at = tensor_make(EDDY_I64, 0, NULL, CONTIGUOUS);
    eddy_attributes_reduce attributes = {.axes = 1};
    for (int round = 0; round < 4; round++) {
        double value = round % 2 ? NAN : round;
        int64_t first = test_below(n - 70000);
        for (int64_t i = 0; i < n; i++)
            tensor_set(&in, i, 0.5);
        for (int64_t i = first; i < n; i += 33333)
            tensor_set(&in, i, round < 2 ? value + 1 : value < 2 ? value : -value);
        run_kernel(round < 2 ? &eddy_cpu_argmax : &eddy_cpu_argmin, (tensor *[]){&in, &at}, 2,
                   &attributes, &threaded_team, NULL);
        cr_assert_eq(tensor_get_int(&at, 0), first, "round %d seed %llu", round,
                     (unsigned long long)test_seed);
    }
    tensor_free(&in), tensor_free(&at);
}

Test(reduce, nothing_gives_what_changes_nothing) {
    const shape_case none = {2, {3, 0}};
    const struct {
        const eddy_kernel *kernel;
        double value;
    } cases[] = {{&eddy_cpu_sum, 0},
                 {&eddy_cpu_prod, 1},
                 {&eddy_cpu_any, 0},
                 {&eddy_cpu_all, 1},
                 {&eddy_cpu_mean, NAN}};
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            if (isnan(cases[k].value) && !eddy_dtype_is_float((eddy_dtype)d))
                continue;
            int64_t three = 3;
            tensor in = tensor_make((eddy_dtype)d, 2, none.shape, CONTIGUOUS);
            tensor out = tensor_make(reducing_result(cases[k].kernel->name, (eddy_dtype)d), 1,
                                     &three, STRIDED);
            eddy_attributes_reduce attributes = {.axes = 2};
            run_kernel(cases[k].kernel, (tensor *[]){&in, &out}, 2, &attributes, &serial_team,
                       NULL);
            for (int64_t i = 0; i < 3; i++)
                cr_assert(tensor_get(&out, i) == cases[k].value ||
                              (isnan(cases[k].value) && isnan(tensor_get(&out, i))),
                          "%s %s", cases[k].kernel->name, eddy_dtype_name((eddy_dtype)d));
            cr_assert(tensor_guards_hold(&out));
            tensor_free(&in), tensor_free(&out);
        }
}
