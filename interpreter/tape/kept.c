/* Gradients that the tape keeps for the user, and hooks on them. */
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/unfold.h>

/* Finds the node of a tensor that must require a gradient. */
static eddy_status find_node(const eddy_tensor *tensor, eddy_origin origin,
                             eddy_autograd_node **node) {
    eddy_status status = eddy_autograd_check_thread(origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    eddy_recorder_ask(eddy_caller_self, tensor);
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
        eddy_recorder_ask(eddy_caller_self, tensors.items[i]);
        if (!tensors.items[i]->autograd)
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s[%lld] requires no gradient", name,
                             (long long)i);
    }
    return EDDY_OK;
}

/* Where the gradient for an output is kept; lock: that of its node. */
static eddy_tensor **place_of(eddy_autograd word) {
    return &eddy_autograd_node_of(word)->kept[eddy_autograd_output_of(word)];
}

/* A reference of the gradient kept for a tensor; NULL if there is none. */
static eddy_tensor *kept_of(const eddy_tensor *tensor) {
    eddy_autograd word = eddy_autograd_lock(tensor->autograd);
    eddy_tensor *kept = *place_of(word);
    if (kept)
        eddy_tensor_retain(kept);
    eddy_autograd_unlock(word);
    eddy_recorder_found(eddy_caller_self, eddy_autograd_node_of(word),
                        eddy_autograd_output_of(word), kept);
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
    if (eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("has_grad")) != EDDY_OK)
        return false;
    eddy_recorder_ask(eddy_caller_self, tensor);
    if (!tensor->autograd)
        return false;
    eddy_tensor *kept = kept_of(tensor);
    if (kept)
        eddy_tensor_drop(kept);
    return kept != NULL;
}

eddy_status eddy_autograd_check_whole(const eddy_tensor *tensor, eddy_origin origin) {
    eddy_autograd word = eddy_unfold_end(tensor->autograd);
    eddy_autograd_node *node = eddy_autograd_node_of(word);
    uint32_t output = eddy_autograd_output_of(word);
    const eddy_autograd *unfolded;
    if (!(node->inner_outputs >> output & 1))
        return EDDY_OK;
    if (eddy_unfold_find(node, true, &unfolded) != EDDY_OK)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the calls of a run");
    if (unfolded)
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
    eddy_autograd word = eddy_autograd_lock(tensor->autograd);
    eddy_autograd_node_of(word)->keeps[eddy_autograd_output_of(word)] = true;
    eddy_autograd_unlock(word);
    eddy_autograd_note_change();
    return EDDY_OK;
}

/* The one that was kept, with its reference. */
static eddy_tensor *exchange(eddy_autograd *word, eddy_tensor *gradient) {
    *word = eddy_autograd_lock(*word);
    eddy_tensor *before = *place_of(*word);
    *place_of(*word) = gradient;
    eddy_autograd_unlock(*word);
    return before;
}

void eddy_autograd_kept_set(eddy_autograd_node *node, uint32_t output, eddy_tensor *gradient) {
    eddy_autograd word = eddy_autograd_make(node, output);
    eddy_tensor *before = exchange(&word, gradient);
    if (before)
        eddy_tensor_drop(before);
}

void eddy_autograd_kept_replace(eddy_caller *caller, eddy_autograd word, eddy_tensor *gradient) {
    eddy_tensor *before = exchange(&word, gradient);
    eddy_recorder_keep(caller, eddy_autograd_node_of(word), eddy_autograd_output_of(word), before,
                       gradient);
    if (before)
        eddy_tensor_drop(before);
}

eddy_status eddy_grads_zero(eddy_list tensors) {
    eddy_origin origin = EDDY_ORIGIN("grads_zero");
    eddy_status status = check_list(tensors, "tensors", origin);
    if (status != EDDY_OK)
        return status;
    for (int64_t i = 0; i < tensors.count; i++)
        eddy_autograd_kept_replace(eddy_caller_self, tensors.items[i]->autograd, NULL);
    return EDDY_OK;
}

/* A reference of a gradient to which only the tape refers, so that it may be added to in place. */
static eddy_status own(eddy_tensor *gradient, bool creates, eddy_tensor **mine) {
    bool is_sole = eddy_load_acquire(&gradient->references) == 1 && gradient->root == gradient;
    eddy_status status = EDDY_OK;
    *mine = gradient;
    if (!is_sole && !creates)
        status = eddy_gradient_ops_table.clone(gradient, mine);
    if (status == EDDY_OK)
        eddy_tensor_retain(*mine);
    return status;
}

/* What is kept next, a reference; kept: so far, or NULL. */
static eddy_status find_next(eddy_tensor *kept, eddy_tensor *gradient, bool creates,
                             eddy_tensor **next) {
    if (!kept)
        return own(gradient, creates, next);
    eddy_status status = eddy_gradient_ops_table.add(kept, gradient, next);
    if (status == EDDY_OK)
        eddy_tensor_retain(*next);
    return status;
}

/* Puts `next` in the place of `kept`. False where another pass has stored a gradient there meanwhile. */
static bool replace(eddy_caller *caller, eddy_autograd word, eddy_tensor *kept, eddy_tensor *next) {
    word = eddy_autograd_lock(word);
    bool is_same = *place_of(word) == kept;
    if (is_same)
        *place_of(word) = next;
    eddy_autograd_unlock(word);
    if (!is_same)
        return false;
    eddy_recorder_keep(caller, eddy_autograd_node_of(word), eddy_autograd_output_of(word), kept,
                       next);
    return true;
}

eddy_status eddy_autograd_kept_add(eddy_caller *caller, eddy_autograd word, eddy_tensor *gradient,
                                   bool creates) {
    for (;;) {
        word = eddy_autograd_lock(word);
        eddy_tensor *kept = *place_of(word), *next = NULL;
        if (kept)
            eddy_tensor_retain(kept);
        eddy_autograd_unlock(word);
        bool is_added_to = kept && !creates;
        if (is_added_to)
            eddy_recorder_found(caller, eddy_autograd_node_of(word), eddy_autograd_output_of(word),
                                kept);
        eddy_status status = is_added_to ? eddy_gradient_ops_table.add_to(kept, gradient)
                                         : find_next(kept, gradient, creates, &next);
        bool is_done = status != EDDY_OK || is_added_to, is_kept = false;
        if (!is_done)
            is_done = is_kept = replace(caller, word, kept, next);
        if (kept)
            eddy_tensor_drop(kept);
        if (kept && is_kept)
            eddy_tensor_drop(kept); /* the node's */
        if (is_done)
            return status;
        eddy_tensor_drop(next);
    }
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
    *made = (eddy_autograd_hook){.run = hook, .context = context, .destroy = destroy};
    eddy_autograd word = eddy_autograd_lock(tensor->autograd);
    made->output = eddy_autograd_output_of(word);
    eddy_autograd_hook **last = &eddy_autograd_node_of(word)->hooks;
    while (*last)
        last = &(*last)->next;
    *last = made;
    eddy_autograd_unlock(word);
    return EDDY_OK;
}

/* The hook of an output that comes after `count` others of it; NULL if there are no more. By number, since hooks move to another node when
 * theirs is unfolded. */
static eddy_autograd_hook *hook_at(eddy_autograd word, uint32_t count) {
    word = eddy_autograd_lock(word);
    uint32_t output = eddy_autograd_output_of(word);
    eddy_autograd_hook *hook = eddy_autograd_node_of(word)->hooks;
    while (hook && (hook->output != output || count-- > 0))
        hook = hook->next;
    eddy_autograd_unlock(word);
    return hook;
}

static bool is_like(const eddy_tensor *tensor, eddy_autograd word) {
    const eddy_autograd_node *node = eddy_autograd_node_of(word);
    eddy_spec spec;
    eddy_autograd_spec_of(node, node->input_count + eddy_autograd_output_of(word), &spec);
    return !eddy_tensor_is_none(tensor) && eddy_autograd_has_spec(tensor, &spec) &&
           eddy_autograd_is_beside(tensor, word);
}

eddy_status eddy_autograd_hooks_run(eddy_autograd word, eddy_tensor **gradient,
                                    eddy_origin origin) {
    eddy_autograd_hook *hook;
    for (uint32_t count = 0; (hook = hook_at(word, count)) != NULL; count++) {
        eddy_tensor *other = hook->run(hook->context, *gradient);
        if (!other)
            continue;
        if (!is_like(other, word)) {
            eddy_release(&other);
            return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                             "a hook returned a gradient of another shape, dtype or device");
        }
        eddy_tensor_drop(*gradient);
        eddy_tensor_retain(other);
        *gradient = other;
        eddy_release(&other);
    }
    return EDDY_OK;
}
