/* Gradients by a tape.
 *
 * Where an op reads a tensor that requires a gradient, what it makes requires one too, and the call is noted: the op, what its
 * gradient needs of operands and results, and where those came from. eddy_backward goes that way back and leaves its sums with
 * the tensors that the user marked with eddy_requires_grad_set (leaves). Going back issues ordinary ops: it returns at once,
 * and its errors come as those of any op.
 *
 * Only tensors of a floating dtype carry gradients. Results of comparisons, argmax and the like carry none. A gradient has
 * its tensor's shape, dtype and device.
 *
 * Ownership: the tape holds what it saved, not the results themselves; it ends with the last tensor made through it. Saved
 * tensors are given up as going back proceeds, unless keeps_graph is set.
 *
 * In place: writing to a leaf, or through a view of a tensor that requires a gradient, is refused while recording
 * (eddy_no_grad_begin allows both). What was saved and then written to is found out when going back: INVALID_ARGUMENT names
 * the op.
 *
 * Threads: any; several may go back at once, also over parts that they share. Recording is a matter of the calling thread.
 * Nothing here waits for data, only, as all ops do, for shapes that depend on it. */
#ifndef EDDY_GRAD_H
#define EDDY_GRAD_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a tensor whose gradient is wanted, or takes the mark (and the gradient kept with it) away. For tensors that no
 * recorded op made; on others true changes nothing and false is INVALID_ARGUMENT (eddy_detach gives a tensor without).
 * DTYPE_MISMATCH (not floating), OUT_OF_MEMORY. Not while another thread uses the handle. */
EDDY_API eddy_status eddy_requires_grad_set(eddy_tensor *tensor, bool requires_grad);
/* Whether ops on the tensor are recorded. False on failure. */
EDDY_API bool eddy_requires_grad(const eddy_tensor *tensor);

/* A view of the same elements that requires no gradient. */
EDDY_API eddy_tensor *eddy_detach(eddy_tensor *tensor);

/* Between the two the calling thread records nothing. They nest. */
EDDY_API void eddy_no_grad_begin(void);
EDDY_API void eddy_no_grad_end(void);

/* ---- going back ---- */

/* From one element (any rank). INVALID_ARGUMENT: more elements, no gradient required, gone back before without keeps_graph,
 * or something saved was written to since. When an op fails, leaves keep what had been summed. */
EDDY_API eddy_status eddy_backward(eddy_tensor *loss);

typedef struct eddy_backward_options {
    size_t size;
    bool keeps_graph; /* what was saved stays: going back again is possible */
    bool
        creates_graph; /* going back is recorded itself, for gradients of gradients; implies keeps_graph */
} eddy_backward_options;

/* From several tensors, each with the gradient it begins with: seeds.items[i] has the shape of outputs.items[i], EDDY_NONE
 * stands for 1 where that is one element. seeds without items: 1 for all. */
EDDY_API eddy_status eddy_backward_from(eddy_list outputs, eddy_list seeds,
                                        const eddy_backward_options *options);

/* The same, but the gradients of `inputs` are written to grads[0 .. inputs.count - 1] and nothing is left with leaves. New
 * references, owned by the scope; EDDY_NONE where the outputs do not depend on an input. On failure nothing is written.
 * Inputs may be any tensors that require a gradient. */
EDDY_API eddy_status eddy_backward_to(eddy_list outputs, eddy_list inputs, eddy_list seeds,
                                      const eddy_backward_options *options, eddy_tensor **grads);

/* ---- what was left ---- */

/* What going back has summed for a tensor: a new reference, owned by the scope. It keeps changing when going back adds more.
 * NULL with INVALID_ARGUMENT where there is none. */
EDDY_API eddy_tensor *eddy_grad_of(eddy_tensor *tensor);
/* The same for the tensors of a list, into grads[0 .. params.count - 1]: EDDY_NONE for one that nothing has gone back to, which optimisers
 * and eddy_clip_grad_norm leave out. A tensor that requires no gradient is INVALID_ARGUMENT. On failure nothing is written. */
EDDY_API eddy_status eddy_grads_of(eddy_list params, eddy_tensor **grads);
/* Whether eddy_grad_of has something to return. */
EDDY_API bool eddy_has_grad(const eddy_tensor *tensor);
/* Lets a tensor that is no leaf keep its gradient too. */
EDDY_API eddy_status eddy_grad_keep(eddy_tensor *tensor);
/* Gives the gradients of the tensors up; the next ones are stored, not added. */
EDDY_API eddy_status eddy_grads_zero(eddy_list tensors);

/* ---- hooks ---- */

/* Called on the thread that goes back, when a tensor's gradient is complete and before it goes further: returns what is to take
 * its place (same shape and dtype, a reference that the hook gives away), or NULL to leave it. May issue ops. */
typedef eddy_tensor *eddy_grad_hook(void *context, eddy_tensor *grad);

/* Hooks of one tensor run in the order they were added, and stay as long as the tape knows the tensor. destroy (may be NULL) runs
 * once after that, on the thread that gives up the last reference; it may only retain and release. */
EDDY_API eddy_status eddy_grad_hook_add(eddy_tensor *tensor, eddy_grad_hook *hook, void *context,
                                        void (*destroy)(void *context));

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_requires_grad_set(...) EDDY_AT_CALL_SITE(eddy_requires_grad_set(__VA_ARGS__))
#define eddy_requires_grad(...) EDDY_AT_CALL_SITE(eddy_requires_grad(__VA_ARGS__))
#define eddy_detach(...) EDDY_AT_CALL_SITE(eddy_detach(__VA_ARGS__))
#define eddy_no_grad_end(...) EDDY_AT_CALL_SITE_VOID(eddy_no_grad_end(__VA_ARGS__))
#define eddy_backward(...) EDDY_AT_CALL_SITE(eddy_backward(__VA_ARGS__))
#define eddy_backward_from(...) EDDY_AT_CALL_SITE(eddy_backward_from(__VA_ARGS__))
#define eddy_backward_to(...) EDDY_AT_CALL_SITE(eddy_backward_to(__VA_ARGS__))
#define eddy_grad_of(...) EDDY_AT_CALL_SITE(eddy_grad_of(__VA_ARGS__))
#define eddy_grads_of(...) EDDY_AT_CALL_SITE(eddy_grads_of(__VA_ARGS__))
#define eddy_has_grad(...) EDDY_AT_CALL_SITE(eddy_has_grad(__VA_ARGS__))
#define eddy_grad_keep(...) EDDY_AT_CALL_SITE(eddy_grad_keep(__VA_ARGS__))
#define eddy_grads_zero(...) EDDY_AT_CALL_SITE(eddy_grads_zero(__VA_ARGS__))
#define eddy_grad_hook_add(...) EDDY_AT_CALL_SITE(eddy_grad_hook_add(__VA_ARGS__))
#endif
#endif
