/* A hook for each phase, for NVTX and trace files: costs a test of one pointer without a listener. */
#ifndef EDDY_BASE_TRACE_H
#define EDDY_BASE_TRACE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <stdint.h>

#define EDDY_TRACE_PHASE_LIST(row)                                                                 \
    row(ISSUE, issue) row(INFER, infer) row(SCHEDULE, schedule) row(DISPATCH, dispatch)            \
        row(KERNEL, kernel) row(RELEASE, release) row(WAIT, wait)

typedef enum eddy_trace_phase {
#define EDDY_TRACE_PHASE_ROW(enumerator, name) EDDY_TRACE_##enumerator,
    EDDY_TRACE_PHASE_LIST(EDDY_TRACE_PHASE_ROW)
#undef EDDY_TRACE_PHASE_ROW
        EDDY_TRACE_PHASE_COUNT
} eddy_trace_phase;

/* A listener: called on the thread that runs the phase; must not call the library. */
typedef struct eddy_trace_listener {
    void (*begin)(void *context, eddy_trace_phase phase, const char *name, uint64_t sequence);
    void (*end)(void *context, eddy_trace_phase phase, const char *name, uint64_t sequence);
    void *context;
} eddy_trace_listener;

extern _Atomic(const eddy_trace_listener *)
    eddy_trace_listening; /* atomic: set by any thread (release), read acquire */

/* Sets the listener (NULL: none). It must outlive the last event; the caller quiesces the runtimes first. */
void eddy_trace_listen(const eddy_trace_listener *listener);
const char *eddy_trace_phase_name(eddy_trace_phase phase);

/* Whether there is a listener; tested before an event that is expensive to describe. */
static inline bool eddy_trace_is_on(void) {
    return EDDY_UNLIKELY(eddy_load_relaxed(&eddy_trace_listening) != 0);
}

static inline void eddy_trace_begin(eddy_trace_phase phase, const char *name, uint64_t sequence) {
    const eddy_trace_listener *listener = eddy_load_acquire(&eddy_trace_listening);
    if (EDDY_UNLIKELY(listener != 0))
        listener->begin(listener->context, phase, name, sequence);
}

static inline void eddy_trace_end(eddy_trace_phase phase, const char *name, uint64_t sequence) {
    const eddy_trace_listener *listener = eddy_load_acquire(&eddy_trace_listening);
    if (EDDY_UNLIKELY(listener != 0))
        listener->end(listener->context, phase, name, sequence);
}

#endif
