#include <program/host_read.h>

#include <base/call_site.h>
#include <base/clock.h>
#include <base/dtype.h>
#include <eddy/host.h>
#include <program/quiet.h>
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

/* Whether what is read becomes a guard. */
static bool guard(eddy_recording *recording, const eddy_tensor *tensor) {
    return recording->inputs && is_as_before(recording, tensor) && !is_in_loop(recording) &&
           eddy_guard_add(&recording->reads, *recording->inputs, tensor);
}

/* ---- what the calls have computed ---- */

/* Functions of branches and loops are noted, for they run otherwise in a program; passes that go back behind the call are another one; and what a timeout leaves undone nobody can
 * know before. */
static bool may_mark(const eddy_recording *recording, const eddy_tensor *tensor, int64_t deadline) {
    uint32_t value = eddy_recording_value_of(recording, tensor);
    return recording->inputs && recording->recorder.mode == EDDY_RECORDER_RUNS &&
           recording->status == EDDY_OK && !recording->plan && deadline == EDDY_CLOCK_FOREVER &&
           value != EDDY_CODE_NONE && !eddy_code_value_at(&recording->code, value)->is_late &&
           tensor->count > 0 && recording->path_bytes + bytes_of(tensor) <= EDDY_PATH_BYTES_MOST;
}

/* The elements, as the function is about to see them. False where that fails, as it will for the function. */
static bool read_now(eddy_recording *recording, eddy_tensor *tensor) {
    eddy_quiet q;
    eddy_error failed;
    eddy_recorder *recorder = eddy_recorder_set_aside(eddy_caller_self);
    eddy_quiet_begin(&q);
    eddy_status status =
        eddy_read(tensor, recording->path + recording->path_bytes, (size_t)bytes_of(tensor), NULL);
    eddy_quiet_end(&q, &failed);
    eddy_recorder_go_on(eddy_caller_self, recorder);
    return status == EDDY_OK;
}

/* The code of the function goes on as it does for these elements: so may a run for which they are the same. */
static bool mark(eddy_recording *recording, eddy_tensor *tensor, eddy_origin origin,
                 int64_t deadline) {
    uint32_t index;
    if (!may_mark(recording, tensor, deadline) || !read_now(recording, tensor) ||
        !eddy_code_array_add(&recording->computed, sizeof(eddy_guard), 1, &index))
        return false;
    ((eddy_guard *)recording->computed.items)[index] = (eddy_guard){
        .input = EDDY_CODE_NONE, .dtype = tensor->dtype, .bytes = (uint32_t)bytes_of(tensor)};
    if (index == 0)
        describe(recording, tensor, origin, recording->first_computed,
                 sizeof(recording->first_computed));
    recording->path_bytes += (uint32_t)bytes_of(tensor);
    EDDY_CHECK(recording->depth == 0);
    eddy_recording_check_use(recording, tensor, origin);
    eddy_recording_mark(recording, EDDY_CONTROL_READ, tensor, NULL, origin);
    return true;
}

/* A value that the program's code has seen may have decided which calls follow. Whether it has cannot be known here: what is recorded
 * is one way through that code, as the page says. */
void eddy_host_read_record(eddy_recorder *recorder, eddy_tensor *tensor, eddy_origin origin,
                           bool is_of_elements, int64_t deadline) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recorder->mode == EDDY_RECORDER_WATCHES)
        return;
    if (is_of_elements && (guard(recording, tensor) || mark(recording, tensor, origin, deadline)))
        return;
    if (recording->read_count++ == 0)
        explain(recording, tensor, origin,
                why_no_mark(recording, tensor, is_of_elements, deadline));
}

void eddy_host_read_describe(const eddy_recording *recording, char *text, size_t size) {
    if (recording->read_count > 1)
        snprintf(text, size, "it reads %llu values, the first of them: %s",
                 (unsigned long long)recording->read_count, recording->first_read);
    else
        snprintf(text, size, "%s", recording->first_read);
}
