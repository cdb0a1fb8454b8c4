#include <base/trace.h>

_Atomic(const eddy_trace_listener *) eddy_trace_listening;

void eddy_trace_listen(const eddy_trace_listener *listener) {
    eddy_store_release(&eddy_trace_listening, listener);
}

const char *eddy_trace_phase_name(eddy_trace_phase phase) {
    static const char *const names[] = {
#define EDDY_TRACE_PHASE_ROW(enumerator, name) #name,
        EDDY_TRACE_PHASE_LIST(EDDY_TRACE_PHASE_ROW)
#undef EDDY_TRACE_PHASE_ROW
    };
    return (unsigned)phase < EDDY_TRACE_PHASE_COUNT ? names[phase] : "?";
}
