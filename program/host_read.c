#include <program/host_read.h>

#include <base/call_site.h>
#include <base/clock.h>
#include <base/dtype.h>
#include <eddy/host.h>
#include <interpreter/call/copy.h>
#include <interpreter/host/row_major.h>
#include <program/quiet.h>
#include <stdio.h>
#include <streams/team.h>

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

static const eddy_code_instruction *writer_of(const eddy_recording *recording,
                                              const eddy_tensor *tensor) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return value == EDDY_CODE_NONE ? NULL : find_writer(&recording->code, value);
}

/* "item_f64 (step.c:41) reads f32[], which mean has written" */
static void describe(const eddy_recording *recording, const eddy_tensor *tensor, eddy_origin origin,
                     char *text, size_t size) {
    char shape[EDDY_RANK_MAX * 22], whose[80];
    const char *place = eddy_call_site_place(origin.address);
    const eddy_code_instruction *writer = writer_of(recording, tensor);
    if (writer)
        snprintf(whose, sizeof(whose), ", which %.40s has written", writer->op->name);
    else
        describe_owner(recording, tensor, whose, sizeof(whose));
    eddy_tensor_describe(tensor, shape, sizeof(shape));
    snprintf(text, size, "%.30s%s%.60s%s reads %.40s%s", origin.op, place ? " (" : "",
             place ? place : "", place ? ")" : "", shape, whose);
}

/* Why what the calls have computed does not tell which path is taken (mark, below). */
static const char *why_no_mark(const eddy_recording *recording, const eddy_tensor *tensor,
                               bool is_of_elements, int64_t deadline) {
    _Static_assert(EDDY_PATH_BYTES_MOST == 256, "the sentence says so");
    if (!is_of_elements || !writer_of(recording, tensor))
        return "";
    if (recording->path_bytes + bytes_of(tensor) > EDDY_PATH_BYTES_MOST)
        return ", and 256 bytes decide at most";
    return deadline != EDDY_CLOCK_FOREVER ? ", with a timeout" : "";
}

/* What is read, and what to do instead. */
static void explain(eddy_recording *recording, const eddy_tensor *tensor, eddy_origin origin,
                    const char *why) {
    char text[192];
    const char *instead = writer_of(recording, tensor) ? EDDY_HOST_READ_INSTEAD
                          : is_in_loop(recording)      ? "do that before the loop"
                                                       : "do that before the call";
    describe(recording, tensor, origin, text, sizeof(text));
    snprintf(recording->first_read, sizeof(recording->first_read), "%s%s; %s", text, why, instead);
}

/* Whether the elements are those from before the call. */
static bool is_as_before(const eddy_recording *recording, const eddy_tensor *tensor) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return value == EDDY_CODE_NONE || !eddy_code_value_at(&recording->code, value)->is_written;
}

/* ---- the elements that the function is about to see ----
 *
 * Another thread may write a tensor that was there before between a look at it here and the function's own. So both look at a copy, or at what is lent to the function. */

static void hold(eddy_recording *recording, eddy_tensor *copy) {
    if (recording->read_copy)
        eddy_tensor_drop(recording->read_copy);
    recording->read_copy = copy;
}

/* The elements in a row, in `bytes`. False where that fails, as it will for the function. */
static bool look(eddy_tensor *tensor, const eddy_recorder_reading *reading, void *bytes) {
    eddy_quiet q;
    eddy_error failed;
    if (reading->first) {
        eddy_layout layout;
        eddy_tensor_layout(tensor, &layout);
        layout.offset = 0;
        eddy_row_major_copy(&layout, (size_t)eddy_dtype_size((eddy_dtype)tensor->dtype),
                            reading->first, bytes, &eddy_team_serial);
        return true;
    }
    eddy_recorder *recorder = eddy_recorder_set_aside(eddy_caller_self);
    eddy_quiet_begin(&q);
    eddy_status status =
        eddy_read(tensor, bytes, (size_t)bytes_of(tensor),
                  EDDY_OPTIONS(read, .timeout = eddy_clock_left(reading->deadline)));
    eddy_quiet_end(&q, &failed);
    eddy_recorder_go_on(eddy_caller_self, recorder);
    return status == EDDY_OK;
}

/* A copy for both, which the recording holds; the tensor itself where it is lent, or there is no memory for one: then it cannot be known what the function sees, and
 * *has_copy is false. is_recorded: by a call of the program. */
static eddy_tensor *copy_of(eddy_recording *recording, eddy_tensor *tensor,
                            const eddy_recorder_reading *reading, bool is_recorded,
                            bool *has_copy) {
    eddy_quiet q;
    eddy_error failed;
    eddy_tensor *copy = NULL;
    *has_copy = true;
    if (reading->first)
        return tensor;
    eddy_recorder *recorder = is_recorded ? NULL : eddy_recorder_set_aside(eddy_caller_self);
    eddy_quiet_begin(&q);
    eddy_status status =
        eddy_copy_contiguous(eddy_caller_self, tensor, reading->origin.address, &copy);
    eddy_quiet_end(&q, &failed);
    eddy_recorder_go_on(eddy_caller_self, recorder);
    *has_copy = status == EDDY_OK;
    if (!*has_copy)
        return tensor;
    hold(recording, copy);
    return copy;
}

/* ---- what was there before the call ---- */

/* Whether what is read becomes a guard. */
static bool guard(eddy_recording *recording, const eddy_tensor *tensor) {
    return recording->inputs && is_as_before(recording, tensor) && !is_in_loop(recording) &&
           eddy_guard_add(&recording->reads, *recording->inputs, tensor);
}

/* The recording is kept under what guards have read: the function sees the same, or another thread has written it meanwhile. */
static eddy_tensor *compare(eddy_recording *recording, eddy_tensor *tensor,
                            const eddy_recorder_reading *reading) {
    unsigned char elements[EDDY_GUARD_BYTES_MOST];
    bool has_copy;
    eddy_tensor *seen = copy_of(recording, tensor, reading, false, &has_copy);
    if (recording->known_guards && has_copy && look(seen, reading, elements) &&
        !eddy_guard_is_value(recording->known_guards, recording->known_values, *recording->inputs,
                             tensor, elements)) {
        recording->is_disturbed = true;
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, reading->origin,
                             "another thread has written what it reads since the call began");
    }
    return seen;
}

/* ---- what the calls have computed ---- */

/* Functions of branches and loops are noted, for they run otherwise in a program; passes that go back behind the call are another one; and what a timeout leaves undone nobody can
 * know before. */
static bool may_mark(const eddy_recording *recording, const eddy_tensor *tensor, int64_t deadline) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return recording->inputs && recording->recorder.mode == EDDY_RECORDER_RUNS &&
           recording->status == EDDY_OK && !recording->plan && deadline == EDDY_CLOCK_FOREVER &&
           value != EDDY_CODE_NONE && !eddy_code_value_at(&recording->code, value)->is_late &&
           recording->path_bytes + bytes_of(tensor) <= EDDY_PATH_BYTES_MOST;
}

static bool is_made(const eddy_recording *recording, const eddy_tensor *tensor) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return eddy_code_value_at(&recording->code, value)->kind == EDDY_VALUE_MADE;
}

/* The code of the function goes on as it does for these elements: so may a run for which they are the same. NULL: there is no mark. */
static eddy_tensor *mark(eddy_recording *recording, eddy_tensor *tensor,
                         const eddy_recorder_reading *reading) {
    uint32_t index;
    bool has_copy = true;
    if (!may_mark(recording, tensor, reading->deadline))
        return NULL;
    eddy_tensor *seen =
        is_made(recording, tensor) ? tensor : copy_of(recording, tensor, reading, true, &has_copy);
    if (!has_copy || !look(seen, reading, recording->path + recording->path_bytes))
        return NULL;
    if (!eddy_code_array_add(&recording->computed, sizeof(eddy_guard), 1, &index)) {
        eddy_recording_spoil(recording, EDDY_OUT_OF_MEMORY, reading->origin,
                             "no memory to record it");
        return seen;
    }
    ((eddy_guard *)recording->computed.items)[index] = (eddy_guard){
        .input = EDDY_CODE_NONE, .dtype = tensor->dtype, .bytes = (uint32_t)bytes_of(tensor)};
    if (index == 0)
        describe(recording, tensor, reading->origin, recording->first_computed,
                 sizeof(recording->first_computed));
    recording->path_bytes += (uint32_t)bytes_of(tensor);
    EDDY_CHECK(recording->depth == 0);
    eddy_recording_check_use(recording, seen, reading->origin);
    eddy_recording_mark(recording, EDDY_CONTROL_READ, seen, NULL, reading->origin);
    return seen;
}

/* ---- all of it ---- */

/* A value that the program's code has seen may have decided which calls follow. Whether it has cannot be known here: what is recorded
 * is one way through that code, as the page says. */
eddy_tensor *eddy_host_read_record(eddy_recorder *recorder, eddy_tensor *tensor,
                                   const eddy_recorder_reading *reading) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode == EDDY_RECORDER_WATCHES || (reading->is_of_elements && tensor->count == 0))
        return tensor;
    if (reading->is_of_elements && guard(recording, tensor))
        return compare(recording, tensor, reading);
    eddy_tensor *seen = reading->is_of_elements ? mark(recording, tensor, reading) : NULL;
    if (!seen && recording->read_count++ == 0)
        explain(recording, tensor, reading->origin,
                why_no_mark(recording, tensor, reading->is_of_elements, reading->deadline));
    return seen ? seen : tensor;
}

void eddy_host_read_describe(const eddy_recording *recording, char *text, size_t size) {
    if (recording->read_count > 1)
        snprintf(text, size, "it reads %llu values, the first of them: %s",
                 (unsigned long long)recording->read_count, recording->first_read);
    else
        snprintf(text, size, "%s", recording->first_read);
}
