#include <interpreter/tape/autograd.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/infer.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/scope.h>
#include <interpreter/tape/overwritten.h>
#include <interpreter/tape/unfold.h>
#include <string.h>

_Static_assert(EDDY_OP_OUTPUT_MAX <= EDDY_CACHE_LINE,
               "an output's number has room beside an address");

const eddy_gradient eddy_gradient_none = {.run = NULL};

/* ---- nodes ---- */

static size_t rounded(size_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/* One block: the node, then its arrays. */
eddy_autograd_node *eddy_autograd_node_make(const eddy_autograd_size *size) {
    size_t slots = (size_t)size->inputs + size->outputs;
    size_t edges = sizeof(eddy_autograd_node), saved = edges + size->inputs * sizeof(eddy_autograd);
    size_t kept = saved + (slots + size->extras) * sizeof(eddy_autograd_saved),
           specs = kept + size->outputs * sizeof(eddy_tensor *);
    size_t dims = specs + rounded(slots * sizeof(eddy_autograd_spec)),
           lists = dims + size->dims * sizeof(int64_t);
    size_t attributes = lists + size->lists * sizeof(int64_t),
           keeps = attributes + rounded(size->attribute_bytes);
    size_t bytes = keeps + rounded(size->outputs * sizeof(bool));
    char *block = eddy_memory_acquire(bytes, EDDY_MEMORY_TAPE);
    if (!block)
        return NULL;
    memset(block, 0, dims);
    memset(block + keeps, 0, bytes - keeps);
    eddy_autograd_node *node = (eddy_autograd_node *)(void *)block;
    eddy_store_relaxed(&node->references, 1u);
    const eddy_caller *caller = eddy_caller_self;
    node->recording = caller && caller->recorder ? caller->recorder->serial : 0;
    node->recorded_at = caller && caller->recorder ? caller->recorder->events : 0;
    node->input_count = size->inputs;
    node->output_count = size->outputs;
    node->extra_count = size->extras;
    node->list_count = size->lists;
    node->bytes = bytes;
    node->edges = (eddy_autograd *)(void *)(block + edges);
    node->saved = (eddy_autograd_saved *)(void *)(block + saved);
    node->kept = (eddy_tensor **)(void *)(block + kept);
    node->specs = (eddy_autograd_spec *)(void *)(block + specs);
    node->dims = (int64_t *)(void *)(block + dims);
    node->list_counts = size->lists > 0 ? (int64_t *)(void *)(block + lists) : NULL;
    node->attributes = size->attribute_bytes > 0 ? block + attributes : NULL;
    node->keeps = (bool *)(void *)(block + keeps);
    return node;
}

static size_t attribute_bytes(const eddy_autograd_node *node) {
    return node->op ? node->op->attribute_bytes : 0;
}

eddy_autograd_node *eddy_autograd_node_copy(const eddy_autograd_node *node) {
    uint32_t slots = node->input_count + node->output_count;
    size_t dims = 0;
    for (uint32_t i = 0; i < slots; i++)
        dims += node->specs[i].rank > 0 ? (size_t)node->specs[i].rank : 0;
    eddy_autograd_node *copy =
        eddy_autograd_node_make(&(eddy_autograd_size){.inputs = node->input_count,
                                                      .outputs = node->output_count,
                                                      .extras = node->extra_count,
                                                      .lists = node->list_count,
                                                      .dims = dims,
                                                      .attribute_bytes = attribute_bytes(node)});
    if (!copy)
        return NULL;
    copy->op = node->op;
    copy->address = node->address;
    copy->device = node->device;
    copy->inner_outputs = node->inner_outputs;
    copy->takes_missing = node->takes_missing;
    copy->recording = copy->recorded_at = 0;
    memcpy(copy->specs, node->specs, slots * sizeof(*node->specs));
    memcpy(copy->dims, node->dims, dims * sizeof(*node->dims));
    if (node->list_count > 0)
        memcpy(copy->list_counts, node->list_counts, node->list_count * sizeof(int64_t));
    if (copy->attributes)
        memcpy(copy->attributes, node->attributes, attribute_bytes(node));
    return copy;
}

static void drop_saved(eddy_autograd_node *node) {
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node); i++) {
        eddy_tensor *tensor = node->saved[i].tensor;
        node->saved[i].tensor = NULL;
        if (tensor && !eddy_tensor_is_none(tensor))
            eddy_tensor_drop(tensor);
    }
}

static void node_free(eddy_autograd_node *node) {
    drop_saved(node);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->edges[i])
            eddy_autograd_node_release(eddy_autograd_node_of(node->edges[i]));
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->kept[i])
            eddy_tensor_drop(node->kept[i]);
    eddy_unfold_drop(node->unfolded, node->output_count);
    while (node->hooks) {
        eddy_autograd_hook *hook = node->hooks;
        node->hooks = hook->next;
        if (hook->destroy)
            hook->destroy(hook->context);
        eddy_memory_release(hook, sizeof(*hook), EDDY_MEMORY_TAPE);
    }
    eddy_memory_release(node, node->bytes, EDDY_MEMORY_TAPE);
}

void eddy_autograd_node_release(eddy_autograd_node *node) {
    /* Nodes that a freed node referred to come here again: the list replaces recursion. */
    static __thread eddy_autograd_node *freed;
    static __thread bool is_freeing;
    if (eddy_sub_acq_rel(&node->references, 1u) != 1)
        return;
    node->next_freed = freed;
    freed = node;
    if (is_freeing)
        return;
    is_freeing = true;
    while (freed) {
        eddy_autograd_node *next = freed;
        freed = next->next_freed;
        node_free(next);
    }
    is_freeing = false;
}

void eddy_autograd_set(eddy_tensor *tensor, eddy_autograd word) {
    eddy_autograd before = tensor->autograd;
    tensor->autograd = word;
    eddy_tensor_key key = eddy_load_relaxed(&tensor->key);
    if (key != 0)
        eddy_store_release(&tensor->key,
                           word ? key | EDDY_TENSOR_KEY_RECORDED : key & ~EDDY_TENSOR_KEY_RECORDED);
    if (before)
        eddy_autograd_node_release(eddy_autograd_node_of(before));
}

eddy_tensor *eddy_autograd_hand_out(eddy_caller *caller, const eddy_tensor *tensor,
                                    eddy_origin origin) {
    eddy_tensor *handle = eddy_scope_reserve(caller, 1)
                              ? eddy_tensor_acquire(caller, tensor->runtime, origin.address)
                              : NULL;
    if (!handle) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a handle");
        return NULL;
    }
    eddy_tensor_alias(handle, tensor);
    return handle;
}

void eddy_autograd_follow(eddy_tensor *handle, const eddy_tensor *tensor) {
    if (!tensor->autograd)
        return;
    eddy_autograd_node_retain(eddy_autograd_node_of(tensor->autograd));
    eddy_autograd_set(handle, tensor->autograd);
}

void eddy_autograd_node_note(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor,
                             uint32_t *dims_at) {
    eddy_autograd_spec *spec = &node->specs[i];
    *spec = (eddy_autograd_spec){.rank = -1};
    if (eddy_tensor_is_none(tensor))
        return;
    spec->device_kind = tensor->device_kind;
    spec->device_index = tensor->device_index;
    if (eddy_tensor_is_late(tensor))
        return;
    spec->dtype = tensor->dtype;
    spec->rank = tensor->rank;
    spec->dims_at = *dims_at;
    for (int32_t d = 0; d < tensor->rank; d++)
        node->dims[(*dims_at)++] = tensor->axes[d].dim;
}

void eddy_autograd_spec_of(const eddy_autograd_node *node, uint32_t i, eddy_spec *spec) {
    const eddy_autograd_spec *from = &node->specs[i];
    spec->dtype = (eddy_dtype)from->dtype;
    spec->is_absent = from->rank < 0;
    spec->shape.rank = from->rank < 0 ? 0 : from->rank;
    for (int32_t d = 0; d < spec->shape.rank; d++)
        spec->shape.dims[d] = node->dims[from->dims_at + (uint32_t)d];
}

bool eddy_autograd_has_spec(const eddy_tensor *tensor, const eddy_spec *spec) {
    if (tensor->dtype != (uint8_t)spec->dtype || tensor->rank != spec->shape.rank)
        return false;
    for (int32_t d = 0; d < tensor->rank; d++)
        if (tensor->axes[d].dim != spec->shape.dims[d])
            return false;
    return true;
}

eddy_device eddy_autograd_device_of(eddy_autograd word) {
    const eddy_autograd_node *node = eddy_autograd_node_of(word);
    const eddy_autograd_spec *spec =
        &node->specs[node->input_count + eddy_autograd_output_of(word)];
    return (eddy_device){(eddy_device_kind)spec->device_kind, spec->device_index};
}

bool eddy_autograd_is_beside(const eddy_tensor *gradient, eddy_autograd word) {
    eddy_device is = eddy_tensor_device(gradient), wanted = eddy_autograd_device_of(word);
    return is.kind == wanted.kind && is.index == wanted.index;
}

static bool is_floating(const eddy_tensor *tensor) {
    return eddy_dtype_category_of((eddy_dtype)tensor->dtype) == EDDY_CATEGORY_FLOAT;
}

void eddy_autograd_node_link(eddy_autograd_node *node, uint32_t i, const eddy_tensor *tensor) {
    node->edges[i] = tensor->autograd;
    if (tensor->autograd)
        eddy_autograd_node_retain(eddy_autograd_node_of(tensor->autograd));
}

void eddy_autograd_node_name(eddy_autograd_node *node, uint32_t output, eddy_tensor *tensor) {
    if (!is_floating(tensor))
        return;
    eddy_autograd_node_retain(node);
    eddy_autograd_set(tensor, eddy_autograd_make(node, output));
}

/* ---- leaves ---- */

static eddy_status make_leaf(eddy_tensor *tensor, eddy_origin origin) {
    if (!is_floating(tensor)) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        return eddy_fail(EDDY_DTYPE_MISMATCH, origin,
                         "%s has no gradient, its dtype is not floating", text);
    }
    eddy_autograd_node *node =
        eddy_autograd_node_make(&(eddy_autograd_size){.outputs = 1, .dims = (size_t)tensor->rank});
    if (!node)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    uint32_t dims_at = 0;
    eddy_autograd_node_note(node, 0, tensor, &dims_at);
    node->address = origin.address;
    node->device = eddy_tensor_device(tensor);
    node->keeps[0] = true;
    eddy_autograd_set(tensor, eddy_autograd_make(node, 0));
    return EDDY_OK;
}

eddy_status eddy_autograd_check_thread(eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    return eddy_caller_may_call(caller) ? EDDY_OK : eddy_caller_refuse(caller, origin);
}

eddy_status eddy_requires_grad_set(eddy_tensor *tensor, bool requires_grad) {
    eddy_origin origin = EDDY_ORIGIN("requires_grad_set");
    eddy_status status = eddy_autograd_check_thread(origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_tensor_check_shape(tensor, origin);
    if (status != EDDY_OK)
        return status;
    bool is_made =
        tensor->autograd && !eddy_autograd_is_leaf(eddy_autograd_node_of(tensor->autograd));
    eddy_autograd_note_leaf(tensor);
    if (requires_grad)
        return tensor->autograd ? EDDY_OK : make_leaf(tensor, origin);
    if (is_made)
        return eddy_fail(
            EDDY_INVALID_ARGUMENT, origin,
            "the tensor was made by a recorded op; detach gives one without a gradient");
    eddy_autograd_set(tensor, 0);
    return EDDY_OK;
}

bool eddy_requires_grad(const eddy_tensor *tensor) {
    if (eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("requires_grad")) != EDDY_OK)
        return false;
    eddy_recorder_ask(eddy_caller_self, tensor);
    return tensor->autograd != 0;
}

void eddy_no_grad_begin(void) {
    eddy_caller *caller = eddy_caller_get();
    if (caller)
        caller->no_grad++;
}

void eddy_no_grad_end(void) {
    eddy_caller *caller = eddy_caller_get();
    if (caller && caller->no_grad > 0)
        caller->no_grad--;
    else
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("no_grad_end"), "none has begun");
}

eddy_tensor *eddy_detach(eddy_tensor *tensor) {
    eddy_origin origin = EDDY_ORIGIN("detach");
    if (eddy_autograd_check_thread(origin) != EDDY_OK ||
        eddy_tensor_check_shape(tensor, origin) != EDDY_OK)
        return NULL;
    eddy_tensor *view = eddy_autograd_hand_out(eddy_caller_self, tensor, origin);
    if (view)
        eddy_scope_own(eddy_caller_self, view);
    return view;
}

/* ---- recording a call ---- */

bool eddy_autograd_is_wanted(const eddy_caller *caller, const eddy_apply *apply) {
    if (caller->no_grad > 0)
        return false;
    for (int64_t i = 0; i < apply->input_count; i++) {
        const eddy_tensor *input = apply->inputs[i];
        if (input && !eddy_tensor_is_none(input) && input->autograd)
            return true;
    }
    for (int32_t i = 0; apply->targets && i < apply->op->output_count; i++)
        if (apply->targets[i] && !eddy_tensor_is_none(apply->targets[i]) &&
            apply->targets[i]->autograd)
            return true;
    return false;
}

/* A call being recorded. */
typedef struct recording {
    eddy_caller *caller;
    const eddy_apply *apply;
    const eddy_gradient *gradient;
    eddy_autograd_node *node;
    eddy_gradient_needs needs; /* of all operands that need a gradient */
    bool is_inplace;
    eddy_tensor *handles[EDDY_OP_OUTPUT_MAX]; /* for the user; NULL in place */
} recording;

static eddy_status refuse(const recording *r, eddy_status status, const char *sentence) {
    const char *name = r->apply->op->name;
    return eddy_fail(status, (eddy_origin){name, r->apply->address}, "%s", sentence);
}

/* Whether no operand is NULL and all shapes are known; else the call itself reports the error. */
static bool is_complete(const eddy_apply *apply) {
    if (eddy_infer_input_count(apply->op, apply->list_counts) != apply->input_count)
        return false;
    for (int64_t i = 0; i < apply->input_count; i++) {
        eddy_tensor *input = apply->inputs[i];
        if (!input || (!eddy_tensor_is_none(input) &&
                       eddy_tensor_await_shape(input, eddy_apply_origin(apply)) != EDDY_OK))
            return false;
    }
    for (int32_t i = 0; apply->targets && i < apply->op->output_count; i++)
        if (!apply->targets[i] || eddy_tensor_is_none(apply->targets[i]))
            return false;
    return true;
}

static void find_needs(recording *r) {
    const eddy_apply *apply = r->apply;
    eddy_operand_iterator walk;
    eddy_operand_iterator_begin(&walk, apply->op, apply->list_counts);
    for (int64_t i = 0; i < apply->input_count; i++) {
        const eddy_gradient_needs *needs =
            &r->gradient->operands[eddy_operand_iterator_next(&walk) - apply->op->operands];
        const eddy_tensor *input = apply->inputs[i];
        if (!needs->is_differentiable || eddy_tensor_is_none(input) || !input->autograd)
            continue;
        r->needs.is_differentiable = true;
        r->needs.inputs |= needs->inputs;
        r->needs.outputs |= needs->outputs;
    }
}

/* Whether the gradient reads elements that the call overwrites. The node would also hold a handle that refers to it. */
static bool reads_target(const recording *r) {
    const eddy_apply *apply = r->apply;
    eddy_operand_iterator walk;
    eddy_operand_iterator_begin(&walk, apply->op, apply->list_counts);
    for (int64_t i = 0; i < apply->input_count; i++) {
        int64_t operand = eddy_operand_iterator_next(&walk) - apply->op->operands;
        const eddy_tensor *input = apply->inputs[i];
        if ((r->needs.inputs >> operand & 1) && !eddy_tensor_is_none(input) &&
            input->root == apply->targets[0]->root)
            return true;
    }
    return false;
}

/* Writing to a given tensor is allowed only if the gradient stays computable. */
static eddy_status check_target(const recording *r) {
    const eddy_apply *apply = r->apply;
    const eddy_tensor *target = apply->targets[0];
    if (!r->is_inplace)
        return refuse(r, EDDY_UNSUPPORTED,
                      "no gradient can follow into a given tensor; use the form that returns one, "
                      "or no_grad_begin");
    if (target->autograd && eddy_autograd_is_leaf(eddy_autograd_node_of(target->autograd)))
        return refuse(r, EDDY_INVALID_ARGUMENT,
                      "in place on a tensor whose gradient is wanted; between no_grad_begin and "
                      "_end that is allowed");
    if (target->root != target && !target->stands_in)
        return refuse(r, EDDY_UNSUPPORTED, "in place on a view, which gradients cannot follow");
    if (reads_target(r))
        return refuse(r, EDDY_UNSUPPORTED,
                      "its gradient reads what would be overwritten in place; use the form that "
                      "returns a new tensor");
    return EDDY_OK;
}

static size_t count_dims(const eddy_apply *apply) {
    size_t dims = 0, most = 0;
    for (int64_t i = 0; i < apply->input_count; i++) {
        size_t rank = eddy_tensor_is_none(apply->inputs[i]) ? 0 : (size_t)apply->inputs[i]->rank;
        dims += rank;
        most = rank > most ? rank : most;
    }
    return dims +
           (size_t)apply->op->output_count * (apply->op->is_elementwise ? most : EDDY_RANK_MAX);
}

static uint32_t list_count(const eddy_op *op) {
    uint32_t lists = 0;
    for (int32_t i = 0; i < op->operand_count; i++)
        lists += op->operands[i].kind == EDDY_OPERAND_LIST;
    return lists;
}

static void save(eddy_autograd_node *node, uint32_t slot, eddy_tensor *tensor) {
    if (!eddy_tensor_is_none(tensor)) {
        eddy_tensor_retain(tensor);
        eddy_overwritten_watch(tensor);
        node->saved[slot].version = eddy_load_relaxed(&tensor->root->version);
    }
    node->saved[slot].tensor = tensor;
}

/* Stores the operands' nodes and the operands to save. Before the call, which may change both in place. */
static void note_inputs(recording *r) {
    const eddy_apply *apply = r->apply;
    eddy_operand_iterator walk;
    eddy_operand_iterator_begin(&walk, apply->op, apply->list_counts);
    for (int64_t i = 0; i < apply->input_count; i++) {
        int64_t operand = eddy_operand_iterator_next(&walk) - apply->op->operands;
        eddy_tensor *input = apply->inputs[i];
        if (r->needs.inputs >> operand & 1)
            save(r->node, (uint32_t)i, input);
        if (!r->gradient->operands[operand].is_differentiable || eddy_tensor_is_none(input) ||
            !input->autograd)
            continue;
        eddy_autograd_node_link(r->node, (uint32_t)i, input);
    }
}

static void discard(recording *r) {
    for (int32_t i = 0; i < r->apply->op->output_count; i++)
        if (r->handles[i])
            eddy_tensor_discard(r->caller, r->handles[i]);
    if (r->node)
        eddy_autograd_node_release(r->node);
}

/* The operands' runtime; the first may be absent, but one requires a gradient. */
static eddy_runtime *runtime_of(const eddy_apply *apply) {
    int64_t i = 0;
    while (eddy_tensor_is_none(apply->inputs[i]))
        i++;
    return apply->inputs[i]->runtime;
}

/* Acquires all memory that recording takes. */
static bool take_memory(recording *r) {
    const eddy_apply *apply = r->apply;
    const eddy_op *op = apply->op;
    r->node =
        eddy_autograd_node_make(&(eddy_autograd_size){.inputs = (uint32_t)apply->input_count,
                                                      .outputs = (uint32_t)op->output_count,
                                                      .lists = list_count(op),
                                                      .dims = count_dims(apply),
                                                      .attribute_bytes = op->attribute_bytes});
    bool has_memory = r->node != NULL;
    for (int32_t i = 0; i < op->output_count && has_memory && !r->is_inplace; i++) {
        r->handles[i] = eddy_tensor_acquire(r->caller, runtime_of(apply), apply->address);
        has_memory = r->handles[i] != NULL;
    }
    if (!has_memory)
        discard(r);
    return has_memory;
}

/* The user gets a second handle of the result, which refers to the node. So a node may save its own result, and a view
 * or a detached tensor holds the elements without the tape. A result without a gradient refers to no node, and one with a late shape
 * cannot have two handles. */
static eddy_tensor *stand_in(recording *r, int32_t i) {
    eddy_tensor *result = r->apply->outputs[i], *handle = r->handles[i];
    bool is_single = !is_floating(result) || eddy_tensor_is_late(result);
    if (r->needs.outputs >> i & 1) {
        EDDY_ASSERT(!eddy_tensor_is_late(result));
        eddy_tensor_retain(result);
        r->node->saved[r->node->input_count + (uint32_t)i] = (eddy_autograd_saved){
            result, eddy_load_relaxed(&result->version), is_single ? 0 : 1 + (uint32_t)i};
    }
    r->handles[i] = NULL;
    if (is_single) {
        eddy_tensor_discard(r->caller, handle);
        return result;
    }
    eddy_tensor_alias(handle, result);
    handle->stands_in = true;
    eddy_scope_replace(result, handle);
    eddy_tensor_drop(result);
    r->apply->outputs[i] = handle;
    return handle;
}

/* The call has been issued: its results refer to the node. */
static void note_outputs(recording *r) {
    const eddy_apply *apply = r->apply;
    const eddy_op *op = apply->op;
    eddy_autograd_node *node = r->node;
    uint32_t dims_at = 0;
    node->op = op;
    node->address = apply->address;
    if (op->attribute_bytes > 0)
        memcpy(node->attributes, apply->attributes, op->attribute_bytes);
    if (node->list_count > 0)
        memcpy(node->list_counts, apply->list_counts, node->list_count * sizeof(int64_t));
    for (uint32_t i = 0; i < node->input_count; i++)
        eddy_autograd_node_note(node, i, apply->inputs[i], &dims_at);
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_tensor *output = r->is_inplace ? apply->targets[i] : apply->outputs[i];
        uint32_t slot = node->input_count + (uint32_t)i;
        eddy_autograd_node_note(node, slot, output, &dims_at);
        node->device = eddy_tensor_device(output);
        if (r->handles[i])
            output = stand_in(r, i);
        eddy_autograd_node_name(node, (uint32_t)i, output);
    }
    eddy_autograd_node_release(node);
}

static eddy_status issue_quietly(eddy_caller *caller, const eddy_apply *apply) {
    caller->no_grad++;
    eddy_status status = eddy_interpreter_issue(caller, apply);
    caller->no_grad--;
    return status;
}

/* In place, and the gradient reads the result: the tape needs its own copy, since later writes in place would change it. The
 * call makes a new tensor, which the node saves, and its elements are copied to the target. */
static eddy_status issue_aside(recording *r) {
    eddy_tensor *result = NULL, *target = r->apply->targets[0];
    eddy_apply aside = *r->apply;
    aside.targets = NULL;
    aside.outputs = &result;
    eddy_scope *scope = r->caller->scope;
    r->caller->scope = NULL; /* no scope may own it */
    eddy_status status = issue_quietly(r->caller, &aside);
    r->caller->scope = scope;
    if (status != EDDY_OK)
        return status;
    eddy_layout made, wanted;
    eddy_tensor_layout(result, &made);
    eddy_tensor_layout(target, &wanted);
    if (result->dtype != target->dtype ||
        !eddy_shape_equal(made.rank, made.dims, wanted.rank, wanted.dims))
        status = refuse(r, EDDY_SHAPE_MISMATCH,
                        "the result has another shape or dtype than what it is written to");
    else
        status = eddy_copy_to(r->caller, result, target, r->apply->address);
    if (status == EDDY_OK)
        r->node->saved[r->node->input_count] =
            (eddy_autograd_saved){result, eddy_load_relaxed(&result->version), 1};
    else
        eddy_tensor_drop(result);
    return status;
}

static eddy_status issue(recording *r) {
    if (r->is_inplace && r->needs.outputs != 0)
        return issue_aside(r);
    return issue_quietly(r->caller, r->apply);
}

eddy_status eddy_autograd_apply(eddy_caller *caller, const eddy_apply *apply) {
    eddy_recorder_use_tape(caller);
    recording r = {.caller = caller, .apply = apply, .gradient = apply->op->gradient};
    if (r.gradient == &eddy_gradient_none || !is_complete(apply))
        return issue_quietly(caller, apply);
    if (!r.gradient)
        return refuse(
            &r, EDDY_UNSUPPORTED,
            "it has no gradient; detach its operands, or call it between no_grad_begin and _end");
    r.is_inplace = apply->targets && apply->op->output_count == 1 && apply->input_count > 0 &&
                   apply->targets[0] == apply->inputs[0];
    find_needs(&r);
    if (apply->targets) {
        eddy_status status = check_target(&r);
        if (status != EDDY_OK)
            return status;
    }
    if (!r.needs.is_differentiable) {
        eddy_status status = issue_quietly(caller, apply);
        if (status == EDDY_OK && r.is_inplace) {
            (void)eddy_recorder_redirect(caller, apply->targets[0]);
            eddy_autograd_set(apply->targets[0], 0);
        }
        return status;
    }
    if (!take_memory(&r))
        return refuse(&r, EDDY_OUT_OF_MEMORY, "no memory to record the call");
    note_inputs(&r);
    eddy_status status = issue(&r);
    if (status != EDDY_OK) {
        discard(&r);
        return status;
    }
    if (r.is_inplace && eddy_recorder_redirect(caller, apply->targets[0]) &&
        eddy_load_relaxed(&apply->targets[0]->root->is_saved))
        eddy_overwritten_sweep(r.node, apply->targets[0]);
    note_outputs(&r);
    return EDDY_OK;
}

eddy_status eddy_autograd_view(eddy_tensor *tensor, eddy_tensor *view, eddy_view_kind kind,
                               const void *attributes, const void *address) {
    const eddy_op *op = &eddy_view_ops[kind];
    eddy_autograd_node *node = eddy_autograd_node_make(
        &(eddy_autograd_size){.inputs = 1,
                              .outputs = 1,
                              .dims = (size_t)tensor->rank + (size_t)view->rank,
                              .attribute_bytes = op->attribute_bytes});
    if (!node)
        return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){op->name, address},
                         "no memory to record the call");
    uint32_t dims_at = 0;
    node->op = op;
    node->address = address;
    node->device = eddy_tensor_device(tensor);
    memcpy(node->attributes, attributes, op->attribute_bytes);
    eddy_autograd_node_note(node, 0, tensor, &dims_at);
    eddy_autograd_node_note(node, 1, view, &dims_at);
    eddy_autograd_node_link(node, 0, tensor);
    eddy_autograd_node_name(node, 0, view);
    eddy_autograd_node_release(node);
    return EDDY_OK;
}
