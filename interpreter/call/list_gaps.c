#include <interpreter/call/list_gaps.h>

#include <base/status.h>
#include <interpreter/call/general_call.h>
#include <interpreter/call/infer.h>
#include <interpreter/handle/tensor.h>

/* The most operands of an op with gaps. */
#define LISTS_MAX 8

/* The beginning and length of the list whose absent items are left out; false if the call's lists do not fit the op. */
static bool find_gaps(const eddy_apply *apply, eddy_tensor *const **items, int64_t *count) {
    const eddy_op *op = apply->op;
    if (!apply->inputs || eddy_infer_input_count(op, apply->list_counts) != apply->input_count)
        return false;
    int64_t at = 0;
    int32_t list = 0;
    for (int32_t i = 0; i < op->skips_of - 1; i++)
        at += op->operands[i].kind == EDDY_OPERAND_LIST ? apply->list_counts[list++] : 1;
    *items = apply->inputs + at;
    *count = apply->list_counts[list];
    return true;
}

static bool is_gap(const eddy_tensor *item) {
    return item && eddy_tensor_is_none(item);
}

bool eddy_list_gaps_is_needed(const eddy_apply *apply) {
    eddy_tensor *const *items = NULL;
    int64_t count = 0;
    bool is_needed = false;
    if (!find_gaps(apply, &items, &count))
        return false;
    for (int64_t i = 0; i < count && !is_needed; i++)
        is_needed = is_gap(items[i]);
    return is_needed;
}

/* Copies the remaining inputs, and counts them in their lists. */
static eddy_status close_gaps(const eddy_apply *apply, eddy_tensor **inputs, int64_t *input_count,
                              int64_t *list_counts) {
    const eddy_op *op = apply->op;
    eddy_tensor *const *gaps = NULL;
    int64_t count = 0, at = 0;
    int32_t list = 0;
    *input_count = 0;
    (void)find_gaps(apply, &gaps, &count);
    for (int32_t i = 0; i < op->operand_count; i++) {
        if (op->operands[i].kind != EDDY_OPERAND_LIST) {
            inputs[(*input_count)++] = apply->inputs[at++];
            continue;
        }
        int64_t items = apply->list_counts[list], before = *input_count;
        for (int64_t k = 0; k < items; k++, at++) {
            bool is_left_out = items == count && is_gap(gaps[k]);
            eddy_status status = EDDY_OK;
            if (is_left_out && apply->inputs + at != gaps + k)
                status = eddy_tensor_check_item(apply->inputs[at], op->operands[i].name, k,
                                                eddy_apply_origin(apply));
            if (status != EDDY_OK)
                return status;
            if (!is_left_out)
                inputs[(*input_count)++] = apply->inputs[at];
        }
        list_counts[list++] = *input_count - before;
    }
    return EDDY_OK;
}

eddy_status eddy_list_gaps_apply(eddy_caller *caller, const eddy_apply *apply) {
    int64_t list_counts[LISTS_MAX];
    EDDY_ASSERT(apply->op->operand_count <= LISTS_MAX);
    size_t bytes = (size_t)apply->input_count * sizeof(*apply->inputs);
    eddy_tensor **inputs = eddy_caller_scratch_begin(caller, bytes);
    if (!inputs)
        return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_apply_origin(apply),
                         "no memory for %lld operands", (long long)apply->input_count);
    eddy_apply closed = *apply;
    closed.inputs = inputs;
    closed.list_counts = list_counts;
    eddy_status status = close_gaps(apply, inputs, &closed.input_count, list_counts);
    if (status == EDDY_OK)
        status = eddy_general_call_apply(caller, &closed);
    eddy_caller_scratch_end(caller, inputs, bytes);
    return status;
}
