/* Gradients by a tape.
 *
 * If an op reads a tensor that requires a gradient, its results require one too, and the call is recorded: the op, the operands and
 * results that its gradient reads, and the calls that made its operands. eddy_backward goes through the recorded calls backwards and
 * adds the gradients to those of the tensors that the program marked with eddy_requires_grad_set (leaves). The backward pass issues
 * ordinary ops: it returns at once, and its errors are reported like those of any op.
 *
 * Only tensors of a floating dtype carry gradients. Results of comparisons, argmax and the like carry none. A gradient has
 * its tensor's shape, dtype and device.
 *
 * Ownership: the tape holds the tensors that it saved, not the results; it ends with the last tensor made through it. Saved
 * tensors are released during the backward pass, unless keeps_graph is set.
 *
 * In place: writing to a leaf, or through a view of a tensor that requires a gradient, is refused while recording
 * (eddy_no_grad_begin allows both). If a saved tensor was written to, the backward pass fails: INVALID_ARGUMENT names
 * the op.
 *
 * Threads: any; several may run a backward pass at once, also over shared parts. Each thread switches recording on and off for itself.
 * Nothing here waits for data, except, as in all ops, for shapes that depend on data. */
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

/* Marks a tensor as a leaf that requires a gradient, or removes the mark and the gradient. For tensors that no
 * recorded op made; for others true changes nothing and false is INVALID_ARGUMENT (use eddy_detach).
 * DTYPE_MISMATCH (not floating), OUT_OF_MEMORY. Not while another thread uses the handle. */
EDDY_API eddy_status eddy_requires_grad_set(eddy_tensor *tensor, bool requires_grad);
/* Whether ops on the tensor are recorded. False on failure. */
EDDY_API bool eddy_requires_grad(const eddy_tensor *tensor);

/* A view of the same elements that requires no gradient. */
EDDY_API eddy_tensor *eddy_detach(eddy_tensor *tensor);

/* Between begin and end the calling thread records nothing. They nest. */
EDDY_API void eddy_no_grad_begin(void);
EDDY_API void eddy_no_grad_end(void);

/* ---- the backward pass ---- */

/* Runs the backward pass from a tensor of one element (any rank). INVALID_ARGUMENT: more elements, no gradient required, an earlier pass
 * without keeps_graph, or a saved tensor was written to. If an op fails, leaves keep what had been summed. */
EDDY_API eddy_status eddy_backward(eddy_tensor *loss);

typedef struct eddy_backward_options {
    size_t size;
    bool keeps_graph; /* keeps saved tensors, so that another pass is possible */
    bool
        creates_graph; /* records the pass itself, for gradients of gradients; implies keeps_graph */
} eddy_backward_options;

/* Runs the backward pass from several tensors with given gradients: seeds.items[i] is like outputs.items[i], in shape, dtype and device; EDDY_NONE
 * means 1 for an output of one element. seeds without items: 1 for all. */
EDDY_API eddy_status eddy_backward_from(eddy_list outputs, eddy_list seeds,
                                        const eddy_backward_options *options);

/* The same, but returns the gradients of `inputs` in grads[0 .. inputs.count - 1] and changes no leaf. They are new
 * references, owned by the scope; EDDY_NONE if the outputs do not depend on the input. On failure nothing is written.
 * Inputs may be any tensors that require a gradient. */
EDDY_API eddy_status eddy_backward_to(eddy_list outputs, eddy_list inputs, eddy_list seeds,
                                      const eddy_backward_options *options, eddy_tensor **grads);

/* ---- gradients of leaves ---- */

/* The gradient that backward passes have summed for a tensor: a new reference, owned by the scope. A later pass adds to the same
 * tensor. NULL with INVALID_ARGUMENT if there is none. */
EDDY_API eddy_tensor *eddy_grad_of(eddy_tensor *tensor);
/* The same for the tensors of a list, into grads[0 .. params.count - 1]: EDDY_NONE for one without a gradient, which optimisers
 * and eddy_clip_grad_norm leave out. A tensor that requires no gradient is INVALID_ARGUMENT. On failure nothing is written. */
EDDY_API eddy_status eddy_grads_of(eddy_list params, eddy_tensor **grads);
/* Whether the tensor has a gradient for eddy_grad_of. */
EDDY_API bool eddy_has_grad(const eddy_tensor *tensor);
/* Makes a tensor that is not a leaf keep its gradient too. UNSUPPORTED for an output of a program's run from which another of its outputs was computed
 * (docs/programs.md), as in eddy_backward_to and eddy_grad_hook_add. */
EDDY_API eddy_status eddy_grad_keep(eddy_tensor *tensor);
/* Releases the gradients of the tensors; the next backward pass stores theirs instead of adding. */
EDDY_API eddy_status eddy_grads_zero(eddy_list tensors);

/* ---- hooks ---- */

/* Called on the thread of the backward pass when a tensor's gradient is complete and before it is used. Returns a
 * replacement (same shape, dtype and device, a reference that the pass takes), or NULL to keep the gradient. May issue ops. */
typedef eddy_tensor *eddy_grad_hook(void *context, eddy_tensor *grad);

/* Hooks of one tensor run in the order they were added, and stay as long as the tape knows the tensor. destroy (may be NULL) runs
 * once after that, on the thread that releases the last reference; it may only retain and release. */
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
