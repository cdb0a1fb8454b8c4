#include <program/step_trace.h>

#include <program/health.h>

static eddy_trace_event describe(const eddy_frame *frame, uint32_t step) {
    const eddy_health *h = frame->traced;
    uint32_t first = h->executable->first_of[step];
    return (eddy_trace_event){.phase = EDDY_TRACE_KERNEL,
                              .op = eddy_code_instruction_at(h->code, first)->op->name,
                              .runtime = eddy_vm_number(h->run->vm),
                              .sequence = eddy_health_sequence(h, first)};
}

eddy_trace_span eddy_step_send_begin(const eddy_frame *frame, uint32_t step) {
    eddy_trace_event event = describe(frame, step);
    return eddy_trace_send_begin(&event);
}

void eddy_step_send_end(const eddy_frame *frame, uint32_t step, eddy_trace_span span) {
    eddy_trace_event event = describe(frame, step);
    eddy_trace_send_end(span, &event);
}
