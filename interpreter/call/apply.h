/* Op call -> instruction: the one way from a public op function into the VM.
 *
 * apply checks handles, promotes, infers, makes the outputs, picks the kernel and submits. It serves built-in ops, registered
 * ones and eddy_call alike. */
#ifndef EDDY_INTERPRETER_CALL_APPLY_H
#define EDDY_INTERPRETER_CALL_APPLY_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/tensor.h>
#include <interpreter/call/op.h>
#include <interpreter/handle/caller.h>

typedef struct eddy_apply {
    const eddy_op *op;
    eddy_tensor *const *
        inputs; /* the items of lists in a row; NULL (failed before) makes the call fail, EDDY_NONE is absent */
    int64_t input_count;
    const int64_t *list_counts; /* of each list operand, NULL if the op has none */
    void *attributes; /* the call's own copy of the op's attribute struct; may be rewritten */
    const eddy_device *device;   /* creation ops: NULL takes the thread's; others: NULL */
    eddy_generator *generator;   /* random ops: NULL takes the thread's */
    eddy_tensor *const *targets; /* _into, _inplace: the target of each output; NULL: new tensors */
    eddy_tensor **
        outputs; /* op->output_count results, owned by the scope or the caller; untouched on failure;
                                   unused where targets are given */
    bool is_row_major;   /* new outputs are row-major, whatever the op's layout */
    const void *address; /* EDDY_CALL_ADDRESS() of the public function */
} eddy_apply;

static inline eddy_origin eddy_apply_origin(const eddy_apply *apply) {
    return (eddy_origin){apply->op->name, apply->address};
}

EDDY_MUST_USE eddy_status eddy_interpreter_apply(const eddy_apply *apply);
/* The same on a thread that may call; recorded for gradients if an operand requires one and recording is on. */
EDDY_MUST_USE eddy_status eddy_interpreter_issue(eddy_caller *caller, const eddy_apply *apply);

/* The common case, one output: the result or NULL. */
eddy_tensor *eddy_interpreter_apply_one(const eddy_op *op, eddy_tensor *const *inputs,
                                        int64_t input_count, void *attributes, const void *address);

#endif
