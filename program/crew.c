#include <program/crew.h>

#include <program/step_trace.h>
#include <program/steps.h>
#include <streams/team.h>
#include <string.h>

/* How long a thread looks for what it waits for before it leaves or sleeps: segments take some us. */
#define SPIN_NS 40000
/* Looks between two readings of the clock. */
#define SPIN_CHECKS 64
/* The run's thread looks once in a while whether the process ends, in case that a worker has stopped for that. */
#define SLEEP_NS 1000000

static __thread char me;

/* ---- streams ---- */

static const eddy_stream_row *row_of(const eddy_crew *crew, uint32_t s) {
    return &crew->executable->streams.rows[s];
}

static bool may_begin(const eddy_crew *crew, const eddy_segment *segment) {
    const eddy_segment_wait *wait = crew->executable->streams.waits + segment->waits_at;
    for (uint32_t w = 0; w < segment->wait_count; w++)
        if (eddy_load_acquire(&crew->streams[wait[w].stream].done) < wait[w].segments)
            return false;
    return true;
}

/* The next segment of a stream, or NULL: all are done, or it may not begin. The caller holds the stream, or asks what may change at once. */
static const eddy_segment *next_segment(const eddy_crew *crew, uint32_t s) {
    uint32_t done = eddy_load_acquire(&crew->streams[s].done);
    const eddy_stream_row *row = row_of(crew, s);
    if (done == row->segment_count)
        return NULL;
    const eddy_segment *segment = &crew->executable->streams.segments[row->segments_at + done];
    return may_begin(crew, segment) ? segment : NULL;
}

static void tell(eddy_crew *crew) {
    eddy_add_seq_cst(&crew->moved, 1u);
    if (eddy_load_seq_cst(&crew->is_asleep))
        eddy_sleep_wake_all(&crew->moved);
}

/* False if a step fails. */
static bool run_segment(eddy_crew *crew, eddy_crew_stream *stream, const eddy_segment *segment) {
    const eddy_executable *executable = crew->executable;
    for (uint32_t i = 0; i < segment->step_count; i++) {
        uint32_t number = executable->streams.steps[segment->steps_at + i];
        const eddy_step *step = &executable->steps[number];
        eddy_step_run(step, &stream->frame, number);
        if (EDDY_UNLIKELY(eddy_load_relaxed(&stream->frame.error.status) != EDDY_OK))
            return false;
        eddy_executable_bury(executable, crew->arena, number);
        stream->steps_done++;
    }
    return true;
}

/* Runs the next segment of a stream that the caller holds; false if it may not begin. */
static bool run_next(eddy_crew *crew, uint32_t s) {
    eddy_crew_stream *stream = &crew->streams[s];
    const eddy_segment *segment = next_segment(crew, s);
    if (!segment || eddy_load_relaxed(&crew->is_stopped))
        return false;
    if (EDDY_LIKELY(run_segment(crew, stream, segment))) {
        eddy_store_release(&stream->done, eddy_load_relaxed(&stream->done) + 1);
    } else {
        stream->has_failed = true;
        eddy_store_relaxed(&crew->is_stopped, true);
    }
    tell(crew);
    return true;
}

/* Runs what may run of a stream that the caller holds; whether it was anything. */
static bool run_held(eddy_crew *crew, uint32_t s) {
    bool has_run = false;
    while (run_next(crew, s))
        has_run = true;
    return has_run;
}

/* Runs what may run of any stream, first of this one; *s is the one that it was. False: of none. */
static bool run_any(eddy_crew *crew, uint32_t *s) {
    uint32_t count = crew->executable->streams.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t one = (*s + i) % count;
        bool is_free = false;
        if (!next_segment(crew, one) ||
            !eddy_cas_acquire(&crew->streams[one].is_held, &is_free, true))
            continue;
        bool has_run = run_held(crew, one);
        eddy_store_release(&crew->streams[one].is_held, false);
        if (has_run) {
            *s = one;
            return true;
        }
    }
    return false;
}

/* Runs what comes before two streams may run at once, for which no worker need wait. */
static void run_ahead(eddy_crew *crew) {
    for (;;) {
        uint32_t count = 0, only = 0;
        for (uint32_t s = 0; s < crew->executable->streams.count; s++)
            if (next_segment(crew, s)) {
                count++;
                only = s;
            }
        if (count != 1 || !run_next(crew, only))
            return;
    }
}

/* ---- threads ---- */

static bool is_over(const eddy_crew *crew) {
    if (eddy_load_relaxed(&crew->is_stopped))
        return true;
    for (uint32_t s = 0; s < crew->executable->streams.count; s++)
        if (eddy_load_acquire(&crew->streams[s].done) < row_of(crew, s)->segment_count)
            return false;
    return true;
}

/* Waits until something has been done since `moved` was `seen`. False: a worker leaves. */
static bool await_move(eddy_crew *crew, uint32_t seen) {
    int64_t end_ns = eddy_clock_ns() + SPIN_NS;
    do {
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (eddy_load_acquire(&crew->moved) != seen)
                return true;
            eddy_atomic_pause();
        }
    } while (eddy_clock_ns() < end_ns);
    if (crew->owner != &me)
        return false;
    eddy_team_halt_point();
    eddy_store_seq_cst(&crew->is_asleep, true);
    eddy_sleep_wait(&crew->moved, seen, eddy_clock_ns() + SLEEP_NS);
    eddy_store_seq_cst(&crew->is_asleep, false);
    return true;
}

/* A thread's part: until all is done, or, of a worker, until it has waited in vain. */
static void work(void *context, int64_t seat, int64_t end) {
    eddy_crew *crew = context;
    uint32_t s = (uint32_t)seat % crew->executable->streams.count;
    (void)end;
    for (;;) {
        uint32_t seen = eddy_load_seq_cst(&crew->moved);
        if (is_over(crew))
            return;
        if (!run_any(crew, &s) && !await_move(crew, seen))
            return;
    }
}

/* ---- all of it ---- */

int64_t eddy_crew_bytes(const eddy_executable *executable) {
    return (int64_t)(eddy_frame_lined(sizeof(eddy_crew)) +
                     executable->streams.count * eddy_frame_room_bytes(executable));
}

bool eddy_crew_run(const eddy_executable *executable, const eddy_frame *frame, void *memory) {
    char *at = memory;
    eddy_crew *crew = eddy_frame_take(&at, sizeof(*crew));
    memset(crew, 0, sizeof(*crew));
    crew->executable = executable;
    crew->owner = &me;
    crew->arena = frame->bases[0];
    for (uint32_t s = 0; s < executable->streams.count; s++) {
        eddy_frame *own = &crew->streams[s].frame;
        *own =
            (eddy_frame){.bases = frame->bases, .words = frame->words, .team = &eddy_team_serial};
        own->error.position = INT64_MAX;
        eddy_frame_take_rooms(own, executable, &at);
    }
    EDDY_ASSERT(at - (char *)memory == eddy_crew_bytes(executable));
    run_ahead(crew);
    if (!is_over(crew))
        eddy_team_run_beside(frame->team, executable->streams.count, work, crew);
    EDDY_ASSERT(is_over(crew));
    return !eddy_load_relaxed(&crew->is_stopped);
}

eddy_crew_fate eddy_crew_read(eddy_crew_reader *reader, uint32_t step, const eddy_frame **failed) {
    const eddy_streams *streams = &reader->crew->executable->streams;
    uint32_t s = 0;
    while (reader->passed[s] == streams->rows[s].step_count ||
           streams->steps[streams->rows[s].steps_at + reader->passed[s]] != step) {
        s++;
        EDDY_ASSERT(s < streams->count);
    }
    const eddy_crew_stream *stream = &reader->crew->streams[s];
    uint32_t place = reader->passed[s]++;
    if (place < stream->steps_done)
        return EDDY_CREW_RAN;
    *failed = &stream->frame;
    return place == stream->steps_done && stream->has_failed ? EDDY_CREW_FAILED : EDDY_CREW_LEFT;
}
