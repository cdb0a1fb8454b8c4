#include <program/passes/batch_dims.h>

#include <program/control.h>
#include <string.h>

/* Ops whose batch is the first dim of some operands, by their bits: those of the result come behind those of the operands. */
static const struct {
    const char *name;
    uint8_t batched, rank; /* of operand 0, at least */
    uint8_t role;          /* eddy_batch_role */
} rows[] = {
    {"cast", 1 << 0 | 1 << 1, 1, EDDY_BATCH_ITEMS},
    {"clone", 1 << 0 | 1 << 1, 1, EDDY_BATCH_ITEMS},
    {"conv2d", 1 << 0 | 1 << 3, 4, EDDY_BATCH_ITEMS},
    {"conv_transpose2d", 1 << 0 | 1 << 3, 4, EDDY_BATCH_ITEMS},
    {"conv2d_backward_weight", 1 << 0 | 1 << 1, 4, EDDY_BATCH_WEIGHTS},
    {"linear", 1 << 0 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"max_pool2d", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"max_pool2d_with_indices", 1 << 0 | 1 << 1 | 1 << 2, 4, EDDY_BATCH_ITEMS},
    {"max_pool2d_backward_from_x", 1 << 0 | 1 << 1 | 1 << 2, 4, EDDY_BATCH_ITEMS},
    {"avg_pool2d", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"avg_pool2d_backward", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"adaptive_avg_pool2d", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"adaptive_avg_pool2d_backward", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"interpolate_backward", 1 << 0 | 1 << 1, 4, EDDY_BATCH_ITEMS},
    {"softmax", 1 << 0 | 1 << 1, 2, EDDY_BATCH_ITEMS},
    {"log_softmax", 1 << 0 | 1 << 1, 2, EDDY_BATCH_ITEMS},
    {"softmax_backward", 1 << 0 | 1 << 1 | 1 << 2, 2, EDDY_BATCH_ITEMS},
    {"log_softmax_backward", 1 << 0 | 1 << 1 | 1 << 2, 2, EDDY_BATCH_ITEMS},
    {"layer_norm", 1 << 0 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"layer_norm_backward", 1 << 0 | 1 << 1 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"layer_norm_backward_weight", 1 << 0 | 1 << 1, 2, EDDY_BATCH_SUMS},
    {"rms_norm", 1 << 0 | 1 << 2, 2, EDDY_BATCH_ITEMS},
    {"rms_norm_backward", 1 << 0 | 1 << 1 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"rms_norm_backward_weight", 1 << 0 | 1 << 1, 2, EDDY_BATCH_SUMS},
    {"group_norm", 1 << 0 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"group_norm_backward", 1 << 0 | 1 << 1 | 1 << 3, 2, EDDY_BATCH_ITEMS},
    {"group_norm_backward_weight", 1 << 0 | 1 << 1, 2, EDDY_BATCH_SUMS},
    {"channel_sum", 1 << 0, 2, EDDY_BATCH_SUMS},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* The operands of one instruction. */
typedef struct operands {
    const eddy_code *code;
    const eddy_code_instruction *instruction;
} operands;

static const eddy_code_operand *at(const operands *o, uint32_t k) {
    return eddy_code_operand_at(o->code, o->instruction->operands_at + k);
}

static int64_t dim_of(const operands *o, uint32_t k, int32_t dim) {
    return eddy_code_dims(o->code, at(o, k))[dim];
}

static int64_t stride_of(const operands *o, uint32_t k, int32_t dim) {
    return eddy_code_strides(o->code, at(o, k))[dim];
}

/* The value of the attribute of that name in `value`, of `bytes`; false: the op has none. */
static bool read_attribute(const operands *o, const char *name, void *value, size_t bytes) {
    const eddy_op *op = o->instruction->op;
    for (int32_t a = 0; a < op->attribute_count; a++) {
        if (strcmp(op->attributes[a].name, name) != 0)
            continue;
        memcpy(value,
               (const char *)eddy_code_words(o->code, o->instruction->attributes_at) +
                   op->attributes[a].offset,
               bytes);
        return true;
    }
    return false;
}

/* ---- by kind of op ---- */

/* Operands are broadcast to the first dim of what is written, which all that is written has. */
static eddy_batch_role find_elementwise(const operands *o, int8_t *dims) {
    uint32_t count = o->instruction->operand_count, written = 0;
    while (written < count && !(at(o, written)->access & EDDY_CODE_WRITES))
        written++;
    if (written == count || at(o, written)->rank == 0)
        return EDDY_BATCH_NONE;
    int32_t rank = at(o, written)->rank;
    for (uint32_t k = 0; k < count; k++) {
        const eddy_code_operand *operand = at(o, k);
        dims[k] = EDDY_BATCH_NO_DIM;
        if (eddy_code_operand_is_absent(operand))
            continue;
        bool has_batch = operand->rank == rank && dim_of(o, k, 0) == dim_of(o, written, 0);
        if (operand->access & EDDY_CODE_WRITES && !has_batch)
            return EDDY_BATCH_NONE;
        if (has_batch)
            dims[k] = 0;
    }
    return EDDY_BATCH_ITEMS;
}

static eddy_batch_role find_sum(const operands *o, int8_t *dims) {
    uint32_t axes = 0;
    if (!read_attribute(o, "axes", &axes, sizeof(axes)) || at(o, 0)->rank == 0)
        return EDDY_BATCH_NONE;
    bool is_over_batch = axes & 1u;
    dims[0] = 0;
    dims[1] = is_over_batch ? EDDY_BATCH_NO_DIM : 0;
    return is_over_batch ? EDDY_BATCH_SUMS : EDDY_BATCH_ITEMS;
}

/* Whether the dim of a matrix is the one whose elements lie farther apart. */
static bool is_outer(const operands *o, uint32_t k, int32_t dim) {
    return stride_of(o, k, dim) >= dim_of(o, k, 1 - dim) * stride_of(o, k, 1 - dim);
}

/* x [.., n, k] times w [k, m], and x [n, k] transposed times y [n, m]: the gradient of w. */
static eddy_batch_role find_product(const operands *o, int8_t *dims) {
    int32_t rank = at(o, 0)->rank;
    if (at(o, 1)->rank == 2 && rank == 2 && is_outer(o, 0, 1) && is_outer(o, 1, 0)) {
        dims[0] = 1;
        dims[1] = 0;
        dims[2] = EDDY_BATCH_NO_DIM;
        return EDDY_BATCH_WEIGHTS;
    }
    if (rank < 2 || at(o, 2)->rank != rank || (at(o, 1)->rank != 2 && at(o, 1)->rank != rank) ||
        (rank > 2 && at(o, 1)->rank == rank && dim_of(o, 0, 0) != dim_of(o, 1, 0)))
        return EDDY_BATCH_NONE;
    dims[0] = dims[2] = 0;
    dims[1] = at(o, 1)->rank == 2 ? EDDY_BATCH_NO_DIM : 0;
    return EDDY_BATCH_ITEMS;
}

/* What normalises over the first dim has no batch. */
static bool is_over_batch(const operands *o) {
    int64_t axis_count = 0;
    int32_t axis = -1;
    return (read_attribute(o, "axis_count", &axis_count, sizeof(axis_count)) &&
            axis_count >= at(o, 0)->rank) ||
           (read_attribute(o, "axis", &axis, sizeof(axis)) && axis == 0);
}

static eddy_batch_role find_listed(const operands *o, int8_t *dims) {
    for (size_t r = 0; r < ROWS; r++) {
        if (strcmp(o->instruction->op->name, rows[r].name) != 0)
            continue;
        if (at(o, 0)->rank < rows[r].rank || is_over_batch(o))
            return EDDY_BATCH_NONE;
        for (uint32_t k = 0; k < o->instruction->operand_count; k++)
            dims[k] = rows[r].batched >> k & 1 ? 0 : EDDY_BATCH_NO_DIM;
        return rows[r].role;
    }
    return EDDY_BATCH_NONE;
}

eddy_batch_role eddy_batch_dims_find(const eddy_code *code, uint32_t i, int8_t *dims) {
    operands o = {code, eddy_code_instruction_at(code, i)};
    const eddy_op *op = o.instruction->op;
    if (o.instruction->operand_count == 0 || op->may_fail || op->is_registered || op->is_random ||
        o.instruction->draw != 0 || o.instruction->patch_count > 0 ||
        eddy_control_of(op) != EDDY_CONTROL_NONE)
        return EDDY_BATCH_NONE;
    if (op->is_elementwise)
        return find_elementwise(&o, dims);
    if (strcmp(op->name, "sum") == 0)
        return find_sum(&o, dims);
    if (strcmp(op->name, "mm") == 0 || strcmp(op->name, "matmul") == 0 ||
        strcmp(op->name, "bmm") == 0)
        return find_product(&o, dims);
    return find_listed(&o, dims);
}
