/* The nodes of a run's calls. */
#include <base/memory.h>
#include <base/number.h>
#include <eddy/host.h>
#include <interpreter/tape/overwritten.h>
#include <program/gradient_calls.h>
#include <program/quiet.h>
#include <string.h>

typedef struct unfolding {
    const eddy_gradient_calls *calls;
    const eddy_gradient_given *given;
    eddy_autograd_node *run;
    eddy_autograd_node **made; /* per call that is reached: a reference */
    uint32_t *reached;         /* calls, in a row */
    uint8_t *ways;             /* per call: 0: not reached; else 1 + its way */
    uint32_t reached_count;
    eddy_autograd_saved *saved; /* what the run's node has saved, a reference each */
} unfolding;

/* ---- what the run's node has ---- */

static uint32_t first_saved(const unfolding *u) {
    return u->run->input_count + u->run->output_count;
}

/* False where a tensor was given up, or overwritten: the pass that comes to the run's node says so. */
static bool take_saved(const unfolding *u) {
    bool has_all = true;
    eddy_lock_acquire(&u->run->lock);
    for (uint32_t i = 0; i < u->run->extra_count; i++) {
        u->saved[i] = u->run->saved[first_saved(u) + i];
        has_all &= u->saved[i].tensor != NULL;
        if (u->saved[i].tensor)
            eddy_tensor_retain(u->saved[i].tensor);
    }
    eddy_lock_release(&u->run->lock);
    for (uint32_t i = 0; i < u->run->extra_count && has_all; i++)
        has_all = eddy_load_relaxed(&u->saved[i].tensor->root->version) == u->saved[i].version;
    return has_all;
}

/* A reference; NULL without memory. */
static eddy_tensor *view_saved(const unfolding *u, const eddy_calls_saved *saved,
                               const eddy_autograd_node *node) {
    eddy_tensor *of = u->saved[saved->saved].tensor;
    eddy_layout layout = saved->layout;
    layout.offset += of->offset;
    eddy_tensor *view = eddy_tensor_view(eddy_caller_self, of, &layout,
                                         (eddy_origin){node->op->name, node->address});
    if (!view)
        return NULL;
    /* What the forward program hands out for the tape alone is a row of bytes. */
    view->dtype = saved->dtype;
    eddy_tensor_set_device(view, saved->device);
    return view;
}

/* ---- what the run has done ---- */

static void reach(unfolding *u, const eddy_calls_word *word) {
    if (word->call == EDDY_CODE_NONE || u->ways[word->call])
        return;
    u->ways[word->call] = 1;
    u->reached[u->reached_count++] = word->call;
}

/* An edge of a call that was reached: of a branch that of the way. */
static const eddy_calls_word *edge_of(const unfolding *u, uint32_t i, uint32_t edge) {
    const eddy_calls_call *call = eddy_calls_call_at(u->calls, i);
    uint32_t at = call->edges_at + (call->is_choice ? u->ways[i] - 1u : edge);
    return eddy_gradient_calls_edge(u->calls, at);
}

/* Which way the run has taken. UNSUPPORTED, nothing recorded, where nobody can say: the predicate has an error, or the thread may not wait. */
static eddy_status find_way(const unfolding *u, uint32_t i) {
    const eddy_calls_call *call = eddy_calls_call_at(u->calls, i);
    eddy_quiet quiet;
    eddy_error failed;
    uint8_t holds;
    eddy_tensor *view = view_saved(u, eddy_calls_saved_at(u->calls, call->saved_at), call->node);
    if (!view)
        return EDDY_OUT_OF_MEMORY;
    eddy_quiet_begin(&quiet);
    eddy_status status = eddy_read(view, &holds, sizeof(holds), NULL);
    eddy_quiet_end(&quiet, &failed);
    eddy_tensor_drop(view);
    if (status != EDDY_OK)
        return status == EDDY_OUT_OF_MEMORY ? status : EDDY_UNSUPPORTED;
    u->ways[i] = holds ? 1 : 2;
    return EDDY_OK;
}

/* The calls that gradients may come to: what a way has saved that the run has not taken is not there. */
static eddy_status find_reached(unfolding *u) {
    for (uint32_t i = 0; i < u->run->output_count; i++)
        reach(u, eddy_gradient_calls_root(u->calls, i));
    for (uint32_t k = 0; k < u->reached_count; k++) {
        uint32_t i = u->reached[k];
        const eddy_calls_call *call = eddy_calls_call_at(u->calls, i);
        eddy_status status = call->is_choice ? find_way(u, i) : EDDY_OK;
        if (status != EDDY_OK)
            return status;
        for (uint32_t e = 0; e < call->node->input_count; e++)
            reach(u, edge_of(u, i, e));
        for (uint32_t s = 0; s < call->saved_count && !call->is_choice; s++)
            reach(u, &eddy_calls_saved_at(u->calls, call->saved_at + s)->word);
    }
    return EDDY_OK;
}

/* ---- a call ---- */

/* A reference; 0 for none. */
static eddy_autograd word_of(const unfolding *u, const eddy_calls_word *word) {
    eddy_autograd found = 0;
    if (word->call != EDDY_CODE_NONE)
        found = eddy_autograd_make(u->made[word->call], word->output);
    else if (word->output != EDDY_CODE_NONE)
        found = u->run->edges[word->output];
    if (found)
        eddy_autograd_node_retain(eddy_autograd_node_of(found));
    return found;
}

static eddy_status fill_number(const unfolding *u, const eddy_calls_number *number,
                               eddy_autograd_node *node) {
    const eddy_op *op = node->op;
    if (number->draw) {
        const int64_t *drawn = u->given->draws + 2 * (size_t)(number->draw - 1);
        int64_t *words = node->attributes;
        words[eddy_code_seed_word(op)] = drawn[0];
        words[eddy_code_counter_word(op)] = drawn[1];
        return EDDY_OK;
    }
    const eddy_code_scalar *use = &number->use;
    eddy_scalar scalar = u->given->scalars[use->number];
    scalar.slot = 0;
    if (!eddy_number_convert(&scalar, (eddy_dtype)use->dtype, use->wraps))
        return EDDY_UNSUPPORTED; /* the run would have failed */
    memcpy((char *)node->attributes + op->attributes[use->attribute].offset, &scalar,
           sizeof(scalar));
    return EDDY_OK;
}

static eddy_status fill_saved(const unfolding *u, const eddy_calls_saved *saved,
                              eddy_autograd_node *node) {
    eddy_autograd_saved *slot = &node->saved[saved->slot];
    if (saved->value == EDDY_CODE_NONE) {
        slot->tensor = EDDY_NONE;
        return EDDY_OK;
    }
    eddy_tensor *view = view_saved(u, saved, node);
    if (!view)
        return EDDY_OUT_OF_MEMORY;
    eddy_autograd_set(view, word_of(u, &saved->word));
    eddy_overwritten_watch(view);
    *slot = (eddy_autograd_saved){view, u->saved[saved->saved].version, saved->result};
    return EDDY_OK;
}

static eddy_status fill(const unfolding *u, uint32_t i) {
    const eddy_calls_call *call = eddy_calls_call_at(u->calls, i);
    eddy_autograd_node *node = u->made[i];
    eddy_status status = EDDY_OK;
    for (uint32_t e = 0; e < node->input_count; e++)
        node->edges[e] = word_of(u, edge_of(u, i, e));
    for (uint32_t k = 0; k < call->number_count && status == EDDY_OK; k++)
        status = fill_number(u, eddy_calls_number_at(u->calls, call->numbers_at + k), node);
    for (uint32_t k = 0; k < call->saved_count && !call->is_choice && status == EDDY_OK; k++)
        status = fill_saved(u, eddy_calls_saved_at(u->calls, call->saved_at + k), node);
    return status;
}

/* ---- all of them ---- */

static eddy_status make_all(unfolding *u, eddy_autograd *words) {
    eddy_status status = take_saved(u) ? find_reached(u) : EDDY_UNSUPPORTED;
    for (uint32_t k = 0; k < u->reached_count && status == EDDY_OK; k++) {
        uint32_t i = u->reached[k];
        u->made[i] = eddy_autograd_node_copy(eddy_calls_call_at(u->calls, i)->node);
        status = u->made[i] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
    }
    for (uint32_t k = 0; k < u->reached_count && status == EDDY_OK; k++)
        status = fill(u, u->reached[k]);
    for (uint32_t i = 0; i < u->run->output_count && status == EDDY_OK; i++)
        words[i] = word_of(u, eddy_gradient_calls_root(u->calls, i));
    return status;
}

eddy_status eddy_gradient_calls_unfold(const eddy_gradient_calls *calls, eddy_autograd_node *node,
                                       const eddy_gradient_given *given, eddy_autograd *words) {
    unfolding u = {.calls = calls, .given = given, .run = node};
    uint32_t count = calls->calls.count;
    size_t saved_bytes = node->extra_count * sizeof(*u.saved),
           bytes = saved_bytes + count * (sizeof(*u.made) + sizeof(*u.reached) + sizeof(*u.ways));
    if (calls->reason[0])
        return EDDY_UNSUPPORTED;
    char *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    if (!memory)
        return EDDY_OUT_OF_MEMORY;
    u.saved = (eddy_autograd_saved *)(void *)memory;
    u.made = (eddy_autograd_node **)(void *)(memory + saved_bytes);
    u.reached = (uint32_t *)(u.made + count);
    u.ways = (uint8_t *)(u.reached + count);
    eddy_status status = make_all(&u, words);
    /* What is in use is held by edges and words. */
    for (uint32_t i = 0; i < count; i++)
        if (u.made[i])
            eddy_autograd_node_release(u.made[i]);
    for (uint32_t i = 0; i < node->extra_count; i++)
        if (u.saved[i].tensor)
            eddy_tensor_drop(u.saved[i].tensor);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_TAPE);
    return status;
}
