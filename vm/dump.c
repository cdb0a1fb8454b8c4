/* Lists the live instructions and what each waits for, to find the cause of a hang. */
#include <base/log.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <vm/dump.h>
#include <vm/engine.h>
#include <vm/explain.h>
#include <vm/machine.h>

#define LINES_MAX 100

static const char *const state_names[] = {"free", "waiting", "ready", "running", "arrived", "done"};

static void append(char *text, size_t size, size_t *length, uint64_t sequence) {
    if (*length < size)
        *length += (size_t)snprintf(text + *length, size - *length, " #%llu",
                                    (unsigned long long)sequence);
}

static void describe_sources(const eddy_node *node, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    if (node->is_marker && node->state == EDDY_NODE_WAITING)
        length = (size_t)snprintf(text, size, " all before it");
    for (uint32_t i = 0; i < node->instruction.view.operand_count && length < size; i++) {
        const eddy_use *use = &node->uses[i];
        if (use->source)
            append(text, size, &length, use->source->instruction.view.sequence);
        if (!use->is_write)
            continue;
        for (const eddy_use *reader = use->reader_next; reader && length < size;
             reader = reader->reader_next)
            append(text, size, &length, reader->node->instruction.view.sequence);
    }
    for (int i = 0; i < EDDY_ORDER_COUNT; i++)
        if (node->orders[i].source)
            append(text, size, &length, node->orders[i].source->instruction.view.sequence);
}

static void add_line(eddy_dump *dump, const char *format, ...) {
    size_t room = sizeof(dump->text) - dump->length;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(dump->text + dump->length, room, format, values);
    va_end(values);
    /* A line that does not fit is left out, with all lines after it. */
    if (length >= 0 && (size_t)length < room)
        dump->length += (size_t)length + 1;
}

void eddy_dump_log(eddy_dump *dump) {
    for (size_t at = 0; at < dump->length; at += strlen(dump->text + at) + 1)
        eddy_log_line("%s", dump->text + at);
    eddy_memory_release(dump, sizeof(*dump), EDDY_MEMORY_RUNTIME);
}

/* Why the oldest is there still: others may wait for it. */
static void add_oldest(eddy_dump *dump, const eddy_vm *vm) {
    char text[2000];
    eddy_explanation explanation = {text, sizeof(text), 0};
    if (!vm->engine.live_head)
        return;
    eddy_explain_node(&explanation, vm->engine.live_head);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        add_line(dump, "oldest: %s", line);
    }
}

eddy_dump *eddy_dump_live(eddy_vm *vm) {
    eddy_dump *dump = eddy_memory_acquire(sizeof(*dump), EDDY_MEMORY_RUNTIME);
    if (!dump)
        return NULL;
    dump->length = 0;
    int count = 0;
    for (eddy_node *node = vm->engine.live_head; node; node = node->live_next) {
        if (++count > LINES_MAX)
            continue;
        char what[160] = "";
        char sources[200];
        const eddy_vm_instruction *view = &node->instruction.view;
        if (view->descriptor && view->descriptor->describe)
            view->descriptor->describe(view, what, sizeof(what));
        describe_sources(node, sources, sizeof(sources));
        const char *state =
            node->instruction.kind == EDDY_KIND_LEND && node->state == EDDY_NODE_DISPATCHED
                ? "lent"
                : state_names[node->state];
        add_line(
            dump, "#%llu %s stream %u %s%s%s", (unsigned long long)node->instruction.view.sequence,
            what[0] ? what : eddy_instruction_name(&node->instruction),
            (unsigned)node->instruction.stream, state, sources[0] ? ", waits for" : "", sources);
    }
    add_line(dump, "%d live instructions", count);
    add_oldest(dump, vm);
    return dump;
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
