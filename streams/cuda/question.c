#include <base/atomic.h>
#include <base/fork_gate.h>
#include <base/process.h>
#include <streams/cuda/question.h>

/* Each is kept for good. Later questions find what earlier ones have started. */
#define HANDLERS_MOST 64

static _Atomic uint32_t handlers; /* atomic: relaxed, a count */

void eddy_cuda_question_begin(void) {
    eddy_fork_gate_enter();
}

void eddy_cuda_question_end(void) {
    eddy_fork_gate_leave();
    if (eddy_load_relaxed(&handlers) < HANDLERS_MOST &&
        eddy_add_relaxed(&handlers, 1u) < HANDLERS_MOST)
        eddy_process_exit_first();
}
