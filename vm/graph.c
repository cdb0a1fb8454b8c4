/* Nodes, edges and retirement (PROTOCOL.md section 6). Engine only. */
#include <streams/team.h>
#include <string.h>
#include <vm/device.h>
#include <vm/early.h>
#include <vm/execute.h>
#include <vm/graph.h>
#include <vm/instruction_kinds.h>
#include <vm/machine.h>
#include <vm/marks.h>
#include <vm/traced.h>

/* ---- nodes ---- */

/* Where the bytes of its new storages are: all on one device, and for a stream of the host there (submit.c checks both). */
static uint8_t find_new_device(const eddy_vm *vm, const eddy_instruction *instruction) {
    uint32_t new_count = 0;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        if ((mention & (EDDY_MENTION_NEW | EDDY_MENTION_MUT2)) == EDDY_MENTION_NEW &&
            instruction->sizes[new_count++] > 0)
            return eddy_vm_storage(vm, eddy_mention_number(mention))->shared.device;
    }
    return 0;
}

/* Those that are the host's. */
static int64_t host_bytes(const eddy_node *node) {
    return node->new_device == 0 ? node->new_bytes : 0;
}

eddy_node *eddy_graph_node_acquire(eddy_vm *vm, const eddy_instruction *instruction) {
    if (!vm->engine.free_nodes) {
        eddy_lifo_link *fresh = eddy_lifo_take_all(&vm->fresh_nodes);
        while (fresh) {
            eddy_node *node =
                (eddy_node *)(void *)((char *)fresh - offsetof(eddy_node, completion));
            fresh = fresh->next;
            node->ready_next = vm->engine.free_nodes;
            vm->engine.free_nodes = node;
        }
    }
    eddy_node *node = vm->engine.free_nodes;
    /* Issuers make a node for each instruction in flight before they write its record. */
    EDDY_ASSERT(node && node->state == EDDY_NODE_FREE);
    vm->engine.free_nodes = node->ready_next;
    vm->engine.nodes_made++;
    node->vm = vm;
    node->instruction = *instruction;
    node->stream = vm->streams[instruction->stream];
    node->state = EDDY_NODE_WAITING;
    node->is_starved = node->is_last_try = node->has_failed_lend = node->is_marker = false;
    node->is_behind_user = node->is_finished = false;
    eddy_store_relaxed(&node->has_ended_lend, false);
    node->search = 0;
    node->lend_thread = 0;
    node->ticket = 0;
    node->was_dispatched = false;
    node->unended = 0;
    node->source_count = 0;
    node->queue = NULL;
    node->phase = EDDY_STAGING_NONE;
    node->staging = NULL;
    node->workspace = NULL;
    node->has_had_round = false;
    node->staging_poison = 0;
    node->waiting_count = 0;
    node->waiting_uses = NULL;
    node->waiting_orders = NULL;
    memset(node->orders, 0, sizeof(node->orders));
    eddy_store_relaxed(&node->wanted_by, NULL);
    eddy_store_relaxed(&node->wanted_number, 0);
    node->new_bytes = 0;
    uint32_t new_count = 0;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++)
        if ((instruction->mentions[i] & (EDDY_MENTION_NEW | EDDY_MENTION_MUT2)) == EDDY_MENTION_NEW)
            node->new_bytes += instruction->sizes[new_count++];
    node->new_device =
        EDDY_UNLIKELY(node->stream->device != NULL) ? find_new_device(vm, instruction) : 0;
    if (instruction->spill) {
        node->uses = instruction->spill->uses;
        return node;
    }
    node->uses = node->inline_uses;
    size_t words = (size_t)((const uint64_t *)instruction->sizes -
                            (const uint64_t *)instruction->view.arguments);
    EDDY_ASSERT(words <= EDDY_RECORD_ARGUMENT_BYTES / 8 &&
                instruction->view.operand_count <= EDDY_NODE_USES);
    memcpy(node->payload, instruction->view.arguments, 8 * words);
    memcpy(node->sizes, instruction->sizes, 8 * new_count);
    memcpy(node->mentions, instruction->mentions, 4 * instruction->view.operand_count);
    node->instruction.view.arguments = node->payload;
    node->instruction.sizes = node->sizes;
    node->instruction.mentions = node->mentions;
    return node;
}

static void node_recycle(eddy_vm *vm, eddy_node *node) {
    eddy_spill_release(&vm->engine.arguments, node->instruction.spill);
    node->state = EDDY_NODE_FREE;
    node->ready_next = vm->engine.free_nodes;
    vm->engine.free_nodes = node;
}

/* ---- lists of live nodes ---- */

static void live_add(eddy_vm *vm, eddy_node *node) {
    node->live_next = NULL;
    node->live_previous = vm->engine.live_tail;
    *(node->live_previous ? &node->live_previous->live_next : &vm->engine.live_head) = node;
    vm->engine.live_tail = node;
    eddy_vm_stream *stream = node->stream;
    node->stream_next = NULL;
    node->stream_previous = stream->live_tail;
    *(node->stream_previous ? &node->stream_previous->stream_next : &stream->live_head) = node;
    stream->live_tail = node;
}

static void live_remove(eddy_vm *vm, eddy_node *node) {
    *(node->live_previous ? &node->live_previous->live_next : &vm->engine.live_head) =
        node->live_next;
    *(node->live_next ? &node->live_next->live_previous : &vm->engine.live_tail) =
        node->live_previous;
    eddy_vm_stream *stream = node->stream;
    *(node->stream_previous ? &node->stream_previous->stream_next : &stream->live_head) =
        node->stream_next;
    *(node->stream_next ? &node->stream_next->stream_previous : &stream->live_tail) =
        node->stream_previous;
}

/* Whether everything that a marker counts has retired. */
static bool marker_is_first(const eddy_vm *vm, const eddy_node *node) {
    if (eddy_instruction_has(&node->instruction, EDDY_KIND_ENDS_ALL))
        return vm->engine.live_head == node;
    return node->stream->live_head == node;
}

/* ---- edges ---- */

/* No edge is needed if one in-order queue holds both, or will: if the earlier is not dispatched yet, each node linked between
 * them waits for its predecessor, and so does the later (link_ordered). */
static bool queue_orders(const eddy_node *source, const eddy_node *node) {
    return source->stream == node->stream && node->stream->is_ordered && !node->stream->device &&
           eddy_instruction_has(&source->instruction, EDDY_KIND_IS_QUEUED) &&
           eddy_instruction_has(&node->instruction, EDDY_KIND_IS_QUEUED);
}

/* Whether the node goes through the queue of its ordered stream. On a device all that have a turn on it do. */
static bool is_queued(const eddy_node *node) {
    return eddy_instruction_has(&node->instruction,
                                node->stream->device ? EDDY_KIND_IS_STREAMED : EDDY_KIND_IS_QUEUED);
}

static void trace_edge(const eddy_node *source, const eddy_node *node) {
    EDDY_TRACE_AT(SCHEDULE, EDDY_TRACED(node->stream->vm, &node->instruction),
                  .origin = source->instruction.view.sequence, .detail = "edge");
}

/* An edge that dispatch of the source satisfies: whether it has. The source must end first all the same. */
static bool is_satisfied_by_dispatch(eddy_vm *vm, const eddy_node *source, eddy_node *node) {
    node->unended++;
    if (!source->was_dispatched)
        return false;
    vm->engine.edges_skipped++;
    trace_edge(source, node);
    return true;
}

static void edge_made(eddy_vm *vm, const eddy_node *source, eddy_node *node) {
    node->waiting_count++;
    vm->engine.edges_made++;
    trace_edge(source, node);
    if (source->is_behind_user)
        node->is_behind_user = true;
}

/* Whether a device keeps the order of two of its instructions that use the storage. Not of one of the host: the host's side of a copy from there reads it when the copy
 * is launched, whatever the device has done by then. */
static bool device_orders(const eddy_node *source, const eddy_node *node,
                          const eddy_storage *storage) {
    return EDDY_UNLIKELY(eddy_device_orders(source, node)) && storage->shared.device != 0;
}

/* A launch looks at the words of so many of those that write what it reads; it begins after the end of further ones. */
static bool has_room_for_source(const eddy_use *use) {
    eddy_mention mention = use->node->instruction.mentions[use - use->node->uses];
    return !eddy_mention_is_input(mention) || use->node->source_count++ < EDDY_BACKEND_SOURCES;
}

static void wait_for_writer(eddy_vm *vm, eddy_use *use, const eddy_storage *storage) {
    eddy_node *source = storage->engine.last_writer;
    if (source == use->node)
        return;
    if (queue_orders(source, use->node)) {
        vm->engine.edges_skipped++;
        return;
    }
    use->source = source;
    use->source_next = NULL;
    *(source->waiting_uses ? &source->last_waiting_use->source_next : &source->waiting_uses) = use;
    source->last_waiting_use = use;
    if (device_orders(source, use->node, storage) && has_room_for_source(use)) {
        use->is_kept = true;
        use->has_source_gone = is_satisfied_by_dispatch(vm, source, use->node);
        if (use->has_source_gone)
            return;
    }
    edge_made(vm, source, use->node);
}

static void wait_for_node(eddy_vm *vm, eddy_node *node, eddy_order order, eddy_node *source,
                          bool is_dispatch) {
    eddy_order_edge *edge = &node->orders[order];
    edge->node = node;
    edge->source = source;
    edge->is_dispatch = is_dispatch;
    edge->is_kept = !is_dispatch && eddy_device_orders(source, node);
    edge->source_next = source->waiting_orders;
    source->waiting_orders = edge;
    edge->has_source_gone = edge->is_kept && is_satisfied_by_dispatch(vm, source, node);
    if (!edge->has_source_gone)
        edge_made(vm, source, node);
}

static void reader_unlink(eddy_use *use) {
    if (!use->reader_link)
        return;
    *use->reader_link = use->reader_next;
    if (use->reader_next)
        use->reader_next->reader_link = use->reader_link;
    use->reader_link = NULL;
    use->reader_next = NULL;
}

static void link_write(eddy_vm *vm, eddy_use *use, eddy_storage *storage) {
    if (storage->engine.last_writer)
        wait_for_writer(vm, use, storage);
    /* Every reader since the last write: a write takes O(readers), which is O(1) for each read. */
    for (eddy_use *reader = storage->engine.readers; reader; reader = reader->reader_next) {
        if (queue_orders(reader->node, use->node)) {
            vm->engine.edges_skipped++;
            continue;
        }
        reader->next_writer = use->node;
        reader->lets_go = device_orders(reader->node, use->node, storage);
        reader->has_let_go =
            reader->lets_go && is_satisfied_by_dispatch(vm, reader->node, use->node);
        if (!reader->has_let_go)
            edge_made(vm, reader->node, use->node);
    }
    /* The readers stay reachable from here, for the search back from a waiter. */
    use->reader_next = storage->engine.readers;
    if (use->reader_next)
        use->reader_next->reader_link = &use->reader_next;
    storage->engine.readers = NULL;
    storage->engine.last_writer = use->node;
}

static void link_read(eddy_vm *vm, eddy_use *use, eddy_storage *storage) {
    if (storage->engine.last_writer) {
        wait_for_writer(vm, use, storage);
        if (storage->engine.last_writer == use->node)
            return;
    }
    use->reader_next = storage->engine.readers;
    use->reader_link = &storage->engine.readers;
    if (use->reader_next)
        use->reader_next->reader_link = &use->reader_next;
    storage->engine.readers = use;
}

static void link_uses(eddy_vm *vm, eddy_node *node, bool writes) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_mention mention = node->instruction.mentions[i];
        if (eddy_mention_writes(mention) != writes)
            continue;
        eddy_use *use = &node->uses[i];
        memset(use, 0, sizeof(*use));
        use->node = node;
        use->storage = eddy_mention_number(mention);
        use->is_write = writes;
        eddy_storage *storage = eddy_vm_storage(vm, use->storage);
        storage->engine.user_count++;
        if (writes)
            link_write(vm, use, storage);
        else
            link_read(vm, use, storage);
    }
}

/* A further launch of a call comes behind what was dispatched meanwhile. An event passes after it all the same; `gate` is the last such call. */
static void link_after_repeated(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    bool is_repeated = eddy_device_is_repeated(node);
    if (stream->gate &&
        (is_repeated || eddy_instruction_has(&node->instruction, EDDY_KIND_ENDS_STREAM)))
        wait_for_node(vm, node, EDDY_ORDER_GATE, stream->gate, false);
    if (is_repeated)
        stream->gate = node;
}

static void link_ordered(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    bool goes_through_queue = is_queued(node);
    /* After the last one that is not in the queue yet. Instructions other than calls do not go through the queue: they wait until all
     * before them have retired, and later ones wait for them. */
    if (stream->undispatched)
        wait_for_node(vm, node, EDDY_ORDER_STREAM, stream->undispatched,
                      goes_through_queue && is_queued(stream->undispatched));
    stream->undispatched = node;
    node->is_marker = !goes_through_queue;
    if (stream->device)
        link_after_repeated(vm, node);
}

static void link_unordered(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    if (stream->gate)
        wait_for_node(vm, node, EDDY_ORDER_GATE, stream->gate, false);
    if (eddy_instruction_has(&node->instruction, EDDY_KIND_GATES_STREAM))
        stream->gate = node;
    node->is_marker = eddy_instruction_has(&node->instruction, EDDY_KIND_ENDS_STREAM);
}

static void link_stream(eddy_vm *vm, eddy_node *node) {
    const eddy_instruction *instruction = &node->instruction;
    if (eddy_instruction_has(instruction, EDDY_KIND_ENDS_ALL))
        node->is_marker = true;
    else if (eddy_instruction_has(instruction, EDDY_KIND_IS_STREAMED))
        node->stream->is_ordered ? link_ordered(vm, node) : link_unordered(vm, node);
    eddy_vm_event *event = eddy_instruction_kind_event(instruction);
    if (!event)
        return;
    if (eddy_instruction_has(instruction, EDDY_KIND_MAKES_EVENT))
        event->node = node;
    else if (event->node)
        wait_for_node(vm, node, EDDY_ORDER_EVENT, event->node, false);
}

/* User code decides when it ends. */
static bool is_users(const eddy_node *node) {
    return eddy_instruction_has(&node->instruction, EDDY_KIND_IS_USERS);
}

static bool is_wait(const eddy_node *node) {
    return eddy_instruction_has(&node->instruction, EDDY_KIND_IS_WAIT);
}

void eddy_graph_link(eddy_vm *vm, eddy_node *node) {
    link_stream(vm, node);
    link_uses(vm, node, true);
    link_uses(vm, node, false);
    live_add(vm, node);
    /* A lend waits for its lender, a callback for the user's code; a marker has no edges, and comes after every lend and callback
     * linked before it. */
    if (is_users(node) || (node->is_marker && vm->engine.linked_users > 0))
        node->is_behind_user = true;
    if (is_users(node) && vm->engine.linked_users++ == 0)
        eddy_store_relaxed(&vm->blocker, (uintptr_t)node->instruction.view.address);
    if (node->is_behind_user)
        eddy_store_relaxed(&vm->behind, ++vm->engine.behind);
    if (is_wait(node))
        vm->engine.waits++;
    vm->engine.linked_bytes += host_bytes(node);
    if (node->is_behind_user || is_wait(node)) {
        /* Counts as finished for the marks: an issuer must not wait for an instruction that waits for the issuer, or for an
         * abandoned wait. Both have bounds of their own. */
        node->is_finished = true;
        eddy_graph_count_finished(vm, &node->instruction, node->new_device, node->new_bytes);
    }
    eddy_graph_make_ready(vm, node);
}

void eddy_graph_make_ready(eddy_vm *vm, eddy_node *node) {
    if (node->state != EDDY_NODE_WAITING || node->waiting_count > 0)
        return;
    if (node->is_marker && !marker_is_first(vm, node))
        return;
    node->state = EDDY_NODE_READY;
    vm->engine.ready_count++;
    if (eddy_device_runs(node)) {
        eddy_node_list_insert(&vm->engine.ready_there, node);
        return;
    }
    node->ready_next = NULL;
    *vm->engine.ready_tail = node;
    vm->engine.ready_tail = &node->ready_next;
}

static void satisfied(eddy_vm *vm, eddy_node *node) {
    EDDY_ASSERT(node->waiting_count > 0);
    node->waiting_count--;
    eddy_graph_make_ready(vm, node);
}

/* A source is over: what dispatch of it has satisfied is one end less to wait for. */
static void ended(eddy_vm *vm, eddy_node *node, bool has_gone) {
    if (EDDY_UNLIKELY(has_gone))
        eddy_device_source_ended(node);
    else
        satisfied(vm, node);
}

/* On a device: successors there begin after it, and need not wait here. They stay linked until it ends. */
static void let_go(eddy_vm *vm, eddy_node *node) {
    for (eddy_use *use = node->waiting_uses; use; use = use->source_next)
        if (use->is_kept) {
            use->has_source_gone = true;
            satisfied(vm, use->node);
        }
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_use *use = &node->uses[i];
        if (use->next_writer && use->lets_go) {
            use->has_let_go = true;
            satisfied(vm, use->next_writer);
        }
    }
    for (eddy_order_edge *edge = node->waiting_orders; edge; edge = edge->source_next)
        if (edge->is_kept) {
            edge->has_source_gone = true;
            satisfied(vm, edge->node);
        }
}

void eddy_graph_dispatched(eddy_vm *vm, eddy_node *node) {
    node->state = EDDY_NODE_DISPATCHED;
    eddy_vm_stream *stream = node->stream;
    if (!stream->is_ordered || !is_queued(node))
        return;
    if (stream->device)
        let_go(vm, node);
    if (stream->undispatched == node)
        stream->undispatched = NULL;
    /* Prescheduling: successors in the same queue need not wait for the end. */
    eddy_order_edge *kept = NULL;
    for (eddy_order_edge *edge = node->waiting_orders; edge;) {
        eddy_order_edge *next = edge->source_next;
        if (edge->is_dispatch) {
            edge->source = NULL;
            satisfied(vm, edge->node);
        } else {
            edge->source_next = kept;
            kept = edge;
        }
        edge = next;
    }
    node->waiting_orders = kept;
}

/* ---- retirement ---- */

void eddy_graph_release(eddy_vm *vm, eddy_storage_number number) {
    eddy_storage *storage = eddy_vm_storage(vm, number);
    EDDY_ASSERT(!storage->engine.is_released);
    if (storage->engine.user_count > 0) {
        storage->engine.is_released = true;
        if (EDDY_UNLIKELY(storage->shared.device != 0))
            eddy_early_released(vm, number);
        return;
    }
    eddy_vm_storage_free(vm, storage, &vm->engine.cache, &vm->engine.arguments);
    storage->engine.next_unreturned = vm->engine.unreturned;
    if (!vm->engine.unreturned)
        vm->engine.unreturned_last = number;
    vm->engine.unreturned = number;
    eddy_graph_return_numbers(vm);
}

void eddy_graph_return_numbers(eddy_vm *vm) {
    while (vm->engine.unreturned) {
        uint64_t taken = eddy_load_acquire(&vm->numbers_taken);
        if (vm->engine.numbers_written - taken == EDDY_NUMBER_RING)
            return;
        eddy_storage_number number = vm->engine.unreturned;
        vm->engine.unreturned = eddy_vm_storage(vm, number)->engine.next_unreturned;
        vm->numbers[vm->engine.numbers_written++ % EDDY_NUMBER_RING] = number;
        /* A cache line at a time; the rest goes with the next publication. */
        if (vm->engine.numbers_written % 16 == 0)
            eddy_store_release(&vm->numbers_returned, vm->engine.numbers_written);
    }
}

void eddy_graph_return_beyond(eddy_vm *vm) {
    if (EDDY_LIKELY(!vm->engine.unreturned))
        return;
    /* Before the numbers that were not taken yet. */
    eddy_storage *last = eddy_vm_storage(vm, vm->engine.unreturned_last);
    last->engine.next_unreturned =
        eddy_exchange_acq_rel(&vm->numbers_beyond, (eddy_storage_number)0);
    eddy_store_release(&vm->numbers_beyond, vm->engine.unreturned);
    vm->engine.unreturned = 0;
}

static void drop_use(eddy_vm *vm, eddy_use *use) {
    eddy_storage *storage = eddy_vm_storage(vm, use->storage);
    if (use->is_write) {
        if (storage->engine.last_writer == use->node)
            storage->engine.last_writer = NULL;
        /* Readers that one queue orders before this write may not have completed yet. */
        while (use->reader_next) {
            eddy_use *reader = use->reader_next;
            use->reader_next = reader->reader_next;
            reader->reader_link = NULL;
            reader->reader_next = NULL;
        }
    } else {
        reader_unlink(use);
        if (use->next_writer)
            ended(vm, use->next_writer, use->has_let_go);
    }
    /* Hands the storage back to the issuers (D1): after all writes to the shared line. */
    eddy_store_release(&storage->shared.retired, eddy_load_relaxed(&storage->shared.retired) + 1);
    storage->engine.user_count--;
    if (storage->engine.user_count == 0 && storage->engine.is_released) {
        storage->engine.is_released = false;
        if (EDDY_UNLIKELY(storage->engine.early_queue != NULL))
            eddy_early_ended(vm, storage);
        eddy_graph_release(vm, use->storage);
    }
}

static void marker_moved_up(eddy_vm *vm, eddy_vm_stream *stream) {
    if (stream->live_head && stream->live_head->is_marker)
        eddy_graph_make_ready(vm, stream->live_head);
    if (vm->engine.live_head && vm->engine.live_head->is_marker)
        eddy_graph_make_ready(vm, vm->engine.live_head);
}

static void retire(eddy_vm *vm, eddy_node *node) {
    eddy_vm_stream *stream = node->stream;
    node->state = EDDY_NODE_DONE;
    for (eddy_use *use = node->waiting_uses; use;) {
        eddy_use *next = use->source_next;
        use->source = NULL;
        ended(vm, use->node, use->has_source_gone);
        use = next;
    }
    for (eddy_order_edge *edge = node->waiting_orders; edge;) {
        eddy_order_edge *next = edge->source_next;
        edge->source = NULL;
        ended(vm, edge->node, edge->has_source_gone);
        edge = next;
    }
    if (stream->undispatched == node)
        stream->undispatched = NULL;
    if (stream->gate == node)
        stream->gate = NULL;
    live_remove(vm, node);
    vm->engine.linked_users -= is_users(node);
    if (node->is_behind_user)
        eddy_store_relaxed(&vm->behind, --vm->engine.behind);
    if (is_wait(node))
        vm->engine.waits--;
    vm->engine.linked_bytes -= host_bytes(node);
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++)
        drop_use(vm, &node->uses[i]);
    marker_moved_up(vm, stream);
    eddy_graph_count_retired(vm, &node->instruction, node->new_device, node->new_bytes,
                             !node->is_finished);
    node_recycle(vm, node);
}

__attribute__((noinline)) static void retire_heard(eddy_vm *vm, eddy_node *node) {
    eddy_trace_span span = EDDY_TRACE_BEGIN(RELEASE, EDDY_TRACED(vm, &node->instruction));
    const char *name = eddy_instruction_name(&node->instruction);
    uint64_t sequence = node->instruction.view.sequence;
    retire(vm, node);
    EDDY_TRACE_END(span, .op = name, .sequence = sequence);
}

void eddy_graph_retire(eddy_vm *vm, eddy_node *node) {
    if (eddy_trace_hears(EDDY_TRACE_RELEASE))
        retire_heard(vm, node);
    else
        retire(vm, node);
}

void eddy_graph_count_retired(eddy_vm *vm, const eddy_instruction *instruction, uint8_t new_device,
                              int64_t new_bytes, bool is_counted) {
    eddy_vm_stream *stream = vm->streams[instruction->stream];
    if (stream->is_ordered || eddy_instruction_has(instruction, EDDY_KIND_GATES_STREAM))
        eddy_store_release(&stream->blocking_retired,
                           eddy_load_relaxed(&stream->blocking_retired) + 1);
    eddy_store_release(&stream->retired, eddy_load_relaxed(&stream->retired) + 1);
    vm->engine.retired++;
    eddy_instruction_end(instruction);
    if (is_counted)
        eddy_graph_count_finished(vm, instruction, new_device, new_bytes);
    vm->engine.unpublished++;
}

void eddy_graph_count_finished(eddy_vm *vm, const eddy_instruction *instruction, uint8_t new_device,
                               int64_t new_bytes) {
    vm->engine.finished++;
    vm->engine.finished_bytes[new_device] += new_bytes;
    vm->engine.finished_ns += instruction->cost_ns;
    vm->engine.finished_dear_ns +=
        eddy_marks_dear_ns(instruction->cost_ns, (eddy_vm_place)instruction->place);
}

bool eddy_graph_is_free(eddy_vm *vm, const eddy_instruction *instruction) {
    const eddy_vm_stream *stream = vm->streams[instruction->stream];
    if (eddy_instruction_has(instruction, EDDY_KIND_IS_STREAMED) &&
        (stream->is_ordered ? stream->live_head != NULL : stream->gate != NULL))
        return false;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_mention mention = instruction->mentions[i];
        const eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(mention));
        if (storage->engine.last_writer ||
            (eddy_mention_writes(mention) && storage->engine.readers))
            return false;
    }
    return true;
}

/* ---- searching back from a waiter ---- */

/* How many nodes a search visits for work to help with. Beyond, only a search that looks for a lend goes on, among nodes behind one. */
#define SEARCH_LIMIT 256

typedef struct graph_search {
    eddy_vm *vm;
    eddy_waiter *waiter;
    eddy_node *stack; /* through search_next */
    uint64_t visited; /* or on the stack */
    bool looks_for_lends, meets_own_lend;
} graph_search;

static void visit(graph_search *to, eddy_node *node) {
    if (!node || node->search == to->vm->engine.search)
        return;
    if (to->visited >= SEARCH_LIMIT && !(to->looks_for_lends && node->is_behind_user))
        return;
    to->visited++;
    node->search = to->vm->engine.search;
    node->search_next = to->stack;
    to->stack = node;
}

static bool goes_on(const graph_search *to) {
    return to->looks_for_lends || to->visited < SEARCH_LIMIT;
}

static void visit_sources(graph_search *to, eddy_node *node) {
    if (node->is_marker) {
        bool ends_all = eddy_instruction_has(&node->instruction, EDDY_KIND_ENDS_ALL);
        for (eddy_node *n = node; n && goes_on(to);
             n = ends_all ? n->live_previous : n->stream_previous)
            visit(to, n);
    }
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        eddy_use *use = &node->uses[i];
        visit(to, use->source);
        if (use->is_write)
            for (eddy_use *reader = use->reader_next; reader && goes_on(to);
                 reader = reader->reader_next)
                visit(to, reader->node);
    }
    for (int i = 0; i < EDDY_ORDER_COUNT; i++)
        visit(to, node->orders[i].source);
}

/* Marks the nodes that the waiter's node waits for as wanted by it. True if a lend of the waiter's own thread is among them. */
bool eddy_graph_trace(eddy_vm *vm, eddy_node *node, eddy_waiter *waiter) {
    vm->engine.search++;
    graph_search from = {.vm = vm,
                         .waiter = waiter,
                         .looks_for_lends =
                             node->is_behind_user && *eddy_vm_lends_of(vm, waiter->thread) > 0};
    bool has_queued = false;
    visit(&from, node);
    while (from.stack) {
        eddy_node *top = from.stack;
        from.stack = top->search_next;
        if (top->instruction.kind == EDDY_KIND_LEND && top->state == EDDY_NODE_DISPATCHED &&
            top->lend_thread == waiter->thread && !eddy_load_acquire(&top->has_ended_lend))
            from.meets_own_lend = true;
        if (top->instruction.kind == EDDY_KIND_CALL) {
            eddy_store_relaxed(&top->wanted_by, waiter);
            eddy_store_relaxed(&top->wanted_number, waiter->number);
            has_queued |= top->state == EDDY_NODE_DISPATCHED;
        }
        visit_sources(&from, top);
    }
    vm->engine.visited += from.visited;
    if (has_queued && eddy_team_is_busy())
        eddy_waiter_nudge(waiter);
    return from.meets_own_lend;
}
