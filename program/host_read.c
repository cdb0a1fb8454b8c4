#include <program/host_read.h>

#include <base/call_site.h>
#include <base/dtype.h>
#include <stdio.h>

/* The instruction that wrote the value last; NULL: none. */
static const eddy_code_instruction *find_writer(const eddy_code *code, uint32_t value) {
    for (uint32_t i = code->instructions.count; i-- > 0;) {
        const eddy_code_instruction *at = eddy_code_instruction_at(code, i);
        const eddy_code_operand *operands = eddy_code_operand_at(code, at->operands_at);
        for (uint32_t k = 0; k < at->operand_count; k++)
            if (operands[k].value == value && (operands[k].access & EDDY_CODE_WRITES))
                return at;
    }
    return NULL;
}

static int64_t count_inputs(const eddy_recording *recording, const eddy_tensor *tensor) {
    int64_t count = 0;
    for (int64_t i = 0; recording->inputs && i < recording->inputs->count; i++)
        count += recording->inputs->items[i]->root == tensor->root;
    return count;
}

static int64_t bytes_of(const eddy_tensor *tensor) {
    return tensor->count * eddy_dtype_size((eddy_dtype)tensor->dtype);
}

/* Whose elements they are that were there before the call. */
static void describe_owner(const eddy_recording *recording, const eddy_tensor *tensor, char *text,
                           size_t size) {
    int64_t count = count_inputs(recording, tensor);
    if (bytes_of(tensor) > EDDY_GUARD_BYTES_MOST)
        snprintf(text, size, "%s, and %d bytes decide at most",
                 count > 0 ? " of an input" : ", which was there before", EDDY_GUARD_BYTES_MOST);
    else if (count == 0 && bytes_of(tensor->root) > EDDY_GUARD_OWN_BYTES_MOST)
        snprintf(text, size, ", a part of more than %d bytes that were there before",
                 EDDY_GUARD_OWN_BYTES_MOST);
    else
        snprintf(text, size, "%s",
                 count == 0  ? ", which was there before"
                 : count > 1 ? " of inputs that share memory"
                             : " of an input");
}

/* What a body reads it reads in each step, and it may write that later on. */
static bool is_in_loop(const eddy_recording *recording) {
    bool is_in = false;
    for (uint32_t depth = 1; depth <= recording->depth; depth++)
        is_in |= recording->loops[depth] != 0;
    return is_in;
}

/* What is read, and what to do instead. */
static void explain(eddy_recording *recording, const eddy_tensor *tensor, eddy_origin origin) {
    char shape[EDDY_RANK_MAX * 22], whose[80];
    const char *place = eddy_call_site_place(origin.address), *instead = "do that before the call";
    uint32_t value = eddy_recording_value_of(recording, tensor);
    const eddy_code_instruction *writer =
        value == EDDY_CODE_NONE ? NULL : find_writer(&recording->code, value);
    if (writer) {
        snprintf(whose, sizeof(whose), ", which %.40s has written", writer->op->name);
        instead = "give it out and read it after the call, or decide with eddy_cond or eddy_where";
    } else {
        describe_owner(recording, tensor, whose, sizeof(whose));
        instead = is_in_loop(recording) ? "do that before the loop" : instead;
    }
    eddy_tensor_describe(tensor, shape, sizeof(shape));
    snprintf(recording->first_read, sizeof(recording->first_read),
             "%.30s%s%.60s%s reads %.40s%s; %s", origin.op, place ? " (" : "", place ? place : "",
             place ? ")" : "", shape, whose, instead);
}

/* Whether the elements are those from before the call. */
static bool is_as_before(const eddy_recording *recording, const eddy_tensor *tensor) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return value == EDDY_CODE_NONE || !eddy_code_value_at(&recording->code, value)->is_written;
}

/* Whether what is read becomes a guard. */
static bool guard(eddy_recording *recording, const eddy_tensor *tensor) {
    return recording->inputs && is_as_before(recording, tensor) && !is_in_loop(recording) &&
           eddy_guard_add(&recording->reads, *recording->inputs, tensor);
}

/* A value that the program's code has seen may have decided which calls follow. Whether it has cannot be known here: what is recorded
 * is one way through that code, as the page says. */
void eddy_host_read_record(eddy_recorder *recorder, const eddy_tensor *tensor, eddy_origin origin,
                           bool is_of_elements) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode == EDDY_RECORDER_WATCHES || (is_of_elements && guard(recording, tensor)))
        return;
    if (recording->read_count++ == 0)
        explain(recording, tensor, origin);
}

void eddy_host_read_describe(const eddy_recording *recording, char *text, size_t size) {
    if (recording->read_count > 1)
        snprintf(text, size, "it reads %llu values, the first of them: %s",
                 (unsigned long long)recording->read_count, recording->first_read);
    else
        snprintf(text, size, "%s", recording->first_read);
}
