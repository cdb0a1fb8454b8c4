#include <base/memory.h>
#include <base/sleep.h>
#include <stddef.h>
#include <streams/fake.h>
#include <streams/team.h>

typedef struct fake_stream {
    eddy_work_queue base;
    eddy_lock lock;
    eddy_work *head, **tail; /* lock: lock; oldest first */
    int64_t count;           /* lock: lock */
} fake_stream;

static void dispatch(eddy_work_queue *base, eddy_work *work) {
    fake_stream *stream = (fake_stream *)(void *)base;
    work->next = NULL;
    eddy_lock_acquire(&stream->lock);
    *stream->tail = work;
    stream->tail = &work->next;
    stream->count++;
    eddy_lock_release(&stream->lock);
}

static void destroy(eddy_work_queue *base) {
    eddy_memory_release(base, sizeof(fake_stream), EDDY_MEMORY_RUNTIME);
}

static const eddy_work_queue_class fake_class = {"fake", dispatch, destroy};

eddy_work_queue *eddy_fake_queue_create(bool is_ordered) {
    fake_stream *stream = eddy_memory_acquire_zeroed(sizeof(*stream), EDDY_MEMORY_RUNTIME);
    if (!stream)
        return NULL;
    stream->base.class = &fake_class;
    stream->base.is_ordered = is_ordered;
    eddy_lock_init(&stream->lock, EDDY_RANK_LEAF);
    stream->tail = &stream->head;
    return &stream->base;
}

int64_t eddy_fake_queue_held(eddy_work_queue *base) {
    fake_stream *stream = (fake_stream *)(void *)base;
    eddy_lock_acquire(&stream->lock);
    int64_t count = stream->count;
    eddy_lock_release(&stream->lock);
    return count;
}

static eddy_work *take(fake_stream *stream, uint64_t choice) {
    eddy_lock_acquire(&stream->lock);
    eddy_work **link = &stream->head;
    if (stream->count > 0 && !stream->base.is_ordered)
        for (uint64_t i = choice % (uint64_t)stream->count; i > 0; i--)
            link = &(*link)->next;
    eddy_work *work = *link;
    if (work) {
        *link = work->next;
        if (!*link)
            stream->tail = link;
        stream->count--;
    }
    eddy_lock_release(&stream->lock);
    return work;
}

bool eddy_fake_queue_step(eddy_work_queue *base, uint64_t choice,
                          eddy_status (*decide)(void *context, const eddy_work *work),
                          void *context) {
    eddy_work *work = take((fake_stream *)(void *)base, choice);
    if (!work)
        return false;
    work->run(work, decide ? decide(context, work) : EDDY_OK);
    return true;
}
