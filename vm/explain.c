#include <vm/explain.h>

#include <base/call_site.h>
#include <stdarg.h>
#include <stdio.h>
#include <vm/engine.h>
#include <vm/wait.h>

/* Of a chain: more would hide the beginning, which the last line has. */
#define LINES_MOST 12
/* The longest wait for the engine's role, whose holder may be running a kernel. */
#define ROLE_NS INT64_C(200000000)

void eddy_explanation_add(eddy_explanation *to, const char *format, ...) {
    bool has_room = to->length < to->size;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(has_room ? to->buffer + to->length : NULL,
                           has_room ? to->size - to->length : 0, format, values);
    va_end(values);
    to->length += length > 0 ? (size_t)length : 0;
}

/* ---- sources ---- */

/* The oldest of those that a node waits for; *count of them. */
typedef struct sources {
    const eddy_node *oldest;
    int count;
} sources;

static void add_source(void *context, const eddy_node *source) {
    sources *to = context;
    to->count++;
    if (!to->oldest || source->instruction.view.sequence < to->oldest->instruction.view.sequence)
        to->oldest = source;
}

void eddy_explain_sources(const eddy_node *node,
                          void (*visit)(void *context, const eddy_node *source), void *context) {
    for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
        const eddy_use *use = &node->uses[i];
        if (use->source)
            visit(context, use->source);
        for (const eddy_use *reader = use->is_write ? use->reader_next : NULL; reader;
             reader = reader->reader_next)
            visit(context, reader->node);
    }
    for (int i = 0; i < EDDY_ORDER_COUNT; i++)
        if (node->orders[i].source)
            visit(context, node->orders[i].source);
    const eddy_node *first = node->vm->engine.live_head;
    if (node->is_marker && node->state == EDDY_NODE_WAITING && first != node)
        visit(context, first);
}

static sources sources_of(const eddy_node *node) {
    sources found = {0};
    eddy_explain_sources(node, add_source, &found);
    return found;
}

/* ---- lines ---- */

/* By the list: the node's own word is its runner's. */
static bool is_starved(const eddy_node *node) {
    const eddy_node *starved = node->vm->engine.starved.first;
    while (starved && starved != node)
        starved = starved->ready_next;
    return starved != NULL;
}

const char *eddy_explain_state(const eddy_node *node) {
    if (node->instruction.kind == EDDY_KIND_LEND && node->state == EDDY_NODE_DISPATCHED)
        return "is lent, until its lender gives it back";
    if (is_starved(node))
        return "waits for memory";
    switch (node->state) {
    case EDDY_NODE_DISPATCHED:
        return node->queue ? "is launched on its device"
                           : "runs, or waits for a thread that runs it";
    case EDDY_NODE_READY:
        return "is ready to run";
    case EDDY_NODE_ARRIVED:
        return "is done by its device";
    default:
        return "waits";
    }
}

void eddy_explain_call(const eddy_node *node, char *buffer, size_t size) {
    const eddy_vm_instruction *view = &node->instruction.view;
    buffer[0] = '\0';
    if (view->descriptor && view->descriptor->describe)
        view->descriptor->describe(view, buffer, size);
    if (!buffer[0])
        snprintf(buffer, size, "%s", eddy_instruction_name(&node->instruction));
}

static void add_node(eddy_explanation *to, const eddy_node *node) {
    const eddy_vm_instruction *view = &node->instruction.view;
    char call[160];
    eddy_explain_call(node, call, sizeof(call));
    eddy_explanation_add(to, "#%llu %s", (unsigned long long)view->sequence, call);
    const char *place = view->address ? eddy_call_site_place(view->address) : NULL;
    if (place)
        eddy_explanation_add(to, ", of %s", place);
    else if (view->address)
        eddy_explanation_add(to, ", of the call at %p", eddy_call_site_address(view->address));
}

void eddy_explain_node(eddy_explanation *to, const eddy_node *node) {
    int skipped = 0;
    for (int line = 0;; line++) {
        sources found = sources_of(node);
        bool is_last = !found.oldest;
        if (line < LINES_MOST || is_last) {
            if (skipped > 0)
                eddy_explanation_add(to, "%d more in between\n", skipped);
            add_node(to, node);
            if (is_last)
                eddy_explanation_add(to, " %s\n", eddy_explain_state(node));
            else if (found.count == 1)
                eddy_explanation_add(to, " waits for\n");
            else
                eddy_explanation_add(to, " waits for %d, the oldest of them\n", found.count);
        } else {
            skipped++;
        }
        if (is_last)
            return;
        node = found.oldest;
    }
}

/* ---- looking ---- */

eddy_look_result eddy_explain_look(eddy_vm *vm, void (*look)(eddy_vm *vm, void *context),
                                   void *context) {
    int64_t deadline_ns = eddy_clock_deadline(ROLE_NS);
    if (vm->process != eddy_process_generation || !eddy_vm_lock_if_open(vm))
        return EDDY_LOOK_CLOSED;
    eddy_vm_inside_begin(vm);
    eddy_vm_unlock(vm);
    bool has_lock = vm->is_one_thread && eddy_lock_acquire_until(&vm->one_thread, deadline_ns);
    bool has_looked =
        has_lock == vm->is_one_thread && eddy_engine_look(vm, look, context, deadline_ns);
    if (has_lock)
        eddy_lock_release(&vm->one_thread);
    eddy_vm_inside_end(vm);
    return has_looked ? EDDY_LOOK_DONE : EDDY_LOOK_BUSY;
}

/* ---- a tensor ---- */

typedef struct question {
    eddy_explanation *to;
    eddy_storage_number storage;
    bool has_writer;
} question;

/* The last that writes it; NULL: none is live. */
static const eddy_node *writer_of(const eddy_vm *vm, eddy_storage_number storage) {
    for (const eddy_node *node = vm->engine.live_tail; node; node = node->live_previous)
        for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
            eddy_mention mention = node->instruction.mentions[i];
            if (eddy_mention_writes(mention) && eddy_mention_number(mention) == storage)
                return node;
        }
    return NULL;
}

static void find_writer(eddy_vm *vm, void *context) {
    question *asked = context;
    const eddy_node *writer = writer_of(vm, asked->storage);
    asked->has_writer = writer != NULL;
    if (writer)
        eddy_explain_node(asked->to, writer);
}

/* Where nothing is submitted that uses it: under the submission lock, which the caller's runs have, too. False: something is. */
static bool explain_idle(eddy_vm *vm, const question *asked) {
    if (!eddy_vm_lock_if_open(vm)) {
        eddy_explanation_add(asked->to, "the runtime is shut down\n");
        return true;
    }
    eddy_storage *storage = eddy_vm_storage(vm, asked->storage);
    bool is_idle = eddy_vm_storage_is_idle(storage);
    eddy_poison poison = is_idle ? storage->shared.poison : 0;
    eddy_vm_unlock(vm);
    if (!is_idle)
        return false;
    if (poison == 0) {
        eddy_explanation_add(asked->to, "it waits for nothing: its elements are there\n");
        return true;
    }
    eddy_error error = {0};
    eddy_errors_find(&vm->errors, eddy_poison_sequence(poison), &error);
    eddy_explanation_add(asked->to, "#%llu failed%s%s: %s\n",
                         (unsigned long long)eddy_poison_sequence(poison),
                         error.place[0] ? ", of " : "", error.place, error.message);
    return true;
}

void eddy_vm_explain(eddy_vm *vm, eddy_storage_number storage, char *buffer, size_t size,
                     size_t *length) {
    eddy_explanation text = {buffer, size, 0};
    question asked = {.to = &text, .storage = storage};
    if (size > 0)
        buffer[0] = '\0';
    if (vm->process != eddy_process_generation)
        eddy_explanation_add(&text, "the runtime is the parent process's\n");
    else if (!explain_idle(vm, &asked)) {
        eddy_look_result result = eddy_explain_look(vm, find_writer, &asked);
        if (result == EDDY_LOOK_BUSY)
            eddy_explanation_add(
                &text, "it cannot be said: the thread that orders instructions runs one\n");
        /* What was there a moment ago has run; what reads it may still do so. */
        else if (!asked.has_writer && !explain_idle(vm, &asked))
            eddy_explanation_add(
                &text, "it waits for nothing: what writes it has run, and others read it\n");
    }
    *length = text.length;
}
