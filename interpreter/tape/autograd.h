/* The tape: the calls on tensors that require a gradient, and the calls that made their operands.
 *
 * A node is one call, or one leaf. A handle refers to the node that made it (eddy_autograd: node and output in one word) and holds
 * a reference; a node does so for each operand that another node made. A node never refers to a handle that refers to it: a
 * recorded call makes an internal handle, and the user gets a second handle of the same tensor, which refers to the node. Nodes
 * are const once recorded, except the fields that `lock` protects.
 *
 *   RECORDED --backward pass--> SPENT (saved tensors are released)      a leaf stays RECORDED
 *   RECORDED --a recorded call overwrites a saved tensor--> STALE (they are released, too)
 *   RECORDED, a run of a program --a pass needs the run's calls--> leads to their nodes (unfold.h)
 *   any --last reference--> freed, and then the nodes it referred to, in a loop without recursion (chains may be 10^6 long)
 *
 * Threads: any. Two backward passes through a node at once each take their own references of the saved tensors under `lock`; one that
 * comes after they were released fails. */
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
    int8_t rank;                      /* -1: absent, or of a shape not yet known */
    int8_t device_kind, device_index; /* of an output */
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
    uint32_t result;     /* 1 + the index among the node's outputs; 0: none */
} eddy_autograd_saved;

struct eddy_autograd_node;
/* Makes the nodes of the calls that a node stands for. words: of what stands for each of its outputs, with references, on success only.
 * UNSUPPORTED, nothing recorded, where they cannot be made; OUT_OF_MEMORY. */
typedef eddy_status eddy_autograd_unfold_fn(struct eddy_autograd_node *node, eddy_autograd *words);

typedef struct eddy_autograd_node {
    _Atomic uint32_t references;
    uint32_t input_count, output_count, extra_count, list_count;
    const eddy_op *op; /* NULL: a leaf */
    const void *address;
    uint64_t recording;   /* the serial of the recording in which it was made; 0: none was open */
    uint64_t recorded_at; /* that recording's events so far */
    eddy_autograd
        *edges; /* per input: the node that made it, a reference; 0 if it needs no gradient */
    eddy_autograd_spec *specs; /* inputs, then outputs */
    int64_t *dims;
    int64_t *list_counts;
    void *attributes;
    eddy_device device;
    size_t bytes; /* of the block */
    uint64_t
        inner_outputs; /* a bit for each output that another one was computed from within this op: its whole gradient shows nowhere */
    bool
        takes_missing; /* its gradient is given none, instead of zeros, for outputs to which none goes back */
    eddy_autograd_unfold_fn *unfold; /* NULL: it stands for no other calls (unfold.h) */
    bool unfolds_always; /* by whichever pass comes first, not only by one with creates_graph */

    eddy_lock lock;
    bool is_spent; /* lock: lock */
    bool
        is_stale; /* lock: lock; a saved tensor was overwritten, and all were released (overwritten.h) */
    eddy_autograd_saved
        *saved; /* lock: lock; inputs, outputs, then other tensors that a custom function saved */
    eddy_tensor *
        *kept; /* lock: lock; per output: the gradient kept for the user (leaves, eddy_grad_keep) */
    bool *keeps;               /* lock: lock; per output */
    eddy_autograd_hook *hooks; /* lock: lock; in the order they were added */
    eddy_autograd *unfolded;   /* lock: lock; per output: what stands for it now, a reference; NULL:
                                  the node itself. It stays once it is there */

    struct eddy_autograd_node *next_freed,
        *next_stale; /* lists of the thread that frees it, and of the thread that found it stale */
    struct eddy_autograd_node *next_swept; /* lock: that of the sweep (overwritten.c) */
    uint64_t sweep; /* lock: that of the sweep; the last sweep that visited it */
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

/* The number of slots of `saved`. */
static inline uint32_t eddy_autograd_saved_count(const eddy_autograd_node *node) {
    return node->input_count + node->output_count + node->extra_count;
}

static inline bool eddy_autograd_is_leaf(const eddy_autograd_node *node) {
    return node->op == NULL;
}

void eddy_autograd_spec_of(const eddy_autograd_node *node, uint32_t i, eddy_spec *spec);
bool eddy_autograd_has_spec(const eddy_tensor *tensor, const eddy_spec *spec);
/* Where the output lies that the word names, and its gradient has to. */
eddy_device eddy_autograd_device_of(eddy_autograd word);
bool eddy_autograd_is_beside(const eddy_tensor *gradient, eddy_autograd word);

/* Locks the node that a word leads to now (unfold.h), and returns the word of that. The caller holds a reference of the word's node. */
static inline eddy_autograd eddy_autograd_lock(eddy_autograd word) {
    for (;;) {
        eddy_autograd_node *node = eddy_autograd_node_of(word);
        eddy_lock_acquire(&node->lock);
        if (!node->unfolded)
            return word;
        word = node->unfolded[eddy_autograd_output_of(word)];
        eddy_lock_release(&node->lock);
    }
}

static inline void eddy_autograd_unlock(eddy_autograd word) {
    eddy_lock_release(&eddy_autograd_node_of(word)->lock);
}

/* Replaces the gradient that is kept for an output; takes the reference of `gradient`, NULL for none. */
void eddy_autograd_kept_set(eddy_autograd_node *node, uint32_t output, eddy_tensor *gradient);
/* The same of a word, as what the thread does: a recording sees it. */
void eddy_autograd_kept_replace(eddy_caller *caller, eddy_autograd word, eddy_tensor *gradient);
/* Adds a gradient that a pass has found to the one that is kept for an output. creates: by a call that is recorded. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_autograd_kept_add(eddy_caller *caller, eddy_autograd word,
                                                 eddy_tensor *gradient, bool creates);
/* Runs the hooks of an output; replaces *gradient, a reference, by what they return. Failures are recorded. */
EDDY_MUST_USE eddy_status eddy_autograd_hooks_run(eddy_autograd word, eddy_tensor **gradient,
                                                  eddy_origin origin);

/* ---- making nodes ---- */

typedef struct eddy_autograd_size {
    uint32_t inputs, outputs, extras, lists;
    size_t dims; /* of all inputs and outputs together, at most */
    size_t attribute_bytes;
} eddy_autograd_size;

/* An empty node with one reference. NULL, nothing recorded, without memory. */
eddy_autograd_node *eddy_autograd_node_make(const eddy_autograd_size *size);
/* A node of the same call of an op, with one reference: without edges, tensors and hooks, and of no recording. NULL as above. */
eddy_autograd_node *eddy_autograd_node_copy(const eddy_autograd_node *node);
/* Stores dtype and shape of input i, or output i - input_count; *dims_at: the number of dims written. */
void eddy_autograd_node_note(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor,
                             uint32_t *dims_at);
/* Makes gradients of input i go to the node that made `tensor`. */
void eddy_autograd_node_link(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor);
/* Makes `tensor` refer to an output of the node, if its dtype has gradients. */
void eddy_autograd_node_name(eddy_autograd_node *node, uint32_t output, eddy_tensor *tensor);

/* ---- recording ---- */

/* Whether the call has to be recorded. */
bool eddy_autograd_is_wanted(const eddy_caller *caller, const eddy_apply *apply);
/* Makes the call and records it. */
EDDY_MUST_USE eddy_status eddy_autograd_apply(eddy_caller *caller, const eddy_apply *apply);
/* Records a view of `tensor`, with the attributes of its kind. */
EDDY_MUST_USE eddy_status eddy_autograd_view(eddy_tensor *tensor, eddy_tensor *view,
                                             eddy_view_kind kind, const void *attributes,
                                             const void *address);
/* Another handle of a tensor, for the user: one reference, no scope yet but room in the innermost. It refers to no node. NULL, recorded
 * under `op`, without memory. */
eddy_tensor *eddy_autograd_hand_out(eddy_caller *caller, const eddy_tensor *tensor,
                                    eddy_origin origin);
/* Makes a new handle refer to the node of `tensor`. */
void eddy_autograd_follow(eddy_tensor *handle, const eddy_tensor *tensor);
/* Makes a tensor refer to an output of a node, or (0) to none. */
void eddy_autograd_set(eddy_tensor *tensor, eddy_autograd word);

/* Counts what changes who gets a gradient and who sees it (leaves, hooks, requests to keep one), by any thread. That a view becomes a leaf, or is
 * none any more, shows at no root: the root counts it (view_leaves). */
uint64_t eddy_autograd_changes(void);
void eddy_autograd_note_change(void);
/* The tensor becomes a leaf, or is none any more. */
void eddy_autograd_note_leaf(const eddy_tensor *tensor);

/* OK unless the calling thread may only retain and release; recorded under the origin. */
EDDY_MUST_USE eddy_status eddy_autograd_check_thread(eddy_origin origin);
/* OK if all of the gradient of a tensor that wants one shows: of an output of a program's run from which another output was computed, once the run is
 * unfolded, which this does. UNSUPPORTED, recorded, where it cannot be: a part of the gradient stays within the run. */
EDDY_MUST_USE eddy_status eddy_autograd_check_whole(const eddy_tensor *tensor, eddy_origin origin);

#endif
