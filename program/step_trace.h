/* Events of the steps of a run (base/trace.h): a step that runs is a kernel, by the name and the number of its first call. */
#ifndef EDDY_PROGRAM_STEP_TRACE_H
#define EDDY_PROGRAM_STEP_TRACE_H

#include <base/trace.h>
#include <program/executable.h>

eddy_trace_span eddy_step_send_begin(const eddy_frame *frame, uint32_t step);
void eddy_step_send_end(const eddy_frame *frame, uint32_t step, eddy_trace_span span);

/* Around what runs step number `step` of the frame's executable. */
static inline eddy_trace_span eddy_step_trace_begin(const eddy_frame *frame, uint32_t step) {
    return EDDY_LIKELY(!frame->traced) ? (eddy_trace_span){0} : eddy_step_send_begin(frame, step);
}
static inline void eddy_step_trace_end(const eddy_frame *frame, uint32_t step,
                                       eddy_trace_span span) {
    if (EDDY_UNLIKELY(span.listeners != 0))
        eddy_step_send_end(frame, step, span);
}

static inline void eddy_step_run(const eddy_step *step, eddy_frame *frame, uint32_t number) {
    eddy_trace_span span = eddy_step_trace_begin(frame, number);
    step->run(step, frame);
    eddy_step_trace_end(frame, number, span);
}

#endif
