/* einsum: operands are brought to [batch, rows, summed] and [batch, summed, columns], two at a time from the left, and
 * multiplied by bmm. If there is nothing to sum, or nothing but sums besides the batch, they are multiplied by mul. */
#include <eddy/compose.h>

#include <base/status.h>
#include <eddy/view.h>
#include <functional/arguments.h>
#include <functional/composition.h>
#include <functional/equation.h>
#include <functional/op_table.h>
#include <functional/parameter.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

/* A tensor whose axes have labels. */
typedef struct factor {
    eddy_tensor *tensor;
    bool is_owned; /* a temporary, released after its use */
    int32_t rank;
    uint8_t labels[EDDY_RANK_MAX];
} factor;

typedef struct contraction {
    eddy_origin origin;
    eddy_list operands;
    eddy_equation equation;
    int64_t sizes[EDDY_EQUATION_LABELS];
    int32_t uses[EDDY_EQUATION_LABELS]; /* in the output and in later factors */
} contraction;

static eddy_status fail(const contraction *c, eddy_status status, const char *sentence) {
    return eddy_parameter_fail(status, c->origin, c->operands, "%s", sentence);
}

static void drop(factor *f) {
    if (f->is_owned)
        eddy_release(&f->tensor);
    f->tensor = NULL;
}

/* Replaces the factor's tensor by `made`, which may be NULL, and releases the former one in each case. */
static bool become(factor *f, eddy_tensor *made) {
    drop(f);
    f->tensor = made;
    f->is_owned = true;
    return made != NULL;
}

static int32_t find(const factor *f, uint8_t label) {
    const uint8_t *at = memchr(f->labels, label, (size_t)f->rank);
    return at ? (int32_t)(at - f->labels) : -1;
}

static void remove_label(factor *f, int32_t d) {
    memmove(f->labels + d, f->labels + d + 1, (size_t)(f->rank - d - 1));
    f->rank--;
}

/* Permutes the axes to the order of these labels, each of which occurs once. */
static bool permute(factor *f, const uint8_t *labels) {
    eddy_axes axes = {.count = f->rank};
    for (int32_t d = 0; d < f->rank; d++)
        axes.axes[d] = find(f, labels[d]);
    memcpy(f->labels, labels, (size_t)f->rank);
    return become(f, eddy_permute(f->tensor, axes));
}

/* Integers become i64, as they do in a sum. */
static bool sum_axis(const contraction *c, factor *f, int32_t d) {
    eddy_arguments_sum arguments = {.axes = 1u << d};
    remove_label(f, d);
    return become(
        f, eddy_interpreter_apply_one(&eddy_op_sum, &f->tensor, 1, &arguments, c->origin.address));
}

/* Where one of two factors has been summed to i64, the other becomes i64 too. */
static bool widen(const contraction *c, factor *f, const factor *other) {
    eddy_arguments_cast cast = {.dtype = eddy_dtype_of(other->tensor)};
    if (cast.dtype != EDDY_I64 || eddy_dtype_of(f->tensor) == EDDY_I64)
        return true;
    return become(
        f, eddy_interpreter_apply_one(&eddy_op_cast, &f->tensor, 1, &cast, c->origin.address));
}

/* ---- one operand ---- */

/* Axes d and e, of one label, become one, at the end: in row-major order of the two the diagonal is every n + 1st element. */
static bool take_diagonal(factor *f, int32_t d, int32_t e, int64_t size) {
    eddy_axes axes = {.count = f->rank};
    eddy_shape shape = {.rank = f->rank - 1};
    uint8_t label = f->labels[d];
    int32_t to = 0;
    for (int32_t k = 0; k < f->rank; k++)
        if (k != d && k != e) {
            f->labels[to] = f->labels[k];
            shape.dims[to] = f->tensor->axes[k].dim;
            axes.axes[to++] = k;
        }
    axes.axes[to] = d;
    axes.axes[to + 1] = e;
    f->labels[to] = label;
    shape.dims[to] = size * size;
    f->rank--;
    return become(f, eddy_permute(f->tensor, axes)) && become(f, eddy_reshape(f->tensor, shape)) &&
           become(f, eddy_slice(f->tensor, -1, 0, size * size, size + 1));
}

/* Each label once, no broadcast axis of size 1, no label that only this factor has. */
static bool simplify(const contraction *c, factor *f) {
    for (int32_t d = 0; d < f->rank;) {
        int64_t size = f->tensor->axes[d].dim;
        if (size == 1 && c->sizes[f->labels[d]] != 1) {
            remove_label(f, d);
            if (!become(f, eddy_squeeze(f->tensor, EDDY_AXES(d))))
                return false;
            continue;
        }
        d++;
    }
    for (int32_t d = 0; d < f->rank;) {
        const uint8_t *again = memchr(f->labels + d + 1, f->labels[d], (size_t)(f->rank - d - 1));
        if (!again)
            d++;
        else if (!take_diagonal(f, d, (int32_t)(again - f->labels), c->sizes[f->labels[d]]))
            return false;
        else
            d = 0;
    }
    return true;
}

/* Sums over labels that no later factor needs and, if there is another factor, that it does not have. */
static bool sum_unused(const contraction *c, factor *f, const factor *other) {
    for (int32_t d = f->rank - 1; d >= 0; d--)
        if (c->uses[f->labels[d]] == 0 && !(other && find(other, f->labels[d]) >= 0) &&
            !sum_axis(c, f, d))
            return false;
    return true;
}

/* ---- two factors ---- */

typedef struct group {
    int32_t count;
    uint8_t labels[EDDY_RANK_MAX];
    int64_t size; /* product of the dims */
} group;

static void add_label(const contraction *c, group *g, uint8_t label) {
    g->labels[g->count++] = label;
    g->size *= c->sizes[label];
}

/* The labels of two factors: in both and needed later, in both and summed, only in one. */
typedef struct pairing {
    group batch, summed, rows, columns;
} pairing;

static void pair_up(const contraction *c, const factor *a, const factor *b, pairing *p) {
    *p = (pairing){
        .batch = {.size = 1}, .summed = {.size = 1}, .rows = {.size = 1}, .columns = {.size = 1}};
    for (int32_t d = 0; d < a->rank; d++) {
        uint8_t label = a->labels[d];
        add_label(c,
                  find(b, label) < 0   ? &p->rows
                  : c->uses[label] > 0 ? &p->batch
                                       : &p->summed,
                  label);
    }
    for (int32_t d = 0; d < b->rank; d++)
        if (find(a, b->labels[d]) < 0)
            add_label(c, &p->columns, b->labels[d]);
}

static void join(uint8_t *labels, const group *a, const group *b, const group *c) {
    memcpy(labels, a->labels, (size_t)a->count);
    memcpy(labels + a->count, b->labels, (size_t)b->count);
    if (c)
        memcpy(labels + a->count + b->count, c->labels, (size_t)c->count);
}

static bool arrange(factor *f, const group *a, const group *b, const group *c) {
    uint8_t labels[3 * EDDY_RANK_MAX];
    join(labels, a, b, c);
    return permute(f, labels);
}

/* [batch, rows, summed] x [batch, summed, columns], as matrices if there is no batch. */
static eddy_tensor *multiply_matrices(const contraction *c, factor *a, factor *b, const pairing *p,
                                      eddy_shape result) {
    bool is_flat = p->batch.count == 0;
    eddy_shape left = EDDY_SHAPE(p->batch.size, p->rows.size, p->summed.size);
    eddy_shape right = EDDY_SHAPE(p->batch.size, p->summed.size, p->columns.size);
    if (is_flat) {
        left = EDDY_SHAPE(p->rows.size, p->summed.size);
        right = EDDY_SHAPE(p->summed.size, p->columns.size);
    }
    if (!arrange(a, &p->batch, &p->rows, &p->summed) ||
        !arrange(b, &p->batch, &p->summed, &p->columns) ||
        !become(a, eddy_reshape(a->tensor, left)) || !become(b, eddy_reshape(b->tensor, right)))
        return NULL;
    eddy_tensor *inputs[] = {a->tensor, b->tensor};
    factor product = {.tensor = eddy_interpreter_apply_one(is_flat ? &eddy_op_mm : &eddy_op_bmm,
                                                           inputs, 2, NULL, c->origin.address),
                      .is_owned = true};
    if (product.tensor)
        (void)become(&product, eddy_reshape(product.tensor, result));
    return product.tensor;
}

/* [batch, rows, 1 ..] * [batch, 1 .., columns] */
static eddy_tensor *multiply_elements(const contraction *c, factor *a, factor *b, const pairing *p,
                                      eddy_shape result) {
    eddy_shape left = result, right = result;
    for (int32_t d = 0; d < p->columns.count; d++)
        left.dims[p->batch.count + p->rows.count + d] = 1;
    for (int32_t d = 0; d < p->rows.count; d++)
        right.dims[p->batch.count + d] = 1;
    if (!arrange(a, &p->batch, &p->rows, NULL) || !arrange(b, &p->batch, &p->columns, NULL) ||
        !become(a, eddy_reshape(a->tensor, left)) || !become(b, eddy_reshape(b->tensor, right)))
        return NULL;
    eddy_tensor *inputs[] = {a->tensor, b->tensor};
    return eddy_interpreter_apply_one(&eddy_op_mul, inputs, 2, NULL, c->origin.address);
}

/* A product of vectors for each place of the batch: multiplied element by element and summed up, as matrices of one row and
 * one column cost much more than their elements. */
static eddy_tensor *multiply_vectors(const contraction *c, factor *a, factor *b, const pairing *p,
                                     eddy_shape result) {
    eddy_shape shape = EDDY_SHAPE(p->batch.size, p->summed.size);
    if (!arrange(a, &p->batch, &p->summed, NULL) || !arrange(b, &p->batch, &p->summed, NULL) ||
        !become(a, eddy_reshape(a->tensor, shape)) || !become(b, eddy_reshape(b->tensor, shape)))
        return NULL;
    eddy_tensor *inputs[] = {a->tensor, b->tensor};
    eddy_arguments_sum arguments = {.axes = 1u << 1};
    factor product = {
        .tensor = eddy_interpreter_apply_one(&eddy_op_mul, inputs, 2, NULL, c->origin.address),
        .is_owned = true};
    if (product.tensor &&
        become(&product, eddy_interpreter_apply_one(&eddy_op_sum, &product.tensor, 1, &arguments,
                                                    c->origin.address)))
        (void)become(&product, eddy_reshape(product.tensor, result));
    return product.tensor;
}

/* Not 16-bit floats, whose products would be rounded before they are summed, nor integers, whose products keep their dtype. */
static bool is_of_vectors(const factor *a, const pairing *p) {
    eddy_dtype dtype = eddy_dtype_of(a->tensor);
    return p->batch.count > 0 && p->rows.count == 0 && p->columns.count == 0 &&
           (dtype == EDDY_F32 || dtype == EDDY_F64);
}

/* `a` becomes the product of both; `b` is released. */
static bool multiply(const contraction *c, factor *a, factor *b) {
    if (!sum_unused(c, a, b) || !sum_unused(c, b, a) || !widen(c, a, b) || !widen(c, b, a))
        return false;
    pairing p;
    pair_up(c, a, b, &p);
    eddy_shape shape = {.rank = p.batch.count + p.rows.count + p.columns.count};
    if (shape.rank > EDDY_RANK_MAX) {
        (void)!fail(c, EDDY_SHAPE_MISMATCH, "a product on the way would have more than 16 axes");
        return false;
    }
    uint8_t labels[3 * EDDY_RANK_MAX];
    join(labels, &p.batch, &p.rows, &p.columns);
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = c->sizes[labels[d]];
    eddy_tensor *product = p.summed.count == 0    ? multiply_elements(c, a, b, &p, shape)
                           : is_of_vectors(a, &p) ? multiply_vectors(c, a, b, &p, shape)
                                                  : multiply_matrices(c, a, b, &p, shape);
    a->rank = shape.rank;
    memcpy(a->labels, labels, (size_t)shape.rank);
    drop(b);
    return become(a, product);
}

/* ---- the whole ---- */

static eddy_status check_operands(const contraction *c, int32_t *ranks) {
    int64_t count = c->operands.count;
    if (count > 0 && !c->operands.items)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin, "the list of operands is NULL");
    if (count < 1 || count > EDDY_EQUATION_OPERANDS)
        return eddy_fail(EDDY_INVALID_ARGUMENT, c->origin,
                         "there are %lld operands, 1 to %d are possible", (long long)count,
                         EDDY_EQUATION_OPERANDS);
    for (int64_t i = 0; i < count; i++) {
        eddy_tensor *operand = c->operands.items[i];
        eddy_status status = eddy_tensor_check_item_shape(operand, "operands", i, c->origin);
        if (status != EDDY_OK)
            return status;
        if (operand->dtype != c->operands.items[0]->dtype)
            return eddy_parameter_fail(EDDY_DTYPE_MISMATCH, c->origin, c->operands,
                                       "operand 0 is %s, operand %lld %s",
                                       eddy_dtype_name((eddy_dtype)c->operands.items[0]->dtype),
                                       (long long)i, eddy_dtype_name((eddy_dtype)operand->dtype));
        ranks[i] = operand->rank;
    }
    if (c->operands.items[0]->dtype == EDDY_BOOL)
        return fail(c, EDDY_DTYPE_MISMATCH, "there is no sum of products of bool");
    return EDDY_OK;
}

/* Sizes by label: all that are not 1 agree. */
static eddy_status measure(contraction *c) {
    for (int label = 0; label < EDDY_EQUATION_LABELS; label++)
        c->sizes[label] = 1;
    for (int64_t i = 0; i < c->operands.count; i++) {
        const eddy_equation_term *term = &c->equation.operands[i];
        for (int32_t d = 0; d < term->rank; d++) {
            int64_t *size = &c->sizes[term->labels[d]], dim = c->operands.items[i]->axes[d].dim;
            if (dim != 1 && *size != 1 && dim != *size)
                return eddy_parameter_fail(
                    EDDY_SHAPE_MISMATCH, c->origin, c->operands,
                    "axis %d of operand %lld is of size %lld where others are %lld", (int)d,
                    (long long)i, (long long)dim, (long long)*size);
            if (dim != 1)
                *size = dim;
        }
    }
    return EDDY_OK;
}

static void count_uses(contraction *c, const eddy_equation_term *term, int32_t change) {
    for (int32_t d = 0; d < term->rank; d++)
        c->uses[term->labels[d]] += change;
}

static bool open_factor(contraction *c, factor *f, int64_t i) {
    const eddy_equation_term *term = &c->equation.operands[i];
    *f = (factor){.tensor = c->operands.items[i], .rank = term->rank};
    memcpy(f->labels, term->labels, sizeof(f->labels));
    count_uses(c, term, -1);
    return simplify(c, f);
}

/* Sums over the remaining labels and permutes the axes. */
static bool finish(const contraction *c, factor *f) {
    if (!sum_unused(c, f, NULL))
        return false;
    return permute(f, c->equation.output.labels);
}

static eddy_tensor *contract(contraction *c) {
    factor product, next = {0};
    count_uses(c, &c->equation.output, 1);
    for (int64_t i = 0; i < c->operands.count; i++)
        count_uses(c, &c->equation.operands[i], 1);
    bool is_good = open_factor(c, &product, 0);
    for (int64_t i = 1; i < c->operands.count && is_good; i++)
        is_good = open_factor(c, &next, i) && multiply(c, &product, &next);
    is_good = is_good && finish(c, &product);
    drop(&next);
    if (!is_good)
        drop(&product);
    return is_good ? product.tensor : NULL;
}

static eddy_status einsum(const char *equation, eddy_list operands, eddy_tensor **result,
                          eddy_origin origin) {
    contraction c = {.origin = origin, .operands = operands};
    int32_t ranks[EDDY_EQUATION_OPERANDS];
    char reason[160] = "there is no equation";
    eddy_status status = check_operands(&c, ranks);
    if (status != EDDY_OK)
        return status;
    status = EDDY_INVALID_ARGUMENT;
    if (equation)
        status = eddy_equation_read(&c.equation, equation, ranks, operands.count, reason,
                                    sizeof(reason));
    if (status != EDDY_OK)
        return eddy_parameter_fail(status, origin, operands, "%s: %s", equation ? equation : "NULL",
                                   reason);
    status = measure(&c);
    if (status != EDDY_OK)
        return status;
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *product = contract(&c);
    eddy_outcome_end(&outcome);
    if (!product)
        return eddy_outcome_why(&outcome);
    *result = product;
    return EDDY_OK;
}

eddy_tensor *eddy_einsum(const char *equation, eddy_list operands) {
    eddy_tensor *result = NULL;
    return einsum(equation, operands, &result, EDDY_ORIGIN("einsum")) == EDDY_OK ? result : NULL;
}

eddy_status eddy_composition_einsum(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                    eddy_origin origin) {
    return einsum(((const eddy_arguments_einsum *)arguments)->equation, inputs, &outputs[0],
                  origin);
}
