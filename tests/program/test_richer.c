/* The pass `richer`: of two ops of one operand, the richer alone is left, with the bits of both. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/print.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

static const eddy_record_options enriches = {.size = sizeof(enriches), .passes = "richer"};

static int64_t instructions_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.instruction_count;
}

static void expect_code(const eddy_program *program, const char *code) {
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    cr_assert_not_null(strstr(printed.text, code), "%s", printed.text);
    eddy_printed_fini(&printed);
}

/* ---- each relation ---- */

/* An op, and the results of its richer form, the first of which has the op's bits. */
typedef struct pair {
    const char *name;
    eddy_tensor *(*op)(eddy_tensor *x);
    void (*richer)(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other);
    bool is_pool; /* floats only; as many images as oneDNN is called for */
} pair;

#define POOL(name_, ...)                                                                           \
    static eddy_tensor *name_(eddy_tensor *x) {                                                    \
        return eddy_max_pool2d(x, EDDY_PAIR(3, 2), EDDY_OPTIONS(max_pool2d, __VA_ARGS__));         \
    }                                                                                              \
    static void name_##_richer(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other) {          \
        must(eddy_max_pool2d_with_indices(                                                         \
            x, EDDY_PAIR(3, 2), EDDY_OPTIONS(max_pool2d_with_indices, __VA_ARGS__), same, other)); \
    }

POOL(apart, .padding = EDDY_PAIR(1, 1))
POOL(shared, .stride = EDDY_PAIR(1, 2), .is_ceil_mode = true)
POOL(wide, .stride = EDDY_PAIR(2, 1), .dilation = EDDY_PAIR(2, 3))

#define ALONG(name_, axis, ...)                                                                    \
    static eddy_tensor *argmax_##name_(eddy_tensor *x) {                                           \
        return eddy_argmax(x, EDDY_AXES(axis), EDDY_OPTIONS(argmax, __VA_ARGS__));                 \
    }                                                                                              \
    static void max_dim_##name_(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other) {         \
        must(eddy_max_dim(x, axis, EDDY_OPTIONS(max_dim, __VA_ARGS__), other, same));              \
    }                                                                                              \
    static eddy_tensor *argmin_##name_(eddy_tensor *x) {                                           \
        return eddy_argmin(x, EDDY_AXES(axis), EDDY_OPTIONS(argmin, __VA_ARGS__));                 \
    }                                                                                              \
    static void min_dim_##name_(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other) {         \
        must(eddy_min_dim(x, axis, EDDY_OPTIONS(min_dim, __VA_ARGS__), other, same));              \
    }

ALONG(first, 0, .keeps_dims = true)
ALONG(last, -1, .keeps_dims = false)

static eddy_tensor *argsort_up(eddy_tensor *x) {
    return eddy_argsort(x, 2, NULL);
}
static void sort_up(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other) {
    must(eddy_sort(x, 2, NULL, other, same));
}
static eddy_tensor *argsort_down(eddy_tensor *x) {
    return eddy_argsort(x, 0, EDDY_OPTIONS(argsort, .is_descending = true));
}
static void sort_down(eddy_tensor *x, eddy_tensor **same, eddy_tensor **other) {
    must(eddy_sort(x, 0, EDDY_OPTIONS(sort, .is_descending = true), other, same));
}

static const pair pairs[] = {
    {"apart", apart, apart_richer, true},
    {"shared", shared, shared_richer, true},
    {"wide", wide, wide_richer, true},
    {"argmax of the first axis", argmax_first, max_dim_first, false},
    {"argmax of the last axis", argmax_last, max_dim_last, false},
    {"argmin of the first axis", argmin_first, min_dim_first, false},
    {"argmin of the last axis", argmin_last, min_dim_last, false},
    {"argsort up", argsort_up, sort_up, false},
    {"argsort down", argsort_down, sort_down, false},
};

#define PAIRS (sizeof(pairs) / sizeof(*pairs))
#define HEIGHT 25
#define WIDTH 70
#define MOST_IMAGES 24
#define ELEMENTS (MOST_IMAGES * HEIGHT * WIDTH)

/* Few kinds of elements, among them both zeros, infinities and NaN of several payloads, so that most comparisons are between equals. */
static eddy_tensor *images(int64_t count, eddy_dtype dtype, unsigned seed, bool has_specials) {
    static float elements[ELEMENTS];
    srand(seed);
    for (int64_t i = 0; i < count * HEIGHT * WIDTH; i++) {
        uint32_t nan_bits = UINT32_C(0x7fc00000) + (uint32_t)rand() % 64 * UINT32_C(0x8001);
        const float kinds[] = {0.0f, -0.0f, 0.0f, -0.0f, -1.0f, -2.0f, 1.0f, -INFINITY, INFINITY};
        elements[i] = kinds[rand() % (has_specials ? 9 : seed % 2 ? 7 : 6)];
        if (has_specials && rand() % 4 == 0)
            memcpy(&elements[i], &nan_bits, sizeof(nan_bits));
    }
    eddy_tensor *x =
        eddy_from_data(elements, EDDY_SHAPE(2, count / 2, HEIGHT, WIDTH), EDDY_F32, NULL);
    if (seed % 3 == 1) /* channels last */
        x = eddy_permute(eddy_contiguous(eddy_permute(x, EDDY_AXES(0, 2, 3, 1))),
                         EDDY_AXES(0, 3, 1, 2));
    if (seed % 3 == 2) /* every other column */
        x = eddy_slice(x, 3, 0, WIDTH, 2);
    return dtype == EDDY_F32 ? x : eddy_cast(x, dtype);
}

/* Records both, in either order, and runs them on other elements. */
static void check_pair(const pair *p, eddy_dtype dtype, bool is_richer_first, unsigned seed) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t count = p->is_pool ? MOST_IMAGES : 6;
    eddy_tensor *x = images(count, dtype, seed, false), *a, *same, *other, *out[2];
    must(eddy_record_begin(&enriches));
    if (!is_richer_first)
        a = p->op(x);
    p->richer(x, &same, &other);
    if (is_richer_first)
        a = p->op(x);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT},
                                              {"other", other, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(instructions_of(program), 1, "%s", p->name);
    for (unsigned k = 0; k < 4; k++) {
        x = images(count, dtype, seed + 3 * k, k % 2 == 1);
        must(eddy_program_run(program, EDDY_LIST(x), out));
        must_have_same_bits(out[0], p->op(x), p->name);
        p->richer(x, &same, &other);
        must_have_same_bits(out[1], other, p->name);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(richer, gives_the_bits_of_both) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_BF16, EDDY_F16, EDDY_I32, EDDY_U8};
    for (size_t i = 0; i < PAIRS; i++)
        for (size_t d = 0; d < (pairs[i].is_pool ? 4 : sizeof(dtypes) / sizeof(*dtypes)); d++)
            for (unsigned seed = 0; seed < 6; seed++)
                check_pair(&pairs[i], dtypes[d], seed % 2, seed);
}

/* ---- where ---- */

static eddy_tensor *image(void) {
    return eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(16), EDDY_S(1), EDDY_F32, NULL),
                        EDDY_SHAPE(1, 1, 4, 4));
}

static void with_indices(eddy_tensor *x, eddy_tensor **values, eddy_tensor **indices) {
    must(eddy_max_pool2d_with_indices(x, EDDY_PAIR(2, 2), NULL, values, indices));
}

/* A step of training that keeps the indices for itself: the pool of its network becomes that of its indices, which stands first. */
Test(richer, the_richer_op_takes_the_place_of_the_first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = image(), *values, *indices, *out[2];
    must(eddy_record_begin(&enriches));
    eddy_tensor *y = eddy_exp(eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL));
    with_indices(x, &values, &indices);
    eddy_tensor *back = eddy_max_pool2d_backward(eddy_add(y, values), indices, eddy_shape_of(x));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                              {"back", back, EDDY_ROLE_OUTPUT}));
    const char *options = "kernel_size = [2, 2], stride = [2, 2], padding = [0, 0], "
                          "dilation = [1, 1], is_ceil_mode = false";
    char code[1024];
    snprintf(code, sizeof(code),
             "2: %%0 f32[1, 1, 2, 2], %%1 i64[1, 1, 2, 2] = max_pool2d_with_indices(x f32[1, 1, 4, "
             "4], %s)\n"
             "1: %%2 f32[1, 1, 2, 2] = exp(%%0 f32[1, 1, 2, 2])\n"
             "3: %%3 f32[1, 1, 2, 2] = add(%%2 f32[1, 1, 2, 2], %%0 f32[1, 1, 2, 2])\n"
             "%%4 f32[1, 1, 4, 4] = max_pool2d_backward(%%3 f32[1, 1, 2, 2], %%1 i64[1, 1, 2, 2], "
             "shape = [1, 1, 4, 4])\n",
             options);
    expect_code(program, code);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-richer-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(loaded);
    eddy_tensor *turned = eddy_neg(x);
    eddy_tensor *pooled = eddy_max_pool2d(turned, EDDY_PAIR(2, 2), NULL);
    double sum = sum_of(eddy_exp(pooled)), sum_back = sum + sum_of(pooled);
    for (int i = 0; i < 2; i++) {
        must(eddy_program_run(i ? loaded : program, EDDY_LIST(turned), out));
        cr_assert_eq(sum_of(out[0]), sum);
        cr_assert_float_eq(sum_of(out[1]), sum_back, 1e-4);
    }
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* One of the two results may be an output, whichever it is; two are two tensors. */
Test(richer, outputs_stay_tensors_of_their_own) {
    for (int kept = 0; kept < 8; kept++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = image(), *pooled, *values, *indices, *out[4];
        bool is_first = kept & 1, has_pooled = kept & 2, has_values = kept & 4;
        must(eddy_record_begin(&enriches));
        if (is_first)
            pooled = eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL);
        with_indices(x, &values, &indices);
        if (!is_first)
            pooled = eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL);
        eddy_tensor *sum = eddy_add(pooled, values);
        eddy_program *program = end(EDDY_BINDINGS(
            {"x", x, EDDY_ROLE_INPUT}, {"sum", sum, EDDY_ROLE_OUTPUT},
            {"indices", indices, EDDY_ROLE_OUTPUT},
            {"pooled", has_pooled ? pooled : eddy_select(sum, 0, 0), EDDY_ROLE_OUTPUT},
            {"values", has_values ? values : eddy_select(sum, 0, 0), EDDY_ROLE_OUTPUT}));
        cr_assert_eq(instructions_of(program), has_pooled && has_values ? 3 : 2, "%d", kept);
        must(eddy_program_run(program, EDDY_LIST(x), out));
        cr_assert_eq(sum_of(out[0]), 2 * (5 + 7 + 13 + 15));
        cr_assert_eq(sum_of(out[1]), 5 + 7 + 13 + 15);
        if (has_pooled && has_values)
            must(eddy_neg_inplace(out[2]));
        cr_assert_eq(sum_of(out[3]), has_values ? 40 : 80);
        eddy_program_release(&program);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

/* Three of a kind: what the second found out about the first holds for the third. */
Test(richer, several_are_one) {
    for (int output = 0; output < 3; output++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = image(), *values, *indices, *out[2];
        must(eddy_record_begin(&enriches));
        eddy_tensor *first = eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL),
                    *twice = eddy_add(first, first);
        with_indices(x, &values, &indices);
        eddy_tensor *third = eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL);
        eddy_tensor *all = eddy_add(eddy_add(twice, values), eddy_add(third, indices));
        eddy_tensor *chosen[] = {first, values, third};
        eddy_program *program =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"all", all, EDDY_ROLE_OUTPUT},
                              {"chosen", chosen[output], EDDY_ROLE_OUTPUT}));
        cr_assert_eq(instructions_of(program), 5 + 1, "%d", output); /* and a cast of the indices */
        must(eddy_program_run(program, EDDY_LIST(x), out));
        cr_assert_eq(sum_of(out[0]), 4 * 40 + 40);
        cr_assert_eq(sum_of(out[1]), 40);
        eddy_program_release(&program);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}

static eddy_status pool_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_max_pool2d(inputs.items[0], EDDY_PAIR(2, 2), NULL));
}

static eddy_status pool_with_indices(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *values, *indices;
    with_indices(inputs.items[0], &values, &indices);
    return done(outputs, eddy_add(values, indices));
}

/* What stands in the way of each: both stay. */
Test(richer, what_is_not_the_same_is_computed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = image(), *p = truth(true), *values, *indices, *best, *at, *chosen, *out[7];
    must(eddy_record_begin(&enriches));
    eddy_tensor *changed = eddy_clone(x);
    eddy_tensor *before = eddy_max_pool2d(changed, EDDY_PAIR(2, 2), NULL);
    must(eddy_add_s_inplace(changed, EDDY_S(1)));
    with_indices(changed, &values, &indices);
    eddy_tensor *a = eddy_sub(values, before);
    eddy_tensor *written = eddy_max_pool2d(changed, EDDY_PAIR(2, 2), NULL);
    must(eddy_neg_inplace(written));
    eddy_tensor *b = eddy_add(written, indices);
    eddy_tensor *step = eddy_max_pool2d(changed, EDDY_PAIR(2, 2),
                                        EDDY_OPTIONS(max_pool2d, .stride = EDDY_PAIR(1, 1)));
    must(eddy_max_dim(x, 2, NULL, &best, &at));
    eddy_tensor *other_axis = eddy_argmax(x, EDDY_AXES(3), NULL);
    eddy_tensor *two_axes = eddy_argmax(x, EDDY_AXES(2, 1), NULL);
    eddy_tensor *keeps = eddy_argmax(x, EDDY_AXES(2), EDDY_OPTIONS(argmax, .keeps_dims = true));
    eddy_tensor *part = eddy_argmax(eddy_narrow(x, 2, 2, 2), EDDY_AXES(2), NULL);
    eddy_tensor *sorted, *down, *up = eddy_argsort(x, 3, NULL);
    must(eddy_sort(x, 3, EDDY_OPTIONS(sort, .is_descending = true), &sorted, &down));
    must(eddy_cond(p, pool_of, pool_with_indices, NULL, EDDY_LIST(x), 1, NULL, &chosen));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"p", p, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT},
        {"b", b, EDDY_ROLE_OUTPUT}, {"step", step, EDDY_ROLE_OUTPUT},
        {"at",
         eddy_add(eddy_add(at, other_axis), eddy_add(eddy_squeeze(keeps, EDDY_AXES(2)), part)),
         EDDY_ROLE_OUTPUT},
        {"two", two_axes, EDDY_ROLE_OUTPUT}, {"chosen", chosen, EDDY_ROLE_OUTPUT},
        {"order", eddy_mul(up, down), EDDY_ROLE_OUTPUT}));
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.instruction_count, info.recorded_count);
    must(eddy_program_run(program, EDDY_LIST(x, truth(false)), out));
    cr_assert_eq(sum_of(out[0]), 4);
    cr_assert_eq(sum_of(out[1]), 40 - 44);
    cr_assert_eq(sum_of(out[2]), 9 + 5 + 6 + 7 + 9 + 10 + 11 + 13 + 14 + 15);
    cr_assert_eq(sum_of(out[3]), 4 * (3 + 3 + 3 + 1));
    cr_assert_eq(sum_of(out[4]), 4 * 3);
    cr_assert_eq(sum_of(out[5]), 80);
    cr_assert_eq(sum_of(out[6]), 4 * (1 * 2 + 2 * 1));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* An operand that is lost loses what both would have given, with the same reason. */
Test(richer, errors_are_those_of_the_calls) {
    eddy_error errors[2];
    for (int is_merged = 0; is_merged < 2; is_merged++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *rows = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL), *x = image();
        eddy_tensor *values, *indices, *out[2];
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = is_merged ? "richer" : "none")));
        eddy_tensor *given = eddy_index_select(x, rows, 0);
        eddy_tensor *pooled = eddy_max_pool2d(given, EDDY_PAIR(2, 2), NULL);
        with_indices(given, &values, &indices);
        eddy_program *program = end(EDDY_BINDINGS(
            {"rows", rows, EDDY_ROLE_INPUT}, {"x", x, EDDY_ROLE_INPUT},
            {"pooled", pooled, EDDY_ROLE_OUTPUT}, {"indices", indices, EDDY_ROLE_OUTPUT}));
        cr_assert_eq(instructions_of(program), is_merged ? 2 : 3);
        rows = eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_I64, NULL);
        must(eddy_program_run(program, EDDY_LIST(rows, x), out));
        for (int i = 0; i < 2; i++) {
            int64_t element;
            cr_assert_eq(eddy_read(eddy_select(eddy_flatten(out[i], 0, -1), 0, 0), &element,
                                   i ? 8 : 4, NULL),
                         EDDY_OUT_OF_RANGE);
            eddy_error_take(&errors[is_merged]);
            cr_assert_str_eq(errors[is_merged].op, "index_select");
        }
        eddy_program_release(&program);
        eddy_scope_end(scope);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(&errors[is_merged]);
    }
}
