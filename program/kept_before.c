#include <program/kept_before.h>

static eddy_kept_before *at(const eddy_code_array *befores, uint32_t i) {
    return (eddy_kept_before *)befores->items + i;
}

bool eddy_kept_before_note(eddy_code_array *befores, eddy_autograd_node *node, uint32_t output,
                           const eddy_tensor *gradient, bool depends) {
    uint32_t index;
    for (uint32_t i = 0; i < befores->count; i++)
        if (at(befores, i)->node == node && at(befores, i)->output == output)
            return true;
    if (!eddy_code_array_add(befores, sizeof(eddy_kept_before), 1, &index))
        return false;
    eddy_kept_before *before = at(befores, index);
    *before = (eddy_kept_before){.node = node, .output = output, .state = EDDY_KEPT_ANY};
    eddy_autograd_node_retain(node);
    if (depends)
        before->state = gradient ? EDDY_KEPT_ONE : EDDY_KEPT_NONE;
    if (depends && gradient) {
        before->root = gradient->root;
        eddy_tensor_retain(before->root);
    }
    return true;
}

bool eddy_kept_before_copy(eddy_code_array *to, const eddy_code_array *from) {
    for (uint32_t i = 0; i < from->count; i++) {
        const eddy_kept_before *before = at(from, i);
        if (!eddy_kept_before_note(to, before->node, before->output, before->root, true))
            return false;
        at(to, i)->state = before->state;
    }
    return true;
}

void eddy_kept_before_forget(eddy_kept_before *before) {
    if (before->root)
        eddy_tensor_drop(before->root);
    before->root = NULL;
}

void eddy_kept_before_fini(eddy_code_array *befores) {
    for (uint32_t i = 0; i < befores->count; i++) {
        eddy_kept_before_forget(at(befores, i));
        eddy_autograd_node_release(at(befores, i)->node);
    }
    eddy_code_array_fini(befores, sizeof(eddy_kept_before));
}

bool eddy_kept_before_has_one_of(const eddy_code_array *befores, eddy_list tensors) {
    for (uint32_t i = 0; i < befores->count; i++) {
        eddy_autograd word = eddy_autograd_make(at(befores, i)->node, at(befores, i)->output);
        for (int64_t k = 0; k < tensors.count; k++)
            if (tensors.items[k]->autograd == word)
                return true;
    }
    return false;
}

bool eddy_kept_before_is_equal(const eddy_code_array *a, const eddy_code_array *b) {
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const eddy_kept_before *x = at(a, i), *y = at(b, i);
        if (x->node != y->node || x->output != y->output || x->state != y->state ||
            x->root != y->root)
            return false;
    }
    return true;
}

static bool holds(const eddy_kept_before *before) {
    eddy_autograd word = eddy_autograd_lock(eddy_autograd_make(before->node, before->output));
    const eddy_tensor *kept = eddy_autograd_node_of(word)->kept[eddy_autograd_output_of(word)];
    eddy_kept_state now = kept ? EDDY_KEPT_ONE : EDDY_KEPT_NONE;
    bool is_same = before->state == EDDY_KEPT_ANY ||
                   (before->state == now && (!before->root || before->root == kept->root));
    eddy_autograd_unlock(word);
    return is_same;
}

bool eddy_kept_before_holds(const eddy_code_array *befores) {
    for (uint32_t i = 0; i < befores->count; i++)
        if (!holds(at(befores, i)))
            return false;
    return true;
}
