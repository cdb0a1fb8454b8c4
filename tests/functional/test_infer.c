/* Shape rules: what comes out, and what is refused. */
#include <criterion/criterion.h>
#include <functional/arguments.h>
#include <functional/infer.h>
#include <functional/op_table.h>
#include <math.h>
#include <string.h>

#define NEGATIVE_BIT(axis) (1u << (15 - (axis)))

static eddy_spec spec(eddy_dtype dtype, eddy_shape shape) {
    return (eddy_spec){.dtype = dtype, .shape = shape};
}

static eddy_status infer(const eddy_op *op, const eddy_spec *inputs, int64_t count,
                         const int64_t *list_counts, void *attributes, eddy_spec *output) {
    eddy_infer call = {.op = op,
                       .inputs = inputs,
                       .input_count = count,
                       .list_counts = list_counts,
                       .attributes = attributes,
                       .outputs = output};
    *output = (eddy_spec){.dtype = EDDY_DTYPE_COUNT, .shape = {.rank = -1}};
    return op->infer(&call);
}

static void expect(const eddy_spec *output, eddy_dtype dtype, eddy_shape shape) {
    cr_assert_eq(output->dtype, dtype, "%s", eddy_dtype_name(output->dtype));
    cr_assert_eq(output->shape.rank, shape.rank);
    for (int32_t d = 0; d < shape.rank; d++)
        cr_assert_eq(output->shape.dims[d], shape.dims[d], "dim %d is %lld", (int)d,
                     (long long)output->shape.dims[d]);
}

static eddy_status last_status(void) {
    eddy_error error;
    return eddy_error_take(&error);
}

Test(infer, reductions_drop_or_keep_their_axes) {
    eddy_spec in = spec(EDDY_I8, EDDY_SHAPE(2, 3, 4)), out;
    eddy_arguments_sum a = {.axes = NEGATIVE_BIT(-1) | 1u};
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE(3));
    cr_assert_eq(a.axes, 5u);
    a = (eddy_arguments_sum){.axes = NEGATIVE_BIT(-2), .keeps_dims = true};
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE(2, 1, 4));
    a = (eddy_arguments_sum){0};
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE());
    cr_assert_eq(a.axes, 7u);
    in = spec(EDDY_BF16, EDDY_SHAPE());
    a = (eddy_arguments_sum){.axes = NEGATIVE_BIT(-1)};
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_BF16, EDDY_SHAPE());
    cr_assert_eq(a.axes, 0u);
}

Test(infer, reductions_refuse_axes_that_are_not_there_or_named_twice) {
    eddy_spec in = spec(EDDY_F32, EDDY_SHAPE(2, 3)), out;
    eddy_arguments_sum a = {.axes = 1u << 2};
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OUT_OF_RANGE);
    a.axes = NEGATIVE_BIT(-3);
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OUT_OF_RANGE);
    a.axes = NEGATIVE_BIT(-1) | 2u;
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
    in.dtype = EDDY_I32;
    a.axes = 0;
    cr_assert_eq(infer(&eddy_op_mean, &in, 1, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
    cr_assert_eq(last_status(), EDDY_OUT_OF_RANGE);
}

Test(infer, a_choice_needs_something_to_choose_from) {
    eddy_spec in = spec(EDDY_F32, EDDY_SHAPE(2, 0)), out;
    eddy_arguments_max a = {.axes = 2u};
    cr_assert_eq(infer(&eddy_op_max, &in, 1, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
    a.axes = 1u;
    cr_assert_eq(infer(&eddy_op_argmax, &in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE(0));
    a.axes = 2u;
    cr_assert_eq(infer(&eddy_op_sum, &in, 1, NULL, &a, &out), EDDY_OK);
}

/* A reduction without options of its own over all axes. */
static eddy_status reduced(const eddy_op *op, eddy_dtype dtype, eddy_shape shape, eddy_spec *out) {
    eddy_spec in = spec(dtype, shape);
    eddy_arguments_sum a = {0};
    return infer(op, &in, 1, NULL, &a, out);
}

Test(infer, reductions_have_dtypes_of_their_own) {
    eddy_spec out;
    cr_assert_eq(reduced(&eddy_op_prod, EDDY_U8, EDDY_SHAPE(3), &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_prod, EDDY_F16, EDDY_SHAPE(0), &out), EDDY_OK);
    expect(&out, EDDY_F16, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_min, EDDY_BOOL, EDDY_SHAPE(3), &out), EDDY_OK);
    expect(&out, EDDY_BOOL, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_argmin, EDDY_F32, EDDY_SHAPE(3), &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_any, EDDY_F32, EDDY_SHAPE(0), &out), EDDY_OK);
    expect(&out, EDDY_BOOL, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_all, EDDY_U8, EDDY_SHAPE(0, 3), &out), EDDY_OK);
    expect(&out, EDDY_BOOL, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_logsumexp, EDDY_BF16, EDDY_SHAPE(0), &out), EDDY_OK);
    expect(&out, EDDY_BF16, EDDY_SHAPE());
    cr_assert_eq(reduced(&eddy_op_logsumexp, EDDY_I32, EDDY_SHAPE(2), &out), EDDY_DTYPE_MISMATCH);
    cr_assert_eq(reduced(&eddy_op_min, EDDY_F32, EDDY_SHAPE(0), &out), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(reduced(&eddy_op_argmin, EDDY_F32, EDDY_SHAPE(2, 0), &out), EDDY_INVALID_ARGUMENT);
}

Test(infer, moments_check_their_numbers) {
    eddy_spec in = spec(EDDY_F32, EDDY_SHAPE(0, 3)), out;
    eddy_arguments_var v = {.axes = 1u, .correction = 1};
    cr_assert_eq(infer(&eddy_op_var, &in, 1, NULL, &v, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(3));
    v.correction = NAN;
    cr_assert_eq(infer(&eddy_op_std, &in, 1, NULL, &v, &out), EDDY_INVALID_ARGUMENT);
    eddy_arguments_norm n = {.axes = 1u, .keeps_dims = true, .p = 2};
    cr_assert_eq(infer(&eddy_op_norm, &in, 1, NULL, &n, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(1, 3));
    const double refused[] = {NAN, INFINITY, -INFINITY, -1};
    for (int i = 0; i < 4; i++) {
        n.p = refused[i];
        cr_assert_eq(infer(&eddy_op_norm, &in, 1, NULL, &n, &out), EDDY_INVALID_ARGUMENT, "%g",
                     refused[i]);
    }
    n = (eddy_arguments_norm){.axes = 2u, .p = INFINITY};
    cr_assert_eq(infer(&eddy_op_norm, &in, 1, NULL, &n, &out), EDDY_OK,
                 "no output, nothing to choose");
    in.dtype = EDDY_I64;
    n.p = v.correction = 1;
    cr_assert_eq(infer(&eddy_op_norm, &in, 1, NULL, &n, &out), EDDY_DTYPE_MISMATCH);
    cr_assert_eq(infer(&eddy_op_var, &in, 1, NULL, &v, &out), EDDY_DTYPE_MISMATCH);
}

Test(infer, a_search_along_an_axis_has_two_outputs) {
    eddy_spec in = spec(EDDY_I8, EDDY_SHAPE(2, 3, 4)), out[2];
    eddy_arguments_max_dim a = {.axis = -2};
    cr_assert_eq(infer(&eddy_op_max_dim, &in, 1, NULL, &a, out), EDDY_OK);
    expect(&out[0], EDDY_I8, EDDY_SHAPE(2, 4));
    expect(&out[1], EDDY_I64, EDDY_SHAPE(2, 4));
    a = (eddy_arguments_max_dim){.axis = 2, .keeps_dims = true};
    cr_assert_eq(infer(&eddy_op_min_dim, &in, 1, NULL, &a, out), EDDY_OK);
    expect(&out[1], EDDY_I64, EDDY_SHAPE(2, 3, 1));
    a.axis = 3;
    cr_assert_eq(infer(&eddy_op_max_dim, &in, 1, NULL, &a, out), EDDY_OUT_OF_RANGE);
    in.shape = EDDY_SHAPE(2, 0);
    a.axis = 1;
    cr_assert_eq(infer(&eddy_op_max_dim, &in, 1, NULL, &a, out), EDDY_INVALID_ARGUMENT);
    in.shape = EDDY_SHAPE();
    a = (eddy_arguments_max_dim){.axis = -1};
    cr_assert_eq(infer(&eddy_op_min_dim, &in, 1, NULL, &a, out), EDDY_OK);
    expect(&out[0], EDDY_I8, EDDY_SHAPE());
}

Test(infer, scans_keep_the_shape) {
    eddy_spec in[] = {spec(EDDY_U8, EDDY_SHAPE(2, 3)), spec(EDDY_F16, EDDY_SHAPE(2, 3))}, out;
    eddy_arguments_cumsum a = {.axis = -1};
    cr_assert_eq(infer(&eddy_op_cumsum, in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE(2, 3));
    cr_assert_eq(a.axis, 1);
    cr_assert_eq(infer(&eddy_op_cumprod, &in[1], 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F16, EDDY_SHAPE(2, 3));
    a.axis = 2;
    cr_assert_eq(infer(&eddy_op_cumprod, in, 1, NULL, &a, &out), EDDY_OUT_OF_RANGE);
    a.axis = 0;
    cr_assert_eq(infer(&eddy_op_cumprod_backward, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
    in[0].dtype = EDDY_F32;
    cr_assert_eq(infer(&eddy_op_cumprod_backward, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
    in[0] = spec(EDDY_F16, EDDY_SHAPE(3, 2));
    cr_assert_eq(infer(&eddy_op_cumprod_backward, in, 2, NULL, &a, &out), EDDY_SHAPE_MISMATCH);
    in[0].shape = EDDY_SHAPE();
    a.axis = -1;
    cr_assert_eq(infer(&eddy_op_cumsum, in, 1, NULL, &a, &out), EDDY_OK);
}

Test(infer, sorting_keeps_the_shape_and_topk_shortens_it) {
    eddy_spec in = spec(EDDY_BF16, EDDY_SHAPE(2, 30)), out[3];
    eddy_arguments_sort s = {.axis = -1};
    cr_assert_eq(infer(&eddy_op_sort, &in, 1, NULL, &s, out), EDDY_OK);
    expect(&out[0], EDDY_BF16, EDDY_SHAPE(2, 30));
    expect(&out[1], EDDY_I64, EDDY_SHAPE(2, 30));
    cr_assert_eq(infer(&eddy_op_argsort, &in, 1, NULL, &s, out), EDDY_OK);
    expect(&out[0], EDDY_I64, EDDY_SHAPE(2, 30));
    s.axis = 2;
    cr_assert_eq(infer(&eddy_op_argsort, &in, 1, NULL, &s, out), EDDY_OUT_OF_RANGE);
    eddy_arguments_topk t = {.kernel = {.axis = 1}, .k = 30};
    cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OK);
    expect(&out[0], EDDY_BF16, EDDY_SHAPE(2, 30));
    t.k = 0;
    cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OK);
    expect(&out[1], EDDY_I64, EDDY_SHAPE(2, 0));
    const int64_t refused[] = {31, -1, INT64_MAX};
    for (int i = 0; i < 3; i++) {
        t.k = refused[i];
        cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OUT_OF_RANGE);
    }
    t = (eddy_arguments_topk){.kernel = {.axis = -3}, .k = 1};
    cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OUT_OF_RANGE);
    in.shape = EDDY_SHAPE();
    t.kernel.axis = -1;
    cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OK);
    expect(&out[0], EDDY_BF16, EDDY_SHAPE());
    t.k = 0;
    cr_assert_eq(infer(&eddy_op_topk, &in, 1, NULL, &t, out), EDDY_OUT_OF_RANGE);
}

Test(infer, bincount_wants_a_line_of_integers) {
    eddy_spec in[] = {spec(EDDY_U8, EDDY_SHAPE(5)), {.is_absent = true}}, out;
    eddy_arguments_bincount a = {.minlength = 3};
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_OK);
    cr_assert_eq(out.dtype, EDDY_I64);
    in[1] = spec(EDDY_F32, EDDY_SHAPE(5));
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_OK);
    cr_assert_eq(out.dtype, EDDY_F32);
    in[1].dtype = EDDY_I32;
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_OK);
    cr_assert_eq(out.dtype, EDDY_F64);
    in[1].shape = EDDY_SHAPE(4);
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_SHAPE_MISMATCH);
    in[1].is_absent = true;
    a.minlength = -1;
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
    a.minlength = 0;
    in[0].shape = EDDY_SHAPE(5, 1);
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_SHAPE_MISMATCH);
    in[0] = spec(EDDY_BOOL, EDDY_SHAPE(5));
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
    in[0].dtype = EDDY_F32;
    cr_assert_eq(infer(&eddy_op_bincount, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
}

Test(infer, matmul_treats_vectors_as_rows_and_columns) {
    struct {
        eddy_shape a, b, out;
        eddy_status status;
    } cases[] = {
        {EDDY_SHAPE(2, 3), EDDY_SHAPE(3, 4), EDDY_SHAPE(2, 4), EDDY_OK},
        {EDDY_SHAPE(3), EDDY_SHAPE(3), EDDY_SHAPE(), EDDY_OK},
        {EDDY_SHAPE(3), EDDY_SHAPE(5, 3, 4), EDDY_SHAPE(5, 4), EDDY_OK},
        {EDDY_SHAPE(5, 2, 3), EDDY_SHAPE(3), EDDY_SHAPE(5, 2), EDDY_OK},
        {EDDY_SHAPE(5, 1, 2, 3), EDDY_SHAPE(7, 3, 4), EDDY_SHAPE(5, 7, 2, 4), EDDY_OK},
        {EDDY_SHAPE(0, 3), EDDY_SHAPE(3, 0), EDDY_SHAPE(0, 0), EDDY_OK},
        {EDDY_SHAPE(2, 0), EDDY_SHAPE(0, 4), EDDY_SHAPE(2, 4), EDDY_OK},
        {EDDY_SHAPE(2, 3), EDDY_SHAPE(4, 3), EDDY_SHAPE(), EDDY_SHAPE_MISMATCH},
        {EDDY_SHAPE(2, 2, 3), EDDY_SHAPE(3, 3, 4), EDDY_SHAPE(), EDDY_SHAPE_MISMATCH},
        {EDDY_SHAPE(), EDDY_SHAPE(3), EDDY_SHAPE(), EDDY_SHAPE_MISMATCH},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eddy_spec in[] = {spec(EDDY_F16, cases[i].a), spec(EDDY_F16, cases[i].b)}, out;
        cr_assert_eq(infer(&eddy_op_matmul, in, 2, NULL, NULL, &out), cases[i].status, "case %zu",
                     i);
        if (cases[i].status == EDDY_OK)
            expect(&out, EDDY_F16, cases[i].out);
    }
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(2, 3)), spec(EDDY_F64, EDDY_SHAPE(3, 2))}, out;
    cr_assert_eq(infer(&eddy_op_matmul, in, 2, NULL, NULL, &out), EDDY_DTYPE_MISMATCH);
    in[0].dtype = in[1].dtype = EDDY_BOOL;
    cr_assert_eq(infer(&eddy_op_mm, in, 2, NULL, NULL, &out), EDDY_DTYPE_MISMATCH);
}

Test(infer, linear_checks_weight_and_bias) {
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(5, 2, 3)),
                      spec(EDDY_F32, EDDY_SHAPE(4, 3)),
                      {.is_absent = true}},
              out;
    cr_assert_eq(infer(&eddy_op_linear, in, 3, NULL, NULL, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(5, 2, 4));
    in[2] = spec(EDDY_F32, EDDY_SHAPE(4));
    cr_assert_eq(infer(&eddy_op_linear, in, 3, NULL, NULL, &out), EDDY_OK);
    in[2] = spec(EDDY_F32, EDDY_SHAPE(3));
    cr_assert_eq(infer(&eddy_op_linear, in, 3, NULL, NULL, &out), EDDY_SHAPE_MISMATCH);
    in[2] = spec(EDDY_F64, EDDY_SHAPE(4));
    cr_assert_eq(infer(&eddy_op_linear, in, 3, NULL, NULL, &out), EDDY_DTYPE_MISMATCH);
}

Test(infer, arange_counts_exactly) {
    struct {
        eddy_scalar start, end, step;
        int64_t count; /* -1: refused */
    } cases[] = {
        {EDDY_S(0), EDDY_S(10), EDDY_S(3), 4},
        {EDDY_S(10), EDDY_S(0), EDDY_S(-3), 4},
        {EDDY_S(3), EDDY_S(3), EDDY_S(1), 0},
        {EDDY_S(0.0), EDDY_S(1.0), EDDY_S(0.25), 4},
        {EDDY_S(0.0), EDDY_S(1.1), EDDY_S(0.25), 5},
        {EDDY_S(INT64_MIN), EDDY_S(INT64_MAX), EDDY_S(INT64_MAX), 3},
        {EDDY_S(0), EDDY_S(10), EDDY_S(0), -1},
        {EDDY_S(0), EDDY_S(10), EDDY_S(-1), -1},
        {EDDY_S(0.0), EDDY_S(10), EDDY_S(-1.0), -1},
        {EDDY_S(0.0), EDDY_S((double)NAN), EDDY_S(1), -1},
        {EDDY_S(0.0), EDDY_S((double)INFINITY), EDDY_S(1), -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eddy_arguments_arange a = {
            .kernel = {cases[i].start, cases[i].step}, .end = cases[i].end, .dtype = EDDY_I64};
        eddy_spec out;
        eddy_status status = infer(&eddy_op_arange, NULL, 0, NULL, &a, &out);
        cr_assert_eq(status, cases[i].count < 0 ? EDDY_INVALID_ARGUMENT : EDDY_OK, "case %zu", i);
        if (status == EDDY_OK)
            expect(&out, EDDY_I64, EDDY_SHAPE(cases[i].count));
    }
    eddy_arguments_arange a = {
        .kernel = {EDDY_S(0), EDDY_S(1)}, .end = EDDY_S(2), .dtype = EDDY_BOOL};
    eddy_spec out;
    cr_assert_eq(infer(&eddy_op_arange, NULL, 0, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
    a.dtype = (eddy_dtype)77;
    cr_assert_eq(infer(&eddy_op_arange, NULL, 0, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
}

Test(infer, cat_adds_up_one_axis) {
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(2, 3)), spec(EDDY_F32, EDDY_SHAPE(2, 0)),
                      spec(EDDY_F32, EDDY_SHAPE(2, 5))},
              out;
    int64_t count = 3;
    eddy_arguments_cat a = {.axis = -1};
    cr_assert_eq(infer(&eddy_op_cat, in, 3, &count, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(2, 8));
    cr_assert_eq(a.axis, 1);
    a.axis = 0;
    cr_assert_eq(infer(&eddy_op_cat, in, 3, &count, &a, &out), EDDY_SHAPE_MISMATCH);
    a.axis = 2;
    cr_assert_eq(infer(&eddy_op_cat, in, 3, &count, &a, &out), EDDY_OUT_OF_RANGE);
    count = 0;
    cr_assert_eq(infer(&eddy_op_cat, in, 0, &count, &a, &out), EDDY_INVALID_ARGUMENT);
    count = 2;
    in[0].shape.dims[1] = in[1].shape.dims[1] = INT64_MAX / 2 + 1;
    a.axis = 1;
    cr_assert_eq(infer(&eddy_op_cat, in, 2, &count, &a, &out), EDDY_SIZE_OVERFLOW);
}

Test(infer, indices_are_integers_that_fit) {
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(4, 5)), spec(EDDY_I32, EDDY_SHAPE(7))}, out;
    eddy_arguments_index_select a = {.axis = -2};
    cr_assert_eq(infer(&eddy_op_index_select, in, 2, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(7, 5));
    in[1] = spec(EDDY_F32, EDDY_SHAPE(7));
    cr_assert_eq(infer(&eddy_op_index_select, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
    in[1] = spec(EDDY_I64, EDDY_SHAPE(4, 9));
    a.axis = 1;
    cr_assert_eq(infer(&eddy_op_gather, in, 2, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(4, 9));
    a.axis = 0;
    cr_assert_eq(infer(&eddy_op_gather, in, 2, NULL, &a, &out), EDDY_SHAPE_MISMATCH);
    eddy_arguments_one_hot h = {.classes = 3};
    cr_assert_eq(infer(&eddy_op_one_hot, &in[1], 1, NULL, &h, &out), EDDY_OK);
    expect(&out, EDDY_I64, EDDY_SHAPE(4, 9, 3));
    h.classes = 0;
    cr_assert_eq(infer(&eddy_op_one_hot, &in[1], 1, NULL, &h, &out), EDDY_INVALID_ARGUMENT);
}

Test(infer, losses_follow_their_reduction) {
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(8, 10)), spec(EDDY_I64, EDDY_SHAPE(8))}, out;
    eddy_arguments_cross_entropy a = {.reduction = EDDY_REDUCTION_MEAN};
    cr_assert_eq(infer(&eddy_op_cross_entropy, in, 2, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE());
    a.reduction = EDDY_REDUCTION_NONE;
    cr_assert_eq(infer(&eddy_op_cross_entropy, in, 2, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(8));
    eddy_spec back[] = {out, in[0], in[1]};
    cr_assert_eq(infer(&eddy_op_cross_entropy_backward, back, 3, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_F32, EDDY_SHAPE(8, 10));
    a.reduction = EDDY_REDUCTION_SUM;
    cr_assert_eq(infer(&eddy_op_cross_entropy_backward, back, 3, NULL, &a, &out),
                 EDDY_SHAPE_MISMATCH);
    a.reduction = 3;
    cr_assert_eq(infer(&eddy_op_cross_entropy, in, 2, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
    a.reduction = 0;
    in[1].shape.dims[0] = 9;
    cr_assert_eq(infer(&eddy_op_cross_entropy, in, 2, NULL, &a, &out), EDDY_SHAPE_MISMATCH);
    in[1] = spec(EDDY_I32, EDDY_SHAPE(8));
    cr_assert_eq(infer(&eddy_op_cross_entropy, in, 2, NULL, &a, &out), EDDY_DTYPE_MISMATCH);
}

Test(infer, optimisers_want_lists_that_match) {
    eddy_spec in[9], out;
    for (int i = 0; i < 8; i++)
        in[i] = spec(EDDY_F32, i % 2 ? EDDY_SHAPE(3) : EDDY_SHAPE(2, 2));
    in[8] = spec(EDDY_I64, EDDY_SHAPE());
    int64_t counts[] = {2, 2, 2, 2};
    eddy_arguments_adam_step a = {0};
    cr_assert_eq(infer(&eddy_op_adam_step, in, 9, counts, &a, &out), EDDY_OK);
    in[8].dtype = EDDY_F32;
    cr_assert_eq(infer(&eddy_op_adam_step, in, 9, counts, &a, &out), EDDY_DTYPE_MISMATCH);
    in[8].dtype = EDDY_I64;
    in[5].shape.dims[0] = 4;
    cr_assert_eq(infer(&eddy_op_adam_step, in, 9, counts, &a, &out), EDDY_SHAPE_MISMATCH);
    eddy_arguments_sgd_step s = {0};
    int64_t uneven[] = {3, 1};
    cr_assert_eq(infer(&eddy_op_sgd_step, in, 4, uneven, &s, &out), EDDY_INVALID_ARGUMENT);
}

Test(infer, copies_keep_their_shape) {
    eddy_spec in[] = {spec(EDDY_F32, EDDY_SHAPE(3)), spec(EDDY_I8, EDDY_SHAPE(2, 3))}, out;
    cr_assert_eq(infer(&eddy_op_copy_into, in, 2, NULL, NULL, &out), EDDY_OK);
    in[1].shape = EDDY_SHAPE(2, 1);
    cr_assert_eq(infer(&eddy_op_copy_into, in, 2, NULL, NULL, &out), EDDY_SHAPE_MISMATCH);
    eddy_arguments_cast a = {.dtype = EDDY_BOOL};
    cr_assert_eq(infer(&eddy_op_cast, in, 1, NULL, &a, &out), EDDY_OK);
    expect(&out, EDDY_BOOL, EDDY_SHAPE(3));
    a.dtype = EDDY_DTYPE_COUNT;
    cr_assert_eq(infer(&eddy_op_cast, in, 1, NULL, &a, &out), EDDY_INVALID_ARGUMENT);
}
