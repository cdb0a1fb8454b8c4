/* matmul and linear against loops in double (integers: modulo the dtype's width); any layout, broadcast batches; the same
 * bits for every team.
 *
 * Bound: (k + 4) half ulps of f32 (f64) of the sum of magnitudes, and one rounding for f16 and bf16. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct operands {
    tensor a, b, bias, out;
    bool has_bias, is_linear;
    int32_t batch_rank;
    int64_t batches[4];
    int64_t m, n, k;
} operands;

/* The flat number of batch `batch`'s first element in an operand that may be broadcast or have fewer batch dims. */
static int64_t batch_start(const operands *o, const tensor *t, int64_t batch, int64_t matrix) {
    int64_t flat = 0, scale = matrix;
    for (int32_t d = o->batch_rank - 1, own = t->view.rank - 3; d >= 0; d--, own--) {
        int64_t index = batch % o->batches[d];
        batch /= o->batches[d];
        if (own < 0)
            continue;
        flat += (t->shape[own] == 1 ? 0 : index) * scale;
        scale *= t->shape[own];
    }
    return flat;
}

static void check_element(const operands *o, int64_t batch, int64_t i, int64_t j) {
    eddy_dtype dtype = o->out.view.dtype;
    int64_t a = batch_start(o, &o->a, batch, o->m * o->k) + i * o->k;
    int64_t b = o->is_linear ? j * o->k : batch_start(o, &o->b, batch, o->k * o->n) + j;
    int64_t at = (batch * o->m + i) * o->n + j, step = o->is_linear ? 1 : o->n;
    const char *op = o->is_linear ? "linear" : "matmul";
    if (!eddy_dtype_is_float(dtype)) {
        uint64_t sum = o->has_bias ? (uint64_t)tensor_get_int(&o->bias, j) : 0;
        for (int64_t p = 0; p < o->k; p++)
            sum += (uint64_t)tensor_get_int(&o->a, a + p) *
                   (uint64_t)tensor_get_int(&o->b, b + p * step);
        cr_assert_eq(tensor_get_int(&o->out, at), tensor_wrap_int(dtype, (int64_t)sum),
                     "%s element %lld", describe(op, &o->out, CONTIGUOUS), (long long)at);
        return;
    }
    double want = o->has_bias ? tensor_get(&o->bias, j) : 0, magnitude = fabs(want),
           got = tensor_get(&o->out, at);
    for (int64_t p = 0; p < o->k; p++) {
        double product = tensor_get(&o->a, a + p) * tensor_get(&o->b, b + p * step);
        want += product;
        magnitude += fabs(product);
    }
    double unit = dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24;
    double rounding = dtype == EDDY_F16 ? 0x1p-11 : dtype == EDDY_BF16 ? 0x1p-8 : 0;
    cr_assert(fabs(got - want) <= (double)(o->k + 4) * unit * magnitude + rounding * fabs(want) +
                                      rounding * 0x1p-14,
              "%s m %lld k %lld element %lld: %a, not %a", describe(op, &o->out, CONTIGUOUS),
              (long long)o->m, (long long)o->k, (long long)at, got, want);
}

static void run_and_check(operands *o) {
    const eddy_kernel *kernel = o->is_linear ? &eddy_cpu_linear : &eddy_cpu_matmul;
    tensor *bias = o->has_bias ? &o->bias : NULL;
    tensor *linear[] = {&o->a, &o->b, bias, &o->out}, *matmul[] = {&o->a, &o->b, &o->out};
    tensor **operands_of = o->is_linear ? linear : matmul;
    int32_t count = o->is_linear ? 4 : 3;
    run_kernel(kernel, operands_of, count, NULL, &serial_team, NULL);
    int64_t each = o->m * o->n;
    for (int64_t e = 0; e < o->out.count; e++)
        if (o->out.count < 20000 || e % 97 == 0)
            check_element(o, e / each, e / o->n % o->m, e % o->n);
    cr_assert(tensor_guards_hold(&o->out), "%s", describe(kernel->name, &o->out, CONTIGUOUS));
    char *bits = malloc(o->out.bytes);
    memcpy(bits, o->out.memory, o->out.bytes);
    eddy_kernel_team *others[] = {&shuffling_team, &threaded_team};
    run_kernel(kernel, operands_of, count, NULL, others[test_below(2)], NULL);
    cr_assert(memcmp(bits, o->out.memory, o->out.bytes) == 0, "%s: the team shows",
              describe(kernel->name, &o->out, CONTIGUOUS));
    free(bits);
    tensor_free(&o->a), tensor_free(&o->b), tensor_free(&o->out);
    if (o->has_bias)
        tensor_free(&o->bias);
}

static double range_of(eddy_dtype dtype) {
    return eddy_dtype_is_float(dtype) ? 1
           : dtype == EDDY_I64        ? 4e18
           : dtype == EDDY_I32        ? 2e9
                                      : 100;
}

static void check_matmul(eddy_dtype dtype, int64_t m, int64_t n, int64_t k, int32_t batch_rank,
                         const int64_t *a_batches, int32_t a_rank, const int64_t *b_batches,
                         int32_t b_rank, layout a, layout b, layout c) {
    operands o = {.m = m, .n = n, .k = k, .batch_rank = batch_rank};
    int64_t shape_a[6], shape_b[6], shape_out[6];
    for (int32_t d = 0; d < batch_rank; d++) {
        int32_t da = d - (batch_rank - a_rank), db = d - (batch_rank - b_rank);
        int64_t size_a = da < 0 ? 1 : a_batches[da], size_b = db < 0 ? 1 : b_batches[db];
        if (da >= 0)
            shape_a[da] = size_a;
        if (db >= 0)
            shape_b[db] = size_b;
        o.batches[d] = shape_out[d] = size_a == 1 ? size_b : size_a;
    }
    shape_a[a_rank] = shape_out[batch_rank] = m;
    shape_a[a_rank + 1] = shape_b[b_rank] = k;
    shape_b[b_rank + 1] = shape_out[batch_rank + 1] = n;
    o.a = tensor_make(dtype, a_rank + 2, shape_a, a);
    o.b = tensor_make(dtype, b_rank + 2, shape_b, b);
    o.out = tensor_make(dtype, batch_rank + 2, shape_out, c);
    tensor_fill(&o.a, range_of(dtype));
    tensor_fill(&o.b, range_of(dtype));
    run_and_check(&o);
}

static void check_linear(eddy_dtype dtype, int32_t x_rank, const int64_t *x_shape, int64_t n,
                         bool has_bias, layout a, layout b, layout c) {
    operands o = {.n = n,
                  .k = x_shape[x_rank - 1],
                  .m = 1,
                  .batch_rank = 0,
                  .is_linear = true,
                  .has_bias = has_bias};
    int64_t w_shape[] = {n, o.k}, out_shape[6];
    for (int32_t d = 0; d < x_rank - 1; d++) {
        out_shape[d] = x_shape[d];
        o.m *= x_shape[d];
    }
    out_shape[x_rank - 1] = n;
    o.a = tensor_make(dtype, x_rank, x_shape, a);
    o.b = tensor_make(dtype, 2, w_shape, b);
    o.out = tensor_make(dtype, x_rank, out_shape, c);
    tensor_fill(&o.a, range_of(dtype));
    tensor_fill(&o.b, range_of(dtype));
    if (has_bias) {
        o.bias = tensor_make(dtype, 1, &n, (layout)test_below(LAYOUT_COUNT));
        tensor_fill(&o.bias, range_of(dtype));
    }
    run_and_check(&o);
}

static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16, EDDY_I8,
                                    EDDY_U8,  EDDY_I16, EDDY_I32, EDDY_I64};
#define DTYPES 9

Test(matrix, matmul_of_every_dtype_and_layout) {
    const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {7, 1, 4}, {1, 9, 31},   {17, 33, 16},
                                {5, 6, 0}, {0, 3, 4}, {3, 0, 4}, {9, 130, 64}, {65, 10, 128}};
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < 10; s++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int b = 0; b < LAYOUT_COUNT; b++)
                    check_matmul(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], 0, NULL, 0, NULL,
                                 0, (layout)a, (layout)b, (layout)test_below(OUTPUT_LAYOUTS));
}

Test(matrix, batches_broadcast) {
    const int64_t two[] = {3, 4}, one[] = {4}, left[] = {3, 1}, right[] = {1, 4}, none[] = {0};
    for (int d = 0; d < DTYPES; d++)
        for (int a = 0; a < LAYOUT_COUNT; a++) {
            layout b = (layout)test_below(LAYOUT_COUNT), c = (layout)test_below(OUTPUT_LAYOUTS);
            check_matmul(dtypes[d], 5, 7, 6, 2, two, 2, two, 2, (layout)a, b, c);
            check_matmul(dtypes[d], 5, 7, 6, 2, two, 2, one, 1, (layout)a, b, c);
            check_matmul(dtypes[d], 5, 7, 6, 2, left, 2, right, 2, (layout)a, b, c);
            check_matmul(dtypes[d], 1, 7, 6, 2, two, 2, NULL, 0, (layout)a, b, c);
            check_matmul(dtypes[d], 5, 7, 6, 1, NULL, 0, one, 1, (layout)a, b, c);
            check_matmul(dtypes[d], 5, 7, 6, 1, none, 1, none, 1, CONTIGUOUS, CONTIGUOUS, c);
        }
    const int64_t many[] = {9, 8};
    check_matmul(EDDY_F32, 65, 33, 40, 2, many, 2, many, 2, CONTIGUOUS, TURNED, CONTIGUOUS);
    check_matmul(EDDY_F32, 64, 64, 64, 2, many, 2, many, 2, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
}

Test(matrix, linear_of_every_dtype_and_layout) {
    const int64_t shapes[][3] = {{2, 3, 5}, {4, 1, 16}, {1, 65, 33}, {0, 3, 4}, {2, 3, 0}};
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < 5; s++)
            for (int32_t rank = 1; rank <= 3; rank++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    check_linear(dtypes[d], rank, shapes[s] + 3 - rank, s == 2 ? 17 : 10,
                                 test_below(2), (layout)a, (layout)test_below(LAYOUT_COUNT),
                                 (layout)test_below(OUTPUT_LAYOUTS));
}

Test(matrix, big_products_do_not_depend_on_the_team) {
    const int64_t batch[] = {64, 784}, narrow[] = {64, 128}, long_batch[] = {256, 784},
                  three[] = {3};
    check_linear(EDDY_F32, 2, batch, 256, true, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
    check_linear(EDDY_F32, 2, narrow, 10, true, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
    check_linear(EDDY_F32, 2, long_batch, 256, true, CONTIGUOUS, CONTIGUOUS, TURNED);
    check_linear(EDDY_F32, 2, long_batch, 256, true, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
    check_linear(EDDY_BF16, 2, long_batch, 256, true, CONTIGUOUS, STRIDED, CONTIGUOUS);
    check_matmul(EDDY_F32, 784, 256, 64, 0, NULL, 0, NULL, 0, TURNED, CONTIGUOUS, CONTIGUOUS);
    check_matmul(EDDY_F32, 513, 515, 130, 0, NULL, 0, NULL, 0, CONTIGUOUS, TURNED, STRIDED);
    check_matmul(EDDY_F32, 300, 301, 200, 0, NULL, 0, NULL, 0, TURNED, TURNED, CONTIGUOUS);
    check_matmul(EDDY_F32, 127, 33, 90, 1, three, 1, NULL, 0, CONTIGUOUS, TURNED, CONTIGUOUS);
    check_matmul(EDDY_F32, 130, 33, 90, 1, three, 1, three, 1, CONTIGUOUS, TURNED, CONTIGUOUS);
    check_matmul(EDDY_F64, 300, 301, 200, 0, NULL, 0, NULL, 0, CONTIGUOUS, CONTIGUOUS, TURNED);
    check_matmul(EDDY_I32, 70, 300, 90, 0, NULL, 0, NULL, 0, NEGATIVE, CONTIGUOUS, CONTIGUOUS);
}

/* Bytes that linear asks for; nothing is read. */
static size_t workspace_of_linear(int64_t m, int64_t n, int64_t k) {
    const int64_t x[] = {m, k}, w[] = {n, k}, out[] = {m, n}, by_k[] = {k, 1}, by_n[] = {n, 1};
    const eddy_op_view views[] = {{.shape = x, .strides = by_k, .dtype = EDDY_F32, .rank = 2},
                                  {.shape = w, .strides = by_k, .dtype = EDDY_F32, .rank = 2},
                                  {.rank = -1},
                                  {.shape = out, .strides = by_n, .dtype = EDDY_F32, .rank = 2}};
    return planned_only(
               &(eddy_kernel_call){.kernel = &eddy_cpu_linear, .views = views, .view_count = 4})
        .workspace_bytes;
}

Test(matrix, large_weights_are_not_copied) {
    cr_assert_leq(workspace_of_linear(1024, 1000, 1000), (size_t)4000064);
    cr_assert_eq(workspace_of_linear(1024, 50257, 768), 0);
    cr_assert_eq(workspace_of_linear(1 << 20, INT64_C(1) << 30, INT64_C(1) << 30), 0);
}

/* Each batch would turn its own. */
Test(matrix, turned_factors_of_batches_are_not_copied) {
    const int64_t a[] = {3, 256, 64}, b[] = {3, 64, 65}, out[] = {3, 256, 65};
    const int64_t by_rows[] = {256 * 64, 64, 1}, turned[] = {64 * 65, 1, 64},
                  of_out[] = {256 * 65, 65, 1};
    const eddy_op_view views[] = {{.shape = a, .strides = by_rows, .dtype = EDDY_F32, .rank = 3},
                                  {.shape = b, .strides = turned, .dtype = EDDY_F32, .rank = 3},
                                  {.shape = out, .strides = of_out, .dtype = EDDY_F32, .rank = 3}};
    eddy_kernel_call call = {.kernel = &eddy_cpu_matmul, .views = views, .view_count = 3};
    cr_assert_eq(planned_only(&call).workspace_bytes, 0);
}

Test(matrix, products_with_a_vector_are_cut) {
    const int64_t four[] = {4};
    for (int d = 0; d < 4; d++)
        for (int a = 0; a < LAYOUT_COUNT; a++) {
            layout b = (layout)test_below(LAYOUT_COUNT), c = (layout)test_below(OUTPUT_LAYOUTS);
            check_matmul(dtypes[d], 1025, 1, 601, 0, NULL, 0, NULL, 0, (layout)a, b, c);
            check_matmul(dtypes[d], 1, 1027, 601, 0, NULL, 0, NULL, 0, b, (layout)a, c);
            check_matmul(dtypes[d], 513, 1, 130, 1, four, 1, four, 1, (layout)a, b, c);
        }
    check_matmul(EDDY_F32, 129, 1, 9001, 0, NULL, 0, NULL, 0, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
    check_matmul(EDDY_F32, 1, 129, 9001, 0, NULL, 0, NULL, 0, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS);
}

Test(matrix, vectors_may_come_with_fewer_dims) {
    /* [k] x [k, n] -> [n], [m, k] x [k] -> [m], [k] x [k] -> scalar */
    int64_t k = 9, n = 4, matrix[] = {9, 4}, turned[] = {4, 9};
    tensor v = tensor_make(EDDY_F32, 1, &k, STRIDED),
           m = tensor_make(EDDY_F32, 2, matrix, CONTIGUOUS);
    tensor t = tensor_make(EDDY_F32, 2, turned, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 1, &n, STRIDED);
    tensor scalar = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    tensor_fill(&v, 1), tensor_fill(&m, 1);
    for (int64_t i = 0; i < 36; i++)
        tensor_set(&t, i % 4 * 9 + i / 4, tensor_get(&m, i));
    for (int side = 0; side < 2; side++) {
        run_kernel(&eddy_cpu_matmul, side ? (tensor *[]){&t, &v, &out} : (tensor *[]){&v, &m, &out},
                   3, NULL, &serial_team, NULL);
        for (int64_t j = 0; j < 4; j++) {
            double want = 0;
            for (int64_t p = 0; p < 9; p++)
                want += tensor_get(&v, p) * tensor_get(&m, p * 4 + j);
            cr_assert(fabs(tensor_get(&out, j) - want) < 1e-5);
        }
    }
    run_kernel(&eddy_cpu_matmul, (tensor *[]){&v, &v, &scalar}, 3, NULL, &serial_team, NULL);
    double want = 0;
    for (int64_t p = 0; p < 9; p++)
        want += tensor_get(&v, p) * tensor_get(&v, p);
    cr_assert(fabs(tensor_get(&scalar, 0) - want) < 1e-5);
    tensor_free(&v), tensor_free(&m), tensor_free(&t), tensor_free(&out), tensor_free(&scalar);
}

Test(matrix, nan_and_infinity_pass_through) {
    int64_t shape[] = {3, 3};
    tensor a = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           b = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor_fill(&a, 1), tensor_fill(&b, 1);
    tensor_set(&a, 0, NAN);
    tensor_set(&a, 4, INFINITY);
    for (int64_t i = 0; i < 9; i++)
        tensor_set(&out, i, NAN); /* must not be read */
    run_kernel(&eddy_cpu_matmul, (tensor *[]){&a, &b, &out}, 3, NULL, &serial_team, NULL);
    for (int64_t j = 0; j < 3; j++)
        cr_assert(isnan(tensor_get(&out, j)) && isinf(tensor_get(&out, 3 + j)) &&
                  isfinite(tensor_get(&out, 6 + j)));
    tensor_free(&a), tensor_free(&b), tensor_free(&out);
}
