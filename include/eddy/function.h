/* Functions with a gradient of the program's own.
 *
 * eddy_function_call pairs a forward function with a backward one, both of which issue ops on the calling thread; what the two need
 * between them is saved with the tape. Where the backward function is simpler or steadier than the gradient of each op inside,
 * or where an op inside has none, that is the way to say so. */
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
    eddy_tensor *const *inputs; /* as they were given; EDDY_NONE where absent */
    int64_t input_count;
    eddy_tensor **outputs; /* to fill; not NULL */
    int32_t output_count;
    void *tape; /* eddy_forward_save's */
} eddy_forward_call;

/* One way back, of a custom function or of a registered op. */
typedef struct eddy_backward_call {
    size_t size;
    void *context;          /* custom functions: theirs */
    const void *attributes; /* registered ops: the call's */
    eddy_tensor *const *
        inputs; /* registered ops: NULL where backward_inputs does not name the operand; lists spread out */
    const eddy_spec *input_specs;
    int64_t input_count;
    const int64_t *list_counts;
    eddy_tensor *const *outputs; /* registered ops: NULL where backward_outputs does not name it */
    int32_t output_count;
    eddy_tensor *const *saved; /* custom functions: what forward saved, in that order */
    int64_t saved_count;
    eddy_tensor *const
        *grads; /* of each output, of its shape and dtype; NULL for outputs of no floating dtype */
    const bool *is_wanted; /* per input */
    eddy_tensor **
        results; /* per input, to fill: its gradient; NULL for 0. May be broadcast, or of a wider dtype */
} eddy_backward_call;

/* Constant, with its name, as long as anything recorded through it lives: static. */
typedef struct eddy_function {
    size_t size;
    const char *name;
    int32_t output_count; /* 1 to 8 */
    /* Both return EDDY_OK, or the status of what failed. Tensors that they make belong to a scope of the call. forward runs without
     * recording. backward runs at most as often as somebody goes back, and is recorded itself with creates_graph. */
    eddy_status (*forward)(eddy_forward_call *call);
    eddy_status (*backward)(eddy_backward_call *call);
    /* May be NULL. Called once with the context when nothing needs it any more, at the end of the call or on the thread that gives
     * up the last reference; may only retain and release. */
    void (*destroy)(void *context);
} eddy_function;

/* Keeps tensors for backward: inputs, outputs or others. Within forward. OUT_OF_MEMORY, INVALID_ARGUMENT. */
EDDY_API eddy_status eddy_forward_save(eddy_forward_call *call, eddy_list tensors);

/* Runs forward on the inputs (EDDY_NONE for absent ones) and fills outputs[0 .. output_count - 1] with new tensors, on success
 * only. The context belongs to the call from here on if it succeeds, else it stays the caller's and destroy is not called. */
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
