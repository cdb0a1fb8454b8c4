#include <program/tape_seen.h>

static eddy_tape_seen *at(const eddy_code_array *all, uint32_t i) {
    return (eddy_tape_seen *)all->items + i;
}

static bool add(eddy_code_array *all, const eddy_tape_seen *seen) {
    uint32_t index;
    if (!eddy_code_array_add(all, sizeof(*seen), 1, &index))
        return false;
    *at(all, index) = *seen;
    if (seen->root)
        eddy_tensor_retain(seen->root);
    if (seen->leaf)
        eddy_autograd_node_retain(seen->leaf);
    return true;
}

bool eddy_tape_seen_note_tensor(eddy_code_array *all, const eddy_tensor *tensor) {
    eddy_tensor *root = tensor->root;
    for (uint32_t i = 0; i < all->count; i++)
        if (at(all, i)->root == root)
            return true;
    return add(all, &(eddy_tape_seen){.root = root,
                                      .autograd = root->autograd,
                                      .view_leaves = eddy_load_relaxed(&root->view_leaves)});
}

static uint32_t count_hooks(struct eddy_autograd_node *leaf) {
    uint32_t count = 0;
    eddy_lock_acquire(&leaf->lock);
    for (const eddy_autograd_hook *hook = leaf->hooks; hook; hook = hook->next)
        count++;
    eddy_lock_release(&leaf->lock);
    return count;
}

bool eddy_tape_seen_note_leaf(eddy_code_array *all, struct eddy_autograd_node *leaf) {
    for (uint32_t i = 0; i < all->count; i++)
        if (at(all, i)->leaf == leaf)
            return true;
    return add(all, &(eddy_tape_seen){.leaf = leaf, .hook_count = count_hooks(leaf)});
}

bool eddy_tape_seen_copy(eddy_code_array *to, const eddy_code_array *from) {
    for (uint32_t i = 0; i < from->count; i++)
        if (!add(to, at(from, i)))
            return false;
    return true;
}

void eddy_tape_seen_fini(eddy_code_array *all) {
    for (uint32_t i = 0; i < all->count; i++) {
        if (at(all, i)->root)
            eddy_tensor_drop(at(all, i)->root);
        if (at(all, i)->leaf)
            eddy_autograd_node_release(at(all, i)->leaf);
    }
    eddy_code_array_fini(all, sizeof(eddy_tape_seen));
}

static bool holds(const eddy_tape_seen *seen) {
    if (seen->leaf)
        return count_hooks(seen->leaf) == seen->hook_count;
    return seen->root->autograd == seen->autograd &&
           eddy_load_relaxed(&seen->root->view_leaves) == seen->view_leaves;
}

bool eddy_tape_seen_holds(const eddy_code_array *all) {
    for (uint32_t i = 0; i < all->count; i++)
        if (!holds(at(all, i)))
            return false;
    return true;
}
