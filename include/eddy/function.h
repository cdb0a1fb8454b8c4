/* Functions with a gradient of the program's own.
 *
 * eddy_function_call pairs a forward function with a backward one, both of which issue ops on the calling thread. Tensors that forward
 * computes for backward are saved with the tape. This serves functions whose gradient is simpler or numerically more stable than
 * the gradients of their ops, and functions that use an op without a gradient. */
#ifndef EDDY_FUNCTION_H
#define EDDY_FUNCTION_H

#include <eddy/export.h>
#include <eddy/op.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_forward_call {
    size_t size;
    void *context;
    eddy_tensor *const *inputs; /* as given by the caller; EDDY_NONE for an absent one */
    int64_t input_count;
    eddy_tensor **outputs; /* to fill; not NULL */
    int32_t output_count;
    void *tape; /* eddy_forward_save's */
} eddy_forward_call;

/* A call of a backward function, of a custom function or of a registered op. */
typedef struct eddy_backward_call {
    size_t size;
    void *context;          /* custom functions: that of the call */
    const void *attributes; /* registered ops: the call's */
    eddy_tensor *const *
        inputs; /* registered ops: NULL if backward_inputs does not name the operand; the items of lists in a row */
    const eddy_spec *input_specs;
    int64_t input_count;
    const int64_t *list_counts;
    eddy_tensor *const *outputs; /* registered ops: NULL if backward_outputs does not name it */
    int32_t output_count;
    eddy_tensor *const *saved; /* custom functions: what forward saved, in that order */
    int64_t saved_count;
    eddy_tensor *const *
        grads; /* of each output, of its shape and dtype, on its device; NULL if its dtype is not floating */
    const bool *is_wanted; /* per input */
    eddy_tensor **
        results; /* per input, to fill: its gradient, on its device; NULL for 0. May be broadcast, or of a wider dtype */
} eddy_backward_call;

/* Must stay constant, with its name, as long as a tape refers to it: make it static. */
typedef struct eddy_function {
    size_t size;
    const char *name;
    int32_t output_count; /* 1 to 8 */
    /* Both return EDDY_OK, or the status of the failure. Tensors that they make belong to a scope of the call. forward runs without
     * recording. backward runs at most once in each backward pass, and is recorded itself with creates_graph. */
    eddy_status (*forward)(eddy_forward_call *call);
    eddy_status (*backward)(eddy_backward_call *call);
    /* May be NULL. Called once with the context after its last use, at the end of the call or on the thread that releases
     * the last reference; may only retain and release. */
    void (*destroy)(void *context);
    /* What backward gives depends on its arguments alone: on saved tensors and gradients, and on a context that is the same for each call and
     * does not change. A pass with creates_graph through a run of a program may then call it, for saved tensors of that run and with the context of the
     * recorded call, which the program keeps; else such a pass is UNSUPPORTED. */
    bool is_pure;
} eddy_function;

/* Keeps tensors for backward: inputs, outputs or others. Within forward. OUT_OF_MEMORY, INVALID_ARGUMENT. */
EDDY_API eddy_status eddy_forward_save(eddy_forward_call *call, eddy_list tensors);

/* Runs forward on the inputs (EDDY_NONE for absent ones) and fills outputs[0 .. output_count - 1] with new tensors, on success
 * only. If the call succeeds it takes the context; else the context stays the caller's and destroy is not called. */
EDDY_API eddy_status eddy_function_call(const eddy_function *function, void *context,
                                        eddy_list inputs, eddy_tensor **outputs);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_forward_save(...) EDDY_AT_CALL_SITE(eddy_forward_save(__VA_ARGS__))
#define eddy_function_call(...) EDDY_AT_CALL_SITE(eddy_function_call(__VA_ARGS__))
#endif
#endif
