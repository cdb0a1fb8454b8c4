/* The engine's role: takes records in order, runs what is ready and cheap, hands over the rest, retires (PROTOCOL 7). */
#include <base/trace.h>
#include <errno.h>
#include <string.h>
#include <vm/kinds.h>
#include <vm/machine.h>

/* Records taken between two looks at what came back. */
#define BURST 64

bool eddy_engine_request(eddy_vm *vm) {
    return eddy_add_acq_rel(&vm->engine_word, 1u) == 0;
}

void eddy_engine_complete(eddy_vm *vm, eddy_node *node) {
    eddy_lifo_push(&vm->completions, &node->completion);
}

void eddy_vm_poke(eddy_vm *vm) {
    eddy_add_seq_cst(&vm->wake_word, 1u);
    if (eddy_load_seq_cst(&vm->is_asleep))
        eddy_sleep_wake_one(&vm->wake_word);
}

/* ---- publishing ---- */

static void publish_counters(eddy_vm *vm) {
    eddy_store_relaxed(&vm->counted.scheduler_run, vm->engine.scheduler_run);
    eddy_store_relaxed(&vm->counted.worker_run, vm->engine.worker_run);
    eddy_store_relaxed(&vm->counted.edges_made, vm->engine.edges_made);
    eddy_store_relaxed(&vm->counted.edges_skipped, vm->engine.edges_skipped);
    eddy_store_relaxed(&vm->counted.nodes_made, vm->engine.nodes_made);
}

/* is_idle: nothing is left to do; else it is one of many, and held back issuers sleep on until it is worth waking them. */
static void publish(eddy_vm *vm, bool is_idle) {
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->wants_dump)) && eddy_exchange_acq_rel(&vm->wants_dump, false))
        eddy_vm_dump_live(vm);
    eddy_graph_return_numbers(vm);
    if (eddy_load_relaxed(&vm->numbers_returned) != vm->engine.numbers_written)
        eddy_store_release(&vm->numbers_returned, vm->engine.numbers_written);
    uint64_t head = eddy_load_relaxed(&vm->ring.head);
    /* What was published within the burst may have woken nobody: that is made up for here. */
    bool has_news = vm->engine.unpublished > 0 || eddy_load_relaxed(&vm->ring.consumed) != head;
    if (!has_news && !(is_idle && vm->engine.owes_wake))
        return;
    vm->engine.unpublished = 0;
    publish_counters(vm);
    eddy_store_release(&vm->retired, vm->engine.retired);
    eddy_store_seq_cst(&vm->ring.consumed, head);
    eddy_store_seq_cst(&vm->finished_bytes, vm->engine.finished_bytes);
    eddy_store_seq_cst(&vm->finished, vm->engine.finished);
    if (!is_idle && head - vm->engine.woken_at_head < EDDY_RING_LINES / 2 &&
        vm->engine.finished - vm->engine.woken_at_finished < (uint64_t)vm->low_count) {
        vm->engine.owes_wake = true;
        return;
    }
    vm->engine.owes_wake = false;
    vm->engine.woken_at_head = head;
    vm->engine.woken_at_finished = vm->engine.finished;
    if (eddy_load_seq_cst(&vm->throttled) > 0) {
        eddy_add_seq_cst(&vm->progress, 1u);
        eddy_sleep_wake_all(&vm->progress);
    }
}

/* ---- running ---- */

static bool runs_here(const eddy_vm *vm, const eddy_instruction *instruction) {
    if (vm->is_one_thread || instruction->descriptor == &eddy_starved_room)
        return true;
    return instruction->cost_ns <= EDDY_SCHEDULER_RUN_NS && instruction->place == EDDY_PLACE_ANY && !vm->is_worker_path;
}

static int64_t new_bytes_of(const eddy_instruction *instruction) {
    int64_t bytes = 0;
    const int64_t *size = instruction->sizes;
    for (uint32_t i = 0; i < instruction->operand_count; i++)
        if ((instruction->mentions[i] & (EDDY_MENTION_NEW | EDDY_MENTION_MUT2)) == EDDY_MENTION_NEW)
            bytes += *size++;
    return bytes;
}

eddy_execute_result eddy_engine_execute(eddy_vm *vm, const eddy_instruction *instruction) {
    void *data[EDDY_NODE_USES];
    int64_t data_bytes[EDDY_NODE_USES];
    eddy_block *block = instruction->block;
    eddy_kernel_team *team = vm->is_one_thread ? &eddy_team_serial : &vm->team;
    return eddy_vm_execute(vm, instruction, &vm->engine.cache, team, block ? block->data : data,
                           block ? block->data_bytes : data_bytes);
}

/* An instruction that ran straight from the ring: retired without a node. */
static void retire_direct(eddy_vm *vm, const eddy_instruction *instruction) {
    int64_t new_bytes = new_bytes_of(instruction);
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        eddy_store_release(&storage->shared.retired, eddy_load_relaxed(&storage->shared.retired) + 1);
    }
    eddy_graph_count_retired(vm, instruction, new_bytes, true);
    eddy_block_release(&vm->engine.arguments, instruction->block);
}

/* Runs the work of a node on a stream's thread. Where there is no memory it is tried again later, but not on an ordered
 * stream: what follows in the queue has no edge, and would find its inputs missing. */
static void node_run(eddy_stream_work *work, const eddy_runner *runner, eddy_status failure) {
    (void)runner;
    eddy_node *node = (eddy_node *)(void *)((char *)work - offsetof(eddy_node, work));
    eddy_vm *vm = node->vm;
    const eddy_instruction *instruction = &node->instruction;
    if (failure != EDDY_OK) {
        eddy_vm_execute_failed(vm, instruction, failure);
    } else {
        void *data[EDDY_NODE_USES];
        int64_t data_bytes[EDDY_NODE_USES];
        eddy_block *block = instruction->block;
        eddy_blocks_cache cache;
        eddy_blocks_cache_init(&cache, &vm->tensors);
        node->is_starved = eddy_vm_execute(vm, instruction, &cache, &vm->team, block ? block->data : data,
                                           block ? block->data_bytes : data_bytes) == EDDY_EXECUTE_STARVED;
        eddy_blocks_cache_fini(&cache);
        if (EDDY_UNLIKELY(node->is_starved && (node->stream->is_ordered || node->is_last_try))) {
            node->is_starved = false;
            eddy_vm_execute_failed(vm, instruction, EDDY_OUT_OF_MEMORY);
        }
    }
    eddy_engine_complete(vm, node);
    eddy_engine_drive(vm);
    eddy_vm_inside_end(vm);
}

bool eddy_engine_is_call(const eddy_stream_work *work) {
    return work->run == node_run;
}

/* To the thread that runs it. */
void eddy_engine_dispatch(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    stream->dispatched_count++;
    vm->engine.running_count++;
    vm->engine.worker_run++;
    node->work.run = node_run;
    eddy_vm_inside_begin(vm);
    /* The node may be gone as soon as it is dispatched. */
    bool is_traced = eddy_trace_is_on();
    const char *name = is_traced ? eddy_instruction_name(&node->instruction) : NULL;
    uint64_t sequence = node->instruction.sequence;
    eddy_waiter *waiter = eddy_load_relaxed(&node->wanted_by);
    if (is_traced)
        eddy_trace_begin(EDDY_TRACE_DISPATCH, name, sequence);
    eddy_stream_dispatch(stream->stream, &node->work);
    /* Who waits for it and sleeps can run it before any worker has time. */
    if (waiter && eddy_team_is_busy())
        eddy_waiter_nudge(waiter);
    if (is_traced)
        eddy_trace_end(EDDY_TRACE_DISPATCH, name, sequence);
}

static void run_call(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    bool is_queue_free = !stream->is_ordered || stream->dispatched_count == 0;
    eddy_graph_dispatched(vm, node);
    if (!runs_here(vm, &node->instruction) || !is_queue_free || stream->is_foreign) {
        eddy_engine_dispatch(vm, node);
        return;
    }
    if (node->instruction.descriptor == &eddy_starved_room ||
        eddy_engine_execute(vm, &node->instruction) == EDDY_EXECUTE_STARVED) {
        if (!stream->is_ordered) {
            eddy_starved_add(vm, node);
            return;
        }
        eddy_vm_execute_failed(vm, &node->instruction, EDDY_OUT_OF_MEMORY);
    }
    vm->engine.scheduler_run++;
    eddy_graph_retire(vm, node);
}

void eddy_engine_run_ready(eddy_vm *vm) {
    while (vm->engine.ready_head) {
        eddy_node *node = vm->engine.ready_head;
        vm->engine.ready_head = node->ready_next;
        if (!vm->engine.ready_head)
            vm->engine.ready_tail = &vm->engine.ready_head;
        if (node->instruction.kind == EDDY_KIND_CALL)
            run_call(vm, node);
        else if (eddy_kind_run(vm, node))
            eddy_graph_retire(vm, node);
    }
}

/* ---- taking ---- */

static void take_instruction(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_instruction_kind kind = (eddy_instruction_kind)instruction->kind;
    if (kind == EDDY_KIND_CALL) {
        if (runs_here(vm, instruction) && !vm->streams[instruction->stream]->is_foreign &&
            instruction->descriptor != &eddy_starved_room && eddy_graph_is_free(vm, instruction) &&
            eddy_engine_execute(vm, instruction) == EDDY_EXECUTED) {
            vm->engine.scheduler_run++;
            retire_direct(vm, instruction);
            return;
        }
    } else if (eddy_kind_run_direct(vm, instruction)) {
        retire_direct(vm, instruction);
        return;
    }
    eddy_node *node = eddy_graph_node_acquire(vm, instruction);
    eddy_graph_link(vm, node);
    if (node->state == EDDY_NODE_WAITING)
        eddy_kind_blocked(vm, node);
}

static bool take_records(eddy_vm *vm) {
    bool has_taken = false;
    for (int i = 0; i < BURST; i++) {
        eddy_record *record = eddy_ring_peek(&vm->ring);
        if (!record)
            break;
        has_taken = true;
        if ((record->kind_releases & 15) == EDDY_KIND_PAD) {
            eddy_ring_pop(&vm->ring, record);
            continue;
        }
        eddy_instruction instruction;
        const eddy_storage_number *releases;
        uint32_t release_count;
        eddy_ring_read(record, &instruction, &releases, &release_count);
        for (uint32_t r = 0; r < release_count; r++)
            eddy_graph_release(vm, releases[r]);
        if (instruction.kind != EDDY_KIND_RELEASES) {
            eddy_trace_begin(EDDY_TRACE_SCHEDULE, NULL, instruction.sequence);
            take_instruction(vm, &instruction);
            eddy_trace_end(EDDY_TRACE_SCHEDULE, NULL, instruction.sequence);
        }
        eddy_ring_pop(&vm->ring, record);
    }
    return has_taken;
}

static bool take_completions(eddy_vm *vm) {
    if (eddy_lifo_is_empty(&vm->completions))
        return false;
    eddy_lifo_link *link = eddy_lifo_take_all_in_order(&vm->completions);
    bool has_taken = link != NULL;
    while (link) {
        eddy_node *node = (eddy_node *)(void *)((char *)link - offsetof(eddy_node, completion));
        link = link->next;
        if (node->instruction.kind == EDDY_KIND_CALL) {
            node->stream->dispatched_count--;
            vm->engine.running_count--;
        } else {
            eddy_kind_completed(vm, node);
        }
        if (node->is_starved)
            eddy_starved_add(vm, node);
        else
            eddy_graph_retire(vm, node);
    }
    return has_taken;
}

/* Releases that came by the lock-free list take effect once the records before their stamp are taken. */
static bool take_releases(eddy_vm *vm) {
    if (!eddy_lifo_is_empty(&vm->releases)) {
        eddy_lifo_link *link = eddy_lifo_take_all(&vm->releases);
        while (link) {
            eddy_lifo_link *next = link->next;
            link->next = vm->engine.held_releases;
            vm->engine.held_releases = link;
            link = next;
        }
    }
    bool has_taken = false;
    uint64_t head = eddy_load_relaxed(&vm->ring.head);
    eddy_lifo_link **at = &vm->engine.held_releases;
    while (*at) {
        eddy_vm_release_link *release = (eddy_vm_release_link *)(void *)*at;
        if (release->after > head) {
            at = &(*at)->next;
            continue;
        }
        *at = (*at)->next;
        eddy_graph_release(vm, release->storage);
        release->recycle(release);
        has_taken = true;
    }
    return has_taken;
}

static bool tick(eddy_vm *vm) {
    if (EDDY_UNLIKELY(eddy_load_relaxed(&vm->is_halted)))
        return false;
    bool has_moved = take_completions(vm);
    eddy_engine_run_ready(vm);
    if (EDDY_UNLIKELY(vm->engine.starved && has_moved))
        eddy_starved_relieve(vm, false);
    has_moved |= take_records(vm);
    has_moved |= take_releases(vm);
    if (vm->engine.ready_head) {
        eddy_engine_run_ready(vm);
        has_moved = true;
    }
    if (EDDY_UNLIKELY(vm->engine.starved && vm->engine.running_count == 0)) {
        eddy_starved_relieve(vm, true);
        eddy_engine_run_ready(vm);
        has_moved = true;
    }
    if (vm->engine.unpublished >= BURST)
        publish(vm, false);
    return has_moved;
}

/* ---- the role ---- */

/* Looks for work without giving the role up; true when there is some. */
static bool spin(eddy_vm *vm, int64_t spin_ns) {
    int64_t end = eddy_clock_ns() + spin_ns;
    do {
        for (int i = 0; i < 64; i++) {
            if (eddy_ring_peek(&vm->ring) || !eddy_lifo_is_empty(&vm->completions) ||
                !eddy_lifo_is_empty(&vm->releases))
                return true;
            eddy_pause();
        }
    } while (eddy_clock_ns() < end);
    return false;
}

static void work(eddy_vm *vm, const eddy_waiter *until, int64_t spin_ns) {
    /* In one-thread mode nobody would go on with what is left: no leaving early there. */
    if (vm->is_one_thread)
        until = NULL;
    for (;;) {
        uint32_t seen = eddy_load_acquire(&vm->engine_word);
        while (tick(vm)) {
            /* Who comes next would not know of the starved ones. */
            if (until && eddy_waiter_is_done(until) && !vm->engine.starved)
                break;
        }
        publish(vm, true);
        if (until && eddy_waiter_is_done(until)) {
            eddy_exchange_acq_rel(&vm->engine_word, 0u);
            if (eddy_engine_has_work(vm))
                eddy_vm_poke(vm);
            return;
        }
        if (spin_ns > 0 && spin(vm, spin_ns))
            continue;
        if (eddy_cas_acq_rel(&vm->engine_word, &seen, 0u))
            return;
    }
}

void eddy_engine_work(eddy_vm *vm, const eddy_waiter *until, int64_t spin_ns) {
    /* The thread may be a user's: kernels leave its errno alone. */
    int saved_errno = errno;
    work(vm, until, spin_ns);
    errno = saved_errno;
}

void eddy_engine_drive(eddy_vm *vm) {
    if (eddy_engine_request(vm))
        eddy_engine_work(vm, NULL, 0);
}
