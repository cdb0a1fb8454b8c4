/* A general call: any op, any layout.
 *
 *   resolve (check.c)   handles, kinds and specs of all operands, once; runtime and device
 *   promote.c           the dtype that the call computes in; inputs and numbers are converted to it
 *   infer.c             shapes and dtypes of the results
 *   targets.c           the tensors written to, in place too: each element once, no overlap with a tensor that is read
 *   results.c           new handles
 *   pack.c              arguments of the instruction, and its kernel's plan
 *   submit.c            to the VM; then the results become the user's */
#ifndef EDDY_INTERPRETER_CALL_GENERAL_CALL_H
#define EDDY_INTERPRETER_CALL_GENERAL_CALL_H

#include <interpreter/call/apply.h>
#include <interpreter/call/infer.h>
#include <interpreter/call/packed.h>
#include <interpreter/handle/caller.h>

/* An operand of the user, the items of lists in a row. */
typedef struct eddy_call_operand {
    eddy_tensor *tensor; /* the user's, or its cast; EDDY_NONE if absent */
    const eddy_op_operand *kind;
} eddy_call_operand;

/* A call being made. Arrays lie in `memory`: on the stack, or in the thread's scratch if they are long. */
typedef struct eddy_general_call {
    const eddy_apply *apply;
    const eddy_op *op;
    eddy_caller *caller;
    eddy_runtime *runtime;
    eddy_device device;
    uint8_t vm_device; /* the VM's number of it */
    eddy_dtype compute;
    int64_t input_count;
    int64_t view_count;          /* inputs that the kernel sees, and outputs */
    eddy_call_operand *operands; /* input_count; those that are not cast are the user's */
    eddy_spec *specs;            /* of these; promoted, if the op has a rule */
    eddy_tensor **views;         /* the tensors that the kernel sees; EDDY_NONE if absent */
    eddy_vm_operand *vm_operands;
    int64_t vm_operand_count;
    eddy_packed_arguments *packed;
    size_t packed_bytes;
    int64_t cost_ps;
    eddy_spec *output_specs;
    eddy_tensor *results[EDDY_OP_OUTPUT_MAX]; /* new tensors; NULL if there are targets */
    eddy_infer infer;
    void *memory;
    size_t memory_bytes;
    bool is_on_stack;
    bool writes_inputs; /* at least one input is written to */
    int64_t cast_count; /* inputs that differ from the user's: temporaries to drop */
} eddy_general_call;

/* Checks, promotes, casts, infers, packs and submits one call. `caller` may call. On success the results, if no
 * targets are given, belong to the scope or the caller. */
EDDY_MUST_USE eddy_status eddy_general_call_apply(eddy_caller *caller, const eddy_apply *apply);

/* ---- the steps, for the files above ---- */

static inline eddy_origin eddy_general_call_origin(const eddy_general_call *call) {
    return eddy_apply_origin(call->apply);
}

static inline bool eddy_general_device_is(eddy_device a, eddy_device b) {
    return a.kind == b.kind && a.index == b.index;
}

/* Checks that every input exists, with its shape known, on one runtime and device, and that conditions are bool. */
EDDY_MUST_USE eddy_status eddy_general_check_operands(eddy_general_call *call);
/* Refuses a result that no machine can hold, and operands with more elements than a kernel could visit. */
EDDY_MUST_USE eddy_status eddy_general_check_sizes(const eddy_general_call *call);

/* Decides the compute dtype. */
void eddy_general_promote_specs(eddy_general_call *call);
/* Converts the numbers of the call to the dtype that it computes in. */
EDDY_MUST_USE eddy_status eddy_general_promote_numbers(eddy_general_call *call);
/* Issues the casts of inputs. */
EDDY_MUST_USE eddy_status eddy_general_promote_inputs(eddy_general_call *call);
void eddy_general_promote_drop(eddy_general_call *call);

EDDY_MUST_USE eddy_status eddy_general_targets_check(eddy_general_call *call);
/* Whether writing to the tensor writes its storage whole, and no input but `except` (-1: none) reads that. */
bool eddy_general_targets_cover(const eddy_general_call *call, const eddy_tensor *tensor,
                                int64_t except);
/* For gradients: notes that the targets, which a node may have saved, have changed. */
void eddy_general_targets_written(const eddy_general_call *call);

EDDY_MUST_USE eddy_status eddy_general_results_make(eddy_general_call *call);
void eddy_general_results_discard(eddy_general_call *call);
/* The results get their storages, and belong to the scope or the caller. */
void eddy_general_results_keep(eddy_general_call *call);

/* Fills call->packed and call->vm_operands, and has the kernel plan the call. After OK a call that is not submitted has to be ended. */
EDDY_MUST_USE eddy_status eddy_general_pack(eddy_general_call *call, const eddy_kernel *kernel);

EDDY_MUST_USE eddy_status eddy_general_submit(eddy_general_call *call);

#endif
