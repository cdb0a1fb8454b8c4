#include <interpreter/tape/unfold.h>

#include <base/memory.h>

void eddy_unfold_drop(eddy_autograd *words, uint32_t count) {
    if (!words)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (words[i])
            eddy_autograd_node_release(eddy_autograd_node_of(words[i]));
    eddy_memory_release(words, count * sizeof(*words), EDDY_MEMORY_TAPE);
}

/* ---- unfolding ---- */

/* The hooks of an output go to the end of those of the call, which nobody else knows yet. */
static void move_hooks(eddy_autograd_node *node, uint32_t output, eddy_autograd to) {
    eddy_autograd_hook **place = &node->hooks, **last = &eddy_autograd_node_of(to)->hooks;
    while (*last)
        last = &(*last)->next;
    while (*place) {
        eddy_autograd_hook *hook = *place;
        if (hook->output != output) {
            place = &hook->next;
            continue;
        }
        *place = hook->next;
        hook->next = NULL;
        hook->output = eddy_autograd_output_of(to);
        *last = hook;
        last = &hook->next;
    }
}

/* lock: node->lock. Of the calls nobody else knows yet. */
static void publish(eddy_autograd_node *node, eddy_autograd *words) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        eddy_autograd_node *call = eddy_autograd_node_of(words[i]);
        uint32_t output = eddy_autograd_output_of(words[i]);
        call->kept[output] = node->kept[i];
        call->keeps[output] = node->keeps[i];
        node->kept[i] = NULL;
        move_hooks(node, i, words[i]);
    }
    node->unfolded = words;
}

eddy_status eddy_unfold_find(eddy_autograd_node *node, bool creates, const eddy_autograd **words) {
    eddy_lock_acquire(&node->lock);
    *words = node->unfolded;
    bool is_usable = !node->is_spent && !node->is_stale;
    eddy_lock_release(&node->lock);
    if (*words || !creates || !node->unfold || !is_usable)
        return EDDY_OK;
    eddy_autograd *made =
        eddy_memory_acquire_zeroed(node->output_count * sizeof(*made), EDDY_MEMORY_TAPE);
    eddy_status status = made ? node->unfold(node, made) : EDDY_OUT_OF_MEMORY;
    eddy_lock_acquire(&node->lock);
    /* Another thread may have been faster, or have overwritten what the calls have saved. */
    bool is_wanted = status == EDDY_OK && !node->unfolded && !node->is_stale;
    if (is_wanted)
        publish(node, made);
    *words = node->unfolded;
    eddy_lock_release(&node->lock);
    if (!is_wanted)
        eddy_unfold_drop(made, node->output_count);
    return status == EDDY_UNSUPPORTED ? EDDY_OK : status;
}

eddy_autograd eddy_unfold_end(eddy_autograd word) {
    word = eddy_autograd_lock(word);
    eddy_autograd_unlock(word);
    return word;
}

void eddy_unfold_spend(eddy_autograd_node *node) {
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++) {
        eddy_lock_acquire(&node->lock);
        eddy_tensor *saved = node->saved[i].tensor;
        node->saved[i].tensor = NULL;
        node->is_spent |= saved != NULL;
        eddy_lock_release(&node->lock);
        if (saved && !eddy_tensor_is_none(saved))
            eddy_tensor_drop(saved);
    }
}
