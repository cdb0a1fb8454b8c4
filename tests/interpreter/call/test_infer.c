#include "../calls.h"

/* PyTorch 2.1: torch.promote_types, rows and columns in the order of the dtypes (no u16 and larger there). */
#define T(name) EDDY_##name
static const eddy_dtype expected[EDDY_DTYPE_COUNT][EDDY_DTYPE_COUNT] = {
    /*          f32     f64     f16     bf16    i8      u8      i16     i32     i64     bool */
    [EDDY_F32] = {T(F32), T(F64), T(F32), T(F32), T(F32), T(F32), T(F32), T(F32), T(F32), T(F32)},
    [EDDY_F64] = {T(F64), T(F64), T(F64), T(F64), T(F64), T(F64), T(F64), T(F64), T(F64), T(F64)},
    [EDDY_F16] = {T(F32), T(F64), T(F16), T(F32), T(F16), T(F16), T(F16), T(F16), T(F16), T(F16)},
    [EDDY_BF16] = {T(F32), T(F64), T(F32), T(BF16), T(BF16), T(BF16), T(BF16), T(BF16), T(BF16),
                   T(BF16)},
    [EDDY_I8] = {T(F32), T(F64), T(F16), T(BF16), T(I8), T(I16), T(I16), T(I32), T(I64), T(I8)},
    [EDDY_U8] = {T(F32), T(F64), T(F16), T(BF16), T(I16), T(U8), T(I16), T(I32), T(I64), T(U8)},
    [EDDY_I16] = {T(F32), T(F64), T(F16), T(BF16), T(I16), T(I16), T(I16), T(I32), T(I64), T(I16)},
    [EDDY_I32] = {T(F32), T(F64), T(F16), T(BF16), T(I32), T(I32), T(I32), T(I32), T(I64), T(I32)},
    [EDDY_I64] = {T(F32), T(F64), T(F16), T(BF16), T(I64), T(I64), T(I64), T(I64), T(I64), T(I64)},
    [EDDY_BOOL] = {T(F32), T(F64), T(F16), T(BF16), T(I8), T(U8), T(I16), T(I32), T(I64), T(BOOL)},
};

static eddy_dtype compute(const char *op, eddy_dtype a, int32_t rank_a, eddy_dtype b,
                          int32_t rank_b) {
    eddy_spec specs[2] = {{.dtype = a, .shape = {.rank = rank_a, .dims = {1}}},
                          {.dtype = b, .shape = {.rank = rank_b, .dims = {1}}}};
    eddy_infer infer = {.op = eddy_op_find(op), .inputs = specs, .input_count = 2};
    return eddy_infer_compute(&infer);
}

Test(infer, tensors_promote_as_in_pytorch) {
    for (int a = 0; a < EDDY_DTYPE_COUNT; a++)
        for (int b = 0; b < EDDY_DTYPE_COUNT; b++) {
            cr_assert_eq(compute("add", (eddy_dtype)a, 1, (eddy_dtype)b, 1), expected[a][b],
                         "%s + %s", eddy_dtype_name((eddy_dtype)a), eddy_dtype_name((eddy_dtype)b));
            cr_assert_eq(compute("add", (eddy_dtype)a, 0, (eddy_dtype)b, 0), expected[a][b]);
        }
}

Test(infer, a_tensor_of_rank_0_counts_by_category) {
    cr_assert_eq(compute("add", EDDY_I8, 1, EDDY_I64, 0), EDDY_I8);
    cr_assert_eq(compute("add", EDDY_F16, 1, EDDY_F64, 0), EDDY_F16);
    cr_assert_eq(compute("add", EDDY_F16, 1, EDDY_I64, 0), EDDY_F16);
    cr_assert_eq(compute("add", EDDY_I32, 1, EDDY_F64, 0), EDDY_F64);
    cr_assert_eq(compute("add", EDDY_BOOL, 1, EDDY_U8, 0), EDDY_U8);
    cr_assert_eq(compute("add", EDDY_I64, 0, EDDY_I8, 2), EDDY_I8);
}

static eddy_dtype compute_scalar(eddy_dtype dtype, int32_t rank, eddy_scalar scalar) {
    eddy_spec spec = {.dtype = dtype, .shape = {.rank = rank, .dims = {1}}};
    eddy_infer infer = {
        .op = eddy_op_find("add_s"), .inputs = &spec, .input_count = 1, .attributes = &scalar};
    return eddy_infer_compute(&infer);
}

Test(infer, scalars_count_by_category) {
    for (int32_t rank = 0; rank < 2; rank++) {
        cr_assert_eq(compute_scalar(EDDY_I8, rank, EDDY_S(1000)), EDDY_I8);
        cr_assert_eq(compute_scalar(EDDY_F16, rank, EDDY_S(0.5)), EDDY_F16);
        cr_assert_eq(compute_scalar(EDDY_F16, rank, EDDY_S(2)), EDDY_F16);
        cr_assert_eq(compute_scalar(EDDY_U8, rank, EDDY_S(0.5)), EDDY_F32);
        cr_assert_eq(compute_scalar(EDDY_BOOL, rank, EDDY_S(2)), EDDY_I64);
        cr_assert_eq(compute_scalar(EDDY_BOOL, rank, EDDY_S((bool)true)), EDDY_BOOL);
    }
}

Test(infer, float_ops_turn_integers_into_f32) {
    eddy_spec spec = {.dtype = EDDY_I64, .shape = {.rank = 1, .dims = {1}}};
    eddy_infer infer = {.op = eddy_op_find("exp"), .inputs = &spec, .input_count = 1};
    cr_assert_eq(eddy_infer_compute(&infer), EDDY_F32);
    spec.dtype = EDDY_F64;
    cr_assert_eq(eddy_infer_compute(&infer), EDDY_F64);
}

Test(infer, broadcasting) {
    const struct {
        eddy_shape a, b, both;
    } rows[] = {
        {EDDY_SHAPE(), EDDY_SHAPE(2, 3), EDDY_SHAPE(2, 3)},
        {EDDY_SHAPE(3), EDDY_SHAPE(2, 1), EDDY_SHAPE(2, 3)},
        {EDDY_SHAPE(1), EDDY_SHAPE(0), EDDY_SHAPE(0)},
        {EDDY_SHAPE(2, 0, 1), EDDY_SHAPE(1, 4), EDDY_SHAPE(2, 0, 4)},
        {EDDY_SHAPE(5, 1, 2), EDDY_SHAPE(3, 1), EDDY_SHAPE(5, 3, 2)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert(
            has_shape(call("add", OF(counting(rows[i].a), counting(rows[i].b))), rows[i].both),
            "row %zu", i);
        cr_assert(
            has_shape(call("add", OF(counting(rows[i].b), counting(rows[i].a))), rows[i].both),
            "row %zu", i);
    }
    cr_assert_null(call("add", OF(counting(EDDY_SHAPE(0)), counting(EDDY_SHAPE(2)))));
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH, "[0] and [2]");
}

Test(infer, operands_are_walked_with_lists_spread_out) {
    static const eddy_op_operand operands[] = {{.name = "a", .kind = EDDY_OPERAND_LIST},
                                               {.name = "b"},
                                               {.name = "c", .kind = EDDY_OPERAND_LIST},
                                               {.name = "d"}};
    eddy_op op = {.operands = operands, .operand_count = 4};
    const int64_t counts[] = {2, 0};
    cr_assert_eq(eddy_infer_input_count(&op, counts), 4);
    cr_assert_eq(eddy_infer_input_count(&op, NULL), -1);
    const struct {
        int64_t counts[2];
        const char *names, *items; /* '-': no list's */
    } walks[] = {{{2, 0}, "aabd", "01--"},
                 {{2, 3}, "aabcccd", "01-012-"},
                 {{0, 1}, "bcd", "-0-"},
                 {{0, 0}, "bd", "--"}};
    for (int w = 0; w < 4; w++) {
        eddy_operand_iterator walk;
        eddy_operand_iterator_begin(&walk, &op, walks[w].counts);
        for (int i = 0; walks[w].names[i]; i++) {
            cr_assert_eq(eddy_operand_iterator_next(&walk)->name[0], walks[w].names[i]);
            cr_assert_eq(walk.item, walks[w].items[i] == '-' ? -1 : walks[w].items[i] - '0');
        }
        cr_assert_null(eddy_operand_iterator_next(&walk));
    }
}
