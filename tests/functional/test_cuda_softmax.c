/* Softmaxes on a CUDA device, on the fake driver (tests/fake_cuda): the bits of the CPU, whatever the shape, the axis and the way the operands lie. */
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

static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

/* MASKED: half of them are -infinity, as attention has them. SPECIAL: of every size, infinities and NaN among them. */
typedef enum numbers { ORDINARY, MASKED, SPECIAL, NUMBERS } numbers;

typedef struct softmaxing {
    eddy_dtype dtype;
    eddy_shape shape;
    int32_t axis;
    numbers kind;
} softmaxing;

static const char *text_of(const softmaxing *s) {
    static char text[512];
    int at = snprintf(text, sizeof(text), "%s [", eddy_dtype_name(s->dtype));
    for (int32_t d = 0; d < s->shape.rank; d++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%lld", d ? "," : "",
                       (long long)s->shape.dims[d]);
    snprintf(text + at, sizeof(text) - (size_t)at, "], axis %d, numbers %d, seed %llu", s->axis,
             (int)s->kind, (unsigned long long)random_seed());
    return text;
}

/* ---- inputs ---- */

static eddy_tensor *make(const softmaxing *s, eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    size_t bytes = eddy_dtype_bytes(s->dtype);
    char *data = malloc((size_t)count * bytes + 1);
    for (int64_t i = 0; i < count; i++) {
        char *element = data + (size_t)i * bytes;
        if (s->kind == SPECIAL)
            random_element(s->dtype, element);
        else
            eddy_dtype_store_f64(s->dtype, element,
                                 s->kind == MASKED && random_below(2)
                                     ? -INFINITY
                                     : (double)(int64_t)random_next() * 0x1p-60);
    }
    eddy_tensor *tensor = eddy_from_data(data, shape, s->dtype, NULL);
    free(data);
    cr_assert_not_null(tensor);
    return tensor;
}

/* The same numbers on both devices, that lie in the same way: as they are, turned, with gaps, or one for all of some dims. */
typedef struct twins {
    eddy_tensor *here, *there;
} twins;

typedef enum layout { PLAIN, TURNED, SLICED, EXPANDED, LAYOUTS } layout;

static eddy_tensor *lay(eddy_tensor *tensor, eddy_shape shape, layout how) {
    eddy_axes order = {.count = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) {
        order.axes[d] = shape.rank - 1 - d;
        if (how == SLICED)
            tensor = eddy_slice(tensor, d, 1, 2 * shape.dims[d] + 1, 2);
    }
    if (how == TURNED)
        tensor = eddy_permute(tensor, order);
    return how == EXPANDED ? eddy_expand(tensor, shape) : tensor;
}

static twins make_twins(const softmaxing *s, layout how) {
    eddy_shape made = s->shape;
    for (int32_t d = 0; d < made.rank; d++) {
        if (how == TURNED)
            made.dims[d] = s->shape.dims[made.rank - 1 - d];
        else if (how == SLICED)
            made.dims[d] = 2 * s->shape.dims[d] + 1;
        else if (how == EXPANDED && random_below(2) && made.dims[d] > 0)
            made.dims[d] = 1;
    }
    eddy_tensor *whole = make(s, made);
    return (twins){lay(whole, s->shape, how),
                   lay(eddy_to_device(whole, EDDY_CUDA(0)), s->shape, how)};
}

/* ---- one call ---- */

static bool is_same(eddy_dtype dtype, const char *one, const char *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (isnan(eddy_dtype_load_f64(dtype, one)) && isnan(eddy_dtype_load_f64(dtype, other)));
}

static void compare(const softmaxing *s, const char *what, eddy_tensor *here, eddy_tensor *there) {
    cr_assert(here && there, "%s of %s", what, text_of(s));
    eddy_dtype dtype = eddy_dtype_of(here);
    size_t count = (size_t)eddy_count_of(here), bytes = eddy_dtype_bytes(dtype);
    cr_assert_eq(eddy_dtype_of(there), dtype);
    cr_assert_eq((size_t)eddy_count_of(there), count);
    char *want = malloc(count * bytes + 1), *got = malloc(count * bytes + 1);
    cr_assert_eq(eddy_read(here, want, count * bytes, NULL), EDDY_OK, "%s", text_of(s));
    cr_assert_eq(eddy_read(there, got, count * bytes, NULL), EDDY_OK, "%s", text_of(s));
    for (size_t i = 0; i < count; i++)
        cr_assert(is_same(dtype, got + i * bytes, want + i * bytes),
                  "%s of %s: [%zu] of %zu is %a, not %a", what, text_of(s), i, count,
                  eddy_dtype_load_f64(dtype, got + i * bytes),
                  eddy_dtype_load_f64(dtype, want + i * bytes));
    free(want);
    free(got);
}

/* All ops. Gradients take any two operands: their kernels know nothing of softmaxes' results. */
static void check(softmaxing s, layout how, layout how_second) {
    eddy_scope *scope = eddy_scope_begin();
    twins x = make_twins(&s, how), y = make_twins(&s, how_second);
    compare(&s, "softmax", eddy_softmax(x.here, s.axis), eddy_softmax(x.there, s.axis));
    compare(&s, "log_softmax", eddy_log_softmax(x.here, s.axis), eddy_log_softmax(x.there, s.axis));
    compare(&s, "softmax_backward", eddy_softmax_backward(x.here, y.here, s.axis),
            eddy_softmax_backward(x.there, y.there, s.axis));
    compare(&s, "log_softmax_backward", eddy_log_softmax_backward(x.here, y.here, s.axis),
            eddy_log_softmax_backward(x.there, y.there, s.axis));
    eddy_scope_end(scope);
}

static layout random_layout(void) {
    return (layout)random_below(LAYOUTS);
}

static softmaxing random_call(eddy_shape shape, int32_t axis) {
    return (softmaxing){.dtype = dtypes[random_below(COUNT(dtypes))],
                        .shape = shape,
                        .axis = axis,
                        .kind = (numbers)random_below(NUMBERS)};
}

static void expect_no_findings(void) {
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- cases ---- */

/* Round the lanes, what a block of threads keeps along and across, and chunks. */
static const int64_t lengths[] = {1,    2,    3,    15,   16,   17,   31,   32,  33,  63,
                                  65,   127,  129,  255,  256,  257,  511,  512, 513, 1023,
                                  1024, 1025, 2049, 4095, 4096, 4097, 8192, 8209};

Test(cuda_softmax, rows_and_columns_of_every_length, .timeout = 300) {
    for (size_t n = 0; n < COUNT(lengths); n++)
        for (size_t t = 0; t < COUNT(dtypes); t++) {
            int64_t others = 1 + random_below(lengths[n] > 1000 ? 3 : lengths[n] > 64 ? 20 : 100);
            softmaxing s = random_call(EDDY_SHAPE(others, lengths[n]), 1);
            s.dtype = dtypes[t];
            check(s, PLAIN, PLAIN);
            s.shape = EDDY_SHAPE(lengths[n], others);
            s.axis = 0;
            check(s, random_layout(), random_layout());
        }
    expect_no_findings();
}

Test(cuda_softmax, long_lines_are_cut_into_chunks, .timeout = 300) {
    for (size_t t = 0; t < COUNT(dtypes); t++) {
        softmaxing s = random_call(EDDY_SHAPE(70000 + random_below(4096)), 0);
        s.dtype = dtypes[t];
        s.kind = ORDINARY;
        check(s, random_layout(), random_layout());
        s.shape = EDDY_SHAPE(9000, 3);
        check(s, random_layout(), random_layout());
    }
    expect_no_findings();
}

Test(cuda_softmax, random_shapes_axes_and_layouts, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(150); round++) {
        eddy_shape shape = {.rank = 1 + (int32_t)random_below(6)};
        int64_t most = (int64_t[]){0, 3000, 60, 16, 8, 6, 5}[shape.rank];
        for (int32_t d = 0; d < shape.rank; d++)
            shape.dims[d] = random_below(8) == 0 ? 1 : 1 + random_below(most);
        check(random_call(shape, (int32_t)random_below(shape.rank)), random_layout(),
              random_layout());
    }
    expect_no_findings();
}

Test(cuda_softmax, rank_0_and_no_elements) {
    const eddy_shape shapes[] = {
        {.rank = 0}, EDDY_SHAPE(0), EDDY_SHAPE(0, 3), EDDY_SHAPE(3, 0), EDDY_SHAPE(2, 0, 3)};
    for (size_t n = 0; n < COUNT(shapes); n++)
        for (size_t t = 0; t < COUNT(dtypes); t++)
            for (int32_t axis = 0; axis < shapes[n].rank || axis == 0; axis++) {
                softmaxing s = random_call(shapes[n], axis);
                s.dtype = dtypes[t];
                check(s, PLAIN, PLAIN);
            }
    expect_no_findings();
}

/* ---- gradients ---- */

static eddy_tensor *gradient_on(const softmaxing *s, bool is_log, eddy_tensor *leaf,
                                eddy_device device) {
    eddy_tensor *x = eddy_detach(eddy_to_device(leaf, device));
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *y = is_log ? eddy_log_softmax(x, s->axis) : eddy_softmax(x, s->axis);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_softmax, gradients_have_the_bits_of_the_cpu, .timeout = 300) {
    for (int round = 0; round < 24; round++) {
        eddy_scope *scope = eddy_scope_begin();
        softmaxing s = random_call(EDDY_SHAPE(1 + random_below(40), 1 + random_below(300)),
                                   (int32_t)random_below(2));
        s.dtype = dtypes[random_below(2)];
        s.kind = ORDINARY;
        eddy_tensor *leaf = make(&s, s.shape);
        compare(&s, "gradient", gradient_on(&s, round % 2, leaf, EDDY_CPU),
                gradient_on(&s, round % 2, leaf, EDDY_CUDA(0)));
        eddy_scope_end(scope);
    }
    expect_no_findings();
}

/* ---- targets ---- */

Test(cuda_softmax, targets_are_parts_of_other_tensors) {
    const int64_t counts[] = {50, 5000};
    for (size_t n = 0; n < COUNT(counts); n++) {
        eddy_scope *scope = eddy_scope_begin();
        softmaxing s = {.dtype = EDDY_F32, .shape = EDDY_SHAPE(7, counts[n] + 20), .axis = 1};
        twins x = make_twins(&s, PLAIN), into = make_twins(&s, PLAIN);
        for (int far = 0; far < 2; far++)
            cr_assert_eq(eddy_log_softmax_into(
                             eddy_narrow(far ? x.there : x.here, 1, 1, counts[n]),
                             eddy_narrow(far ? into.there : into.here, 1, 11, counts[n]), 1),
                         EDDY_OK);
        compare(&s, "a part", into.here, into.there);
        eddy_scope_end(scope);
    }
    expect_no_findings();
}
