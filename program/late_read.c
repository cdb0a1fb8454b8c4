#include <program/late_read.h>

#include <base/dtype.h>
#include <base/shape.h>

static const eddy_code_operand *read_operand(const eddy_code *code,
                                             const eddy_code_instruction *read) {
    return eddy_code_operand_at(code, read->operands_at);
}

bool eddy_late_read_is_in(const eddy_code *code) {
    for (uint32_t i = 0; i < eddy_code_call_count(code); i++)
        if (eddy_late_read_is(eddy_code_call_at(code, i)->op))
            return true;
    return false;
}

bool eddy_late_read_needs_copy(const eddy_code *code, uint32_t at) {
    uint32_t value = read_operand(code, eddy_code_instruction_at(code, at))->value;
    const eddy_code_value *read = eddy_code_value_at(code, value);
    return read->kind != EDDY_VALUE_MADE || eddy_code_find_writer(code, at + 1, value) != NULL;
}

/* A storage of its own, row-major. */
static bool add_copied(eddy_code *code, const eddy_code_operand *read, eddy_code_operand *copied,
                       eddy_layout *layout) {
    eddy_code_value value = {.kind = EDDY_VALUE_MADE, .is_written = true};
    eddy_code_value_set_device(&value,
                               eddy_code_value_device(eddy_code_value_at(code, read->value)));
    eddy_code_operand_layout(code, read, layout);
    layout->offset = 0;
    eddy_shape_strides_contiguous(layout->rank, layout->dims, layout->strides);
    bool is_counted = eddy_shape_count(layout->rank, layout->dims, &value.bytes);
    EDDY_ASSERT(is_counted);
    value.bytes *= eddy_dtype_size((eddy_dtype)read->dtype);
    *copied =
        (eddy_code_operand){.dtype = read->dtype, .access = EDDY_CODE_WRITES | EDDY_CODE_MAKES};
    return eddy_code_add_value(code, &value, &copied->value);
}

bool eddy_late_read_copy(eddy_code *code, eddy_code_instruction *read,
                         eddy_code_instruction *copy) {
    const eddy_op *op = eddy_op_find_built_in("clone");
    eddy_code_operand from = *read_operand(code, read), to;
    eddy_layout of_from, of_to;
    EDDY_ASSERT(op->attribute_bytes == 0);
    eddy_code_operand_layout(code, &from, &of_from);
    *copy = (eddy_code_instruction){.op = op,
                                    .kernel = eddy_op_kernel_for(op, (eddy_dtype)from.dtype),
                                    .address = read->address,
                                    .operands_at = code->operands.count,
                                    .patches_at = code->patches.count,
                                    .operand_count = 2,
                                    .input_count = 1,
                                    .ordinal = read->ordinal,
                                    .compute = from.dtype};
    if (!add_copied(code, &from, &to, &of_to) || !eddy_code_add_operand(code, &from, &of_from) ||
        !eddy_code_add_operand(code, &to, &of_to))
        return false;
    read->operands_at = code->operands.count;
    to.access = EDDY_CODE_READS;
    return eddy_code_add_operand(code, &to, &of_to);
}
