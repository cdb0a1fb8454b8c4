#include <program/product_op.h>

#include <kernels/cpu/matrix/add_product.h>
#include <string.h>

static eddy_status infer_add(eddy_infer *infer) {
    const eddy_spec *a = &infer->inputs[0], *b = &infer->inputs[1], *sum = &infer->inputs[2];
    if (a->shape.rank != 2 || b->shape.rank != 2 || sum->shape.rank != 2 ||
        a->shape.dims[1] != b->shape.dims[0] || sum->shape.dims[0] != a->shape.dims[0] ||
        sum->shape.dims[1] != b->shape.dims[1])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a, b and sum are no [M, K], [K, N], [M, N]");
    return (sum->dtype == EDDY_F32 || sum->dtype == EDDY_F64) && a->dtype == sum->dtype &&
                   b->dtype == sum->dtype
               ? EDDY_OK
               : eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "a, b and sum are all f32 or all f64");
}

static const eddy_kernel *const kernels[] = {&eddy_cpu_add_product};
static const eddy_op_operand operands[] = {
    {.name = "a", .kind = EDDY_OPERAND_TENSOR},
    {.name = "b", .kind = EDDY_OPERAND_TENSOR},
    {.name = "sum", .kind = EDDY_OPERAND_TENSOR, .is_mut = true},
};

const eddy_op eddy_product_op = {.name = "add_product",
                                 .id = EDDY_OP_REGISTERED,
                                 .operands = operands,
                                 .operand_count = 3,
                                 .result = EDDY_RESULT_RULE,
                                 .infer = infer_add,
                                 .kernels = kernels};

const eddy_op_operand *const eddy_product_op_sum = &operands[2];

const eddy_op *eddy_product_op_find(const char *name) {
    return strcmp(name, eddy_product_op.name) == 0 ? &eddy_product_op : NULL;
}
