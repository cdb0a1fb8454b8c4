#include <trace/tracer.h>

#include <base/clock.h>
#include <base/fork_gate.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/name_table.h>
#include <base/process.h>
#include <base/sleep.h>
#include <base/status.h>
#include <base/thread.h>
#include <base/trace.h>
#include <stdio.h>
#include <string.h>
#include <trace/json.h>
#include <trace/ring.h>
#include <unistd.h>

/* The writer looks at the rings so often; less often where nothing comes. */
#define PERIOD_NS 1000000
#define IDLE_PERIOD_NS 16000000
#define SAMPLE_NS 10000000
#define DRAW_NS 5000000
#define FLUSH_NS 100000000 /* of a compressor, which does worse each time */
#define PATH_BYTES 1024
#define SAID_BYTES (PATH_BYTES + 200)

typedef enum tracer_state { IDLE, RUNNING, ENDED } tracer_state;

static struct {
    eddy_lock lock;           /* who starts and stops; not held while they wait */
    _Atomic uint32_t state;   /* atomic: tracer_state; release by who changes it */
    _Atomic bool is_stopping; /* atomic: release; the writer is to end */
    _Atomic bool is_heard;    /* atomic: acq_rel; the listener is there: who clears it removes it */
    uint64_t number;          /* lock: lock; of the trace; const while it runs */
    uint32_t place;           /* const while it runs: of the listener */
    eddy_thread thread;       /* lock: lock */
    char path[PATH_BYTES];    /* const while it runs */
    eddy_tracer_settings settings; /* const while it runs */
    /* of the writer */
    eddy_output output;
    eddy_json json;
    eddy_arrows *arrows;
    uint32_t last_row;
    int64_t sampled_ns, drawn_ns, flushed_ns;
    int64_t unplaced; /* events of streams that there is no row for */
} tracer = {.lock = EDDY_LOCK_OF(EDDY_RANK_NONE), .output = {.fd = -1}};

/* What the instruction that a thread is scheduling waits for, until its range ends. */
typedef struct scheduling {
    uint64_t key;
    eddy_json_after after;
} scheduling;
static scheduling schedulings[EDDY_RINGS_MOST]; /* writer only */

/* A stream that has a row. Writer only. */
#define STREAMS_MOST 64
static struct stream_row {
    const char *name; /* of static life; NULL: none */
    uint32_t process; /* of json.h; 0: nothing yet */
    uint32_t runtime, stream;
} streams[STREAMS_MOST];

static eddy_sleep_word
    ended_word; /* atomic: release; changes when a writer has ended, and when it has said so */
static _Atomic uint32_t
    saying; /* atomic: release by who leaves; writers that have ended, and may be in a sink */

/* ---- threads that events are of ---- */

static void fill(eddy_record *record, char *text, const eddy_trace_event *event, int64_t now_ns) {
    const char *name = event->op ? event->op : eddy_trace_phase_name(event->phase);
    size_t used = 0;
    /* A name that a user has given may be another one at the same place next time. */
    uint32_t number = event->phase == EDDY_TRACE_RANGE ? 0 : eddy_name_number(name);
    bool is_launch = event->phase == EDDY_TRACE_KERNEL && event->on && event->on->is_devices;
    *record = (eddy_record){.at_ns = now_ns,
                            .sequence = event->sequence,
                            .runtime = (uint16_t)event->runtime,
                            .address = event->address,
                            .detail = event->on && !is_launch ? event->on->name : event->detail,
                            .bytes = event->bytes,
                            .stream = (uint16_t)(event->on ? event->on->number : event->stream),
                            .name = (uint16_t)number,
                            .kind = event->kind == EDDY_TRACE_BEGINS ? EDDY_RECORD_SPAN
                                                                     : EDDY_RECORD_MOMENT,
                            .phase = (uint8_t)event->phase,
                            .is_ordered = event->on && event->on->is_ordered &&
                                          event->phase == EDDY_TRACE_KERNEL && !is_launch,
                            .is_launch = is_launch,
                            .is_part = event->phase == EDDY_TRACE_KERNEL && !event->on};
    if (event->kind == EDDY_TRACE_BEGINS)
        record->live = event->live;
    else
        record->origin = event->origin;
    if (number == 0) {
        used = strnlen(name, EDDY_RECORD_TEXT_BYTES - 1);
        memcpy(text, name, used);
        text[used++] = '\0';
    }
    /* Which takes as long as all else: others find it by the number. */
    if (event->phase == EDDY_TRACE_KERNEL && event->instruction && event->describe &&
        used < EDDY_RECORD_TEXT_BYTES) {
        int length =
            event->describe(event->instruction, text + used, EDDY_RECORD_TEXT_BYTES - used);
        record->has_call = length > 0;
        used += length > 0 ? (size_t)length + 1 : 0;
    }
    if (used > EDDY_RECORD_TEXT_BYTES)
        used = EDDY_RECORD_TEXT_BYTES;
    record->texts = (uint8_t)((used + EDDY_RECORD_LINE - 1) / EDDY_RECORD_LINE);
}

static void begin_range(eddy_ring *ring, const eddy_trace_event *event, int64_t now_ns) {
    if (ring->depth < EDDY_RING_OPEN_MOST)
        fill(&ring->open[ring->depth].record, ring->open[ring->depth].text, event, now_ns);
    ring->depth++;
}

/* What is known by the end only, such as the number of an instruction that was issued. */
static void end_range(eddy_ring *ring, const eddy_trace_event *event, int64_t now_ns) {
    if (ring->depth == 0)
        return;
    uint32_t depth = --ring->depth;
    if (depth >= EDDY_RING_OPEN_MOST) {
        eddy_store_relaxed(&ring->dropped, eddy_load_relaxed(&ring->dropped) + 1);
        return;
    }
    eddy_ring_open *open = &ring->open[depth];
    open->record.took_ns = now_ns - open->record.at_ns;
    if (event->sequence)
        open->record.sequence = event->sequence;
    if (event->runtime)
        open->record.runtime = (uint16_t)event->runtime;
    eddy_ring_append(ring, &open->record, open->text);
}

static void append_moment(eddy_ring *ring, const eddy_trace_event *event, int64_t now_ns) {
    eddy_record record;
    char text[EDDY_RECORD_TEXT_BYTES];
    bool is_done = event->phase == EDDY_TRACE_DEVICE;
    if (is_done && event->began_ns == 0)
        return;
    fill(&record, text, event, is_done ? event->began_ns : now_ns);
    record.took_ns = now_ns - record.at_ns;
    eddy_ring_append(ring, &record, text);
}

static void hear(void *context, const eddy_trace_event *event) {
    eddy_ring *ring = eddy_ring_own(*(const uint64_t *)context);
    if (EDDY_UNLIKELY(!ring))
        return;
    int64_t now_ns = eddy_clock_ns();
    if (event->kind == EDDY_TRACE_BEGINS) {
        begin_range(ring, event, now_ns);
    } else if (event->kind == EDDY_TRACE_ENDS) {
        end_range(ring, event, now_ns);
    } else {
        append_moment(ring, event, now_ns);
    }
}

/* ---- the writer ---- */

static void name_row(uint32_t row, const struct stream_row *of) {
    char text[96], named[128];
    (void)eddy_trace_stream_text(
        &(eddy_trace_stream){
            .number = of->stream, .is_devices = of->process == EDDY_JSON_DEVICES, .name = of->name},
        text, sizeof(text));
    snprintf(named, sizeof(named), of->runtime > 1 ? "%s of runtime %u" : "%s", text, of->runtime);
    eddy_json_stream(&tracer.json, of->process, row, named);
}

/* Its row, from 1 on; 0: there is no room. */
static uint32_t row_of(const eddy_record *record, uint32_t process) {
    for (uint32_t s = 0; s < STREAMS_MOST; s++) {
        struct stream_row *row = &streams[s];
        if (!row->process) {
            *row = (struct stream_row){record->detail, process, record->runtime, record->stream};
            name_row(s + 1, row);
        }
        /* A number may be another stream's by now, which has another name. */
        if (row->process == process && row->stream == record->stream &&
            row->runtime == record->runtime && row->name == record->detail)
            return s + 1;
    }
    return 0;
}

static void draw_on_stream(const eddy_record *record, const char *text, uint32_t process) {
    uint32_t number = row_of(record, process);
    if (number == 0)
        tracer.unplaced++;
    else
        eddy_json_done(&tracer.json, process, number, record, text);
}

static void note_edge(const eddy_ring *ring, const eddy_record *record) {
    scheduling *edges = &schedulings[ring - eddy_rings];
    if (edges->key != eddy_record_key(record, record->sequence))
        *edges = (scheduling){.key = eddy_record_key(record, record->sequence)};
    if (edges->after.count < EDDY_JSON_AFTER_MOST)
        edges->after.sequences[edges->after.count++] = record->origin;
    eddy_arrows_note(tracer.arrows, eddy_record_key(record, record->origin),
                     eddy_record_key(record, record->sequence));
}

static void take(void *context, eddy_ring *ring, const eddy_record *record, const char *text) {
    (void)context;
    if (record->kind == EDDY_RECORD_THREAD) {
        ring->row = ++tracer.last_row;
        eddy_json_thread(&tracer.json, ring->row, text, record->sequence);
        return;
    }
    if (record->phase == EDDY_TRACE_SCHEDULE && record->kind == EDDY_RECORD_MOMENT) {
        note_edge(ring, record);
        return;
    }
    if (record->phase == EDDY_TRACE_DEVICE) {
        draw_on_stream(record, text, EDDY_JSON_DEVICES);
        return;
    }
    uint64_t key = eddy_record_key(record, record->sequence);
    eddy_arrow_end end = {key, record->at_ns, record->took_ns, ring->row};
    if (record->phase == EDDY_TRACE_KERNEL && record->kind == EDDY_RECORD_SPAN && record->sequence)
        eddy_arrows_note_kernel(tracer.arrows, &end);
    if (record->is_ordered)
        draw_on_stream(record, text, EDDY_JSON_STREAMS);
    if (record->phase == EDDY_TRACE_ISSUE && record->sequence)
        eddy_arrows_note_call(tracer.arrows, &end);
    const scheduling *edges = &schedulings[ring - eddy_rings];
    bool has_edges = record->phase == EDDY_TRACE_SCHEDULE && edges->key == key;
    eddy_json_record(&tracer.json, ring->row, record, text, has_edges ? &edges->after : NULL);
}

static void draw(void *context, eddy_arrow_kind kind, const eddy_arrow_end *from,
                 const eddy_arrow_end *to) {
    (void)context;
    eddy_json_arrow(&tracer.json, kind == EDDY_ARROW_CALL, from, to);
}

static void tell(void *context, const char *name, const char *series, int64_t value) {
    eddy_json_counter(&tracer.json, *(int64_t *)context, name, series, value);
}

static void sample(int64_t now_ns) {
    if (tracer.settings.sample)
        tracer.settings.sample(tell, &now_ns);
    tracer.sampled_ns = now_ns;
}

/* Once through all rings; returns the number of records. */
static int64_t take_all(void) {
    int64_t count = 0, now_ns = eddy_clock_ns();
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++)
        if (eddy_load_relaxed(&eddy_rings[r].state) != EDDY_RING_FREE)
            count += eddy_ring_take(&eddy_rings[r], now_ns, take, NULL);
    if (count > 0 && now_ns - tracer.sampled_ns >= SAMPLE_NS)
        sample(now_ns);
    if (now_ns - tracer.drawn_ns >= DRAW_NS) {
        eddy_arrows_draw(tracer.arrows, draw, NULL);
        tracer.drawn_ns = now_ns;
    }
    return count;
}

static void flush(void) {
    int64_t now_ns = eddy_clock_ns();
    bool is_whole = now_ns - tracer.flushed_ns >= FLUSH_NS;
    eddy_output_flush(&tracer.output, is_whole);
    if (is_whole)
        tracer.flushed_ns = now_ns;
}

static void remove_listener(void) {
    if (eddy_exchange_acq_rel(&tracer.is_heard, false))
        eddy_trace_remove(tracer.place);
}

static const char *reason(void) {
    return tracer.output.state == EDDY_OUTPUT_OPEN   ? "stopped"
           : tracer.output.state == EDDY_OUTPUT_FULL ? "limit"
                                                     : "failed";
}

/* What the log is to say about it: how it ended, and what is missing; "" for nothing. */
typedef struct epitaph {
    char how[SAID_BYTES], missing[SAID_BYTES];
} epitaph;

static void fill_epitaph(epitaph *to, int64_t dropped) {
    to->how[0] = to->missing[0] = '\0';
    if (tracer.output.state == EDDY_OUTPUT_FAILED)
        snprintf(to->how, SAID_BYTES, "trace: %s could not be written: %s", tracer.path,
                 strerrordesc_np(tracer.output.error));
    else if (tracer.output.state == EDDY_OUTPUT_FULL)
        snprintf(to->how, SAID_BYTES, "trace: %s has reached its limit, %lld bytes", tracer.path,
                 (long long)tracer.settings.limit_bytes);
    if (dropped > 0)
        snprintf(to->missing, SAID_BYTES,
                 "trace: %s lacks %lld events, for which there was no room", tracer.path,
                 (long long)dropped);
}

/* All listeners have been removed: ranges that are open lie still. */
static void finish(epitaph *to) {
    int64_t now_ns = eddy_clock_ns();
    (void)take_all();
    for (uint32_t r = 0; r < EDDY_RINGS_MOST; r++)
        (void)eddy_ring_take_open(&eddy_rings[r], now_ns, take, NULL);
    /* Twice: the second time is the last look for what the first has not found. */
    eddy_arrows_draw(tracer.arrows, draw, NULL);
    eddy_arrows_draw(tracer.arrows, draw, NULL);
    sample(now_ns);
    int64_t dropped = eddy_rings_dropped() + tracer.unplaced;
    eddy_json_end(&tracer.json, now_ns, reason(), dropped);
    fill_epitaph(to, dropped);
}

static void say(const epitaph *said) {
    if (said->how[0])
        eddy_log_answer("%s", said->how);
    if (said->missing[0])
        eddy_log_answer("%s", said->missing);
}

static void wake_waiters(void) {
    eddy_add_release(&ended_word, 1u);
    eddy_sleep_wake_all(&ended_word);
}

static void write_trace(void *context) {
    (void)context;
    int64_t period_ns = PERIOD_NS;
    while (!eddy_load_acquire(&tracer.is_stopping)) {
        uint32_t word = eddy_load_acquire(&eddy_rings_word);
        int64_t count = take_all();
        flush();
        if (tracer.output.state != EDDY_OUTPUT_OPEN)
            break;
        period_ns = count > 0                    ? PERIOD_NS
                    : period_ns < IDLE_PERIOD_NS ? 2 * period_ns
                                                 : IDLE_PERIOD_NS;
        if (!eddy_load_acquire(&tracer.is_stopping))
            (void)eddy_sleep_wait(&eddy_rings_word, word, eddy_clock_deadline(period_ns));
    }
    remove_listener();
    epitaph said;
    finish(&said);
    /* A program's sink may wait for a lock of who stops the trace: it is called when nobody waits for that any more, and this thread looks at nothing of the tracer. */
    bool is_programs = eddy_log_is_programs();
    if (!is_programs)
        say(&said);
    eddy_add_relaxed(&saying, 1u);
    eddy_store_release(&tracer.state, (uint32_t)ENDED);
    wake_waiters();
    if (is_programs)
        say(&said);
    eddy_sub_release(&saying, 1u);
    wake_waiters();
}

/* ---- start ---- */

static eddy_status expand_path(const char *path, eddy_origin origin) {
    size_t used = 0;
    for (; *path && used < PATH_BYTES - 16; path++)
        if (path[0] == '%' && path[1] == 'p') {
            used += (size_t)snprintf(tracer.path + used, 16, "%d", (int)getpid());
            path++;
        } else {
            tracer.path[used++] = *path;
        }
    tracer.path[used] = '\0';
    if (*path)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the path has more than %d bytes",
                         PATH_BYTES - 16);
    return EDDY_OK;
}

/* No fork comes between: a child frees what is left. */
static void free_all(void) {
    eddy_fork_gate_enter();
    eddy_rings_free();
    eddy_memory_release(tracer.arrows, sizeof(*tracer.arrows), EDDY_MEMORY_TRACE);
    tracer.arrows = NULL;
    eddy_store_release(&tracer.state, (uint32_t)IDLE);
    eddy_fork_gate_leave();
}

/* In a forked child there is no writer. */
static void fork_child(void) {
    eddy_lock_init(&tracer.lock, EDDY_RANK_NONE);
    if (eddy_load_relaxed(&tracer.is_heard))
        eddy_trace_remove(tracer.place);
    eddy_store_relaxed(&tracer.is_heard, false);
    eddy_store_relaxed(&saying, 0u);
    eddy_output_forget(&tracer.output);
    eddy_rings_fork_child();
    free_all();
}

/* Lock: lock. The listener is first: so the writer finds one to remove. */
static eddy_status start_writer(eddy_origin origin) {
    static bool watches_forks;
    eddy_trace_listener listener = {hear, &tracer.number, tracer.settings.phases};
    eddy_status status = eddy_trace_add(&listener, &tracer.place);
    if (status != EDDY_OK)
        return eddy_fail(status, origin, "there are as many listeners as there may be");
    if (!watches_forks)
        eddy_process_at_fork_child(fork_child);
    watches_forks = true;
    eddy_store_relaxed(&tracer.is_heard, true);
    eddy_store_relaxed(&tracer.state, (uint32_t)RUNNING);
    status = eddy_thread_create(&tracer.thread, "eddy-trace", write_trace, NULL);
    if (status == EDDY_OK) {
        eddy_thread_detach(&tracer.thread);
        return EDDY_OK;
    }
    remove_listener();
    return eddy_fail(status, origin, "the system gives no thread to write the trace");
}

/* Lock: lock. */
static eddy_status start(const eddy_tracer_settings *settings, eddy_origin origin) {
    /* The last one has ended by itself, and nobody has stopped it. */
    if (eddy_load_acquire(&tracer.state) == ENDED)
        free_all();
    if (eddy_load_acquire(&tracer.state) != IDLE)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a trace is being written to %.200s",
                         tracer.path);
    eddy_status status = expand_path(settings->path, origin);
    if (status != EDDY_OK)
        return status;
    tracer.settings = *settings;
    tracer.settings.path = tracer.path;
    status = eddy_output_open(&tracer.output, tracer.path, settings->limit_bytes, origin);
    if (status != EDDY_OK)
        return status;
    tracer.arrows = eddy_memory_acquire_zeroed(sizeof(*tracer.arrows), EDDY_MEMORY_TRACE);
    if (tracer.arrows) {
        tracer.number++;
        tracer.last_row = 0;
        memset(schedulings, 0, sizeof(schedulings));
        memset(streams, 0, sizeof(streams));
        tracer.sampled_ns = tracer.drawn_ns = tracer.flushed_ns = tracer.unplaced = 0;
        tracer.json = (eddy_json){.output = &tracer.output, .begin_ns = eddy_clock_ns()};
        eddy_store_relaxed(&tracer.is_stopping, false);
        eddy_json_begin(&tracer.json);
        status = start_writer(origin);
    } else {
        status = eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    }
    if (status != EDDY_OK) {
        eddy_output_forget(&tracer.output);
        free_all();
    }
    return status;
}

eddy_status eddy_tracer_start(const eddy_tracer_settings *settings, eddy_origin origin) {
    eddy_lock_acquire(&tracer.lock);
    eddy_status status = start(settings, origin);
    eddy_lock_release(&tracer.lock);
    return status;
}

/* ---- stop ---- */

/* Lock: lock. */
static void ask(void) {
    remove_listener();
    eddy_store_release(&tracer.is_stopping, true);
    eddy_add_release(&eddy_rings_word, 1u);
    eddy_sleep_wake_one(&eddy_rings_word);
}

/* Lock: lock. Whether it is over; *status says how it went. */
static bool is_over(uint64_t number, eddy_status *status, eddy_origin origin) {
    uint32_t state = eddy_load_acquire(&tracer.state);
    if (state == IDLE || tracer.number != number)
        return true;
    if (state != ENDED)
        return false;
    free_all();
    if (tracer.output.state == EDDY_OUTPUT_FAILED)
        *status = eddy_fail(EDDY_IO, origin, "%.200s could not be written: %s", tracer.path,
                            strerrordesc_np(tracer.output.error));
    return true;
}

eddy_status eddy_tracer_stop(int64_t deadline_ns, eddy_origin origin) {
    eddy_status status = EDDY_OK;
    uint64_t number = 0;
    for (;;) {
        if (!eddy_lock_acquire_until(&tracer.lock, deadline_ns))
            break;
        uint32_t word = eddy_load_acquire(&ended_word);
        number = number == 0 ? tracer.number : number;
        bool is_done = is_over(number, &status, origin);
        if (!is_done)
            ask();
        eddy_lock_release(&tracer.lock);
        if (is_done)
            return status;
        if (!eddy_sleep_wait(&ended_word, word, deadline_ns) && eddy_clock_ns() >= deadline_ns)
            break;
    }
    return eddy_fail(EDDY_TIMED_OUT, origin, "the trace is still being written to %.200s",
                     tracer.path);
}

void eddy_tracer_await_log(int64_t deadline_ns) {
    for (;;) {
        uint32_t word = eddy_load_acquire(&ended_word);
        if (eddy_load_acquire(&saying) == 0 || !eddy_sleep_wait(&ended_word, word, deadline_ns))
            return;
    }
}

bool eddy_tracer_is_on(void) {
    return eddy_load_relaxed(&tracer.is_heard);
}
