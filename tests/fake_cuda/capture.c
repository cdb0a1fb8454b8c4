#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/graph.h>

/* Which captures the calling thread heeds. Its address also tells threads apart. */
static _Thread_local eddy_cu_capture_mode thread_mode = EDDY_CU_CAPTURE_GLOBAL;

bool fake_capture_spoil(fake_stream *stream) {
    if (!stream->capture.graph)
        return false;
    stream->capture.is_invalid = true;
    return true;
}

/* ---- calls meanwhile ---- */

/* The driver says of few calls that they are: so are all here that make, end or await something, or ask whether it is over. */
static bool is_unsafe(fake_entry entry) {
    switch (entry) {
    case FAKE_cuDevicePrimaryCtxRetain:
    case FAKE_cuDevicePrimaryCtxRelease_v2:
    case FAKE_cuCtxEnablePeerAccess:
    case FAKE_cuStreamCreateWithPriority:
    case FAKE_cuStreamDestroy_v2:
    case FAKE_cuStreamQuery:
    case FAKE_cuEventCreate:
    case FAKE_cuEventDestroy_v2:
    case FAKE_cuEventSynchronize:
    case FAKE_cuMemAlloc_v2:
    case FAKE_cuMemFree_v2:
    case FAKE_cuMemHostAlloc:
    case FAKE_cuMemFreeHost:
    case FAKE_cuModuleLoadData:
    case FAKE_cuModuleUnload:
        return true;
    default:
        return false;
    }
}

static bool is_heeded(const fake_capture *capture) {
    bool is_own = capture->thread == &thread_mode;
    bool is_global =
        thread_mode == EDDY_CU_CAPTURE_GLOBAL && capture->mode == EDDY_CU_CAPTURE_GLOBAL;
    return capture->graph && thread_mode != EDDY_CU_CAPTURE_RELAXED &&
           capture->mode != EDDY_CU_CAPTURE_RELAXED && (is_own || is_global);
}

bool fake_capture_refuses(fake_entry entry) {
    bool is_refused = false;
    for (int s = 0; s < FAKE_STREAMS && is_unsafe(entry); s++)
        if (is_heeded(&fake_streams[s].capture))
            is_refused = fake_capture_spoil(&fake_streams[s]);
    return is_refused;
}

/* ---- entries ---- */

static bool is_mode(eddy_cu_capture_mode mode) {
    return mode == EDDY_CU_CAPTURE_GLOBAL || mode == EDDY_CU_CAPTURE_THREAD_LOCAL ||
           mode == EDDY_CU_CAPTURE_RELAXED;
}

eddy_cu_result cuThreadExchangeStreamCaptureMode(eddy_cu_capture_mode *mode) {
    FAKE_BEGIN(cuThreadExchangeStreamCaptureMode, FAKE_NEEDS_INIT);
    if (!mode || !is_mode(*mode))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    eddy_cu_capture_mode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuStreamBeginCapture_v2(eddy_cu_stream handle, eddy_cu_capture_mode mode) {
    FAKE_BEGIN(cuStreamBeginCapture_v2, FAKE_NEEDS_CONTEXT);
    fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (!is_mode(mode))
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURE_INVALIDATED);
    fake_graph *graph = fake_graph_create(call.device);
    if (!graph)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    graph->is_open = true;
    stream->capture = (fake_capture){graph, mode, &thread_mode, false};
    return fake_call_end(&call, 0);
}

eddy_cu_result cuStreamIsCapturing(eddy_cu_stream handle, eddy_cu_capture_status *status) {
    FAKE_BEGIN(cuStreamIsCapturing, FAKE_NEEDS_CONTEXT);
    const fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream || !status)
        return fake_call_end(&call, status ? EDDY_CU_INVALID_HANDLE : EDDY_CU_INVALID_VALUE);
    *status = !stream->capture.graph       ? EDDY_CU_CAPTURES_NOT
              : stream->capture.is_invalid ? EDDY_CU_CAPTURES_NO_MORE
                                           : EDDY_CU_CAPTURES;
    return fake_call_end(&call, 0);
}

eddy_cu_result cuStreamEndCapture(eddy_cu_stream handle, eddy_cu_graph *made) {
    FAKE_BEGIN(cuStreamEndCapture, FAKE_NEEDS_CONTEXT);
    fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream || !made)
        return fake_call_end(&call, made ? EDDY_CU_INVALID_HANDLE : EDDY_CU_INVALID_VALUE);
    const fake_capture capture = stream->capture;
    *made = NULL;
    if (!capture.graph)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    if (capture.mode != EDDY_CU_CAPTURE_RELAXED && capture.thread != &thread_mode)
        return fake_call_end(&call, EDDY_CU_CAPTURE_OF_OTHER_THREAD);
    stream->capture = (fake_capture){0};
    capture.graph->is_open = false;
    if (capture.is_invalid) {
        fake_graph_free(capture.graph);
        return fake_call_end(&call, EDDY_CU_CAPTURE_INVALIDATED);
    }
    *made = fake_graph_handle(capture.graph);
    return fake_call_end(&call, 0);
}
