/* The tape: what was called on tensors that require a gradient, and where its operands came from.
 *
 * A node is one call, or one leaf. Handles name the node that made them (eddy_autograd: node and output in one word) and hold a
 * reference; so does a node for each operand that came from another. The other way there is nothing: what a recorded call made is
 * a handle of its own, which nobody knows, and the user gets another one of it that names the node. Nodes are const once
 * recorded, but for what `lock` guards.
 *
 *   RECORDED --gone back through--> SPENT (what was saved is gone)      a leaf stays RECORDED
 *   RECORDED --what was saved is overwritten by a recorded call--> STALE (it is gone, too)
 *   any --last reference--> freed; those it held in turn, in a loop and not in each other (chains may be 10^6 long)
 *
 * Threads: any. Two that go back through a node at once both take their own references of what was saved under `lock`; who
 * comes after it was given up fails. */
#ifndef EDDY_INTERPRETER_TAPE_AUTOGRAD_H
#define EDDY_INTERPRETER_TAPE_AUTOGRAD_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/call_site.h>
#include <base/sleep.h>
#include <eddy/grad.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/tape/gradient.h>

/* Dtype and shape, the dims with those of the others. */
typedef struct eddy_autograd_spec {
    uint8_t dtype;
    int8_t rank; /* -1: absent, or of a shape that was not known yet */
    uint32_t dims_at;
} eddy_autograd_spec;

typedef struct eddy_autograd_hook {
    struct eddy_autograd_hook *next;
    eddy_grad_hook *run;
    void *context;
    void (*destroy)(void *context);
    uint32_t output;
} eddy_autograd_hook;

typedef struct eddy_autograd_saved {
    eddy_tensor *tensor; /* a reference; NULL: not saved */
    uint32_t version;    /* of its storage when it was saved */
    uint32_t result;     /* 1 + which of the node's outputs it is; 0: none */
} eddy_autograd_saved;

typedef struct eddy_autograd_node {
    _Atomic uint32_t references;
    uint32_t input_count, output_count, extra_count, list_count;
    const eddy_op *op; /* NULL: a leaf */
    const void *address;
    eddy_autograd *edges;      /* per input: what made it, a reference; 0 where no gradient goes */
    eddy_autograd_spec *specs; /* inputs, then outputs */
    int64_t *dims;
    int64_t *list_counts;
    void *attributes;
    eddy_device device;
    size_t bytes; /* of the block */

    eddy_lock lock;
    bool is_spent; /* lock: lock */
    bool is_stale; /* lock: lock; what it saved was overwritten, and is gone (stale.h) */
    eddy_autograd_saved
        *saved; /* lock: lock; inputs, outputs, then what else a custom function saved */
    eddy_tensor *
        *kept; /* lock: lock; per output: the gradient kept for the user (leaves, eddy_grad_keep) */
    bool *keeps;               /* lock: lock; per output */
    eddy_autograd_hook *hooks; /* lock: lock; in the order they were added */

    struct eddy_autograd_node *next_freed, *next_stale; /* who frees it; who found it to be stale */
    struct eddy_autograd_node *next_swept;              /* lock: that of the sweep (stale.c) */
    uint64_t sweep; /* lock: that of the sweep; the last one that came by */
} eddy_autograd_node;

/* ---- words ---- */

static inline eddy_autograd_node *eddy_autograd_node_of(eddy_autograd word) {
    return (eddy_autograd_node *)(word & ~(uintptr_t)(EDDY_CACHE_LINE - 1));
}

static inline uint32_t eddy_autograd_output_of(eddy_autograd word) {
    return (uint32_t)(word & (EDDY_CACHE_LINE - 1));
}

static inline eddy_autograd eddy_autograd_make(eddy_autograd_node *node, uint32_t output) {
    return (uintptr_t)node | output;
}

static inline void eddy_autograd_node_retain(eddy_autograd_node *node) {
    eddy_add_relaxed(&node->references, 1u);
}
/* Any thread, never fails. */
void eddy_autograd_node_release(eddy_autograd_node *node);

/* How many slots `saved` has. */
static inline uint32_t eddy_autograd_saved_count(const eddy_autograd_node *node) {
    return node->input_count + node->output_count + node->extra_count;
}

static inline bool eddy_autograd_is_leaf(const eddy_autograd_node *node) {
    return node->op == NULL;
}

void eddy_autograd_spec_of(const eddy_autograd_node *node, uint32_t i, eddy_spec *spec);

/* ---- making nodes ---- */

typedef struct eddy_autograd_size {
    uint32_t inputs, outputs, extras, lists;
    size_t dims; /* of all inputs and outputs together, at most */
    size_t attribute_bytes;
} eddy_autograd_size;

/* A node with one reference and nothing in it. NULL, nothing recorded, without memory. */
eddy_autograd_node *eddy_autograd_node_make(const eddy_autograd_size *size);
/* Notes dtype and shape of input i, or output i - input_count; *dims_at: how many dims are written. */
void eddy_autograd_node_note(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor,
                             uint32_t *dims_at);
/* Gradients go back from input i to what made `tensor`. */
void eddy_autograd_node_link(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor);
/* `tensor` comes from an output of the node, if it is of a dtype that has gradients. */
void eddy_autograd_node_name(eddy_autograd_node *node, uint32_t output, eddy_tensor *tensor);

/* ---- recording ---- */

/* Whether the call has to be recorded. */
bool eddy_autograd_is_wanted(const eddy_caller *caller, const eddy_apply *apply);
/* The call, recorded. */
EDDY_MUST_USE eddy_status eddy_autograd_apply(eddy_caller *caller, const eddy_apply *apply);
/* A view that was made of `tensor`; attributes as its kind has them. */
EDDY_MUST_USE eddy_status eddy_autograd_view(eddy_tensor *tensor, eddy_tensor *view,
                                             eddy_view_kind kind, const void *attributes,
                                             const void *address);
/* Another handle of a tensor, for the user: one reference, no scope yet but room in the innermost. It names no node. NULL, recorded
 * under `op`, without memory. */
eddy_tensor *eddy_autograd_hand_out(eddy_caller *caller, const eddy_tensor *tensor,
                                    eddy_origin origin);
/* Lets a new handle come from where `tensor` does. */
void eddy_autograd_follow(eddy_tensor *handle, const eddy_tensor *tensor);
/* Lets a tensor come from an output of a node, or (0) from nowhere. */
void eddy_autograd_set(eddy_tensor *tensor, eddy_autograd word);

#endif
