/* eddy_program_run: draws, submits the run as one instruction of the VM, and hands out what it makes. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/number.h>
#include <base/status.h>
#include <float.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <interpreter/tape/autograd.h>
#include <program/gradient.h>
#include <program/inlined.h>
#include <program/late_calls.h>
#include <string.h>

static size_t argument_bytes(const eddy_program *program) {
    return sizeof(eddy_run_arguments) +
           (program->executable->base_count - 1 + (size_t)eddy_code_run_words(&program->code)) *
               sizeof(int64_t);
}

/* ---- the VM's side ---- */

static void program_run(const eddy_vm_run *run) {
    const eddy_run_arguments *arguments = run->instruction->arguments;
    const eddy_program *program = arguments->program;
    const int64_t *words = arguments->late ? arguments->late->words
                                           : arguments->words + program->executable->base_count - 1;
    eddy_executable_run(
        program->executable, &program->code,
        &(eddy_executable_given){arguments->words, words, arguments->late, arguments->path}, run);
}

static size_t program_workspace(const eddy_vm_run *run) {
    const eddy_run_arguments *arguments = run->instruction->arguments;
    return (size_t)arguments->program->executable->workspace_bytes;
}

static const char *program_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "program";
}

static int program_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const eddy_run_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "program(%u instructions)",
                    arguments->program->code.instructions.count);
}

static void program_end(const eddy_vm_instruction *instruction) {
    const eddy_run_arguments *arguments = instruction->arguments;
    eddy_program *program = arguments->program;
    eddy_late_draws_release(arguments->late);
    eddy_path_release(arguments->path);
    eddy_ring_gone_destroy(arguments->gone);
    eddy_program_release(&program);
}

static void fill_donated(const eddy_program *program, uint32_t operand, eddy_origin origin,
                         uint64_t sequence, eddy_error *error) {
    const eddy_program_binding *binding = eddy_program_binding_at(program, 0);
    while (!binding->is_donated || binding->operand != operand)
        binding++;
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, origin, sequence,
                    "the tensor was donated to a run of a program, as its input %s", binding->name);
}

/* Numbers for what is given up are those below the recorded calls'. */
static void program_gone(const eddy_vm_instruction *instruction, int64_t operand,
                         eddy_error *error) {
    const eddy_run_arguments *arguments = instruction->arguments;
    const eddy_program *program = arguments->program;
    eddy_origin origin = {"program", instruction->address};
    uint64_t sequence =
        instruction->sequence - program->code.recorded_count - 1 - (uint64_t)operand;
    uint32_t bases = program->executable->base_count - 1;
    if (operand >= bases)
        eddy_ring_gone_fill(arguments->gone, (uint32_t)operand - bases, origin, sequence, error);
    else
        fill_donated(program, (uint32_t)operand, origin, sequence, error);
}

static const eddy_vm_descriptor descriptor = {.run = program_run,
                                              .workspace = program_workspace,
                                              .name = program_name,
                                              .describe = program_describe,
                                              .end = program_end,
                                              .is_program = true};

/* Of runs that give something up. */
static const eddy_vm_descriptor giving_descriptor = {.run = program_run,
                                                     .workspace = program_workspace,
                                                     .name = program_name,
                                                     .describe = program_describe,
                                                     .end = program_end,
                                                     .is_program = true,
                                                     .gone = program_gone};

/* ---- numbers ---- */

static int64_t *words_of(const eddy_run *r) {
    return r->arguments->words + r->program->executable->base_count - 1;
}

static size_t drawn_bytes(const eddy_run *r) {
    return 2 * sizeof(int64_t) * r->program->code.draws.count;
}

/* NULL: the running thread's own. */
static eddy_generator *generator_of(const eddy_run *r, uint32_t draw) {
    eddy_generator **generators = r->program->generators.items;
    uint32_t number = eddy_code_draw_at(&r->program->code, draw)->generator;
    return number == EDDY_CODE_NONE ? NULL : generators[number];
}

static eddy_status draw_one(const eddy_run *r, uint32_t draw, uint64_t *words) {
    if (!eddy_recorder_lets_run(r->caller)) {
        eddy_recorder_draw(r->caller->recorder, words);
        return EDDY_OK;
    }
    return eddy_generator_draw(r->caller, r->program->runtime, generator_of(r, draw), r->origin,
                               &words[0], &words[1]);
}

static eddy_status draw_now(const eddy_run *r) {
    uint64_t *words = (uint64_t *)words_of(r);
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < r->program->code.draws.count && status == EDDY_OK; i++)
        status = draw_one(r, i, &words[2 * (size_t)i]);
    if (r->drawn && drawn_bytes(r) > 0)
        memcpy(r->drawn, words, drawn_bytes(r));
    return status;
}

/* The words of the run change, and get a place of their own. */
static eddy_status make_late(eddy_run *r) {
    const eddy_code *code = &r->program->code;
    r->late = eddy_late_draws_create(code->draws.count, words_of(r), eddy_code_run_words(code));
    return r->late ? EDDY_OK : eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
}

/* Nothing is drawn yet: the run will, from generators that are held for it. */
static eddy_status draw_late(eddy_run *r) {
    if (r->caller->callback == EDDY_CALLBACK_ACCESS)
        return eddy_fail(EDDY_WOULD_DEADLOCK, r->origin,
                         "the program draws random numbers in a branch or a loop, so that a run is "
                         "waited for, and a callback may not wait");
    memset(words_of(r), 0, drawn_bytes(r));
    eddy_status status = make_late(r);
    for (uint32_t i = 0; i < r->program->code.draws.count && status == EDDY_OK; i++)
        status = eddy_generator_hold(r->caller, r->program->runtime, generator_of(r, i), r->origin,
                                     &r->late->generators[i]);
    return status;
}

static bool draws_late(const eddy_run *r) {
    return r->program->code.draws_late && !r->given_draws && eddy_recorder_lets_run(r->caller);
}

static eddy_status draw(eddy_run *r) {
    eddy_status status = EDDY_OK;
    r->arguments->late = NULL;
    if (draws_late(r))
        return draw_late(r);
    if (r->given_draws)
        memcpy(words_of(r), r->given_draws, drawn_bytes(r));
    else
        status = draw_now(r);
    return status == EDDY_OK && r->program->code.sets_draws ? make_late(r) : status;
}

/* The storage that is written by the run last: it is over once that is. EDDY_CODE_NONE where it writes none. */
static uint32_t written_by(const eddy_run *r) {
    uint32_t i = r->program->executable->base_count - 1;
    while (i > 0)
        if (r->operands[--i].access != EDDY_ACCESS_CONST)
            return i;
    return EDDY_CODE_NONE;
}

static eddy_status await_all(const eddy_run *r, const eddy_vm_wait *wait) {
    eddy_vm *vm = r->program->runtime->vm;
    eddy_vm_event *event;
    eddy_status status = eddy_vm_event_record(
        vm, eddy_stream_of_caller(r->caller, r->program->runtime), r->origin, &event);
    if (status != EDDY_OK)
        return status;
    status = eddy_vm_event_wait(event, wait);
    eddy_vm_event_release(event);
    return status;
}

/* Waits until the run is over. */
static eddy_status await_run(const eddy_run *r) {
    eddy_vm_wait wait = {EDDY_FOREVER, r->origin};
    uint32_t written = written_by(r);
    return written == EDDY_CODE_NONE ? await_all(r, &wait)
                                     : eddy_vm_await_storage(r->program->runtime->vm,
                                                             r->operands[written].storage, &wait);
}

/* Once the run is over, generators are where the calls would leave them. */
static eddy_status await_draws(const eddy_run *r) {
    if (!draws_late(r))
        return EDDY_OK;
    eddy_status status = await_run(r);
    if (status == EDDY_OK && r->drawn)
        memcpy(r->drawn, r->late->words, drawn_bytes(r));
    return status;
}

/* ---- paths ---- */

/* The generators are as before the run, which has drawn from them last. */
static void undraw(const eddy_run *r) {
    const uint64_t *words = (const uint64_t *)words_of(r);
    for (uint32_t i = r->program->code.draws.count; i-- > 0;)
        eddy_generator_undraw(r->caller, r->program->runtime, generator_of(r, i),
                              words[2 * (size_t)i], words[2 * (size_t)i + 1]);
}

static eddy_status check_path(const eddy_run *r) {
    if (EDDY_LIKELY(!r->path) || r->caller->callback != EDDY_CALLBACK_ACCESS)
        return EDDY_OK;
    *r->unfit = "it reads what it has computed, which is waited for, and a callback may not wait";
    return EDDY_WOULD_DEADLOCK;
}

/* Whether the run was one is known once it is over: what it read decides. */
static eddy_status follow_path(const eddy_run *r) {
    eddy_status status = await_run(r);
    if (status != EDDY_OK || !r->path->is_left)
        return status;
    undraw(r);
    *r->unfit = "a value that it has computed and reads was another";
    return EDDY_INVALID_ARGUMENT;
}

/* The number for one use. */
static eddy_status convert(const eddy_run *r, const eddy_code_scalar *use, int64_t *words) {
    eddy_scalar number = r->scalars[use->number];
    number.slot = 0;
    if (use->is_double) {
        double value =
            number.kind == EDDY_SCALAR_FLOAT ? number.value.floating : (double)number.value.integer;
        /* The op's function, or its inference, would look at it before the call: rates and norms are finite and not negative, probabilities up to 1. */
        double most = use->op->is_random || use->op->redraws ? 1 : DBL_MAX;
        if (!(value >= 0 && value <= most) && r->unfit) {
            *r->unfit = "a number was none that an op takes";
            return EDDY_INVALID_ARGUMENT;
        }
        memcpy(words, &value, sizeof(value));
        return EDDY_OK;
    }
    if (!eddy_number_convert(&number, (eddy_dtype)use->dtype, use->wraps)) {
        if (r->unfit) {
            *r->unfit = "a number was none that an op takes";
            return EDDY_OUT_OF_RANGE;
        }
        char text[64];
        eddy_number_format(number, text, sizeof(text));
        return eddy_fail(EDDY_OUT_OF_RANGE, r->origin,
                         "number %u is %s, which %s of %s does not hold", use->number, text,
                         eddy_dtype_name((eddy_dtype)use->dtype), use->op->name);
    }
    memcpy(words, &number, sizeof(number));
    return EDDY_OK;
}

static eddy_status convert_all(const eddy_run *r) {
    const eddy_code *code = &r->program->code;
    int64_t *words = words_of(r) + 2 * (size_t)code->draws.count;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < code->scalars.count && status == EDDY_OK; i++)
        status = convert(r, eddy_code_scalar_at(code, i), words + 2 * (size_t)i);
    return status;
}

/* ---- outputs ---- */

static void discard_handles(const eddy_run *r, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        eddy_tensor_discard(r->caller, r->handles[i]);
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

/* A made storage without a target belongs to the output that is all of it, or to a vector of its bytes, which only its views hold. */
static void find_roots(const eddy_run *r) {
    const eddy_program *program = r->program;
    uint32_t next = program->handle_count;
    for (uint32_t i = 0; i < program->made.count; i++) {
        const eddy_program_made *made = eddy_program_made_at(program, i);
        if (r->roots[i])
            continue; /* a target's */
        eddy_tensor *root = r->handles[made->whole != EDDY_CODE_NONE ? made->whole : next++];
        root->storage = r->operands[program->externals.count + i].storage;
        r->roots[i] = root;
        if (made->whole != EDDY_CODE_NONE)
            continue;
        int64_t bytes = eddy_code_value_at(&program->code, made->value)->bytes;
        root->dtype = EDDY_U8;
        root->device_kind = EDDY_DEVICE_CPU;
        root->device_index = 0;
        eddy_tensor_lay(root, 1, &bytes, bytes);
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
    for (uint32_t i = program->handle_count; i < handle_count(program); i++)
        eddy_tensor_drop(r->handles[i]);
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

/* With so many operands behind the program's own. */
static eddy_status submit_with(const eddy_run *r, eddy_vm_operand *operands, uint32_t given_up) {
    const eddy_program *program = r->program;
    uint32_t bases = program->executable->base_count - 1;
    bool gives = given_up > 0 || program->donated_count > 0;
    r->arguments->program = eddy_program_retain(r->program);
    r->arguments->late = r->late ? eddy_late_draws_retain(r->late) : NULL;
    r->arguments->path = r->path ? eddy_path_retain(r->path) : NULL;
    r->arguments->gone = given_up > 0 ? r->turn->gone : NULL;
    eddy_vm_call call = {
        .instruction = {.descriptor = gives ? &giving_descriptor : &descriptor,
                        .arguments = r->arguments,
                        .operand_count = bases + given_up,
                        .address = r->origin.address},
        .argument_bytes = argument_bytes(program),
        .operands = operands,
        .stream = eddy_stream_of_caller(r->caller, program->runtime),
        .cost_ps = program->executable->most_ps,
        .part_count = program->code.recorded_count + (gives ? bases + given_up : 0),
        .place = program->has_registered ? EDDY_PLACE_WORKER : EDDY_PLACE_ANY,
        .releases = r->caller->pending.numbers,
        .release_count = eddy_pending_release_count(&r->caller->pending, program->runtime)};
    bool runs = eddy_recorder_lets_run(r->caller);
    eddy_status status =
        runs ? eddy_vm_submit(program->runtime->vm, &call)
             : eddy_vm_make_lost(program->runtime->vm, &call, r->caller->recorder->lost);
    if (status != EDDY_OK || !runs) {
        eddy_late_draws_release(r->arguments->late);
        eddy_path_release(r->arguments->path);
        eddy_program_release(&r->arguments->program);
    } else if (r->turn) {
        eddy_ring_turn_submitted(r->turn);
    }
    return status;
}

static eddy_status fail_place(const eddy_run *r) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a place in the ring");
}

/* The outputs that the run makes old are operands, too: those of the program, and behind them *given_up more. The caller releases them unless they are r->operands. */
static eddy_status take_turn(const eddy_run *r, eddy_vm_operand **operands, uint32_t *given_up) {
    uint32_t bases = r->program->executable->base_count - 1;
    if (!eddy_ring_turn_take(r->turn))
        return fail_place(r);
    *given_up = eddy_ring_turn_count(r->turn);
    if (*given_up == 0)
        return EDDY_OK;
    *operands =
        eddy_memory_acquire((bases + (size_t)*given_up) * sizeof(**operands), EDDY_MEMORY_PROGRAM);
    if (!*operands)
        return fail_place(r);
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

static eddy_status run_bound(eddy_run *r) {
    eddy_status status = check_path(r);
    if (status == EDDY_OK)
        status = eddy_run_bind(r);
    if (status == EDDY_OK)
        status = convert_all(r);
    if (status == EDDY_OK)
        status = make_handles(r);
    if (status != EDDY_OK)
        return status;
    status = draw(r);
    if (status == EDDY_OK)
        status = submit(r);
    if (status == EDDY_OK && EDDY_UNLIKELY(r->path != NULL))
        status = follow_path(r);
    if (status != EDDY_OK) {
        discard_handles(r, handle_count(r->program));
        return status;
    }
    note_written(r);
    find_roots(r);
    status = await_draws(r);
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
    size_t operands = (program->executable->base_count - 1) * sizeof(*r->operands);
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

eddy_status eddy_run_make(eddy_run *r) {
    return eddy_run_is_traced(r) ? eddy_run_make_traced(r) : eddy_run_make_untraced(r);
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
