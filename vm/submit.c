/* The issuers' side: order, the caller's own runs, records (PROTOCOL.md sections 2 and 5). */
#include <base/process.h>
#include <base/status.h>
#include <base/trace.h>
#include <errno.h>
#include <string.h>
#include <vm/machine.h>

/* Calls between two looks at how far the engine is. */
#define LOOKS_APART 8

/* ---- the lock ---- */

static eddy_status refuse(eddy_status status, const char *op, const void *address) {
    return eddy_fail(status, op, address, "%s: %s", op, eddy_status_text(status));
}

/* Without a record of the error; the lock is held when OK. */
static eddy_status try_enter(eddy_vm *vm) {
    if (EDDY_UNLIKELY(vm->process != eddy_process_generation))
        return EDDY_FORKED;
    eddy_lock_acquire(&vm->submission);
    if (EDDY_LIKELY(eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING))
        return EDDY_OK;
    eddy_lock_release(&vm->submission);
    return EDDY_SHUT_DOWN;
}

eddy_status eddy_vm_enter(eddy_vm *vm, const char *op, const void *address) {
    eddy_status status = try_enter(vm);
    return status == EDDY_OK ? EDDY_OK : refuse(status, op, address);
}

/* In one-thread mode the caller does the engine's work before its call returns, also what another thread left. */
static void drive_one_thread(eddy_vm *vm) {
    eddy_lock_acquire(&vm->one_thread);
    eddy_engine_drive(vm);
    eddy_lock_release(&vm->one_thread);
    eddy_service_run_due(vm);
    eddy_vm_inside_end(vm);
}

static bool has_to_drive(eddy_vm *vm) {
    return vm->is_one_thread && (eddy_engine_has_work(vm) || eddy_load_relaxed(&vm->engine_word) != 0 ||
                                 eddy_service_has_due(vm));
}

void eddy_vm_leave(eddy_vm *vm) {
    bool has_to_wake = false;
    if (vm->has_written && EDDY_UNLIKELY(eddy_load_relaxed(&vm->is_asleep))) {
        /* One issuer wakes; those that come until the scheduler runs need not. */
        eddy_store_seq_cst(&vm->is_asleep, false);
        has_to_wake = true;
        vm->wake_count++;
    }
    vm->has_written = false;
    bool drives = EDDY_UNLIKELY(has_to_drive(vm));
    if (EDDY_UNLIKELY(drives))
        eddy_vm_inside_begin(vm);
    eddy_lock_release(&vm->submission);
    if (has_to_wake) {
        eddy_add_seq_cst(&vm->wake_word, 1u);
        eddy_sleep_wake_one(&vm->wake_word);
    }
    if (EDDY_UNLIKELY(drives))
        drive_one_thread(vm);
}

bool eddy_vm_is_behind(eddy_vm *vm, uint64_t position) {
    if (EDDY_LIKELY(position <= vm->ring.consumed_seen))
        return false;
    /* The engine's side changes hands with every look: after one in vain, none for the next few calls. */
    if (vm->sequence < vm->look_again_at)
        return true;
    vm->ring.consumed_seen = eddy_load_acquire(&vm->ring.consumed);
    if (position <= vm->ring.consumed_seen)
        return false;
    vm->look_again_at = vm->sequence + LOOKS_APART;
    return true;
}

/* ---- numbers ---- */

static void numbers_collect(eddy_vm *vm) {
    uint64_t taken = eddy_load_relaxed(&vm->numbers_taken);
    uint64_t returned = eddy_load_acquire(&vm->numbers_returned);
    if (taken == returned)
        return;
    for (; taken != returned; taken++)
        eddy_vm_number_give(vm, vm->numbers[taken % EDDY_NUMBER_RING]);
    eddy_store_release(&vm->numbers_taken, taken);
}

eddy_storage_number eddy_vm_number_take(eddy_vm *vm) {
    eddy_storage_table *table = vm->table;
    /* Now and then, so that numbers are reused while their lines are in the cache. */
    if (EDDY_UNLIKELY((++vm->numbers_since_collect & 15) == 0 || !table->free_head))
        numbers_collect(vm);
    if (EDDY_UNLIKELY(!table->free_head) && !eddy_storage_table_grow(table))
        return 0;
    eddy_storage_number number = table->free_head;
    eddy_storage *storage = eddy_storage_at(table, number);
    EDDY_ASSERT(!storage->issuer.is_used);
    table->free_head = storage->issuer.next_free;
    storage->issuer.is_used = true;
    storage->issuer.generation++;
    storage->issuer.last_position = 0;
    return number;
}

void eddy_vm_number_give(eddy_vm *vm, eddy_storage_number number) {
    eddy_storage *storage = eddy_storage_at(vm->table, number);
    EDDY_ASSERT(storage->issuer.is_used);
    storage->issuer.is_used = false;
    storage->issuer.next_free = vm->table->free_head;
    vm->table->free_head = number;
}

/* ---- marks and room ---- */

static bool is_above(eddy_vm *vm, int64_t count_mark, int64_t bytes_mark) {
    int64_t count = (int64_t)(vm->issued - vm->finished_seen);
    int64_t bytes = vm->issued_bytes - vm->finished_bytes_seen;
    /* An empty VM takes any instruction. */
    return count > 0 && (count >= count_mark || bytes >= bytes_mark);
}

static void refresh_seen(eddy_vm *vm) {
    vm->finished_bytes_seen = eddy_load_seq_cst(&vm->finished_bytes);
    vm->finished_seen = eddy_load_seq_cst(&vm->finished);
}

/* Waits for the engine to get on. Lock: submission, given up meanwhile and held again on return, whatever it answers. */
static eddy_status wait_for_progress(eddy_vm *vm, const char *op, const void *address) {
    eddy_add_seq_cst(&vm->throttled, 1);
    uint32_t progress = eddy_load_seq_cst(&vm->progress);
    uint64_t finished = eddy_load_seq_cst(&vm->finished);
    uint64_t consumed = eddy_load_seq_cst(&vm->ring.consumed);
    bool has_moved = finished != vm->finished_seen || consumed != vm->ring.consumed_seen;
    vm->ring.consumed_seen = consumed;
    eddy_vm_leave(vm);
    if (!has_moved && !eddy_team_help_slice())
        eddy_sleep_wait(&vm->progress, progress, EDDY_SLEEP_FOREVER);
    eddy_lock_acquire(&vm->submission);
    /* Counted until here: who closes the VM waits for those who come back. */
    eddy_sub_seq_cst(&vm->throttled, 1);
    return eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING ? EDDY_OK : refuse(EDDY_SHUT_DOWN, op, address);
}

__attribute__((noinline)) static eddy_status wait_below_marks(eddy_vm *vm, const char *op, const void *address) {
    refresh_seen(vm);
    if (!is_above(vm, vm->high_count, vm->high_bytes) || eddy_service_is_current_thread())
        return EDDY_OK;
    eddy_trace_begin(EDDY_TRACE_WAIT, op, vm->sequence);
    while (is_above(vm, vm->low_count, vm->low_bytes)) {
        eddy_status status = wait_for_progress(vm, op, address);
        if (status != EDDY_OK)
            return status;
        refresh_seen(vm);
    }
    eddy_trace_end(EDDY_TRACE_WAIT, op, vm->sequence);
    return EDDY_OK;
}

static eddy_status wait_for_room(eddy_vm *vm, uint32_t lines, const char *op, const void *address) {
    while (!eddy_ring_has_room(&vm->ring, lines)) {
        eddy_status status = wait_for_progress(vm, op, address);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* The engine takes nodes and never makes them: there is one for each instruction in flight before it is written. */
static bool provide_node(eddy_vm *vm) {
    if (EDDY_LIKELY(vm->issued + 1 - vm->retired_seen <= vm->node_total))
        return true;
    vm->retired_seen = eddy_load_acquire(&vm->retired);
    if (vm->issued + 1 - vm->retired_seen <= vm->node_total)
        return true;
    eddy_node_chunk *chunk = eddy_memory_acquire_zeroed(sizeof(*chunk), EDDY_MEMORY_NODE);
    if (!chunk)
        return false;
    chunk->next = vm->chunks;
    vm->chunks = chunk;
    for (int i = 0; i < EDDY_NODE_CHUNK; i++)
        eddy_stack_push(&vm->fresh_nodes, &chunk->nodes[i].completion);
    vm->node_total += EDDY_NODE_CHUNK;
    return true;
}

/* ---- records ---- */

void eddy_vm_flush_releases(eddy_vm *vm) {
    uint32_t lines = eddy_record_lines(0, 0, 0, EDDY_RECORD_RELEASES);
    while (vm->pending_count > 0 && eddy_ring_has_room(&vm->ring, lines)) {
        eddy_storage_number numbers[EDDY_RECORD_RELEASES];
        uint32_t count = eddy_vm_pending_take(vm, numbers, EDDY_RECORD_RELEASES);
        eddy_instruction releases = {.kind = EDDY_KIND_RELEASES, .sequence = vm->sequence};
        eddy_ring_push(&vm->ring, &releases, 0, 0, 0, numbers, count);
        vm->has_written = true;
    }
}

/* How many pending releases ride along: what fits into the record's last line, and into one more where many wait. */
static uint32_t riders(const eddy_vm *vm, const eddy_submission *submission) {
    if (vm->pending_count == 0)
        return 0;
    const eddy_instruction *instruction = &submission->instruction;
    uint32_t operands = instruction->block ? 0 : instruction->operand_count;
    uint32_t new_count = instruction->block ? 0 : submission->new_count;
    size_t bare = 32 + (submission->argument_bytes + 7) / 8 * 8 + 8 * (size_t)new_count + 4 * (size_t)operands;
    uint32_t room = (uint32_t)(-bare % EDDY_LINE_BYTES) / 4;
    if (vm->pending_count > 2 * room && bare + 4 * (size_t)room < EDDY_RECORD_LINES_MAX * EDDY_LINE_BYTES)
        room += EDDY_LINE_BYTES / 4;
    uint32_t most = room < EDDY_RECORD_RELEASES ? room : EDDY_RECORD_RELEASES;
    return vm->pending_count < most ? vm->pending_count : most;
}

static void note_peaks(eddy_vm *vm) {
    int64_t count = (int64_t)(vm->issued - vm->finished_seen);
    int64_t bytes = vm->issued_bytes - vm->finished_bytes_seen;
    if (EDDY_UNLIKELY(count > vm->in_flight_peak))
        vm->in_flight_peak = count;
    if (EDDY_UNLIKELY(bytes > vm->bytes_in_flight_peak))
        vm->bytes_in_flight_peak = bytes;
}

eddy_status eddy_vm_write(eddy_vm *vm, eddy_submission *submission) {
    eddy_instruction *instruction = &submission->instruction;
    if (EDDY_UNLIKELY(!provide_node(vm)))
        return eddy_fail(EDDY_OUT_OF_MEMORY, submission->op, instruction->address, "%s: no memory for an instruction",
                         submission->op);
    uint32_t lines = EDDY_RECORD_LINES_MAX + 2;
    if (EDDY_UNLIKELY(!eddy_ring_has_room(&vm->ring, lines))) {
        eddy_status status = wait_for_room(vm, lines, submission->op, instruction->address);
        if (status != EDDY_OK)
            return status;
        if (!provide_node(vm))
            return eddy_fail(EDDY_OUT_OF_MEMORY, submission->op, instruction->address,
                             "%s: no memory for an instruction", submission->op);
    }
    instruction->sequence = ++vm->sequence;
    eddy_vm_stream *stream = submission->stream ? submission->stream : vm->streams[0];
    instruction->stream = stream->number;
    if (stream->is_ordered || instruction->kind == EDDY_KIND_GATE)
        stream->blocking_submitted++;
    stream->submitted++;
    vm->issued++;
    vm->issued_bytes += submission->new_bytes;
    note_peaks(vm);
    eddy_storage_number numbers[EDDY_RECORD_RELEASES];
    uint32_t count = eddy_vm_pending_take(vm, numbers, riders(vm, submission));
    eddy_ring_push(&vm->ring, instruction, submission->argument_bytes, submission->new_count,
                   eddy_cost_class(submission->cost_ps), numbers, count);
    vm->has_written = true;
    uint64_t position = eddy_load_relaxed(&vm->ring.tail);
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        storage->issuer.submitted++;
        storage->issuer.last_position = position;
    }
    return EDDY_OK;
}

eddy_status eddy_vm_write_list(eddy_vm *vm, eddy_instruction_kind kind, eddy_mention access, eddy_vm_stream *stream,
                               const eddy_storage_number *storages, int64_t count, const char *op,
                               const void *address) {
    eddy_block *block = eddy_block_acquire(&vm->issuer_arguments, (uint32_t)count, 0, 0);
    if (!block)
        return eddy_fail(EDDY_OUT_OF_MEMORY, op, address, "%s: no memory for %lld tensors", op, (long long)count);
    for (int64_t i = 0; i < count; i++)
        block->mentions[i] = storages[i] | access;
    eddy_submission submission = {.instruction = {.kind = (uint8_t)kind, .address = address},
                                  .argument_bytes = sizeof(block),
                                  .stream = stream,
                                  .op = op};
    eddy_block_open(block, &submission.instruction);
    submission.instruction.arguments = &block;
    eddy_status status = eddy_vm_write(vm, &submission);
    if (status != EDDY_OK)
        eddy_block_release(&vm->issuer_arguments, block);
    return status;
}

/* ---- calls ---- */

static void numbers_return(eddy_vm *vm, eddy_vm_call *call, int64_t end) {
    for (int64_t i = end; i-- > 0;)
        if (call->operands[i].is_new) {
            eddy_storage *storage = eddy_vm_storage(vm, call->operands[i].storage);
            if (storage->shared.late_shape) {
                eddy_blocks_release(&vm->issuer_arguments, storage->shared.late_shape, sizeof(eddy_shape));
                storage->shared.late_shape = NULL;
            }
            eddy_vm_number_give(vm, call->operands[i].storage);
            call->operands[i].storage = 0;
        }
}

/* Numbers for the new storages, and memory for the shapes of late ones; all or none. */
static bool numbers_for(eddy_vm *vm, eddy_vm_call *call) {
    for (int64_t i = 0; i < call->operand_count; i++) {
        eddy_vm_operand *operand = &call->operands[i];
        if (!operand->is_new)
            continue;
        operand->storage = eddy_vm_number_take(vm);
        if (!operand->storage) {
            numbers_return(vm, call, i);
            return false;
        }
        eddy_storage *storage = eddy_vm_storage(vm, operand->storage);
        storage->issuer.bytes = operand->access == EDDY_ACCESS_MUT2 ? 0 : operand->bytes;
        if (EDDY_UNLIKELY(operand->access == EDDY_ACCESS_MUT2)) {
            storage->shared.late_shape = eddy_blocks_acquire(&vm->issuer_arguments, sizeof(eddy_shape));
            if (!storage->shared.late_shape) {
                numbers_return(vm, call, i + 1);
                return false;
            }
        }
    }
    return true;
}

static void mentions_fill(const eddy_vm_call *call, eddy_mention *mentions, int64_t *sizes) {
    for (int64_t i = 0; i < call->operand_count; i++) {
        const eddy_vm_operand *operand = &call->operands[i];
        mentions[i] = operand->storage | (eddy_mention)operand->access << 26 |
                      (operand->is_new ? EDDY_MENTION_NEW : 0) | (operand->covers_all ? EDDY_MENTION_COVERS : 0);
        if (operand->is_new && operand->access == EDDY_ACCESS_MUT)
            *sizes++ = operand->bytes;
    }
}

/* Whether nothing that was submitted can touch the storage any more: the holder of the lock then owns its shared line (D1). */
static bool is_idle(eddy_vm *vm, eddy_storage *storage) {
    return !eddy_vm_is_behind(vm, storage->issuer.last_position) && eddy_storage_is_idle(storage);
}

static bool may_run_here(eddy_vm *vm, const eddy_vm_call *call) {
    if (call->cost_ps > EDDY_CALLER_RUN_PS || call->operand_count > EDDY_CALLER_RUN_OPERANDS ||
        call->place != EDDY_PLACE_ANY || vm->is_full_path)
        return false;
    eddy_vm_stream *stream = call->stream ? call->stream : vm->streams[0];
    if (stream->is_foreign || stream->blocking_submitted != eddy_load_acquire(&stream->blocking_retired))
        return false;
    for (int64_t i = 0; i < call->operand_count; i++)
        if (!call->operands[i].is_new && !is_idle(vm, eddy_vm_storage(vm, call->operands[i].storage)))
            return false;
    return true;
}

/* Lock: submission. True when the call was run. */
static bool run_here(eddy_vm *vm, eddy_vm_call *call) {
    eddy_mention mentions[EDDY_CALLER_RUN_OPERANDS];
    int64_t sizes[EDDY_CALLER_RUN_OPERANDS];
    void *data[EDDY_CALLER_RUN_OPERANDS];
    int64_t data_bytes[EDDY_CALLER_RUN_OPERANDS];
    mentions_fill(call, mentions, sizes);
    eddy_instruction instruction;
    instruction.kind = EDDY_KIND_CALL;
    instruction.operand_count = (uint32_t)call->operand_count;
    instruction.sequence = vm->sequence + 1;
    instruction.descriptor = call->descriptor;
    instruction.address = call->address;
    instruction.arguments = call->arguments;
    instruction.mentions = mentions;
    instruction.sizes = sizes;
    instruction.block = NULL;
    int saved_errno = errno;
    eddy_execute_result result =
        eddy_vm_execute(vm, &instruction, &vm->issuer_cache, &eddy_team_serial, data, data_bytes);
    errno = saved_errno;
    if (EDDY_UNLIKELY(result != EDDY_EXECUTED))
        return false;
    vm->sequence++;
    vm->caller_run_count++;
    return true;
}

static bool needs_block(const eddy_vm_call *call) {
    return call->operand_count > EDDY_RECORD_OPERANDS || call->argument_bytes > EDDY_RECORD_ARGUMENT_BYTES;
}

/* Lock: submission. */
__attribute__((noinline)) static eddy_status write_call(eddy_vm *vm, eddy_vm_call *call, uint32_t new_count, int64_t new_bytes, const char *op) {
    eddy_mention mentions[EDDY_RECORD_OPERANDS];
    int64_t sizes[EDDY_RECORD_OPERANDS];
    eddy_submission submission = {.instruction = {.kind = EDDY_KIND_CALL,
                                                  .place = (uint8_t)call->place,
                                                  .operand_count = (uint32_t)call->operand_count,
                                                  .descriptor = call->descriptor,
                                                  .address = call->address,
                                                  .arguments = call->arguments,
                                                  .mentions = mentions,
                                                  .sizes = sizes},
                                  .argument_bytes = call->argument_bytes,
                                  .new_count = new_count,
                                  .new_bytes = new_bytes,
                                  .cost_ps = call->cost_ps,
                                  .stream = call->stream,
                                  .op = op};
    eddy_block *block = NULL;
    if (EDDY_UNLIKELY(needs_block(call))) {
        block = eddy_block_acquire(&vm->issuer_arguments, (uint32_t)call->operand_count, new_count,
                                   call->argument_bytes);
        if (!block)
            return eddy_fail(EDDY_OUT_OF_MEMORY, op, call->address, "%s: no memory for %lld operands", op,
                             (long long)call->operand_count);
        mentions_fill(call, block->mentions, block->sizes);
        if (call->argument_bytes > 0)
            memcpy(block->arguments, call->arguments, call->argument_bytes);
        eddy_block_open(block, &submission.instruction);
        submission.instruction.arguments = &block;
        submission.argument_bytes = sizeof(block);
    } else {
        mentions_fill(call, mentions, sizes);
    }
    eddy_status status = eddy_vm_write(vm, &submission);
    if (status != EDDY_OK)
        eddy_block_release(&vm->issuer_arguments, block);
    return status;
}

static const char *call_name(const eddy_vm_call *call) {
    eddy_vm_instruction view = {call->descriptor, call->arguments, call->operand_count, 0, call->address};
    return call->descriptor->name(&view);
}

/* Lock: submission. */
static eddy_status submit_locked(eddy_vm *vm, eddy_vm_call *call) {
    for (uint32_t i = 0; i < call->release_count; i++)
        eddy_vm_release_locked(vm, call->releases[i]);
    call->release_count = 0;
    if (EDDY_UNLIKELY(!numbers_for(vm, call)))
        return eddy_fail(EDDY_OUT_OF_MEMORY, call_name(call), call->address, "%s: no memory for a storage number",
                         call_name(call));
    if (may_run_here(vm, call) && run_here(vm, call))
        return EDDY_OK;
    const char *op = call_name(call);
    uint32_t new_count = 0;
    int64_t new_bytes = 0;
    for (int64_t i = 0; i < call->operand_count; i++)
        if (call->operands[i].is_new && call->operands[i].access == EDDY_ACCESS_MUT) {
            new_count++;
            new_bytes += call->operands[i].bytes;
        }
    eddy_status status = EDDY_OK;
    if (EDDY_UNLIKELY(is_above(vm, vm->high_count, vm->high_bytes)))
        status = wait_below_marks(vm, op, call->address);
    else if (EDDY_UNLIKELY(vm->finished_seen + (uint64_t)vm->high_count / 2 < vm->issued))
        refresh_seen(vm);
    if (status == EDDY_OK)
        status = write_call(vm, call, new_count, new_bytes, op);
    if (status != EDDY_OK)
        numbers_return(vm, call, call->operand_count);
    return status;
}

eddy_status eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call) {
    eddy_status status = try_enter(vm);
    if (EDDY_UNLIKELY(status != EDDY_OK))
        return refuse(status, call_name(call), call->address);
    status = submit_locked(vm, call);
    eddy_vm_leave(vm);
    if (EDDY_UNLIKELY(vm->syncs_each_op) && status == EDDY_OK)
        eddy_vm_drain(vm, call->address);
    return status;
}
