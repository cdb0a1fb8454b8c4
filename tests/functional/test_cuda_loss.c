/* Losses on a CUDA device, on the fake driver (tests/fake_cuda): the bits of the CPU, and its errors. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

/* ---- comparing: the payload of a NaN is nobody's ---- */

static bool is_same(eddy_dtype dtype, const char *one, const char *other) {
    return memcmp(one, other, eddy_dtype_bytes(dtype)) == 0 ||
           (isnan(eddy_dtype_load_f64(dtype, one)) && isnan(eddy_dtype_load_f64(dtype, other)));
}

static void expect_same(const char *what, twin result) {
    cr_assert(result.here && result.there, "%s", what);
    eddy_dtype dtype = eddy_dtype_of(result.here);
    size_t count = (size_t)eddy_count_of(result.here), bytes = eddy_dtype_bytes(dtype);
    cr_assert_eq((size_t)eddy_count_of(result.there), count);
    char *want = malloc(count * bytes + 1), *got = malloc(count * bytes + 1);
    cr_assert_eq(eddy_read(result.here, want, count * bytes, NULL), EDDY_OK, "%s", what);
    cr_assert_eq(eddy_read(result.there, got, count * bytes, NULL), EDDY_OK, "%s", what);
    for (size_t i = 0; i < count; i++)
        cr_assert(is_same(dtype, got + i * bytes, want + i * bytes),
                  "%s of %s, seed %llu: [%zu] of %zu is %a, not %a", what, eddy_dtype_name(dtype),
                  (unsigned long long)random_seed(), i, count,
                  eddy_dtype_load_f64(dtype, got + i * bytes),
                  eddy_dtype_load_f64(dtype, want + i * bytes));
    free(want);
    free(got);
}

/* ---- calls ---- */

static const twin absent = {EDDY_NONE, EDDY_NONE};

static eddy_tensor *call_one(const char *op, const twin *operands, int64_t count, bool is_there,
                             const eddy_attributes *attributes) {
    eddy_tensor *items[5], *result = NULL;
    for (int64_t i = 0; i < count; i++)
        items[i] = is_there ? operands[i].there : operands[i].here;
    eddy_status status = eddy_call(op, (eddy_list){items, count}, attributes, &result);
    if (status != EDDY_OK) {
        eddy_error error = {0};
        eddy_error_take(&error);
        cr_assert_fail("%s: %s", op, error.message);
    }
    return result;
}

static twin call(const char *op, const twin *operands, int64_t count,
                 const eddy_attributes *attributes) {
    return (twin){call_one(op, operands, count, false, attributes),
                  call_one(op, operands, count, true, attributes)};
}

/* ---- pairs: losses element by element ---- */

/* An op, its operands besides input and target, and an attribute of its own. */
typedef struct pair_op {
    const char *loss, *backward, *backward_target;
    eddy_attribute own;
    int64_t weights;
} pair_op;

static const pair_op pair_ops[] = {
    {.loss = "mse_loss", .backward = "mse_loss_backward"},
    {.loss = "l1_loss", .backward = "l1_loss_backward"},
    {.loss = "smooth_l1_loss",
     .backward = "smooth_l1_loss_backward",
     .own = {"beta", EDDY_ATTRIBUTE_FLOAT, {.floating = 0.75}}},
    {.loss = "smooth_l1_loss",
     .backward = "smooth_l1_loss_backward",
     .own = {"beta", EDDY_ATTRIBUTE_FLOAT, {.floating = 0}}},
    {.loss = "bce_with_logits",
     .backward = "bce_with_logits_backward",
     .backward_target = "bce_with_logits_backward_target",
     .weights = 2},
    {.loss = "kl_div", .backward = "kl_div_backward", .backward_target = "kl_div_backward_target"},
    {.loss = "kl_div",
     .backward = "kl_div_backward",
     .backward_target = "kl_div_backward_target",
     .own = {"target_is_log", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}},
};

/* A shape that broadcasts to this one. */
static eddy_shape part_of(eddy_shape shape) {
    if (random_below(3) == 0)
        for (int32_t d = 0; d < shape.rank; d++)
            if (random_below(3) == 0)
                shape.dims[d] = 1;
    if (random_below(6) == 0 && shape.rank > 0) {
        shape.rank--;
        memmove(shape.dims, shape.dims + 1, (size_t)shape.rank * sizeof(shape.dims[0]));
    }
    return shape;
}

/* Special ones among few alone: of many, one would be NaN, and so would their sum. */
static twin numbers(eddy_dtype dtype, eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return count < 500 && random_below(3) == 0 ? twin_random(dtype, shape, false)
                                               : twin_numbers(dtype, shape, false);
}

/* Contiguous half of the time. */
static twin operand(eddy_dtype dtype, eddy_shape shape) {
    twin made = numbers(dtype, shape);
    return random_below(2) ? made : (twin){eddy_clone(made.here), eddy_clone(made.there)};
}

/* The loss, and what its gradients are for a random one of the loss. */
static void check_pair(const pair_op *op, eddy_dtype dtype, const twin *operands,
                       eddy_reduction reduction) {
    eddy_attribute given[] = {{"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = reduction}},
                              op->own};
    const eddy_attributes attributes = {given, op->own.name ? 2 : 1};
    int64_t count = 2 + op->weights;
    twin loss = call(op->loss, operands, count, &attributes);
    expect_same(op->loss, loss);
    twin all[5] = {operand(dtype, eddy_shape_of(loss.here))};
    memcpy(all + 1, operands, (size_t)count * sizeof(*operands));
    expect_same(op->backward, call(op->backward, all, count + 1, &attributes));
    if (op->backward_target)
        expect_same(op->backward_target, call(op->backward_target, all, count + 1, &attributes));
}

static void check_pairs(eddy_dtype dtype, eddy_shape shape, bool are_parts) {
    eddy_scope *scope = eddy_scope_begin();
    twin operands[4];
    for (int i = 0; i < 4; i++)
        operands[i] = operand(dtype, are_parts ? part_of(shape) : shape);
    for (int i = 2; i < 4; i++)
        if (random_below(2) == 0)
            operands[i] = absent;
    for (size_t i = 0; i < COUNT(pair_ops); i++)
        check_pair(&pair_ops[i], dtype, operands, (eddy_reduction)random_below(3));
    eddy_scope_end(scope);
}

Test(cuda_loss, pairs_of_any_shapes_and_layouts, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(60); round++)
        check_pairs(floats[round % 4], twin_shape(4, 9), true);
    twin_expect_no_findings();
}

/* Round a warp, a chunk and a row of chunks. */
Test(cuda_loss, pairs_of_every_length, .timeout = 300) {
    const int64_t lengths[] = {1, 2, 3, 5, 31, 32, 33, 65, 1023, 1024, 1025, 3000, 65536, 65537};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int t = 0; t < (lengths[i] > 4000 ? 1 : 4); t++)
            check_pairs(floats[t], EDDY_SHAPE(lengths[i]), false);
    check_pairs(EDDY_F32, EDDY_SHAPE(37, 1000), true);
    twin_expect_no_findings();
}

/* More chunks than a row of the sum has, and than threads. */
Test(cuda_loss, long_sums_have_the_tree_of_the_cpu, .timeout = 300) {
    const int64_t counts[] = {130 * 1024 + 1, 700001};
    for (size_t i = 0; i < COUNT(counts); i++) {
        eddy_scope *scope = eddy_scope_begin();
        twin operands[] = {twin_numbers(EDDY_F64, EDDY_SHAPE(counts[i]), false),
                           twin_numbers(EDDY_F64, EDDY_SHAPE(1), false)};
        expect_same("mse_loss", call("mse_loss", operands, 2, NULL));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* ---- gradients ---- */

static twin leaf(eddy_dtype dtype, eddy_shape shape) {
    twin made = twin_numbers(dtype, shape, false);
    made = (twin){eddy_detach(made.here), eddy_detach(made.there)};
    cr_assert_eq(eddy_requires_grad_set(made.here, true), EDDY_OK);
    cr_assert_eq(eddy_requires_grad_set(made.there, true), EDDY_OK);
    return made;
}

static void expect_same_gradients(const char *what, twin loss, const twin *leaves, int count) {
    cr_assert_eq(eddy_backward(eddy_sum(loss.here, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(loss.there, EDDY_ALL_AXES, NULL)), EDDY_OK);
    for (int i = 0; i < count; i++)
        expect_same(what, (twin){eddy_grad_of(leaves[i].here), eddy_grad_of(leaves[i].there)});
}

Test(cuda_loss, gradients_of_pairs_flow_to_input_and_target, .timeout = 300) {
    for (size_t i = 0; i < COUNT(pair_ops); i++)
        for (int round = 0; round < 4; round++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_dtype dtype = floats[round % 2];
            eddy_shape shape = EDDY_SHAPE(1 + random_below(9), 1 + random_below(50));
            twin operands[] = {leaf(dtype, shape), leaf(dtype, part_of(shape)),
                               operand(dtype, part_of(shape)), absent};
            eddy_attribute given[] = {
                {"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = random_below(3)}},
                pair_ops[i].own};
            const eddy_attributes attributes = {given, pair_ops[i].own.name ? 2 : 1};
            twin loss = call(pair_ops[i].loss, operands, 2 + pair_ops[i].weights, &attributes);
            expect_same_gradients(pair_ops[i].loss, loss, operands, 2);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* ---- rows and labels ---- */

/* Labels, of which some are ignored. */
static twin labels(int64_t rows, int64_t classes, int64_t ignored) {
    int64_t *given = malloc((size_t)rows * sizeof(*given) + 1);
    for (int64_t r = 0; r < rows; r++)
        given[r] = random_below(4) == 0 || classes == 0 ? ignored : random_below(classes);
    twin made = twin_of(given, EDDY_SHAPE(rows), EDDY_I64);
    free(given);
    return made;
}

/* Each of the two losses, and its gradient for a random one of the loss. */
static void check_labels_of(const char *loss, const char *backward, twin input, twin target,
                            const twin *weight, const eddy_attributes *attributes) {
    const twin given[] = {input, target, weight ? *weight : absent};
    int64_t count = weight ? 3 : 2;
    twin result = call(loss, given, count, attributes);
    expect_same(loss, result);
    eddy_dtype dtype = eddy_dtype_of(input.here);
    twin all[4] = {operand(dtype, eddy_shape_of(result.here))};
    memcpy(all + 1, given, (size_t)count * sizeof(*given));
    expect_same(backward, call(backward, all, count + 1, attributes));
}

static void check_labels(eddy_dtype dtype, int64_t rows, int64_t classes) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t ignored = random_below(2) || classes == 0 ? -100 : random_below(classes);
    eddy_attribute given[] = {
        {"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = random_below(3)}},
        {"ignore_index", EDDY_ATTRIBUTE_INT, {.integer = ignored}},
    };
    const eddy_attributes attributes = {given, COUNT(given)};
    twin input = operand(dtype, EDDY_SHAPE(rows, classes)), target = labels(rows, classes, ignored),
         weight = random_below(2) ? operand(dtype, EDDY_SHAPE(classes)) : absent;
    check_labels_of("cross_entropy", "cross_entropy_backward", input, target, NULL, &attributes);
    check_labels_of("nll_loss", "nll_loss_backward", input, target, &weight, &attributes);
    eddy_scope_end(scope);
}

Test(cuda_loss, labels_of_any_rows_and_layouts, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(80); round++)
        check_labels(floats[round % 4], random_below(8) == 0 ? 0 : 1 + random_below(40),
                     random_below(8) == 0 ? 0 : 1 + random_below(60));
    twin_expect_no_findings();
}

/* Round the lanes, a chunk, and what the threads of a block work on at once. */
Test(cuda_loss, rows_of_every_length, .timeout = 300) {
    const int64_t lengths[] = {1, 2, 3, 15, 16, 17, 31, 255, 4095, 4096, 4097, 12289, 70000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int t = 0; t < 4; t++)
            if (lengths[i] < 5000 || t == (int)i % 4)
                check_labels(floats[t], 3, lengths[i]);
    twin_expect_no_findings();
}

/* More losses than a row of their sum, than a block adds, and than whole rows. */
Test(cuda_loss, sums_of_many_rows_have_the_tree_of_the_cpu, .timeout = 300) {
    const int64_t counts[] = {63, 64, 65, 127, 128, 129, 193, 1000, 16384, 16385, 30017, 100003};
    for (size_t i = 0; i < COUNT(counts); i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = i % 2 ? EDDY_F64 : EDDY_F32;
        twin given[] = {twin_numbers(dtype, EDDY_SHAPE(counts[i], 2), false),
                        labels(counts[i], 2, -100), twin_numbers(dtype, EDDY_SHAPE(2), false)};
        expect_same("nll_loss", call("nll_loss", given, 3, NULL));
        given[2] = absent;
        expect_same("nll_loss", call("nll_loss", given, 3, NULL));
        eddy_attribute sum = {"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = EDDY_REDUCTION_SUM}};
        const eddy_attributes attributes = {&sum, 1};
        expect_same("nll_loss", call("nll_loss", given, 3, &attributes));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_loss, all_rows_are_ignored) {
    eddy_scope *scope = eddy_scope_begin();
    for (int reduction = 0; reduction < 3; reduction++) {
        eddy_attribute given = {"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = reduction}};
        const eddy_attributes attributes = {&given, 1};
        twin input = twin_numbers(EDDY_F32, EDDY_SHAPE(7, 5), false),
             target = twin_indices(EDDY_I64, EDDY_SHAPE(7), -100, -100);
        check_labels_of("cross_entropy", "cross_entropy_backward", input, target, NULL,
                        &attributes);
        check_labels_of("nll_loss", "nll_loss_backward", input, target, &absent, &attributes);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_loss, gradients_of_labels_flow_to_the_input, .timeout = 300) {
    for (int round = 0; round < 12; round++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t rows = 1 + random_below(30), classes = 1 + random_below(50);
        twin input = leaf(floats[round % 2], EDDY_SHAPE(rows, classes)),
             target = labels(rows, classes, -100), given[] = {input, target, absent};
        bool is_nll = round % 4 > 1;
        const char *op = is_nll ? "nll_loss" : "cross_entropy";
        expect_same_gradients(op, call(op, given, is_nll ? 3 : 2, NULL), &input, 1);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* ---- errors ---- */

/* The first of several wrong labels is reported, at any reduction; what depends on it has the error too. */
Test(cuda_loss, labels_out_of_range_are_the_errors_of_the_cpu, .timeout = 300) {
    static const char *const ops[] = {"cross_entropy", "cross_entropy_backward", "nll_loss",
                                      "nll_loss_backward"};
    for (int round = 0; round < 24; round++) {
        eddy_scope *scope = eddy_scope_begin();
        const char *op = ops[round % 4];
        bool is_gradient = round % 2;
        int64_t rows = 1 + random_below(round < 12 ? 9 : 900), classes = random_below(5);
        int64_t *wrong = malloc((size_t)rows * sizeof(*wrong));
        for (int64_t r = 0; r < rows; r++)
            wrong[r] = random_below(rows) < 3 ? -1 - random_below(9) : random_below(classes + 1);
        wrong[random_below(rows)] = classes;
        int64_t reduction = random_below(3);
        eddy_attribute given = {"reduction", EDDY_ATTRIBUTE_CHOICE, {.integer = reduction}};
        const eddy_attributes attributes = {&given, 1};
        eddy_shape of_loss = reduction == EDDY_REDUCTION_NONE ? EDDY_SHAPE(rows) : EDDY_SHAPE();
        twin operands[] = {twin_numbers(EDDY_F32, of_loss, false),
                           twin_numbers(EDDY_F32, EDDY_SHAPE(rows, classes), false),
                           twin_of(wrong, EDDY_SHAPE(rows), EDDY_I64),
                           random_below(2) ? twin_numbers(EDDY_F32, EDDY_SHAPE(classes), false)
                                           : absent};
        free(wrong);
        twin bad = call(op, is_gradient ? operands : operands + 1,
                        (is_gradient ? 3 : 2) + (strstr(op, "nll") != NULL), &attributes);
        twin_expect_error(bad.here, bad.there);
        twin_expect_error(eddy_neg(bad.here), eddy_neg(bad.there));
        eddy_error_take(NULL);
        eddy_scope_end(scope);
    }
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- whether tensors agree ---- */

/* Elements of which most are those of another tensor. */
static twin nearly(twin of, bool differs) {
    if (!differs || eddy_count_of(of.here) == 0)
        return of;
    eddy_tensor *flat = eddy_reshape(eddy_clone(of.here), EDDY_SHAPE(-1));
    size_t bytes = eddy_dtype_bytes(eddy_dtype_of(of.here)), count = (size_t)eddy_count_of(of.here);
    char *elements = malloc(count * bytes);
    cr_assert_eq(eddy_read(flat, elements, count * bytes, NULL), EDDY_OK);
    random_element(eddy_dtype_of(of.here), elements + (size_t)random_below((int64_t)count) * bytes);
    twin made = twin_of(elements, eddy_shape_of(of.here), eddy_dtype_of(of.here));
    free(elements);
    return made;
}

static void check_agreement(twin a, twin b) {
    const twin both[] = {a, b};
    expect_same("equal", call("equal", both, 2, NULL));
    eddy_attribute given[] = {
        {"rtol", EDDY_ATTRIBUTE_FLOAT, {.floating = (double)random_below(3) / 8}},
        {"atol", EDDY_ATTRIBUTE_FLOAT, {.floating = (double)random_below(3) / 8}},
        {"nan_is_equal", EDDY_ATTRIBUTE_BOOL, {.boolean = random_below(2)}},
    };
    const eddy_attributes attributes = {given, COUNT(given)};
    expect_same("allclose", call("allclose", both, 2, &attributes));
}

Test(cuda_loss, tensors_agree_where_the_cpu_says_so, .timeout = 300) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 7);
        twin a =
            random_below(2) ? twin_numbers(dtype, shape, false) : twin_random(dtype, shape, false);
        check_agreement(a, a);
        check_agreement(a, nearly(a, true));
        check_agreement(a, twin_random(dtype, shape, false));
        twin clone = {eddy_clone(a.here), eddy_clone(a.there)};
        check_agreement(clone, nearly(clone, random_below(2)));
    }
    twin_expect_no_findings();
}

/* Beside what a thread compares at once. */
Test(cuda_loss, one_element_is_enough_to_differ, .timeout = 300) {
    TWIN_EACH_DTYPE(dtype) {
        int64_t count = 1 + random_below(3000), where = random_below(count);
        twin a = twin_numbers(dtype, EDDY_SHAPE(count), true);
        a = (twin){eddy_clone(a.here), eddy_clone(a.there)};
        check_agreement(a, nearly(a, true));
        twin part = {eddy_narrow(a.here, 0, where, 1), eddy_narrow(a.there, 0, where, 1)};
        const twin both[] = {a, part};
        expect_same("allclose", call("allclose", both, 2, NULL));
        expect_same("equal", call("equal", both, 2, NULL));
    }
    twin_expect_no_findings();
}
