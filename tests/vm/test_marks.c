#include "by_hand.h"
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
                                  .device = producer->session.device,
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

/* ---- marks by device ---- */

#define KB ((int64_t)1 << 10)

/* Nothing of the device's is over before the test says so. */
static vm_session open_by_hand(int64_t bytes, int64_t limit_bytes, bool is_full_path) {
    vm_session session = session_open((eddy_runtime_options){
        .threads = 2, .uses_full_path = is_full_path, .in_flight_bytes_high = bytes});
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    eddy_vm_memory_limit_set(session.vm, session.device, limit_bytes);
    return session;
}

/* Each is a kernel and its mark. */
static void end_calls(vm_producer *producer, int first, int end) {
    for (int i = first; i < end; i++) {
        run_pieces(&producer->session, 2);
        /* It may have run before its call has returned. */
        await_issued(producer, i + 1);
        while (!eddy_vm_is_ready(producer->session.vm, producer->made[i]))
            sched_yield();
    }
}

static void end_producer(vm_producer *producer, pthread_t thread) {
    join_thread(thread);
    cr_assert_eq(producer->status, EDDY_OK);
    session_settle(&producer->session);
    for (int i = 0; i < producer->count; i++)
        session_release(&producer->session, producer->made[i]);
    session_close(&producer->session);
}

static eddy_storage_number make_bytes(vm_session *session, int64_t seed, int64_t bytes) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, 0, NULL, 1, &target), EDDY_OK);
    return target.storage;
}

static void hold_back_at_a_quarter(bool is_full_path) {
    vm_producer producer = {.count = 8, .bytes = 4 * KB};
    producer.session = open_by_hand(0, 64 * KB, is_full_path);
    uint32_t place = listen_to_waits();
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 4);
    await_throttled(&producer.session);
    cr_assert_str_eq(eddy_load_acquire(&waited_for), "room: bytes of a device");
    /* Not below the low mark of 8 KB. */
    end_calls(&producer, 0, 2);
    cr_assert_eq(eddy_load_acquire(&producer.issued), 4);
    end_calls(&producer, 2, 3);
    await_issued(&producer, 7);
    end_calls(&producer, 3, 8);
    cr_assert_eq(eddy_vm_counters_read(producer.session.vm).bytes_in_flight_peak, 16 * KB);
    eddy_trace_remove(place);
    end_producer(&producer, thread);
}

Test(marks, what_is_in_flight_takes_a_quarter_of_a_devices_memory_at_most) {
    hold_back_at_a_quarter(false);
    hold_back_at_a_quarter(true);
}

/* Each of these calls would wait for what ends behind it. */
static void pass_beside_a_full_device(bool is_full_path) {
    vm_session session = open_by_hand(16 * KB, INT64_MAX, is_full_path);
    eddy_storage_number full[4], other[4], here[20];
    for (int i = 0; i < 4; i++)
        full[i] = make_bytes(&session, i, 4 * KB);
    eddy_backend *first = session.far;
    for (int i = 0; i < 3; i++)
        eddy_vm_stream_release(session.far_streams[i]);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    for (int i = 0; i < 4; i++)
        other[i] = make_bytes(&session, i, 4 * KB);
    cr_assert_eq(eddy_vm_counters_read(session.vm).bytes_in_flight, 32 * KB);
    cr_assert_eq(eddy_vm_counters_read(session.vm).bytes_in_flight_peak, 32 * KB);
    session.device = 0;
    session.stream = NULL;
    for (int i = 0; i < 20; i++) {
        here[i] = make_bytes(&session, i, 4 * KB);
        cr_assert_eq(session_read(&session, here[i]), value_of(i, 0));
        session_release(&session, here[i]);
    }
    for (int i = 0; i < 4; i++)
        cr_assert_not(eddy_vm_is_ready(session.vm, full[i]) ||
                      eddy_vm_is_ready(session.vm, other[i]));
    run_pieces(&session, 8);
    session.far = first;
    run_pieces(&session, 8);
    cr_assert_eq(session_settled_counters(&session).bytes_in_flight, 0);
    for (int i = 0; i < 4; i++) {
        session_release(&session, full[i]);
        session_release(&session, other[i]);
    }
    session_close(&session);
}

Test(marks, bytes_of_a_device_hold_back_neither_the_host_nor_another_device) {
    pass_beside_a_full_device(false);
    pass_beside_a_full_device(true);
}

Test(marks, bytes_of_the_host_hold_back_no_device) {
    vm_session session = open_by_hand(16 * KB, INT64_MAX, true);
    session_hold(&session, true);
    eddy_vm_stream *there = session.stream;
    uint8_t device = session.device;
    session.stream = session.held;
    session.device = 0;
    eddy_storage_number here[4], made[3];
    for (int i = 0; i < 4; i++)
        here[i] = make_bytes(&session, i, 4 * KB);
    session.stream = there;
    session.device = device;
    for (int i = 0; i < 3; i++)
        made[i] = make_bytes(&session, i, 4 * KB);
    /* Also without new bytes: it is a call of the device. */
    session_overwrite(&session, made[0], 9);
    run_pieces(&session, 8);
    for (int i = 0; i < 3; i++)
        while (!eddy_vm_is_ready(session.vm, made[i]))
            sched_yield();
    for (int i = 0; i < 4; i++)
        cr_assert_not(eddy_vm_is_ready(session.vm, here[i]));
    for (int i = 0; i < 4; i++)
        session_step(&session);
    session_settle(&session);
    for (int i = 0; i < 4; i++)
        session_release(&session, here[i]);
    for (int i = 0; i < 3; i++)
        session_release(&session, made[i]);
    session_close(&session);
}

/* Work of the host that is in flight does not matter to it. */
Test(marks, an_empty_device_takes_a_call_of_any_size) {
    static vm_producer producer = {.count = 2, .bytes = 40 * KB};
    producer.session = open_by_hand(1, INT64_MAX, true);
    vm_session *session = &producer.session, host = *session;
    session_hold(session, true);
    host.stream = session->held;
    host.device = 0;
    eddy_storage_number here = make_bytes(&host, 1, 8);
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 1);
    await_throttled(session);
    cr_assert_eq(eddy_load_acquire(&producer.issued), 1);
    end_calls(&producer, 0, 1);
    await_issued(&producer, 2);
    end_calls(&producer, 1, 2);
    cr_assert_not(eddy_vm_is_ready(session->vm, here));
    session_step(session);
    session_release(session, here);
    end_producer(&producer, thread);
}

Test(marks, a_limit_that_changes_holds_for_who_is_held_back) {
    static vm_producer producer = {.count = 20, .bytes = 4 * KB};
    producer.session = open_by_hand(0, 64 * KB, false);
    vm_session *session = &producer.session;
    pthread_t thread;
    start_thread(&thread, produce, &producer);
    await_issued(&producer, 4);
    await_throttled(session);
    /* Nothing has ended, and it goes on. */
    eddy_vm_memory_limit_set(session->vm, session->device, 256 * KB);
    await_issued(&producer, 16);
    await_throttled(session);
    /* The low mark is 16 KB now. */
    eddy_vm_memory_limit_set(session->vm, session->device, 128 * KB);
    end_calls(&producer, 0, 12);
    cr_assert_eq(eddy_load_acquire(&producer.issued), 16);
    end_calls(&producer, 12, 13);
    await_issued(&producer, 20);
    end_calls(&producer, 13, 20);
    cr_assert_eq(eddy_vm_counters_read(session->vm).bytes_in_flight_peak, 64 * KB);
    end_producer(&producer, thread);
}

/* With a thread that ends what is launched, or as the caller that waits for it. */
Test(marks, a_device_with_little_memory_takes_many_calls_on_each_path) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_vm_memory_limit_set(session.vm, session.device, 64 * KB);
        for (int i = 0; i < 200; i++) {
            eddy_storage_number made = make_bytes(&session, i, i % 10 == 0 ? 24 * KB : 4 * KB);
            if (i % 50 == 0)
                cr_assert_eq(session_read(&session, made), value_of(i, 0));
            session_release(&session, made);
        }
        /* Below the mark, a large one more. */
        cr_assert_lt(eddy_vm_counters_read(session.vm).bytes_in_flight_peak, (16 + 24) * KB);
    }
}

/* Memory of the host that is asked for at once is left to what is in flight there. */
Test(marks, bytes_of_a_device_take_no_memory_of_the_host) {
    const int64_t limit = 4096 * KB;
    eddy_memory_limit_set(limit);
    vm_session session = open_by_hand(0, INT64_MAX, true);
    eddy_storage_number there = make_bytes(&session, 1, limit / 2), here;
    void *data;
    cr_assert_eq(eddy_vm_storage_create(session.vm, limit - limit / 8, &here, &data), EDDY_OK);
    eddy_vm_storage_written(session.vm);
    cr_assert_not(eddy_vm_is_ready(session.vm, there));
    session_release(&session, here);
    run_pieces(&session, 2);
    session_settle(&session);
    session_release(&session, there);
    session_close(&session);
    eddy_memory_limit_set(0);
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
