/* Instructions that got no memory (PROTOCOL.md section 12). Engine only. */
#include <stdio.h>
#include <vm/engine.h>
#include <vm/execute.h>
#include <vm/graph.h>
#include <vm/machine.h>
#include <vm/starved.h>
#include <vm/submit.h>

/* One-thread mode: time between two checks whether another VM has released memory. */
#define LOOK_AGAIN_NS 1000000

/* ---- memory for a caller that waits ---- */

static void do_nothing(const eddy_vm_run *run) {
    (void)run;
}

static const char *name_room(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "from_data";
}

static int describe_room(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    return snprintf(buffer, size, "from_data of %lld bytes",
                    (long long)*(const int64_t *)instruction->arguments);
}

const eddy_vm_descriptor eddy_starved_room = {
    .run = do_nothing, .name = name_room, .describe = describe_room};

bool eddy_starved_leaves_room(eddy_vm *vm, int64_t bytes, int64_t in_flight_bytes) {
    int64_t wanted =
        in_flight_bytes < vm->marks[0].high_bytes ? in_flight_bytes : vm->marks[0].high_bytes;
    return eddy_load_relaxed(&vm->tensors.live_bytes) + bytes <= eddy_memory_limit() - wanted;
}

/* Other instructions are in flight, and may take as much as the marks allow. */
static bool is_held_back(eddy_vm *vm, const eddy_instruction *instruction) {
    return instruction->view.descriptor == &eddy_starved_room &&
           (vm->engine.running_count > 0 || vm->engine.ready_count > 0) &&
           !eddy_starved_leaves_room(vm, instruction->sizes[0],
                                     vm->engine.linked_bytes - instruction->sizes[0]);
}

/* ---- the list ---- */

static void add(eddy_vm *vm, eddy_node *node) {
    node->is_starved = true;
    eddy_node_list_insert(&vm->engine.starved, node);
}

void eddy_starved_add(eddy_vm *vm, eddy_node *node) {
    if (node->new_bytes <= eddy_memory_limit()) {
        eddy_store_relaxed(&vm->counted.starved, eddy_load_relaxed(&vm->counted.starved) + 1);
        add(vm, node);
        return;
    }
    /* Even all memory that can be freed is not enough. */
    node->is_starved = false;
    eddy_vm_execute_failed(vm, &node->instruction, EDDY_OUT_OF_MEMORY);
    eddy_graph_retire(vm, node);
}

/* ---- trying again ---- */

/* Flushes the roles' caches to the pool, and puts the issuers' pending releases into the ring. */
static void collect_kept(eddy_vm *vm) {
    eddy_blocks_cache_flush(&vm->engine.cache);
    eddy_vm_lock(vm);
    eddy_vm_flush_releases(vm);
    eddy_blocks_cache_flush(&vm->issuer_cache);
    eddy_vm_unlock(vm);
}

/* False: there was no memory again. */
static bool retry(eddy_vm *vm, eddy_node *node) {
    node->is_starved = false;
    if (is_held_back(vm, &node->instruction) ||
        eddy_engine_execute(vm, &node->instruction) != EDDY_EXECUTED)
        return false;
    eddy_graph_retire(vm, node);
    /* The memory that it released may be in the engine's own cache. */
    eddy_blocks_cache_flush(&vm->engine.cache);
    return true;
}

/* Its kernel runs on another thread, which finds out whether there is memory. */
static bool runs_elsewhere(const eddy_vm *vm, const eddy_node *node) {
    return node->stream->is_foreign ||
           (node->instruction.place == EDDY_PLACE_WORKER && !vm->is_one_thread);
}

/* More memory may be freed: in order, so that a large one is not overtaken for ever. */
static void retry_in_order(eddy_vm *vm) {
    eddy_node *node;
    while ((node = eddy_node_list_pop(&vm->engine.starved)))
        if (runs_elsewhere(vm, node) || !retry(vm, node)) {
            add(vm, node);
            return;
        }
}

/* Any that fits; true if one has run, or is tried for the last time. */
static bool retry_all(eddy_vm *vm) {
    bool has_run = false;
    eddy_node *node, *left = NULL;
    while ((node = eddy_node_list_pop(&vm->engine.starved))) {
        if (runs_elsewhere(vm, node)) {
            node->is_starved = false;
            node->is_last_try = true;
            eddy_engine_dispatch(vm, node);
            has_run = true;
        } else if (retry(vm, node)) {
            has_run = true;
        } else {
            node->ready_next = left;
            left = node;
        }
    }
    /* The newest first, since each goes to the front. */
    while (left) {
        node = left;
        left = node->ready_next;
        add(vm, node);
    }
    return has_run;
}

/* They fail, the oldest first, until the memory that one and its successors released is enough for the next. */
static void fail_in_order(eddy_vm *vm) {
    while (vm->engine.starved.first && vm->engine.running_count == 0) {
        eddy_node *node = eddy_node_list_pop(&vm->engine.starved);
        if (retry(vm, node))
            return;
        eddy_vm_execute_failed(vm, &node->instruction, EDDY_OUT_OF_MEMORY);
        eddy_graph_retire(vm, node);
        eddy_engine_run_ready(vm);
        eddy_blocks_cache_flush(&vm->engine.cache);
    }
}

/* ---- other VMs of the process ---- */

static struct {
    eddy_lock lock;
    eddy_vm *first;               /* lock: lock */
    _Atomic int32_t hungry_count; /* atomic: seq_cst */
} sharing = {.lock = EDDY_LOCK_OF(EDDY_RANK_LEAF)};

/* The child's VMs are its own. */
static void forget_others(void) {
    eddy_lock_init(&sharing.lock, EDDY_RANK_LEAF);
    sharing.first = NULL;
    eddy_store_relaxed(&sharing.hungry_count, 0);
}

static void set_hungry(eddy_vm *vm, bool is_hungry) {
    if (eddy_exchange_seq_cst(&vm->is_hungry, is_hungry) != is_hungry)
        eddy_add_seq_cst(&sharing.hungry_count, is_hungry ? 1 : -1);
}

void eddy_starved_share(eddy_vm *vm) {
    static bool watches_forks; /* lock: sharing.lock */
    eddy_lock_acquire(&sharing.lock);
    if (!watches_forks)
        eddy_process_at_fork_child(forget_others);
    watches_forks = true;
    vm->next_sharing = sharing.first;
    sharing.first = vm;
    eddy_lock_release(&sharing.lock);
}

void eddy_starved_part(eddy_vm *vm) {
    set_hungry(vm, false);
    eddy_lock_acquire(&sharing.lock);
    for (eddy_vm **place = &sharing.first; *place; place = &(*place)->next_sharing)
        if (*place == vm) {
            *place = vm->next_sharing;
            break;
        }
    eddy_lock_release(&sharing.lock);
    /* VMs that wait for its memory stop waiting. */
    eddy_starved_tell_others(vm);
}

/* Whether a call of the other VM runs, which may release memory. A VM in one-thread mode does not tell others when it has: only a caller
 * that looks again may count on it, unless that VM itself looks again. */
static bool runs(eddy_vm *other, bool looks_again) {
    if (eddy_load_seq_cst(&other->has_running))
        return true;
    if (!looks_again || !other->is_one_thread || eddy_load_seq_cst(&other->is_hungry))
        return false;
    if (!eddy_lock_try(&other->one_thread))
        return true;
    eddy_lock_release(&other->one_thread);
    return false;
}

static bool others_run(const eddy_vm *vm, bool looks_again) {
    bool is_any = false;
    eddy_lock_acquire(&sharing.lock);
    for (eddy_vm *other = sharing.first; other && !is_any; other = other->next_sharing)
        is_any = other != vm && runs(other, looks_again);
    eddy_lock_release(&sharing.lock);
    return is_any;
}

/* In one-thread mode no thread would take the role when told: the caller itself looks again while another VM runs a call. Of two VMs that
 * wait for each other one has become hungry first, and the other fails. The running call may wait for something of the caller's, so the
 * wait has a limit. */
static bool look_again(eddy_vm *vm) {
    eddy_sleep_word never = 0;
    int64_t deadline_ns = eddy_clock_deadline(EDDY_PATIENCE_NS);
    bool has_run = false;
    set_hungry(vm, true);
    while (!has_run && eddy_clock_ns() < deadline_ns && others_run(vm, true)) {
        eddy_sleep_wait(&never, 0, eddy_clock_deadline(LOOK_AGAIN_NS));
        collect_kept(vm);
        has_run = retry_all(vm);
    }
    set_hungry(vm, false);
    return has_run || retry_all(vm);
}

/* First sets is_hungry, then reads has_running: the other VM first clears has_running, then reads is_hungry. */
static bool waits_for_others(eddy_vm *vm) {
    if (vm->is_one_thread)
        return look_again(vm);
    set_hungry(vm, true);
    if (others_run(vm, false))
        return true;
    set_hungry(vm, false);
    return false;
}

void eddy_starved_tell_others(eddy_vm *vm) {
    if (EDDY_LIKELY(eddy_load_seq_cst(&sharing.hungry_count) == 0))
        return;
    eddy_lock_acquire(&sharing.lock);
    for (eddy_vm *other = sharing.first; other; other = other->next_sharing)
        if (other != vm && eddy_load_seq_cst(&other->is_hungry)) {
            eddy_store_seq_cst(&other->was_told, true);
            eddy_vm_poke(other);
        }
    eddy_lock_release(&sharing.lock);
}

bool eddy_starved_is_due(eddy_vm *vm, bool has_moved) {
    bool was_told = eddy_exchange_seq_cst(&vm->was_told, false);
    return !eddy_load_relaxed(&vm->is_hungry) || was_told || has_moved;
}

void eddy_starved_relieve(eddy_vm *vm, bool is_last) {
    collect_kept(vm);
    if (!is_last || eddy_ring_peek(&vm->ring))
        retry_in_order(vm);
    else if (retry_all(vm))
        set_hungry(vm, false);
    else if (!waits_for_others(vm))
        fail_in_order(vm);
    if (!vm->engine.starved.first)
        set_hungry(vm, false);
}
