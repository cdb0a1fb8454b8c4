/* Events of instructions (base/trace.h), on each way that an instruction may go. */
#include "session.h"
#include <base/trace.h>

#define EVENTS_MOST 20000

typedef struct heard {
    eddy_trace_phase phase;
    eddy_trace_kind kind;
    uint64_t sequence, origin;
    int64_t bytes;
    uint64_t thread;
    char op[16];
} heard;

static heard events[EVENTS_MOST];
static _Atomic int32_t count;

static void note(void *context, const eddy_trace_event *event) {
    (void)context;
    int32_t i = eddy_add_relaxed(&count, 1);
    if (i >= EVENTS_MOST)
        return;
    events[i] = (heard){.phase = event->phase,
                        .kind = event->kind,
                        .sequence = event->sequence,
                        .origin = event->origin,
                        .bytes = event->bytes,
                        .thread = (uint64_t)pthread_self()};
    snprintf(events[i].op, sizeof(events[i].op), "%s", event->op ? event->op : "");
}

static uint32_t listen_to(uint32_t phases) {
    uint32_t place;
    eddy_trace_listener listener = {note, NULL, phases};
    eddy_store_relaxed(&count, 0);
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    return place;
}

/* On each thread ends close what began last. */
static void expect_pairs(void) {
    int32_t end = eddy_load_relaxed(&count);
    cr_assert(end > 0 && end <= EVENTS_MOST, "%d", end);
    for (int32_t i = 0; i < end; i++) {
        if (events[i].kind != EDDY_TRACE_ENDS)
            continue;
        int32_t open = 0, b = i;
        while (b-- > 0) {
            if (events[b].thread != events[i].thread || events[b].kind == EDDY_TRACE_HAPPENS)
                continue;
            open += events[b].kind == EDDY_TRACE_ENDS ? 1 : -1;
            if (open < 0)
                break;
        }
        cr_assert(b >= 0, "%s of %d ends and has not begun", eddy_trace_phase_name(events[i].phase),
                  (int)events[i].sequence);
        cr_assert(
            events[b].phase == events[i].phase && strcmp(events[b].op, events[i].op) == 0 &&
                (events[b].sequence == events[i].sequence || events[i].phase == EDDY_TRACE_ISSUE),
            "%s %s %d ends as %s %s %d", eddy_trace_phase_name(events[b].phase), events[b].op,
            (int)events[b].sequence, eddy_trace_phase_name(events[i].phase), events[i].op,
            (int)events[i].sequence);
    }
}

static int count_of(eddy_trace_phase phase, uint64_t sequence) {
    int found = 0;
    for (int32_t i = 0; i < eddy_load_relaxed(&count); i++)
        found += events[i].phase == phase && events[i].kind == EDDY_TRACE_BEGINS &&
                 events[i].sequence == sequence;
    return found;
}

#define CALLS 60

/* Calls of all costs, which depend on each other, on an ordered stream and on none. */
static void run_calls(vm_session *session, eddy_storage_number *made) {
    static const int64_t costs[] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
    eddy_vm_stream *ordered = NULL;
    cr_assert_eq(eddy_vm_stream_create(session->vm, true, 0, NULL, &ordered), EDDY_OK);
    for (int i = 0; i < CALLS; i++) {
        session->cost_ps = costs[i % 3];
        session->stream = i % 5 == 4 ? ordered : NULL;
        made[i] = i < 3 ? session_make(session, i)
                        : session_make_from(session, i, 2,
                                            (eddy_storage_number[]){made[i - 1], made[i / 2]});
    }
    session_settle(session);
    for (int i = 0; i < CALLS; i++)
        session_release(session, made[i]);
    eddy_vm_stream_release(ordered);
}

Test(trace, each_instruction_passes_its_phases_once) {
    ON_EACH_PATH(session) {
        eddy_storage_number made[CALLS];
        uint32_t place = listen_to(EDDY_TRACE_ALL_PHASES);
        run_calls(&session, made);
        (void)session_settled_counters(&session);
        eddy_trace_remove(place);
        expect_pairs();
        int kernels = 0;
        for (int32_t i = 0; i < eddy_load_relaxed(&count); i++) {
            uint64_t n = events[i].sequence;
            if (events[i].phase != EDDY_TRACE_KERNEL || events[i].kind != EDDY_TRACE_BEGINS)
                continue;
            kernels++;
            cr_assert_str_eq(events[i].op, "synthetic");
            cr_assert_geq(events[i].bytes, CELLS * 8);
            cr_assert_eq(count_of(EDDY_TRACE_KERNEL, n), 1, "kernel of %d", (int)n);
            cr_assert_eq(count_of(EDDY_TRACE_RELEASE, n), 1, "release of %d", (int)n);
            int scheduled = count_of(EDDY_TRACE_SCHEDULE, n);
            int dispatched = count_of(EDDY_TRACE_DISPATCH, n);
            cr_assert(scheduled <= 1 && dispatched <= scheduled, "%d", (int)n);
        }
        cr_assert_eq(kernels, CALLS);
    }
}

static eddy_vm_counters counters_of_calls(eddy_runtime_options options, bool is_heard) {
    eddy_storage_number made[CALLS];
    uint32_t place = 0;
    vm_session session = session_open(options);
    if (is_heard)
        place = listen_to(EDDY_TRACE_ALL_PHASES);
    run_calls(&session, made);
    eddy_vm_counters counters = session_settled_counters(&session);
    if (is_heard)
        eddy_trace_remove(place);
    session_close(&session);
    return counters;
}

/* With one thread the way of each instruction is known. */
Test(trace, instructions_go_the_way_that_they_go_unheard) {
    eddy_runtime_options one = {.uses_one_thread = true};
    eddy_vm_counters alone = counters_of_calls(one, false), watched = counters_of_calls(one, true);
    cr_assert_eq(memcmp(&watched, &alone, sizeof(watched)), 0);
    cr_assert_gt(alone.caller_run, 0);
}

/* An edge names what is waited for. */
Test(trace, edges_name_both_ends) {
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    session.cost_ps = COST_WORKER;
    uint32_t place = listen_to(1u << EDDY_TRACE_SCHEDULE);
    eddy_storage_number all[2] = {session_latch(&session, &latch, 0, NULL)};
    latch_await(&latch, 1);
    all[1] = session_make_from(&session, 1, 1, all);
    while (eddy_vm_counters_read(session.vm).edges_made == 0)
        sched_yield();
    latch_open(&latch);
    (void)session_settled_counters(&session);
    eddy_trace_remove(place);
    int edges = 0;
    for (int32_t i = 0; i < eddy_load_relaxed(&count); i++) {
        if (events[i].origin == 0)
            continue;
        edges++;
        cr_assert_eq(events[i].kind, EDDY_TRACE_HAPPENS);
        cr_assert_eq(events[i].sequence, events[i].origin + 1);
    }
    cr_assert_eq(edges, 1);
    session_release(&session, all[0]);
    session_release(&session, all[1]);
    session_close(&session);
}

/* ---- room in the ring ---- */

/* Its name is among its arguments, as that of an op is. */
typedef struct named_arguments {
    const char *name;
    char rest[EDDY_RECORD_ARGUMENT_BYTES]; /* the last does not fit into a record */
} named_arguments;

static const char *name_among_arguments(const eddy_vm_instruction *instruction) {
    return ((const named_arguments *)instruction->arguments)->name;
}

static void run_nothing(const eddy_vm_run *run) {
    (void)run;
}

static const eddy_vm_descriptor named_op = {.run = run_nothing, .name = name_among_arguments};
static _Atomic bool has_waited_spilled;

static void note_wait(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_BEGINS && event->detail &&
        strcmp(event->detail, "room: ring") == 0 && strcmp(event->op, "spilled") == 0)
        eddy_store_release(&has_waited_spilled, true);
}

static void submit_named(vm_session *session, const char *name, size_t bytes) {
    named_arguments arguments = {.name = name};
    eddy_vm_call call = {.instruction = {.descriptor = &named_op, .arguments = &arguments},
                         .argument_bytes = bytes,
                         .cost_ps = COST_CALLER};
    cr_assert_eq(eddy_vm_submit(session->vm, &call), EDDY_OK);
}

/* Nobody takes anything from the ring, and no other thread writes to it. */
static void *fill_the_ring(void *context) {
    vm_session *session = context;
    while (eddy_ring_has_room(&session->vm->ring, EDDY_RECORD_LINES_MAX + 2))
        submit_named(session, "kept", EDDY_RECORD_ARGUMENT_BYTES);
    submit_named(session, "spilled", sizeof(named_arguments));
    return NULL;
}

/* What is written to the ring for it is where its arguments are, which say what it is called. */
Test(trace, a_spilled_call_that_waits_for_room_has_its_name) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    vm_latch latch = {0};
    session.cost_ps = COST_SCHEDULER;
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    uint32_t place;
    eddy_trace_listener listener = {note_wait, NULL, 1u << EDDY_TRACE_WAIT};
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    pthread_t thread;
    start_thread(&thread, fill_the_ring, &session);
    while (!eddy_load_acquire(&has_waited_spilled))
        sched_yield();
    latch_open(&latch);
    join_thread(thread);
    eddy_trace_remove(place);
    session_release(&session, held);
    session_close(&session);
}
