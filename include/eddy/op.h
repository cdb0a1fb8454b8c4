/* Ops of the program's own: a registered op passes through inference, the VM, errors and traces like a built-in
 * one, and is called by name (<eddy/call.h>). examples/custom_op.c shows one.
 *
 * The structs are plain; a field that is not needed is zero. Structs that may grow begin with their own size. */
#ifndef EDDY_OP_H
#define EDDY_OP_H

#include <eddy/device.h>
#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/scalar.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum eddy_operand_kind {
    EDDY_OPERAND_TENSOR,
    EDDY_OPERAND_OPTIONAL, /* may be EDDY_NONE */
    EDDY_OPERAND_LIST,     /* any count of tensors */
} eddy_operand_kind;

/* Types of attributes, and the C types in an op's attribute struct. */
typedef enum eddy_attribute_type {
    EDDY_ATTRIBUTE_INT,    /* int64_t */
    EDDY_ATTRIBUTE_FLOAT,  /* double */
    EDDY_ATTRIBUTE_BOOL,   /* bool */
    EDDY_ATTRIBUTE_SCALAR, /* eddy_scalar */
    EDDY_ATTRIBUTE_DTYPE,  /* eddy_dtype */
    EDDY_ATTRIBUTE_SHAPE,  /* eddy_shape */
    /* The types below are for built-in ops only. */
    EDDY_ATTRIBUTE_AXES,      /* uint32_t, a set of axes */
    EDDY_ATTRIBUTE_AXIS,      /* int32_t; negative counts from the end */
    EDDY_ATTRIBUTE_CHOICE,    /* int32_t; number of one of several names */
    EDDY_ATTRIBUTE_DEVICE,    /* of a creation op; in no struct */
    EDDY_ATTRIBUTE_GENERATOR, /* of a random op; in no struct */
    EDDY_ATTRIBUTE_TEXT,      /* const char *, of a function made of ops (einsum's equation) */
    EDDY_ATTRIBUTE_PAIR,      /* eddy_pair */
} eddy_attribute_type;

typedef struct eddy_operand_description {
    const char *name;
    eddy_operand_kind kind;
    bool is_mut; /* the kernel reads it and writes to it */
} eddy_operand_description;

typedef struct eddy_attribute_description {
    const char *name;
    eddy_attribute_type type; /* INT to SHAPE */
    size_t offset;            /* offsetof in the op's attribute struct */
    bool is_required;         /* a SHAPE must be */
    eddy_scalar default_value;
} eddy_attribute_description;

/* The properties of a tensor that inference uses. */
typedef struct eddy_spec {
    eddy_dtype dtype;
    bool is_absent; /* EDDY_NONE was given for an optional operand */
    eddy_shape shape;
} eddy_spec;

/* The argument of `infer`. */
typedef struct eddy_op_inference {
    size_t size;
    const eddy_spec *inputs; /* in the order of the operands, the items of lists in a row */
    int64_t input_count;
    const int64_t *list_counts; /* items of each list operand, in order */
    void *attributes;           /* the call's own copy, which may be changed */
    eddy_spec *outputs;         /* to fill: dtype and shape of each output */
    int32_t output_count;
    char *message; /* on failure: a sentence for the error, cut to message_bytes with its final 0 */
    size_t message_bytes;
} eddy_op_inference;

/* A tensor as a kernel sees it. An absent operand has rank -1. data may be NULL where a dim is 0. */
typedef struct eddy_op_view {
    void *data; /* the first element (the offset is applied) */
    const int64_t *shape;
    const int64_t *strides; /* in elements; 0 if broadcast, may be negative */
    eddy_dtype dtype;
    int32_t rank;
} eddy_op_view;

typedef struct eddy_op_call {
    size_t size;
    const eddy_op_view *views; /* inputs (the items of lists in a row), then outputs */
    int32_t view_count;
    const void *attributes;
    void *workspace;   /* 64-byte aligned, as many bytes as `prepare` said */
    const void *state; /* the plan's state; NULL without `prepare` */
    /* EDDY_DEVICE_CUDA: the driver's stream (a CUstream, which is a cudaStream_t) on which `run` launches; NULL elsewhere */
    void *stream;
} eddy_op_call;

/* Filled in by `prepare`; all but the size is 0 at first. */
typedef struct eddy_op_plan {
    size_t size;
    size_t workspace_bytes; /* that `run` (and `count`) gets */
    int64_t
        cost_ns; /* estimated time on one core, which decides the order in which calls begin; 0: not known */
    void
        *state; /* data that all calls of this plan share (tables, plans of a library), read only */
} eddy_op_plan;

/* The kernel of one kind of device. `run` and `count` run on worker threads, several calls at once, those for EDDY_DEVICE_FAR on the device's thread, where data lead to its memory; `prepare` and `destroy` on a
 * thread that issues an op. They may call nothing of this library, must not keep pointers of the call, and leave the
 * floating-point environment as it is.
 *
 * For EDDY_DEVICE_CUDA `run` is the host's side. It is called on the device's launching thread, once the call's operands are there and none holds an error; data and workspace are the device's, and the
 * device's primary context is the thread's. It launches on call->stream, and on no other, waits for nothing, and returns at once: what it launches comes after all that the call
 * depends on, what depends on the call comes after it, and the memory stays until then. EDDY_OK says that it was launched; any other status fails the call as it does on the
 * CPU. A failure that only the device notices costs the device (DEVICE_LOST). Nothing launched may wait for the host. A call that leaves the stream capturing fails with UNSUPPORTED, and what it has captured is
 * dropped; if another thread has begun that, the device is lost. No late shapes. */
typedef struct eddy_op_kernel {
    eddy_device_kind device;
    /* Computes the outputs and mut operands. Any status but EDDY_OK poisons the tensors that the call writes. */
    eddy_status (*run)(const eddy_op_call *call);
    /* Plans the calls that have the same attributes (bytes of the struct), dtypes, shapes and strides, when the first of them is issued;
     * views have no data. Plans are kept: the 256 most recently used of all ops, and those of calls in flight. Any status but EDDY_OK
     * fails the call at once; UNSUPPORTED is kept like a plan. Two threads may make the same plan at once; then one
     * of the two is destroyed. NULL: no workspace and no state. */
    eddy_status (*prepare)(const eddy_op_call *call, eddy_op_plan *plan);
    /* Frees a plan's state, if it has one, after the last call that uses it; NULL: nothing to do. */
    void (*destroy)(void *state);
    /* With has_late_shape: writes the shape of each output. Inputs have data. */
    eddy_status (*count)(const eddy_op_call *call, eddy_shape *shapes);
} eddy_op_kernel;

struct eddy_backward_call;

typedef struct eddy_op_description {
    size_t size;      /* sizeof(eddy_op_description) */
    const char *name; /* with a dot: "user.smooth" */
    const char *summary;
    const eddy_operand_description *operands; /* 32 at most */
    int32_t operand_count;
    const char *const *outputs; /* names; 8 at most. None: the op only writes to its mut operands */
    int32_t output_count;
    const eddy_attribute_description *attributes; /* 32 at most */
    int32_t attribute_count;
    size_t attribute_bytes; /* of the attribute struct; 4096 at most */
    /* Determines shapes and dtypes of the outputs and checks the operands: on the issuing thread, inside the call. It may not
     * issue calls of its own. NULL if there are no outputs. */
    eddy_status (*infer)(eddy_op_inference *inference);
    const eddy_op_kernel *
        kernels; /* one for each kind of device that the op runs on, EDDY_DEVICE_CPU among them; elsewhere a call is UNSUPPORTED */
    int32_t kernel_count;
    bool
        has_late_shape; /* the outputs' dims depend on data: infer gives dtype and rank, the kernel's `count` the dims */
    /* The gradient (<eddy/function.h>): runs on the thread of the backward pass and issues ops. NULL: a recorded call is refused,
     * unless has_no_grad says that the outputs carry none. Not for ops that write to operands. */
    eddy_status (*backward)(struct eddy_backward_call *call);
    uint32_t backward_inputs,
        backward_outputs; /* the operands and outputs whose elements it reads: bit i for operand i, for output i */
    bool has_no_grad;
} eddy_op_description;

/* Adds an op to those that eddy_call finds, for all runtimes and the life of the process. Everything but
 * the functions is copied. INVALID_ARGUMENT (with a message; also for a name that is taken), UNSUPPORTED (no kernel for
 * the CPU), OUT_OF_MEMORY. Never blocks for long; any thread. */
EDDY_API eddy_status eddy_op_register(const eddy_op_description *description);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_op_register(...) EDDY_AT_CALL_SITE(eddy_op_register(__VA_ARGS__))
#endif
#endif
