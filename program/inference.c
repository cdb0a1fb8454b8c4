#include <program/inference.h>

#include <base/dtype.h>
#include <base/status.h>
#include <interpreter/call/infer.h>
#include <interpreter/host/transfer.h>
#include <program/control.h>
#include <program/lists.h>
#include <stdio.h>
#include <string.h>

static bool has_spec_only(const eddy_op *op) {
    for (int32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].is_spec_only)
            return true;
    return false;
}

bool eddy_inference_fits(const eddy_op *op, int64_t input_count, int64_t output_count) {
    return (output_count > 0 || !has_spec_only(op)) &&
           eddy_lists_count(op) <= EDDY_INFERENCE_LISTS &&
           eddy_lists_length(op, input_count) >= 0 && output_count == op->output_count;
}

/* ---- inputs ---- */

static void fill_spec(const eddy_code *code, const eddy_code_operand *operand, eddy_spec *spec) {
    *spec = (eddy_spec){.is_absent = eddy_code_operand_is_absent(operand), .dtype = EDDY_F32};
    if (spec->is_absent)
        return;
    spec->dtype = (eddy_dtype)operand->dtype;
    spec->shape.rank = operand->rank;
    for (int32_t d = 0; d < operand->rank; d++)
        spec->shape.dims[d] = eddy_code_dims(code, operand)[d];
}

/* An operand of which only the dtype and shape are used is not in the code: it is like the result in all ops that have one. */
static bool fill_specs(eddy_inference *inference, const eddy_code *code,
                       const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    int64_t length = eddy_lists_length(op, instruction->input_count);
    uint32_t at = instruction->operands_at, result = at + instruction->input_count, added;
    int32_t list = 0;
    inference->specs.count = 0;
    for (int32_t i = 0; i < op->operand_count; i++) {
        bool is_list = op->operands[i].kind == EDDY_OPERAND_LIST;
        uint32_t count = is_list ? (uint32_t)length : 1;
        if (is_list)
            inference->list_counts[list++] = length;
        if (!eddy_code_array_add(&inference->specs, sizeof(eddy_spec), count, &added))
            return false;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t operand = op->operands[i].is_spec_only ? result : at++;
            fill_spec(code, eddy_code_operand_at(code, operand),
                      (eddy_spec *)inference->specs.items + added + k);
        }
    }
    return true;
}

/* ---- attributes ---- */

/* The dtype of the numbers that decide what a call computes in: that of its promoted operands, else of its result. */
static eddy_dtype number_dtype(const eddy_inference *inference, const eddy_code *code,
                               const eddy_code_instruction *instruction, int64_t input_count) {
    eddy_operand_iterator at;
    eddy_operand_iterator_begin(&at, instruction->op, inference->list_counts);
    for (int64_t i = 0; i < input_count; i++) {
        const eddy_op_operand *operand = eddy_operand_iterator_next(&at);
        const eddy_spec *spec = (const eddy_spec *)inference->specs.items + i;
        if (!spec->is_absent && eddy_infer_is_promoted(instruction->op, operand))
            return spec->dtype;
    }
    if (instruction->op->output_count == 0)
        return EDDY_F32;
    uint32_t result = instruction->operands_at + instruction->input_count;
    return (eddy_dtype)eddy_code_operand_at(code, result)->dtype;
}

static eddy_scalar_kind kind_of(eddy_dtype dtype) {
    static const eddy_scalar_kind kinds[] = {[EDDY_CATEGORY_BOOL] = EDDY_SCALAR_BOOL,
                                             [EDDY_CATEGORY_INT] = EDDY_SCALAR_INT,
                                             [EDDY_CATEGORY_FLOAT] = EDDY_SCALAR_FLOAT};
    return kinds[eddy_dtype_category_of(dtype)];
}

/* Numbers that each run gives: a 0 of their kind for the rule, and the 0 of the code after it. */
static void set_given(const eddy_code *code, const eddy_code_instruction *instruction,
                      char *attributes, eddy_scalar_kind kind) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code, instruction->patches_at + k);
        const eddy_code_scalar *use = patch->draw ? NULL : eddy_code_scalar_at(code, patch->scalar);
        if (!use || use->is_double)
            continue;
        eddy_scalar number = {.kind = kind};
        memcpy(attributes + instruction->op->attributes[use->attribute].offset, &number,
               sizeof(number));
    }
}

/* Of what inference left an empty set names no axis, before it all of them. */
static void name_axes(const eddy_op *op, char *attributes) {
    for (int32_t i = 0; i < op->attribute_count; i++) {
        uint32_t axes;
        char *place = attributes + op->attributes[i].offset;
        if (op->attributes[i].type != EDDY_ATTRIBUTE_AXES)
            continue;
        memcpy(&axes, place, sizeof(axes));
        axes = axes == 0 ? EDDY_AXES_NAMELESS : axes;
        memcpy(place, &axes, sizeof(axes));
    }
}

static char *copy_attributes(eddy_inference *inference, const eddy_code *code,
                             const eddy_code_instruction *instruction) {
    size_t bytes = instruction->op->attribute_bytes;
    uint32_t words = (uint32_t)((bytes + sizeof(int64_t) - 1) / sizeof(int64_t)), first;
    inference->words.count = 0;
    if (!eddy_code_array_add(&inference->words, sizeof(int64_t), words + 1, &first))
        return NULL;
    if (bytes > 0)
        memcpy(inference->words.items, eddy_code_words(code, instruction->attributes_at), bytes);
    inference->attributes = inference->words.items;
    return inference->words.items;
}

/* ---- the rule ---- */

/* The rule's own failure becomes the reason: the thread's error slot is as it was. */
static eddy_status infer_quietly(eddy_inference *inference, eddy_infer *infer) {
    eddy_error kept, found = {0};
    eddy_outcome *outcome = eddy_outcome_set_aside();
    bool had_error = eddy_error_peek(&kept);
    if (had_error)
        eddy_error_take(NULL);
    eddy_status status = eddy_infer_run(infer, inference->compute);
    if (status != EDDY_OK) {
        eddy_error_take(&found);
        snprintf(inference->reason, sizeof(inference->reason), "%.300s", found.message);
    }
    if (had_error)
        eddy_error_restore(&kept);
    eddy_outcome_go_on(outcome);
    return status == EDDY_OK ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

eddy_status eddy_inference_run(eddy_inference *inference, const eddy_code *code,
                               const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    EDDY_ASSERT(eddy_inference_fits(op, instruction->input_count,
                                    instruction->operand_count - instruction->input_count));
    char *attributes = copy_attributes(inference, code, instruction);
    if (!attributes || !fill_specs(inference, code, instruction))
        return EDDY_OUT_OF_MEMORY;
    int64_t inputs = inference->specs.count;
    set_given(code, instruction, attributes,
              kind_of(number_dtype(inference, code, instruction, inputs)));
    name_axes(op, attributes);
    eddy_infer infer = {.op = op,
                        .inputs = inference->specs.items,
                        .input_count = inputs,
                        .list_counts = inference->list_counts,
                        .attributes = attributes,
                        .outputs = inference->outputs};
    inference->compute = eddy_infer_compute(&infer);
    eddy_status status = infer_quietly(inference, &infer);
    if (status != EDDY_OK)
        return status;
    set_given(code, instruction, attributes, EDDY_SCALAR_BOOL);
    eddy_code_clear_gaps(op, attributes);
    return EDDY_OK;
}

const eddy_kernel *eddy_inference_kernel(const eddy_op *op, eddy_dtype compute,
                                         eddy_device_kind kind) {
    return op == &eddy_transfer_op || eddy_control_of(op) != EDDY_CONTROL_NONE
               ? eddy_op_kernel_for(op, compute)
               : eddy_op_kernel_on(op, compute, kind);
}

void eddy_inference_fini(eddy_inference *inference) {
    eddy_code_array_fini(&inference->specs, sizeof(eddy_spec));
    eddy_code_array_fini(&inference->words, sizeof(int64_t));
    *inference = (eddy_inference){0};
}
