/* eddy_program_run: draws, submits the run as one instruction of the VM, and hands out what it makes. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <interpreter/host/host.h>
#include <interpreter/tape/autograd.h>
#include <program/cut.h>
#include <program/feeds.h>
#include <program/gradient.h>
#include <program/inlined.h>
#include <program/late_calls.h>
#include <program/rounds.h>
#include <string.h>

static size_t argument_bytes(const eddy_program *program) {
    return sizeof(eddy_run_arguments) +
           (program->executable->base_count - 1 + (size_t)eddy_code_run_words(&program->code)) *
               sizeof(int64_t);
}

/* ---- the VM's side ---- */

static eddy_executable_given given_to(const eddy_vm_instruction *instruction) {
    const eddy_run_arguments *arguments = instruction->arguments;
    const int64_t *words = arguments->late
                               ? arguments->late->words
                               : arguments->words + arguments->program->executable->base_count - 1;
    return (eddy_executable_given){.part = arguments->part,
                                   .partition = arguments->partition,
                                   .shifts = arguments->words,
                                   .words = words,
                                   .late = arguments->late,
                                   .path = arguments->path};
}

static void program_run(const eddy_vm_run *run) {
    const eddy_program *program =
        ((const eddy_run_arguments *)run->instruction->arguments)->program;
    eddy_executable_given given = given_to(run->instruction);
    if (EDDY_UNLIKELY(given.part == EDDY_PART_GIVES))
        return;
    if (EDDY_UNLIKELY(run->launch != NULL))
        eddy_rounds_launch(program->executable, &program->code, &given, run);
    else
        eddy_executable_run(program->executable, &program->code, &given, run);
}

static uint32_t program_round_calls(const eddy_vm_instruction *instruction) {
    eddy_executable_given given = given_to(instruction);
    const eddy_run_arguments *arguments = instruction->arguments;
    return eddy_rounds_call_count(arguments->program->executable, &given);
}

static size_t program_round_bytes(const eddy_vm_instruction *instruction) {
    const eddy_run_arguments *arguments = instruction->arguments;
    return eddy_rounds_state_bytes(arguments->program->executable);
}

static bool program_goes_on(const eddy_vm_run *run) {
    const eddy_program *program =
        ((const eddy_run_arguments *)run->instruction->arguments)->program;
    eddy_executable_given given = given_to(run->instruction);
    return eddy_rounds_go_on(program->executable, &program->code, &given, run);
}

static const eddy_vm_rounds rounds = {.call_count = program_round_calls,
                                      .state_bytes = program_round_bytes,
                                      .goes_on = program_goes_on};

static size_t program_workspace(const eddy_vm_run *run) {
    const eddy_run_arguments *arguments = run->instruction->arguments;
    const eddy_executable *executable = arguments->program->executable;
    if (EDDY_UNLIKELY(run->launch != NULL)) {
        const eddy_partition *partition =
            eddy_executable_partition(executable, arguments->part, arguments->partition);
        return (size_t)(partition ? partition->arena_bytes : executable->arena.bytes);
    }
    return EDDY_LIKELY(arguments->part == EDDY_PART_ALL)
               ? (size_t)executable->workspace_bytes
               : eddy_executable_workspace(executable, arguments->part, arguments->partition);
}

static const char *program_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "program";
}

static int program_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const eddy_run_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "program(%u instructions)",
                    arguments->program->code.instructions.count -
                        eddy_cut_count(&arguments->program->code));
}

static void program_end(const eddy_vm_instruction *instruction) {
    const eddy_run_arguments *arguments = instruction->arguments;
    eddy_program *program = arguments->program;
    eddy_late_draws_release(arguments->late);
    if (EDDY_UNLIKELY(arguments->path != NULL))
        eddy_path_release(arguments->path);
    eddy_ring_gone_destroy(arguments->gone);
    eddy_program_release(&program);
}

/* The input that is operand `operand` of a run, or, of what gives up what partitions have used, the donated one of this number. */
static const eddy_program_binding *find_donated(const eddy_run_arguments *arguments,
                                                uint32_t operand) {
    const eddy_program_binding *binding = eddy_program_binding_at(arguments->program, 0);
    bool is_number = arguments->part == EDDY_PART_GIVES;
    for (uint32_t number = 0;; binding++)
        if (binding->is_donated && (is_number ? number++ : binding->operand) == operand)
            return binding;
}

static void fill_donated(const eddy_run_arguments *arguments, uint32_t operand, eddy_origin origin,
                         uint64_t sequence, eddy_error *error) {
    const eddy_program_binding *binding = find_donated(arguments, operand);
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, origin, sequence,
                    "the tensor was donated to a run of a program, as its input %s", binding->name);
}

/* Numbers for what is given up are those below the recorded calls'. */
static void program_gone(const eddy_vm_instruction *instruction, int64_t operand,
                         eddy_error *error) {
    const eddy_run_arguments *arguments = instruction->arguments;
    const eddy_program *program = arguments->program;
    eddy_origin origin = {"program", instruction->address};
    bool is_apart = arguments->part == EDDY_PART_GIVES;
    uint64_t sequence = instruction->sequence - (is_apart ? 0 : program->code.recorded_count) - 1 -
                        (uint64_t)operand;
    uint32_t first_of_ring =
        is_apart ? program->donated_count : program->executable->base_count - 1;
    if (operand >= first_of_ring)
        eddy_ring_gone_fill(arguments->gone, (uint32_t)operand - first_of_ring, origin, sequence,
                            error);
    else
        fill_donated(arguments, (uint32_t)operand, origin, sequence, error);
}

const eddy_vm_descriptor eddy_run_descriptor = {.run = program_run,
                                                .workspace = program_workspace,
                                                .name = program_name,
                                                .describe = program_describe,
                                                .end = program_end,
                                                .is_program = true,
                                                .rounds = &rounds};

/* Of runs that give something up. */
const eddy_vm_descriptor eddy_run_giving_descriptor = {.run = program_run,
                                                       .workspace = program_workspace,
                                                       .name = program_name,
                                                       .describe = program_describe,
                                                       .end = program_end,
                                                       .is_program = true,
                                                       .rounds = &rounds,
                                                       .gone = program_gone};

/* ---- outputs ---- */

/* A handle that nobody has seen. It may hold a storage that a front has made. */
static void discard(eddy_caller *caller, eddy_tensor *handle) {
    if (EDDY_LIKELY(handle->storage == 0))
        eddy_tensor_discard(caller, handle);
    else
        eddy_tensor_drop(handle);
}

static void discard_handles(const eddy_run *r, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        discard(r->caller, r->handles[i]);
}

/* The handle becomes the root of a storage: a vector of its bytes. */
static void hold_bytes(eddy_tensor *handle, eddy_storage_number storage, eddy_device device,
                       int64_t bytes) {
    handle->storage = storage;
    handle->dtype = EDDY_U8;
    eddy_tensor_set_device(handle, device);
    eddy_tensor_lay(handle, 1, &bytes, bytes);
}

static void hold_value(eddy_tensor *handle, eddy_storage_number storage,
                       const eddy_code_value *value) {
    hold_bytes(handle, storage, eddy_code_value_device(value), value->bytes);
}

/* New handles: of the outputs, and behind them a root for each made storage of which no output is all. */
static uint32_t handle_count(const eddy_program *program) {
    uint32_t count = program->handle_count;
    for (uint32_t i = 0; i < program->made.count; i++)
        count += eddy_program_made_at(program, i)->whole == EDDY_CODE_NONE;
    return count;
}

static eddy_status make_handles(const eddy_run *r) {
    uint32_t count = handle_count(r->program);
    bool has_room = eddy_scope_reserve(r->caller, r->program->output_count);
    for (uint32_t i = 0; i < count; i++) {
        r->handles[i] = has_room
                            ? eddy_tensor_acquire(r->caller, r->program->runtime, r->origin.address)
                            : NULL;
        if (!r->handles[i]) {
            discard_handles(r, i);
            return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a handle");
        }
    }
    return EDDY_OK;
}

/* What one part has made is held while another may fail. */
static bool is_in_parts(const eddy_run *r) {
    return r->arena || r->program->executable->partitions.count > 0;
}

void eddy_run_find_roots(const eddy_run *r) {
    const eddy_program *program = r->program;
    uint32_t next = program->handle_count;
    for (uint32_t i = 0; i < program->made.count; i++) {
        const eddy_program_made *made = eddy_program_made_at(program, i);
        eddy_tensor *root = r->handles[made->whole != EDDY_CODE_NONE ? made->whole : next++];
        eddy_storage_number storage = r->operands[program->externals.count + i].storage;
        if (r->roots[i] || storage == 0)
            continue; /* a target's, or a front's that was found before */
        root->storage = storage;
        r->roots[i] = root;
        if (made->whole == EDDY_CODE_NONE || is_in_parts(r))
            hold_value(root, storage, eddy_code_value_at(&program->code, made->value));
    }
}

/* Makes the handle a view of `root`. */
static void show(eddy_tensor *handle, eddy_tensor *root, const eddy_program_binding *binding,
                 int64_t shift) {
    eddy_layout layout = binding->layout;
    layout.offset += shift;
    handle->storage = root->storage;
    if (root != handle) {
        handle->root = root;
        eddy_tensor_retain(root);
    }
    handle->dtype = binding->dtype;
    handle->device_kind = binding->device_kind;
    handle->device_index = binding->device_index;
    eddy_tensor_set_layout(handle, &layout);
}

eddy_tensor **eddy_run_place(const eddy_run *r, uint32_t output) {
    if (r->places)
        return r->places[output];
    return r->outputs ? &r->outputs[output] : NULL;
}

/* The operand of a value that is there after a run. */
static uint32_t operand_of(const eddy_program *program, uint32_t value) {
    uint32_t e = 0, i = 0;
    while (e < program->externals.count && eddy_program_external_at(program, e)->value != value)
        e++;
    while (e == program->externals.count && eddy_program_made_at(program, i)->value != value)
        i++;
    return e + i;
}

static eddy_tensor *root_of(const eddy_run *r, uint32_t operand, int64_t *shift) {
    eddy_tensor *root = eddy_run_root(r, operand, shift);
    return root ? root : r->roots[operand - r->program->externals.count];
}

eddy_tensor *eddy_run_view(const eddy_run *r, const eddy_program_binding *binding) {
    int64_t shift;
    eddy_tensor *root = root_of(r, operand_of(r->program, binding->value), &shift);
    eddy_tensor *handle = eddy_tensor_acquire(r->caller, r->program->runtime, r->origin.address);
    if (handle)
        show(handle, root, binding, shift);
    return handle;
}

static bool is_late(const eddy_run *r, uint32_t output) {
    return r->late_outputs && r->late_outputs[output];
}

/* Whose gradient it is: of the tensor that stands in for the state, where one was given. */
static eddy_autograd leaf_of(const eddy_run *r, const eddy_program_kept *kept) {
    int64_t number = 0;
    for (uint32_t i = 0; r->states && kept->state != EDDY_CODE_NONE && i < kept->state; i++)
        number += eddy_program_binding_at(r->program, i)->role == EDDY_ROLE_STATE;
    if (r->states && kept->state != EDDY_CODE_NONE && !eddy_tensor_is_none(r->states[number]))
        return r->states[number]->autograd;
    return eddy_autograd_make(kept->node, kept->output);
}

/* Of an output that the run has made: not of one that was there, or lies in a target. */
static void note_turn(const eddy_run *r, uint32_t output, const eddy_program_binding *binding,
                      const eddy_tensor *handle) {
    if (is_late(r, output))
        eddy_ring_turn_note(r->turn, output, r->late_outputs[output]);
    else if (r->operands[binding->operand].is_new)
        eddy_ring_turn_note(r->turn, output, handle);
}

/* The outputs become the user's, and the gradients those of the tape. */
static void hand_out(const eddy_run *r) {
    const eddy_program *program = r->program;
    uint32_t next = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role != EDDY_ROLE_OUTPUT && binding->role != EDDY_PROGRAM_KEPT)
            continue;
        int64_t shift;
        eddy_tensor *handle = r->handles[next], *root = root_of(r, binding->operand, &shift);
        show(handle, root, binding, shift);
        bool is_handed_out = binding->role == EDDY_ROLE_OUTPUT && eddy_run_place(r, next);
        if (is_handed_out && !is_late(r, next))
            eddy_scope_own(r->caller, handle);
        if (is_handed_out && r->turn && next < eddy_ring_turn_room(r->turn))
            note_turn(r, next, binding, handle);
        next++;
    }
    const eddy_program_kept *kept = program->kept.items;
    next = program->output_count;
    for (uint32_t i = 0; i < program->kept.count; i++) {
        eddy_autograd word = leaf_of(r, &kept[i]);
        eddy_autograd_kept_replace(r->caller, word,
                                   kept[i].binding == EDDY_CODE_NONE ? NULL : r->handles[next++]);
    }
    /* What lives within a fusion alone has no storage. */
    for (uint32_t i = program->handle_count; i < handle_count(program); i++)
        discard(r->caller, r->handles[i]);
    /* Last: the array may be that of the inputs. */
    for (uint32_t i = 0; i < program->output_count; i++) {
        eddy_tensor **place = eddy_run_place(r, i);
        if (place)
            *place = is_late(r, i) ? r->late_outputs[i] : r->handles[i];
        if (!place || is_late(r, i))
            eddy_tensor_drop(r->handles[i]);
    }
}

/* ---- all of it ---- */

/* But for its arguments. */
static eddy_vm_call call_of(const eddy_run *r, const eddy_run_part *s) {
    const eddy_program *program = r->program;
    uint8_t vm_device = eddy_runtime_vm_device(program->runtime, s->device);
    return (eddy_vm_call){
        .instruction = {.descriptor = s->descriptor,
                        .operand_count = s->operand_count,
                        .address = s->address ? s->address : r->origin.address},
        .operands = s->operands,
        .stream = eddy_stream_of_caller(r->caller, program->runtime, vm_device),
        .cost_ps = s->cost_ps,
        .part_count = s->part_count,
        .place = program->has_registered || vm_device ? EDDY_PLACE_WORKER : EDDY_PLACE_ANY,
        .releases = r->caller->pending.numbers,
        .release_count = eddy_pending_release_count(&r->caller->pending, program->runtime)};
}

eddy_status eddy_run_submit_call(const eddy_run *r, const eddy_run_part *s, const void *arguments,
                                 size_t bytes) {
    eddy_vm_call call = call_of(r, s);
    call.instruction.arguments = arguments;
    call.argument_bytes = bytes;
    return eddy_vm_submit(r->program->runtime->vm, &call);
}

eddy_status eddy_run_submit_part(const eddy_run *r, const eddy_run_part *s) {
    const eddy_program *program = r->program;
    r->arguments->program = eddy_program_retain(r->program);
    r->arguments->late = r->late ? eddy_late_draws_retain(r->late) : NULL;
    r->arguments->path = s->part == EDDY_PART_FRONT ? eddy_path_retain(r->path) : NULL;
    r->arguments->part = s->part;
    r->arguments->partition = s->partition;
    r->arguments->gone = s->gone;
    eddy_vm_call call = call_of(r, s);
    call.instruction.arguments = r->arguments;
    call.argument_bytes = argument_bytes(program);
    bool runs = eddy_recorder_lets_run(r->caller);
    eddy_status status =
        runs ? eddy_vm_submit(program->runtime->vm, &call)
             : eddy_vm_make_lost(program->runtime->vm, &call, r->caller->recorder->lost);
    if (EDDY_LIKELY(status == EDDY_OK && runs))
        return status;
    eddy_late_draws_release(r->arguments->late);
    eddy_path_release(r->arguments->path);
    eddy_program_release(&r->arguments->program);
    return status;
}

/* All of the run, or what is behind its front; with so many operands behind the program's own. */
static eddy_status submit_with(const eddy_run *r, eddy_vm_operand *operands, uint32_t given_up) {
    const eddy_executable *executable = r->program->executable;
    uint32_t bases = executable->base_count - 1;
    bool gives = given_up > 0 || r->program->donated_count > 0;
    eddy_run_part s = {.part = r->path ? EDDY_PART_BACK : EDDY_PART_ALL,
                       .device = executable->device,
                       .descriptor = gives ? &eddy_run_giving_descriptor : &eddy_run_descriptor,
                       .operands = operands,
                       .operand_count = bases + given_up + (r->path != NULL),
                       .cost_ps = r->path ? executable->front.back_ps : executable->most_ps,
                       .part_count = r->program->code.recorded_count -
                                     executable->front.recorded_count +
                                     (gives ? bases + given_up : 0),
                       .gone = given_up > 0 ? r->turn->gone : NULL};
    eddy_status status = eddy_run_submit_part(r, &s);
    if (status == EDDY_OK && r->turn && eddy_recorder_lets_run(r->caller))
        eddy_ring_turn_submitted(r->turn);
    return status;
}

/* ---- the front of a run that follows a path (front.h) ---- */

/* The operands of the front: those that its steps use, and the arena. */
static void bind_front(const eddy_run *r, eddy_vm_operand *operands) {
    const eddy_executable *executable = r->program->executable;
    for (uint32_t b = 1; b < executable->base_count; b++) {
        const eddy_front_base *at = &executable->front.bases[b];
        if (!at->is_used)
            continue;
        operands[at->operand] = r->operands[b - 1];
        /* It may be put back: without memory it is as before, not lost. */
        operands[at->operand].covers_all = false;
        if (!at->is_written) /* the program may write it behind the front */
            operands[at->operand].access = EDDY_ACCESS_CONST;
    }
    operands[executable->front.operand_count] =
        (eddy_vm_operand){.access = EDDY_ACCESS_MUT,
                          .is_new = true,
                          .device = eddy_runtime_vm_device(r->program->runtime, executable->device),
                          .bytes = executable->arena.bytes};
}

/* The back finds there what the front has left: nothing that it makes, or writes all of. */
static void bind_back(const eddy_run *r, const eddy_vm_operand *front) {
    const eddy_executable *executable = r->program->executable;
    for (uint32_t b = 1; b < executable->base_count; b++) {
        eddy_vm_operand *operand = &r->operands[b - 1];
        if (!executable->front.bases[b].is_used)
            continue;
        operand->storage = front[executable->front.bases[b].operand].storage;
        operand->is_new = false;
        operand->covers_all &= !executable->front.bases[b].is_written;
    }
    r->operands[executable->base_count - 1] = (eddy_vm_operand){
        .access = EDDY_ACCESS_MUT, .storage = front[executable->front.operand_count].storage};
}

static eddy_status submit_front(const eddy_run *r, eddy_vm_operand *operands) {
    const eddy_front *front = &r->program->executable->front;
    return eddy_run_submit_part(r, &(eddy_run_part){.part = EDDY_PART_FRONT,
                                                    .device = r->program->executable->device,
                                                    .descriptor = &eddy_run_descriptor,
                                                    .operands = operands,
                                                    .operand_count = front->operand_count + 1,
                                                    .cost_ps = front->front_ps,
                                                    .part_count = front->recorded_count});
}

/* There was no memory for the front, which has written nothing: what it would have written is as before. */
static eddy_status recover(const eddy_run *r, const eddy_error *starved) {
    eddy_vm *vm = r->program->runtime->vm;
    const eddy_executable *executable = r->program->executable;
    eddy_vm_wait wait = {EDDY_FOREVER, r->origin};
    eddy_status status = EDDY_OK;
    for (uint32_t b = 1; b < executable->base_count && status == EDDY_OK; b++) {
        const eddy_front_base *at = &executable->front.bases[b];
        eddy_error error = {0};
        if (at->kept_bytes > 0 &&
            eddy_vm_poison(vm, r->operands[b - 1].storage, &wait, &error) != EDDY_OK &&
            error.sequence == starved->sequence)
            status = eddy_vm_recover(vm, &r->operands[b - 1].storage, 1, r->origin);
    }
    if (status != EDDY_OK)
        return status;
    eddy_run_undraw(r);
    *r->unfit = "there was no memory for its beginning";
    return EDDY_OUT_OF_MEMORY;
}

/* It is over where its arena is. */
static eddy_status await_front(const eddy_run *r) {
    eddy_vm_wait wait = {EDDY_FOREVER, r->origin};
    eddy_vm *vm = r->program->runtime->vm;
    eddy_error error = {0};
    eddy_status status = eddy_vm_poison(vm, r->arena->storage, &wait, &error);
    if (error.status == EDDY_OUT_OF_MEMORY)
        return recover(r, &error);
    if (status != EDDY_OK)
        return error.status == EDDY_OK ? status : eddy_fail_record(&error);
    if (!r->path->is_left)
        return EDDY_OK;
    eddy_run_undraw(r);
    *r->unfit =
        r->path->has_failed
            ? "something that it has computed, or was given, before what it reads had failed"
            : "a value that it has computed and reads was another";
    return EDDY_INVALID_ARGUMENT;
}

/* Once it was submitted, its new storages have owners, and the back is ready to be submitted as any run is. */
static eddy_status run_front(eddy_run *r) {
    const eddy_executable *executable = r->program->executable;
    size_t bytes = (executable->front.operand_count + 1) * sizeof(eddy_vm_operand);
    eddy_vm_operand *operands = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    r->arena =
        operands ? eddy_tensor_acquire(r->caller, r->program->runtime, r->origin.address) : NULL;
    if (!r->arena) {
        eddy_memory_release(operands, bytes, EDDY_MEMORY_PROGRAM);
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
    }
    bind_front(r, operands);
    eddy_status status = submit_front(r, operands);
    if (status == EDDY_OK) {
        bind_back(r, operands);
        hold_bytes(r->arena, operands[executable->front.operand_count].storage, executable->device,
                   executable->arena.bytes);
        eddy_run_find_roots(r);
        status = await_front(r);
    }
    eddy_memory_release(operands, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}

eddy_status eddy_run_fail_place(const eddy_run *r) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a place in the ring");
}

/* The outputs that the run makes old are operands, too: those of the program, and behind them *given_up more. The caller releases them unless they are r->operands. */
static eddy_status take_turn(const eddy_run *r, eddy_vm_operand **operands, uint32_t *given_up) {
    uint32_t bases = r->program->executable->base_count - 1;
    if (!eddy_ring_turn_take(r->turn))
        return eddy_run_fail_place(r);
    *given_up = eddy_ring_turn_count(r->turn);
    if (*given_up == 0)
        return EDDY_OK;
    *operands =
        eddy_memory_acquire((bases + (size_t)*given_up) * sizeof(**operands), EDDY_MEMORY_PROGRAM);
    if (!*operands)
        return eddy_run_fail_place(r);
    memcpy(*operands, r->operands, bases * sizeof(**operands));
    eddy_ring_turn_operands(r->turn, *operands + bases);
    return EDDY_OK;
}

static eddy_status submit(const eddy_run *r) {
    uint32_t bases = r->program->executable->base_count - 1, given_up = 0;
    eddy_vm_operand *operands = r->operands;
    eddy_status status = EDDY_LIKELY(!r->turn) ? EDDY_OK : take_turn(r, &operands, &given_up);
    if (status != EDDY_OK)
        return status;
    status = submit_with(r, operands, given_up);
    if (EDDY_LIKELY(operands == r->operands))
        return status;
    memcpy(r->operands, operands, bases * sizeof(*operands)); /* the new storages */
    eddy_memory_release(operands, (bases + (size_t)given_up) * sizeof(*operands),
                        EDDY_MEMORY_PROGRAM);
    return status;
}

/* For gradients: what the run writes has changed. */
static void note_written(const eddy_run *r) {
    for (uint32_t e = 0; e < r->program->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(r->program, e);
        const eddy_code_value *value = eddy_code_value_at(&r->program->code, external->value);
        int64_t shift;
        if (value->is_written || value->is_donated)
            eddy_tensor_written(eddy_run_root(r, e, &shift));
    }
    for (uint32_t i = 0; i < r->program->made.count; i++)
        if (r->roots[i])
            eddy_tensor_written(r->roots[i]);
}

static eddy_status check_path(const eddy_run *r) {
    if (EDDY_LIKELY(!r->path))
        return EDDY_OK;
    if (r->caller->callback == EDDY_CALLBACK_ACCESS)
        *r->unfit = "it reads what it has computed, and a callback may not wait for that";
    else if (eddy_host_has_lend(r->program->runtime, r->caller->thread))
        *r->unfit = "this thread has mapped a tensor, which what it reads might wait for";
    return *r->unfit ? EDDY_WOULD_DEADLOCK : EDDY_OK;
}

static eddy_status run_bound(eddy_run *r) {
    const eddy_code *code = &r->program->code;
    eddy_status status = check_path(r);
    if (status == EDDY_OK)
        status = eddy_run_bind(r);
    if (status == EDDY_OK && code->scalars.count > 0)
        status = eddy_run_convert(r);
    if (status == EDDY_OK)
        status = make_handles(r);
    if (status != EDDY_OK)
        return status;
    r->arguments->late = NULL;
    if (code->draws.count > 0 || code->sets_draws)
        status = eddy_run_draw(r);
    bool has_begun = false;
    if (status == EDDY_OK && EDDY_UNLIKELY(r->path != NULL)) {
        status = run_front(r);
        has_begun = status == EDDY_OK;
    }
    if (EDDY_UNLIKELY(r->program->executable->partitions.count > 0) &&
        eddy_recorder_lets_run(r->caller))
        status = status == EDDY_OK ? eddy_run_submit_partitions(r, &has_begun) : status;
    else if (status == EDDY_OK)
        status = submit(r);
    if (EDDY_UNLIKELY(r->arena != NULL))
        discard(r->caller, r->arena);
    if (status != EDDY_OK) {
        if (has_begun) /* and not gone on */
            note_written(r);
        discard_handles(r, handle_count(r->program));
        return status;
    }
    note_written(r);
    eddy_run_find_roots(r);
    if (EDDY_UNLIKELY(code->draws_late))
        status = eddy_run_await_draws(r);
    if (EDDY_UNLIKELY(r->caller->recorder != NULL))
        eddy_inlined_record(r);
    if (status == EDDY_OK && r->program->code.late_calls.count > 0)
        status = eddy_late_calls_issue(r);
    /* The run is on its way all the same, and what it gives goes nowhere. */
    if (status != EDDY_OK) {
        r->outputs = NULL;
        r->places = NULL;
        r->late_outputs = NULL;
    }
    hand_out(r);
    return status;
}

static eddy_status run_and_release(eddy_run *r) {
    eddy_status status = run_bound(r);
    eddy_late_draws_release(r->late);
    r->late = NULL;
    return status;
}

static eddy_status fail_count(const eddy_run *r) {
    char names[256];
    eddy_program_list_names(r->program, EDDY_ROLE_INPUT, names, sizeof(names));
    return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin, "%lld inputs, the program has %u: %s",
                     (long long)r->inputs.count, r->program->input_count, names);
}

static eddy_status check_call(const eddy_run *r) {
    eddy_status status = eddy_program_check(r->program, r->origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_caller_may_call(r->caller))
        return eddy_caller_refuse(r->caller, r->origin);
    if (!eddy_runtime_is_running(r->program->runtime))
        return eddy_runtime_refuse(r->program->runtime, r->origin, "");
    if (EDDY_UNLIKELY(r->caller->recorder != NULL))
        status = eddy_inlined_check(r);
    if (status != EDDY_OK)
        return status;
    status = eddy_program_check_list(r->inputs.items, r->inputs.count, "inputs", r->origin);
    if (status != EDDY_OK)
        return status;
    if (r->inputs.count != r->program->input_count)
        return fail_count(r);
    if (r->program->code.scalars.count > 0 && !r->scalars)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "the program takes numbers, which only a recorded function gives it");
    if (r->program->output_count > 0 && !r->outputs && !r->places && !r->targets)
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin, "there is no room for the outputs");
    return EDDY_OK;
}

static char *take(char **at, size_t bytes) {
    char *taken = *at;
    *at += bytes;
    return taken;
}

/* Calls the function with room for what a run is made of. */
static eddy_status with_room(eddy_run *r, eddy_status (*function)(eddy_run *r)) {
    const eddy_program *program = r->program;
    eddy_status status = check_call(r);
    if (status != EDDY_OK)
        return status;
    size_t operands = program->executable->base_count * sizeof(*r->operands); /* and an arena */
    size_t handles = (program->handle_count + program->made.count) * sizeof(*r->handles);
    size_t roots = program->made.count * sizeof(*r->roots);
    size_t given = program->externals.count * sizeof(*r->given);
    size_t late =
        program->code.late_calls.count > 0 ? program->output_count * sizeof(*r->late_outputs) : 0;
    size_t bytes = argument_bytes(program) + operands + handles + roots + given + late;
    char *memory = eddy_caller_scratch_begin(r->caller, bytes);
    if (!memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
    char *at = memory;
    r->arguments = (eddy_run_arguments *)(void *)take(&at, argument_bytes(program));
    r->handles = (eddy_tensor **)(void *)take(&at, handles);
    r->roots = (eddy_tensor **)(void *)take(&at, roots);
    r->given = (eddy_tensor **)(void *)take(&at, given);
    r->operands = (eddy_vm_operand *)(void *)take(&at, operands);
    r->late_outputs = late > 0 ? (eddy_tensor **)(void *)take(&at, late) : NULL;
    if (late > 0)
        memset(r->late_outputs, 0, late);
    status = function(r);
    eddy_caller_scratch_end(r->caller, memory, bytes);
    return status;
}

eddy_status eddy_run_make_untraced(eddy_run *r) {
    return with_room(r, run_and_release);
}

static eddy_status bind(eddy_run *r) {
    return eddy_run_bind(r);
}

eddy_status eddy_run_check(eddy_run *r) {
    return with_room(r, bind);
}

static eddy_status make(eddy_run *r) {
    return eddy_run_is_traced(r) ? eddy_run_make_traced(r) : eddy_run_make_untraced(r);
}

eddy_status eddy_run_make(eddy_run *r) {
    return EDDY_UNLIKELY(eddy_feeds_is_needed(r)) ? eddy_feeds_run(r, make) : make(r);
}

eddy_status eddy_program_run_with(eddy_program *program, eddy_list inputs,
                                  const eddy_scalar *scalars, eddy_tensor **outputs,
                                  eddy_path *path, const char **unfit, eddy_origin origin) {
    return eddy_run_make(&(eddy_run){.program = program,
                                     .path = path,
                                     .unfit = unfit,
                                     .caller = eddy_caller_get(),
                                     .origin = origin,
                                     .inputs = inputs,
                                     .scalars = scalars,
                                     .outputs = outputs});
}

eddy_status eddy_program_run(eddy_program *program, eddy_list inputs, eddy_tensor **outputs) {
    return eddy_program_run_with(program, inputs, NULL, outputs, NULL, NULL,
                                 EDDY_ORIGIN("program_run"));
}

static eddy_status check_targets(const eddy_program *program, eddy_list targets,
                                 eddy_origin origin) {
    eddy_status status = eddy_program_check(program, origin);
    if (status == EDDY_OK)
        status = eddy_program_check_list(targets.items, targets.count, "targets", origin);
    if (status != EDDY_OK || targets.count == program->output_count)
        return status;
    char names[256];
    eddy_program_list_names(program, EDDY_ROLE_OUTPUT, names, sizeof(names));
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%lld targets, the program has %u outputs: %s",
                     (long long)targets.count, program->output_count, names);
}

eddy_status eddy_program_run_into(eddy_program *program, eddy_list inputs, eddy_list targets) {
    eddy_origin origin = EDDY_ORIGIN("program_run_into");
    eddy_status status = check_targets(program, targets, origin);
    if (status != EDDY_OK)
        return status;
    return eddy_run_make(&(eddy_run){.program = program,
                                     .caller = eddy_caller_get(),
                                     .origin = origin,
                                     .inputs = inputs,
                                     .targets = targets.items});
}
