/* Normalisations and their gradients on a CUDA device, on the fake driver (tests/fake_cuda): the bits of the CPU, whatever the shape, the layout and the dtype of weights. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef enum family { LAYER, RMS, GROUP, BATCH, TRAINING, FAMILIES } family;

static const char *const names[] = {"layer_norm", "rms_norm", "group_norm", "batch_norm",
                                    "batch_norm_training"};
static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

typedef twin making(eddy_dtype dtype, eddy_shape shape, bool is_written);

typedef struct problem {
    family family;
    eddy_dtype dtype;
    eddy_shape shape;
    int64_t parameter; /* axis_count, groups */
    double eps, momentum;
    making *make; /* x and its gradient */
} problem;

static const char *text_of(const problem *p) {
    static char text[512];
    int at =
        snprintf(text, sizeof(text), "%s of %s [", names[p->family], eddy_dtype_name(p->dtype));
    for (int32_t d = 0; d < p->shape.rank; d++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%lld", d ? "," : "",
                       (long long)p->shape.dims[d]);
    snprintf(text + at, sizeof(text) - (size_t)at, "], %lld, eps %g, momentum %g, seed %llu",
             (long long)p->parameter, p->eps, p->momentum, (unsigned long long)random_seed());
    return text;
}

/* ---- operands ---- */

/* Contiguous, as most are; its numbers are twin_numbers'. */
static twin make_plain(eddy_dtype dtype, eddy_shape shape, bool is_written) {
    twin any = twin_numbers(dtype, shape, is_written);
    return (twin){eddy_contiguous(any.here), eddy_contiguous(any.there)};
}

static eddy_shape weight_shape(const problem *p) {
    eddy_shape shape = {.rank = 1, .dims = {p->shape.dims[1]}};
    if (p->family != LAYER && p->family != RMS)
        return shape;
    shape.rank = (int32_t)p->parameter;
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = p->shape.dims[p->shape.rank - shape.rank + d];
    return shape;
}

static twin make_weight(const problem *p, bool is_written) {
    bool is_wide = eddy_dtype_size(p->dtype) == 2 && random_below(2) == 0;
    return (random_below(2) ? make_plain : twin_numbers)(is_wide ? EDDY_F32 : p->dtype,
                                                         weight_shape(p), is_written);
}

static twin make_optional(const problem *p, bool is_written) {
    return random_below(4) == 0 ? (twin){EDDY_NONE, EDDY_NONE} : make_weight(p, is_written);
}

/* Not below 0. */
static twin make_variance(const problem *p) {
    twin any = make_weight(p, false);
    return (twin){eddy_abs(any.here), eddy_abs(any.there)};
}

/* ---- comparing ---- */

static bool is_same(eddy_dtype dtype, const char *one, const char *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (isnan(eddy_dtype_load_f64(dtype, one)) && isnan(eddy_dtype_load_f64(dtype, other)));
}

static void compare(const problem *p, const char *what, eddy_tensor *here, eddy_tensor *there) {
    eddy_error error = {0};
    if (!here || !there)
        eddy_error_take(&error);
    cr_assert(here && there, "%s of %s: %s", what, text_of(p), error.message);
    eddy_dtype dtype = eddy_dtype_of(here);
    size_t count = (size_t)eddy_count_of(here), bytes = eddy_dtype_bytes(dtype);
    cr_assert_eq(eddy_dtype_of(there), dtype);
    cr_assert_eq((size_t)eddy_count_of(there), count);
    char *want = malloc(count * bytes + 1), *got = malloc(count * bytes + 1);
    cr_assert_eq(eddy_read(here, want, count * bytes, NULL), EDDY_OK, "%s", text_of(p));
    cr_assert_eq(eddy_read(there, got, count * bytes, NULL), EDDY_OK, "%s", text_of(p));
    for (size_t i = 0; i < count; i++)
        cr_assert(is_same(dtype, got + i * bytes, want + i * bytes),
                  "%s of %s: [%zu] of %zu is %a, not %a", what, text_of(p), i, count,
                  eddy_dtype_load_f64(dtype, got + i * bytes),
                  eddy_dtype_load_f64(dtype, want + i * bytes));
    free(want);
    free(got);
}

/* ---- calls ---- */

/* The op, or that of its gradient; the target stands last in `operands`, or there is none. */
static eddy_tensor *call(const problem *p, const char *suffix, eddy_list operands, bool is_into) {
    char op[64];
    bool is_gradient = suffix[0] != 0;
    snprintf(op, sizeof(op), "%s%s%s",
             is_gradient && p->family == TRAINING ? "batch_norm" : names[p->family], suffix,
             is_into ? "_into" : "");
    eddy_attribute given[3] = {{"eps", EDDY_ATTRIBUTE_FLOAT, {.floating = p->eps}}};
    eddy_attributes attributes = {given, 1};
    if (p->family <= GROUP)
        given[attributes.count++] = (eddy_attribute){p->family == GROUP ? "groups" : "axis_count",
                                                     EDDY_ATTRIBUTE_INT,
                                                     {.integer = p->parameter}};
    if (p->family == TRAINING && !is_gradient)
        given[attributes.count++] =
            (eddy_attribute){"momentum", EDDY_ATTRIBUTE_FLOAT, {.floating = p->momentum}};
    eddy_tensor *result = NULL;
    eddy_status status = eddy_call(op, operands, &attributes, is_into ? NULL : &result);
    eddy_error error = {0};
    if (status != EDDY_OK)
        eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s: %s", text_of(p), error.message);
    return is_into ? operands.items[operands.count - 1] : result;
}

#define CALL(p, suffix, ...) call(p, suffix, EDDY_LIST(__VA_ARGS__), false)
#define CALL_INTO(p, suffix, ...) call(p, suffix, EDDY_LIST(__VA_ARGS__), true)

static void check_forward(const problem *p, twin x) {
    twin w = make_optional(p, false), b = make_optional(p, false),
         target = p->make(p->dtype, p->shape, true);
    if (p->family == LAYER || p->family == GROUP) {
        compare(p, "result", CALL(p, "", x.here, w.here, b.here),
                CALL(p, "", x.there, w.there, b.there));
        compare(p, "target", CALL_INTO(p, "", x.here, w.here, b.here, target.here),
                CALL_INTO(p, "", x.there, w.there, b.there, target.there));
    } else if (p->family == RMS) {
        compare(p, "result", CALL(p, "", x.here, w.here), CALL(p, "", x.there, w.there));
        compare(p, "target", CALL_INTO(p, "", x.here, w.here, target.here),
                CALL_INTO(p, "", x.there, w.there, target.there));
    } else if (p->family == BATCH) {
        twin m = make_weight(p, false), v = make_variance(p);
        compare(p, "result", CALL(p, "", x.here, m.here, v.here, w.here, b.here),
                CALL(p, "", x.there, m.there, v.there, w.there, b.there));
        compare(p, "target", CALL_INTO(p, "", x.here, m.here, v.here, w.here, b.here, target.here),
                CALL_INTO(p, "", x.there, m.there, v.there, w.there, b.there, target.there));
    } else {
        twin m = make_optional(p, true), v = make_optional(p, true);
        compare(p, "result", CALL(p, "", x.here, m.here, v.here, w.here, b.here),
                CALL(p, "", x.there, m.there, v.there, w.there, b.there));
        if (m.here != EDDY_NONE)
            compare(p, "mean", m.here, m.there);
        if (v.here != EDDY_NONE)
            compare(p, "variance", v.here, v.there);
    }
}

static void check_gradients(const problem *p, twin x) {
    twin g = p->make(p->dtype, p->shape, false), w = make_optional(p, false),
         target = p->make(p->dtype, p->shape, true);
    compare(p, "dx", CALL(p, "_backward", g.here, x.here, w.here),
            CALL(p, "_backward", g.there, x.there, w.there));
    compare(p, "target of dx", CALL_INTO(p, "_backward", g.here, x.here, w.here, target.here),
            CALL_INTO(p, "_backward", g.there, x.there, w.there, target.there));
    compare(p, "dweight", CALL(p, "_backward_weight", g.here, x.here),
            CALL(p, "_backward_weight", g.there, x.there));
    twin into = twin_numbers(p->dtype, weight_shape(p), true);
    compare(p, "target of dweight", CALL_INTO(p, "_backward_weight", g.here, x.here, into.here),
            CALL_INTO(p, "_backward_weight", g.there, x.there, into.there));
}

/* How many elements have the same statistics. */
static int64_t length_of(const problem *p) {
    int64_t length = 1;
    for (int32_t d = 0; d < p->shape.rank; d++)
        length *= p->family <= RMS && d < p->shape.rank - p->parameter ? 1 : p->shape.dims[d];
    return p->family == GROUP ? length / p->parameter
           : p->family <= RMS ? length
                              : length / p->shape.dims[1];
}

static void check(problem p) {
    eddy_scope *scope = eddy_scope_begin();
    p.eps = (double[]){1e-5, 0.5, 0}[random_below(3)];
    p.momentum = (double[]){0.1, 0, 1, 0.37}[random_below(4)];
    twin x = p.make(p.dtype, p.shape, false);
    if (p.family != TRAINING || length_of(&p) > 1)
        check_forward(&p, x);
    if (p.family != BATCH)
        check_gradients(&p, x);
    eddy_scope_end(scope);
}

/* In every family; the shape has two dims or more. */
static void check_families(eddy_dtype dtype, eddy_shape shape, making *make) {
    for (int f = 0; f < FAMILIES; f++) {
        problem p = {
            .family = (family)f, .dtype = dtype, .shape = shape, .make = make, .parameter = 1};
        if (f == GROUP) {
            p.parameter = 1 + random_below(shape.dims[1]);
            while (shape.dims[1] % p.parameter != 0)
                p.parameter--;
        }
        if (f <= RMS)
            p.parameter = 1 + random_below(shape.rank);
        check(p);
    }
}

static making *some_making(void) {
    return (making *[]){make_plain, twin_numbers, twin_random}[random_below(3)];
}

/* ---- cases ---- */

/* Round the lanes, the vectors and a chunk. */
static const int64_t lengths[] = {1,  2,  3,   4,   5,    7,    8,    9,    15,   16,   17,  31,
                                  32, 33, 100, 255, 1024, 2047, 2048, 2049, 4096, 4099, 6200};

Test(cuda_norm, rows_of_every_length_in_every_dtype, .timeout = 300) {
    for (size_t n = 0; n < COUNT(lengths); n++)
        for (size_t d = 0; d < COUNT(floats); d++)
            for (int f = LAYER; f <= RMS; f++) {
                eddy_shape shape =
                    EDDY_SHAPE(1 + random_below(lengths[n] > 1000 ? 3 : 40), lengths[n]);
                check((problem){.family = (family)f,
                                .dtype = floats[d],
                                .shape = shape,
                                .parameter = 1,
                                .make = random_below(2) ? make_plain : some_making()});
            }
    twin_expect_no_findings();
}

/* Channels of every length, and runs with one weight. */
Test(cuda_norm, images_in_every_dtype, .timeout = 300) {
    for (size_t n = 0; n < COUNT(lengths); n++)
        for (int f = GROUP; f < FAMILIES; f++) {
            int64_t groups = 1 + random_below(3), channels = groups * (1 + random_below(3));
            eddy_shape shape = EDDY_SHAPE(1 + random_below(3), channels, lengths[n]);
            check((problem){.family = (family)f,
                            .dtype = floats[random_below(4)],
                            .shape = shape,
                            .parameter = groups,
                            .make = some_making()});
        }
    twin_expect_no_findings();
}

Test(cuda_norm, random_shapes_and_layouts, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(30); round++) {
        eddy_shape shape = {.rank = 2 + (int32_t)random_below(5)};
        int64_t most = (int64_t[]){0, 0, 70, 20, 9, 6, 4}[shape.rank];
        for (int32_t d = 0; d < shape.rank; d++)
            shape.dims[d] = random_below(8) == 0 ? 1 : 1 + random_below(most);
        check_families(floats[random_below(4)], shape, some_making());
    }
    twin_expect_no_findings();
}

Test(cuda_norm, every_rank_up_to_sixteen, .timeout = 300) {
    for (int32_t rank = 2; rank <= EDDY_RANK_MAX; rank++) {
        eddy_shape shape = {.rank = rank};
        int64_t count = 1;
        for (int32_t d = 0; d < rank; d++)
            count *= shape.dims[d] = 1 + random_below(count < 300 ? 3 : 1);
        check_families(floats[rank % 4], shape, twin_numbers);
    }
    twin_expect_no_findings();
}

/* Neighbouring places are neighbours in memory, several chunks of each. */
static twin make_channels_last(eddy_dtype dtype, eddy_shape shape, bool is_written) {
    eddy_shape turned = EDDY_SHAPE(shape.dims[0], shape.dims[2], shape.dims[1]);
    twin made = make_plain(dtype, turned, is_written);
    return (twin){eddy_permute(made.here, EDDY_AXES(0, 2, 1)),
                  eddy_permute(made.there, EDDY_AXES(0, 2, 1))};
}

Test(cuda_norm, channels_last, .timeout = 300) {
    for (size_t d = 0; d < COUNT(floats); d++) {
        check_families(floats[d], EDDY_SHAPE(3, 20, 900), make_channels_last);
        check_families(floats[d], EDDY_SHAPE(5, 12, 30), make_channels_last);
    }
    twin_expect_no_findings();
}

/* Their weights' gradients are summed in several blocks of places. */
Test(cuda_norm, many_places, .timeout = 300) {
    const eddy_dtype dtype = floats[random_below(4)];
    check((problem){.family = LAYER,
                    .dtype = dtype,
                    .shape = EDDY_SHAPE(2100, 70),
                    .parameter = 1,
                    .make = make_plain});
    check((problem){.family = RMS,
                    .dtype = dtype,
                    .shape = EDDY_SHAPE(70, 2100),
                    .parameter = 1,
                    .make = make_plain});
    check((problem){.family = GROUP,
                    .dtype = dtype,
                    .shape = EDDY_SHAPE(7, 12, 1900),
                    .parameter = 4,
                    .make = make_plain});
    check((problem){.family = GROUP,
                    .dtype = dtype,
                    .shape = EDDY_SHAPE(450, 300),
                    .parameter = 3,
                    .make = make_plain});
    twin_expect_no_findings();
}

Test(cuda_norm, tensors_without_elements) {
    const eddy_shape shapes[] = {EDDY_SHAPE(0, 3), EDDY_SHAPE(3, 0), EDDY_SHAPE(2, 4, 0),
                                 EDDY_SHAPE(0, 4, 5)};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int f = 0; f < FAMILIES; f++) {
            if (f == TRAINING || (f == GROUP && shapes[s].dims[1] == 0))
                continue;
            check((problem){.family = (family)f,
                            .dtype = floats[s],
                            .shape = shapes[s],
                            .parameter = 1,
                            .make = make_plain});
        }
    twin_expect_no_findings();
}

/* Squares and sums overflow. */
static twin make_huge(eddy_dtype dtype, eddy_shape shape, bool is_written) {
    twin any = make_plain(dtype, shape, is_written);
    double most = dtype == EDDY_F64 ? 0x1p1010 : dtype == EDDY_F16 ? 0x1p9 : 0x1p118;
    return (twin){eddy_mul_s(any.here, EDDY_S(most)), eddy_mul_s(any.there, EDDY_S(most))};
}

Test(cuda_norm, numbers_whose_squares_overflow, .timeout = 300) {
    for (size_t d = 0; d < COUNT(floats); d++) {
        check_families(floats[d], EDDY_SHAPE(4, 6, 50), make_huge);
        check_families(floats[d], EDDY_SHAPE(2, 3, 3000), make_huge);
    }
    twin_expect_no_findings();
}

/* ---- gradients ---- */

static void check_autograd(const problem *p, twin x, twin w, twin b) {
    eddy_tensor *grads[2][3];
    for (int far = 0; far < 2; far++) {
        eddy_tensor *leaves[] = {eddy_detach(far ? x.there : x.here),
                                 eddy_detach(far ? w.there : w.here),
                                 eddy_detach(far ? b.there : b.here)};
        for (int k = 0; k < 3; k++)
            cr_assert_eq(eddy_requires_grad_set(leaves[k], true), EDDY_OK);
        eddy_tensor *y = p->family == TRAINING
                             ? CALL(p, "", leaves[0], EDDY_NONE, EDDY_NONE, leaves[1], leaves[2])
                             : CALL(p, "", leaves[0], leaves[1], leaves[2]);
        cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
        for (int k = 0; k < 3; k++)
            grads[far][k] = eddy_grad_of(leaves[k]);
    }
    for (int k = 0; k < 3; k++)
        compare(p, "gradient", grads[0][k], grads[1][k]);
}

Test(cuda_norm, gradients_have_the_bits_of_the_cpu, .timeout = 300) {
    static const family with_bias[] = {LAYER, GROUP, TRAINING};
    for (size_t f = 0; f < COUNT(with_bias); f++)
        for (int round = 0; round < 4; round++) {
            eddy_scope *scope = eddy_scope_begin();
            problem p = {.family = with_bias[f],
                         .dtype = round % 2 ? EDDY_F32 : EDDY_F64,
                         .shape = EDDY_SHAPE(2 + random_below(9), 6, 1 + random_below(40)),
                         .parameter = 2,
                         .eps = 1e-5,
                         .momentum = 0.1};
            check_autograd(&p, make_plain(p.dtype, p.shape, false),
                           make_plain(p.dtype, weight_shape(&p), false),
                           make_plain(p.dtype, weight_shape(&p), false));
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}
