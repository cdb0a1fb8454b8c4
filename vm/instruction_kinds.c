#include <base/status.h>
#include <string.h>
#include <vm/device.h>
#include <vm/engine.h>
#include <vm/event.h>
#include <vm/graph.h>
#include <vm/instruction_kinds.h>
#include <vm/service.h>
#include <vm/share.h>

static eddy_vm_event *wait_event(const eddy_instruction *instruction) {
    return ((const eddy_wait_arguments *)instruction->view.arguments)->event;
}

static eddy_vm_event *stream_event(const eddy_instruction *instruction) {
    return ((const eddy_event_arguments *)instruction->view.arguments)->event;
}

static eddy_storage *first_storage(eddy_vm *vm, const eddy_instruction *instruction) {
    return eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[0]));
}

/* Whether the host may have the elements, and where it finds them. */
static eddy_poison poison_for_host(const eddy_storage *storage, const eddy_node *node) {
    return node && node->staging_poison ? node->staging_poison : storage->shared.poison;
}

static void *data_for_host(const eddy_storage *storage, const eddy_node *node) {
    return node->staging ? node->staging : storage->shared.data;
}

/* ---- waits ---- */

static bool run_wait(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    const eddy_wait_arguments *wait = instruction->view.arguments;
    eddy_waiter *waiter = wait->waiter;
    eddy_vm_event_release(wait->event);
    if (!waiter)
        return true;
    waiter->status = EDDY_OK;
    if (instruction->view.operand_count > 0) {
        const eddy_storage *storage = first_storage(vm, instruction);
        waiter->poison = poison_for_host(storage, node);
        waiter->bytes = storage->shared.bytes;
        if (waiter->poison == 0 && wait->bytes > 0)
            memcpy(waiter->value,
                   node && node->staging ? (const char *)node->staging
                                         : (const char *)storage->shared.data + wait->offset,
                   wait->bytes);
        if (waiter->poison == 0 && wait->wants_shape)
            waiter->shape = *storage->shared.late_shape;
    }
    eddy_waiter_finish(&vm->waiters, waiter);
    return true;
}

static bool run_barrier(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)node;
    eddy_waiter *waiter = ((const eddy_waiter_arguments *)instruction->view.arguments)->waiter;
    if (!waiter)
        return true;
    /* What the asker has released without the lock counts as issued before, and its deleter as due (F3). */
    eddy_engine_take_releases(vm);
    /* The asker may read them before the engine's next publication. */
    eddy_engine_publish_counters(vm);
    waiter->status = EDDY_OK;
    eddy_waiter_finish(&vm->waiters, waiter);
    return true;
}

/* ---- lends ---- */

static bool run_lend(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    const eddy_lend_arguments *arguments = instruction->view.arguments;
    eddy_waiter *waiter = arguments->waiter;
    if (!waiter)
        return true;
    /* A copy to the host would have failed. */
    if (arguments->queue && eddy_load_acquire(&arguments->queue->device->backend->is_lost)) {
        waiter->status = EDDY_DEVICE_LOST;
        waiter->device = arguments->queue->device->name;
        eddy_waiter_finish(&vm->waiters, waiter);
        return true;
    }
    const eddy_storage *storage = first_storage(vm, instruction);
    node->state = EDDY_NODE_DISPATCHED;
    node->lend_thread = waiter->thread;
    waiter->status = EDDY_OK;
    waiter->poison = poison_for_host(storage, node);
    waiter->data = data_for_host(storage, node);
    waiter->bytes = storage->shared.bytes;
    waiter->lend = node;
    if (waiter->poison != 0) {
        eddy_waiter_finish(&vm->waiters, waiter);
        return true;
    }
    uint32_t *lends = eddy_vm_lends_of(vm, node->lend_thread);
    (*lends)++;
    if (eddy_waiter_finish(&vm->waiters, waiter))
        return false;
    (*lends)--;
    return true;
}

static void lend_ended(eddy_vm *vm, eddy_node *node) {
    (*eddy_vm_lends_of(vm, node->lend_thread))--;
    if (!node->has_failed_lend)
        return;
    eddy_error error;
    eddy_error_fill(&error, EDDY_KERNEL_FAILED,
                    (eddy_origin){"map", node->instruction.view.address},
                    node->instruction.view.sequence, "map: the lender said that its write failed");
    eddy_errors_add(&vm->errors, &error);
    first_storage(vm, &node->instruction)->shared.poison =
        eddy_poison_make(node->instruction.view.sequence, EDDY_POISON_TORN);
}

/* ---- callbacks ---- */

/* On the service thread. */
static void run_callback(eddy_service_item *item) {
    eddy_node *node = (eddy_node *)(void *)((char *)item - offsetof(eddy_node, service));
    eddy_vm *vm = node->vm;
    const eddy_access_arguments *access = node->instruction.view.arguments;
    const eddy_storage *storage = first_storage(vm, &node->instruction);
    eddy_error error;
    eddy_poison poison = poison_for_host(storage, node);
    if (poison != 0)
        eddy_errors_find(&vm->errors, eddy_poison_sequence(poison), &error);
    access->callback(access->context, poison ? NULL : data_for_host(storage, node),
                     poison ? 0 : storage->shared.bytes, poison ? &error : NULL);
    eddy_engine_complete(vm, node);
    eddy_engine_drive(vm);
}

static bool run_access(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)instruction;
    node->state = EDDY_NODE_DISPATCHED;
    node->service.run = run_callback;
    eddy_service_push(vm, &node->service);
    return false;
}

/* ---- the rest ---- */

static bool run_recover(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)node;
    for (uint32_t i = 0; i < instruction->view.operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        if (eddy_poison_state_of(storage->shared.poison) == EDDY_POISON_SKIPPED &&
            eddy_errors_is_seen(&vm->errors, eddy_poison_sequence(storage->shared.poison)))
            eddy_vm_heal(vm, storage);
    }
    return true;
}

static bool run_event(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)vm, (void)node;
    eddy_vm_event_pass(stream_event(instruction));
    return true;
}

static bool run_gate(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)vm, (void)node;
    eddy_vm_event_release(stream_event(instruction));
    return true;
}

static bool run_touch(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    (void)vm, (void)instruction, (void)node;
    return true;
}

/* ---- all of them ---- */

const eddy_instruction_kind_row eddy_instruction_kinds[] = {
    [EDDY_KIND_PAD] = {.name = "pad"},
    [EDDY_KIND_RELEASES] = {.name = "release"},
    [EDDY_KIND_CALL] = {.name = "call", .rules = EDDY_KIND_IS_STREAMED | EDDY_KIND_IS_QUEUED},
    [EDDY_KIND_WAIT] = {.name = "wait",
                        .event = wait_event,
                        .run = run_wait,
                        .rules = EDDY_KIND_HAS_WAITER | EDDY_KIND_IS_WAIT | EDDY_KIND_USES_DATA},
    [EDDY_KIND_BARRIER] = {.name = "sync",
                           .run = run_barrier,
                           .rules = EDDY_KIND_ENDS_ALL | EDDY_KIND_HAS_WAITER | EDDY_KIND_IS_WAIT},
    [EDDY_KIND_LEND] = {.name = "map",
                        .run = run_lend,
                        .completed = lend_ended,
                        .rules = EDDY_KIND_IS_USERS | EDDY_KIND_HAS_WAITER | EDDY_KIND_USES_DATA},
    [EDDY_KIND_ACCESS] = {.name = "access",
                          .run = run_access,
                          .rules = EDDY_KIND_IS_USERS | EDDY_KIND_USES_DATA},
    [EDDY_KIND_RECOVER] = {.name = "recover", .run = run_recover},
    [EDDY_KIND_EVENT] = {.name = "event",
                         .event = stream_event,
                         .run = run_event,
                         .rules =
                             EDDY_KIND_IS_STREAMED | EDDY_KIND_ENDS_STREAM | EDDY_KIND_MAKES_EVENT},
    [EDDY_KIND_GATE] = {.name = "stream_wait",
                        .event = stream_event,
                        .run = run_gate,
                        .rules = EDDY_KIND_IS_STREAMED | EDDY_KIND_GATES_STREAM},
    [EDDY_KIND_TOUCH] = {.name = "touch", .run = run_touch, .rules = EDDY_KIND_IS_STREAMED},
    [EDDY_KIND_SHARE] = {.name = "share",
                         .run = eddy_share_end,
                         .rules = EDDY_KIND_IS_STREAMED | EDDY_KIND_HAS_WAITER},
};

_Static_assert(sizeof(eddy_instruction_kinds) / sizeof(*eddy_instruction_kinds) == EDDY_KIND_COUNT,
               "each kind has a row");
_Static_assert(EDDY_KIND_COUNT <= 16, "a record has four bits for the kind");

eddy_vm_event *eddy_instruction_kind_event(const eddy_instruction *instruction) {
    const eddy_instruction_kind_row *kind = &eddy_instruction_kinds[instruction->kind];
    return kind->event ? kind->event(instruction) : NULL;
}

/* Whether nothing is in the way of an instruction that was taken from the ring just now. */
static bool is_in_order(eddy_vm *vm, const eddy_instruction *instruction) {
    const eddy_vm_event *event = eddy_instruction_kind_event(instruction);
    if (event && !eddy_instruction_has(instruction, EDDY_KIND_MAKES_EVENT) &&
        !eddy_vm_event_is_passed(event))
        return false;
    if (eddy_instruction_has(instruction, EDDY_KIND_ENDS_ALL))
        return !vm->engine.live_head;
    if (eddy_instruction_has(instruction, EDDY_KIND_ENDS_STREAM))
        return !vm->streams[instruction->stream]->live_head;
    return eddy_graph_is_free(vm, instruction);
}

bool eddy_instruction_kind_run_direct(eddy_vm *vm, const eddy_instruction *instruction) {
    if (eddy_instruction_has(instruction, EDDY_KIND_IS_USERS) || !is_in_order(vm, instruction) ||
        EDDY_UNLIKELY(eddy_device_fetches(vm, instruction)))
        return false;
    return eddy_instruction_kinds[instruction->kind].run(vm, instruction, NULL);
}

bool eddy_instruction_kind_run(eddy_vm *vm, eddy_node *node) {
    if (EDDY_UNLIKELY(node->phase == EDDY_STAGING_NONE &&
                      eddy_device_fetches(vm, &node->instruction))) {
        eddy_device_fetch(vm, node);
        return false;
    }
    return eddy_instruction_kinds[node->instruction.kind].run(vm, &node->instruction, node);
}

void eddy_instruction_kind_blocked(eddy_vm *vm, eddy_node *node) {
    if (!eddy_instruction_has(&node->instruction, EDDY_KIND_HAS_WAITER))
        return;
    eddy_waiter *waiter = (eddy_waiter *)(uintptr_t)node->payload[0];
    EDDY_ASSERT(node->instruction.view.arguments == node->payload);
    if (!eddy_graph_trace(vm, node, waiter))
        return;
    node->payload[0] = 0;
    waiter->status = EDDY_WOULD_DEADLOCK;
    eddy_waiter_finish(&vm->waiters, waiter);
}

void eddy_instruction_kind_completed(eddy_vm *vm, eddy_node *node) {
    const eddy_instruction_kind_row *kind = &eddy_instruction_kinds[node->instruction.kind];
    if (kind->completed)
        kind->completed(vm, node);
}
