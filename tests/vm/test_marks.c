#include "session.h"
#include <base/trace.h>

/* The stream is held, so that nothing finishes before the test says so. */
static vm_session open_marked(int64_t count, int64_t bytes) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2,
                                                             .uses_full_path = true,
                                                             .in_flight_high = count,
                                                             .in_flight_bytes_high = bytes});
    session_hold(&session, true);
    session.stream = session.held;
    return session;
}

typedef struct vm_producer {
    vm_session session;
    int count;
    int64_t bytes;
    _Atomic int issued;
    eddy_status status;
    eddy_storage_number made[100];
} vm_producer;

static void *produce(void *context) {
    vm_producer *producer = context;
    for (int i = 0; i < producer->count && producer->status == EDDY_OK; i++) {
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .bytes = producer->bytes};
        producer->status =
            session_call(&producer->session, &synthetic_op, i, false, 0, NULL, 1, &target);
        producer->made[i] = target.storage;
        if (producer->status == EDDY_OK)
            eddy_add_release(&producer->issued, 1);
    }
    return NULL;
}

static void await_issued(vm_producer *producer, int count) {
    while (eddy_load_acquire(&producer->issued) < count)
        sched_yield();
}

static void await_held(vm_session *session, int64_t count) {
    while (eddy_fake_queue_held(session->fake) < count)
        sched_yield();
}

/* The read of what is ready makes no instruction: what is in flight is the producer's alone. */
static int64_t read_ready(vm_session *session, eddy_storage_number number) {
    while (!eddy_vm_is_ready(session->vm, number))
        sched_yield();
    return session_read(session, number);
}

/* Waits until the producer is held back at the mark. */
static void await_throttled(vm_session *session) {
    while (eddy_load_seq_cst(&session->vm->throttled) == 0)
        sched_yield();
}

static _Atomic(const char *) waited_for; /* atomic: release; of the last wait for room */

static void note_wait(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind == EDDY_TRACE_BEGINS && event->detail && strncmp(event->detail, "room", 4) == 0)
        eddy_store_release(&waited_for, event->detail);
}

static uint32_t listen_to_waits(void) {
    uint32_t place;
    eddy_trace_listener listener = {note_wait, NULL, 1u << EDDY_TRACE_WAIT};
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    return place;
}

Test(marks, an_issuer_is_held_back_at_the_high_mark_until_the_low_one) {
    static vm_producer producer = {.count = 30, .bytes = 8};
    producer.session = open_marked(10, 1 << 30);
    uint32_t place = listen_to_waits();
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 10);
    await_throttled(&producer.session);
    cr_assert_str_eq(eddy_load_acquire(&waited_for), "room: instructions");
    await_held(&producer.session, 10);
    /* Above the low mark of five it stays. */
    for (int i = 0; i < 5; i++) {
        session_step(&producer.session);
        cr_assert_eq(read_ready(&producer.session, producer.made[i]), value_of(i, 0));
        cr_assert_eq(eddy_load_acquire(&producer.issued), 10, "after %d", i + 1);
    }
    session_step(&producer.session);
    await_issued(&producer, 16);
    for (int i = 6; i < 30; i++)
        session_step(&producer.session);
    join_thread(thread);
    cr_assert_eq(producer.status, EDDY_OK);
    cr_assert_leq(eddy_vm_counters_read(producer.session.vm).in_flight_peak, 10);
    eddy_trace_remove(place);
    for (int i = 0; i < 30; i++)
        session_release(&producer.session, producer.made[i]);
    session_close(&producer.session);
}

Test(marks, bytes_hold_back_as_well) {
    static vm_producer producer = {.count = 20, .bytes = 1024};
    producer.session = open_marked(1000, 4096);
    uint32_t place = listen_to_waits();
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 4);
    await_throttled(&producer.session);
    cr_assert_str_eq(eddy_load_acquire(&waited_for), "room: bytes");
    cr_assert_eq(eddy_load_acquire(&producer.issued), 4);
    for (int i = 0; i < 20; i++)
        session_step(&producer.session);
    join_thread(thread);
    cr_assert_eq(producer.status, EDDY_OK);
    cr_assert_leq(eddy_vm_counters_read(producer.session.vm).bytes_in_flight_peak, 4096 + 1024);
    eddy_trace_remove(place);
    for (int i = 0; i < 20; i++)
        session_release(&producer.session, producer.made[i]);
    session_close(&producer.session);
}

/* How often somebody has waited. */
static void count_wait(void *context, const eddy_trace_event *event) {
    if (event->kind == EDDY_TRACE_BEGINS)
        eddy_add_relaxed((_Atomic int *)context, 1);
}

/* So many calls behind a held one, each with a new kilobyte; how often they waited, each for a while only. */
static int waits_behind_a_held_one(int64_t lead_bytes, int count) {
    vm_session session = session_open_threads(2);
    session_hold(&session, true);
    session.stream = session.held;
    session.vm->lead_bytes = lead_bytes;
    _Atomic int waits = 0;
    eddy_trace_listener listener = {count_wait, (void *)&waits, 1u << EDDY_TRACE_WAIT};
    uint32_t place;
    cr_assert_eq(eddy_trace_add(&listener, &place), EDDY_OK);
    eddy_storage_number made[100];
    for (int i = 0; i < count; i++) {
        eddy_vm_operand target = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 1024};
        cr_assert_eq(session_call(&session, &synthetic_op, i, false, 0, NULL, 1, &target), EDDY_OK);
        made[i] = target.storage;
    }
    eddy_trace_remove(place);
    for (int i = 0; i < count; i++)
        session_step(&session);
    for (int i = 0; i < count; i++) {
        cr_assert_eq(session_read(&session, made[i]), value_of(i, 0));
        session_release(&session, made[i]);
    }
    session_close(&session);
    return eddy_load_relaxed(&waits);
}

Test(marks, a_call_that_is_far_ahead_in_bytes_waits_each_time_and_goes_on) {
    cr_assert_geq(waits_behind_a_held_one(4096, 30), 20);
    cr_assert_leq(waits_behind_a_held_one(1 << 20, 20), 1);
}

/* The rest of the memory is for what came before. */
Test(marks, what_is_in_flight_takes_a_quarter_of_the_memory_at_most) {
    static vm_producer producer = {.count = 20, .bytes = 1024};
    eddy_memory_limit_set(16384);
    producer.session = open_marked(1000, 1 << 30);
    eddy_memory_limit_set(0);
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 4);
    await_throttled(&producer.session);
    cr_assert_eq(eddy_load_acquire(&producer.issued), 4);
    for (int i = 0; i < 20; i++)
        session_step(&producer.session);
    join_thread(thread);
    cr_assert_eq(producer.status, EDDY_OK);
    for (int i = 0; i < 20; i++)
        session_release(&producer.session, producer.made[i]);
    session_close(&producer.session);
}

Test(marks, an_empty_vm_takes_any_instruction) {
    vm_session session = open_marked(1, 1);
    for (int i = 0; i < 5; i++) {
        eddy_vm_operand target = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 1 << 20};
        cr_assert_eq(session_call(&session, &synthetic_op, i, false, 0, NULL, 1, &target), EDDY_OK);
        session_step(&session);
        cr_assert_eq(session_read(&session, target.storage), value_of(i, 0));
        session_release(&session, target.storage);
    }
    session_close(&session);
}

Test(marks, releases_pass_outside_the_marks) {
    static vm_producer producer = {.count = 12, .bytes = 8};
    producer.session = open_marked(10, 1 << 30);
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 10);
    await_throttled(&producer.session);
    for (int i = 0; i < 10; i++)
        session_release(&producer.session, producer.made[i]);
    for (int i = 0; i < 12; i++)
        session_step(&producer.session);
    join_thread(thread);
    session_release(&producer.session, producer.made[10]);
    session_release(&producer.session, producer.made[11]);
    session_close(&producer.session);
}

Test(marks, waits_and_events_pass_outside_the_marks) {
    static vm_producer producer = {.count = 12, .bytes = 8};
    producer.session = open_marked(10, 1 << 30);
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_throttled(&producer.session);
    eddy_vm_wait briefly = {1000000, {"wait", NULL}};
    cr_assert_eq(eddy_vm_wait_storage(producer.session.vm, producer.made[3], &briefly),
                 EDDY_TIMED_OUT);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(producer.session.vm, NULL, test_origin, &event), EDDY_OK);
    taken_error();
    for (int i = 0; i < 12; i++)
        session_step(&producer.session);
    cr_assert_eq(eddy_vm_event_wait(event, &forever), EDDY_OK);
    eddy_vm_event_release(event);
    join_thread(thread);
    for (int i = 0; i < 12; i++)
        session_release(&producer.session, producer.made[i]);
    session_close(&producer.session);
}

Test(marks, a_throttled_issuer_is_refused_when_the_vm_closes) {
    static vm_producer producer = {.count = 12, .bytes = 8};
    producer.session = open_marked(4, 1 << 30);
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_throttled(&producer.session);
    /* The closer waits for what is in flight, which the test lets go meanwhile. */
    vm_session *session = &producer.session;
    eddy_vm_stream_release(session->held);
    cr_assert_eq(eddy_vm_close(session->vm, 1), EDDY_TIMED_OUT);
    for (int i = 0; i < 4; i++)
        session_step(session);
    join_thread(thread);
    cr_assert_eq(producer.status, EDDY_SHUT_DOWN);
    cr_assert_eq(eddy_load_acquire(&producer.issued), 4);
}

typedef struct vm_closing {
    vm_producer producer;
    eddy_status closed;
} vm_closing;

static void *close_it(void *context) {
    vm_closing *closing = context;
    closing->closed = eddy_vm_close(closing->producer.session.vm, EDDY_CLOCK_FOREVER);
    return NULL;
}

/* What the throttled call took is given back before the VM gives up its tables. Many rounds: the two threads race. */
Test(marks, closing_waits_for_throttled_issuers_to_leave) {
    for (int round = 0; round < 200; round++) {
        vm_closing closing = {.producer = {.count = 12, .bytes = 8}};
        vm_session *session = &closing.producer.session;
        *session = open_marked(4, 1 << 30);
        pthread_t issuer, closer;
        start_thread(&issuer, produce, &closing.producer);
        await_throttled(session);
        eddy_vm_stream_release(session->held);
        start_thread(&closer, close_it, &closing);
        while (eddy_load_seq_cst(&session->vm->state) == EDDY_VM_RUNNING)
            sched_yield();
        for (int i = 0; i < 4; i++)
            session_step(session);
        join_thread(closer);
        join_thread(issuer);
        cr_assert_eq(closing.closed, EDDY_OK);
        cr_assert_eq(closing.producer.status, EDDY_SHUT_DOWN);
        eddy_vm_destroy(session->vm);
        assert_no_memory_held();
    }
}
