/* The live instructions and what each waits for, for who wonders why nothing moves. */
#include <base/log.h>
#include <stdio.h>
#include <vm/machine.h>

#define LINES_MAX 100

static const char *const state_names[] = {"free", "waiting", "ready", "running", "done"};

static void append(char *text, size_t size, size_t *length, uint64_t sequence) {
    if (*length < size)
        *length += (size_t)snprintf(text + *length, size - *length, " #%llu", (unsigned long long)sequence);
}

static void describe_sources(const eddy_node *node, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    if (node->is_marker && node->state == EDDY_NODE_WAITING)
        length = (size_t)snprintf(text, size, " all before it");
    for (uint32_t i = 0; i < node->instruction.operand_count && length < size; i++) {
        const eddy_use *use = &node->uses[i];
        if (use->source)
            append(text, size, &length, use->source->instruction.sequence);
        if (!use->is_write)
            continue;
        for (const eddy_use *reader = use->reader_next; reader && length < size; reader = reader->reader_next)
            append(text, size, &length, reader->node->instruction.sequence);
    }
    for (int i = 0; i < EDDY_ORDER_COUNT; i++)
        if (node->orders[i].source)
            append(text, size, &length, node->orders[i].source->instruction.sequence);
}

void eddy_vm_dump_live(eddy_vm *vm) {
    int count = 0;
    for (eddy_node *node = vm->engine.live_head; node; node = node->live_next) {
        if (++count > LINES_MAX)
            continue;
        char what[160] = "";
        char sources[200];
        eddy_vm_instruction view = eddy_instruction_view(&node->instruction);
        if (node->instruction.descriptor && node->instruction.descriptor->describe)
            node->instruction.descriptor->describe(&view, what, sizeof(what));
        describe_sources(node, sources, sizeof(sources));
        const char *state = node->instruction.kind == EDDY_KIND_LEND && node->state == EDDY_NODE_DISPATCHED
                                ? "lent"
                                : state_names[node->state];
        eddy_log_line("#%llu %s stream %u %s%s%s", (unsigned long long)node->instruction.sequence,
                 what[0] ? what : eddy_instruction_name(&node->instruction), (unsigned)node->instruction.stream, state,
                 sources[0] ? ", waits for" : "", sources);
    }
    eddy_log_line("%d live instructions", count);
}

void eddy_vm_dump(eddy_vm *vm) {
    if (vm->process != eddy_process_generation)
        return;
    eddy_store_release(&vm->wants_dump, true);
    if (vm->is_one_thread)
        eddy_lock_acquire(&vm->one_thread);
    eddy_engine_drive(vm);
    if (vm->is_one_thread)
        eddy_lock_release(&vm->one_thread);
}
