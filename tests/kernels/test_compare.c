/* equal and allclose, each against one loop, and with one element changed at a time. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>

static bool ask(const eddy_kernel *kernel, tensor *a, tensor *b, const void *attributes) {
    tensor answer = tensor_make(EDDY_BOOL, 0, NULL, CONTIGUOUS);
    tensor_set(&answer, 0, (double)test_below(2));
    run_kernel(kernel, (tensor *[]){a, b, &answer}, 3, attributes,
               test_below(2) ? &serial_team : &shuffling_team, NULL);
    bool result = tensor_get(&answer, 0) != 0;
    cr_assert(tensor_guards_hold(&answer));
    tensor_free(&answer);
    return result;
}

static bool equal(tensor *a, tensor *b) {
    return ask(&eddy_cpu_equal, a, b, NULL);
}

static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 17, 40}, {0, 3, 2}, {5, 100, 200}};

Test(compare, equal_sees_each_element_of_every_dtype_and_layout) {
    for (int d = 0; d < EDDY_DTYPE_COUNT; d++)
        for (int s = 0; s < 5; s++)
            for (int l = 0; l < OUTPUT_LAYOUTS; l++) {
                tensor a = tensor_make((eddy_dtype)d, 3, shapes[s], (layout)l);
                tensor b =
                    tensor_make((eddy_dtype)d, 3, shapes[s], (layout)test_below(OUTPUT_LAYOUTS));
                tensor_fill(&a, 100);
                for (int64_t i = 0; i < a.count; i++)
                    tensor_set_int(&b, i, 0), tensor_set(&b, i, tensor_get(&a, i));
                cr_assert(equal(&a, &b), "%s", describe("equal", &a, (layout)l));
                for (int k = 0; k < 4 && a.count > 0; k++) {
                    int64_t at = k == 0 ? 0 : k == 1 ? a.count - 1 : test_below(a.count);
                    double old = tensor_get(&a, at);
                    tensor_set(&b, at, old == 1 ? 0 : 1);
                    cr_assert(!equal(&a, &b), "%s element %lld", describe("equal", &a, (layout)l),
                              (long long)at);
                    tensor_set(&b, at, old);
                }
                tensor_free(&a), tensor_free(&b);
            }
}

Test(compare, equal_knows_shapes_signs_of_zero_and_nan) {
    const int64_t other[] = {5, 3, 7}, short_one[] = {3, 5};
    tensor a = tensor_make(EDDY_F32, 3, shapes[1], CONTIGUOUS),
           b = tensor_make(EDDY_F32, 3, other, CONTIGUOUS);
    tensor c = tensor_make(EDDY_F32, 2, short_one, CONTIGUOUS);
    for (int64_t i = 0; i < a.count; i++)
        tensor_set(&a, i, 0), tensor_set(&b, i, 0);
    cr_assert(!equal(&a, &b) && !equal(&a, &c) && equal(&a, &a));
    tensor same = tensor_make(EDDY_F32, 3, shapes[1], TURNED);
    for (int64_t i = 0; i < a.count; i++)
        tensor_set(&same, i, -0.0);
    cr_assert(equal(&a, &same));
    tensor_set(&a, 7, NAN);
    cr_assert(!equal(&a, &a));
    tensor_free(&a), tensor_free(&b), tensor_free(&c), tensor_free(&same);
}

Test(compare, equal_tells_integers_apart_that_doubles_do_not) {
    const int64_t one[] = {1};
    tensor a = tensor_make(EDDY_I64, 1, one, CONTIGUOUS),
           b = tensor_make(EDDY_I64, 1, one, CONTIGUOUS);
    tensor_set_int(&a, 0, INT64_MAX), tensor_set_int(&b, 0, INT64_MAX - 1);
    cr_assert(!equal(&a, &b));
    eddy_attributes_allclose none = {0}, some = {.atol = 1};
    cr_assert(ask(&eddy_cpu_allclose, &a, &a, &none) && ask(&eddy_cpu_allclose, &a, &b, &some));
    tensor_free(&a), tensor_free(&b);
}

static bool close_enough(const eddy_attributes_allclose *c, double a, double b) {
    if (a == b)
        return true;
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) && c->nan_is_equal;
    if (isinf(a) || isinf(b))
        return false;
    return fabs(a - b) <= c->atol + c->rtol * fabs(b);
}

Test(compare, allclose_bounds_each_element) {
    const double values[] = {0,   -0.0,     1,        1.0009765625, 1.001953125, -1,
                             100, 100.0625, INFINITY, -INFINITY,    NAN,         1e-8};
    const eddy_attributes_allclose bounds[] = {{1e-5, 1e-8, false}, {0, 0, false},
                                               {0, 0, true},        {1e-3, 0, true},
                                               {0, 0.0625, false},  {INFINITY, 0, false}};
    const int64_t one[] = {1};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16, EDDY_I32};
    for (int d = 0; d < 5; d++)
        for (int k = 0; k < 6; k++)
            for (int i = 0; i < 144; i++) {
                tensor a = tensor_make(dtypes[d], 1, one, UNALIGNED),
                       b = tensor_make(dtypes[d], 1, one, CONTIGUOUS);
                double left = values[i / 12], right = values[i % 12];
                bool is_integer = dtypes[d] == EDDY_I32;
                tensor_set(&a, 0, is_integer && !isfinite(left) ? 7 : left);
                tensor_set(&b, 0, is_integer && !isfinite(right) ? 8 : right);
                bool got = ask(&eddy_cpu_allclose, &a, &b, &bounds[k]);
                cr_assert_eq(got, close_enough(&bounds[k], tensor_get(&a, 0), tensor_get(&b, 0)),
                             "%s: %g and %g, %d", eddy_dtype_name(dtypes[d]), left, right, k);
                tensor_free(&a), tensor_free(&b);
            }
}

Test(compare, allclose_broadcasts) {
    const int64_t wide[] = {3, 400, 50}, row[] = {400, 1}, none[] = {0, 1};
    eddy_attributes_allclose bound = {.atol = 0.5};
    tensor a = tensor_make(EDDY_F32, 3, wide, STRIDED), b = tensor_make(EDDY_F32, 2, row, NEGATIVE);
    tensor empty = tensor_make(EDDY_F32, 2, none, CONTIGUOUS),
           number = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    for (int64_t i = 0; i < b.count; i++)
        tensor_set(&b, i, (double)i);
    for (int64_t i = 0; i < a.count; i++)
        tensor_set(&a, i, (double)(i / 50 % 400) + 0.5);
    cr_assert(ask(&eddy_cpu_allclose, &a, &b, &bound) && ask(&eddy_cpu_allclose, &b, &a, &bound));
    tensor_set(&a, a.count - 1, 400);
    cr_assert(!ask(&eddy_cpu_allclose, &a, &b, &bound) && !ask(&eddy_cpu_allclose, &b, &a, &bound));
    tensor_set(&number, 0, 3);
    cr_assert(ask(&eddy_cpu_allclose, &empty, &number, &bound));
    tensor_free(&a), tensor_free(&b), tensor_free(&empty), tensor_free(&number);
}
