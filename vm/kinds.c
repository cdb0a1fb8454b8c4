#include <base/status.h>
#include <string.h>
#include <vm/event.h>
#include <vm/kinds.h>

eddy_vm_event *eddy_kind_event(const eddy_instruction *instruction) {
    switch (instruction->kind) {
    case EDDY_KIND_WAIT:
        return ((const eddy_wait_arguments *)instruction->arguments)->event;
    case EDDY_KIND_EVENT:
    case EDDY_KIND_GATE:
        return ((const eddy_event_arguments *)instruction->arguments)->event;
    default:
        return NULL;
    }
}

static eddy_storage *first_storage(eddy_vm *vm, const eddy_instruction *instruction) {
    return eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[0]));
}

/* ---- waits ---- */

static void run_wait(eddy_vm *vm, const eddy_instruction *instruction) {
    const eddy_wait_arguments *wait = instruction->arguments;
    eddy_waiter *waiter = wait->waiter;
    eddy_vm_event_release(wait->event);
    if (!waiter)
        return;
    waiter->status = EDDY_OK;
    if (instruction->operand_count > 0) {
        const eddy_storage *storage = first_storage(vm, instruction);
        waiter->poison = storage->shared.poison;
        waiter->bytes = storage->shared.bytes;
        if (waiter->poison == 0 && wait->bytes > 0)
            memcpy(waiter->value, (const char *)storage->shared.data + wait->offset, wait->bytes);
        if (waiter->poison == 0 && wait->wants_shape)
            waiter->shape = *storage->shared.late_shape;
    }
    eddy_waiter_finish(&vm->waiters, waiter);
}

static void run_barrier(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_waiter *waiter = ((const eddy_waiter_arguments *)instruction->arguments)->waiter;
    if (!waiter)
        return;
    /* What the asker has released without the lock counts as issued before, and its deleter as due (F3). */
    eddy_engine_take_releases(vm);
    waiter->status = EDDY_OK;
    eddy_waiter_finish(&vm->waiters, waiter);
}

/* ---- lends ---- */

static bool run_lend(eddy_vm *vm, eddy_node *node) {
    eddy_waiter *waiter = ((const eddy_waiter_arguments *)node->instruction.arguments)->waiter;
    if (!waiter)
        return true;
    const eddy_storage *storage = first_storage(vm, &node->instruction);
    node->state = EDDY_NODE_DISPATCHED;
    node->lend_thread = waiter->thread;
    waiter->status = EDDY_OK;
    waiter->poison = storage->shared.poison;
    waiter->data = storage->shared.data;
    waiter->bytes = storage->shared.bytes;
    waiter->lend = node;
    if (waiter->poison != 0) {
        eddy_waiter_finish(&vm->waiters, waiter);
        return true;
    }
    uint32_t *lends = eddy_lends_of(vm, node->lend_thread);
    (*lends)++;
    if (eddy_waiter_finish(&vm->waiters, waiter))
        return false;
    (*lends)--;
    return true;
}

static void lend_ended(eddy_vm *vm, eddy_node *node) {
    (*eddy_lends_of(vm, node->lend_thread))--;
    if (!node->has_failed_lend)
        return;
    eddy_error error;
    eddy_error_fill(&error, EDDY_KERNEL_FAILED, (eddy_origin){"map", node->instruction.address},
                    node->instruction.sequence, "map: the lender said that its write failed");
    eddy_errors_add(&vm->errors, &error);
    first_storage(vm, &node->instruction)->shared.poison =
        eddy_poison_make(node->instruction.sequence, EDDY_POISON_TORN);
}

/* ---- callbacks ---- */

/* On the service thread. */
static void run_callback(eddy_service_item *item) {
    eddy_node *node = (eddy_node *)(void *)((char *)item - offsetof(eddy_node, service));
    eddy_vm *vm = node->vm;
    const eddy_access_arguments *access = node->instruction.arguments;
    const eddy_storage *storage = first_storage(vm, &node->instruction);
    eddy_error error;
    eddy_poison poison = storage->shared.poison;
    if (poison != 0)
        eddy_errors_find(&vm->errors, eddy_poison_sequence(poison), &error);
    access->callback(access->context, poison ? NULL : storage->shared.data, poison ? 0 : storage->shared.bytes,
                     poison ? &error : NULL);
    eddy_engine_complete(vm, node);
    eddy_engine_drive(vm);
}

static bool run_access(eddy_vm *vm, eddy_node *node) {
    node->state = EDDY_NODE_DISPATCHED;
    node->service.run = run_callback;
    eddy_service_push(vm, &node->service);
    return false;
}

/* ---- the rest ---- */

static void run_recover(eddy_vm *vm, const eddy_instruction *instruction) {
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        eddy_storage *storage = eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[i]));
        if (eddy_poison_state_of(storage->shared.poison) == EDDY_POISON_SKIPPED &&
            eddy_errors_is_seen(&vm->errors, eddy_poison_sequence(storage->shared.poison)))
            storage->shared.poison = 0;
    }
}

bool eddy_kind_run_direct(eddy_vm *vm, const eddy_instruction *instruction) {
    eddy_vm_event *event = eddy_kind_event(instruction);
    switch (instruction->kind) {
    case EDDY_KIND_WAIT:
        if ((event && !eddy_event_is_passed(event)) || !eddy_graph_is_free(vm, instruction))
            return false;
        run_wait(vm, instruction);
        return true;
    case EDDY_KIND_BARRIER:
        if (vm->engine.live_head)
            return false;
        run_barrier(vm, instruction);
        return true;
    case EDDY_KIND_RECOVER:
        if (!eddy_graph_is_free(vm, instruction))
            return false;
        run_recover(vm, instruction);
        return true;
    case EDDY_KIND_EVENT:
        if (vm->streams[instruction->stream]->live_head)
            return false;
        eddy_event_pass(event);
        return true;
    case EDDY_KIND_GATE:
        if (!eddy_event_is_passed(event) || !eddy_graph_is_free(vm, instruction))
            return false;
        eddy_vm_event_release(event);
        return true;
    case EDDY_KIND_TOUCH:
        return eddy_graph_is_free(vm, instruction);
    default:
        return false;
    }
}

bool eddy_kind_run(eddy_vm *vm, eddy_node *node) {
    const eddy_instruction *instruction = &node->instruction;
    switch (instruction->kind) {
    case EDDY_KIND_WAIT:
        run_wait(vm, instruction);
        return true;
    case EDDY_KIND_BARRIER:
        run_barrier(vm, instruction);
        return true;
    case EDDY_KIND_LEND:
        return run_lend(vm, node);
    case EDDY_KIND_ACCESS:
        return run_access(vm, node);
    case EDDY_KIND_RECOVER:
        run_recover(vm, instruction);
        return true;
    case EDDY_KIND_EVENT:
        eddy_event_pass(eddy_kind_event(instruction));
        return true;
    case EDDY_KIND_GATE:
        eddy_vm_event_release(eddy_kind_event(instruction));
        return true;
    default:
        return true;
    }
}

void eddy_kind_blocked(eddy_vm *vm, eddy_node *node) {
    eddy_instruction_kind kind = (eddy_instruction_kind)node->instruction.kind;
    if (kind != EDDY_KIND_WAIT && kind != EDDY_KIND_BARRIER && kind != EDDY_KIND_LEND)
        return;
    /* The waiter is the first argument of all three. */
    eddy_waiter *waiter = (eddy_waiter *)(uintptr_t)node->payload[0];
    EDDY_ASSERT(node->instruction.arguments == node->payload);
    if (!eddy_graph_trace(vm, node, waiter))
        return;
    node->payload[0] = 0;
    waiter->status = EDDY_WOULD_DEADLOCK;
    eddy_waiter_finish(&vm->waiters, waiter);
}

void eddy_kind_completed(eddy_vm *vm, eddy_node *node) {
    if (node->instruction.kind == EDDY_KIND_LEND)
        lend_ended(vm, node);
}
