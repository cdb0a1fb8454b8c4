#include <interpreter/call/copy.h>

#include <base/assert.h>
#include <base/atomic.h>
#include <interpreter/call/general_call.h>
#include <string.h>

typedef _Atomic(const eddy_op *) found_op; /* atomic: the same for every thread, relaxed */

static const eddy_op *find(found_op *found, const char *name) {
    const eddy_op *op = eddy_load_relaxed(found);
    if (EDDY_LIKELY(op != NULL))
        return op;
    op = eddy_op_find(name);
    EDDY_ASSERT(op != NULL);
    eddy_store_relaxed(found, op);
    return op;
}

static eddy_status copy_run(eddy_caller *caller, const eddy_op *op, eddy_tensor *tensor,
                            void *attributes, bool is_row_major, const void *address,
                            eddy_tensor **copy) {
    eddy_apply apply = {.op = op,
                        .inputs = &tensor,
                        .input_count = 1,
                        .attributes = attributes,
                        .outputs = copy,
                        .address = address,
                        .is_row_major = is_row_major};
    /* Internal: no scope may own it. */
    eddy_scope *scope = caller->scope;
    caller->scope = NULL;
    eddy_status status = eddy_general_call_apply(caller, &apply);
    caller->scope = scope;
    return status;
}

eddy_status eddy_copy_contiguous(eddy_caller *caller, eddy_tensor *tensor, const void *address,
                                 eddy_tensor **copy) {
    static found_op clone;
    return copy_run(caller, find(&clone, "clone"), tensor, NULL, true, address, copy);
}

eddy_status eddy_copy_to(eddy_caller *caller, eddy_tensor *source, eddy_tensor *target,
                         const void *address) {
    static found_op copy;
    eddy_tensor *inputs[] = {source, target};
    eddy_apply apply = {
        .op = find(&copy, "copy_into"), .inputs = inputs, .input_count = 2, .address = address};
    return eddy_general_call_apply(caller, &apply);
}

eddy_status eddy_copy_cast(eddy_caller *caller, eddy_tensor *tensor, eddy_dtype dtype,
                           const void *address, eddy_tensor **copy) {
    static found_op cast;
    const eddy_op *op = find(&cast, "cast");
    union {
        uint64_t align;
        char bytes[64];
    } attributes = {0};
    EDDY_ASSERT(op->attribute_bytes <= sizeof(attributes) && op->attribute_count == 1 &&
                op->attributes[0].type == EDDY_ATTRIBUTE_DTYPE);
    memcpy(attributes.bytes + op->attributes[0].offset, &dtype, sizeof(dtype));
    return copy_run(caller, op, tensor, &attributes, false, address, copy);
}
