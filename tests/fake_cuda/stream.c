#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/call.h>
#include <tests/fake_cuda/capture.h>
#include <tests/fake_cuda/handle.h>
#include <tests/fake_cuda/host.h>
#include <tests/fake_cuda/stream.h>

fake_stream fake_streams[FAKE_STREAMS];
fake_clock fake_host_clock;

/* ---- pieces ---- */

fake_piece *fake_piece_create(fake_piece_kind kind, const char *what, size_t parameter_bytes) {
    size_t bytes = (sizeof(fake_piece) + parameter_bytes + 15) & ~(size_t)15;
    fake_piece *made = aligned_alloc(16, bytes);
    if (!made)
        return NULL;
    memset(made, 0, bytes);
    made->kind = kind;
    made->what = what;
    return made;
}

void fake_piece_free(fake_piece *piece) {
    free(piece->clock);
    free(piece);
}

/* ---- launching ---- */

uint32_t fake_stream_number(const fake_stream *stream) {
    return (uint32_t)(stream - fake_streams);
}

fake_stream *fake_stream_of(eddy_cu_stream handle, const fake_device *device) {
    uint64_t generation;
    uint32_t index;
    if (!fake_handle_read(handle, FAKE_STREAM, &generation, &index) || index >= FAKE_STREAMS)
        return NULL;
    fake_stream *stream = &fake_streams[index];
    return stream->device == device && stream->generation == generation && !stream->is_destroyed
               ? stream
               : NULL;
}

static void look_for_races(fake_stream *stream, const fake_piece *piece) {
    fake_author author = {fake_stream_number(stream), piece->number, piece->what, &stream->clock};
    for (int t = 0; t < piece->touch_count; t++) {
        fake_device *device = fake_device_with(piece->touches[t].begin);
        fake_history_touch(device ? &device->history : fake_host_history(), piece->touches[t],
                           &author, &fake_host_clock);
    }
}

void fake_stream_launch(fake_stream *stream, fake_piece *piece) {
    fake_clock_join(&stream->clock, &fake_host_clock);
    piece->number = ++stream->launched;
    if (piece->kind == FAKE_WAIT && fake_stream_is_done(piece->other, piece->awaited))
        piece->awaited = 0;
    stream->clock.at[fake_stream_number(stream)] = piece->number;
    look_for_races(stream, piece);
    if (piece->clock)
        *piece->clock = stream->clock;
    if (piece->kind >= FAKE_COPY)
        stream->worked = piece->number;
    if (piece->kind == FAKE_WRITE) {
        stream->written_to = piece->to;
        stream->written = piece->value;
    }
    *stream->tail = piece;
    stream->tail = &piece->next;
    fake_mode mode = fake_options_read()->mode;
    if (mode == FAKE_EAGER || (mode == FAKE_MIXED && fake_device_draw(stream->device) % 2))
        stream->released = piece->number;
    pthread_cond_signal(&stream->device->work);
}

/* ---- going on ---- */

void fake_stream_release(const fake_clock *clock) {
    for (int s = 0; s < FAKE_STREAMS; s++)
        if (fake_streams[s].released < clock->at[s])
            fake_streams[s].released = clock->at[s];
    fake_device_wake_all();
}

bool fake_stream_is_done(uint32_t number, uint64_t piece) {
    const fake_stream *stream = &fake_streams[number];
    return stream->done >= piece || !stream->device || stream->device->lost;
}

static void free_place(fake_stream *stream) {
    stream->device = NULL;
    stream->done = stream->launched;
}

void fake_stream_drop(const fake_device *device, bool ends) {
    for (int s = 0; s < FAKE_STREAMS; s++) {
        fake_stream *stream = &fake_streams[s];
        if (stream->device != device)
            continue;
        while (stream->head) {
            fake_piece *next = stream->head->next;
            fake_piece_free(stream->head);
            stream->head = next;
        }
        stream->tail = &stream->head;
        /* Nothing of it touches anything any more. */
        fake_host_clock.at[s] = stream->launched;
        if (ends)
            free_place(stream);
    }
}

void fake_stream_collect(void) {
    for (uint32_t s = 0; s < FAKE_STREAMS; s++) {
        fake_stream *stream = &fake_streams[s];
        if (stream->device && stream->is_destroyed && !stream->head && !stream->running &&
            fake_clock_covers(&fake_host_clock, s, stream->launched))
            free_place(stream);
    }
}

int fake_stream_count(void) {
    int count = 0;
    for (int s = 0; s < FAKE_STREAMS; s++)
        count += fake_streams[s].device && !fake_streams[s].is_destroyed;
    return count;
}

long fake_cuda_turn(eddy_cu_stream handle) {
    pthread_mutex_lock(&fake_lock);
    const fake_stream *stream = fake_stream_of(handle, fake_device_of(fake_device_current()));
    long turn = stream ? (long)stream->turn : -1;
    pthread_mutex_unlock(&fake_lock);
    return turn;
}

/* ---- entries ---- */

eddy_cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    FAKE_BEGIN(cuCtxGetStreamPriorityRange, FAKE_NEEDS_CONTEXT);
    if (least)
        *least = FAKE_PRIORITY_LEAST;
    if (greatest)
        *greatest = FAKE_PRIORITY_GREATEST;
    return fake_call_end(&call, 0);
}

static int clamp(int priority) {
    return priority > FAKE_PRIORITY_LEAST      ? FAKE_PRIORITY_LEAST
           : priority < FAKE_PRIORITY_GREATEST ? FAKE_PRIORITY_GREATEST
                                               : priority;
}

eddy_cu_result cuStreamCreateWithPriority(eddy_cu_stream *handle, unsigned flags, int priority) {
    FAKE_BEGIN(cuStreamCreateWithPriority, FAKE_NEEDS_CONTEXT);
    if (!handle || flags > EDDY_CU_STREAM_NON_BLOCKING)
        return fake_call_end(&call, EDDY_CU_INVALID_VALUE);
    fake_stream_collect();
    for (uint32_t s = 0; s < FAKE_STREAMS; s++) {
        fake_stream *stream = &fake_streams[s];
        if (stream->device)
            continue;
        *stream = (fake_stream){.device = call.device,
                                .generation = stream->generation + 1,
                                .priority = clamp(priority),
                                .launched = stream->launched,
                                .done = stream->launched,
                                .released = stream->launched};
        stream->tail = &stream->head;
        stream->clock.at[s] = stream->launched;
        *handle = fake_handle(FAKE_STREAM, stream->generation, s);
        return fake_call_end(&call, 0);
    }
    return fake_call_end(&call, EDDY_CU_OUT_OF_MEMORY);
}

eddy_cu_result cuStreamGetPriority(eddy_cu_stream handle, int *priority) {
    FAKE_BEGIN(cuStreamGetPriority, FAKE_NEEDS_CONTEXT);
    const fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream || !priority)
        return fake_call_end(&call, stream ? EDDY_CU_INVALID_VALUE : EDDY_CU_INVALID_HANDLE);
    *priority = stream->priority;
    return fake_call_end(&call, 0);
}

/* To ask lets nothing run that is held back; what the host is told to be over comes before what it launches. */
eddy_cu_result cuStreamQuery(eddy_cu_stream handle) {
    FAKE_BEGIN(cuStreamQuery, FAKE_NEEDS_CONTEXT);
    fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    if (stream->done < stream->launched)
        return fake_call_end(&call, EDDY_CU_NOT_READY);
    fake_clock_join(&fake_host_clock, &stream->clock);
    return fake_call_end(&call, 0);
}

/* What was launched there still runs. */
eddy_cu_result cuStreamDestroy_v2(eddy_cu_stream handle) {
    FAKE_BEGIN(cuStreamDestroy_v2, FAKE_NEEDS_CONTEXT);
    fake_stream *stream = fake_stream_of(handle, call.device);
    if (!stream)
        return fake_call_end(&call, EDDY_CU_INVALID_HANDLE);
    if (fake_capture_spoil(stream))
        return fake_call_end(&call, EDDY_CU_CAPTURES_FIRST);
    stream->is_destroyed = true;
    fake_stream_collect();
    return fake_call_end(&call, 0);
}
