/* One function runs a call, wherever it runs: poison, memory, kernel, error to poison (PROTOCOL.md sections 5, 11). */
#include <base/float_environment.h>
#include <base/status.h>
#include <stdio.h>
#include <string.h>
#include <vm/device.h>
#include <vm/execute.h>
#include <vm/machine.h>
#include <vm/service.h>
#include <vm/submit.h>
#include <vm/traced.h>

eddy_poison eddy_vm_input_poison(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_poison lowest = 0;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if (!eddy_mention_is_input(mention))
            continue;
        eddy_poison poison = eddy_vm_storage(vm, eddy_mention_number(mention))->shared.poison;
        if (EDDY_UNLIKELY(poison != 0))
            lowest = eddy_poison_lowest(lowest, poison);
    }
    return lowest;
}

/* Sizes of new storages and those that a covering write must have memory for, although nothing ran. */
static void note_sizes(eddy_vm *vm, const eddy_instruction *instruction) {
    const int64_t *size = instruction->sizes;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if ((mention & EDDY_MENTION_NEW) && !(mention & EDDY_MENTION_MUT2))
            eddy_vm_storage(vm, eddy_mention_number(mention))->shared.bytes = *size++;
    }
}

/* Poisons what an instruction writes: `covered` for what it would have written whole, `in_place` for the rest. */
static void poison_outputs(eddy_vm *vm, const eddy_instruction *instruction, uint64_t root,
                           eddy_poison_state in_place) {
    EDDY_TRACE_AT(POISON, EDDY_TRACED(vm, instruction), .origin = root);
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if (!eddy_mention_writes(mention))
            continue;
        eddy_poison *poison = &eddy_vm_storage(vm, eddy_mention_number(mention))->shared.poison;
        if (!eddy_mention_is_input(mention)) {
            *poison = eddy_poison_make(root, EDDY_POISON_LOST);
            continue;
        }
        *poison = eddy_poison_after_write(*poison, root, in_place);
    }
}

/* Of a device: everything that has used it has ended, as the host's instruction runs behind that. */
static void release_given_up(eddy_vm *vm, eddy_storage *storage, eddy_blocks_cache *cache) {
    EDDY_ASSERT(!storage->shared.borrow);
    if (eddy_load_relaxed(&storage->shared.is_kept))
        return;
    if (EDDY_UNLIKELY(storage->shared.device != 0))
        eddy_device_pool_give(vm->devices[storage->shared.device]->pool, storage->shared.data, 0,
                              0);
    else
        eddy_blocks_release(cache, storage->shared.data, storage->shared.bytes);
    storage->shared.data = NULL;
}

/* What the call gives up and does not touch makes room for what it makes. If that is not enough it is tried again, and gives up all the same. */
static void make_room(eddy_vm *vm, const eddy_instruction *instruction, eddy_blocks_cache *cache) {
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if ((mention & EDDY_MENTION_GIVEN_UP) && !eddy_mention_is_input(mention) &&
            !eddy_instruction_is_named_again(instruction, i))
            release_given_up(vm, eddy_vm_storage(vm, eddy_mention_number(mention)), cache);
    }
}

/* Once the call is over. The memory is released too, unless its launch has done so (`cache` NULL). */
static void give_up(eddy_vm *vm, const eddy_instruction *instruction, eddy_blocks_cache *cache) {
    if (EDDY_LIKELY(!instruction->view.descriptor->gone))
        return;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if (!(mention & EDDY_MENTION_GIVEN_UP))
            continue;
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(mention));
        EDDY_ASSERT(eddy_mention_writes(mention));
        eddy_error error;
        instruction->view.descriptor->gone(&instruction->view, i, &error);
        eddy_errors_add_known(&vm->errors, &error);
        if (cache)
            release_given_up(vm, storage, cache);
        storage->shared.poison = eddy_poison_make(error.sequence, EDDY_POISON_LOST);
    }
}

void eddy_vm_execute_give_up(eddy_vm *vm, const eddy_instruction *instruction) {
    give_up(vm, instruction, NULL);
}

void eddy_vm_execute_skipped(eddy_vm *vm, const eddy_instruction *instruction, eddy_poison blame,
                             bool has_run) {
    poison_outputs(vm, instruction, eddy_poison_sequence(blame),
                   has_run ? EDDY_POISON_TORN : EDDY_POISON_SKIPPED);
    eddy_add_relaxed(&vm->skipped_count, (uint64_t)1);
}

static void skip(eddy_vm *vm, const eddy_instruction *instruction, eddy_poison blame) {
    note_sizes(vm, instruction);
    eddy_vm_execute_skipped(vm, instruction, blame, false);
}

void eddy_vm_execute_fail(eddy_vm *vm, const eddy_instruction *instruction, eddy_status status,
                          const char *device, bool has_run) {
    eddy_poison blame = eddy_vm_input_poison(vm, instruction);
    if (blame != 0) {
        eddy_vm_execute_skipped(vm, instruction, blame, has_run);
        return;
    }
    char text[320] = "", what[96];
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    if (descriptor && descriptor->describe)
        descriptor->describe(&instruction->view, text, sizeof(text));
    eddy_errors_format(status, device, what, sizeof(what));
    eddy_error error;
    eddy_error_fill(&error, status, eddy_instruction_origin(instruction),
                    instruction->view.sequence, "%s: %s",
                    text[0] ? text : eddy_instruction_name(instruction), what);
    eddy_errors_add(&vm->errors, &error);
    poison_outputs(vm, instruction, instruction->view.sequence,
                   has_run ? EDDY_POISON_TORN : EDDY_POISON_SKIPPED);
}

void eddy_vm_execute_failed(eddy_vm *vm, const eddy_instruction *instruction, eddy_status status) {
    note_sizes(vm, instruction);
    eddy_vm_execute_fail(vm, instruction, status, NULL, false);
    eddy_blocks_cache cache;
    eddy_blocks_cache_init(&cache, &vm->tensors);
    give_up(vm, instruction, &cache);
    eddy_blocks_cache_fini(&cache);
}

static void fail_kernel(eddy_vm *vm, const eddy_instruction *instruction,
                        const eddy_kernel_error *kernel_error) {
    char text[400] = "";
    if (instruction->view.descriptor->explain)
        instruction->view.descriptor->explain(&instruction->view, kernel_error, text, sizeof(text));
    eddy_status status = (eddy_status)eddy_load_relaxed(&kernel_error->status);
    eddy_error error;
    eddy_error_fill(&error, status, eddy_instruction_origin(instruction),
                    instruction->view.sequence, "%s", text[0] ? text : eddy_status_text(status));
    eddy_errors_add(&vm->errors, &error);
    poison_outputs(vm, instruction, instruction->view.sequence, EDDY_POISON_TORN);
}

/* Takes memory for one storage, `bytes` large; borrowed and present memory stays. */
static bool provide(eddy_storage *storage, int64_t bytes, eddy_blocks_cache *cache) {
    storage->shared.bytes = bytes;
    if (storage->shared.data)
        return true;
    storage->shared.data = eddy_blocks_acquire(cache, bytes);
    return storage->shared.data != NULL;
}

/* Gives back what `provide` took for the new storages before operand `end`. What a covering write was given stays: it is the
 * storage's size, and the next write needs it. */
static void unprovide(eddy_vm *vm, const eddy_instruction *instruction, uint32_t end,
                      eddy_blocks_cache *cache) {
    for (uint32_t i = 0; i < end; i++) {
        if (!(instruction->mentions[i] & EDDY_MENTION_NEW))
            continue;
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        eddy_blocks_release(cache, storage->shared.data, storage->shared.bytes);
        storage->shared.data = NULL;
    }
}

/* What one look over the operands finds. */
typedef struct survey {
    eddy_poison blame; /* the lowest among the inputs */
    bool is_starved;   /* no memory for a new storage: everything was given back */
    bool covers_old;   /* a storage that was there before is written whole */
} survey;

/* Checks the inputs, takes memory for the outputs and notes where each operand's data is. */
static inline survey execute_prepare(eddy_vm *vm, const eddy_instruction *instruction,
                                     eddy_blocks_cache *cache, void **data, int64_t *data_bytes) {
    survey found = {0};
    const eddy_storage_table *table = vm->table;
    const eddy_mention *mentions = instruction->mentions;
    const int64_t *size = instruction->sizes;
    for (int64_t i = 0, count = instruction->view.operand_count; i < count; i++) {
        eddy_mention mention = mentions[i];
        eddy_storage *storage = eddy_storage_at(table, eddy_mention_number(mention));
        if (eddy_mention_is_input(mention)) {
            eddy_poison poison = storage->shared.poison;
            if (EDDY_UNLIKELY(poison != 0))
                found.blame = eddy_poison_lowest(found.blame, poison);
        } else if (EDDY_LIKELY((mention & (EDDY_MENTION_ACCESS | EDDY_MENTION_GIVEN_UP)) ==
                               EDDY_MENTION_MUT)) {
            bool is_new = mention & EDDY_MENTION_NEW;
            found.covers_old |= !is_new;
            if (EDDY_UNLIKELY(!provide(storage, is_new ? *size++ : storage->shared.bytes, cache))) {
                unprovide(vm, instruction, i + 1, cache);
                found.is_starved = true;
                return found;
            }
        }
        data[i] = storage->shared.data;
        data_bytes[i] = storage->shared.bytes;
    }
    if (EDDY_UNLIKELY(found.blame != 0) && !instruction->view.descriptor->is_program)
        unprovide(vm, instruction, instruction->view.operand_count, cache);
    return found;
}

/* Memory and shapes of the late outputs, as they were counted. */
static bool provide_counted(eddy_vm *vm, const eddy_instruction *instruction,
                            eddy_blocks_cache *cache, const eddy_shape *shapes,
                            const int64_t *bytes, void **data, int64_t *data_bytes) {
    uint32_t late = 0;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if ((mention & EDDY_MENTION_ACCESS) != EDDY_MENTION_MUT2)
            continue;
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(mention));
        if (!provide(storage, bytes[late], cache)) {
            unprovide(vm, instruction, i + 1, cache);
            return false;
        }
        *storage->shared.late_shape = shapes[late++];
        data[i] = storage->shared.data;
        data_bytes[i] = storage->shared.bytes;
    }
    return true;
}

/* mut2: asks the kernel how large, takes the memory, and runs. False: there was none, nothing has run. */
static bool run_late(eddy_vm *vm, const eddy_instruction *instruction, const eddy_vm_run *run,
                     eddy_blocks_cache *cache, void **data, int64_t *data_bytes) {
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    eddy_shape few_shapes[EDDY_NODE_USES], *shapes = few_shapes;
    int64_t few_bytes[EDDY_NODE_USES], *bytes = few_bytes;
    int64_t room_bytes = 0;
    if (EDDY_UNLIKELY(instruction->view.operand_count > EDDY_NODE_USES)) {
        room_bytes =
            (int64_t)instruction->view.operand_count * (int64_t)(sizeof(*shapes) + sizeof(*bytes));
        shapes = eddy_blocks_acquire(cache, room_bytes);
        if (!shapes) {
            unprovide(vm, instruction, instruction->view.operand_count, cache);
            return false;
        }
        bytes = (int64_t *)(void *)(shapes + instruction->view.operand_count);
    }
    eddy_vm_run filling = *run;
    filling.late_shapes = shapes;
    descriptor->count(run, shapes, bytes);
    bool has_counted = eddy_load_relaxed(&run->error->status) == EDDY_OK;
    bool has_memory =
        !has_counted || provide_counted(vm, instruction, cache, shapes, bytes, data, data_bytes);
    if (has_counted && has_memory)
        descriptor->run(&filling);
    if (room_bytes > 0)
        eddy_blocks_release(cache, shapes, room_bytes);
    return has_memory;
}

void eddy_vm_execute_check_finite(const eddy_vm_run *run) {
    const eddy_vm_descriptor *descriptor = run->instruction->descriptor;
    if (!descriptor->check_finite || eddy_load_relaxed(&run->error->status) != EDDY_OK)
        return;
    int64_t operand = descriptor->check_finite(run);
    if (operand < 0)
        return;
    eddy_store_relaxed(&run->error->position, operand);
    eddy_store_relaxed(&run->error->status, EDDY_NOT_FINITE);
}

static void heal(eddy_vm *vm, const eddy_instruction *instruction) {
    for (uint32_t i = 0; i < instruction->view.operand_count; i++)
        if (!eddy_mention_is_input(instruction->mentions[i]))
            eddy_vm_heal(vm, eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i])));
}

static bool run_kernel(eddy_vm *vm, const eddy_instruction *instruction, const eddy_vm_run *run,
                       eddy_blocks_cache *cache, void **data, int64_t *data_bytes) {
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    eddy_float_environment environment = eddy_float_environment_enter();
    eddy_trace_span span = EDDY_TRACE_BEGIN(
        KERNEL, EDDY_TRACED(vm, instruction), EDDY_TRACED_ON(vm->streams[instruction->stream]),
        .bytes = eddy_traced_bytes(run), .live = eddy_load_relaxed(&vm->tensors.live_bytes));
    bool has_memory = true;
    if (EDDY_LIKELY(!descriptor->count))
        descriptor->run(run);
    else
        has_memory = run_late(vm, instruction, run, cache, data, data_bytes);
    EDDY_TRACE_END(span, EDDY_TRACED(vm, instruction),
                   EDDY_TRACED_ON(vm->streams[instruction->stream]),
                   .bytes = eddy_traced_bytes(run));
    eddy_float_environment_leave(environment);
    return has_memory;
}

/* From poison to workspace. SKIPS: an input is poisoned, `skip` has seen to all. */
typedef enum begun { BEGUN, BEGUN_STARVED, BEGUN_SKIPS } begun;

static inline __attribute__((always_inline)) begun
execute_begin(eddy_vm *vm, const eddy_instruction *instruction, eddy_blocks_cache *cache,
              eddy_vm_run *run, void **data, int64_t *data_bytes, int64_t *workspace_bytes,
              bool *covers_old) {
    survey found = execute_prepare(vm, instruction, cache, data, data_bytes);
    if (EDDY_UNLIKELY(found.is_starved))
        return BEGUN_STARVED;
    *covers_old = found.covers_old;
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    if (EDDY_UNLIKELY(found.blame != 0) && !descriptor->is_program) {
        skip(vm, instruction, found.blame);
        return BEGUN_SKIPS;
    }
    *workspace_bytes = descriptor->workspace ? (int64_t)descriptor->workspace(run) : 0;
    if (*workspace_bytes > 0) {
        run->workspace = eddy_blocks_acquire(cache, *workspace_bytes);
        if (!run->workspace) {
            unprovide(vm, instruction, instruction->view.operand_count, cache);
            return BEGUN_STARVED;
        }
    }
    return BEGUN;
}

static inline __attribute__((always_inline)) void execute_end(eddy_vm *vm,
                                                              const eddy_instruction *instruction,
                                                              const eddy_kernel_error *error,
                                                              bool covers_old) {
    if (EDDY_UNLIKELY(eddy_load_acquire(&error->status) != EDDY_OK))
        fail_kernel(vm, instruction, error);
    else if (covers_old)
        heal(vm, instruction);
}

void eddy_vm_execute_end(eddy_vm *vm, const eddy_instruction *instruction,
                         const eddy_kernel_error *error) {
    execute_end(vm, instruction, error, true);
}

static inline __attribute__((always_inline)) eddy_execute_result
execute(eddy_vm *vm, const eddy_instruction *instruction, eddy_blocks_cache *cache,
        eddy_kernel_team *team, void **data, int64_t *data_bytes) {
    eddy_kernel_error error = {.position = INT64_MAX};
    eddy_vm_run run = {.instruction = &instruction->view,
                       .data = data,
                       .bytes = data_bytes,
                       .team = team,
                       .error = &error,
                       .vm = vm,
                       .mentions = instruction->mentions};
    int64_t workspace_bytes;
    bool covers_old;
    begun how = execute_begin(vm, instruction, cache, &run, data, data_bytes, &workspace_bytes,
                              &covers_old);
    if (EDDY_UNLIKELY(how != BEGUN))
        return how == BEGUN_SKIPS ? EDDY_EXECUTED : EDDY_EXECUTE_STARVED;
    bool has_memory = run_kernel(vm, instruction, &run, cache, data, data_bytes);
    if (workspace_bytes > 0)
        eddy_blocks_release(cache, run.workspace, workspace_bytes);
    if (!has_memory)
        return EDDY_EXECUTE_STARVED;
    if (instruction->view.descriptor->is_program)
        return EDDY_EXECUTED;
    if (EDDY_UNLIKELY(vm->checks_finite))
        eddy_vm_execute_check_finite(&run);
    execute_end(vm, instruction, &error, covers_old);
    return EDDY_EXECUTED;
}

eddy_execute_result eddy_vm_execute(eddy_vm *vm, const eddy_instruction *instruction,
                                    eddy_blocks_cache *cache, eddy_kernel_team *team, void **data,
                                    int64_t *data_bytes) {
    if (EDDY_UNLIKELY(instruction->view.descriptor->gone != NULL))
        make_room(vm, instruction, cache);
    eddy_execute_result result = execute(vm, instruction, cache, team, data, data_bytes);
    if (EDDY_LIKELY(result == EDDY_EXECUTED))
        give_up(vm, instruction, cache);
    return result;
}

/* The kernel of a plain call has failed. */
__attribute__((noinline, cold)) static void fail_plain(eddy_vm *vm, const eddy_vm_call *call,
                                                       const eddy_kernel_error *error) {
    eddy_mention mentions[EDDY_CALLER_RUN_OPERANDS];
    for (int64_t i = 0; i < call->instruction.operand_count; i++)
        mentions[i] = call->operands[i].storage;
    mentions[call->instruction.operand_count - 1] |= EDDY_MENTION_MUT | EDDY_MENTION_NEW;
    eddy_instruction instruction = {
        .view = call->instruction, .kind = EDDY_KIND_CALL, .mentions = mentions};
    fail_kernel(vm, &instruction, error);
}

bool eddy_vm_execute_plain(eddy_vm *vm, eddy_vm_call *call) {
    const eddy_storage_table *table = vm->table;
    void *data[EDDY_CALLER_RUN_OPERANDS];
    int64_t data_bytes[EDDY_CALLER_RUN_OPERANDS];
    int64_t inputs = call->instruction.operand_count - 1;
    eddy_vm_operand *operand = call->operands;
    for (int64_t i = 0; i < inputs; i++, operand++) {
        eddy_storage *storage = eddy_storage_at(table, operand->storage);
        if (EDDY_UNLIKELY(!eddy_vm_is_idle(vm, storage) || storage->shared.poison != 0))
            return false;
        data[i] = storage->shared.data;
        data_bytes[i] = storage->shared.bytes;
    }
    int64_t bytes = operand->bytes;
    void *memory = eddy_blocks_acquire(&vm->issuer_cache, bytes);
    if (EDDY_UNLIKELY(!memory))
        return false;
    eddy_storage_number number;
    eddy_storage *made = eddy_vm_number_take(vm, &number);
    if (EDDY_UNLIKELY(!made)) {
        eddy_blocks_release(&vm->issuer_cache, memory, bytes);
        return false;
    }
    operand->storage = number;
    made->issuer.bytes = made->shared.bytes = data_bytes[inputs] = bytes;
    made->shared.data = data[inputs] = memory;
    vm->caller_run_count++;
    eddy_kernel_error error = {.position = INT64_MAX};
    eddy_vm_run run;
    call->instruction.sequence = ++vm->sequence;
    run.instruction = &call->instruction;
    run.data = data;
    run.bytes = data_bytes;
    run.workspace = NULL;
    run.team = &eddy_team_serial;
    run.error = &error;
    run.launch = NULL;
    eddy_float_environment environment = eddy_float_environment_enter();
    call->instruction.descriptor->run(&run);
    eddy_float_environment_leave(environment);
    if (EDDY_UNLIKELY(eddy_load_relaxed(&error.status) != EDDY_OK))
        fail_plain(vm, call, &error);
    return true;
}

/* ---- what a run says of its operands ---- */

static eddy_poison *poison_of(const eddy_vm_run *run, int64_t operand) {
    EDDY_ASSERT(operand >= 0 && operand < run->instruction->operand_count);
    return &eddy_vm_storage(run->vm, eddy_mention_number(run->mentions[operand]))->shared.poison;
}

eddy_poison eddy_vm_run_poison(const eddy_vm_run *run, int64_t operand) {
    return *poison_of(run, operand);
}

void eddy_vm_run_poison_set(const eddy_vm_run *run, int64_t operand, eddy_poison poison) {
    EDDY_ASSERT(eddy_mention_writes(run->mentions[operand]));
    *poison_of(run, operand) = poison;
}

void eddy_vm_run_fail(const eddy_vm_run *run, const eddy_error *error) {
    EDDY_ASSERT(error->sequence != 0 && error->sequence <= run->instruction->sequence);
    eddy_errors_add(&run->vm->errors, error);
}

bool eddy_vm_run_has_failed(const eddy_vm_run *run, uint64_t sequence) {
    return eddy_errors_has(&run->vm->errors, sequence);
}

void eddy_vm_run_skip(const eddy_vm_run *run, uint64_t count) {
    eddy_add_relaxed(&run->vm->skipped_count, count);
}

bool eddy_vm_run_checks_finite(const eddy_vm_run *run) {
    return run->vm->checks_finite;
}

void eddy_vm_storage_free_odd(eddy_vm *vm, eddy_storage *storage, eddy_blocks_cache *cache,
                              eddy_blocks_cache *arguments) {
    if (storage->shared.borrow)
        eddy_service_push(vm, &storage->shared.borrow->item);
    else if (storage->shared.device != 0)
        eddy_device_pool_give(vm->devices[storage->shared.device]->pool, storage->shared.data, 0,
                              0);
    else
        eddy_blocks_release(cache, storage->shared.data, storage->shared.bytes);
    if (storage->shared.late_shape)
        eddy_blocks_release(arguments, storage->shared.late_shape, sizeof(eddy_shape));
    storage->shared.borrow = NULL;
    storage->shared.late_shape = NULL;
    storage->shared.device = 0;
    eddy_store_relaxed(&storage->shared.is_kept, false);
}
