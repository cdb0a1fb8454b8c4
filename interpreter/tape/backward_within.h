/* A backward pass that stays within the calls of an open recording: it ends at the tensors that were there before, so that a program can
 * have it as its own backward pass (program/gradient.h). */
#ifndef EDDY_INTERPRETER_TAPE_BACKWARD_WITHIN_H
#define EDDY_INTERPRETER_TAPE_BACKWARD_WITHIN_H

#include <base/call_site.h>
#include <interpreter/tape/autograd.h>

/* The gradient of a tensor that was there before the recording. */
typedef struct eddy_backward_edge {
    eddy_autograd word;    /* a reference of its node */
    eddy_tensor *gradient; /* a reference */
} eddy_backward_edge;

typedef struct eddy_backward_found {
    eddy_backward_edge *edges; /* in the order in which the pass has come to them */
    uint32_t count;
    uint64_t
        inner; /* a bit for each of the first 64 outputs that another output was computed from */
} eddy_backward_found;

/* The gradients of the tensors that were there before the calling thread's recording with this serial. All outputs were made by recorded calls. The
 * tape stays as it is; no gradient is kept, and no hook of those tensors runs. Failures are recorded: those of eddy_backward_to, and
 * UNSUPPORTED where a tensor that the recording made has a hook, keeps its gradient or is a leaf. */
EDDY_MUST_USE eddy_status eddy_backward_within(uint64_t recording, eddy_list outputs,
                                               eddy_list seeds, eddy_origin origin,
                                               eddy_backward_found *found);
void eddy_backward_found_fini(eddy_backward_found *found);

#endif
