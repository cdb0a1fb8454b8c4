#include <interpreter/tape/overwritten.h>

static eddy_lock sweeping;
static uint64_t sweeps; /* lock: sweeping */

static void push(eddy_autograd_node **stack, eddy_autograd word, const eddy_autograd_node *before) {
    eddy_autograd_node *node = word ? eddy_autograd_node_of(word) : NULL;
    if (!node || node == before || node->sweep == sweeps)
        return;
    node->sweep = sweeps;
    node->next_swept = *stack;
    *stack = node;
}

/* Pushes the nodes at the end of the edges on the stack, each once, and those that the node leads to since it was unfolded. The node to which the target referred so far is left out, with
 * all behind it: these were recorded before the target was made, or a sweep visited them when it was last written to. */
static void push_sources(eddy_autograd_node **stack, eddy_autograd_node *node,
                         const eddy_autograd_node *before) {
    for (uint32_t i = 0; i < node->input_count; i++)
        push(stack, node->edges[i], before);
    eddy_lock_acquire(&node->lock);
    for (uint32_t i = 0; i < node->output_count && node->unfolded; i++)
        push(stack, node->unfolded[i], before);
    eddy_lock_release(&node->lock);
}

/* Whether the node becomes stale now. */
static bool find_stale(eddy_autograd_node *node, const eddy_tensor *root) {
    bool is_found = false;
    eddy_lock_acquire(&node->lock);
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node) && !is_found && !node->is_stale; i++) {
        const eddy_tensor *saved = node->saved[i].tensor;
        is_found = saved && !eddy_tensor_is_none(saved) && saved->root == root;
    }
    node->is_stale |= is_found;
    eddy_lock_release(&node->lock);
    return is_found;
}

/* All saved tensors: no pass can use the node without the overwritten one. */
static void drop_saved(eddy_autograd_node *node) {
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++) {
        eddy_lock_acquire(&node->lock);
        eddy_tensor *saved = node->saved[i].tensor;
        node->saved[i].tensor = NULL;
        eddy_lock_release(&node->lock);
        if (saved && !eddy_tensor_is_none(saved))
            eddy_tensor_drop(saved);
    }
}

void eddy_overwritten_sweep(eddy_autograd_node *node, const eddy_tensor *target) {
    const eddy_autograd_node *before =
        target->autograd ? eddy_autograd_node_of(target->autograd) : NULL;
    eddy_autograd_node *stack = NULL, *stale = NULL;
    eddy_lock_acquire(&sweeping);
    sweeps++;
    push_sources(&stack, node, before);
    while (stack) {
        eddy_autograd_node *at = stack;
        stack = at->next_swept;
        push_sources(&stack, at, before);
        if (find_stale(at, target->root)) {
            at->next_stale = stale;
            stale = at;
        }
    }
    eddy_lock_release(&sweeping);
    /* `node` keeps them alive. Releasing a last reference may call a hook's destroy, so no lock is held. */
    while (stale) {
        eddy_autograd_node *at = stale;
        stale = at->next_stale;
        drop_saved(at);
    }
}

void eddy_overwritten_fork_child(void) {
    sweeping = (eddy_lock){0};
}
