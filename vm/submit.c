/* The issuers' side: order, the caller's own runs, records (PROTOCOL.md sections 2 and 5). */
#include <base/process.h>
#include <base/status.h>
#include <errno.h>
#include <string.h>
#include <vm/attend.h>
#include <vm/device.h>
#include <vm/engine.h>
#include <vm/execute.h>
#include <vm/machine.h>
#include <vm/marks.h>
#include <vm/release.h>
#include <vm/service.h>
#include <vm/submit.h>
#include <vm/traced.h>
#include <vm/wait.h>

/* Calls between two looks at how far the engine is. */
#define LOOKS_APART 8
/* So many calls after a change of the issuing thread count as shared with the one before. */
#define SHARED_CALLS 64

/* ---- the lock ---- */

eddy_status eddy_vm_refuse(eddy_status status, eddy_origin origin) {
    return eddy_fail(status, origin, "%s", eddy_status_text(status));
}

/* Without a record of the error; the lock is held when OK. */
static eddy_status try_enter(eddy_vm *vm) {
    if (EDDY_UNLIKELY(vm->process != eddy_process_generation))
        return EDDY_FORKED;
    eddy_vm_lock(vm);
    if (EDDY_LIKELY(eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING))
        return EDDY_OK;
    eddy_vm_unlock(vm);
    return EDDY_SHUT_DOWN;
}

eddy_status eddy_vm_enter(eddy_vm *vm, eddy_origin origin) {
    eddy_status status = try_enter(vm);
    return status == EDDY_OK ? EDDY_OK : eddy_vm_refuse(status, origin);
}

/* In one-thread mode the caller does the engine's work before its call returns, also what another thread left. */
static void drive_one_thread(eddy_vm *vm, int64_t deadline_ns) {
    /* A release in the midst of that work, whose thread holds the lock below: it goes on with the rest, and user code is none of it. */
    if (EDDY_UNLIKELY(eddy_engine_is_mine(vm))) {
        eddy_engine_drive(vm);
        eddy_vm_inside_end(vm);
        return;
    }
    eddy_order_check();
    /* Too late: the thread that works is asked to go on with what was written, unless it has given up the role just now. */
    bool is_in_time = eddy_lock_acquire_until(&vm->one_thread, deadline_ns);
    eddy_engine_drive(vm);
    if (is_in_time)
        eddy_lock_release(&vm->one_thread);
    eddy_service_run_due(vm);
    eddy_vm_inside_end(vm);
}

/* Lock: submission. Whether the scheduler thread has to be told; one issuer wakes, those that come until it runs need not. */
static bool claims_wake(eddy_vm *vm) {
    if (vm->is_driven || !vm->has_written || !eddy_load_relaxed(&vm->is_asleep))
        return false;
    eddy_store_seq_cst(&vm->is_asleep, false);
    vm->wake_count++;
    return true;
}

/* Where there is no other mode an issuer looks after what it has written itself (PROTOCOL.md section 5). */
static void drive_own(eddy_vm *vm, bool has_issued, uint64_t sequence, bool is_shared) {
    if (has_issued)
        eddy_engine_drive_own(vm, sequence, is_shared);
    else
        eddy_engine_drive_release(vm);
    eddy_vm_inside_end(vm);
}

void eddy_vm_leave_busy(eddy_vm *vm, int64_t deadline_ns) {
    bool has_to_wake = claims_wake(vm);
    bool drives = vm->is_driven ? vm->has_written : eddy_vm_has_to_drive(vm);
    bool has_issued = vm->has_issued;
    uint64_t sequence = vm->sequence;
    bool is_shared = eddy_vm_is_shared(vm);
    vm->has_written = vm->has_issued = false;
    if (drives)
        eddy_vm_inside_begin(vm);
    eddy_vm_unlock(vm);
    if (has_to_wake) {
        eddy_add_seq_cst(&vm->wake_word, 1u);
        eddy_sleep_wake_one(&vm->wake_word);
    }
    if (drives && vm->is_driven)
        drive_own(vm, has_issued, sequence, is_shared);
    else if (drives)
        drive_one_thread(vm, deadline_ns);
}

bool eddy_vm_look_behind(eddy_vm *vm, uint64_t position) {
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
    for (; taken != returned; taken++) {
        eddy_storage_number number = vm->numbers[taken % EDDY_NUMBER_RING];
        eddy_vm_number_give(vm, eddy_vm_storage(vm, number), number);
    }
    eddy_store_release(&vm->numbers_taken, taken);
}

/* Takes one of the numbers beyond the ring; false when there are none. */
static bool take_beyond(eddy_vm *vm) {
    if (!vm->numbers_taken_beyond)
        vm->numbers_taken_beyond =
            eddy_exchange_acq_rel(&vm->numbers_beyond, (eddy_storage_number)0);
    eddy_storage_number number = vm->numbers_taken_beyond;
    if (!number)
        return false;
    eddy_storage *storage = eddy_vm_storage(vm, number);
    vm->numbers_taken_beyond = storage->engine.next_unreturned;
    eddy_vm_number_give(vm, storage, number);
    return true;
}

bool eddy_vm_numbers_find(eddy_vm *vm) {
    numbers_collect(vm);
    return vm->table->free_head || take_beyond(vm) || eddy_storage_table_grow(vm->table);
}

/* ---- room ---- */

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
        eddy_lifo_push(&vm->fresh_nodes, &chunk->nodes[i].completion);
    vm->node_total += EDDY_NODE_CHUNK;
    return true;
}

/* ---- records ---- */

void eddy_vm_flush_releases(eddy_vm *vm) {
    uint32_t lines = eddy_record_lines(0, 0, 0, EDDY_RECORD_RELEASES);
    while (vm->pending_count > 0 && eddy_ring_has_room(&vm->ring, lines)) {
        eddy_storage_number numbers[EDDY_RECORD_RELEASES];
        uint32_t count = eddy_vm_pending_take(vm, numbers, EDDY_RECORD_RELEASES);
        eddy_instruction releases = {.view.sequence = vm->sequence, .kind = EDDY_KIND_RELEASES};
        eddy_ring_publish(eddy_ring_write(&vm->ring, &releases, 0, 0, 0, numbers, count),
                          releases.view.sequence);
        vm->has_written = true;
    }
}

/* How many pending releases ride along: what fits into the record's last line, and into one more where many wait. */
static uint32_t riders(const eddy_vm *vm, const eddy_submission *submission) {
    if (vm->pending_count == 0)
        return 0;
    const eddy_instruction *instruction = &submission->instruction;
    uint32_t operands = instruction->spill ? 0 : instruction->view.operand_count;
    uint32_t new_count = instruction->spill ? 0 : submission->new_count;
    size_t bare = 32 + (submission->argument_bytes + 7) / 8 * 8 + 8 * (size_t)new_count +
                  4 * (size_t)operands;
    uint32_t room = (uint32_t)(-bare % EDDY_LINE_BYTES) / 4;
    if (vm->pending_count > 2 * room &&
        bare + 4 * (size_t)room < EDDY_RECORD_LINES_MAX * EDDY_LINE_BYTES)
        room += EDDY_LINE_BYTES / 4;
    uint32_t most = room < EDDY_RECORD_RELEASES ? room : EDDY_RECORD_RELEASES;
    return vm->pending_count < most ? vm->pending_count : most;
}

static eddy_origin submission_origin(const eddy_submission *submission) {
    const eddy_instruction *instruction = &submission->instruction;
    return submission->op ? (eddy_origin){submission->op, instruction->view.address}
                          : eddy_instruction_origin(instruction);
}

/* A node and room in the ring; may leave and enter the lock in between. */
__attribute__((noinline)) static eddy_status
provide_slow(eddy_vm *vm, const eddy_submission *submission, uint32_t lines) {
    eddy_origin origin = submission_origin(submission);
    if (provide_node(vm)) {
        int64_t deadline_ns =
            submission->deadline_ns ? submission->deadline_ns : EDDY_CLOCK_FOREVER;
        eddy_status status = eddy_marks_wait_for_room(vm, lines, origin, deadline_ns);
        if (status != EDDY_OK)
            return status;
        if (provide_node(vm))
            return EDDY_OK;
    }
    return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for an instruction");
}

/* Lock: submission. Two that take turns are two for a while. */
static void note_issuer(eddy_vm *vm) {
    uint64_t thread = eddy_vm_thread_number();
    if (EDDY_LIKELY(thread == vm->issuer))
        return;
    if (vm->issuer != 0)
        vm->shared_until = vm->sequence + SHARED_CALLS;
    vm->issuer = thread;
}

eddy_status eddy_vm_write(eddy_vm *vm, eddy_submission *submission) {
    eddy_instruction *instruction = &submission->instruction;
    uint32_t lines = EDDY_RECORD_LINES_MAX + 2;
    if (EDDY_UNLIKELY(!provide_node(vm) || !eddy_ring_has_room(&vm->ring, lines))) {
        eddy_status status = provide_slow(vm, submission, lines);
        if (status != EDDY_OK)
            return status;
    }
    uint64_t sequence = instruction->view.sequence = vm->sequence += 1 + submission->part_count;
    if (eddy_trace_is_on())
        eddy_traced_issued = (eddy_traced_number){sequence, (uint16_t)vm->number};
    eddy_vm_stream *stream = submission->stream ? submission->stream : vm->streams[0];
    instruction->stream = stream->number;
    if (stream->is_ordered || eddy_instruction_has(instruction, EDDY_KIND_GATES_STREAM))
        stream->blocking_submitted++;
    stream->submitted++;
    note_issuer(vm);
    vm->issued++;
    vm->issued_bytes += submission->new_bytes;
    vm->marks[submission->device].issued_bytes += submission->new_bytes;
    uint64_t cost_class = eddy_record_cost_class(submission->cost_ps);
    eddy_marks_count(vm, eddy_record_cost_class_ns(cost_class), (eddy_vm_place)instruction->place);
    eddy_storage_number numbers[EDDY_RECORD_RELEASES];
    uint32_t count = eddy_vm_pending_take(vm, numbers, riders(vm, submission));
    eddy_record *record = eddy_ring_write(&vm->ring, instruction, submission->argument_bytes,
                                          submission->new_count, cost_class, numbers, count);
    vm->has_written = vm->has_issued = true;
    uint64_t position = eddy_load_relaxed(&vm->ring.tail);
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        storage->issuer.submitted++;
        storage->issuer.last_position = position;
    }
    eddy_ring_publish(record, sequence);
    /* The ring was full when they became so many. */
    if (EDDY_UNLIKELY(vm->pending_count >= EDDY_PENDING_RELEASES))
        eddy_vm_flush_releases(vm);
    return EDDY_OK;
}

eddy_status eddy_vm_write_list(eddy_vm *vm, eddy_instruction_kind kind, eddy_mention access,
                               eddy_vm_stream *stream, const eddy_storage_number *storages,
                               int64_t count, eddy_origin origin) {
    eddy_spill *spill = eddy_spill_acquire(&vm->issuer_arguments, (uint32_t)count, 0, 0);
    if (!spill)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for %lld tensors",
                         (long long)count);
    for (int64_t i = 0; i < count; i++)
        spill->mentions[i] = storages[i] | access;
    eddy_submission submission = {
        .instruction = {.view.address = origin.address, .kind = (uint8_t)kind},
        .argument_bytes = sizeof(spill),
        .stream = stream,
        .op = origin.op};
    eddy_spill_open(spill, &submission.instruction);
    submission.instruction.view.arguments = &spill;
    eddy_status status = eddy_vm_write(vm, &submission);
    if (status != EDDY_OK)
        eddy_spill_release(&vm->issuer_arguments, spill);
    return status;
}

/* ---- calls ---- */

static void number_return(eddy_vm *vm, eddy_vm_operand *operand) {
    eddy_storage *storage = eddy_vm_storage(vm, operand->storage);
    if (storage->shared.late_shape) {
        eddy_blocks_release(&vm->issuer_arguments, storage->shared.late_shape, sizeof(eddy_shape));
        storage->shared.late_shape = NULL;
    }
    storage->shared.device = 0;
    eddy_vm_number_give(vm, storage, operand->storage);
    operand->storage = 0;
}

static void numbers_return(eddy_vm *vm, eddy_vm_call *call, int64_t end) {
    for (int64_t i = end; i-- > 0;)
        if (call->operands[i].is_new && call->operands[i].storage)
            number_return(vm, &call->operands[i]);
}

/* mut2: memory for the shape that the kernel will find out. */
static bool begin_late(eddy_vm *vm, eddy_storage *storage) {
    storage->issuer.bytes = 0;
    storage->shared.late_shape = eddy_blocks_acquire(&vm->issuer_arguments, sizeof(eddy_shape));
    return storage->shared.late_shape != NULL;
}

/* What a call hands over, but for its operands. Field by field: an initialiser would first clear it all. */
static inline void submission_begin(eddy_submission *submission, const eddy_vm_call *call) {
    submission->instruction.view = call->instruction;
    submission->instruction.kind = EDDY_KIND_CALL;
    submission->instruction.place = (uint8_t)call->place;
    submission->instruction.spill = NULL;
    submission->argument_bytes = call->argument_bytes;
    submission->part_count = call->part_count;
    submission->cost_ps = call->cost_ps;
    submission->stream = call->stream;
    submission->op = NULL;
    submission->deadline_ns = 0;
}

/* One look over the operands: their mentions; numbers for the new storages, all or none; into *is_idle, where it was true,
 * whether those that were there before are idle. What changes in the loop is kept in locals, which the stores through
 * pointers cannot touch. */
static bool resolve(eddy_vm *vm, eddy_vm_call *call, eddy_submission *to, eddy_mention *mentions,
                    int64_t *sizes, bool *is_idle) {
    int64_t new_bytes = 0;
    uint32_t new_count = 0;
    bool all_idle = *is_idle;
    for (int64_t i = 0, count = call->instruction.operand_count; i < count; i++) {
        eddy_vm_operand *operand = &call->operands[i];
        eddy_mention mention = (eddy_mention)operand->access << 26 |
                               (operand->covers_all ? EDDY_MENTION_COVERS : 0) |
                               (operand->is_given_up ? EDDY_MENTION_GIVEN_UP : 0);
        if (operand->is_new) {
            mention |= EDDY_MENTION_NEW;
            eddy_storage *storage = eddy_vm_number_take(vm, &operand->storage);
            if (EDDY_UNLIKELY(!storage))
                operand->storage = 0;
            if (EDDY_UNLIKELY(!storage ||
                              (operand->access == EDDY_ACCESS_MUT2 && !begin_late(vm, storage)))) {
                numbers_return(vm, call, i + 1);
                return false;
            }
            storage->shared.device = operand->device;
            if (EDDY_LIKELY(operand->access == EDDY_ACCESS_MUT)) {
                int64_t bytes = operand->bytes;
                storage->issuer.bytes = bytes;
                sizes[new_count++] = bytes;
                new_bytes += bytes;
            }
        } else if (all_idle) {
            all_idle = eddy_vm_is_idle(vm, eddy_vm_storage(vm, operand->storage));
        }
        mentions[i] = mention | operand->storage;
    }
    to->instruction.mentions = mentions;
    to->instruction.sizes = sizes;
    to->new_count = new_count;
    to->new_bytes = new_bytes;
    *is_idle = all_idle;
    return true;
}

/* Whether the call may run here as far as it does not depend on its operands. */
static bool may_run_here(const eddy_vm *vm, const eddy_vm_call *call) {
    if (call->cost_ps > EDDY_CALLER_RUN_PS ||
        call->instruction.operand_count > EDDY_CALLER_RUN_OPERANDS ||
        call->place != EDDY_PLACE_ANY || vm->is_full_path)
        return false;
    eddy_vm_stream *stream = call->stream ? call->stream : vm->streams[0];
    return !stream->is_foreign &&
           stream->blocking_submitted == eddy_load_acquire(&stream->blocking_retired);
}

__thread eddy_traced_number eddy_traced_issued;

/* Lock: submission. True when the call was run. */
static bool run_here(eddy_vm *vm, eddy_submission *submission) {
    eddy_instruction *instruction = &submission->instruction;
    void *data[EDDY_CALLER_RUN_OPERANDS];
    int64_t data_bytes[EDDY_CALLER_RUN_OPERANDS];
    instruction->view.sequence = vm->sequence + 1 + submission->part_count;
    /* For events, whose listeners may come at any moment: not only where there is one by now. */
    instruction->stream = submission->stream ? submission->stream->number : 0;
    int saved_errno = errno;
    eddy_execute_result result =
        eddy_vm_execute(vm, instruction, &vm->issuer_cache, &eddy_team_serial, data, data_bytes);
    errno = saved_errno;
    if (EDDY_UNLIKELY(result != EDDY_EXECUTED))
        return false;
    eddy_trace_span span = EDDY_TRACE_BEGIN(RELEASE, EDDY_TRACED(vm, instruction));
    eddy_instruction_end(instruction);
    EDDY_TRACE_END(span, EDDY_TRACED(vm, instruction));
    vm->sequence = instruction->view.sequence;
    if (eddy_trace_is_on())
        eddy_traced_issued = (eddy_traced_number){vm->sequence, (uint16_t)vm->number};
    vm->caller_run_count++;
    return true;
}

/* The same for a plain call, in one pass; what looks at instructions goes the other way. */
static bool run_plain(eddy_vm *vm, eddy_vm_call *call) {
    if (!call->is_plain || EDDY_UNLIKELY(vm->checks_finite || eddy_trace_is_on()))
        return false;
    int saved_errno = errno;
    bool has_run = eddy_vm_execute_plain(vm, call);
    errno = saved_errno;
    return has_run;
}

static bool needs_spill(const eddy_vm_call *call) {
    return call->instruction.operand_count > EDDY_RECORD_OPERANDS ||
           call->argument_bytes > EDDY_RECORD_ARGUMENT_BYTES;
}

eddy_origin eddy_vm_call_origin(const eddy_vm_call *call) {
    const eddy_vm_instruction *instruction = &call->instruction;
    return (eddy_origin){instruction->descriptor->name(instruction), instruction->address};
}

/* Memory of its own for what does not fit into a record; NULL, recorded, where there is none. */
static eddy_spill *spill_for(eddy_vm *vm, const eddy_vm_call *call, uint32_t new_count) {
    eddy_spill *spill =
        eddy_spill_acquire(&vm->issuer_arguments, (uint32_t)call->instruction.operand_count,
                           new_count, call->argument_bytes);
    if (!spill)
        eddy_fail(EDDY_OUT_OF_MEMORY, eddy_vm_call_origin(call), "no memory for %lld operands",
                  (long long)call->instruction.operand_count);
    else if (call->argument_bytes > 0)
        memcpy(spill->arguments, call->instruction.arguments, call->argument_bytes);
    return spill;
}

/* Lock: submission. `spill` is the call's, or NULL where its operands are on the stack; it is the VM's now. */
static eddy_status write_call(eddy_vm *vm, const eddy_vm_call *call, eddy_submission *submission,
                              eddy_spill *spill) {
    eddy_instruction *instruction = &submission->instruction;
    if (EDDY_UNLIKELY(!spill && needs_spill(call))) {
        spill = spill_for(vm, call, submission->new_count);
        if (!spill)
            return EDDY_OUT_OF_MEMORY;
        memcpy(spill->mentions, instruction->mentions,
               (size_t)instruction->view.operand_count * sizeof(*spill->mentions));
        memcpy(spill->sizes, instruction->sizes, submission->new_count * sizeof(*spill->sizes));
    }
    if (EDDY_UNLIKELY(spill != NULL)) {
        eddy_spill_open(spill, instruction);
        /* What goes to the ring is where they are: who waits for room there cannot ask them for a name. */
        submission->op = eddy_instruction_name(instruction);
        instruction->view.arguments = &spill;
        submission->argument_bytes = sizeof(spill);
    }
    eddy_status status = eddy_vm_write(vm, submission);
    if (EDDY_UNLIKELY(status != EDDY_OK && spill))
        eddy_spill_release(&vm->issuer_arguments, spill);
    return status;
}

static eddy_status fail_numbers(const eddy_vm_call *call) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_vm_call_origin(call),
                     "no memory for a storage number");
}

eddy_status eddy_vm_note_failure(eddy_vm *vm, eddy_error *error, eddy_origin origin) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    error->sequence = ++vm->sequence;
    eddy_errors_add_seen(&vm->errors, error);
    eddy_vm_leave(vm);
    return EDDY_OK;
}

/* Lock: submission. */
static bool take_numbers(eddy_vm *vm, eddy_vm_call *call) {
    for (int64_t i = 0; i < call->instruction.operand_count; i++) {
        EDDY_ASSERT(call->operands[i].access != EDDY_ACCESS_MUT2);
        if (call->operands[i].is_new && !eddy_vm_number_take(vm, &call->operands[i].storage)) {
            numbers_return(vm, call, i);
            return false;
        }
    }
    return true;
}

/* Lock: submission. No instruction names the storages yet, so that they are idle, and the issuer may write what is the engine's. */
static void lose(eddy_vm *vm, const eddy_vm_call *call, uint64_t root) {
    for (int64_t i = 0; i < call->instruction.operand_count; i++) {
        if (!call->operands[i].is_new)
            continue;
        eddy_storage *storage = eddy_vm_storage(vm, call->operands[i].storage);
        storage->shared.device = call->operands[i].device;
        storage->issuer.bytes = storage->shared.bytes = call->operands[i].bytes;
        storage->shared.device = call->operands[i].device;
        storage->shared.poison = eddy_poison_make(root, EDDY_POISON_LOST);
    }
}

eddy_status eddy_vm_make_lost(eddy_vm *vm, eddy_vm_call *call, uint64_t root) {
    eddy_status status = eddy_vm_enter(vm, eddy_vm_call_origin(call));
    if (status != EDDY_OK)
        return status;
    bool has_numbers = take_numbers(vm, call);
    if (has_numbers)
        lose(vm, call, root);
    eddy_vm_leave(vm);
    return has_numbers ? EDDY_OK : fail_numbers(call);
}

/* Whose mark holds the call back: the device that its new storages are on, all of those with bytes; else that of its stream, which may be one. */
__attribute__((noinline)) static uint8_t find_device(const eddy_vm_call *call) {
    uint8_t device = call->stream->device->number;
    int64_t bytes = 0;
    for (int64_t i = 0; i < call->instruction.operand_count; i++) {
        const eddy_vm_operand *operand = &call->operands[i];
        if (!operand->is_new || operand->access != EDDY_ACCESS_MUT || operand->bytes == 0)
            continue;
        EDDY_ASSERT(bytes == 0 || operand->device == device);
        device = operand->device;
        bytes += operand->bytes;
    }
    return device;
}

/* Lock: submission. Writes the call to the ring once there is room below the marks. */
__attribute__((noinline)) static eddy_status
hand_over(eddy_vm *vm, eddy_vm_call *call, eddy_submission *submission, eddy_spill *spill) {
    bool is_devices = call->stream && EDDY_UNLIKELY(call->stream->device != NULL);
    submission->device = is_devices ? find_device(call) : 0;
    eddy_status status = eddy_marks_wait(vm, call, submission->device);
    bool may_leave = is_devices && vm->is_driven && !vm->has_written;
    if (status == EDDY_OK)
        status = write_call(vm, call, submission, spill);
    else if (spill)
        eddy_spill_release(&vm->issuer_arguments, spill);
    if (may_leave && status == EDDY_OK && eddy_attend_leaves(call->stream->device))
        vm->has_written = vm->has_issued = false;
    if (status != EDDY_OK)
        numbers_return(vm, call, call->instruction.operand_count);
    return status;
}

/* Lock: submission. More operands than a caller's run has room for. */
__attribute__((noinline)) static eddy_status submit_many(eddy_vm *vm, eddy_vm_call *call) {
    uint32_t new_count = 0;
    for (int64_t i = 0; i < call->instruction.operand_count; i++)
        new_count += call->operands[i].is_new && call->operands[i].access == EDDY_ACCESS_MUT;
    eddy_spill *spill = spill_for(vm, call, new_count);
    if (!spill)
        return EDDY_OUT_OF_MEMORY;
    eddy_submission submission;
    submission_begin(&submission, call);
    bool is_idle = false;
    if (!resolve(vm, call, &submission, spill->mentions, spill->sizes, &is_idle)) {
        eddy_spill_release(&vm->issuer_arguments, spill);
        return fail_numbers(call);
    }
    return hand_over(vm, call, &submission, spill);
}

/* Lock: submission. */
__attribute__((noinline)) static eddy_status submit_few(eddy_vm *vm, eddy_vm_call *call,
                                                        bool may_run) {
    eddy_mention mentions[EDDY_CALLER_RUN_OPERANDS];
    int64_t sizes[EDDY_CALLER_RUN_OPERANDS];
    eddy_submission submission;
    submission_begin(&submission, call);
    bool is_idle = may_run;
    if (EDDY_UNLIKELY(!resolve(vm, call, &submission, mentions, sizes, &is_idle)))
        return fail_numbers(call);
    if (is_idle && run_here(vm, &submission))
        return EDDY_OK;
    return hand_over(vm, call, &submission, NULL);
}

/* Lock: submission. */
static eddy_status submit_locked(eddy_vm *vm, eddy_vm_call *call) {
    if (call->release_count)
        eddy_vm_release_all_locked(vm, call->releases, call->release_count);
    if (EDDY_UNLIKELY(call->instruction.operand_count > EDDY_CALLER_RUN_OPERANDS))
        return submit_many(vm, call);
    bool may_run = may_run_here(vm, call);
    if (may_run && run_plain(vm, call))
        return EDDY_OK;
    return submit_few(vm, call, may_run);
}

eddy_status eddy_vm_submit(eddy_vm *vm, eddy_vm_call *call) {
    eddy_status status = try_enter(vm);
    if (EDDY_UNLIKELY(status != EDDY_OK))
        return eddy_vm_refuse(status, eddy_vm_call_origin(call));
    status = submit_locked(vm, call);
    eddy_vm_leave(vm);
    if (EDDY_UNLIKELY(vm->syncs_each_op) && status == EDDY_OK)
        eddy_vm_drain(vm, (eddy_origin){"sync", call->instruction.address});
    return status;
}
