/* Gradients that the tape keeps for the user, and hooks on them. */
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/autograd.h>

/* Finds the node of a tensor that must require a gradient. */
static eddy_status find_node(const eddy_tensor *tensor, eddy_origin origin,
                             eddy_autograd_node **node) {
    eddy_status status = eddy_autograd_check_thread(origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    if (!tensor->autograd)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the tensor requires no gradient");
    *node = eddy_autograd_node_of(tensor->autograd);
    return EDDY_OK;
}

/* All tensors of a list must require one. */
static eddy_status check_list(eddy_list tensors, const char *name, eddy_origin origin) {
    eddy_status status = eddy_autograd_check_thread(origin);
    if (status != EDDY_OK)
        return status;
    if (tensors.count < 0 || tensors.count > UINT32_MAX || (tensors.count > 0 && !tensors.items))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a list without items");
    for (int64_t i = 0; i < tensors.count; i++) {
        status = eddy_tensor_check_item(tensors.items[i], name, i, origin);
        if (status != EDDY_OK)
            return status;
        if (!tensors.items[i]->autograd)
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s[%lld] requires no gradient", name,
                             (long long)i);
    }
    return EDDY_OK;
}

/* A reference of the gradient kept for a tensor; NULL if there is none. */
static eddy_tensor *kept_of(const eddy_tensor *tensor) {
    eddy_autograd_node *node = eddy_autograd_node_of(tensor->autograd);
    uint32_t output = eddy_autograd_output_of(tensor->autograd);
    eddy_lock_acquire(&node->lock);
    eddy_tensor *kept = node->kept[output];
    if (kept)
        eddy_tensor_retain(kept);
    eddy_lock_release(&node->lock);
    eddy_recorder_found(eddy_caller_self, node, output, kept);
    return kept;
}

/* A new handle of the gradient, without a scope; releases the given reference. NULL, recorded, without memory. */
static eddy_tensor *show_kept(eddy_tensor *kept, eddy_origin origin) {
    eddy_tensor *handle = eddy_autograd_hand_out(eddy_caller_self, kept, origin);
    if (handle)
        eddy_autograd_follow(handle, kept);
    eddy_tensor_drop(kept);
    return handle;
}

eddy_tensor *eddy_grad_of(eddy_tensor *tensor) {
    eddy_origin origin = EDDY_ORIGIN("grad_of");
    eddy_autograd_node *node = NULL;
    if (find_node(tensor, origin, &node) != EDDY_OK)
        return NULL;
    eddy_tensor *kept = kept_of(tensor);
    if (!kept) {
        eddy_fail(
            EDDY_INVALID_ARGUMENT, origin, "there is none: nothing has gone back to this tensor%s",
            eddy_autograd_is_leaf(node) ? "" : ", which is no leaf (eddy_grad_keep keeps it)");
        return NULL;
    }
    eddy_tensor *handle = show_kept(kept, origin);
    if (handle)
        eddy_scope_own(eddy_caller_self, handle);
    return handle;
}

static void discard_grads(eddy_tensor **grads, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!eddy_tensor_is_none(grads[i]))
            eddy_tensor_drop(grads[i]);
}

/* Fills `made`, all or nothing. */
static eddy_status show_grads(eddy_list params, eddy_tensor **made, eddy_origin origin) {
    for (int64_t i = 0; i < params.count; i++) {
        eddy_tensor *kept = kept_of(params.items[i]);
        made[i] = kept ? show_kept(kept, origin) : EDDY_NONE;
        if (!made[i]) {
            discard_grads(made, i);
            return EDDY_OUT_OF_MEMORY;
        }
    }
    if (eddy_scope_reserve(eddy_caller_self, (uint32_t)params.count))
        return EDDY_OK;
    discard_grads(made, params.count);
    return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "the scope cannot grow");
}

eddy_status eddy_grads_of(eddy_list params, eddy_tensor **grads) {
    eddy_origin origin = EDDY_ORIGIN("grads_of");
    eddy_status status = check_list(params, "params", origin);
    if (status != EDDY_OK || params.count == 0)
        return status;
    if (!grads)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no room for the gradients");
    size_t bytes = (size_t)params.count * sizeof(*grads);
    eddy_tensor **made = eddy_caller_scratch_begin(eddy_caller_self, bytes);
    if (!made)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the list");
    status = show_grads(params, made, origin);
    for (int64_t i = 0; i < params.count && status == EDDY_OK; i++) {
        grads[i] = made[i];
        if (!eddy_tensor_is_none(made[i]))
            eddy_scope_own(eddy_caller_self, made[i]);
    }
    eddy_caller_scratch_end(eddy_caller_self, made, bytes);
    return status;
}

bool eddy_has_grad(const eddy_tensor *tensor) {
    if (eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("has_grad")) != EDDY_OK ||
        !tensor->autograd)
        return false;
    eddy_tensor *kept = kept_of(tensor);
    if (kept)
        eddy_tensor_drop(kept);
    return kept != NULL;
}

eddy_status eddy_autograd_check_whole(const eddy_tensor *tensor, eddy_origin origin) {
    const eddy_autograd_node *node = eddy_autograd_node_of(tensor->autograd);
    uint32_t output = eddy_autograd_output_of(tensor->autograd);
    if (output >= 32 || !(node->inner_outputs >> output & 1))
        return EDDY_OK;
    return eddy_fail(EDDY_UNSUPPORTED, origin,
                     "a part of this gradient stays within the program that gave the tensor, since "
                     "another of its outputs was computed from it: detach that one, or do not give "
                     "it out");
}

eddy_status eddy_grad_keep(eddy_tensor *tensor) {
    eddy_autograd_node *node = NULL;
    eddy_origin origin = EDDY_ORIGIN("grad_keep");
    eddy_status status = find_node(tensor, origin, &node);
    if (status == EDDY_OK)
        status = eddy_autograd_check_whole(tensor, origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_recorder_watch(eddy_caller_self, node, origin))
        return EDDY_OK;
    eddy_lock_acquire(&node->lock);
    node->keeps[eddy_autograd_output_of(tensor->autograd)] = true;
    eddy_lock_release(&node->lock);
    eddy_autograd_note_change();
    return EDDY_OK;
}

eddy_status eddy_grads_zero(eddy_list tensors) {
    eddy_origin origin = EDDY_ORIGIN("grads_zero");
    eddy_status status = check_list(tensors, "tensors", origin);
    if (status != EDDY_OK)
        return status;
    for (int64_t i = 0; i < tensors.count; i++) {
        eddy_autograd_node *node = eddy_autograd_node_of(tensors.items[i]->autograd);
        eddy_tensor **place = &node->kept[eddy_autograd_output_of(tensors.items[i]->autograd)];
        eddy_lock_acquire(&node->lock);
        eddy_tensor *kept = *place;
        *place = NULL;
        eddy_lock_release(&node->lock);
        eddy_recorder_keep(eddy_caller_self, node,
                           eddy_autograd_output_of(tensors.items[i]->autograd), kept, NULL);
        if (kept)
            eddy_tensor_drop(kept);
    }
    return EDDY_OK;
}

void eddy_autograd_kept_set(eddy_autograd_node *node, uint32_t output, eddy_tensor *gradient) {
    eddy_lock_acquire(&node->lock);
    eddy_tensor *before = node->kept[output];
    node->kept[output] = gradient;
    eddy_lock_release(&node->lock);
    if (before)
        eddy_tensor_drop(before);
}

eddy_status eddy_grad_hook_add(eddy_tensor *tensor, eddy_grad_hook *hook, void *context,
                               void (*destroy)(void *context)) {
    eddy_origin origin = EDDY_ORIGIN("grad_hook_add");
    eddy_autograd_node *node = NULL;
    eddy_status status = find_node(tensor, origin, &node);
    if (status == EDDY_OK)
        status = eddy_autograd_check_whole(tensor, origin);
    if (status != EDDY_OK)
        return status;
    if (!hook)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the hook is NULL");
    if (!eddy_recorder_watch(eddy_caller_self, node, origin)) {
        if (destroy)
            destroy(context);
        return EDDY_OK;
    }
    eddy_autograd_note_change();
    eddy_autograd_hook *made = eddy_memory_acquire(sizeof(*made), EDDY_MEMORY_TAPE);
    if (!made)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    *made = (eddy_autograd_hook){.run = hook,
                                 .context = context,
                                 .destroy = destroy,
                                 .output = eddy_autograd_output_of(tensor->autograd)};
    eddy_lock_acquire(&node->lock);
    eddy_autograd_hook **last = &node->hooks;
    while (*last)
        last = &(*last)->next;
    *last = made;
    eddy_lock_release(&node->lock);
    return EDDY_OK;
}
