#include <trace/busy.h>

#include <base/kept_text.h>
#include <base/sleep.h>
#include <string.h>

typedef struct place {
    _Atomic bool
        is_used; /* atomic: release, under the lock; from then on all but the sums is const */
    bool is_devices;
    uint32_t number;
    const char *name; /* of static life, or NULL */
    char text[EDDY_KEPT_TEXT_BYTES + 20];
    _Atomic int64_t count, ns; /* atomic: relaxed */
} place;

static eddy_lock lock = EDDY_LOCK_OF(EDDY_RANK_LISTENER);
static place places[EDDY_BUSY_STREAMS_MOST + 1]; /* of a stream at its hash, or behind it */

static bool is_of(const place *at, const eddy_trace_stream *stream) {
    return at->name == stream->name && at->number == stream->number &&
           at->is_devices == stream->is_devices;
}

/* That of the stream, or a free one that may become it. */
static place *look_up(const eddy_trace_stream *stream) {
    size_t first = (uintptr_t)stream->name / EDDY_KEPT_TEXT_BYTES + stream->number;
    for (size_t i = 0; i < EDDY_BUSY_STREAMS_MOST; i++) {
        place *at = &places[(first + i) % EDDY_BUSY_STREAMS_MOST];
        if (!eddy_load_acquire(&at->is_used) || is_of(at, stream))
            return at;
    }
    return &places[EDDY_BUSY_STREAMS_MOST];
}

/* Lock: lock. */
static void fill(place *at, const eddy_trace_stream *stream) {
    at->name = stream->name;
    at->number = stream->number;
    at->is_devices = stream->is_devices;
    if (at == &places[EDDY_BUSY_STREAMS_MOST])
        strcpy(at->text, "(others)");
    else
        (void)eddy_trace_stream_text(stream, at->text, sizeof(at->text));
    eddy_store_release(&at->is_used, true);
}

static place *take(const eddy_trace_stream *stream) {
    eddy_lock_acquire(&lock);
    place *at = look_up(stream);
    if (!eddy_load_relaxed(&at->is_used))
        fill(at, stream);
    eddy_lock_release(&lock);
    return at;
}

void eddy_busy_add(const eddy_trace_stream *stream, int64_t ns) {
    place *at = look_up(stream);
    /* A free one may have become another's since. */
    if (EDDY_UNLIKELY(!eddy_load_acquire(&at->is_used) || !is_of(at, stream)))
        at = take(stream);
    eddy_add_relaxed(&at->count, 1);
    eddy_add_relaxed(&at->ns, ns);
}

bool eddy_busy_read(uint32_t number, const char **name, int64_t *count, int64_t *ns) {
    place *at = &places[number];
    if (!eddy_load_acquire(&at->is_used))
        return false;
    *name = at->text;
    *count = eddy_load_relaxed(&at->count);
    *ns = eddy_load_relaxed(&at->ns);
    return true;
}

void eddy_busy_fork_child(void) {
    eddy_lock_init(&lock, EDDY_RANK_LISTENER);
}
