/* eddy_op_register: checks and copies a description, and makes an eddy_op of it, whose rule and kernel call the program's functions. */
#include <eddy/function.h>
#include <eddy/op.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <functional/registry.h>
#include <interpreter/tape/gradient.h>
#include <kernels/cost.h>
#include <kernels/prepared.h>
#include <stdio.h>
#include <streams/backend.h>
#include <string.h>

#define OPERAND_MAX 32
#define ATTRIBUTE_MAX 32
#define ATTRIBUTE_BYTES_MAX 4096
/* The cost of a kernel without an estimate: a worker runs it whatever the cost, which only orders the ready list. */
#define COST_PS 10000000
/* Up to so many bytes of a key, and views without data, no memory is allocated. */
#define KEY_BYTES 1024

/* The kernel of one kind of device. */
typedef struct device_kernel {
    eddy_kernel kernel;
    eddy_op_kernel functions;
    eddy_prepared_kind plans; /* eddy_op_plan */
    const eddy_op *op;
} device_kernel;

typedef struct registered {
    eddy_op op;
    eddy_status (*infer)(eddy_op_inference *inference);
    eddy_status (*backward)(eddy_backward_call *call);
    eddy_gradient gradients;
    device_kernel by_kind[EDDY_DEVICE_KIND_COUNT];
    const eddy_kernel *kernels[EDDY_DEVICE_KIND_COUNT]; /* NULL: it has none for the kind */
    size_t bytes; /* of the block of the op and all that it points to */
} registered;

static const registered *of_op(const eddy_op *op) {
    return (const registered *)(const void *)((const char *)op - offsetof(registered, op));
}

static device_kernel *of_kernel(const eddy_kernel *kernel) {
    return (device_kernel *)(void *)((const char *)kernel - offsetof(device_kernel, kernel));
}

/* ---- inference ---- */

static eddy_status run_infer(eddy_infer *infer) {
    const registered *r = of_op(infer->op);
    char message[256] = "";
    eddy_op_inference inference = {.size = sizeof(inference),
                                   .inputs = infer->inputs,
                                   .input_count = infer->input_count,
                                   .list_counts = infer->list_counts,
                                   .attributes = infer->attributes,
                                   .outputs = infer->outputs,
                                   .output_count = infer->op->output_count,
                                   .message = message,
                                   .message_bytes = sizeof(message)};
    eddy_status status = r->infer(&inference);
    message[sizeof(message) - 1] = 0;
    if (status != EDDY_OK)
        return eddy_infer_fail(infer, status, "%s",
                               message[0] ? message : eddy_status_text(status));
    for (int32_t i = 0; i < infer->op->output_count; i++)
        if (infer->outputs[i].shape.rank < 0 || infer->outputs[i].shape.rank > EDDY_RANK_MAX ||
            !eddy_dtype_is_valid(infer->outputs[i].dtype))
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "infer gives %s no dtype or shape",
                                   infer->op->outputs[i]);
    return EDDY_OK;
}

static eddy_op_call public_call(const eddy_kernel_call *call) {
    return (eddy_op_call){.size = sizeof(eddy_op_call),
                          .views = call->views,
                          .view_count = call->view_count,
                          .attributes = call->attributes};
}

/* ---- plans ---- */

/* Attributes, then dtype, rank, shape and strides of each view. */
static size_t key_size(const eddy_kernel_call *call, size_t attribute_bytes) {
    size_t bytes = attribute_bytes;
    for (int32_t i = 0; i < call->view_count; i++)
        bytes +=
            2 * sizeof(int32_t) + (call->views[i].rank > 0 ? (size_t)call->views[i].rank * 16 : 0);
    return bytes;
}

static char *append(char *key, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(key, data, bytes);
    return key + bytes;
}

static void write_key(char *key, const eddy_kernel_call *call, size_t attribute_bytes) {
    key = append(key, call->attributes, attribute_bytes);
    for (int32_t i = 0; i < call->view_count; i++) {
        const eddy_op_view *view = &call->views[i];
        int32_t head[2] = {(int32_t)view->dtype, view->rank};
        key = append(key, head, sizeof(head));
        size_t bytes = view->rank > 0 ? (size_t)view->rank * sizeof(int64_t) : 0;
        key = append(key, view->shape, bytes);
        key = append(key, view->strides, bytes);
    }
}

static eddy_status make_plan(const eddy_prepared_kind *kind, const void *context, void *prepared) {
    const eddy_kernel_call *call = context;
    const device_kernel *d = of_kernel(call->kernel);
    eddy_op_plan *plan = prepared;
    EDDY_ASSERT(kind == &d->plans);
    plan->size = sizeof(*plan);
    eddy_op_call public = public_call(call);
    return d->functions.prepare(&public, plan);
}

static void unmake_plan(const eddy_prepared_kind *kind, void *prepared) {
    const device_kernel *d =
        (const device_kernel *)(const void *)((const char *)kind - offsetof(device_kernel, plans));
    const eddy_op_plan *plan = prepared;
    if (plan->state && d->functions.destroy)
        d->functions.destroy(plan->state);
}

/* More is no memory's size, such as a difference that has wrapped; and sums with it must not wrap. */
#define WORKSPACE_MOST ((size_t)INT64_MAX / 2)

static eddy_status registered_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    device_kernel *d = of_kernel(call->kernel);
    size_t attribute_bytes = d->op->attribute_bytes, bytes = key_size(call, attribute_bytes);
    char on_stack[KEY_BYTES], *key = on_stack;
    if (bytes > KEY_BYTES && !(key = eddy_memory_acquire(bytes, EDDY_MEMORY_ARGUMENT)))
        return EDDY_OUT_OF_MEMORY;
    write_key(key, call, attribute_bytes);
    const void *prepared;
    eddy_status status = eddy_prepared_acquire(&d->plans, key, bytes, call, &prepared);
    if (key != on_stack)
        eddy_memory_release(key, bytes, EDDY_MEMORY_ARGUMENT);
    if (status != EDDY_OK)
        return status;
    const eddy_op_plan *plan = prepared;
    if (plan->workspace_bytes > WORKSPACE_MOST) {
        eddy_prepared_release(plan);
        return EDDY_OUT_OF_MEMORY;
    }
    *(const eddy_op_plan **)to->memory = plan;
    to->bytes = sizeof(plan);
    to->workspace_bytes = plan->workspace_bytes;
    to->cost_ps = plan->cost_ns > 0 ? eddy_cost_ps(plan->cost_ns, 1000) : COST_PS;
    return EDDY_OK;
}

static const eddy_op_plan *plan_of(const void *plan) {
    return *(const eddy_op_plan *const *)plan;
}

static void registered_end(const void *plan) {
    eddy_prepared_release(plan_of(plan));
}

/* ---- kernels ---- */

static eddy_op_call call_to_run(const eddy_kernel_call *call) {
    eddy_op_call public = public_call(call);
    public.workspace = call->workspace;
    if (call->kernel->prepare)
    public.state = plan_of(call->plan)->state;
    return public;
}

/* At no position: the status is all that is known. */
static void fail(const eddy_kernel_call *call, eddy_status status) {
    eddy_store_relaxed(&call->error->status, (int32_t)status);
}

static void registered_run(const eddy_kernel_call *call) {
    eddy_op_call public = call_to_run(call);
    eddy_status status = of_kernel(call->kernel)->functions.run(&public);
    if (status != EDDY_OK)
        fail(call, status);
}

/* ---- on a device that runs no code of the host ---- */

typedef struct launching {
    eddy_status (*run)(const eddy_op_call *call);
    eddy_op_call call;
    eddy_status status;
} launching;

static void launch(void *context) {
    launching *work = context;
    work->status = work->run(&work->call);
}

/* What was launched before the failure is over when later launches learn of it. */
static void registered_launch(const eddy_kernel_call *call) {
    eddy_backend_queue *queue = call->launch->queue;
    const eddy_backend_class *class = queue->backend->class;
    launching work = {.run = of_kernel(call->kernel)->functions.run, .call = call_to_run(call)};
    work.call.stream = class->native(queue);
    eddy_status status = class->foreign(queue, launch, &work);
    if (status == EDDY_DEVICE_LOST)
        return;
    if (work.status != EDDY_OK)
        status = work.status;
    if (status == EDDY_OK)
        return;
    (void)class->skip(queue, call->launch->ticket);
    fail(call, status);
}

static void registered_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    const device_kernel *d = of_kernel(call->kernel);
    eddy_op_call public = call_to_run(call);
    eddy_status status = d->functions.count(&public, shapes);
    if (status != EDDY_OK) {
        memset(shapes, 0, (size_t)d->op->output_count * sizeof(*shapes));
        fail(call, status);
    }
}

/* ---- gradients ---- */

static eddy_status run_gradient(const eddy_gradient_call *call) {
    eddy_backward_call public = {.size = sizeof(public),
                                 .attributes = call->attributes,
                                 .inputs = call->inputs,
                                 .input_specs = call->input_specs,
                                 .input_count = call->input_count,
                                 .list_counts = call->list_counts,
                                 .outputs = call->outputs,
                                 .output_count = call->op->output_count,
                                 .grads = call->grads,
                                 .is_wanted = call->is_wanted,
                                 .results = call->results};
    eddy_status status = of_op(call->op)->backward(&public);
    if (status != EDDY_OK && call->outcome->first == EDDY_OK)
        eddy_fail(status, (eddy_origin){call->op->name, NULL}, "its gradient failed");
    return status;
}

/* ---- checks ---- */

static eddy_status refuse(const eddy_op_description *d, eddy_origin origin, eddy_status status,
                          const char *what) {
    const char *name = d && d->name ? d->name : "op";
    return eddy_fail(status, origin, "%s: %s", name, what);
}

static const eddy_op_kernel *find_kernel(const eddy_op_description *d, eddy_device_kind kind) {
    for (int32_t i = 0; i < d->kernel_count; i++)
        if (d->kernels[i].device == kind)
            return &d->kernels[i];
    return NULL;
}

static const char *check_kernels(const eddy_op_description *d) {
    if (d->kernel_count < 0 || (d->kernel_count > 0 && !d->kernels))
        return "its kernels are no array";
    for (int32_t i = 0; i < d->kernel_count; i++) {
        const eddy_op_kernel *kernel = &d->kernels[i];
        if (kernel->device <= EDDY_DEVICE_DEFAULT || kernel->device >= EDDY_DEVICE_KIND_COUNT)
            return "a kernel is for no kind of device";
        if (find_kernel(d, kernel->device) != kernel)
            return "it has two kernels for one kind of device";
        if (!kernel->run || (d->has_late_shape && (!kernel->count || d->output_count == 0)))
            return "its kernel has no run, or no count for late shapes";
    }
    return NULL;
}

static size_t attribute_size(eddy_attribute_type type) {
    switch (type) {
    case EDDY_ATTRIBUTE_INT:
        return sizeof(int64_t);
    case EDDY_ATTRIBUTE_FLOAT:
        return sizeof(double);
    case EDDY_ATTRIBUTE_BOOL:
        return sizeof(bool);
    case EDDY_ATTRIBUTE_SCALAR:
        return sizeof(eddy_scalar);
    case EDDY_ATTRIBUTE_DTYPE:
        return sizeof(eddy_dtype);
    case EDDY_ATTRIBUTE_SHAPE:
        return sizeof(eddy_shape);
    default:
        return 0;
    }
}

static const char *check_attributes(const eddy_op_description *d) {
    if (d->attribute_count < 0 || d->attribute_count > ATTRIBUTE_MAX ||
        (d->attribute_count > 0 && !d->attributes))
        return "it has no attributes, or more than 32";
    if (d->attribute_bytes > ATTRIBUTE_BYTES_MAX)
        return "its attribute struct is larger than 4096 bytes";
    for (int32_t i = 0; i < d->attribute_count; i++) {
        const eddy_attribute_description *a = &d->attributes[i];
        size_t bytes = attribute_size(a->type);
        if (!a->name || !a->name[0])
            return "an attribute has no name";
        if (bytes == 0)
            return "an attribute is of a type that registered ops cannot have";
        if (a->offset > d->attribute_bytes || bytes > d->attribute_bytes - a->offset)
            return "an attribute lies outside the attribute struct";
        if (a->type == EDDY_ATTRIBUTE_SHAPE && !a->is_required)
            return "an attribute that is a shape must be required";
    }
    return NULL;
}

static const char *check_operands(const eddy_op_description *d) {
    if (d->operand_count < 0 || d->operand_count > OPERAND_MAX ||
        (d->operand_count > 0 && !d->operands))
        return "it has no operands, or more than 32";
    if (d->output_count < 0 || d->output_count > EDDY_OP_OUTPUT_MAX ||
        (d->output_count > 0 && !d->outputs))
        return "it has no outputs, or more than 8";
    bool has_mut = false;
    for (int32_t i = 0; i < d->operand_count; i++) {
        if (!d->operands[i].name || !d->operands[i].name[0])
            return "an operand has no name";
        if ((unsigned)d->operands[i].kind > EDDY_OPERAND_LIST)
            return "an operand is of an unknown kind";
        has_mut = has_mut || d->operands[i].is_mut;
    }
    for (int32_t i = 0; i < d->output_count; i++)
        if (!d->outputs[i] || !d->outputs[i][0])
            return "an output has no name";
    if (d->output_count == 0 && !has_mut)
        return "it writes nothing";
    if (d->backward && (has_mut || d->has_no_grad))
        return "it has a gradient, and writes to operands or says that it has none";
    return NULL;
}

static const char *check_description(const eddy_op_description *d) {
    const char *dot = d->name ? strchr(d->name, '.') : NULL;
    if (!dot || dot == d->name || !dot[1] || strlen(d->name) >= sizeof(((eddy_error *)0)->op))
        return "its name must have a dot inside (\"user.smooth\") and at most 47 characters";
    const char *what = check_operands(d);
    if (!what)
        what = check_attributes(d);
    if (what)
        return what;
    if (!d->infer && d->output_count > 0)
        return "it has no infer";
    return check_kernels(d);
}

/* ---- the copy ---- */

/* One block: measured in a first pass (base NULL), filled in by a second. */
typedef struct block {
    char *base;
    size_t used;
} block;

static void *place(block *b, size_t bytes) {
    b->used = (b->used + 15) & ~(size_t)15;
    void *at = b->base ? b->base + b->used : NULL;
    b->used += bytes;
    return at;
}

static const char *place_text(block *b, const char *text) {
    size_t bytes = strlen(text ? text : "") + 1;
    char *at = place(b, bytes);
    if (at)
        memcpy(at, text ? text : "", bytes);
    return at;
}

static const eddy_op_operand *place_operands(block *b, const eddy_op_description *d) {
    eddy_op_operand *operands = place(b, (size_t)d->operand_count * sizeof(*operands));
    for (int32_t i = 0; i < d->operand_count; i++) {
        const char *name = place_text(b, d->operands[i].name);
        if (operands)
            operands[i] = (eddy_op_operand){
                .name = name, .kind = d->operands[i].kind, .is_mut = d->operands[i].is_mut};
    }
    return operands;
}

static const eddy_gradient_needs *place_needs(block *b, const eddy_op_description *d) {
    eddy_gradient_needs *needs = place(b, (size_t)d->operand_count * sizeof(*needs));
    for (int32_t i = 0; i < d->operand_count && needs; i++)
        needs[i] = (eddy_gradient_needs){.is_differentiable = true,
                                         .inputs = d->backward_inputs,
                                         .outputs = d->backward_outputs};
    return needs;
}

static const eddy_op_attribute *place_attributes(block *b, const eddy_op_description *d) {
    eddy_op_attribute *attributes = place(b, (size_t)d->attribute_count * sizeof(*attributes));
    for (int32_t i = 0; i < d->attribute_count; i++) {
        const eddy_attribute_description *a = &d->attributes[i];
        const char *name = place_text(b, a->name);
        if (attributes)
            attributes[i] = (eddy_op_attribute){.name = name,
                                                .type = a->type,
                                                .offset = a->offset,
                                                .is_required = a->is_required,
                                                .default_value = a->default_value};
    }
    return attributes;
}

static const char *const *place_outputs(block *b, const eddy_op_description *d) {
    const char **outputs = place(b, (size_t)d->output_count * sizeof(*outputs));
    for (int32_t i = 0; i < d->output_count; i++) {
        const char *name = place_text(b, d->outputs[i]);
        if (outputs)
            outputs[i] = name;
    }
    return outputs;
}

static const eddy_kernel *make_kernel(device_kernel *to, const eddy_op_kernel *functions,
                                      const eddy_op *op, const eddy_op_description *d,
                                      const char *name) {
    bool prepares = functions->prepare != NULL;
    *to = (device_kernel){
        .kernel = {.name = name,
                   .prepare = prepares ? registered_prepare : NULL,
                   .run =
                       functions->device == EDDY_DEVICE_CUDA ? registered_launch : registered_run,
                   .end = prepares ? registered_end : NULL,
                   .count = d->has_late_shape ? registered_count : NULL,
                   .cost_base_ps = COST_PS},
        .functions = *functions,
        .plans = {.prepared_bytes = sizeof(eddy_op_plan), .make = make_plan, .unmake = unmake_plan},
        .op = op};
    return &to->kernel;
}

static registered *place_all(block *b, const eddy_op_description *d) {
    registered *r = place(b, sizeof(*r));
    const char *name = place_text(b, d->name), *summary = place_text(b, d->summary);
    const eddy_op_operand *operands = place_operands(b, d);
    const eddy_op_attribute *attributes = place_attributes(b, d);
    const char *const *outputs = place_outputs(b, d);
    const eddy_gradient_needs *needs = place_needs(b, d);
    if (!r)
        return NULL;
    r->infer = d->infer;
    r->backward = d->backward;
    r->gradients = (eddy_gradient){.run = run_gradient, .operands = needs};
    for (int32_t kind = 0; kind < EDDY_DEVICE_KIND_COUNT; kind++) {
        const eddy_op_kernel *functions = find_kernel(d, (eddy_device_kind)kind);
        if (functions)
            r->kernels[kind] = make_kernel(&r->by_kind[kind], functions, &r->op, d, name);
    }
    r->op = (eddy_op){.name = name,
                      .id = EDDY_OP_REGISTERED,
                      .operands = operands,
                      .operand_count = d->operand_count,
                      .outputs = outputs,
                      .output_count = d->output_count,
                      .attributes = attributes,
                      .attribute_count = d->attribute_count,
                      .attribute_bytes = d->attribute_bytes,
                      .kernel_attribute_bytes = d->attribute_bytes,
                      .has_late_shape = d->has_late_shape,
                      .is_registered = true,
                      .may_fail = true,
                      .promotion = EDDY_PROMOTE_NONE,
                      .result = EDDY_RESULT_RULE,
                      .infer = d->infer ? run_infer : NULL,
                      .kernels = &r->kernels[EDDY_DEVICE_CPU],
                      .device_kernels = r->kernels,
                      .gradient = d->backward      ? &r->gradients
                                  : d->has_no_grad ? &eddy_gradient_none
                                                   : NULL,
                      .summary = summary};
    return r;
}

static registered *make(const eddy_op_description *d) {
    block b = {0};
    place_all(&b, d);
    size_t bytes = b.used;
    b = (block){.base = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_REGISTRY)};
    if (!b.base)
        return NULL;
    registered *r = place_all(&b, d);
    EDDY_ASSERT(b.used == bytes);
    r->bytes = bytes;
    return r;
}

eddy_status eddy_op_register(const eddy_op_description *given) {
    eddy_origin origin = EDDY_ORIGIN("op_register");
    if (!given || given->size < offsetof(eddy_op_description, backward))
        return refuse(NULL, origin, EDDY_INVALID_ARGUMENT,
                      "the description is NULL, or does not say its size");
    eddy_op_description whole = {0}, *description = &whole; /* programs may know a shorter struct */
    memcpy(&whole, given, given->size < sizeof(whole) ? given->size : sizeof(whole));
    const char *what = check_description(description);
    if (what)
        return refuse(description, origin, EDDY_INVALID_ARGUMENT, what);
    if (!find_kernel(description, EDDY_DEVICE_CPU))
        return refuse(description, origin, EDDY_UNSUPPORTED, "it has no kernel for the CPU");
    if (description->has_late_shape && find_kernel(description, EDDY_DEVICE_CUDA))
        return refuse(description, origin, EDDY_UNSUPPORTED,
                      "CUDA devices have no late shapes so far");
    registered *r = make(description);
    if (!r)
        return refuse(description, origin, EDDY_OUT_OF_MEMORY, "no memory");
    eddy_registry_result result = eddy_registry_add(&r->op);
    if (result == EDDY_REGISTRY_ADDED)
        return EDDY_OK;
    eddy_memory_release(r, r->bytes, EDDY_MEMORY_REGISTRY);
    return result == EDDY_REGISTRY_TAKEN
               ? refuse(description, origin, EDDY_INVALID_ARGUMENT, "there is an op of that name")
               : refuse(description, origin, EDDY_OUT_OF_MEMORY, "no memory");
}
