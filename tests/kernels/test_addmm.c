/* addmm against loops in double (integers: modulo the dtype's width); any layout; the same bits for every team.
 *
 * Bound: (k + 4) half ulps of f32 (f64) of the sum of magnitudes, and one rounding for f16 and bf16. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct operands {
    tensor in, a, b, out;
    int64_t m, n, k;
    eddy_attributes_addmm attributes;
} operands;

static int64_t input_number(const operands *o, int64_t i, int64_t j) {
    const tensor *in = &o->in;
    int64_t number = 0;
    if (in->view.rank == 2)
        number = in->shape[0] == 1 ? 0 : i * in->shape[1];
    return number + (in->view.rank == 0 || in->shape[in->view.rank - 1] == 1 ? 0 : j);
}

static void check_element(const operands *o, int64_t i, int64_t j) {
    eddy_dtype dtype = o->out.view.dtype;
    int64_t at = i * o->n + j, added = input_number(o, i, j);
    double alpha = o->attributes.alpha, beta = o->attributes.beta;
    if (!eddy_dtype_is_float(dtype)) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < o->k; p++)
            sum += (uint64_t)tensor_get_int(&o->a, i * o->k + p) *
                   (uint64_t)tensor_get_int(&o->b, p * o->n + j);
        sum = (uint64_t)(int64_t)alpha * sum +
              (uint64_t)(int64_t)beta * (uint64_t)tensor_get_int(&o->in, added);
        cr_assert_eq(tensor_get_int(&o->out, at), tensor_wrap_int(dtype, (int64_t)sum),
                     "%s element %lld", describe("addmm", &o->out, CONTIGUOUS), (long long)at);
        return;
    }
    double sum = 0, magnitude = 0, input = beta == 0 ? 0 : beta * tensor_get(&o->in, added);
    for (int64_t p = 0; p < o->k; p++) {
        double product = tensor_get(&o->a, i * o->k + p) * tensor_get(&o->b, p * o->n + j);
        sum += product;
        magnitude += fabs(product);
    }
    double want = alpha * sum + input, got = tensor_get(&o->out, at),
           unit = dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24;
    double rounding = dtype == EDDY_F16 ? 0x1p-11 : dtype == EDDY_BF16 ? 0x1p-8 : 0;
    double bound = (double)(o->k + 4) * unit * (fabs(alpha) * magnitude + fabs(input));
    cr_assert((isnan(got) && isnan(want)) ||
                  fabs(got - want) <= bound + rounding * fabs(want) + rounding * 0x1p-14,
              "%s k %lld element %lld: %a, not %a", describe("addmm", &o->out, CONTIGUOUS),
              (long long)o->k, (long long)at, got, want);
}

static void check(eddy_dtype dtype, int64_t m, int64_t n, int64_t k, int32_t in_rank, bool is_row,
                  double alpha, double beta, layout a, layout b, layout c) {
    operands o = {.m = m, .n = n, .k = k, .attributes = {.alpha = alpha, .beta = beta}};
    int64_t full[] = {is_row ? 1 : m, n};
    o.in = tensor_make(dtype, in_rank, full + 2 - in_rank, in_rank ? a : CONTIGUOUS);
    o.a = tensor_make(dtype, 2, (const int64_t[]){m, k}, a);
    o.b = tensor_make(dtype, 2, (const int64_t[]){k, n}, b);
    o.out = tensor_make(dtype, 2, (const int64_t[]){m, n}, c);
    tensor_fill(&o.in, eddy_dtype_is_float(dtype) ? 1 : 100);
    tensor_fill(&o.a, eddy_dtype_is_float(dtype) ? 1 : 100);
    tensor_fill(&o.b, eddy_dtype_is_float(dtype) ? 1 : 100);
    if (beta == 0 && eddy_dtype_is_float(dtype) && o.in.count > 0)
        tensor_set(&o.in, 0, NAN);
    tensor *operands_of[] = {&o.in, &o.a, &o.b, &o.out};
    run_kernel(&eddy_cpu_addmm, operands_of, 4, &o.attributes, &serial_team, NULL);
    for (int64_t e = 0; e < o.out.count; e += o.out.count < 5000 ? 1 : 97)
        check_element(&o, e / n, e % n);
    cr_assert(tensor_guards_hold(&o.out));
    char *bits = malloc(o.out.bytes);
    memcpy(bits, o.out.memory, o.out.bytes);
    eddy_kernel_team *others[] = {&shuffling_team, &threaded_team};
    run_kernel(&eddy_cpu_addmm, operands_of, 4, &o.attributes, others[test_below(2)], NULL);
    cr_assert_eq(memcmp(bits, o.out.memory, o.out.bytes), 0, "%s: the team shows",
                 describe("addmm", &o.out, c));
    free(bits);
    tensor_free(&o.in), tensor_free(&o.a), tensor_free(&o.b), tensor_free(&o.out);
}

Test(addmm, every_dtype_layout_and_factor) {
    const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {7, 1, 4}, {17, 33, 16},
                                {5, 6, 0}, {0, 3, 4}, {3, 0, 4}};
    const double factors[][2] = {{1, 1}, {2, -3}, {0, 1}, {1, 0}, {0.5, 0.25}};
    for (int d = 0; d < EDDY_BOOL; d++)
        for (int s = 0; s < 7; s++)
            for (int f = 0; f < 5; f++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check((eddy_dtype)d, sizes[s][0], sizes[s][1], sizes[s][2],
                          (int32_t)test_below(3), test_below(2), factors[f][0], factors[f][1],
                          (layout)a, (layout)test_below(LAYOUT_COUNT),
                          (layout)test_below(OUTPUT_LAYOUTS));
    check(EDDY_F32, 300, 257, 128, 2, false, 1, 1, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
    check(EDDY_BF16, 300, 257, 64, 1, false, 2, 1, CONTIGUOUS, TURNED, CONTIGUOUS);
}
