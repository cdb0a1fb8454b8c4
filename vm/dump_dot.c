/* The live instructions as a graph, in the language of Graphviz. */
#include <base/call_site.h>
#include <stdio.h>
#include <vm/explain.h>

#define NODES_MOST 2000

/* Within a string of that language. */
static void add_text(eddy_explanation *to, const char *text) {
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            eddy_explanation_add(to, "\\%c", *text);
        else
            eddy_explanation_add(to, "%c", *text);
}

typedef struct edges {
    eddy_explanation *to;
    uint64_t sequence,
        last; /* of sources of one node those that come twice in a row are one edge */
} edges;

static void add_edge(void *context, const eddy_node *source) {
    edges *e = context;
    if (source->instruction.view.sequence == e->last)
        return;
    e->last = source->instruction.view.sequence;
    eddy_explanation_add(e->to, "  n%llu -> n%llu\n", (unsigned long long)e->last,
                         (unsigned long long)e->sequence);
}

static void add_node(eddy_explanation *to, const eddy_node *node) {
    const eddy_vm_instruction *view = &node->instruction.view;
    const char *place = view->address ? eddy_call_site_place(view->address) : NULL;
    char call[160];
    eddy_explain_call(node, call, sizeof(call));
    eddy_explanation_add(to, "  n%llu [label=\"#%llu ", (unsigned long long)view->sequence,
                         (unsigned long long)view->sequence);
    add_text(to, call);
    eddy_explanation_add(to, "%s", place ? "\\n" : "");
    add_text(to, place ? place : "");
    eddy_explanation_add(to, "\\nstream %u, ", (unsigned)node->instruction.stream);
    add_text(to, eddy_explain_state(node));
    eddy_explanation_add(
        to, "\"%s]\n", node->state == EDDY_NODE_WAITING ? "" : " style=filled fillcolor=lightblue");
    edges e = {to, view->sequence, 0};
    eddy_explain_sources(node, add_edge, &e);
}

static void add_graph(eddy_vm *vm, void *context) {
    eddy_explanation *to = context;
    int left = NODES_MOST, more = 0;
    for (const eddy_node *node = vm->engine.live_head; node; node = node->live_next)
        if (left-- > 0)
            add_node(to, node);
        else
            more++;
    if (more > 0)
        eddy_explanation_add(to, "  more [label=\"and %d more\"]\n", more);
}

bool eddy_vm_dump_dot(eddy_vm *vm, char *buffer, size_t size, size_t *length) {
    eddy_explanation text = {buffer, size, 0};
    eddy_explanation_add(&text, "digraph eddy {\n  node [shape=box fontname=\"sans-serif\"]\n");
    eddy_look_result result = eddy_explain_look(vm, add_graph, &text);
    eddy_explanation_add(&text, "}\n");
    *length = text.length;
    return result == EDDY_LOOK_DONE;
}
