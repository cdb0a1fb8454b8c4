/* Custom functions: forward at the call, backward in a backward pass. */
#include <eddy/function.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/autograd.h>
#include <interpreter/tape/function_node.h>
#include <interpreter/tape/overwritten.h>
#include <stddef.h>
#include <string.h>

/* The context of a call, which copies of its node share. */
typedef struct shared_context {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    void *context;
    void (*destroy)(void *context);
} shared_context;

/* The data that a node keeps instead of attributes. */
typedef struct custom {
    eddy_op op;
    eddy_gradient gradient;
    const eddy_function *function;
    shared_context *shared; /* the hook's */
} custom;

/* A call being made. */
typedef struct calling {
    const eddy_function *function;
    void *context;
    eddy_caller *caller;
    eddy_origin origin; /* of "custom_function", until the function's name is checked */
    eddy_list inputs;
    eddy_tensor *results[EDDY_OP_OUTPUT_MAX]; /* forward's; a scope's */
    eddy_tensor *handles[EDDY_OP_OUTPUT_MAX]; /* the user's */
    eddy_tensor **saved;                      /* a reference each */
    int64_t saved_count;
    bool is_recorded;
} calling;

static eddy_status fail(const calling *c, eddy_status status, const char *sentence) {
    return eddy_fail(status, c->origin, "%s", sentence);
}

/* ---- forward ---- */

eddy_status eddy_forward_save(eddy_forward_call *call, eddy_list tensors) {
    eddy_origin origin = EDDY_ORIGIN("forward_save");
    calling *c = call ? call->tape : NULL;
    if (!c || tensors.count < 0 || (tensors.count > 0 && !tensors.items))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no call, or a list without items");
    for (int64_t i = 0; i < tensors.count; i++) {
        eddy_status status = eddy_tensor_check_item(tensors.items[i], "tensors", i, origin);
        if (status != EDDY_OK)
            return status;
    }
    size_t bytes = (size_t)c->saved_count * sizeof(*c->saved),
           added = (size_t)tensors.count * sizeof(*c->saved);
    eddy_tensor **saved = eddy_memory_grow(c->saved, bytes, bytes + added, EDDY_MEMORY_TAPE);
    if (!saved)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    c->saved = saved;
    for (int64_t i = 0; i < tensors.count; i++) {
        eddy_tensor_retain(tensors.items[i]);
        saved[c->saved_count++] = tensors.items[i];
    }
    return EDDY_OK;
}

static void drop_saved(calling *c) {
    for (int64_t i = 0; i < c->saved_count; i++)
        eddy_tensor_drop(c->saved[i]);
    eddy_memory_release(c->saved, (size_t)c->saved_count * sizeof(*c->saved), EDDY_MEMORY_TAPE);
    c->saved = NULL;
    c->saved_count = 0;
}

static eddy_status run_forward(calling *c) {
    eddy_forward_call call = {.size = sizeof(call),
                              .context = c->context,
                              .inputs = c->inputs.items,
                              .input_count = c->inputs.count,
                              .outputs = c->results,
                              .output_count = c->function->output_count,
                              .tape = c};
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    c->caller->no_grad++;
    eddy_status status = c->function->forward(&call);
    c->caller->no_grad--;
    eddy_outcome_end(&outcome);
    bool has_told = outcome.first != EDDY_OK;
    if (status != EDDY_OK)
        return has_told ? status : fail(c, status, "forward failed");
    for (int32_t i = 0; i < c->function->output_count; i++) {
        if (!c->results[i])
            return has_told ? outcome.first
                            : fail(c, EDDY_INVALID_ARGUMENT, "forward left an output NULL");
        status = eddy_tensor_check_item_shape(c->results[i], "outputs", i, c->origin);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* ---- backward ---- */

static eddy_status run_backward(const eddy_gradient_call *call) {
    const custom *kept = call->attributes;
    eddy_backward_call public = {.size = sizeof(public),
                                 .context = kept->shared->context,
                                 .input_specs = call->input_specs,
                                 .input_count = call->input_count,
                                 .output_count = kept->function->output_count,
                                 .saved = call->extras,
                                 .saved_count = call->extra_count,
                                 .grads = call->grads,
                                 .is_wanted = call->is_wanted,
                                 .results = call->results};
    eddy_status status = kept->function->backward(&public);
    if (status != EDDY_OK && call->outcome->first == EDDY_OK)
        eddy_fail(status, (eddy_origin){kept->function->name, NULL}, "backward failed");
    return status;
}

/* ---- the call ---- */

static eddy_status check(calling *c) {
    const eddy_function *function = c->function;
    if (!function || function->size < offsetof(eddy_function, is_pure) || !function->name ||
        !function->forward || !function->backward || function->output_count < 1 ||
        function->output_count > EDDY_OP_OUTPUT_MAX)
        return eddy_fail(
            EDDY_INVALID_ARGUMENT, c->origin,
            "the function is NULL, does not say its size, name, forward and backward, or has "
            "not 1 to 8 outputs");
    c->origin.op = function->name;
    if (c->inputs.count < 0 || (c->inputs.count > 0 && !c->inputs.items))
        return fail(c, EDDY_INVALID_ARGUMENT, "a list without items");
    for (int64_t i = 0; i < c->inputs.count; i++) {
        eddy_tensor *input = c->inputs.items[i];
        if (input && eddy_tensor_is_none(input))
            continue;
        eddy_status status = eddy_tensor_check_item_shape(input, "inputs", i, c->origin);
        if (status != EDDY_OK)
            return status;
        c->is_recorded |= input->autograd && c->caller->no_grad == 0;
    }
    return EDDY_OK;
}

static eddy_status make_handles(calling *c) {
    for (int32_t i = 0; i < c->function->output_count; i++) {
        c->handles[i] = eddy_tensor_acquire(c->caller, c->results[i]->runtime, c->origin.address);
        if (!c->handles[i])
            return fail(c, EDDY_OUT_OF_MEMORY, "no memory for a handle");
        eddy_tensor_alias(c->handles[i], c->results[i]);
    }
    return EDDY_OK;
}

/* 1 + the index of the output that a saved tensor is, for gradients of gradients; 0 for none. */
static uint32_t result_of(const calling *c, const eddy_tensor *saved) {
    for (int32_t i = 0; i < c->function->output_count; i++)
        if (c->results[i] == saved)
            return 1 + (uint32_t)i;
    return 0;
}

static size_t count_dims(const calling *c) {
    size_t dims = 0;
    for (int64_t i = 0; i < c->inputs.count; i++)
        if (!eddy_tensor_is_none(c->inputs.items[i]))
            dims += (size_t)c->inputs.items[i]->rank;
    for (int32_t i = 0; i < c->function->output_count; i++)
        dims += (size_t)c->handles[i]->rank;
    return dims;
}

static void note_tensors(const calling *c, eddy_autograd_node *node) {
    uint32_t dims_at = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const eddy_tensor *input = c->inputs.items[i];
        eddy_autograd_node_note(node, i, input, &dims_at);
        if (!eddy_tensor_is_none(input))
            eddy_autograd_node_link(node, i, input);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        eddy_autograd_node_note(node, node->input_count + i, c->handles[i], &dims_at);
        eddy_autograd_node_name(node, i, c->handles[i]);
    }
}

static void release_shared(void *hook_context) {
    shared_context *shared = hook_context;
    if (eddy_sub_acq_rel(&shared->references, 1u) != 1)
        return;
    if (shared->destroy)
        shared->destroy(shared->context);
    eddy_memory_release(shared, sizeof(*shared), EDDY_MEMORY_TAPE);
}

/* The node holds a reference of the context, which it takes. False without memory. */
static bool hold_context(eddy_autograd_node *node, shared_context *shared) {
    eddy_autograd_hook *hook = eddy_memory_acquire_zeroed(sizeof(*hook), EDDY_MEMORY_TAPE);
    if (!hook)
        return false;
    *hook =
        (eddy_autograd_hook){.context = shared, .destroy = release_shared, .output = UINT32_MAX};
    node->hooks = hook;
    return true;
}

static void fill_custom(eddy_autograd_node *node, const eddy_function *function,
                        shared_context *shared) {
    custom *kept = node->attributes;
    *kept = (custom){.op = {.name = function->name,
                            .id = EDDY_OP_REGISTERED,
                            .attribute_bytes = sizeof(custom),
                            .gradient = &kept->gradient},
                     .gradient = {.run = run_backward},
                     .function = function,
                     .shared = shared};
    node->op = &kept->op;
}

const eddy_function *eddy_function_of(const eddy_autograd_node *node) {
    bool is_custom = node->op && node->op->gradient && node->op->gradient->run == run_backward;
    return is_custom ? ((const custom *)node->attributes)->function : NULL;
}

bool eddy_function_is_pure(const eddy_function *function) {
    return function->size >= sizeof(*function) && function->is_pure;
}

eddy_autograd_node *eddy_function_copy(const eddy_autograd_node *node) {
    const custom *kept = node->attributes;
    eddy_autograd_node *copy = eddy_autograd_node_copy(node);
    if (!copy)
        return NULL;
    fill_custom(copy, kept->function, kept->shared);
    if (!hold_context(copy, kept->shared)) {
        eddy_autograd_node_release(copy);
        return NULL;
    }
    eddy_add_relaxed(&kept->shared->references, 1u);
    return copy;
}

/* Takes the saved tensors and the context. */
static eddy_status record(calling *c) {
    eddy_autograd_node *node = eddy_autograd_node_make(
        &(eddy_autograd_size){.inputs = (uint32_t)c->inputs.count,
                              .outputs = (uint32_t)c->function->output_count,
                              .extras = (uint32_t)c->saved_count,
                              .dims = count_dims(c),
                              .attribute_bytes = sizeof(custom)});
    shared_context *shared =
        node ? eddy_memory_acquire_zeroed(sizeof(*shared), EDDY_MEMORY_TAPE) : NULL;
    if (!shared || !hold_context(node, shared)) {
        eddy_memory_release(shared, sizeof(*shared), EDDY_MEMORY_TAPE);
        if (node)
            eddy_autograd_node_release(node);
        return fail(c, EDDY_OUT_OF_MEMORY, "no memory to record the call");
    }
    eddy_store_relaxed(&shared->references, 1u);
    shared->context = c->context;
    shared->destroy = c->function->destroy;
    fill_custom(node, c->function, shared);
    node->address = c->origin.address;
    node->device = eddy_tensor_device(c->handles[0]);
    for (int64_t i = 0; i < c->saved_count; i++) {
        uint32_t slot = node->input_count + node->output_count + (uint32_t)i;
        eddy_overwritten_watch(c->saved[i]);
        node->saved[slot] =
            (eddy_autograd_saved){.tensor = c->saved[i],
                                  .version = eddy_load_relaxed(&c->saved[i]->root->version),
                                  .result = result_of(c, c->saved[i])};
        c->saved[i] = NULL;
    }
    eddy_memory_release(c->saved, (size_t)c->saved_count * sizeof(*c->saved), EDDY_MEMORY_TAPE);
    c->saved = NULL;
    c->saved_count = 0;
    note_tensors(c, node);
    eddy_autograd_node_release(node);
    return EDDY_OK;
}

static eddy_status call_once(calling *c) {
    eddy_status status = run_forward(c);
    if (status == EDDY_OK)
        status = make_handles(c);
    if (status == EDDY_OK && c->is_recorded)
        status = record(c);
    drop_saved(c);
    return status;
}

eddy_status eddy_function_call(const eddy_function *function, void *context, eddy_list inputs,
                               eddy_tensor **outputs) {
    calling c = {.function = function,
                 .context = context,
                 .caller = eddy_caller_get(),
                 .origin = EDDY_ORIGIN("function_call"),
                 .inputs = inputs};
    if (!eddy_caller_may_call(c.caller))
        return eddy_caller_refuse(c.caller, c.origin);
    eddy_status status = check(&c);
    if (status == EDDY_OK && !outputs && function->output_count > 0)
        status = fail(&c, EDDY_INVALID_ARGUMENT, "outputs is NULL");
    if (status != EDDY_OK)
        return status;
    if (!eddy_scope_reserve(c.caller, (uint32_t)function->output_count))
        return fail(&c, EDDY_OUT_OF_MEMORY, "the scope cannot grow");
    eddy_scope *scope;
    status = eddy_scope_open(c.caller, c.origin, &scope);
    if (status != EDDY_OK)
        return status;
    status = call_once(&c);
    eddy_scope_end(scope);
    for (int32_t i = 0; i < function->output_count; i++) {
        if (!c.handles[i])
            continue;
        if (status == EDDY_OK) {
            eddy_scope_own(c.caller, c.handles[i]);
            outputs[i] = c.handles[i];
        } else {
            eddy_tensor_drop(c.handles[i]);
        }
    }
    if (status == EDDY_OK && !c.is_recorded && function->destroy)
        function->destroy(context);
    return status;
}
