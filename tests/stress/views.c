#include "views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(views_run *run) {
    uint64_t x = run->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return run->random = x;
}

static int64_t below(views_run *run, int64_t bound) {
    return (int64_t)((draw(run) >> 11) % (uint64_t)bound);
}

static _Noreturn void differ(const views_run *run, int step, const char *what, double expected,
                             double found) {
    eddy_error error = {0};
    eddy_error_take(&error);
    fprintf(stderr, "program %llu on path %s, step %d: %s: expected %.17g, found %.17g (%s)\n",
            (unsigned long long)run->seed, run->path, step, what, expected, found, error.message);
    abort();
}

/* ---- expected tensors ---- */

static eddy_dtype dtype_of(const expected_tensor *t) {
    return t->storage->dtype;
}

static int64_t count_of(const expected_tensor *t) {
    return t->dims[0] * t->dims[1];
}

static element *cell(const expected_tensor *t, int64_t row, int64_t column) {
    return &t->storage->cells[t->offset + row * t->strides[0] + column * t->strides[1]];
}

/* Where an element of a larger shape finds its own. */
static element broadcast(const expected_tensor *t, int64_t row, int64_t column) {
    return *cell(t, t->dims[0] == 1 ? 0 : row, t->dims[1] == 1 ? 0 : column);
}

static element at(const expected_tensor *t, int64_t index) {
    return *cell(t, index / t->dims[1], index % t->dims[1]);
}

static eddy_shape shape_of(int rank, const int64_t *dims) {
    eddy_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++)
        shape.dims[d] = dims[2 - rank + d];
    return shape;
}

/* A tensor with a storage of its own. */
static expected_tensor laid_out(eddy_dtype dtype, int rank, int64_t rows, int64_t columns) {
    expected_tensor t = {.rank = rank,
                         .dims = {rank < 2 ? 1 : rows, rank < 1 ? 1 : columns},
                         .storage = calloc(1, sizeof(expected_storage))};
    t.storage->users = 1;
    t.storage->dtype = dtype;
    t.strides[0] = t.dims[1];
    t.strides[1] = 1;
    return t;
}

static void drop(expected_tensor *t) {
    eddy_release(&t->handle);
    if (--t->storage->users == 0)
        free(t->storage);
    t->storage = NULL;
}

static expected_tensor *pick_free(views_run *run) {
    for (int i = 0; i < VIEWS_TENSORS; i++)
        if (!run->tensors[i].handle)
            return &run->tensors[i];
    return NULL;
}

/* NULL where there is none. */
static expected_tensor *pick(views_run *run) {
    int64_t start = below(run, VIEWS_TENSORS);
    for (int64_t i = 0; i < VIEWS_TENSORS; i++) {
        expected_tensor *t = &run->tensors[(start + i) % VIEWS_TENSORS];
        if (t->handle)
            return t;
    }
    return NULL;
}

static expected_tensor *pick_of(views_run *run, bool (*fits)(eddy_dtype dtype)) {
    for (int tries = 0; tries < 30; tries++) {
        expected_tensor *t = pick(run);
        if (t && fits(dtype_of(t)))
            return t;
    }
    return NULL;
}

static eddy_dtype any_dtype(views_run *run) {
    return (eddy_dtype)below(run, EDDY_DTYPE_COUNT);
}

/* Near the middle between two numbers of a float dtype: rounding twice shows. */
static int64_t any_middle(views_run *run) {
    static const int bits[] = {8, 11, 24, 53};
    int lost = bits[below(run, 4)], top = lost + (int)below(run, 62 - lost) + 1;
    int64_t middle =
        (INT64_C(1) << top) + (below(run, 4) << (top - lost + 1)) + (INT64_C(1) << (top - lost));
    return (middle + below(run, 3) - 1) * (below(run, 2) ? 1 : -1);
}

/* Mostly small, so that sums stay exact; now and then what is hard to convert. */
static element any_element(views_run *run, eddy_dtype dtype) {
    static const double hard[] = {INFINITY, -INFINITY, NAN,    -0.0,       65504,  65520,
                                  -3e38,    1e300,     1e-7,   -6e-8,      0x1p63, -0x1p63,
                                  255.5,    -128.9,    0x1p31, 0x1.01p-126};
    switch (below(run, 10)) {
    case 0:
        return element_cast((element){.number = hard[below(run, 16)]}, EDDY_F64, dtype);
    case 1:
        return element_cast((element){.whole = (int64_t)draw(run) >> below(run, 64)}, EDDY_I64,
                            dtype);
    case 2:
        return element_cast((element){.whole = any_middle(run)}, EDDY_I64, dtype);
    case 3:
    case 4:
        return element_cast((element){.number = (double)(below(run, 200) - 100) / 8}, EDDY_F64,
                            dtype);
    default:
        return element_cast((element){.whole = below(run, 100) - 50}, EDDY_I64, dtype);
    }
}

/* Exact in every float dtype. */
static eddy_scalar any_scalar(views_run *run) {
    int64_t number = below(run, 200) - 100;
    switch (below(run, 4)) {
    case 0:
        return eddy_scalar_bool(number > 0);
    case 1:
        return eddy_scalar_float((double)number / 8);
    default:
        return eddy_scalar_int(number);
    }
}

static void compare(views_run *run, int step, const char *what, const expected_tensor *t) {
    char found[VIEWS_CELLS * 8];
    eddy_dtype dtype = dtype_of(t);
    size_t bytes = eddy_dtype_bytes(dtype);
    if (eddy_dtype_of(t->handle) != dtype)
        differ(run, step, "dtype", dtype, eddy_dtype_of(t->handle));
    if (eddy_rank_of(t->handle) != t->rank || eddy_count_of(t->handle) != count_of(t))
        differ(run, step, "shape", (double)count_of(t), (double)eddy_count_of(t->handle));
    if (eddy_read(t->handle, found, (size_t)count_of(t) * bytes, NULL) != EDDY_OK)
        differ(run, step, "read", 0, 1);
    for (int64_t i = 0; i < count_of(t); i++) {
        element is = element_load(dtype, found + (size_t)i * bytes);
        if (!element_same(dtype, at(t, i), is))
            differ(run, step, what, element_as_double(dtype, at(t, i)),
                   element_as_double(dtype, is));
    }
}

/* ---- results ---- */

/* Keeps what an op returned; now and then looks at it at once, so that a difference names the op. */
static void keep(views_run *run, int step, const char *op, expected_tensor *slot,
                 expected_tensor made) {
    if (!made.handle)
        differ(run, step, op, 1, 0);
    if (below(run, 4) == 0)
        compare(run, step, op, &made);
    *slot = made;
}

/* The op must refuse, and leave nothing but the error. */
static void expect_refusal(views_run *run, int step, const char *op, bool is_refused,
                           eddy_status expected) {
    eddy_status status = eddy_error_take(NULL);
    if (!is_refused || status != expected)
        differ(run, step, op, expected, status);
}

/* Operands that meet in a shape: false where they do not. */
static bool joint_shape(const expected_tensor *a, const expected_tensor *b, int *rank,
                        int64_t *dims) {
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int d = 0; d < 2; d++) {
        if (a->dims[d] != b->dims[d] && a->dims[d] != 1 && b->dims[d] != 1)
            return false;
        dims[d] = a->dims[d] > b->dims[d] ? a->dims[d] : b->dims[d];
    }
    return dims[0] * dims[1] <= VIEWS_CELLS;
}

/* A tensor of rank 0, or a scalar, counts only where its category is higher. */
static eddy_dtype joint_dtype(const expected_tensor *a, const expected_tensor *b) {
    bool a_counts = a->rank > 0 || b->rank == 0, b_counts = b->rank > 0 || a->rank == 0;
    int category_a = element_category(dtype_of(a)), category_b = element_category(dtype_of(b));
    if (a_counts && !b_counts && category_b <= category_a)
        return dtype_of(a);
    if (b_counts && !a_counts && category_a <= category_b)
        return dtype_of(b);
    return element_promote(dtype_of(a), dtype_of(b));
}

static eddy_dtype joint_dtype_s(const expected_tensor *a, eddy_scalar scalar) {
    if (scalar.kind == EDDY_SCALAR_FLOAT && !element_is_float(dtype_of(a)))
        return EDDY_F32;
    return scalar.kind == EDDY_SCALAR_INT && dtype_of(a) == EDDY_BOOL ? EDDY_I64 : dtype_of(a);
}

/* ---- steps: making ---- */

static void make(views_run *run, int step) {
    expected_tensor *slot = pick_free(run);
    if (!slot)
        return;
    static const int64_t rows[] = {1, 2, 3, 6}, columns[] = {1, 4, 8, 3};
    expected_tensor t =
        laid_out(any_dtype(run), (int)below(run, 3), rows[below(run, 4)], columns[below(run, 4)]);
    char bytes[VIEWS_CELLS * 8];
    for (int64_t i = 0; i < count_of(&t); i++) {
        t.storage->cells[i] = any_element(run, dtype_of(&t));
        element_store(dtype_of(&t), bytes + (size_t)i * eddy_dtype_bytes(dtype_of(&t)),
                      t.storage->cells[i]);
    }
    t.handle = eddy_from_data(bytes, shape_of(t.rank, t.dims), dtype_of(&t), NULL);
    keep(run, step, "from_data", slot, t);
}

/* Of any_scalar's numbers: all other dtypes hold them. */
static bool is_held(eddy_scalar scalar, eddy_dtype dtype) {
    if (dtype != EDDY_U8)
        return true;
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating > -1
                                            : scalar.value.integer >= 0;
}

static void full(views_run *run, int step) {
    expected_tensor *slot = pick_free(run);
    if (!slot)
        return;
    expected_tensor t =
        laid_out(any_dtype(run), 1 + (int)below(run, 2), 1 + below(run, 6), 1 + below(run, 8));
    eddy_scalar scalar = any_scalar(run);
    t.handle = eddy_full(shape_of(t.rank, t.dims), scalar, dtype_of(&t), NULL);
    if (!is_held(scalar, dtype_of(&t))) {
        expect_refusal(run, step, "full", t.handle == NULL, EDDY_OUT_OF_RANGE);
        drop(&t);
        return;
    }
    for (int64_t i = 0; i < count_of(&t); i++)
        t.storage->cells[i] = element_from_scalar(scalar, dtype_of(&t));
    keep(run, step, "full", slot, t);
}

static void view(views_run *run, int step) {
    expected_tensor *base = pick(run), *slot = pick_free(run);
    if (!base || !slot || base->rank == 0)
        return;
    expected_tensor made = *base;
    int axis = (int)below(run, base->rank), dim = 2 - base->rank + axis;
    int64_t kind = below(run, 3);
    if (base->rank == 2 && kind == 0) {
        made.handle = eddy_t(base->handle);
        made.dims[0] = base->dims[1];
        made.dims[1] = base->dims[0];
        made.strides[0] = base->strides[1];
        made.strides[1] = base->strides[0];
    } else if (kind == 1) {
        int64_t index = below(run, base->dims[dim]);
        made.handle = eddy_select(base->handle, axis, index);
        made.rank--;
        made.offset += index * base->strides[dim];
        /* What is left is the last dim. */
        made.dims[1] = base->rank == 2 ? base->dims[1 - dim] : 1;
        made.strides[1] = base->rank == 2 ? base->strides[1 - dim] : 1;
        made.dims[0] = made.strides[0] = 1;
    } else {
        int64_t start = below(run, base->dims[dim]),
                length = 1 + below(run, base->dims[dim] - start);
        int64_t stride = 1 + below(run, 2);
        made.handle = eddy_slice(base->handle, axis, start, start + length, stride);
        made.offset += start * base->strides[dim];
        made.dims[dim] = (length + stride - 1) / stride;
        made.strides[dim] *= stride;
    }
    made.storage->users++;
    keep(run, step, "view", slot, made);
}

static void cast(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !slot)
        return;
    expected_tensor t = laid_out(any_dtype(run), a->rank, a->dims[0], a->dims[1]);
    for (int64_t i = 0; i < count_of(a); i++)
        t.storage->cells[i] = element_cast(at(a, i), dtype_of(a), dtype_of(&t));
    t.handle = eddy_cast(a->handle, dtype_of(&t));
    keep(run, step, "cast", slot, t);
}

/* ---- steps: elementwise ---- */

static const struct {
    const char *name;
    eddy_tensor *(*run)(eddy_tensor *a, eddy_tensor *b);
    eddy_tensor *(*run_s)(eddy_tensor *a, eddy_scalar b);
    eddy_status (*in_place)(eddy_tensor *a, eddy_tensor *b);
    eddy_status (*in_place_s)(eddy_tensor *a, eddy_scalar b);
} arithmetic[ELEMENT_OP_COUNT] = {
    [ELEMENT_ADD] = {"add", eddy_add, eddy_add_s, eddy_add_inplace, eddy_add_s_inplace},
    [ELEMENT_SUB] = {"sub", eddy_sub, eddy_sub_s, eddy_sub_inplace, eddy_sub_s_inplace},
    [ELEMENT_MUL] = {"mul", eddy_mul, eddy_mul_s, eddy_mul_inplace, eddy_mul_s_inplace},
    [ELEMENT_DIV] = {"div", eddy_div, eddy_div_s, eddy_div_inplace, eddy_div_s_inplace},
};

static const struct {
    const char *name;
    eddy_tensor *(*run)(eddy_tensor *a, eddy_tensor *b);
    eddy_tensor *(*run_s)(eddy_tensor *a, eddy_scalar b);
} orders[ELEMENT_ORDER_COUNT] = {
    [ELEMENT_EQ] = {"eq", eddy_eq, eddy_eq_s}, [ELEMENT_NE] = {"ne", eddy_ne, eddy_ne_s},
    [ELEMENT_LT] = {"lt", eddy_lt, eddy_lt_s}, [ELEMENT_LE] = {"le", eddy_le, eddy_le_s},
    [ELEMENT_GT] = {"gt", eddy_gt, eddy_gt_s}, [ELEMENT_GE] = {"ge", eddy_ge, eddy_ge_s},
};

/* Operands of an elementwise op of two: a tensor, and another or a number. */
typedef struct pair {
    expected_tensor *a, *b; /* b NULL: the scalar */
    eddy_scalar scalar;
    eddy_dtype dtype;
    int rank;
    int64_t dims[2];
    bool fits; /* the shapes meet */
} pair;

static bool pick_pair(views_run *run, pair *p) {
    *p = (pair){.a = pick(run), .fits = true};
    if (!p->a)
        return false;
    if (below(run, 3) == 0) {
        p->scalar = any_scalar(run);
        p->dtype = joint_dtype_s(p->a, p->scalar);
        p->rank = p->a->rank;
        memcpy(p->dims, p->a->dims, sizeof(p->dims));
        return true;
    }
    for (int tries = 0; tries < 10; tries++) {
        p->b = pick(run);
        p->fits = joint_shape(p->a, p->b, &p->rank, p->dims);
        if (p->fits)
            break;
    }
    p->dtype = joint_dtype(p->a, p->b);
    return true;
}

static element left_of(const pair *p, eddy_dtype dtype, int64_t row, int64_t column) {
    return element_cast(broadcast(p->a, row, column), dtype_of(p->a), dtype);
}

static element right_of(const pair *p, eddy_dtype dtype, int64_t row, int64_t column) {
    if (!p->b)
        return element_from_scalar(p->scalar, dtype);
    return element_cast(broadcast(p->b, row, column), dtype_of(p->b), dtype);
}

/* How an op of arithmetic answers these operands, and the dtype that it is computed in. */
static eddy_status arithmetic_status(const pair *p, element_op op, eddy_dtype *dtype) {
    *dtype = op == ELEMENT_DIV && !element_is_float(p->dtype) ? EDDY_F32 : p->dtype;
    if (!p->fits)
        return EDDY_SHAPE_MISMATCH;
    return op == ELEMENT_SUB && *dtype == EDDY_BOOL ? EDDY_UNSUPPORTED : EDDY_OK;
}

static void arithmetic_cells(const pair *p, element_op op, eddy_dtype dtype, element *cells) {
    for (int64_t i = 0; i < p->dims[0] * p->dims[1]; i++) {
        int64_t row = i / p->dims[1], column = i % p->dims[1];
        cells[i] = element_binary(op, dtype, left_of(p, dtype, row, column),
                                  right_of(p, dtype, row, column));
    }
}

static void binary(views_run *run, int step) {
    expected_tensor *slot = pick_free(run);
    pair p;
    if (!slot || !pick_pair(run, &p) || p.dims[0] * p.dims[1] > VIEWS_CELLS)
        return;
    element_op op = (element_op)below(run, ELEMENT_OP_COUNT);
    eddy_dtype dtype;
    eddy_status expected = arithmetic_status(&p, op, &dtype);
    eddy_tensor *made = p.b ? arithmetic[op].run(p.a->handle, p.b->handle)
                            : arithmetic[op].run_s(p.a->handle, p.scalar);
    if (expected != EDDY_OK) {
        expect_refusal(run, step, arithmetic[op].name, made == NULL, expected);
        return;
    }
    expected_tensor t = laid_out(dtype, p.rank, p.dims[0], p.dims[1]);
    arithmetic_cells(&p, op, dtype, t.storage->cells);
    t.handle = made;
    keep(run, step, arithmetic[op].name, slot, t);
}

static void in_place(views_run *run, int step) {
    pair p;
    if (!pick_pair(run, &p) || (p.b && p.b != p.a && p.b->storage == p.a->storage))
        return;
    element_op op = (element_op)below(run, ELEMENT_OP_COUNT);
    eddy_dtype dtype;
    eddy_status expected = arithmetic_status(&p, op, &dtype);
    if (p.fits && (p.rank != p.a->rank || p.dims[0] != p.a->dims[0] || p.dims[1] != p.a->dims[1]))
        expected = EDDY_SHAPE_MISMATCH;
    else if (p.fits && dtype != dtype_of(p.a))
        expected = EDDY_DTYPE_MISMATCH;
    eddy_status status = p.b ? arithmetic[op].in_place(p.a->handle, p.b->handle)
                             : arithmetic[op].in_place_s(p.a->handle, p.scalar);
    if (expected != EDDY_OK) {
        expect_refusal(run, step, arithmetic[op].name, status == expected, expected);
        return;
    }
    if (status != EDDY_OK)
        differ(run, step, arithmetic[op].name, EDDY_OK, status);
    element cells[VIEWS_CELLS];
    arithmetic_cells(&p, op, dtype, cells);
    for (int64_t i = 0; i < count_of(p.a); i++)
        *cell(p.a, i / p.a->dims[1], i % p.a->dims[1]) = cells[i];
}

static void order(views_run *run, int step) {
    expected_tensor *slot = pick_free(run);
    pair p;
    if (!slot || !pick_pair(run, &p) || !p.fits)
        return;
    element_order op = (element_order)below(run, ELEMENT_ORDER_COUNT);
    if (!p.b && !is_held(p.scalar, p.dtype)) {
        expect_refusal(run, step, orders[op].name, !orders[op].run_s(p.a->handle, p.scalar),
                       EDDY_OUT_OF_RANGE);
        return;
    }
    expected_tensor t = laid_out(EDDY_BOOL, p.rank, p.dims[0], p.dims[1]);
    for (int64_t i = 0; i < count_of(&t); i++) {
        int64_t row = i / p.dims[1], column = i % p.dims[1];
        t.storage->cells[i].whole = element_compare(op, p.dtype, left_of(&p, p.dtype, row, column),
                                                    right_of(&p, p.dtype, row, column));
    }
    t.handle =
        p.b ? orders[op].run(p.a->handle, p.b->handle) : orders[op].run_s(p.a->handle, p.scalar);
    keep(run, step, orders[op].name, slot, t);
}

static bool is_bool(eddy_dtype dtype) {
    return dtype == EDDY_BOOL;
}

static void choose(views_run *run, int step) {
    expected_tensor *slot = pick_free(run), *condition = pick_of(run, is_bool);
    pair p;
    if (!slot || !condition || !pick_pair(run, &p) || !p.b || !p.fits)
        return;
    expected_tensor t = laid_out(p.dtype, p.rank, p.dims[0], p.dims[1]), joint;
    if (!joint_shape(condition, &t, &joint.rank, joint.dims)) {
        free(t.storage);
        return;
    }
    free(t.storage);
    t = laid_out(p.dtype, joint.rank, joint.dims[0], joint.dims[1]);
    for (int64_t i = 0; i < count_of(&t); i++) {
        int64_t row = i / t.dims[1], column = i % t.dims[1];
        t.storage->cells[i] = broadcast(condition, row, column).whole
                                  ? left_of(&p, p.dtype, row, column)
                                  : right_of(&p, p.dtype, row, column);
    }
    t.handle = eddy_where(condition->handle, p.a->handle, p.b->handle);
    keep(run, step, "where", slot, t);
}

static void unary(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !slot)
        return;
    int64_t kind = below(run, 3);
    const char *name = kind == 0 ? "neg" : kind == 1 ? "relu" : "sqrt";
    eddy_tensor *made = kind == 0   ? eddy_neg(a->handle)
                        : kind == 1 ? eddy_relu(a->handle)
                                    : eddy_sqrt(a->handle);
    if (kind < 2 && dtype_of(a) == EDDY_BOOL) {
        expect_refusal(run, step, name, made == NULL, EDDY_UNSUPPORTED);
        return;
    }
    eddy_dtype dtype = kind == 2 && !element_is_float(dtype_of(a)) ? EDDY_F32 : dtype_of(a);
    expected_tensor t = laid_out(dtype, a->rank, a->dims[0], a->dims[1]);
    for (int64_t i = 0; i < count_of(a); i++) {
        element x = element_cast(at(a, i), dtype_of(a), dtype);
        t.storage->cells[i] = kind == 0   ? element_neg(dtype, x)
                              : kind == 1 ? element_relu(dtype, x)
                                          : element_sqrt(dtype, x);
    }
    t.handle = made;
    keep(run, step, name, slot, t);
}

/* ---- steps: moving ---- */

static void copy(views_run *run, int step) {
    const expected_tensor *source = pick(run), *target = pick(run);
    if (!source || !target || source->storage == target->storage)
        return;
    int rank;
    int64_t dims[2];
    bool fits = joint_shape(source, target, &rank, dims) && rank == target->rank &&
                dims[0] == target->dims[0] && dims[1] == target->dims[1];
    eddy_status status = eddy_copy_into(source->handle, target->handle);
    if (!fits) {
        expect_refusal(run, step, "copy_into", status == EDDY_SHAPE_MISMATCH, EDDY_SHAPE_MISMATCH);
        return;
    }
    if (status != EDDY_OK)
        differ(run, step, "copy_into", EDDY_OK, status);
    for (int64_t i = 0; i < count_of(target); i++) {
        int64_t row = i / target->dims[1], column = i % target->dims[1];
        *cell(target, row, column) =
            element_cast(broadcast(source, row, column), dtype_of(source), dtype_of(target));
    }
}

static void join(views_run *run, int step) {
    const expected_tensor *a = pick(run), *b = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !b || !slot || a->rank != b->rank || a->rank == 0 ||
        count_of(a) + count_of(b) > VIEWS_CELLS)
        return;
    int dim = 2 - a->rank; /* along the first axis */
    if (a->dims[1 - dim] != b->dims[1 - dim] && a->rank == 2)
        return;
    eddy_tensor *made = eddy_cat(EDDY_LIST(a->handle, b->handle), 0);
    if (dtype_of(a) != dtype_of(b)) {
        expect_refusal(run, step, "cat", made == NULL, EDDY_DTYPE_MISMATCH);
        return;
    }
    expected_tensor t = a->rank == 2 ? laid_out(dtype_of(a), 2, a->dims[0] + b->dims[0], a->dims[1])
                                     : laid_out(dtype_of(a), 1, 1, a->dims[1] + b->dims[1]);
    for (int64_t i = 0; i < count_of(&t); i++)
        t.storage->cells[i] = i < count_of(a) ? at(a, i) : at(b, i - count_of(a));
    t.handle = made;
    keep(run, step, "cat", slot, t);
}

static void select_rows(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !slot || a->rank != 2)
        return;
    int64_t rows = 1 + below(run, VIEWS_CELLS / a->dims[1] < 6 ? VIEWS_CELLS / a->dims[1] : 6);
    eddy_dtype dtype = below(run, 2) ? EDDY_I64 : EDDY_I32;
    char bytes[6 * 8];
    expected_tensor t = laid_out(dtype_of(a), 2, rows, a->dims[1]);
    for (int64_t row = 0; row < rows; row++) {
        element index = {.whole = below(run, a->dims[0])};
        element_store(dtype, bytes + (size_t)row * eddy_dtype_bytes(dtype), index);
        for (int64_t column = 0; column < a->dims[1]; column++)
            *cell(&t, row, column) = *cell(a, index.whole, column);
    }
    eddy_tensor *indices = eddy_from_data(bytes, EDDY_SHAPE(rows), dtype, NULL);
    t.handle = eddy_index_select(a->handle, indices, 0);
    eddy_release(&indices);
    keep(run, step, "index_select", slot, t);
}

/* ---- steps: reducing ---- */

/* Where zeros of both signs meet, or a sum begins with none, the sign of the result is nobody's promise. */
static bool has_negative_zero(const expected_tensor *t) {
    for (int64_t i = 0; i < count_of(t); i++)
        if (element_is_float(dtype_of(t)) && at(t, i).number == 0 && signbit(at(t, i).number))
            return true;
    return false;
}

/* Whether a sum in any order comes out the same in f32: multiples of 2^-10, which together stay below 2^13. */
static bool sums_exactly(const expected_tensor *t) {
    double sum = 0;
    if (has_negative_zero(t))
        return false;
    for (int64_t i = 0; i < count_of(t); i++) {
        double x = at(t, i).number * 1024;
        if (!isfinite(x) || trunc(x) != x)
            return false;
        sum += fabs(x);
    }
    return sum < 0x1p23;
}

static void sum(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !slot || (element_is_float(dtype_of(a)) && !sums_exactly(a)))
        return;
    eddy_dtype dtype = element_is_float(dtype_of(a)) ? dtype_of(a) : EDDY_I64;
    expected_tensor t = laid_out(dtype, 0, 1, 1);
    eddy_dtype in = element_is_float(dtype) ? EDDY_F64 : EDDY_I64;
    element total = element_cast((element){.whole = 0}, EDDY_I64, in);
    for (int64_t i = 0; i < count_of(a); i++)
        total = element_binary(ELEMENT_ADD, in, total, element_cast(at(a, i), dtype_of(a), in));
    t.storage->cells[0] = element_cast(total, in, dtype);
    t.handle = eddy_sum(a->handle, EDDY_ALL_AXES, NULL);
    keep(run, step, "sum", slot, t);
}

static void largest(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    expected_tensor *slot = pick_free(run);
    if (!a || !slot)
        return;
    bool is_place = has_negative_zero(a) || below(run, 2);
    eddy_dtype dtype = dtype_of(a);
    int64_t best = 0;
    for (int64_t i = 1; i < count_of(a) && !element_is_nan(dtype, at(a, best)); i++)
        if (element_is_nan(dtype, at(a, i)) ||
            element_compare(ELEMENT_GT, dtype, at(a, i), at(a, best)))
            best = i;
    expected_tensor t = laid_out(is_place ? EDDY_I64 : dtype, 0, 1, 1);
    t.storage->cells[0] = is_place ? (element){.whole = best} : at(a, best);
    t.handle = is_place ? eddy_argmax(a->handle, EDDY_ALL_AXES, NULL)
                        : eddy_max(a->handle, EDDY_ALL_AXES, NULL);
    keep(run, step, is_place ? "argmax" : "max", slot, t);
}

static bool is_number(eddy_dtype dtype) {
    return element_category(dtype) == 1;
}

/* Integers wrap around, so the order of the additions does not matter. */
static void product(views_run *run, int step) {
    const expected_tensor *a = pick_of(run, is_number), *b = pick_of(run, is_number);
    expected_tensor *slot = pick_free(run);
    if (!a || !b || !slot || a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[0] ||
        a->dims[0] * b->dims[1] > VIEWS_CELLS)
        return;
    eddy_tensor *made = eddy_mm(a->handle, b->handle);
    eddy_dtype dtype = dtype_of(a);
    if (dtype != dtype_of(b)) {
        expect_refusal(run, step, "mm", made == NULL, EDDY_DTYPE_MISMATCH);
        return;
    }
    expected_tensor t = laid_out(dtype, 2, a->dims[0], b->dims[1]);
    for (int64_t i = 0; i < count_of(&t); i++)
        for (int64_t k = 0; k < a->dims[1]; k++)
            t.storage->cells[i] =
                element_binary(ELEMENT_ADD, dtype, t.storage->cells[i],
                               element_binary(ELEMENT_MUL, dtype, *cell(a, i / t.dims[1], k),
                                              *cell(b, k, i % t.dims[1])));
    t.handle = made;
    keep(run, step, "mm", slot, t);
}

static void late(views_run *run, int step) {
    const expected_tensor *a = pick(run);
    if (!a)
        return;
    int64_t expected = 0;
    for (int64_t i = 0; i < count_of(a); i++)
        expected += element_as_double(dtype_of(a), at(a, i)) != 0;
    eddy_tensor *places = eddy_nonzero(a->handle);
    if (eddy_dim_of(places, 0) != expected || eddy_dim_of(places, 1) != a->rank)
        differ(run, step, "nonzero", (double)expected, (double)eddy_dim_of(places, 0));
    eddy_release(&places);
}

static void map(views_run *run, int step) {
    const expected_tensor *t = pick(run);
    if (!t)
        return;
    void *data = eddy_map(t->handle, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    if (!data)
        differ(run, step, "map", 1, 0);
    if (!element_same(dtype_of(t), element_load(dtype_of(t), data), at(t, 0)))
        differ(run, step, "mapped element", element_as_double(dtype_of(t), at(t, 0)),
               element_as_double(dtype_of(t), element_load(dtype_of(t), data)));
    *cell(t, 0, 0) = any_element(run, dtype_of(t));
    element_store(dtype_of(t), data, at(t, 0));
    if (eddy_unmap(t->handle) != EDDY_OK)
        differ(run, step, "unmap", 0, 1);
}

static void give_up(views_run *run, int step) {
    expected_tensor *t = pick(run);
    if (!t)
        return;
    compare(run, step, "element", t);
    drop(t);
}

/* ---- programs ---- */

void views_begin(views_run *run, uint64_t seed, const char *path) {
    memset(run, 0, sizeof(*run));
    run->seed = seed;
    run->random = seed * 0x9e3779b97f4a7c15u | 1;
    run->path = path;
}

void views_step(views_run *run, int step) {
    static void (*const kinds[])(views_run *, int) = {
        make,    make,     full,     view,  view,    view,    cast,    cast,   binary,      binary,
        binary,  in_place, in_place, order, choose,  unary,   copy,    join,   select_rows, sum,
        largest, product,  late,     map,   give_up, give_up, give_up, give_up};
    kinds[below(run, (int64_t)(sizeof(kinds) / sizeof(kinds[0])))](run, step);
}

void views_end(views_run *run, int step) {
    for (int i = 0; i < VIEWS_TENSORS; i++)
        if (run->tensors[i].handle) {
            compare(run, step, "element", &run->tensors[i]);
            drop(&run->tensors[i]);
        }
    if (eddy_error_take(NULL) != EDDY_OK)
        differ(run, step, "no error", 0, 1);
}
