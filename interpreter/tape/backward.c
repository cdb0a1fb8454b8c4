/* The backward pass. The calling thread finds the nodes that the outputs depend on, sorts them so that each
 * comes after all nodes that read its results (Kahn, 1962), and issues the gradient of each in turn. Nothing recurses: a chain may be 10^6
 * long. The data of a pass belong to it, so that passes over shared nodes need no lock but those of the nodes. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <eddy/grad.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/autograd.h>
#include <interpreter/tape/backward_within.h>
#include <interpreter/tape/gradient_sum.h>
#include <interpreter/tape/unfold.h>
#include <string.h>

typedef struct visit {
    eddy_autograd_node *node;      /* a reference */
    uint32_t waiting;              /* edges to it that the pass has not followed yet */
    uint32_t first_sum;            /* of its outputs */
    bool is_wanted;                /* a requested gradient is here or further back */
    const eddy_autograd *unfolded; /* per output: the word that it leads to; NULL: its own */
} visit;

typedef struct array {
    void *items;
    size_t bytes, capacity; /* both in bytes */
} array;

typedef struct walk {
    eddy_caller *caller;
    eddy_origin origin;
    bool retains, creates;
    bool has_unfolded; /* a visited node leads to others */
    array visits, sums, order, map,
        scratch; /* visit, eddy_gradient_sum, uint32_t, uint32_t (1 + visit; a power of two) */
    uint32_t visit_count, sum_count, most_inputs, most_outputs, most_extras;
    /* eddy_backward_to: the requested inputs; else NULL, and leaves keep their gradients. */
    const eddy_list *inputs;
    eddy_tensor **found;  /* references */
    eddy_autograd *asked; /* per input: the word that stands for it */
    /* eddy_backward_within: the recording whose nodes it stays within, and what it has found at their edges; 0: it goes all the way. */
    uint64_t within;
    eddy_backward_found *at_edges;
} walk;

/* ---- arrays ---- */

static bool array_reserve(array *a, size_t bytes) {
    if (bytes <= a->capacity)
        return true;
    size_t capacity = a->capacity ? a->capacity : 1024;
    while (capacity < bytes)
        capacity *= 2;
    void *items = eddy_memory_acquire(capacity, EDDY_MEMORY_TAPE);
    if (!items)
        return false;
    if (a->items) {
        memcpy(items, a->items, a->bytes);
        eddy_memory_release(a->items, a->capacity, EDDY_MEMORY_TAPE);
    }
    a->items = items;
    a->capacity = capacity;
    return true;
}

/* Makes room for one more item at the end; NULL without memory. */
static void *array_add(array *a, size_t item_bytes) {
    if (!array_reserve(a, a->bytes + item_bytes))
        return NULL;
    void *item = (char *)a->items + a->bytes;
    a->bytes += item_bytes;
    return item;
}

static void array_fini(array *a) {
    if (a->items)
        eddy_memory_release(a->items, a->capacity, EDDY_MEMORY_TAPE);
}

static visit *visit_at(const walk *w, uint32_t i) {
    return (visit *)w->visits.items + i;
}

static eddy_gradient_sum *sum_at(const walk *w, uint32_t i) {
    return (eddy_gradient_sum *)w->sums.items + i;
}

static eddy_status fail_memory(const walk *w) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, w->origin, "no memory to go back");
}

/* ---- finding ---- */

/* Where a pass within a recording ends. */
static bool is_beyond(const walk *w, const eddy_autograd_node *node) {
    return w->within != 0 && node->recording != w->within;
}

static uint32_t edge_count(const walk *w, const visit *at) {
    return is_beyond(w, at->node) || at->unfolded ? 0 : at->node->input_count;
}

static uint32_t *map_slot(const walk *w, const eddy_autograd_node *node) {
    uint32_t *slots = w->map.items;
    uint32_t mask = (uint32_t)(w->map.bytes / sizeof(*slots)) - 1;
    uint32_t at =
        (uint32_t)(((uintptr_t)node / EDDY_CACHE_LINE * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (slots[at] != 0 && visit_at(w, slots[at] - 1)->node != node)
        at = (at + 1) & mask;
    return &slots[at];
}

/* At most half full. */
static bool map_grow(walk *w) {
    size_t slots = w->map.bytes / sizeof(uint32_t);
    if (2 * ((size_t)w->visit_count + 1) <= slots)
        return true;
    array larger = {0};
    size_t bytes = (slots ? 2 * slots : 256) * sizeof(uint32_t);
    if (!array_reserve(&larger, bytes))
        return false;
    memset(larger.items, 0, bytes);
    larger.bytes = bytes;
    array_fini(&w->map);
    w->map = larger;
    for (uint32_t i = 0; i < w->visit_count; i++)
        *map_slot(w, visit_at(w, i)->node) = i + 1;
    return true;
}

/* Whether the node leads to others is settled when a pass comes to it first. One that stays within a recording goes through no run. One that is recorded
 * needs calls: a program cannot hold that of a run's gradient. */
static bool find_unfolded(const walk *w, eddy_autograd_node *node, const eddy_autograd **words) {
    *words = NULL;
    if (EDDY_LIKELY(!node->unfold) || w->within)
        return true;
    bool creates = w->creates || node->unfolds_always || w->caller->recorder;
    return eddy_unfold_find(node, creates, words) == EDDY_OK;
}

/* The node's visit, made if it is new; UINT32_MAX without memory. */
static uint32_t visit_of(walk *w, eddy_autograd_node *node) {
    if (!map_grow(w))
        return UINT32_MAX;
    uint32_t *slot = map_slot(w, node);
    if (*slot != 0)
        return *slot - 1;
    size_t sums = node->output_count * sizeof(eddy_gradient_sum);
    const eddy_autograd *unfolded;
    if (!find_unfolded(w, node, &unfolded) || !array_reserve(&w->sums, w->sums.bytes + sums))
        return UINT32_MAX;
    visit *made = array_add(&w->visits, sizeof(*made));
    if (!made)
        return UINT32_MAX;
    eddy_autograd_node_retain(node);
    if (!w->within)
        eddy_recorder_come_to(w->caller, node);
    *made = (visit){.node = node, .first_sum = w->sum_count, .unfolded = unfolded};
    w->has_unfolded |= unfolded != NULL;
    memset((char *)w->sums.items + w->sums.bytes, 0, sums);
    w->sums.bytes += sums;
    w->sum_count += node->output_count;
    if (node->input_count > w->most_inputs)
        w->most_inputs = node->input_count;
    if (node->output_count > w->most_outputs)
        w->most_outputs = node->output_count;
    if (node->extra_count > w->most_extras)
        w->most_extras = node->extra_count;
    *slot = ++w->visit_count;
    return w->visit_count - 1;
}

/* The same of the node at the end of an edge. */
static uint32_t visit_end(walk *w, eddy_autograd edge) {
    uint32_t at = visit_of(w, eddy_autograd_node_of(edge));
    if (EDDY_LIKELY(!w->has_unfolded) || at == UINT32_MAX || !visit_at(w, at)->unfolded)
        return at;
    edge = visit_at(w, at)->unfolded[eddy_autograd_output_of(edge)];
    return visit_of(w, eddy_autograd_node_of(edge));
}

/* The visit of the node at the end of an edge, which find_all has made, and the word of that end. */
static uint32_t end_of(const walk *w, eddy_autograd *edge) {
    uint32_t at = *map_slot(w, eddy_autograd_node_of(*edge)) - 1;
    if (EDDY_LIKELY(!w->has_unfolded) || !visit_at(w, at)->unfolded)
        return at;
    *edge = visit_at(w, at)->unfolded[eddy_autograd_output_of(*edge)];
    return *map_slot(w, eddy_autograd_node_of(*edge)) - 1;
}

static uint32_t source_of(const walk *w, eddy_autograd edge) {
    return end_of(w, &edge);
}

/* Visits all nodes that the nodes so far depend on. */
static eddy_status find_all(walk *w) {
    for (uint32_t i = 0; i < w->visit_count; i++) {
        const eddy_autograd_node *node = visit_at(w, i)->node;
        for (uint32_t e = 0; e < edge_count(w, visit_at(w, i)); e++) {
            if (!node->edges[e])
                continue;
            uint32_t source = visit_end(w, node->edges[e]);
            if (source == UINT32_MAX)
                return fail_memory(w);
            visit_at(w, source)->waiting++;
        }
    }
    return EDDY_OK;
}

static bool is_asked_for(const walk *w, const eddy_autograd_node *node) {
    if (w->within)
        return is_beyond(w, node);
    if (!w->inputs)
        return true; /* all of the tape leads to leaves */
    for (int64_t i = 0; i < w->inputs->count; i++)
        if (eddy_autograd_node_of(w->asked[i]) == node)
            return true;
    return false;
}

/* What stands for the requested inputs: to this pass, or to all where it does not come to them. */
static void find_asked(const walk *w) {
    for (int64_t i = 0; w->inputs && i < w->inputs->count; i++) {
        w->asked[i] = w->inputs->items[i]->autograd;
        if (*map_slot(w, eddy_autograd_node_of(w->asked[i])) != 0)
            (void)end_of(w, &w->asked[i]);
        else
            w->asked[i] = eddy_unfold_end(w->asked[i]);
    }
}

/* Fills `order`: the newest ready one first, so that few gradients are alive at once. Then marks the nodes that need a visit. */
static eddy_status put_in_order(walk *w) {
    array ready = {0};
    bool has_memory = array_reserve(&w->order, w->visit_count * sizeof(uint32_t)) &&
                      array_reserve(&ready, w->visit_count * sizeof(uint32_t));
    uint32_t *order = w->order.items, *stack = ready.items, ready_count = 0, count = 0;
    for (uint32_t i = w->visit_count; i > 0 && has_memory; i--)
        if (visit_at(w, i - 1)->waiting == 0)
            stack[ready_count++] = i - 1;
    while (ready_count > 0) {
        uint32_t i = stack[--ready_count];
        order[count++] = i;
        const eddy_autograd_node *node = visit_at(w, i)->node;
        for (uint32_t e = 0; e < edge_count(w, visit_at(w, i)); e++) {
            if (!node->edges[e])
                continue;
            uint32_t source = source_of(w, node->edges[e]);
            if (--visit_at(w, source)->waiting == 0)
                stack[ready_count++] = source;
        }
    }
    array_fini(&ready);
    if (!has_memory)
        return fail_memory(w);
    EDDY_ASSERT(count == w->visit_count);
    for (; count > 0; count--) {
        visit *at = visit_at(w, order[count - 1]);
        at->is_wanted = is_asked_for(w, at->node);
        for (uint32_t e = 0; e < edge_count(w, at) && !at->is_wanted; e++)
            at->is_wanted =
                at->node->edges[e] && visit_at(w, source_of(w, at->node->edges[e]))->is_wanted;
    }
    return EDDY_OK;
}

/* ---- gradients ---- */

/* Stores the gradient that has come to the edge of a recording. */
static eddy_status find_edge(walk *w, eddy_autograd_node *node, uint32_t output,
                             eddy_tensor *gradient) {
    uint32_t count = w->at_edges->count;
    eddy_backward_edge *edges = eddy_memory_grow(w->at_edges->edges, count * sizeof(*edges),
                                                 (count + 1) * sizeof(*edges), EDDY_MEMORY_TAPE);
    if (!edges)
        return fail_memory(w);
    eddy_autograd_node_retain(node);
    eddy_tensor_retain(gradient);
    edges[count] = (eddy_backward_edge){eddy_autograd_make(node, output), gradient};
    w->at_edges->edges = edges;
    w->at_edges->count = count + 1;
    return EDDY_OK;
}

/* The gradients of a node's outputs are complete: runs hooks, and stores requested gradients. *has_any: there is a gradient to
 * continue with. */
static eddy_status complete(walk *w, const visit *at, bool *has_any) {
    eddy_autograd_node *node = at->node;
    for (uint32_t i = 0; i < node->output_count; i++) {
        eddy_gradient_sum *gradient = sum_at(w, at->first_sum + i);
        if (!gradient->tensor)
            continue;
        *has_any = true;
        eddy_status status = eddy_gradient_sum_complete(gradient);
        if (status == EDDY_OK && is_beyond(w, node)) {
            /* Its hooks run, and it keeps its gradient, in the passes that come through the program. */
            status = find_edge(w, node, i, gradient->tensor);
            if (status == EDDY_OK)
                continue;
        }
        eddy_autograd word = eddy_autograd_make(node, i);
        if (status == EDDY_OK && node->hooks)
            status = eddy_autograd_hooks_run(word, &gradient->tensor, w->origin);
        if (status == EDDY_OK && !w->inputs && node->keeps[i])
            status = eddy_autograd_kept_add(w->caller, word, gradient->tensor, w->creates);
        if (status != EDDY_OK)
            return status;
        for (int64_t k = 0; w->inputs && k < w->inputs->count; k++)
            if (w->asked[k] == word) {
                w->found[k] = eddy_autograd_hand_out(w->caller, gradient->tensor, w->origin);
                if (!w->found[k])
                    return EDDY_OUT_OF_MEMORY;
                eddy_autograd_follow(w->found[k], gradient->tensor);
            }
    }
    return EDDY_OK;
}

/* ---- one call ---- */

/* The arrays of a gradient call, for the largest node. */
typedef struct frame {
    eddy_spec *specs;
    eddy_autograd_saved *saved;
    eddy_tensor **inputs, **outputs, **extras, **grads, **results;
    bool *is_wanted;
} frame;

static bool frame_init(walk *w, frame *f) {
    size_t in = w->most_inputs, out = w->most_outputs, extra = w->most_extras;
    size_t saved = in * sizeof(eddy_spec),
           inputs = saved + (in + out + extra) * sizeof(eddy_autograd_saved);
    size_t outputs = inputs + in * sizeof(void *), extras = outputs + out * sizeof(void *);
    size_t gradients = extras + extra * sizeof(void *);
    size_t results = gradients + out * sizeof(void *), wanted = results + in * sizeof(void *);
    if (!array_reserve(&w->scratch, wanted + in + 1))
        return false;
    char *at = w->scratch.items;
    *f = (frame){.specs = (eddy_spec *)(void *)at,
                 .saved = (eddy_autograd_saved *)(void *)(at + saved),
                 .inputs = (eddy_tensor **)(void *)(at + inputs),
                 .outputs = (eddy_tensor **)(void *)(at + outputs),
                 .extras = (eddy_tensor **)(void *)(at + extras),
                 .grads = (eddy_tensor **)(void *)(at + gradients),
                 .results = (eddy_tensor **)(void *)(at + results),
                 .is_wanted = (bool *)(at + wanted)};
    return true;
}

/* Takes the node's saved tensors, or, if they are to stay, another reference of each. */
static eddy_status take_saved(walk *w, eddy_autograd_node *node, frame *f) {
    uint32_t slots = eddy_autograd_saved_count(node);
    bool has_saved = false;
    eddy_lock_acquire(&node->lock);
    bool is_spent = node->is_spent, is_stale = node->is_stale;
    for (uint32_t i = 0; i < slots; i++) {
        f->saved[i] = node->saved[i];
        has_saved |= f->saved[i].tensor != NULL;
        if (!w->retains)
            node->saved[i].tensor = NULL;
        else if (f->saved[i].tensor && !eddy_tensor_is_none(f->saved[i].tensor))
            eddy_tensor_retain(f->saved[i].tensor);
    }
    node->is_spent |= has_saved && !w->retains;
    eddy_lock_release(&node->lock);
    if (is_spent)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin,
                         "what %s had saved was given up when it was gone back through before; "
                         "keeps_graph keeps it",
                         node->op->name);
    for (uint32_t i = 0; i < slots; i++) {
        const eddy_tensor *tensor = f->saved[i].tensor;
        if (!tensor || eddy_tensor_is_none(tensor))
            continue;
        is_stale |= eddy_load_relaxed(&tensor->root->version) != f->saved[i].version;
        eddy_recorder_needs(w->caller, tensor, node->recording, node->recorded_at);
    }
    if (is_stale)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin,
                         "what %s had saved for its gradient was written to in place since",
                         node->op->name);
    return EDDY_OK;
}

static void give_saved(const eddy_autograd_node *node, frame *f) {
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++)
        if (f->saved[i].tensor && !eddy_tensor_is_none(f->saved[i].tensor))
            eddy_tensor_drop(f->saved[i].tensor);
}

/* Saved results refer to no node, or the node would hold itself; for gradients of gradients they are replaced by handles that do. */
static eddy_status name_outputs(const walk *w, eddy_autograd_node *node, frame *f) {
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node) && w->creates; i++) {
        eddy_tensor **saved = &f->saved[i].tensor;
        if (f->saved[i].result == 0)
            continue;
        eddy_tensor *named = eddy_tensor_acquire(w->caller, (*saved)->runtime, w->origin.address);
        if (!named)
            return fail_memory(w);
        eddy_tensor_alias(named, *saved);
        eddy_autograd_node_name(node, f->saved[i].result - 1, named);
        eddy_tensor_drop(*saved);
        *saved = named;
    }
    return EDDY_OK;
}

static eddy_status fill_frame(walk *w, const visit *at, frame *f) {
    const eddy_autograd_node *node = at->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        eddy_autograd_spec_of(node, i, &f->specs[i]);
        f->inputs[i] = f->saved[i].tensor;
        f->results[i] = NULL;
        f->is_wanted[i] = node->edges[i] && visit_at(w, source_of(w, node->edges[i]))->is_wanted;
    }
    for (uint32_t i = 0; i < node->extra_count; i++)
        f->extras[i] = f->saved[node->input_count + node->output_count + i].tensor;
    for (uint32_t i = 0; i < node->output_count; i++) {
        f->outputs[i] = f->saved[node->input_count + i].tensor;
        f->grads[i] = sum_at(w, at->first_sum + i)->tensor;
        eddy_spec spec;
        eddy_autograd_spec_of(node, node->input_count + i, &spec);
        if (f->grads[i] || node->takes_missing ||
            eddy_dtype_category_of(spec.dtype) != EDDY_CATEGORY_FLOAT)
            continue;
        eddy_device device = eddy_autograd_device_of(eddy_autograd_make(at->node, i));
        eddy_status status = eddy_gradient_ops_table.zeros(&spec, device, &f->grads[i]);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* The gradient sum of the output at the end of an edge. */
static eddy_gradient_sum *sum_of(const walk *w, eddy_autograd edge) {
    const visit *at = visit_at(w, end_of(w, &edge));
    return sum_at(w, at->first_sum + eddy_autograd_output_of(edge));
}

/* A function of the user's may have made it anywhere. */
static eddy_status check_device(const walk *w, const eddy_autograd_node *node, uint32_t i,
                                const eddy_tensor *result) {
    if (eddy_autograd_is_beside(result, node->edges[i]))
        return EDDY_OK;
    char is[32], wanted[32];
    eddy_device_format(eddy_tensor_device(result), is, sizeof(is));
    eddy_device_format(eddy_autograd_device_of(node->edges[i]), wanted, sizeof(wanted));
    return eddy_fail(EDDY_DEVICE_MISMATCH, w->origin,
                     "the gradient of %s for its input %u is on %s, the input on %s",
                     node->op->name, i, is, wanted);
}

/* Adds the results to the gradient sums of the operands. */
static eddy_status hand_on(walk *w, const eddy_autograd_node *node, const frame *f) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        eddy_tensor *result = f->is_wanted[i] ? f->results[i] : NULL;
        if (!result)
            continue;
        eddy_status status = check_device(w, node, i, result);
        if (status == EDDY_OK && !eddy_autograd_has_spec(result, &f->specs[i]))
            status = eddy_gradient_ops_table.fit(result, &f->specs[i], &result);
        if (status == EDDY_OK)
            status = eddy_gradient_sum_add(sum_of(w, node->edges[i]), result, w->creates);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* The gradient of a slice goes straight to its place in the gradient of the whole. */
static eddy_status hand_on_part(walk *w, const eddy_autograd_node *node, const frame *f) {
    if (!f->is_wanted[0])
        return EDDY_OK;
    return eddy_gradient_sum_add_part(sum_of(w, node->edges[0]), &f->specs[0], node->attributes,
                                      node->device, f->grads[0]);
}

static eddy_status run_gradient(walk *w, const eddy_autograd_node *node, const frame *f) {
    eddy_outcome outcome;
    eddy_gradient_call call = {.op = node->op,
                               .attributes = node->attributes,
                               .inputs = f->inputs,
                               .input_specs = f->specs,
                               .input_count = node->input_count,
                               .list_counts = node->list_counts,
                               .outputs = f->outputs,
                               .extras = f->extras,
                               .extra_count = node->extra_count,
                               .grads = f->grads,
                               .is_wanted = f->is_wanted,
                               .is_recorded = w->creates,
                               .device = node->device,
                               .results = f->results,
                               .outcome = &outcome};
    eddy_outcome_begin(&outcome);
    eddy_status status = node->op->gradient->run(&call);
    eddy_outcome_end(&outcome);
    return status == EDDY_OK ? hand_on(w, node, f) : status;
}

static eddy_status go_through(walk *w, const visit *at, frame *f) {
    eddy_autograd_node *node = at->node;
    eddy_status status = take_saved(w, node, f);
    if (status == EDDY_OK)
        status = name_outputs(w, node, f);
    if (status == EDDY_OK)
        status = fill_frame(w, at, f);
    if (status == EDDY_OK && node->op == &eddy_view_ops[EDDY_VIEW_PART] && !w->creates)
        status = hand_on_part(w, node, f);
    else if (status == EDDY_OK)
        status = run_gradient(w, node, f);
    give_saved(node, f);
    return status;
}

static void drop_sums(const walk *w, const visit *at) {
    for (uint32_t i = 0; i < at->node->output_count; i++)
        eddy_gradient_sum_drop(sum_at(w, at->first_sum + i));
}

static eddy_status go_back(walk *w) {
    frame f;
    if (!frame_init(w, &f))
        return fail_memory(w);
    const uint32_t *order = w->order.items;
    for (uint32_t i = 0; i < w->visit_count; i++) {
        const visit *at = visit_at(w, order[i]);
        bool has_any = false;
        eddy_scope *scope = NULL;
        eddy_status status = eddy_scope_open(w->caller, w->origin, &scope);
        if (status == EDDY_OK)
            status = complete(w, at, &has_any);
        bool goes_on =
            has_any && at->is_wanted && !eddy_autograd_is_leaf(at->node) && !is_beyond(w, at->node);
        if (status == EDDY_OK && goes_on)
            status = go_through(w, at, &f);
        if (at->unfolded && !w->retains)
            eddy_unfold_spend(at->node);
        drop_sums(w, at);
        if (scope)
            eddy_scope_end(scope);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* ---- entry points ---- */

static eddy_status fail_root(const walk *w, eddy_status status, int64_t i,
                             const eddy_tensor *output, const char *sentence) {
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(output, text, sizeof(text));
    return eddy_fail(status, w->origin, "output %lld, %s, %s", (long long)i, text, sentence);
}

static eddy_status fail_seed(const walk *w, int64_t i, const eddy_tensor *output,
                             const eddy_tensor *seed) {
    char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(seed, is, sizeof(is));
    eddy_tensor_describe(output, wanted, sizeof(wanted));
    return eddy_fail(EDDY_SHAPE_MISMATCH, w->origin,
                     "seeds[%lld] is %s, its output %s: they must be alike", (long long)i, is,
                     wanted);
}

static eddy_status fail_seed_device(const walk *w, int64_t i, const eddy_tensor *output,
                                    const eddy_tensor *seed) {
    char is[32], wanted[32];
    eddy_device_format(eddy_tensor_device(seed), is, sizeof(is));
    eddy_device_format(eddy_tensor_device(output), wanted, sizeof(wanted));
    return eddy_fail(EDDY_DEVICE_MISMATCH, w->origin, "seeds[%lld] is on %s, its output on %s",
                     (long long)i, is, wanted);
}

static eddy_status add_root(walk *w, int64_t i, eddy_tensor *output, eddy_tensor *seed) {
    eddy_status status = eddy_tensor_check_item_shape(output, "outputs", i, w->origin);
    if (status != EDDY_OK)
        return status;
    if (!w->within)
        eddy_recorder_ask(w->caller, output);
    if (!output->autograd)
        return fail_root(w, EDDY_INVALID_ARGUMENT, i, output, "requires no gradient");
    if (!eddy_tensor_is_none(seed))
        status = eddy_tensor_check_item_shape(seed, "seeds", i, w->origin);
    if (status != EDDY_OK)
        return status;
    if (eddy_tensor_is_none(seed)) {
        if (output->count != 1)
            return fail_root(w, EDDY_INVALID_ARGUMENT, i, output,
                             "has not one element: make it one (eddy_sum, eddy_mean), or say what "
                             "its gradient begins with "
                             "(the seeds of eddy_backward_from)");
        status = eddy_gradient_ops_table.ones_like(output, &seed);
        if (status != EDDY_OK)
            return status;
    }
    eddy_spec spec = {.dtype = (eddy_dtype)output->dtype};
    eddy_tensor_shape(output, &spec.shape);
    if (!eddy_autograd_has_spec(seed, &spec))
        return fail_seed(w, i, output, seed);
    if (!eddy_autograd_is_beside(seed, output->autograd))
        return fail_seed_device(w, i, output, seed);
    uint32_t root = visit_end(w, output->autograd);
    if (root == UINT32_MAX)
        return fail_memory(w);
    return eddy_gradient_sum_add(sum_of(w, output->autograd), seed, w->creates);
}

static eddy_status check_lists(const walk *w, eddy_list outputs, eddy_list seeds) {
    if (outputs.count < 1 || !outputs.items)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin, "no outputs");
    if (seeds.count != 0 && !seeds.items)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin, "the list of seeds is NULL");
    if (seeds.count != 0 && seeds.count != outputs.count)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin, "%lld seeds for %lld outputs",
                         (long long)seeds.count, (long long)outputs.count);
    for (int64_t i = 0; w->inputs && i < w->inputs->count; i++) {
        const eddy_tensor *input = w->inputs->items[i];
        eddy_status status = eddy_tensor_check_item(input, "inputs", i, w->origin);
        if (status != EDDY_OK)
            return status;
        eddy_recorder_ask(w->caller, input);
        if (!input->autograd)
            return eddy_fail(EDDY_INVALID_ARGUMENT, w->origin, "input %lld requires no gradient",
                             (long long)i);
        status = eddy_autograd_check_whole(input, w->origin);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* Code of the user's that a program would not run again. */
static eddy_status check_within(const walk *w) {
    for (uint32_t i = 0; i < w->visit_count && w->within; i++) {
        const eddy_autograd_node *node = visit_at(w, i)->node;
        if (is_beyond(w, node))
            continue;
        if (eddy_autograd_is_leaf(node))
            return eddy_fail(EDDY_UNSUPPORTED, w->origin,
                             "a tensor that the recorded calls made wants a gradient of its own");
        bool keeps = false;
        for (uint32_t k = 0; k < node->output_count; k++)
            keeps |= node->keeps[k];
        for (const eddy_autograd_hook *hook = node->hooks; hook; hook = hook->next)
            keeps |= hook->run != NULL;
        if (keeps)
            return eddy_fail(EDDY_UNSUPPORTED, w->origin,
                             "a result of the recorded %s has a hook, or keeps its gradient",
                             node->op->name);
    }
    return EDDY_OK;
}

/* The outputs that the pass goes through, since others were computed from them. */
static uint64_t find_inner(const walk *w, eddy_list outputs) {
    uint64_t inner = 0;
    for (uint32_t i = 0; i < w->visit_count; i++) {
        const eddy_autograd_node *node = visit_at(w, i)->node;
        for (uint32_t e = 0; e < edge_count(w, visit_at(w, i)); e++)
            for (int64_t o = 0; o < outputs.count && o < 64; o++)
                if (node->edges[e] != 0 && node->edges[e] == outputs.items[o]->autograd)
                    inner |= UINT64_C(1) << o;
    }
    return inner;
}

static eddy_status backward_run(walk *w, eddy_list outputs, eddy_list seeds) {
    eddy_status status = check_lists(w, outputs, seeds);
    for (int64_t i = 0; i < outputs.count && status == EDDY_OK; i++)
        status = add_root(w, i, outputs.items[i], seeds.count > 0 ? seeds.items[i] : EDDY_NONE);
    if (status == EDDY_OK)
        status = find_all(w);
    if (status == EDDY_OK)
        status = check_within(w);
    if (status == EDDY_OK && w->within)
        w->at_edges->inner = find_inner(w, outputs);
    if (status == EDDY_OK) {
        find_asked(w);
        status = put_in_order(w);
    }
    if (status == EDDY_OK)
        status = go_back(w);
    for (uint32_t i = 0; i < w->visit_count; i++) {
        drop_sums(w, visit_at(w, i));
        eddy_autograd_node_release(visit_at(w, i)->node);
    }
    array_fini(&w->visits);
    array_fini(&w->sums);
    array_fini(&w->order);
    array_fini(&w->map);
    array_fini(&w->scratch);
    return status;
}

static eddy_status back(walk *w, eddy_list outputs, eddy_list seeds,
                        const eddy_backward_options *options) {
    w->caller = eddy_caller_get();
    if (!eddy_caller_may_call(w->caller))
        return eddy_caller_refuse(w->caller, w->origin);
    if (!w->within)
        eddy_recorder_go_back(w->caller);
    w->creates = options && options->creates_graph;
    /* A pass that does not run uses nothing up. */
    w->retains = (options && (options->keeps_graph || options->creates_graph)) ||
                 !eddy_recorder_lets_run(w->caller);
    eddy_scope *scope;
    eddy_status status = eddy_scope_open(w->caller, w->origin, &scope);
    if (status != EDDY_OK)
        return status;
    int32_t no_grad = w->caller->no_grad;
    w->caller->no_grad = w->creates ? 0 : 1;
    eddy_recorder_begin_pass(w->caller);
    status = backward_run(w, outputs, seeds);
    eddy_recorder_end_pass(w->caller);
    w->caller->no_grad = no_grad;
    eddy_scope_end(scope);
    return status;
}

eddy_status eddy_backward(eddy_tensor *loss) {
    walk w = {.origin = EDDY_ORIGIN("backward")};
    return back(&w, (eddy_list){&loss, 1}, (eddy_list){0}, NULL);
}

eddy_status eddy_backward_from(eddy_list outputs, eddy_list seeds,
                               const eddy_backward_options *options) {
    walk w = {.origin = EDDY_ORIGIN("backward_from")};
    return back(&w, outputs, seeds, options);
}

eddy_status eddy_backward_to(eddy_list outputs, eddy_list inputs, eddy_list seeds,
                             const eddy_backward_options *options, eddy_tensor **gradients) {
    walk w = {.origin = EDDY_ORIGIN("backward_to"), .inputs = &inputs};
    if (inputs.count < 1 || !inputs.items)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w.origin, "no inputs");
    if (!gradients)
        return eddy_fail(EDDY_INVALID_ARGUMENT, w.origin, "gradients is NULL");
    size_t bytes = (size_t)inputs.count * (sizeof(*w.found) + sizeof(*w.asked));
    w.found = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    if (!w.found)
        return fail_memory(&w);
    w.asked = (eddy_autograd *)(w.found + inputs.count);
    eddy_status status = back(&w, outputs, seeds, options);
    if (status == EDDY_OK && !eddy_scope_reserve(w.caller, (uint32_t)inputs.count))
        status = eddy_fail(EDDY_OUT_OF_MEMORY, w.origin, "the scope cannot grow");
    for (int64_t i = 0; i < inputs.count; i++) {
        if (status != EDDY_OK) {
            if (w.found[i])
                eddy_tensor_drop(w.found[i]);
            continue;
        }
        gradients[i] = w.found[i] ? w.found[i] : EDDY_NONE;
        if (w.found[i])
            eddy_scope_own(w.caller, w.found[i]);
    }
    eddy_memory_release(w.found, bytes, EDDY_MEMORY_TAPE);
    return status;
}

eddy_status eddy_backward_within(uint64_t recording, eddy_list outputs, eddy_list seeds,
                                 eddy_origin origin, eddy_backward_found *found) {
    eddy_backward_found made = {0};
    walk w = {.origin = origin, .within = recording, .at_edges = &made};
    eddy_backward_options options = {.size = sizeof(options), .keeps_graph = true};
    eddy_status status = back(&w, outputs, seeds, &options);
    if (status == EDDY_OK)
        *found = made;
    else
        eddy_backward_found_fini(&made);
    return status;
}

void eddy_backward_found_fini(eddy_backward_found *found) {
    for (uint32_t i = 0; i < found->count; i++) {
        eddy_autograd_node_release(eddy_autograd_node_of(found->edges[i].word));
        eddy_tensor_drop(found->edges[i].gradient);
    }
    eddy_memory_release(found->edges, found->count * sizeof(*found->edges), EDDY_MEMORY_TAPE);
    *found = (eddy_backward_found){0};
}
