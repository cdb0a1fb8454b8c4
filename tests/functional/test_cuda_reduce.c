/* Reductions on a CUDA device, on the fake driver (tests/fake_cuda): the bits of the CPU, whatever the shape, the axes and the way the input lies. */
#include "random.h"

#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <tests/rounds.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const ops[] = {"sum",    "mean",   "prod", "max", "min",  "any",      "all",
                                  "argmax", "argmin", "var",  "std", "norm", "logsumexp"};

static bool is_one_of(const char *op, const char *const *names) {
    while (*names && strcmp(op, *names) != 0)
        names++;
    return *names != NULL;
}

/* ---- inputs ---- */

/* EVERYDAY: of many bits, so that any other order of a sum shows. NEAR_ONE: so that products do not end at 0 or infinity at once. RARE: few that count. */
typedef enum numbers { EVERYDAY, NEAR_ONE, RARE, ANY, NUMBERS } numbers;

static void make_element(eddy_dtype dtype, numbers kind, char *element) {
    double unit = (double)(int64_t)random_next() * 0x1p-63;
    if (kind == ANY) {
        random_element(dtype, element);
    } else if (!eddy_dtype_is_float(dtype)) {
        int64_t integer = kind == RARE       ? random_below(2000) == 0
                          : kind == NEAR_ONE ? 1 + 2 * random_below(2)
                                             : (int64_t)random_next();
        if (dtype == EDDY_BOOL)
            integer &= 1;
        memcpy(element, &integer, eddy_dtype_bytes(dtype));
    } else {
        double real = kind == RARE       ? (random_below(2000) == 0 ? unit : -0.0)
                      : kind == NEAR_ONE ? 1 + unit / 16
                                         : unit * (double)(1 << random_below(8));
        eddy_dtype_store_f64(dtype, element, real);
    }
}

static eddy_tensor *make(eddy_dtype dtype, eddy_shape shape, numbers kind) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    size_t bytes = eddy_dtype_bytes(dtype);
    char *data = malloc((size_t)count * bytes + 1);
    for (int64_t i = 0; i < count; i++)
        make_element(dtype, kind, data + (size_t)i * bytes);
    eddy_tensor *tensor = eddy_from_data(data, shape, dtype, NULL);
    free(data);
    cr_assert_not_null(tensor);
    return tensor;
}

/* How the input lies: a part of a larger tensor, or turned, or repeated. Made of the same steps on both devices. */
typedef enum layout { PLAIN, TURNED, SHIFTED, STEPPED, EXPANDED, LAYOUTS } layout;

/* The shape of the tensor that `lay` makes the wanted one of. */
static eddy_shape before(eddy_shape shape, layout how) {
    eddy_shape made = shape;
    for (int32_t d = 0; d < shape.rank; d++) {
        if (how == TURNED)
            made.dims[d] = shape.dims[shape.rank - 1 - d];
        else if (how == SHIFTED)
            made.dims[d] = shape.dims[d] + 1;
        else if (how == STEPPED && d < 3)
            made.dims[d] = 2 * shape.dims[d] + 1;
        else if (how == EXPANDED && d % 2 == 1 && shape.dims[d] > 0)
            made.dims[d] = 1;
    }
    return made;
}

static eddy_tensor *lay(eddy_tensor *tensor, eddy_shape shape, layout how) {
    eddy_axes order = {.count = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) {
        order.axes[d] = shape.rank - 1 - d;
        if (how == SHIFTED)
            tensor = eddy_narrow(tensor, d, 1, shape.dims[d]);
        else if (how == STEPPED && d < 3)
            tensor = eddy_slice(tensor, d, 1, 2 * shape.dims[d] + 1, 2);
    }
    if (how == TURNED)
        tensor = eddy_permute(tensor, order);
    return how == EXPANDED ? eddy_expand(tensor, shape) : tensor;
}

/* ---- one call ---- */

typedef struct reducing {
    const char *op;
    eddy_dtype dtype;
    eddy_shape shape;
    uint32_t axes;
    bool keeps_dims;
    layout how;
    numbers kind;
    double p; /* of norms */
} reducing;

static const char *text_of(const reducing *r) {
    static char text[512];
    int at = snprintf(text, sizeof(text), "%s of %s [", r->op, eddy_dtype_name(r->dtype));
    for (int32_t d = 0; d < r->shape.rank; d++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%lld", d ? "," : "",
                       (long long)r->shape.dims[d]);
    snprintf(text + at, sizeof(text) - (size_t)at, "], axes %x, layout %d, numbers %d, seed %llu",
             r->axes, (int)r->how, (int)r->kind, (unsigned long long)random_seed());
    return text;
}

static eddy_tensor *call(const reducing *r, eddy_tensor *input) {
    eddy_axes axes = {0};
    for (int32_t d = 0; d < r->shape.rank; d++)
        if (r->axes >> d & 1)
            axes.axes[axes.count++] = d;
    eddy_attribute given[] = {
        {"keeps_dims", EDDY_ATTRIBUTE_BOOL, {.boolean = r->keeps_dims}},
        {"axes", EDDY_ATTRIBUTE_AXES, {.axes = axes}},
        {"p", EDDY_ATTRIBUTE_FLOAT, {.floating = r->p}},
    };
    eddy_attributes attributes = {given, strcmp(r->op, "norm") == 0 ? 3 : 2};
    eddy_tensor *result = NULL;
    eddy_status status = eddy_call(r->op, EDDY_LIST(input), &attributes, &result);
    if (status != EDDY_OK) {
        eddy_error error = {0};
        eddy_error_take(&error);
        cr_assert_fail("%s: %s", text_of(r), error.message);
    }
    return result;
}

static bool is_same(eddy_dtype dtype, const char *one, const char *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (eddy_dtype_is_float(dtype) && isnan(eddy_dtype_load_f64(dtype, one)) &&
            isnan(eddy_dtype_load_f64(dtype, other)));
}

static void compare(const reducing *r, const char *what, eddy_tensor *here, eddy_tensor *there) {
    eddy_dtype dtype = eddy_dtype_of(here);
    size_t count = (size_t)eddy_count_of(here), bytes = eddy_dtype_bytes(dtype);
    cr_assert_eq(eddy_dtype_of(there), dtype);
    cr_assert_eq((size_t)eddy_count_of(there), count);
    char *want = malloc(count * bytes + 1), *got = malloc(count * bytes + 1);
    cr_assert_eq(eddy_read(here, want, count * bytes, NULL), EDDY_OK, "%s", text_of(r));
    cr_assert_eq(eddy_read(there, got, count * bytes, NULL), EDDY_OK, "%s", text_of(r));
    for (size_t i = 0; i < count; i++)
        cr_assert(is_same(dtype, got + i * bytes, want + i * bytes),
                  "%s of %s: [%zu] of %zu is %a, not %a", what, text_of(r), i, count,
                  eddy_dtype_load_f64(dtype, got + i * bytes),
                  eddy_dtype_load_f64(dtype, want + i * bytes));
    free(want);
    free(got);
}

/* What divides does so with floats; what chooses does so from what there is. */
static bool takes(const reducing *r, int64_t reduced) {
    if (is_one_of(r->op, (const char *[]){"mean", "var", "std", "norm", "logsumexp", NULL}) &&
        !eddy_dtype_is_float(r->dtype))
        return false;
    if (strcmp(r->op, "norm") == 0 && (isinf(r->p) || r->p < 0))
        return reduced > 0;
    return reduced > 0 ||
           !is_one_of(r->op, (const char *[]){"max", "min", "argmax", "argmin", NULL});
}

/* max_dim or min_dim, of one axis. On the CPU it follows from the layout which of two zeros the value is. */
static void check_extreme(reducing r, const char *op, eddy_tensor *here, eddy_tensor *there) {
    r.op = op;
    eddy_attribute given[] = {
        {"keeps_dims", EDDY_ATTRIBUTE_BOOL, {.boolean = r.keeps_dims}},
        {"axis", EDDY_ATTRIBUTE_AXIS, {.integer = r.axes == 0 ? 0 : __builtin_ctz(r.axes)}},
    };
    eddy_attributes attributes = {given, COUNT(given)};
    eddy_tensor *results[2][2];
    for (int far = 0; far < 2; far++)
        cr_assert_eq(eddy_call(op, EDDY_LIST(far ? there : here), &attributes, results[far]),
                     EDDY_OK, "%s", text_of(&r));
    compare(&r, "value", eddy_add_s(results[0][0], EDDY_S(0)),
            eddy_add_s(results[1][0], EDDY_S(0)));
    compare(&r, "index", results[0][1], results[1][1]);
}

/* All ops that take it. */
static void check(reducing r) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t reduced = 1;
    for (int32_t d = 0; d < r.shape.rank; d++)
        reduced *= r.axes == 0 || r.axes >> d & 1 ? r.shape.dims[d] : 1;
    eddy_tensor *whole = make(r.dtype, before(r.shape, r.how), r.kind);
    eddy_tensor *here = lay(whole, r.shape, r.how),
                *there = lay(eddy_to_device(whole, EDDY_CUDA(0)), r.shape, r.how);
    const char *only = getenv("EDDY_TEST_CASE");
    for (size_t i = 0; i < COUNT(ops); i++) {
        r.op = ops[i];
        if (takes(&r, reduced) && (!only || strcmp(only, r.op) == 0))
            compare(&r, "result", call(&r, here), call(&r, there));
    }
    const bool is_one_axis = r.shape.rank <= 1 || __builtin_popcount(r.axes) == 1;
    if (is_one_axis && reduced > 0 && !only) {
        check_extreme(r, "max_dim", here, there);
        check_extreme(r, "min_dim", here, there);
    }
    eddy_scope_end(scope);
}

static void expect_no_findings(void) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* Half of them are sums of powers. */
static const double orders[] = {0, 1, 2, INFINITY, -INFINITY, 3, 2.5, 0.3, -1.5, 40};

static reducing random_call(eddy_shape shape, uint32_t axes) {
    return (reducing){.dtype = (eddy_dtype)random_below(EDDY_DTYPE_COUNT),
                      .shape = shape,
                      .axes = axes,
                      .keeps_dims = random_below(2),
                      .how = (layout)random_below(LAYOUTS),
                      .kind = (numbers)random_below(NUMBERS),
                      .p = orders[random_below(COUNT(orders))]};
}

/* ---- cases ---- */

/* Round the lanes, a block, and what a block of threads reduces at once. */
static const int64_t lengths[] = {1,    2,    3,     7,     8,     9,    15,   16,   17,
                                  31,   32,   33,    63,    65,    961,  972,  992,  993,
                                  1023, 1024, 1025,  2047,  2048,  2049, 4097, 8191, 8192,
                                  8193, 9217, 16385, 32767, 32768, 32769};

Test(cuda_reduce, lengths_round_every_limit_in_every_dtype, .timeout = 300) {
    for (size_t n = 0; n < COUNT(lengths); n++)
        for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
            reducing r = random_call(EDDY_SHAPE(lengths[n]), 0);
            r.dtype = (eddy_dtype)dtype;
            check(r);
            r.how = lengths[n] % 2 ? SHIFTED : STEPPED;
            check(r);
        }
    expect_no_findings();
}

Test(cuda_reduce, rows_and_columns_of_every_length, .timeout = 300) {
    for (size_t n = 0; n < COUNT(lengths); n++)
        for (int l = 0; l < LAYOUTS; l++) {
            int64_t others = 1 + random_below(lengths[n] > 4096 ? 3 : lengths[n] > 64 ? 20 : 300);
            reducing r = random_call(EDDY_SHAPE(others, lengths[n]), 2);
            r.how = (layout)l;
            check(r);
            r.shape = EDDY_SHAPE(lengths[n], others);
            r.axes = 1;
            check(r);
        }
    expect_no_findings();
}

/* More splits than a block of threads has threads. */
Test(cuda_reduce, long_inputs_are_joined_in_the_same_tree, .timeout = 300) {
    const int64_t counts[] = {65537, 300001, 1 << 20};
    for (size_t n = 0; n < COUNT(counts); n++)
        for (int l = 0; l < LAYOUTS; l++) {
            reducing r = random_call(EDDY_SHAPE(counts[n]), 1);
            r.dtype = (int[]){EDDY_F32, EDDY_F64, EDDY_F16}[(l + (int)n) % 3];
            r.how = (layout)l;
            r.kind = EVERYDAY;
            check(r);
        }
    reducing r = random_call(EDDY_SHAPE(40000, 9), 1);
    r.dtype = EDDY_F32;
    r.how = PLAIN;
    check(r);
    expect_no_findings();
}

Test(cuda_reduce, random_shapes_axes_and_layouts, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(400); round++) {
        eddy_shape shape = {.rank = (int32_t)random_below(7)};
        int64_t most = (int64_t[]){1, 3000, 60, 16, 8, 6, 5}[shape.rank];
        for (int32_t d = 0; d < shape.rank; d++)
            shape.dims[d] = random_below(8) == 0 ? 1 : 1 + random_below(most);
        check(random_call(shape, (uint32_t)random_below(1 << shape.rank)));
    }
    expect_no_findings();
}

Test(cuda_reduce, every_rank_up_to_sixteen, .timeout = 300) {
    for (int32_t rank = 0; rank <= 16; rank++)
        for (int l = 0; l < LAYOUTS; l++) {
            eddy_shape shape = {.rank = rank};
            int64_t count = 1;
            for (int32_t d = 0; d < rank; d++)
                count *= shape.dims[d] = 1 + random_below(count < 500 ? 3 : 1);
            uint32_t all = (1u << rank) - 1, alternate = 0x5555u & all;
            reducing r = random_call(shape, alternate);
            r.how = (layout)l;
            check(r);
            r.axes = ~alternate & all;
            check(r);
            r.axes = all;
            check(r);
        }
    expect_no_findings();
}

Test(cuda_reduce, nothing_is_reduced_to_what_the_op_says) {
    const eddy_shape shapes[] = {EDDY_SHAPE(0), EDDY_SHAPE(0, 3), EDDY_SHAPE(3, 0),
                                 EDDY_SHAPE(2, 0, 3), EDDY_SHAPE(4, 300, 0)};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
            for (uint32_t axes = 0; axes < 1u << shapes[s].rank; axes++) {
                reducing r = random_call(shapes[s], axes);
                r.dtype = (eddy_dtype)dtype;
                check(r);
            }
    expect_no_findings();
}

/* ---- gradients ---- */

static eddy_tensor *gradient_on(const reducing *r, eddy_tensor *leaf, eddy_device device) {
    eddy_tensor *x = eddy_detach(eddy_to_device(leaf, device));
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *y = call(r, eddy_mul(x, x));
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_reduce, gradients_have_the_bits_of_the_cpu) {
    static const char *const with_gradients[] = {"sum", "mean", "prod", "max",      "min",
                                                 "var", "std",  "norm", "logsumexp"};
    for (size_t i = 0; i < COUNT(with_gradients); i++)
        for (int round = 0; round < 12; round++) {
            eddy_scope *scope = eddy_scope_begin();
            reducing r = random_call(EDDY_SHAPE(1 + random_below(40), 1 + random_below(40)),
                                     (uint32_t)random_below(4));
            r.op = with_gradients[i];
            r.dtype = round % 2 ? EDDY_F32 : EDDY_F64;
            r.kind = NEAR_ONE;
            eddy_tensor *leaf = make(r.dtype, r.shape, r.kind);
            compare(&r, "gradient", gradient_on(&r, leaf, EDDY_CPU),
                    gradient_on(&r, leaf, EDDY_CUDA(0)));
            eddy_scope_end(scope);
        }
    expect_no_findings();
}

static eddy_tensor *gradient_of_largest_on(eddy_tensor *leaf, eddy_device device) {
    eddy_tensor *x = eddy_detach(eddy_to_device(leaf, device)), *values, *indices;
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    cr_assert_eq(eddy_max_dim(x, 1, NULL, &values, &indices), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(values, values), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_reduce, the_largest_element_has_the_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    reducing r = random_call(EDDY_SHAPE(30, 2000), 2);
    r.op = "max_dim";
    r.dtype = EDDY_F32;
    eddy_tensor *leaf = make(r.dtype, r.shape, EVERYDAY);
    compare(&r, "gradient", gradient_of_largest_on(leaf, EDDY_CPU),
            gradient_of_largest_on(leaf, EDDY_CUDA(0)));
    eddy_scope_end(scope);
    expect_no_findings();
}

/* ---- what else may happen ---- */

Test(cuda_reduce, targets_are_written_in_place) {
    eddy_scope *scope = eddy_scope_begin();
    reducing r = random_call(EDDY_SHAPE(70, 50), 2);
    r.op = "sum";
    r.dtype = EDDY_F32;
    eddy_tensor *input = make(r.dtype, r.shape, EVERYDAY), *results[2];
    for (int far = 0; far < 2; far++) {
        eddy_device device = far ? EDDY_CUDA(0) : EDDY_CPU;
        eddy_tensor *into = eddy_to_device(make(EDDY_F32, EDDY_SHAPE(70, 3), NEAR_ONE), device);
        results[far] = eddy_select(into, 1, 1);
        cr_assert_eq(eddy_sum_into(eddy_to_device(input, device), results[far], EDDY_AXES(1), NULL),
                     EDDY_OK);
    }
    compare(&r, "target", results[0], results[1]);
    eddy_scope_end(scope);
    expect_no_findings();
}
