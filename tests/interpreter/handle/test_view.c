/* Views against an index oracle: the elements that a view names, found by hand from those of its base. */
#include "../calls.h"

/* What a view should hold: element numbers of the base in row-major order. */
typedef struct oracle {
    eddy_shape shape;
    int64_t count;
    float values[512];
} oracle;

static int64_t count_of(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return count;
}

static oracle base_of(eddy_shape shape) {
    oracle o = {.shape = shape, .count = count_of(shape)};
    for (int64_t i = 0; i < o.count; i++)
        o.values[i] = (float)i;
    return o;
}

static float at(const oracle *o, const int64_t *index) {
    int64_t place = 0;
    for (int32_t d = 0; d < o->shape.rank; d++)
        place = place * o->shape.dims[d] + index[d];
    return o->values[place];
}

/* The view of shape `shape` whose element at index is from's at map(index). */
static oracle mapped(const oracle *from, eddy_shape shape,
                     void (*map)(const int64_t *index, int64_t *source)) {
    oracle o = {.shape = shape, .count = count_of(shape)};
    for (int64_t i = 0; i < o.count; i++) {
        int64_t index[EDDY_RANK_MAX], source[EDDY_RANK_MAX], rest = i;
        for (int32_t d = shape.rank - 1; d >= 0; d--) {
            index[d] = rest % shape.dims[d];
            rest /= shape.dims[d];
        }
        map(index, source);
        o.values[i] = at(from, source);
    }
    return o;
}

static void check(eddy_tensor *view, const oracle *o) {
    cr_assert_not_null(view);
    cr_assert(has_shape(view, o->shape));
    float values[512];
    cr_assert_eq(eddy_read(view, values, (size_t)o->count * sizeof(float), NULL), EDDY_OK);
    for (int64_t i = 0; i < o->count; i++)
        cr_assert_eq(values[i], o->values[i], "element %lld: %g instead of %g", (long long)i,
                     (double)values[i], (double)o->values[i]);
}

static void map_transpose(const int64_t *i, int64_t *s) {
    s[0] = i[2], s[1] = i[1], s[2] = i[0];
}
static void map_slice(const int64_t *i, int64_t *s) {
    s[0] = i[0], s[1] = 1 + 2 * i[1], s[2] = i[2];
}
static void map_select(const int64_t *i, int64_t *s) {
    s[0] = i[0], s[1] = 3, s[2] = i[1];
}
static void map_permute(const int64_t *i, int64_t *s) {
    s[2] = i[0], s[0] = i[1], s[1] = i[2];
}
static void map_expand(const int64_t *i, int64_t *s) {
    s[0] = i[1], s[1] = 0;
}

Test(view, each_kind_names_the_elements_of_the_oracle) {
    oracle o = base_of(EDDY_SHAPE(2, 5, 3));
    eddy_tensor *t = counting(o.shape);
    oracle m = mapped(&o, EDDY_SHAPE(3, 5, 2), map_transpose);
    check(eddy_transpose(t, 0, -1), &m);
    m = mapped(&o, EDDY_SHAPE(2, 2, 3), map_slice);
    check(eddy_slice(t, 1, 1, -1, 2), &m);
    m = mapped(&o, EDDY_SHAPE(2, 3), map_select);
    check(eddy_select(t, 1, -2), &m);
    m = mapped(&o, EDDY_SHAPE(3, 2, 5), map_permute);
    check(eddy_permute(t, EDDY_AXES(2, 0, 1)), &m);
    oracle column = base_of(EDDY_SHAPE(4, 1));
    m = mapped(&column, EDDY_SHAPE(2, 4, 3), map_expand);
    check(eddy_expand(counting(column.shape), EDDY_SHAPE(2, -1, 3)), &m);
    o.shape = EDDY_SHAPE(10, 3);
    check(eddy_reshape(t, EDDY_SHAPE(-1, 3)), &o);
    check(eddy_view(t, EDDY_SHAPE(10, 3)), &o);
    check(eddy_flatten(t, 0, 1), &o);
    o.shape = EDDY_SHAPE(2, 5, 1, 3);
    check(eddy_unsqueeze(t, 2), &o);
    check(eddy_unsqueeze(t, -2), &o);
    o.shape = EDDY_SHAPE(2, 5, 3);
    check(eddy_squeeze(eddy_unsqueeze(t, 1), EDDY_ALL_AXES), &o);
    check(eddy_squeeze(eddy_unsqueeze(t, 0), EDDY_AXES(0, 1)), &o);
}

Test(view, chains_of_views_agree_with_copies) {
    srand(7);
    for (int round = 0; round < 300; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *t = counting(EDDY_SHAPE(3, 4, 5));
        for (int step = 0; step < 6 && eddy_rank_of(t) > 0; step++) {
            eddy_shape shape = eddy_shape_of(t);
            int32_t axis = rand() % shape.rank, other = rand() % shape.rank;
            /* The same view of a contiguous copy must hold the same elements. */
            eddy_tensor *copy = eddy_contiguous(call("clone", OF(t))), *view = NULL, *again = NULL;
            int64_t dim = shape.dims[axis];
            int kind = rand() % 5;
            for (int side = 0; side < 2; side++) {
                eddy_tensor *from = side ? copy : t, **to = side ? &again : &view;
                if (kind == 0)
                    *to = eddy_transpose(from, axis, other);
                else if (kind == 1)
                    *to = eddy_slice(from, axis, 0, dim, 2);
                else if (kind == 2)
                    *to = eddy_reshape(from, EDDY_SHAPE(-1));
                else if (kind == 3)
                    *to = dim > 1 ? eddy_narrow(from, axis, 1, dim - 1)
                                  : eddy_squeeze(from, EDDY_ALL_AXES);
                else
                    *to = shape.rank < 6 ? eddy_unsqueeze(from, axis) : eddy_flatten(from, 0, -1);
            }
            float a[60], b[60];
            size_t bytes = (size_t)eddy_count_of(view) * sizeof(float);
            cr_assert_eq(eddy_read(view, a, bytes, NULL), EDDY_OK);
            cr_assert_eq(eddy_read(again, b, bytes, NULL), EDDY_OK);
            cr_assert_eq(memcmp(a, b, bytes), 0, "round %d, step %d, kind %d", round, step, kind);
            t = view;
        }
        eddy_scope_end(scope);
    }
}

Test(view, a_view_keeps_the_storage_alive_and_shares_writes) {
    eddy_tensor *t = counting(EDDY_SHAPE(4));
    eddy_tensor *tail = eddy_narrow(t, 0, 2, 2);
    cr_assert_eq(call_into("neg", OF(F32(EDDY_SHAPE(2), 8, 9)), tail), EDDY_OK);
    ASSERT_F32(t, 0, 1, -8, -9);
    eddy_release(&t);
    ASSERT_F32(tail, -8, -9);
    eddy_tensor *last = eddy_select(tail, 0, 1);
    eddy_release(&tail);
    cr_assert_eq(eddy_item_f64(last, NULL), -9);
    cr_assert_eq(eddy_offset_of(last), 3);
}

Test(view, what_strides_cannot_say_is_refused_or_copied) {
    eddy_tensor *m = eddy_t(counting(EDDY_SHAPE(2, 3)));
    cr_assert_null(eddy_view(m, EDDY_SHAPE(6)));
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH, "view: the strides of f32[3, 2] do not allow shape [6]");
    ASSERT_F32(eddy_reshape(m, EDDY_SHAPE(6)), 0, 3, 1, 4, 2, 5);
}

Test(view, contiguous_shares_what_is_so_already_and_copies_the_rest) {
    eddy_tensor *t = counting(EDDY_SHAPE(2, 3));
    eddy_tensor *same = eddy_contiguous(t), *part = eddy_contiguous(eddy_narrow(t, 0, 1, 1));
    eddy_tensor *copy = eddy_contiguous(eddy_t(t));
    cr_assert(has_shape(copy, EDDY_SHAPE(3, 2)));
    cr_assert(eddy_is_contiguous(copy) && eddy_offset_of(copy) == 0);
    ASSERT_F32(copy, 0, 3, 1, 4, 2, 5);
    cr_assert_eq(call_into("neg", OF(F32(EDDY_SHAPE(2, 3), 0, 1, 2, 3, 4, 5)), t), EDDY_OK);
    ASSERT_F32(same, 0, -1, -2, -3, -4, -5);
    ASSERT_F32(part, -3, -4, -5);
    ASSERT_F32(copy, 0, 3, 1, 4, 2, 5);
    cr_assert_null(eddy_contiguous(EDDY_NONE));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "contiguous: tensor is EDDY_NONE");
}

Test(view, as_strided_stays_within_the_storage) {
    eddy_tensor *t = counting(EDDY_SHAPE(6));
    ASSERT_F32(eddy_as_strided(t, EDDY_SHAPE(2, 2), (int64_t[]){3, 1}, 1), 1, 2, 4, 5);
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(2, 2), (int64_t[]){3, 1}, 2));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE,
                 "shape [2, 2] from offset 2 reaches element 6 of a storage of 6");
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(3), (int64_t[]){INT64_MAX}, 0));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "reaches element");
    cr_assert(has_shape(eddy_as_strided(t, EDDY_SHAPE(9, 0), (int64_t[]){INT64_MAX, 1}, 6),
                        EDDY_SHAPE(9, 0)));
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(0), (int64_t[]){1}, 7));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "from offset 7");
}

Test(view, as_strided_names_the_argument) {
    eddy_tensor *t = counting(EDDY_SHAPE(6));
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(2, 1), (int64_t[]){1, -1}, 2));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "stride -1 of axis 1 is negative");
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(2), (int64_t[]){1}, -2));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "offset -2 is negative");
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(2), NULL, 0));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no strides for shape [2]");
    cr_assert_null(eddy_as_strided(t, EDDY_SHAPE(2, -3), (int64_t[]){1, 1}, 0));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "shape [2, -3] has a negative dim");
    cr_assert_null(eddy_as_strided(t, (eddy_shape){.rank = 17}, NULL, 0));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "rank 17");
}

Test(view, reshape_names_what_is_wrong_with_a_shape) {
    eddy_tensor *t = counting(EDDY_SHAPE(6));
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(-1, -1)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "shape [-1, -1] has -1 more than once");
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(2, -3)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "shape [2, -3] has a negative dim");
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(INT64_MAX, 2)));
    ASSERT_ERROR(EDDY_SIZE_OVERFLOW, "has 2^63 elements or more");
}

Test(view, zero_sizes) {
    eddy_tensor *t = counting(EDDY_SHAPE(0, 3));
    cr_assert(has_shape(eddy_t(t), EDDY_SHAPE(3, 0)));
    cr_assert(has_shape(eddy_reshape(t, EDDY_SHAPE(5, 0, 2)), EDDY_SHAPE(5, 0, 2)));
    cr_assert(has_shape(eddy_slice(counting(EDDY_SHAPE(3)), 0, 2, 1, 1), EDDY_SHAPE(0)));
    cr_assert(has_shape(eddy_narrow(counting(EDDY_SHAPE(3)), 0, 3, 0), EDDY_SHAPE(0)));
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(-1, 0)), "what is left cannot be known");
    eddy_error_take(NULL);
}

Test(view, wrong_axes_and_sizes_are_named) {
    eddy_tensor *t = counting(EDDY_SHAPE(2, 3));
    cr_assert_null(eddy_select(t, 2, 0));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "select: f32[2, 3] has no axis 2");
    cr_assert_null(eddy_select(t, 1, 3));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index 3");
    cr_assert_null(eddy_narrow(t, 0, 1, INT64_MAX));
    eddy_error_take(NULL);
    cr_assert_null(eddy_slice(t, 0, 0, 1, 0));
    eddy_error_take(NULL);
    cr_assert_not_null(eddy_slice(t, 0, INT64_MIN, INT64_MAX, INT64_MAX), "clamped");
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(4)));
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH, "reshape: the 6 elements of f32[2, 3] do not fill shape [4]");
    cr_assert_null(eddy_reshape(t, EDDY_SHAPE(INT64_MAX, 8)));
    eddy_error_take(NULL);
    cr_assert_null(eddy_permute(t, EDDY_AXES(0, 0)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "permute: axis 0 of f32[2, 3] is named twice");
    cr_assert_null(eddy_squeeze(t, EDDY_AXES(0, 0, 0)));
    eddy_error once;
    cr_assert_eq(eddy_error_take(&once), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(once.more, 0, "one call, one error");
    cr_assert_null(eddy_permute(t, EDDY_ALL_AXES));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "permute: EDDY_ALL_AXES names no order");
    cr_assert_null(eddy_squeeze(t, (eddy_axes){.count = 100}));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "squeeze: 100 axes are named, 16 are possible");
    cr_assert_null(eddy_permute(t, EDDY_AXES(0, 2)));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "permute: f32[2, 3] has no axis 2");
    cr_assert_null(eddy_permute(t, EDDY_AXES(0)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "permute: 1 axes are named, and f32[2, 3] has 2");
    cr_assert_null(eddy_squeeze(t, EDDY_AXES(1, -1)));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "squeeze: axis 1 of f32[2, 3] is named twice");
    cr_assert_null(eddy_squeeze(t, EDDY_AXES(-3)));
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "squeeze: f32[2, 3] has no axis -3");
    cr_assert_null(eddy_expand(t, EDDY_SHAPE(4, 3)));
    eddy_error_take(NULL);
    cr_assert_null(eddy_t(counting(EDDY_SHAPE(1, 2, 3))));
    eddy_error_take(NULL);
    eddy_shape wide = {.rank = 17};
    cr_assert_null(eddy_reshape(t, wide));
    cr_assert_null(eddy_expand(t, wide));
    cr_assert_null(eddy_t(NULL));
    eddy_error_take(NULL);
}

Test(view, views_run_no_instruction) {
    eddy_tensor *t = counting(EDDY_SHAPE(2, 3));
    eddy_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    cr_assert_eq(eddy_counters_read(&before), EDDY_OK);
    eddy_tensor *v = eddy_unsqueeze(eddy_t(eddy_narrow(t, 1, 1, 2)), 0);
    eddy_release(&v);
    cr_assert_eq(eddy_counters_read(&after), EDDY_OK);
    cr_assert_eq(after.submitted, before.submitted);
}
