/* eddy_call and what public functions check. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static void expect_error(eddy_status status, const char *op, const char *word) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_str_eq(error.op, op);
    cr_assert(strstr(error.message, word), "%s does not say %s", error.message, word);
}

static eddy_tensor *counting(int64_t count) {
    return eddy_arange(EDDY_S(0), EDDY_S(count), EDDY_S(1), EDDY_F32, NULL);
}

Test(call, an_op_by_name_gives_what_its_function_does) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(6), *by_name = NULL;
    cr_assert_eq(eddy_call("add", EDDY_LIST(a, a), NULL, &by_name), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(by_name, EDDY_ALL_AXES, NULL), NULL), 30);
    cr_assert_eq(eddy_call("softmax", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_AXIS, {.integer = -1}}),
                           &by_name),
                 EDDY_OK);
    cr_assert_float_eq(eddy_item_f64(eddy_sum(by_name, EDDY_ALL_AXES, NULL), NULL), 1, 1e-6);
    cr_assert_eq(eddy_call("mul_s", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"b", EDDY_ATTRIBUTE_INT, {.integer = 2}}), &by_name),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(by_name, EDDY_ALL_AXES, NULL), NULL), 30);
    cr_assert_eq(eddy_dtype_of(by_name), EDDY_F32);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(call, targets_come_last_or_first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(4), *target = eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL);
    cr_assert_eq(eddy_call("add_into", EDDY_LIST(a, a, target), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(target, EDDY_ALL_AXES, NULL), NULL), 12);
    cr_assert_eq(eddy_call("neg_inplace", EDDY_LIST(target), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(target, EDDY_ALL_AXES, NULL), NULL), -12);
    cr_assert_eq(eddy_call("copy_into", EDDY_LIST(a, target), NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(target, EDDY_ALL_AXES, NULL), NULL), 6);
    cr_assert_eq(eddy_call("matmul_inplace", EDDY_LIST(a, a), NULL, NULL), EDDY_NOT_FOUND);
    eddy_scope_end(scope);
}

Test(call, lists_share_the_operands) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *p = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                *g = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *joined = NULL;
    cr_assert_eq(eddy_call("sgd_step", EDDY_LIST(p, g),
                           EDDY_ATTRIBUTES({"lr", EDDY_ATTRIBUTE_FLOAT, {.floating = 0.5}}), NULL),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(p, EDDY_ALL_AXES, NULL), NULL), 1.5);
    cr_assert_eq(eddy_call("cat", EDDY_LIST(p, g, p),
                           EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}}), &joined),
                 EDDY_OK);
    cr_assert_eq(eddy_count_of(joined), 9);
    cr_assert_eq(eddy_call("sgd_step", EDDY_LIST(p, g, p),
                           EDDY_ATTRIBUTES({"lr", EDDY_ATTRIBUTE_INT, {.integer = 1}}), NULL),
                 EDDY_INVALID_ARGUMENT);
    eddy_scope_end(scope);
}

Test(call, creation_takes_shape_dtype_and_device) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *t = NULL;
    eddy_attribute shape = {"shape", EDDY_ATTRIBUTE_SHAPE, {.shape = EDDY_SHAPE(2, 3)}};
    eddy_attribute dtype = {"dtype", EDDY_ATTRIBUTE_DTYPE, {.dtype = EDDY_I16}};
    eddy_attribute device = {"device", EDDY_ATTRIBUTE_DEVICE, {.device = EDDY_CPU}};
    eddy_list none = {NULL, 0};
    cr_assert_eq(eddy_call("ones", none, EDDY_ATTRIBUTES(device, dtype, shape), &t), EDDY_OK);
    cr_assert_eq(eddy_item_i64(eddy_sum(t, EDDY_ALL_AXES, NULL), NULL), 6);
    cr_assert_eq(eddy_call("ones", none, EDDY_ATTRIBUTES(dtype), &t), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "ones", "shape");
    shape.value.shape.rank = 17;
    cr_assert_eq(eddy_call("ones", none, EDDY_ATTRIBUTES(dtype, shape), &t), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "ones", "shape");
    eddy_scope_end(scope);
}

Test(call, a_generator_gives_the_same_numbers_by_name) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_generator *first = eddy_generator_create(5), *second = eddy_generator_create(5);
    eddy_tensor *a = eddy_rand(EDDY_SHAPE(100), EDDY_F32, EDDY_OPTIONS(rand, .generator = first)),
                *b = NULL;
    eddy_list none = {NULL, 0};
    cr_assert_eq(
        eddy_call("rand", none,
                  EDDY_ATTRIBUTES({"generator", EDDY_ATTRIBUTE_GENERATOR, {.generator = second}},
                                  {"shape", EDDY_ATTRIBUTE_SHAPE, {.shape = EDDY_SHAPE(100)}},
                                  {"dtype", EDDY_ATTRIBUTE_DTYPE, {.dtype = EDDY_F32}}),
                  &b),
        EDDY_OK);
    cr_assert_eq(eddy_item_i64(eddy_sum(eddy_eq(a, b), EDDY_ALL_AXES, NULL), NULL), 100);
    eddy_generator_release(&first);
    eddy_generator_release(&second);
    eddy_scope_end(scope);
}

Test(call, errors_name_entry_and_attribute) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(3), *out = a;
    cr_assert_eq(eddy_call("no_such_op", EDDY_LIST(a), NULL, &out), EDDY_NOT_FOUND);
    expect_error(EDDY_NOT_FOUND, "call", "no_such_op");
    cr_assert_eq(eddy_call(NULL, EDDY_LIST(a), NULL, &out), EDDY_NOT_FOUND);
    expect_error(EDDY_NOT_FOUND, "call", "NULL");
    cr_assert_eq(eddy_call("softmax", EDDY_LIST(a), NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "softmax", "axis is missing");
    cr_assert_eq(eddy_call("exp", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}}), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "exp", "axis is not known");
    cr_assert_eq(eddy_call("softmax", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_FLOAT, {.floating = 0}}), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "softmax", "axis");
    cr_assert_eq(
        eddy_call("softmax", EDDY_LIST(a),
                  EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_INT, {.integer = INT64_C(1) << 40}}),
                  &out),
        EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "softmax", "axis");
    cr_assert_eq(eddy_call("softmax", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}},
                                           {"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}}),
                           &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "softmax", "twice");
    cr_assert_eq(eddy_call("zeros", (eddy_list){NULL, 0},
                           EDDY_ATTRIBUTES({"value", EDDY_ATTRIBUTE_INT, {.integer = 1}}), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "zeros", "value");
    cr_assert_eq(eddy_call("add", EDDY_LIST(a), NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "add", "1 operands");
    cr_assert_eq(eddy_call("add", (eddy_list){NULL, 2}, NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "add", "operands");
    cr_assert_eq(eddy_call("add", (eddy_list){NULL, -1}, NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "add", "operands");
    cr_assert_eq(eddy_call("add_inplace", (eddy_list){NULL, 0}, NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "add", "target");
    cr_assert_eq(eddy_call("exp", EDDY_LIST(a), NULL, NULL), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "exp", "outputs");
    cr_assert_eq(out, a, "an output was written on failure");
    eddy_scope_end(scope);
}

Test(call, axes_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    cr_assert_null(eddy_sum(a, EDDY_AXES(16), NULL));
    expect_error(EDDY_OUT_OF_RANGE, "sum", "16");
    cr_assert_null(eddy_sum(a, EDDY_AXES(-17), NULL));
    expect_error(EDDY_OUT_OF_RANGE, "sum", "-17");
    cr_assert_null(eddy_sum(a, EDDY_AXES(1, 1), NULL));
    expect_error(EDDY_INVALID_ARGUMENT, "sum", "twice");
    cr_assert_null(eddy_sum(a, (eddy_axes){.count = -2}, NULL));
    expect_error(EDDY_INVALID_ARGUMENT, "sum", "-2");
    cr_assert_null(eddy_sum(a, (eddy_axes){.count = 99}, NULL));
    expect_error(EDDY_INVALID_ARGUMENT, "sum", "99");
    cr_assert_eq(eddy_rank_of(eddy_sum(a, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true))),
                 2);
    cr_assert_eq(eddy_rank_of(eddy_sum(a, EDDY_AXES(), NULL)), 0);
    eddy_scope_end(scope);
}

Test(call, options_left_out_or_from_an_older_program_are_defaults) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_sum_options old = {.size = sizeof(size_t), .keeps_dims = true};
    cr_assert_eq(eddy_rank_of(eddy_sum(a, EDDY_AXES(0), &old)), 1,
                 "a field beyond the size was read");
    eddy_sum_options unsized = {.keeps_dims = true};
    cr_assert_eq(eddy_rank_of(eddy_sum(a, EDDY_AXES(0), &unsized)), 2);
    eddy_scope_end(scope);
}

Test(call, zero_of_an_option_with_another_default_is_asked_for_by_flag) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_zero = 0; is_zero < 2; is_zero++) {
        eddy_tensor *p = eddy_ones(EDDY_SHAPE(1), EDDY_F64, NULL),
                    *g = eddy_ones(EDDY_SHAPE(1), EDDY_F64, NULL);
        eddy_tensor *m = eddy_zeros(EDDY_SHAPE(1), EDDY_F64, NULL),
                    *v = eddy_zeros(EDDY_SHAPE(1), EDDY_F64, NULL);
        eddy_tensor *step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);
        cr_assert_eq(eddy_adam_step(EDDY_LIST(p), EDDY_LIST(g), EDDY_LIST(m), EDDY_LIST(v), step,
                                    EDDY_S(0.1), EDDY_OPTIONS(adam_step, .beta1_is_zero = is_zero)),
                     EDDY_OK);
        cr_assert_float_eq(eddy_item_f64(m, NULL), is_zero ? 1.0 : 0.1, 1e-12);
    }
    eddy_scope_end(scope);
}

Test(call, null_and_absent_operands_are_told_apart) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL),
                *w = eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    cr_assert_not_null(eddy_linear(x, w, EDDY_NONE));
    cr_assert_null(eddy_linear(x, w, NULL));
    expect_error(EDDY_INVALID_ARGUMENT, "linear", "bias is NULL");
    cr_assert_null(eddy_relu(eddy_add(x, eddy_matmul(w, w))));
    expect_error(EDDY_SHAPE_MISMATCH, "matmul", "");
    cr_assert_null(eddy_add(x, EDDY_NONE));
    cr_assert_neq(eddy_error_take(NULL), EDDY_OK);
    eddy_scope_end(scope);
}

Test(call, long_lists_are_passed_on_whole) {
    enum { COUNT = 500 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *items[COUNT];
    for (int i = 0; i < COUNT; i++)
        items[i] = eddy_full(EDDY_SHAPE(2), EDDY_S(i), EDDY_I64, NULL);
    eddy_tensor *joined = eddy_cat((eddy_list){items, COUNT}, 0);
    cr_assert_eq(eddy_item_i64(eddy_sum(joined, EDDY_ALL_AXES, NULL), NULL), COUNT * (COUNT - 1));
    cr_assert_null(eddy_cat((eddy_list){items, -1}, 0));
    expect_error(EDDY_INVALID_ARGUMENT, "cat", "list");
    eddy_scope_end(scope);
}

Test(call, functions_made_of_ops_have_names_too) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(3), *one = NULL, *two[2], *parts[4] = {a, a, a, a};
    cr_assert_eq(eddy_call("einsum", EDDY_LIST(a, a),
                           EDDY_ATTRIBUTES({"equation", EDDY_ATTRIBUTE_TEXT, {.text = "i,i->"}}),
                           &one),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(one, NULL), 5);
    cr_assert_eq(eddy_call("outer", EDDY_LIST(a, a), NULL, &one), EDDY_OK);
    cr_assert_eq(eddy_count_of(one), 9);
    cr_assert_eq(eddy_item_f64(eddy_sum(one, EDDY_ALL_AXES, NULL), NULL), 9);
    cr_assert_eq(eddy_call("meshgrid", EDDY_LIST(a, counting(2)),
                           EDDY_ATTRIBUTES(
                               {"indexing", EDDY_ATTRIBUTE_CHOICE, {.integer = EDDY_INDEXING_XY}}),
                           two),
                 EDDY_OK);
    cr_assert(eddy_dim_of(two[1], 0) == 2 && eddy_dim_of(two[1], 1) == 3);
    cr_assert_eq(eddy_call("split", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"size", EDDY_ATTRIBUTE_INT, {.integer = 2}},
                                           {"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}},
                                           {"capacity", EDDY_ATTRIBUTE_INT, {.integer = 4}}),
                           parts),
                 EDDY_OK);
    cr_assert(eddy_count_of(parts[0]) == 2 && eddy_count_of(parts[1]) == 1 && !parts[2] &&
              !parts[3]);
    cr_assert_eq(eddy_item_f64(parts[1], NULL), 2);
    cr_assert_eq(eddy_call("chunk", EDDY_LIST(a),
                           EDDY_ATTRIBUTES({"chunks", EDDY_ATTRIBUTE_INT, {.integer = 3}},
                                           {"axis", EDDY_ATTRIBUTE_INT, {.integer = 0}},
                                           {"capacity", EDDY_ATTRIBUTE_INT, {.integer = 3}}),
                           parts),
                 EDDY_OK);
    cr_assert_eq(eddy_item_f64(parts[2], NULL), 2);
    eddy_tensor *rows = eddy_reshape(a, EDDY_SHAPE(1, 3)),
                *window = eddy_ones(EDDY_SHAPE(1, 1, 2), EDDY_F32, NULL);
    cr_assert_eq(eddy_call("conv1d", EDDY_LIST(rows, window, EDDY_NONE),
                           EDDY_ATTRIBUTES({"padding", EDDY_ATTRIBUTE_INT, {.integer = 1}},
                                           {"stride", EDDY_ATTRIBUTE_INT, {.integer = 2}}),
                           &one),
                 EDDY_OK);
    cr_assert(eddy_count_of(one) == 2 &&
              eddy_item_f64(eddy_sum(one, EDDY_ALL_AXES, NULL), NULL) == 3);
    cr_assert_eq(
        eddy_call("prelu",
                  EDDY_LIST(eddy_neg(a), eddy_full(EDDY_SHAPE(1), EDDY_S(0.5), EDDY_F32, NULL)),
                  NULL, &one),
        EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(one, EDDY_ALL_AXES, NULL), NULL), -1.5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(call, functions_made_of_ops_are_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(3), *product = NULL;
    eddy_requires_grad_set(a, true);
    cr_assert_eq(eddy_call("einsum", EDDY_LIST(a, a),
                           EDDY_ATTRIBUTES({"equation", EDDY_ATTRIBUTE_TEXT, {.text = "i,i->"}}),
                           &product),
                 EDDY_OK);
    cr_assert_eq(eddy_backward(product), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(eddy_grad_of(a), EDDY_ALL_AXES, NULL), NULL), 6);
    eddy_scope_end(scope);
}

Test(call, errors_of_functions_made_of_ops) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = counting(3), *out = a;
    cr_assert_eq(eddy_call("einsum", EDDY_LIST(a, a), NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "einsum", "equation is missing (f32[3], f32[3])");
    cr_assert_eq(eddy_call("einsum", EDDY_LIST(a, a),
                           EDDY_ATTRIBUTES({"equation", EDDY_ATTRIBUTE_TEXT, {.text = NULL}}),
                           &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "einsum", "equation");
    cr_assert_eq(eddy_call("einsum", EDDY_LIST(a, a),
                           EDDY_ATTRIBUTES({"equation", EDDY_ATTRIBUTE_INT, {.integer = 1}}), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "einsum", "equation");
    cr_assert_eq(eddy_call("outer", EDDY_LIST(a), NULL, &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "outer", "1 operands do not fit the op (f32[3])");
    cr_assert_eq(eddy_call("outer", EDDY_LIST(a, a), NULL, NULL), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "outer", "outputs is NULL");
    cr_assert_eq(eddy_call("outer_into", EDDY_LIST(a, a, a), NULL, NULL), EDDY_NOT_FOUND);
    expect_error(EDDY_NOT_FOUND, "call", "outer_into");
    cr_assert_eq(out, a, "untouched");
    eddy_scope_end(scope);
}
