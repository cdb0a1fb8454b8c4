/* Recording: from submitted calls to code. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/generator.h>
#include <interpreter/tape/autograd.h>
#include <program/draw_ops.h>
#include <program/gradient.h>
#include <program/host_read.h>
#include <program/late_calls.h>
#include <program/lists.h>
#include <program/loop_tape.h>
#include <stdio.h>
#include <string.h>

/* What cannot be replayed, or was not understood, is kept as the recording's failure, the first of them. */
static void spoil(eddy_recording *recording, eddy_status status, eddy_origin origin,
                  const char *reason) {
    if (recording->status != EDDY_OK)
        return;
    recording->status = status;
    recording->spoiled_by = origin;
    recording->reason = reason;
}

/* ---- storages ---- */

static uint32_t slot_of(const eddy_recording *recording, eddy_storage_number number) {
    uint32_t mask = recording->seen_capacity - 1, at = number * UINT32_C(0x9e3779b9) & mask;
    while (recording->seen[at].number != 0 && recording->seen[at].number != number)
        at = (at + 1) & mask;
    return at;
}

/* At most half full. */
static bool grow_seen(eddy_recording *recording) {
    if (2 * (recording->seen_count + 1) <= recording->seen_capacity)
        return true;
    eddy_recording larger = {.seen_capacity =
                                 recording->seen_capacity ? 2 * recording->seen_capacity : 64};
    larger.seen = eddy_memory_acquire_zeroed(larger.seen_capacity * sizeof(*larger.seen),
                                             EDDY_MEMORY_PROGRAM);
    if (!larger.seen)
        return false;
    for (uint32_t i = 0; i < recording->seen_capacity; i++)
        if (recording->seen[i].number != 0)
            larger.seen[slot_of(&larger, recording->seen[i].number)] = recording->seen[i];
    eddy_memory_release(recording->seen, recording->seen_capacity * sizeof(*recording->seen),
                        EDDY_MEMORY_PROGRAM);
    recording->seen = larger.seen;
    recording->seen_capacity = larger.seen_capacity;
    return true;
}

/* What is known of the tensor's storage; NULL if the recording has not seen it, or storages are gone with the runtime. */
static eddy_recording_seen *find_seen(const eddy_recording *recording, const eddy_tensor *tensor) {
    if (recording->seen_capacity == 0 || !eddy_runtime_is_running(recording->runtime))
        return NULL;
    eddy_recording_seen *seen = &recording->seen[slot_of(recording, tensor->storage)];
    bool is_it =
        seen->number == tensor->storage &&
        seen->generation == eddy_vm_storage_generation(recording->runtime->vm, tensor->storage);
    return is_it ? seen : NULL;
}

uint32_t eddy_recording_value_of(const eddy_recording *recording, const eddy_tensor *tensor) {
    const eddy_recording_seen *seen = find_seen(recording, tensor);
    return seen ? seen->value : EDDY_CODE_NONE;
}

static uint32_t version_of(const eddy_tensor *tensor) {
    return eddy_load_relaxed(&tensor->root->version);
}

bool eddy_recording_is_last_writer(const eddy_recording *recording, const eddy_tensor *tensor) {
    const eddy_recording_seen *seen = find_seen(recording, tensor);
    return !seen || seen->version == version_of(tensor);
}

/* NULL without memory. */
static eddy_recording_seen *see(eddy_recording *recording, const eddy_tensor *tensor,
                                uint32_t value) {
    if (!grow_seen(recording))
        return NULL;
    eddy_recording_seen *seen = &recording->seen[slot_of(recording, tensor->storage)];
    recording->seen_count += seen->number == 0;
    *seen = (eddy_recording_seen){
        .number = tensor->storage,
        .generation = eddy_vm_storage_generation(recording->runtime->vm, tensor->storage),
        .value = value,
        .version = version_of(tensor),
        .first = recording->code.instructions.count};
    return seen;
}

static int64_t storage_bytes(const eddy_tensor *tensor) {
    return tensor->root->count * eddy_dtype_size((eddy_dtype)tensor->root->dtype);
}

/* A value for a storage that was there before: captured, unless it is given a name when the recording ends. */
static bool capture(eddy_recording *recording, eddy_tensor *tensor, uint32_t *value) {
    eddy_code_value captured = {.bytes = storage_bytes(tensor), .kind = EDDY_VALUE_CAPTURED};
    uint32_t index;
    eddy_code_value_set_device(&captured, eddy_tensor_device(tensor));
    if (!eddy_code_array_add(&recording->externals, sizeof(eddy_program_external), 1, &index))
        return false;
    recording->externals.count--; /* counted once everything else is there */
    if (!eddy_code_add_value(&recording->code, &captured, value) || !see(recording, tensor, *value))
        return false;
    recording->externals.count++;
    eddy_tensor_retain(tensor->root);
    *((eddy_program_external *)recording->externals.items + index) =
        (eddy_program_external){.value = *value, .input = EDDY_CODE_NONE, .tensor = tensor->root};
    return true;
}

bool eddy_recording_make_value(eddy_recording *recording, const eddy_tensor *tensor, int64_t bytes,
                               uint32_t *value) {
    eddy_code_value made = {.bytes = bytes, .kind = EDDY_VALUE_MADE};
    if (eddy_tensor_is_late(tensor))
        made = (eddy_code_value){.kind = EDDY_VALUE_MADE, .is_late = true};
    eddy_code_value_set_device(&made, eddy_tensor_device(tensor));
    eddy_recording_seen *seen =
        eddy_code_add_value(&recording->code, &made, value) ? see(recording, tensor, *value) : NULL;
    if (seen)
        seen->is_lost = recording->recorder.mode == EDDY_RECORDER_NOTES;
    return seen != NULL;
}

bool eddy_recording_find_value(eddy_recording *recording, eddy_tensor *tensor, uint32_t *value) {
    *value = eddy_recording_value_of(recording, tensor);
    return *value != EDDY_CODE_NONE || capture(recording, tensor, value);
}

/* ---- writes of other threads ----
 *
 * Between the first and the last recorded call that uses a storage nobody else may write it: a run would not repeat that write in between. A
 * root's version counts the writes that were issued (handle/tensor.h). Those of the recording thread go all through general calls, which
 * count them just before they are recorded, so that what is beyond them is another thread's (or a callback's).
 * Before the first use and after the last one a write is harmless: a run is one instruction, before or behind it. So are reads,
 * which see what a run leaves before or after it, as they see what the calls leave. */

void eddy_recording_unwrite(eddy_recording *recording, eddy_tensor *root) {
    eddy_recording_seen *seen = find_seen(recording, root);
    if (seen)
        seen->version--;
    eddy_sub_relaxed(&root->version, 1u);
}

void eddy_recording_put_past(eddy_recording *recording, const eddy_tensor *carried) {
    eddy_recording_seen *seen = find_seen(recording, carried);
    if (seen)
        seen->is_past = true;
}

/* In a branch or a loop it may happen, or not. */
static bool note_guess(eddy_recording *recording, eddy_tensor *tensor) {
    uint32_t index;
    if (recording->depth == 0)
        return true;
    if (!eddy_code_array_add(&recording->guesses, sizeof(eddy_recording_guess), 1, &index))
        return false;
    eddy_tensor_retain(tensor->root);
    ((eddy_recording_guess *)recording->guesses.items)[index] =
        (eddy_recording_guess){tensor->root, recording->recorder.events + 1};
    return true;
}

/* Of a call that does not run. What such calls have made stays written: the tape of theirs knows it as that. */
static void note_write(eddy_recording *recording, const eddy_recording_seen *seen,
                       eddy_tensor *tensor, eddy_origin origin) {
    if (recording->recorder.mode != EDDY_RECORDER_NOTES || (seen && seen->is_lost))
        return;
    if (!note_guess(recording, tensor) ||
        !eddy_recording_note_change(recording, &(eddy_recording_change){.tensor = tensor->root}))
        spoil(recording, EDDY_OUT_OF_MEMORY, origin, "no memory to record it");
}

void eddy_recording_count_write(eddy_recording *recording, eddy_tensor *tensor,
                                eddy_origin origin) {
    eddy_recording_seen *seen = find_seen(recording, tensor);
    if (seen)
        seen->version++;
    note_write(recording, seen, tensor, origin);
}

/* Counts the call's own writes to storages that were seen before it. */
static void count_writes(eddy_recording *recording, const eddy_recorder_call *call) {
    const eddy_vm_operand *operand = call->operands;
    for (int64_t i = 0; i < call->view_count; i++) {
        if (eddy_tensor_is_none(call->views[i]))
            continue;
        bool is_write = operand->access != EDDY_ACCESS_CONST && !operand->is_new;
        operand++;
        if (is_write)
            eddy_recording_count_write(recording, call->views[i], eddy_apply_origin(call->apply));
    }
}

static void check_version(eddy_recording *recording, eddy_origin origin,
                          const eddy_recording_seen *seen, const eddy_tensor *tensor) {
    if (EDDY_LIKELY(seen->version == version_of(tensor)) || recording->status != EDDY_OK)
        return;
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, text, sizeof(text));
    snprintf(recording->text, sizeof(recording->text),
             "another thread has written its operand %.120s since %s used it", text,
             eddy_code_instruction_at(&recording->code, seen->first)->op->name);
    recording->is_disturbed = true;
    spoil(recording, EDDY_UNSUPPORTED, origin, recording->text);
}

/* The tape does not see those writes. */
static void check_past(eddy_recording *recording, eddy_origin origin,
                       const eddy_recording_seen *seen) {
    if (EDDY_UNLIKELY(seen->is_past))
        spoil(recording, EDDY_UNSUPPORTED, origin,
              "it uses what a loop carried, behind its steps, which have overwritten it");
}

/* The op whose call made the value. */
static const char *maker_of(const eddy_recording *recording, uint32_t value) {
    const eddy_code *code = &recording->code;
    uint32_t i = code->instructions.count;
    while (i-- > 0) {
        const eddy_code_instruction *maker = eddy_code_instruction_at(code, i);
        for (uint32_t k = maker->input_count; k < maker->operand_count; k++)
            if (eddy_code_operand_at(code, maker->operands_at + k)->value == value)
                return maker->op->name;
    }
    return "a call";
}

/* It is made behind a run. */
static void check_late(eddy_recording *recording, eddy_origin origin,
                       const eddy_recording_seen *seen) {
    if (EDDY_LIKELY(!eddy_code_value_at(&recording->code, seen->value)->is_late) ||
        recording->status != EDDY_OK)
        return;
    snprintf(
        recording->text, sizeof(recording->text),
        "it uses what %.40s has made, whose shape depends on data: a program only gives that out",
        maker_of(recording, seen->value));
    spoil(recording, EDDY_UNSUPPORTED, origin, recording->text);
}

void eddy_recording_check_use(eddy_recording *recording, const eddy_tensor *tensor,
                              eddy_origin origin) {
    const eddy_recording_seen *seen = find_seen(recording, tensor);
    if (!seen)
        return;
    check_past(recording, origin, seen);
    check_late(recording, origin, seen);
    check_version(recording, origin, seen, tensor);
}

static void check_others(eddy_recording *recording, const eddy_recorder_call *call) {
    const eddy_vm_operand *operand = call->operands;
    for (int64_t i = 0; i < call->view_count; i++) {
        if (eddy_tensor_is_none(call->views[i]))
            continue;
        if (!operand++->is_new)
            eddy_recording_check_use(recording, call->views[i], eddy_apply_origin(call->apply));
    }
}

/* ---- calls ---- */

static uint8_t access_of(const eddy_vm_operand *operand) {
    if (operand->access == EDDY_ACCESS_CONST)
        return EDDY_CODE_READS;
    if (operand->is_new)
        return EDDY_CODE_WRITES | EDDY_CODE_MAKES;
    return EDDY_CODE_WRITES | (operand->covers_all ? EDDY_CODE_COVERS : EDDY_CODE_READS);
}

static bool add_operand(eddy_recording *recording, eddy_tensor *tensor,
                        const eddy_vm_operand *operand) {
    eddy_code_operand added = {.value = EDDY_CODE_NONE, .rank = 0};
    eddy_layout layout = {0};
    if (operand) {
        if (!(operand->is_new
                  ? eddy_recording_make_value(recording, tensor, operand->bytes, &added.value)
                  : eddy_recording_find_value(recording, tensor, &added.value)))
            return false;
        added.dtype = tensor->dtype;
        added.access = access_of(operand);
        if (eddy_code_value_at(&recording->code, added.value)->is_late)
            eddy_late_calls_layout(&layout);
        else
            eddy_tensor_layout(tensor, &layout);
        if (added.access & EDDY_CODE_WRITES)
            eddy_code_value_at(&recording->code, added.value)->is_written = true;
    }
    return eddy_code_add_operand(&recording->code, &added, &layout);
}

static bool find_generator(eddy_recording *recording, eddy_generator *generator, uint32_t *index) {
    *index = EDDY_CODE_NONE;
    if (!generator || generator == eddy_generator_default())
        return true;
    eddy_generator **held = recording->generators.items;
    for (*index = 0; *index < recording->generators.count; ++*index)
        if (held[*index] == generator)
            return true;
    if (!eddy_code_array_add(&recording->generators, sizeof(*held), 1, index))
        return false;
    held = recording->generators.items;
    held[*index] = eddy_generator_retain(generator);
    return true;
}

/* A recording that stands in for a part of another one begins as deep as that is. */
static uint32_t known_depth(const eddy_recording *recording) {
    return recording->depth < EDDY_CONTROL_DEPTH_MOST ? recording->depth : EDDY_CONTROL_DEPTH_MOST;
}

/* The innermost loop whose marks are open; 0: none. */
static uint32_t open_loop(const eddy_recording *recording) {
    uint32_t depth = known_depth(recording);
    while (depth > 0 && recording->loops[depth] == 0)
        depth--;
    return depth > 0 ? recording->loops[depth] : 0;
}

/* Whether a step of the loop is being recorded; 0 is always. */
static bool is_open(const eddy_recording *recording, uint32_t loop) {
    for (uint32_t depth = 1; depth <= known_depth(recording) && loop > 0; depth++)
        if (recording->loops[depth] == loop)
            return true;
    return loop == 0;
}

static bool note_drawn(eddy_recording *recording, const void *seed_and_counter) {
    uint32_t index;
    if (!eddy_code_array_add(&recording->drawn, sizeof(eddy_recording_drawn), 1, &index))
        return false;
    eddy_recording_drawn *drawn = (eddy_recording_drawn *)recording->drawn.items + index;
    *drawn = (eddy_recording_drawn){.loop = open_loop(recording)};
    memcpy(drawn->seed_and_counter, seed_and_counter, sizeof(drawn->seed_and_counter));
    return true;
}

bool eddy_recording_add_draw(eddy_recording *recording, eddy_generator *generator,
                             const void *seed_and_counter, uint32_t *number) {
    eddy_code_draw draw;
    uint32_t index;
    if (!find_generator(recording, generator, &draw.generator) ||
        !eddy_code_add_draw(&recording->code, &draw, &index))
        return false;
    *number = index + 1;
    return note_drawn(recording, seed_and_counter);
}

/* A gradient makes the numbers of an earlier draw again: of a draw that was recorded, or of one before, which stays a constant. There is one
 * place for those of a loop: they are those of the step that is under way, of the loop that draws or of one that sets them. */
static void find_draw(eddy_recording *recording, const eddy_recorder_call *call,
                      eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    const char *attributes = call->apply->attributes;
    double chance = 1;
    uint64_t drawn[2];
    if (op->chance_of > 0)
        memcpy(&chance, attributes + op->attributes[op->chance_of - 1].offset, sizeof(chance));
    if (chance == 0)
        return;
    memcpy(&drawn[0], attributes + eddy_code_seed_word(op) * sizeof(int64_t), sizeof(drawn[0]));
    memcpy(&drawn[1], attributes + eddy_code_counter_word(op) * sizeof(int64_t), sizeof(drawn[1]));
    eddy_recording_drawn *seen = recording->drawn.items;
    for (uint32_t i = recording->drawn.count; i > 0 && !instruction->draw; i--)
        if (memcmp(seen[i - 1].seed_and_counter, drawn, sizeof(drawn)) == 0)
            instruction->draw = i;
    if (instruction->draw && eddy_draw_op_sets(op))
        seen[instruction->draw - 1].loop = open_loop(recording);
    else if (instruction->draw && !is_open(recording, seen[instruction->draw - 1].loop))
        spoil(recording, EDDY_UNSUPPORTED, eddy_apply_origin(call->apply),
              "it needs the random numbers that the steps of a loop have drawn");
}

/* A run draws its own: the recorded numbers are no part of the code. */
static bool patch_draw(eddy_recording *recording, eddy_code_instruction *instruction) {
    eddy_code *code = &recording->code;
    int64_t *words = eddy_code_words(code, instruction->attributes_at);
    uint32_t seed = eddy_code_seed_word(instruction->op),
             counter = eddy_code_counter_word(instruction->op);
    if (!instruction->draw)
        return true;
    words[seed] = words[counter] = 0;
    instruction->patch_count += 2;
    return eddy_code_add_patch(
               code, &(eddy_code_patch){.to = seed, .draw = instruction->draw, .from = 0}) &&
           eddy_code_add_patch(
               code, &(eddy_code_patch){.to = counter, .draw = instruction->draw, .from = 1});
}

/* ---- a call ---- */

static bool add_call(eddy_recording *recording, const eddy_recorder_call *call) {
    const eddy_apply *apply = call->apply;
    eddy_code_instruction instruction = {.op = apply->op,
                                         .kernel = call->kernel,
                                         .address = apply->address,
                                         .operands_at = recording->code.operands.count,
                                         .patches_at = recording->code.patches.count,
                                         .operand_count = (uint32_t)call->view_count,
                                         .ordinal = recording->code.recorded_count,
                                         .input_count = (uint32_t)call->input_count,
                                         .compute = (uint8_t)call->compute};
    const eddy_vm_operand *operand = call->operands;
    for (int64_t i = 0; i < call->view_count; i++)
        if (!add_operand(recording, call->views[i],
                         eddy_tensor_is_none(call->views[i]) ? NULL : operand++))
            return false;
    uint32_t index;
    if (!eddy_code_add_words(&recording->code, apply->attributes, apply->op->attribute_bytes,
                             &instruction.attributes_at) ||
        (call->has_drawn && !eddy_recording_add_draw(recording, apply->generator, apply->attributes,
                                                     &instruction.draw)))
        return false;
    eddy_code_clear_gaps(apply->op, eddy_code_words(&recording->code, instruction.attributes_at));
    if (apply->op->redraws)
        find_draw(recording, call, &instruction);
    bool is_added = patch_draw(recording, &instruction) &&
                    eddy_recording_patch_numbers(recording, call, &instruction) &&
                    eddy_code_add_instruction(&recording->code, &instruction, &index);
    recording->code.recorded_count += is_added;
    recording->recorder.events++;
    return is_added;
}

/* Why a call cannot be issued behind a run (late_calls.h), if it would have to be; else NULL. */
static const char *refuse_late(const eddy_op *op) {
    if (!op->has_late_shape)
        return NULL;
    if (op->is_random || eddy_lists_count(op) > 0)
        return "the shape of its result depends on its data, and it is random or takes a list";
    for (int32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].is_mut)
            return "the shape of its result depends on its data, and it writes to an operand";
    return NULL;
}

static void record_call(eddy_recorder *recorder, const eddy_recorder_call *call) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    eddy_origin origin = eddy_apply_origin(call->apply);
    count_writes(recording, call);
    if (recording->status != EDDY_OK || recorder->mode == EDDY_RECORDER_WATCHES)
        return;
    const eddy_op *op = call->apply->op;
    /* In branches and loops calls are noted, which those refuse. */
    EDDY_CHECK(!op->has_late_shape || recording->depth == 0);
    const char *reason = refuse_late(op);
    if (reason)
        spoil(recording, EDDY_UNSUPPORTED, origin, reason);
    else if (call->runtime != recording->runtime)
        spoil(recording, EDDY_RUNTIME_MISMATCH, origin,
              "it belongs to another runtime than the recording");
    else
        check_others(recording, call);
    if (recording->status == EDDY_OK && !add_call(recording, call))
        spoil(recording, EDDY_OUT_OF_MEMORY, origin, "no memory to record it");
}

/* ---- marks ---- */

void eddy_recording_spoil(eddy_recording *recording, eddy_status status, eddy_origin origin,
                          const char *reason) {
    if (recording->status != EDDY_OK)
        return;
    snprintf(recording->text, sizeof(recording->text), "%s", reason);
    spoil(recording, status, origin, recording->text);
}

static bool add_mark(eddy_recording *recording, eddy_control control, eddy_tensor *predicate,
                     const void *attributes, eddy_origin origin) {
    const eddy_op *op = eddy_control_op(control);
    eddy_code *code = &recording->code;
    eddy_code_instruction mark = {.op = op,
                                  .kernel = eddy_op_kernel_for(op, EDDY_F32),
                                  .address = origin.address,
                                  .operands_at = code->operands.count,
                                  .patches_at = code->patches.count,
                                  .operand_count = predicate ? 1 : 0,
                                  .input_count = predicate ? 1 : 0,
                                  .ordinal = code->recorded_count,
                                  .compute = predicate ? EDDY_BOOL : EDDY_F32};
    uint32_t index;
    static const eddy_vm_operand read = {.access = EDDY_ACCESS_CONST};
    bool is_added =
        (!predicate || add_operand(recording, predicate, &read)) &&
        eddy_code_add_words(code, attributes, op->attribute_bytes, &mark.attributes_at) &&
        eddy_code_add_instruction(code, &mark, &index);
    code->recorded_count += is_added;
    return is_added;
}

void eddy_recording_begin_mark(eddy_recording *recording, eddy_control control,
                               eddy_origin origin) {
    bool is_begin = control == EDDY_CONTROL_IF || control == EDDY_CONTROL_LOOP;
    recording->depth += is_begin;
    recording->has_marks = true;
    if (recording->depth > EDDY_CONTROL_DEPTH_MOST)
        eddy_recording_spoil(recording, EDDY_UNSUPPORTED, origin,
                             "branches and loops lie too deep within each other");
    else if (is_begin)
        recording->loops[recording->depth] =
            control == EDDY_CONTROL_LOOP ? ++recording->loop_count : 0;
}

void eddy_recording_end_mark(eddy_recording *recording, eddy_control control) {
    recording->depth -= control == EDDY_CONTROL_END_IF || control == EDDY_CONTROL_END_LOOP;
}

void eddy_recording_mark(eddy_recording *recording, eddy_control control, eddy_tensor *predicate,
                         const void *attributes, eddy_origin origin) {
    eddy_recording_begin_mark(recording, control, origin);
    if (predicate && predicate->runtime != recording->runtime)
        eddy_recording_spoil(recording, EDDY_RUNTIME_MISMATCH, origin,
                             "its predicate belongs to another runtime than the recording");
    if (recording->status == EDDY_OK &&
        !add_mark(recording, control, predicate, attributes, origin))
        spoil(recording, EDDY_OUT_OF_MEMORY, origin, "no memory to record it");
    eddy_recording_end_mark(recording, control);
}

void eddy_recording_show_as(eddy_recording *recording, const eddy_tensor *tensor,
                            const eddy_tensor *like, eddy_origin origin) {
    uint32_t value = eddy_recording_value_of(recording, like);
    /* A function may have shut the runtime down: there is no storage to look at then. */
    if (value == EDDY_CODE_NONE)
        eddy_recording_spoil(recording, EDDY_SHUT_DOWN, origin,
                             "its runtime does not run any more");
    if (recording->status == EDDY_OK && !see(recording, tensor, value))
        spoil(recording, EDDY_OUT_OF_MEMORY, origin, "no memory to record it");
}

/* They are one value that no instruction makes. */
static bool disown(eddy_recording *recording, const eddy_recording *other) {
    eddy_code_value nowhere = {.kind = EDDY_VALUE_MADE};
    uint32_t value;
    if (!eddy_code_add_value(&recording->code, &nowhere, &value))
        return false;
    for (uint32_t i = 0; i < other->seen_capacity; i++) {
        if (!other->seen[i].is_lost)
            continue;
        if (!grow_seen(recording))
            return false;
        eddy_recording_seen *seen = &recording->seen[slot_of(recording, other->seen[i].number)];
        recording->seen_count += seen->number == 0;
        *seen = other->seen[i];
        seen->value = value;
        seen->first = recording->code.instructions.count - 1; /* what is carried was copied */
    }
    return true;
}

void eddy_recording_disown(eddy_recording *recording, const eddy_recording *other,
                           eddy_origin origin) {
    if (recording->status == EDDY_OK && !disown(recording, other))
        spoil(recording, EDDY_OUT_OF_MEMORY, origin, "no memory to record it");
}

/* A recorded function runs on, at each call from now on; but what is only recorded has no effect, and neither has a backward pass for zeros. */
static bool record_refuse(eddy_recorder *recorder, eddy_origin origin) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    if (recording->is_owned)
        spoil(recording, EDDY_UNSUPPORTED, origin, "a replay would not do it again");
    return !recording->is_owned || recorder->mode == EDDY_RECORDER_NOTES || recording->plan;
}

/* Functions of branches and loops are called to be recorded, and what is behind a run cannot know which of them it took. */
static const char *refuse_again(const eddy_recorder *recorder) {
    const eddy_recording *recording = (const eddy_recording *)(const void *)recorder;
    if (recording->plan)
        return "the backward pass of outputs is being recorded, for gradients of 0: it would not "
               "be called again with others";
    if (recording->depth > 0 || recording->block_count > 0)
        return "it is in a branch or a loop, and is called behind a run: do it there, with a "
               "result of the branch or loop";
    return NULL;
}

static void record_abandon(eddy_recorder *recorder) {
    eddy_recording *recording = (eddy_recording *)(void *)recorder;
    eddy_recording_fini(recording);
    eddy_memory_release(recording, sizeof(*recording), EDDY_MEMORY_PROGRAM);
}

uint64_t eddy_recording_next_serial(void) {
    static _Atomic uint64_t last; /* atomic: relaxed; numbers alone */
    return eddy_add_relaxed(&last, UINT64_C(1)) + 1;
}

void eddy_recording_init(eddy_recording *recording, eddy_runtime *runtime) {
    uint64_t serial = eddy_recording_next_serial();
    *recording = (eddy_recording){.recorder = {.serial = serial,
                                               .call = record_call,
                                               .read = eddy_host_read_record,
                                               .refuse = record_refuse,
                                               .refuse_again = refuse_again,
                                               .abandon = record_abandon},
                                  .number = serial,
                                  .runtime = runtime,
                                  .passes = runtime->passes};
    eddy_recording_listen_to_tape(recording);
    eddy_recording_listen_to_numbers(recording);
    eddy_runtime_bind(runtime);
}

void eddy_recording_fini(eddy_recording *recording) {
    eddy_recording_take_back(recording, 0);
    eddy_code_array_fini(&recording->changes, sizeof(eddy_recording_change));
    eddy_recording_guess *guesses = recording->guesses.items;
    for (uint32_t i = 0; i < recording->guesses.count; i++)
        eddy_tensor_drop(guesses[i].root);
    eddy_code_array_fini(&recording->guesses, sizeof(*guesses));
    eddy_guard_fini(&recording->reads);
    eddy_guard_fini(&recording->computed);
    if (recording->read_copy)
        eddy_tensor_drop(recording->read_copy);
    eddy_gradient_plan_destroy(recording->plan);
    eddy_program_external *externals = recording->externals.items;
    for (uint32_t i = 0; i < recording->externals.count; i++)
        if (externals[i].tensor)
            eddy_tensor_drop(externals[i].tensor);
    eddy_generator **generators = recording->generators.items;
    for (uint32_t i = 0; i < recording->generators.count; i++)
        eddy_generator_release(&generators[i]);
    eddy_program_inner_fini(&recording->inner);
    eddy_recording_kept *kept = recording->kept.items;
    for (uint32_t i = 0; i < recording->kept.count; i++) {
        eddy_autograd_node_release(kept[i].node);
        if (kept[i].gradient)
            eddy_tensor_drop(kept[i].gradient);
    }
    eddy_code_array_fini(&recording->kept, sizeof(*kept));
    eddy_kept_before_fini(&recording->befores);
    eddy_tape_seen_fini(&recording->seen_of_tape);
    eddy_code_array_fini(&recording->externals, sizeof(*externals));
    eddy_code_array_fini(&recording->generators, sizeof(*generators));
    eddy_code_array_fini(&recording->drawn, sizeof(eddy_recording_drawn));
    eddy_memory_release(recording->seen, recording->seen_capacity * sizeof(*recording->seen),
                        EDDY_MEMORY_PROGRAM);
    eddy_code_fini(&recording->code);
    eddy_runtime_unbind(recording->runtime);
}

/* ---- open, close ---- */

eddy_status eddy_recording_open(eddy_caller *caller, eddy_origin origin, eddy_recording **opened) {
    if (caller->recorder)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a recording is open on this thread");
    eddy_runtime *runtime;
    eddy_status status = eddy_runtime_of_caller(caller, origin, &runtime);
    if (status != EDDY_OK)
        return status;
    if (!eddy_runtime_is_running(runtime))
        return eddy_runtime_refuse(runtime, origin, "");
    eddy_recording *recording = eddy_memory_acquire(sizeof(*recording), EDDY_MEMORY_PROGRAM);
    if (!recording)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a recording");
    eddy_recording_init(recording, runtime);
    caller->recorder = &recording->recorder;
    *opened = recording;
    return EDDY_OK;
}

eddy_recording *eddy_recording_close(eddy_caller *caller) {
    if (!caller || !caller->recorder)
        return NULL;
    eddy_recording *recording = (eddy_recording *)(void *)caller->recorder;
    caller->recorder = NULL;
    return recording;
}

void eddy_recording_destroy(eddy_recording *recording) {
    if (!recording)
        return;
    eddy_recording_fini(recording);
    eddy_memory_release(recording, sizeof(*recording), EDDY_MEMORY_PROGRAM);
}
