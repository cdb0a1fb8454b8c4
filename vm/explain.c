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

const char *eddy_explain_state(const eddy_node *node) {
    if (node->instruction.kind == EDDY_KIND_LEND && node->state == EDDY_NODE_DISPATCHED)
        return "is lent, until its lender gives it back";
    if (node->is_starved)
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

static void add_node(eddy_explanation *to, const eddy_node *node) {
    const eddy_vm_instruction *view = &node->instruction.view;
    char what[160] = "";
    if (view->descriptor && view->descriptor->describe)
        view->descriptor->describe(view, what, sizeof(what));
    eddy_explanation_add(to, "#%llu %s", (unsigned long long)view->sequence,
                         what[0] ? what : eddy_instruction_name(&node->instruction));
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

/* ---- a tensor ---- */

typedef struct question {
    eddy_explanation *to;
    eddy_storage_number storage;
} question;

/* The last that writes it; NULL: it is there. */
static const eddy_node *writer_of(const eddy_vm *vm, eddy_storage_number storage) {
    for (const eddy_node *node = vm->engine.live_tail; node; node = node->live_previous)
        for (uint32_t i = 0; i < node->instruction.view.operand_count; i++) {
            eddy_mention mention = node->instruction.mentions[i];
            if (eddy_mention_writes(mention) && eddy_mention_number(mention) == storage)
                return node;
        }
    return NULL;
}

static void answer(eddy_vm *vm, void *context) {
    const question *asked = context;
    const eddy_node *writer = writer_of(vm, asked->storage);
    eddy_poison poison = eddy_vm_storage(vm, asked->storage)->shared.poison;
    if (writer) {
        eddy_explain_node(asked->to, writer);
    } else if (poison != 0) {
        eddy_error error = {0};
        eddy_errors_find(&vm->errors, eddy_poison_sequence(poison), &error);
        eddy_explanation_add(asked->to, "#%llu failed%s%s: %s\n",
                             (unsigned long long)eddy_poison_sequence(poison),
                             error.place[0] ? ", of " : "", error.place, error.message);
    } else {
        eddy_explanation_add(asked->to, "it waits for nothing: its elements are there\n");
    }
}

static bool look(eddy_vm *vm, question *asked, int64_t deadline_ns) {
    if (vm->is_one_thread && !eddy_lock_acquire_until(&vm->one_thread, deadline_ns))
        return false;
    bool has_looked = eddy_engine_look(vm, answer, asked, deadline_ns);
    if (vm->is_one_thread)
        eddy_lock_release(&vm->one_thread);
    return has_looked;
}

void eddy_vm_explain(eddy_vm *vm, eddy_storage_number storage, char *buffer, size_t size,
                     size_t *length) {
    eddy_explanation text = {buffer, size, 0};
    question asked = {&text, storage};
    if (size > 0)
        buffer[0] = '\0';
    if (vm->process != eddy_process_generation || !eddy_vm_lock_if_open(vm)) {
        eddy_explanation_add(&text, "the runtime is shut down\n");
        *length = text.length;
        return;
    }
    eddy_vm_inside_begin(vm);
    eddy_vm_unlock(vm);
    if (!look(vm, &asked, eddy_clock_deadline(ROLE_NS)))
        eddy_explanation_add(&text,
                             "it cannot be said: the thread that orders instructions runs one\n");
    eddy_vm_inside_end(vm);
    *length = text.length;
}
