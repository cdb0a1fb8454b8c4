/* How results lie in memory: as the operands do, whatever the order of their axes; and what that must not change. */
#include "taped.h"
#include <functional/op_table.h>
#include <interpreter/call/op.h>
#include <stdlib.h>

#define RANK 4
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const eddy_shape image = {RANK, {2, 3, 5, 7}};
/* Axes, the outermost first. The first order is row-major, the second channels last. */
static const int32_t orders[][RANK] = {
    {0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}};
enum { ROW_MAJOR, CHANNELS_LAST };

/* The elements of x, its axes in another order in memory. */
static eddy_tensor *laid(eddy_tensor *x, const int32_t *order) {
    eddy_axes there = {.count = RANK}, back = {.count = RANK};
    for (int32_t d = 0; d < RANK; d++) {
        there.axes[d] = order[d];
        back.axes[order[d]] = d;
    }
    return eddy_permute(eddy_contiguous(eddy_permute(x, there)), back);
}

static eddy_tensor *channels_last(eddy_tensor *x) {
    return laid(x, orders[CHANNELS_LAST]);
}

static void expect_lies_like(eddy_tensor *got, eddy_tensor *like, const char *what) {
    cr_assert_not_null(got, "%s", what);
    cr_assert_eq(eddy_rank_of(got), eddy_rank_of(like), "%s", what);
    for (int32_t d = 0; d < eddy_rank_of(like); d++)
        cr_assert_eq(eddy_stride_of(got, d), eddy_stride_of(like, d),
                     "%s: stride %lld of axis %d, not %lld", what,
                     (long long)eddy_stride_of(got, d), (int)d, (long long)eddy_stride_of(like, d));
    cr_assert_eq(eddy_offset_of(got), 0, "%s", what);
}

/* The same bits, read row-major. */
static void expect_same(eddy_tensor *a, eddy_tensor *b, const char *what) {
    size_t bytes = (size_t)eddy_count_of(a) * 8;
    char *left = calloc(1, bytes), *right = calloc(1, bytes);
    size_t size = (size_t)eddy_count_of(a) * eddy_dtype_bytes(eddy_dtype_of(a));
    cr_assert_eq(eddy_dtype_of(a), eddy_dtype_of(b), "%s", what);
    cr_assert_eq(eddy_read(a, left, size, NULL), EDDY_OK, "%s", what);
    cr_assert_eq(eddy_read(b, right, size, NULL), EDDY_OK, "%s", what);
    cr_assert_eq(memcmp(left, right, size), 0, "%s", what);
    free(left);
    free(right);
}

/* From 0.25 up to 1.25, or 1 to 8, or both truths: no op has a NaN there. */
static eddy_tensor *some(eddy_dtype dtype, eddy_shape shape) {
    if (dtype == EDDY_BOOL)
        return eddy_cast(eddy_randint(0, 2, shape, EDDY_I32, NULL), EDDY_BOOL);
    if (dtype == EDDY_I64)
        return eddy_randint(1, 9, shape, EDDY_I64, NULL);
    return eddy_add_s(eddy_rand(shape, dtype, NULL), EDDY_S(0.25));
}

static eddy_dtype dtype_for(const eddy_op *op) {
    return op->kernels[EDDY_F32] ? EDDY_F32 : op->kernels[EDDY_I64] ? EDDY_I64 : EDDY_BOOL;
}

static eddy_tensor *call(const eddy_op *op, eddy_tensor *const *operands) {
    eddy_attribute attributes[4];
    eddy_tensor *output = NULL;
    cr_assert_leq(op->scalar_count, 4);
    for (int32_t i = 0; i < op->scalar_count; i++)
        attributes[i] = (eddy_attribute){
            op->attributes[i].name, EDDY_ATTRIBUTE_SCALAR, {.scalar = eddy_scalar_int(1)}};
    cr_assert_eq(eddy_call(op->name, (eddy_list){operands, op->operand_count},
                           &(eddy_attributes){attributes, op->scalar_count}, &output),
                 EDDY_OK, "%s", op->name);
    return output;
}

static void check_op(const eddy_op *op) {
    eddy_tensor *plain[4], *turned[4];
    for (int32_t i = 0; i < op->operand_count; i++)
        plain[i] = some(op->operands[i].is_bool ? EDDY_BOOL : dtype_for(op), image);
    eddy_tensor *wanted = call(op, plain);
    for (size_t o = 0; o < COUNT(orders); o++) {
        for (int32_t i = 0; i < op->operand_count; i++)
            turned[i] = laid(plain[i], orders[o]);
        eddy_tensor *got = call(op, turned);
        expect_lies_like(got, turned[0], op->name);
        expect_same(got, wanted, op->name);
    }
}

Test(result_layout, every_elementwise_op_keeps_the_order_of_axes) {
    int checked = 0;
    for (uint32_t i = 0; i < eddy_op_table_count; i++) {
        const eddy_op *op = eddy_op_table[i];
        if (!op->is_elementwise || op->output_count == 0)
            continue;
        eddy_scope *scope = eddy_scope_begin();
        check_op(op);
        eddy_scope_end(scope);
        checked++;
    }
    cr_assert_gt(checked, 50);
}

Test(result_layout, the_first_operand_that_has_an_order_decides) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = some(EDDY_F32, image), *y = some(EDDY_F32, image), *last = channels_last(x);
    eddy_tensor *sum = eddy_add(x, y), *product = eddy_mul(x, y);
    expect_lies_like(eddy_add(last, y), last, "channels last and rows");
    expect_same(eddy_add(last, y), sum, "channels last and rows");
    expect_lies_like(eddy_add(y, last), x, "rows and channels last");
    expect_same(eddy_add(y, last), sum, "rows and channels last");
    expect_lies_like(eddy_mul(laid(x, orders[2]), channels_last(y)), laid(x, orders[2]),
                     "backwards and channels last");
    expect_same(eddy_mul(laid(x, orders[2]), channels_last(y)), product,
                "backwards and channels last");
    eddy_tensor *mask = eddy_gt(x, y), *chosen = eddy_where(mask, x, y);
    expect_lies_like(eddy_where(channels_last(mask), x, y), last, "where");
    expect_lies_like(eddy_where(mask, last, y), x, "where");
    expect_same(eddy_where(channels_last(mask), x, y), chosen, "where");
    expect_same(eddy_where(mask, last, channels_last(y)), chosen, "where");
    /* What a slice leaves out is not left out of the result. */
    eddy_tensor *part = eddy_narrow(channels_last(some(EDDY_F32, EDDY_SHAPE(2, 3, 5, 9))), 3, 1, 7);
    expect_lies_like(eddy_relu(part), last, "a slice");
    expect_same(eddy_relu(part), eddy_relu(eddy_contiguous(part)), "a slice");
    eddy_tensor *many = some(EDDY_F32, EDDY_SHAPE(2, 3, 2, 2, 3, 2)),
                *turned = eddy_transpose(many, 1, 5);
    expect_lies_like(eddy_add(turned, turned), turned, "many axes");
    expect_same(eddy_add(turned, turned), eddy_transpose(eddy_add(many, many), 1, 5), "many axes");
    eddy_scope_end(scope);
}

Test(result_layout, what_broadcasts_leaves_the_order_to_others) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = some(EDDY_F32, image), *last = channels_last(x);
    eddy_tensor *small[] = {some(EDDY_F32, EDDY_SHAPE()),
                            some(EDDY_F32, EDDY_SHAPE(7)),
                            some(EDDY_F32, EDDY_SHAPE(3, 1, 1)),
                            some(EDDY_F32, EDDY_SHAPE(1, 3, 1, 1)),
                            some(EDDY_F32, EDDY_SHAPE(2, 1, 1, 1)),
                            some(EDDY_F32, EDDY_SHAPE(5, 7)),
                            eddy_expand(some(EDDY_F32, EDDY_SHAPE(3, 1, 1)), EDDY_SHAPE(3, 5, 7))};
    for (size_t i = 0; i < COUNT(small); i++) {
        expect_lies_like(eddy_sub(last, small[i]), last, "the small one second");
        expect_same(eddy_sub(last, small[i]), eddy_sub(x, small[i]), "the small one second");
        expect_lies_like(eddy_sub(small[i], last), last, "the small one first");
        expect_same(eddy_sub(small[i], last), eddy_sub(small[i], x), "the small one first");
    }
    /* Neither is the whole: a column and a row of numbers, each of one axis. */
    eddy_tensor *both =
        eddy_add(eddy_t(some(EDDY_F32, EDDY_SHAPE(1, 4))), some(EDDY_F32, EDDY_SHAPE(1, 6)));
    cr_assert(eddy_is_contiguous(both));
    /* Nor does an empty one have an order. */
    cr_assert(eddy_is_contiguous(eddy_add(eddy_narrow(last, 2, 0, 0), small[2])));
    eddy_scope_end(scope);
}

Test(result_layout, promotion_keeps_the_order) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = some(EDDY_F32, image), *n = some(EDDY_I64, image);
    eddy_tensor *last = channels_last(x), *number_last = channels_last(n);
    expect_lies_like(eddy_add(number_last, x), last, "i64 and f32");
    expect_same(eddy_add(number_last, x), eddy_add(n, x), "i64 and f32");
    expect_lies_like(eddy_add(number_last, last), last, "i64 and f32");
    expect_lies_like(eddy_exp(number_last), last, "exp of i64");
    expect_same(eddy_exp(number_last), eddy_exp(n), "exp of i64");
    expect_lies_like(eddy_mul_s(number_last, EDDY_S(0.5)), last, "i64 times a number");
    eddy_scope_end(scope);
}

Test(result_layout, copies_and_new_tensors_like_another_lie_like_it) {
    eddy_scope *scope = eddy_scope_begin();
    for (size_t o = 0; o < COUNT(orders); o++) {
        eddy_tensor *x = some(EDDY_F32, image), *turned = laid(x, orders[o]);
        eddy_tensor *made[] = {eddy_clone(turned),
                               eddy_cast(turned, EDDY_F64),
                               eddy_cast(turned, EDDY_F32),
                               eddy_empty_like(turned, NULL),
                               eddy_zeros_like(turned, NULL),
                               eddy_ones_like(turned, NULL),
                               eddy_full_like(turned, EDDY_S(3), NULL)};
        for (size_t i = 0; i < COUNT(made); i++)
            expect_lies_like(made[i], turned, "a copy or its like");
        expect_same(made[0], x, "clone");
        expect_same(made[1], eddy_cast(x, EDDY_F64), "cast");
        expect_same(made[6], eddy_full(image, EDDY_S(3), EDDY_F32, NULL), "full_like");
        cr_assert(eddy_is_contiguous(eddy_contiguous(turned)));
        expect_same(eddy_contiguous(turned), x, "contiguous");
    }
    eddy_scope_end(scope);
}

Test(result_layout, joined_padded_and_flipped_images_stay_channels_last) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = some(EDDY_F32, image), *y = some(EDDY_F32, EDDY_SHAPE(2, 4, 5, 7));
    eddy_tensor *last = channels_last(x);
    eddy_tensor *rows[] = {eddy_cat(EDDY_LIST(x, y), 1), eddy_cat(EDDY_LIST(x, x), 2),
                           eddy_flip(x, EDDY_AXES(1, 3)),
                           eddy_pad(x, EDDY_SHAPE(1, 2), EDDY_SHAPE(3, -1), EDDY_S(9))};
    eddy_tensor *kept[] = {eddy_cat(EDDY_LIST(last, channels_last(y)), 1),
                           eddy_cat(EDDY_LIST(last, x), 2), eddy_flip(last, EDDY_AXES(1, 3)),
                           eddy_pad(last, EDDY_SHAPE(1, 2), EDDY_SHAPE(3, -1), EDDY_S(9))};
    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_assert(eddy_is_contiguous(rows[i]));
        expect_lies_like(kept[i], channels_last(kept[i]), "joined, padded, flipped");
        expect_same(kept[i], rows[i], "joined, padded, flipped");
    }
    cr_assert(eddy_is_contiguous(eddy_cat(EDDY_LIST(x, last), 1)));
    eddy_scope_end(scope);
}

/* Heads beside each other, as one product makes them: what attention makes of them is rows again without a copy. */
Test(result_layout, attention_and_rotary_positions_keep_the_order_of_axes) {
    eddy_scope *scope = eddy_scope_begin();
    static const int32_t heads[RANK] = {0, 2, 1, 3};
    eddy_tensor *x = some(EDDY_F32, EDDY_SHAPE(2, 3, 5, 8)), *turned = laid(x, heads);
    eddy_tensor *positions = eddy_arange(EDDY_S(0), EDDY_S(5), EDDY_S(1), EDDY_I64, NULL);
    eddy_tensor *rotated = eddy_rope(turned, positions, NULL),
                *plain = eddy_rope(x, positions, NULL);
    expect_lies_like(rotated, turned, "rope");
    expect_same(rotated, plain, "rope");
    eddy_tensor *seen = eddy_sdpa(rotated, turned, turned, EDDY_NONE, NULL);
    eddy_tensor *same = eddy_sdpa(plain, x, x, EDDY_NONE, NULL), *back[2][3];
    expect_lies_like(seen, turned, "sdpa");
    expect_same(seen, same, "sdpa");
    eddy_sdpa_backward(turned, seen, rotated, turned, turned, EDDY_NONE, NULL, &back[0][0],
                       &back[0][1], &back[0][2]);
    eddy_sdpa_backward(x, same, plain, x, x, EDDY_NONE, NULL, &back[1][0], &back[1][1],
                       &back[1][2]);
    for (int i = 0; i < 3; i++) {
        expect_lies_like(back[0][i], turned, "sdpa_backward");
        expect_same(back[0][i], back[1][i], "sdpa_backward");
    }
    eddy_scope_end(scope);
}

static eddy_tensor *dropped(eddy_tensor *x) {
    eddy_generator *generator = eddy_generator_create(7);
    eddy_tensor *result =
        eddy_dropout(x, EDDY_S(0.5), EDDY_OPTIONS(dropout, .generator = generator));
    eddy_generator_release(&generator);
    return result;
}

Test(result_layout, dropout_decides_by_the_number_of_the_element) {
    eddy_scope *scope = eddy_scope_begin();
    /* More than a slice of the kernel, and no planes of whole Philox blocks. */
    const eddy_shape shape = EDDY_SHAPE(2, 19, 41, 21);
    eddy_tensor *x = some(EDDY_F32, shape), *plain = leaf(eddy_clone(x));
    eddy_tensor *wanted = dropped(plain), *seed = some(EDDY_F32, shape);
    cr_assert_eq(eddy_backward_from(EDDY_LIST(wanted), EDDY_LIST(seed), NULL), EDDY_OK);
    for (size_t o = 0; o < COUNT(orders); o++) {
        eddy_tensor *turned = leaf(laid(x, orders[o])), *got = dropped(turned);
        expect_lies_like(got, turned, "dropout");
        expect_same(got, wanted, "dropout");
        cr_assert_eq(eddy_backward_from(EDDY_LIST(got), EDDY_LIST(laid(seed, orders[o])), NULL),
                     EDDY_OK);
        expect_lies_like(eddy_grad_of(turned), turned, "dropout's gradient");
        expect_same(eddy_grad_of(turned), eddy_grad_of(plain), "dropout's gradient");
    }
    eddy_scope_end(scope);
}

static eddy_tensor *activated(eddy_tensor *x) {
    eddy_tensor *y = eddy_gelu(eddy_silu(eddy_relu(x)), NULL);
    return eddy_mul(eddy_tanh(eddy_sigmoid(y)), eddy_clamp(x, EDDY_S(0.3), EDDY_S(1)));
}

TAPED_TEST(result_layout, gradients_of_elementwise_ops_lie_so_too) {
    eddy_tensor *x = some(EDDY_F32, image), *seed = some(EDDY_F32, image),
                *plain = leaf(eddy_clone(x));
    cr_assert_eq(eddy_backward_from(EDDY_LIST(activated(plain)), EDDY_LIST(seed), NULL), EDDY_OK);
    for (size_t o = 0; o < COUNT(orders); o++) {
        eddy_tensor *turned = leaf(laid(x, orders[o])), *y = activated(turned);
        expect_lies_like(y, turned, "activations");
        cr_assert_eq(eddy_backward_from(EDDY_LIST(y), EDDY_LIST(laid(seed, orders[o])), NULL),
                     EDDY_OK);
        expect_lies_like(eddy_grad_of(turned), turned, "their gradient");
        expect_same(eddy_grad_of(turned), eddy_grad_of(plain), "their gradient");
    }
}

Test(result_layout, targets_stay_as_they_are) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = some(EDDY_F32, image), *y = some(EDDY_F32, image), *last = channels_last(x);
    eddy_tensor *wanted = eddy_sub(x, y), *rows = eddy_zeros(image, EDDY_F32, NULL),
                *target = eddy_zeros_like(last, NULL);
    cr_assert_eq(eddy_sub_into(last, channels_last(y), rows), EDDY_OK);
    cr_assert_eq(eddy_sub_into(x, y, target), EDDY_OK);
    cr_assert(eddy_is_contiguous(rows));
    expect_lies_like(target, last, "a target");
    expect_same(rows, wanted, "into rows");
    expect_same(target, wanted, "into channels last");
    eddy_tensor *own = eddy_clone(last);
    cr_assert_eq(eddy_sub_inplace(own, y), EDDY_OK);
    expect_lies_like(own, last, "in place");
    expect_same(own, wanted, "in place");
    eddy_scope_end(scope);
}

Test(result_layout, matrices_stay_transposed_and_are_seen_row_major) {
    eddy_scope *scope = eddy_scope_begin();
    const float a[] = {0, 1, 2, 3, 4, 5};
    eddy_tensor *x = eddy_t(eddy_from_data(a, EDDY_SHAPE(2, 3), EDDY_F32, NULL)),
                *sum = eddy_add(x, x);
    cr_assert(eddy_stride_of(sum, 0) == 1 && eddy_stride_of(sum, 1) == 3 &&
              !eddy_is_contiguous(sum));
    const float wanted[] = {0, 6, 2, 8, 4, 10};
    float got[6];
    cr_assert_eq(eddy_read(sum, got, sizeof(got), NULL), EDDY_OK);
    cr_assert_eq(memcmp(got, wanted, sizeof(got)), 0);
    cr_assert_null(eddy_view(sum, EDDY_SHAPE(6)));
    expect_error(EDDY_SHAPE_MISMATCH, "reshape copies");
    eddy_tensor *flat = eddy_reshape(sum, EDDY_SHAPE(6));
    cr_assert_eq(eddy_read(flat, got, sizeof(got), NULL), EDDY_OK);
    cr_assert_eq(memcmp(got, wanted, sizeof(got)), 0);
    cr_assert(eddy_is_contiguous(eddy_t(sum)) && eddy_view(eddy_t(sum), EDDY_SHAPE(6)));
    eddy_scope_end(scope);
}

static void step(eddy_tensor *param, eddy_tensor *grad) {
    eddy_tensor *m = eddy_zeros_like(param, NULL), *v = eddy_zeros_like(param, NULL);
    eddy_tensor *number = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
    expect_lies_like(m, param, "a moment");
    for (int i = 0; i < 3; i++)
        cr_assert_eq(eddy_adamw_step(EDDY_LIST(param), EDDY_LIST(grad), EDDY_LIST(m), EDDY_LIST(v),
                                     number, EDDY_S(0.1),
                                     EDDY_OPTIONS(adamw_step, .weight_decay = 0.01)),
                     EDDY_OK);
}

Test(result_layout, optimisers_take_parameters_as_they_lie) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *plain = some(EDDY_F32, image), *grad = some(EDDY_F32, image),
                *start = eddy_clone(plain);
    step(plain, grad);
    for (size_t o = 0; o < COUNT(orders); o++) {
        eddy_tensor *param = laid(eddy_clone(start), orders[o]);
        step(param, o % 2 ? grad : laid(grad, orders[o]));
        expect_same(param, plain, "a step");
    }
    eddy_scope_end(scope);
}

/* ---- a network on images ---- */

/* Small whole numbers: sums are exact in any order. */
static eddy_tensor *whole(eddy_shape shape) {
    return eddy_cast(eddy_randint(-3, 4, shape, EDDY_I32, NULL), EDDY_F32);
}

static int64_t submitted(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_counters_read(&counters), EDDY_OK);
    return counters.submitted;
}

#define STAGES 6

typedef struct network {
    eddy_tensor *first, *second, *mean, *var, *scale, *shift;
} network;

static void run(const network *n, eddy_tensor *x, eddy_tensor **stages) {
    stages[0] = eddy_conv2d(x, n->first, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1}));
    stages[1] = eddy_batch_norm(stages[0], n->mean, n->var, n->scale, n->shift,
                                EDDY_OPTIONS(batch_norm, .eps = 0.25));
    stages[2] = eddy_relu(stages[1]);
    stages[3] = eddy_max_pool2d(stages[2], EDDY_PAIR(2, 2), NULL);
    stages[4] = eddy_conv2d(stages[3], n->second, EDDY_NONE, NULL);
    stages[5] = eddy_add(stages[4], stages[4]);
}

TAPED_TEST(result_layout, a_network_stays_channels_last_without_a_copy) {
    const eddy_shape channels = EDDY_SHAPE(4);
    network n = {.first = whole(EDDY_SHAPE(4, 3, 3, 3)),
                 .second = whole(EDDY_SHAPE(6, 4, 3, 3)),
                 .mean = whole(channels),
                 .var = eddy_full(channels, EDDY_S(0.75), EDDY_F32, NULL),
                 .scale = whole(channels),
                 .shift = whole(channels)};
    eddy_tensor *image_of_rows = leaf(whole(EDDY_SHAPE(2, 3, 8, 10))), *rows[STAGES], *last[STAGES];
    eddy_tensor *x = leaf(channels_last(eddy_detach(image_of_rows)));
    int64_t before = submitted();
    run(&n, image_of_rows, rows);
    int64_t between = submitted();
    run(&n, x, last);
    cr_assert_eq(submitted() - between, between - before);
    for (int i = 0; i < STAGES; i++) {
        expect_lies_like(last[i], channels_last(eddy_detach(last[i])), "a stage");
        cr_assert_not(eddy_is_contiguous(last[i]));
        cr_assert(eddy_is_contiguous(rows[i]));
        expect_same(last[i], rows[i], "a stage");
    }
    eddy_tensor *seed = whole(eddy_shape_of(last[STAGES - 1]));
    cr_assert_eq(eddy_backward_from(EDDY_LIST(rows[STAGES - 1]), EDDY_LIST(seed), NULL), EDDY_OK);
    cr_assert_eq(
        eddy_backward_from(EDDY_LIST(last[STAGES - 1]), EDDY_LIST(channels_last(seed)), NULL),
        EDDY_OK);
    expect_lies_like(eddy_grad_of(x), x, "the gradient");
    expect_same(eddy_grad_of(x), eddy_grad_of(image_of_rows), "the gradient");
}
