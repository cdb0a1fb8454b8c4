#include <base/trace.h>

#include <base/name_table.h>
#include <base/process.h>
#include <base/sleep.h>
#include <stdio.h>
#include <string.h>

/* Threads count themselves in one of so many lines, so that few share one. */
#define LINES 32

typedef struct place {
    eddy_trace_listener listener; /* const while it is active */
    uint32_t generation;          /* const while it is active: of when it was added */
    bool is_taken;                /* lock: places_lock */
} place;

typedef struct line {
    _Alignas(64) _Atomic uint32_t
        inside[EDDY_TRACE_LISTENERS_MOST]; /* atomic: seq_cst, release by who leaves */
} line;

_Atomic uint32_t eddy_trace_phases;

static eddy_lock places_lock = EDDY_LOCK_OF(EDDY_RANK_LEAF);
static place places[EDDY_TRACE_LISTENERS_MOST];
static _Atomic uint32_t active;     /* atomic: seq_cst; a bit for each place */
static _Atomic uint32_t generation; /* atomic: release, under the lock */
static line lines[LINES];

static _Atomic uint32_t last_line;                                          /* atomic: relaxed */
static __thread __attribute__((tls_model("initial-exec"))) uint32_t own;    /* + 1; 0: none yet */
static __thread __attribute__((tls_model("initial-exec"))) bool is_hearing; /* in a listener */
__thread eddy_trace_kernel eddy_trace_inside;

/* ---- adding and removing ---- */

/* A forked child has none of the threads that were inside, nor who had the lock. */
static void forget_others(void) {
    eddy_lock_init(&places_lock, EDDY_RANK_LEAF);
    eddy_name_table_fork_child();
    for (uint32_t l = 0; l < LINES; l++)
        for (uint32_t p = 0; p < EDDY_TRACE_LISTENERS_MOST; p++)
            eddy_store_relaxed(&lines[l].inside[p], 0u);
}

/* Lock: places_lock. */
static void note_phases(void) {
    uint32_t phases = 0;
    for (uint32_t p = 0; p < EDDY_TRACE_LISTENERS_MOST; p++)
        if (eddy_load_relaxed(&active) & 1u << p)
            phases |= places[p].listener.phases;
    eddy_store_relaxed(&eddy_trace_phases, phases);
}

eddy_status eddy_trace_add(const eddy_trace_listener *listener, uint32_t *to) {
    static _Atomic bool watches_forks; /* atomic: acq_rel; set once */
    if (!eddy_exchange_acq_rel(&watches_forks, true))
        eddy_process_at_fork_child(forget_others);
    eddy_lock_acquire(&places_lock);
    uint32_t free = 0;
    while (free < EDDY_TRACE_LISTENERS_MOST && places[free].is_taken)
        free++;
    if (free < EDDY_TRACE_LISTENERS_MOST) {
        uint32_t now = eddy_load_relaxed(&generation) + 1;
        places[free] = (place){*listener, now, true};
        eddy_store_release(&generation, now);
        (void)eddy_or_seq_cst(&active, 1u << free);
        note_phases();
    }
    eddy_lock_release(&places_lock);
    *to = free;
    return free < EDDY_TRACE_LISTENERS_MOST ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

void eddy_trace_remove(uint32_t of) {
    eddy_lock_acquire(&places_lock);
    (void)eddy_and_seq_cst(&active, ~(1u << of));
    note_phases();
    eddy_lock_release(&places_lock);
    for (uint32_t l = 0; l < LINES; l++)
        while (eddy_load_seq_cst(&lines[l].inside[of]) != 0)
            eddy_atomic_pause();
    eddy_lock_acquire(&places_lock);
    places[of].is_taken = false;
    eddy_lock_release(&places_lock);
}

/* ---- sending ---- */

static line *own_line(void) {
    if (EDDY_UNLIKELY(own == 0))
        own = eddy_add_relaxed(&last_line, 1u) % LINES + 1;
    return &lines[own - 1];
}

/* Whether it was called: it is there, hears the phase, and was added by then. */
static bool call(line *in, uint32_t p, const eddy_trace_event *event, uint32_t by) {
    bool is_called = false;
    (void)eddy_add_seq_cst(&in->inside[p], 1u);
    if (eddy_load_seq_cst(&active) & 1u << p) {
        const place *at = &places[p];
        /* Wraps after 2^32 of them. */
        is_called = (int32_t)(by - at->generation) >= 0 && at->listener.phases & 1u << event->phase;
        if (is_called)
            at->listener.hear(at->listener.context, event);
    }
    (void)eddy_sub_release(&in->inside[p], 1u);
    return is_called;
}

static uint32_t send(const eddy_trace_event *event, uint32_t to, uint32_t by) {
    uint32_t heard = 0;
    if (is_hearing)
        return 0;
    is_hearing = true;
    line *in = own_line();
    for (uint32_t left = to & eddy_load_relaxed(&active); left != 0; left &= left - 1) {
        uint32_t p = (uint32_t)__builtin_ctz(left);
        if (call(in, p, event, by))
            heard |= 1u << p;
    }
    is_hearing = false;
    return heard;
}

eddy_trace_span eddy_trace_send_begin(const eddy_trace_event *event) {
    uint32_t now = eddy_load_acquire(&generation);
    uint32_t heard = send(event, UINT32_MAX, now);
    /* Unheard it has no end either. */
    if (heard != 0 && event->phase == EDDY_TRACE_KERNEL)
        eddy_trace_inside =
            (eddy_trace_kernel){event->op, event->sequence, (uint16_t)event->runtime};
    return (eddy_trace_span){
        .listeners = (uint16_t)heard, .phase = (uint16_t)event->phase, .generation = now};
}

void eddy_trace_send_end(eddy_trace_span span, const eddy_trace_event *event) {
    eddy_trace_event ends = *event;
    ends.phase = (eddy_trace_phase)span.phase;
    ends.kind = EDDY_TRACE_ENDS;
    if (ends.phase == EDDY_TRACE_KERNEL)
        eddy_trace_inside = (eddy_trace_kernel){0};
    (void)send(&ends, span.listeners, span.generation);
}

void eddy_trace_send(const eddy_trace_event *event) {
    (void)send(event, UINT32_MAX, eddy_load_acquire(&generation));
}

const char *eddy_trace_phase_name(eddy_trace_phase phase) {
    static const char *const names[] = {
#define EDDY_TRACE_PHASE_ROW(enumerator, name) #name,
        EDDY_TRACE_PHASE_LIST(EDDY_TRACE_PHASE_ROW)
#undef EDDY_TRACE_PHASE_ROW
    };
    return (unsigned)phase < EDDY_TRACE_PHASE_COUNT ? names[phase] : "?";
}

int eddy_trace_stream_text(const eddy_trace_stream *stream, char *buffer, size_t size) {
    const char *name = stream->name ? stream->name : "";
    /* A device's name, which has no comma, is that of a stream without one. */
    if (*name && (!stream->is_devices || strchr(name, ',')))
        return snprintf(buffer, size, "%s", name);
    return snprintf(buffer, size, "%s%sstream %u", name, *name ? ", " : "", stream->number);
}
