#include <stdlib.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/graph.h>
#include <tests/fake_cuda/handle.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/stream.h>

#define EVENTS 65536
#define FLAGS 7u /* blocking, without times, for other processes */

/* What it is recorded behind, at its last record. */
typedef struct event {
    fake_device *device; /* NULL: the place is free */
    uint64_t context;    /* generation of the device's */
    uint64_t generation;
    uint32_t stream;
    uint64_t number; /* the piece of the record; 0: never recorded */
    fake_clock clock;
} event;

static event *events[EVENTS]; /* lock: the fake's; made when first needed, one behind the other */
static uint32_t made;         /* lock: the fake's; no place at or behind it has one */
static uint32_t next_place;   /* lock: the fake's; where to look for a free one */

static event *event_of(eddy_cu_event handle) {
    uint64_t generation;
    uint32_t index;
    if (!fake_handle_read(handle, FAKE_EVENT, &generation, &index) || index >= EVENTS)
        return NULL;
    event *found = events[index];
    return found && found->device && found->generation == generation &&
                   found->device->references > 0 && found->device->generation == found->context
               ? found
               : NULL;
}

static bool is_free(const event *place) {
    return !place || !place->device || place->device->references == 0 ||
           place->device->generation != place->context;
}

long fake_cuda_handles(void) {
    pthread_mutex_lock(&fake_lock);
    long count = fake_stream_count() + fake_host_count() + fake_graph_count();
    for (uint32_t e = 0; e < made; e++)
        count += !is_free(events[e]);
    pthread_mutex_unlock(&fake_lock);
    return count;
}

eddy_cu_result cuEventCreate(eddy_cu_event *handle, unsigned flags) {
    FAKE_BEGIN(cuEventCreate, FAKE_NEEDS_CONTEXT);
    if (!handle || flags > FLAGS)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    uint32_t looked_at = 0;
    while (looked_at < EVENTS && !is_free(events[next_place])) {
        next_place = (next_place + 1) % EVENTS;
        looked_at++;
    }
    uint32_t place = next_place;
    if (looked_at == EVENTS || (!events[place] && !(events[place] = calloc(1, sizeof(event)))))
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    if (place == made)
        made++;
    *events[place] = (event){.device = call.device,
                             .context = call.device->generation,
                             .generation = events[place]->generation + 1};
    *handle = fake_handle(FAKE_EVENT, events[place]->generation, place);
    return fake_call_end(&call, 0);
}

/* Who waits for it goes on as before. */
eddy_cu_result cuEventDestroy_v2(eddy_cu_event handle) {
    FAKE_BEGIN(cuEventDestroy_v2, FAKE_NEEDS_CONTEXT);
    event *found = event_of(handle);
    if (!found)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    found->device = NULL;
    uint64_t generation;
    fake_handle_read(handle, FAKE_EVENT, &generation, &next_place);
    return fake_call_end(&call, 0);
}

eddy_cu_result cuEventRecord(eddy_cu_event handle, eddy_cu_stream stream_handle) {
    FAKE_BEGIN(cuEventRecord, FAKE_NEEDS_CONTEXT);
    event *found = event_of(handle);
    fake_stream *stream = fake_stream_of(stream_handle, call.device);
    if (!found || !stream || found->device != call.device)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    fake_piece *piece = fake_piece_create(FAKE_RECORD, "record", 0);
    if (!piece)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    fake_stream_launch(stream, piece);
    found->stream = fake_stream_number(stream);
    found->number = stream->launched;
    found->clock = stream->clock;
    return fake_call_end(&call, 0);
}

/* The event may be another device's. */
eddy_cu_result cuStreamWaitEvent(eddy_cu_stream stream_handle, eddy_cu_event handle,
                                 unsigned flags) {
    FAKE_BEGIN(cuStreamWaitEvent, FAKE_NEEDS_CONTEXT);
    event *found = event_of(handle);
    fake_stream *stream = fake_stream_of(stream_handle, call.device);
    if (!found || !stream || flags != 0)
        return fake_call_end(&call, flags ? EDDY_CU_INVALID_VALUE : EDDY_CU_INVALID_HANDLE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    if (found->number == 0)
        return fake_call_end(&call, 0);
    fake_piece *piece = fake_piece_create(FAKE_WAIT, "wait", 0);
    if (!piece)
        return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
    piece->other = found->stream;
    piece->awaited = found->number;
    fake_clock_join(&stream->clock, &found->clock);
    fake_stream_launch(stream, piece);
    return fake_call_end(&call, 0);
}

eddy_cu_result cuEventSynchronize(eddy_cu_event handle) {
    FAKE_BEGIN(cuEventSynchronize, FAKE_NEEDS_CONTEXT);
    const event *found = event_of(handle);
    if (!found)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    /* As it is now: it may be recorded again meanwhile, or destroyed. */
    event awaited = *found;
    if (awaited.number > 0)
        fake_stream_release(&awaited.clock);
    while (awaited.number > 0 && !fake_call_is_over() &&
           !fake_stream_is_done(awaited.stream, awaited.number))
        pthread_cond_wait(&fake_progress, &fake_lock);
    if (fake_call_is_over())
        return fake_call_end(&call, EDDY_CU_DEINITIALIZED);
    if (awaited.device->lost)
        return fake_call_end(&call, awaited.device->lost);
    if (awaited.number > 0)
        fake_clock_join(&fake_host_clock, &awaited.clock);
    return fake_call_end(&call, 0);
}
