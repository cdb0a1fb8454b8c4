/* The VM on a device that is lost, short of memory, or used in odd orders (vm/DEVICES.md 4 to 7). */
#include "by_hand.h"
#include <sched.h>
#include <vm/device.h>

/* Its deadline has passed once it waits. */
static const eddy_vm_wait hardly = {1, {"test", NULL}};

static void expect_failure(vm_session *session, eddy_storage_number storage, eddy_status expected) {
    int64_t value;
    cr_assert_eq(eddy_vm_read_small(session->vm, storage, 0, 8, &value, &forever), expected);
    taken_error();
}

/* ---- a lost device ---- */

Test(device_hostile, a_device_lost_while_a_lend_is_open_tears_what_was_to_be_written_back) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
        void *data;
        eddy_vm_lend *writes, *reads;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &writes), EDDY_OK);
        cr_assert_eq(eddy_vm_lend_begin(session.vm, b, false, &forever, &data, &reads), EDDY_OK);
        eddy_storage_number behind = session_make_from(&session, 3, 1, &a);
        eddy_far_lose(session.far);
        eddy_vm_lend_end(session.vm, writes, false);
        eddy_vm_lend_end(session.vm, reads, false);
        expect_failure(&session, a, EDDY_TORN);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, b, &forever), EDDY_OK, "it was only read");
        expect_failure(&session, behind, EDDY_DEVICE_LOST);
        session_release(&session, a);
        session_release(&session, b);
        session_release(&session, behind);
    }
}

/* A far device that is lost within a mark, just after it has taken the ticket, and that nobody hears of again. */
typedef struct losing {
    eddy_backend_class class;
    const eddy_backend_class *real;
    _Atomic uint32_t sleeps_at; /* progress that the reaper has seen and sleeps on */
} losing;

static losing lost_in_mark;

static eddy_status mark_and_lose(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_status status = lost_in_mark.real->mark(queue, ticket);
    eddy_far_lose(queue->backend);
    while (eddy_load_acquire(&lost_in_mark.sleeps_at) !=
           eddy_doorbell_seen(&queue->backend->progress))
        sched_yield();
    return status;
}

static void await_and_tell(eddy_backend *backend, uint32_t seen) {
    eddy_store_release(&lost_in_mark.sleeps_at, seen);
    lost_in_mark.real->await(backend, seen);
}

Test(device_hostile, a_device_may_be_lost_between_a_mark_and_the_note_of_it) {
    vm_session session = session_open_threads(2);
    session.far = eddy_far_create(&(eddy_far_options){.is_by_hand = true});
    cr_assert_not_null(session.far);
    lost_in_mark.real = session.far->class;
    lost_in_mark.class = *session.far->class;
    lost_in_mark.class.mark = mark_and_lose;
    lost_in_mark.class.await = await_and_tell;
    session.far->class = &lost_in_mark.class;
    cr_assert_eq(
        eddy_vm_device_add(session.vm, session.far, "far", INT64_MAX, test_origin, &session.device),
        EDDY_OK);
    cr_assert_eq(
        eddy_vm_device_stream_create(session.vm, session.device, 0, NULL, &session.far_streams[0]),
        EDDY_OK);
    session.stream = session.far_streams[0];
    eddy_storage_number a = session_make(&session, 1);
    expect_failure(&session, a, EDDY_DEVICE_LOST);
    session_release(&session, a);
    session_close(&session);
}

static void *lose(void *context) {
    eddy_far_lose(context);
    return NULL;
}

/* At any moment: among launches, lends, callbacks, late calls, with a launcher that is stalled. */
static void ignore(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)context, (void)bytes, (void)error;
    if (data)
        *(int64_t *)data = 3;
}

Test(device_hostile, a_device_may_be_lost_at_any_moment) {
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (int path = 0; path < 3; path++) {
            vm_session session = session_open(session_paths[path]);
            session_far(&session, (eddy_far_options){.seed = seed, .bytes = 8 << 20});
            eddy_storage_number kept[8];
            for (int i = 0; i < 8; i++)
                kept[i] = session_make(&session, i);
            pthread_t thread;
            for (int i = 0; i < 40; i++) {
                if (i == (int)(seed % 40))
                    start_thread(&thread, lose, session.far);
                session.stream = session.far_streams[i % 3];
                if (i % 4 == 0)
                    session_release(&session,
                                    session_make_sized(&session, 1, 3 << 20, 1, &kept[i % 8]));
                session_mix_in(&session, kept[i % 8], i, 1, &kept[(i + 3) % 8]);
                if (i % 8 == 5)
                    cr_assert_eq(
                        eddy_vm_access(session.vm, kept[i % 5], true, ignore, NULL, test_origin),
                        EDDY_OK);
                int64_t value;
                if (i % 8 == 6)
                    (void)!eddy_vm_read_small(session.vm, kept[i % 3], 0, 8, &value, &hardly);
                if (i % 8 == 7) {
                    eddy_vm_operand late = {.access = EDDY_ACCESS_MUT2,
                                            .is_new = true,
                                            .covers_all = true,
                                            .device = session.device};
                    cr_assert_eq(session_call(&session, &synthetic_late_op, i, false, 1,
                                              &kept[i % 4], 1, &late),
                                 EDDY_OK);
                    session_release(&session, late.storage);
                }
            }
            taken_error();
            session_settle(&session);
            join_thread(thread);
            for (int i = 0; i < 8; i++)
                session_release(&session, kept[i]);
            session_close(&session);
        }
}

/* ---- short of memory ---- */

/* Behind a lend more is submitted than fits at once. Nobody but the caller looks after what is launched. */
Test(device_hostile,
     one_thread_waits_for_what_is_launched_also_if_the_next_launch_is_short_of_memory) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    session_far(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    for (int i = 0; i < 20; i++)
        session_release(&session, session_make_sized(&session, 1, 3 << 20, 1, &a));
    eddy_vm_lend_end(session.vm, lend, false);
    session_settle(&session);
    cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    session_release(&session, a);
    session_close(&session);
}

/* What is starved on the host fails at the very end of the engine's work, and only then lets a copy of it begin. */
Test(device_hostile, one_thread_waits_for_what_is_launched_behind_what_has_starved) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    session_far(&session, (eddy_far_options){.seed = 1});
    uint8_t there = session.device;
    eddy_vm_stream *stream = session.stream;
    session.device = 0;
    session.stream = NULL;
    eddy_memory_limit_set(8 << 20);
    eddy_storage_number lent = session_make(&session, 1),
                        kept = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, lent, true, &forever, &data, &lend), EDDY_OK);
    eddy_storage_number starved = session_make_sized(&session, 1, 6 << 20, 1, &lent), copy = 0;
    cr_assert_eq(eddy_vm_copy(session.vm, stream, starved, 0, CELLS * 8, there, NULL, &copy),
                 EDDY_OK);
    eddy_vm_lend_end(session.vm, lend, false);
    cr_assert(eddy_vm_is_ready(session.vm, copy), "in this mode all is over at the end of a call");
    expect_failure(&session, copy, EDDY_OUT_OF_MEMORY);
    session_release(&session, kept);
    session_release(&session, lent);
    session_release(&session, starved);
    session_release(&session, copy);
    session_close(&session);
    eddy_memory_limit_set(0);
}

/* What callers have released may still be theirs to hand over: it is taken before the last try, which comes all the same. */
Test(device_hostile, releases_that_are_pending_do_not_keep_a_launcher_stalled) {
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    session_far(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
    eddy_storage_number kept = session_make_sized(&session, 1, 6 << 20, 0, NULL),
                        lent = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, lent, true, &forever, &data, &lend), EDDY_OK);
    eddy_storage_number behind = session_make_from(&session, 2, 1, &lent);
    eddy_storage_number large = session_make_sized(&session, 1, 6 << 20, 1, &lent);
    eddy_vm_event *event;
    cr_assert_eq(eddy_vm_event_record(session.vm, session.stream, test_origin, &event), EDDY_OK);
    session_release(&session, behind);
    eddy_vm_lend_end(session.vm, lend, false);
    cr_assert(eddy_vm_event_query(event), "in this mode all is over at the end of a call");
    eddy_vm_event_release(event);
    expect_failure(&session, large, EDDY_OUT_OF_MEMORY);
    session_release(&session, kept);
    session_release(&session, lent);
    session_release(&session, large);
    session_close(&session);
}

typedef struct seen_by_callback {
    eddy_status status;
    bool has_data;
} seen_by_callback;

static void note(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)bytes;
    *(seen_by_callback *)context =
        (seen_by_callback){error ? error->status : EDDY_OK, data != NULL};
}

Test(device_hostile, a_callback_without_memory_of_the_host_is_told_and_leaves_the_storage) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_storage_number a = session_make_sized(&session, 1, 8 << 20, 0, NULL);
        session_settle(&session);
        eddy_memory_limit_set(4 << 20);
        seen_by_callback seen = {0};
        cr_assert_eq(eddy_vm_access(session.vm, a, true, note, &seen, test_origin), EDDY_OK);
        session_settle(&session);
        cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
        cr_assert_eq(seen.status, EDDY_OUT_OF_MEMORY);
        cr_assert_not(seen.has_data);
        void *data;
        eddy_vm_lend *lend;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend),
                     EDDY_OUT_OF_MEMORY);
        taken_error();
        cr_assert_eq(session_read(&session, a), value_of(1, 0));
        eddy_memory_limit_set(0);
        session_release(&session, a);
    }
}

/* ---- creation ---- */

Test(device_hostile, a_device_that_cannot_be_added_leaves_nothing_behind) {
    vm_session session = session_open_threads(2);
    bool has_failed = true;
    for (int64_t first = 0; has_failed; first++) {
        eddy_backend *far = eddy_far_create(&(eddy_far_options){.seed = 1, .bytes = 1 << 20});
        cr_assert_not_null(far);
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, first, 1);
        uint8_t device;
        eddy_status status =
            eddy_vm_device_add(session.vm, far, "far", INT64_MAX, test_origin, &device);
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
        if (status == EDDY_OK)
            continue;
        cr_assert_eq(status, EDDY_OUT_OF_MEMORY);
        taken_error();
        far->class->destroy(far);
        /* The engine goes on. */
        session_release(&session, session_make(&session, 1));
        session_settle(&session);
    }
    session_close(&session);
}

/* ---- odd calls ---- */

static void delete_nothing(void *context) {
    (void)context;
}

Test(device_hostile, a_borrowed_storage_without_elements_is_copied) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_storage_number here, there = 0;
        cr_assert_eq(eddy_vm_storage_borrow(session.vm, NULL, 0, delete_nothing, NULL, &here),
                     EDDY_OK);
        cr_assert_eq(
            eddy_vm_copy(session.vm, session.stream, here, 0, 0, session.device, NULL, &there),
            EDDY_OK);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, there, &forever), EDDY_OK);
        void *data;
        eddy_vm_lend *lend;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, there, true, &forever, &data, &lend), EDDY_OK);
        eddy_vm_lend_end(session.vm, lend, false);
        session_release(&session, here);
        session_release(&session, there);
    }
}

static void gone(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error) {
    (void)operand;
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, test_origin, instruction->sequence - 1,
                    "given up");
}

static const eddy_vm_descriptor late_give_up_op = {.run = synthetic_run,
                                                   .count = synthetic_count,
                                                   .name = synthetic_name,
                                                   .end = synthetic_end,
                                                   .gone = gone};

Test(device_hostile, a_late_call_keeps_what_it_gives_up_for_its_second_launch) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_storage_number given = session_make(&session, 1);
        eddy_vm_operand operands[] = {
            {.storage = given, .access = EDDY_ACCESS_MUT, .is_given_up = true},
            {.access = EDDY_ACCESS_MUT2,
             .is_new = true,
             .covers_all = true,
             .device = session.device}};
        synthetic_arguments arguments = {.seed = 2, .late_count = CELLS, .accesses = 1 << 2};
        eddy_vm_call call = {.instruction = {.descriptor = &late_give_up_op,
                                             .arguments = &arguments,
                                             .operand_count = 2},
                             .argument_bytes = sizeof(arguments),
                             .operands = operands,
                             .stream = session.stream,
                             .part_count = 2};
        cr_assert_eq(synthetic_submit(session.vm, &call), EDDY_OK);
        cr_assert_eq(session_read(&session, operands[1].storage), value_from(2, value_of(1, 0)));
        expect_failure(&session, given, EDDY_INVALID_ARGUMENT);
        session_overwrite(&session, given, 5);
        cr_assert_eq(session_read(&session, given), value_of(5, 0));
        session_release(&session, given);
        session_release(&session, operands[1].storage);
    }
}

Test(device_hostile, what_is_made_lost_is_the_devices_all_the_same) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_error error;
        eddy_error_fill(&error, EDDY_OUT_OF_RANGE, test_origin, 0, "lost");
        cr_assert_eq(eddy_vm_note_failure(session.vm, &error, test_origin), EDDY_OK);
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device,
                                  .bytes = CELLS * 8};
        eddy_vm_call call = {.instruction = {.descriptor = &synthetic_plain_op, .operand_count = 1},
                             .operands = &target,
                             .stream = session.stream};
        cr_assert_eq(eddy_vm_make_lost(session.vm, &call, error.sequence), EDDY_OK);
        cr_assert_eq(eddy_vm_storage(session.vm, target.storage)->shared.device, session.device);
        expect_failure(&session, target.storage, EDDY_OUT_OF_RANGE);
        session_overwrite(&session, target.storage, 3);
        cr_assert_eq(session_read(&session, target.storage), value_of(3, 0));
        session_release(&session, target.storage);
    }
}

/* ---- waits ---- */

typedef struct lender {
    vm_session *session;
    eddy_storage_number storage;
} lender;

static void *lend_and_end(void *context) {
    const lender *at = context;
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(at->session->vm, at->storage, true, &forever, &data, &lend),
                 EDDY_OK);
    eddy_vm_lend_end(at->session->vm, lend, false);
    return NULL;
}

Test(device_hostile, a_lend_that_another_thread_waits_for_is_not_ones_own) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    eddy_storage_number a = session_make(&session, 1);
    run_pieces(&session, 2);
    session_settle(&session);
    session.device = 0;
    session.stream = NULL;
    eddy_storage_number here = session_make(&session, 2);
    void *data;
    eddy_vm_lend *lend;
    /* What was this thread's lend is the other's next. */
    cr_assert_eq(eddy_vm_lend_begin(session.vm, here, true, &forever, &data, &lend), EDDY_OK);
    eddy_vm_lend_end(session.vm, lend, false);
    session_settled_counters(&session);
    session.device = 1;
    lender other = {&session, a};
    pthread_t thread;
    start_thread(&thread, lend_and_end, &other);
    await_ticket(&session, 2);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &hardly), EDDY_TIMED_OUT);
    taken_error();
    run_pieces(&session, 4);
    join_thread(thread);
    session_release(&session, a);
    session_release(&session, here);
    session_close(&session);
}

/* The copies that bring the elements take as long as the device likes. */
Test(device_hostile, a_lend_of_a_devices_storage_has_its_timeout) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    eddy_storage_number a = session_make(&session, 1);
    run_pieces(&session, 2);
    session_settle(&session);
    void *data;
    eddy_vm_lend *lend;
    int64_t value;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &hardly, &data, &lend), EDDY_TIMED_OUT);
    cr_assert_eq(eddy_vm_read_small(session.vm, a, 0, 8, &value, &hardly), EDDY_TIMED_OUT);
    taken_error();
    /* Abandoned: their copies run all the same, the lend's first. */
    run_pieces(&session, 4);
    session_settle(&session);
    session_release(&session, a);
    session_close(&session);
}

/* The caller is not to wait for calls that the device may begin after each other. */
Test(device_hostile, an_issuer_goes_ahead_of_a_device) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    eddy_storage_number first = session_make(&session, 0), all[20];
    run_pieces(&session, 2);
    session_settled_counters(&session);
    for (int i = 0; i < 20; i++)
        all[i] = session_make_from(&session, i, 1, &first);
    eddy_vm_lock(session.vm);
    cr_assert_eq(session.vm->vain_at, 0, "it has waited");
    eddy_vm_unlock(session.vm);
    run_pieces(&session, 40);
    session_settle(&session);
    session_release(&session, first);
    for (int i = 0; i < 20; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

static void stay(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    latch_pass(context);
}

/* What takes long there: neither has ended when what was issued behind them has run and was read. */
Test(device_hostile, a_kernel_and_a_callback_of_the_host_hold_up_no_launch) {
    vm_session session = session_open_threads(3);
    session_far(&session, (eddy_far_options){.seed = 1});
    uint8_t device = session.device;
    vm_latch kernel = {0}, callback = {0};
    session.device = 0;
    session.stream = NULL;
    session.cost_ps = COST_WORKER;
    eddy_storage_number held = session_latch(&session, &kernel, 0, NULL),
                        seen = session_make(&session, 1);
    latch_await(&kernel, 1);
    cr_assert_eq(eddy_vm_access(session.vm, seen, false, stay, &callback, test_origin), EDDY_OK);
    latch_await(&callback, 1);
    session.device = device;
    for (int i = 0; i < 6; i++) {
        session.stream = session.far_streams[i % 3];
        eddy_storage_number a = session_make(&session, i);
        eddy_storage_number b = session_make_from(&session, 2, 1, &a);
        cr_assert_eq(session_read(&session, b), value_from(2, value_of(i, 0)));
        session_release(&session, a);
        session_release(&session, b);
    }
    cr_assert_not(eddy_vm_is_ready(session.vm, held));
    latch_open(&kernel);
    latch_open(&callback);
    session_settle(&session);
    session_release(&session, held);
    session_release(&session, seen);
    session_close(&session);
}

/* It is tried again, and nothing has been touched. */
Test(device_hostile,
     a_launch_without_memory_of_the_host_is_tried_again_and_fails_as_one_that_did_not_run) {
    ON_EACH_PATH(session) {
        session_far(&session, (eddy_far_options){.seed = 1});
        eddy_storage_number target = session_make(&session, 4);
        session_settle(&session);
        eddy_memory_fail_at(EDDY_MEMORY_ARGUMENT, 0, 1);
        session_mix_in(&session, target, 5, 0, NULL);
        session_settle(&session);
        cr_assert_eq(session_read(&session, target), synthetic_mix(value_of(4, 0), 5));
        eddy_memory_fail_at(EDDY_MEMORY_ARGUMENT, 0, INT64_MAX);
        session_mix_in(&session, target, 6, 0, NULL);
        session_settle(&session);
        eddy_memory_fail_at(EDDY_MEMORY_ARGUMENT, 0, 0);
        int64_t value;
        cr_assert_eq(eddy_vm_read_small(session.vm, target, 0, 8, &value, &forever), EDDY_SKIPPED);
        taken_error();
        cr_assert_eq(eddy_vm_recover(session.vm, &target, 1, test_origin), EDDY_OK);
        cr_assert_eq(session_read(&session, target), synthetic_mix(value_of(4, 0), 5));
        session_release(&session, target);
    }
}

/* ---- a VM that closes ---- */

/* A far device whose queues take until another thread closes the VM. */
typedef struct closing {
    eddy_backend_class class;
    const eddy_backend_class *real;
    eddy_vm *vm;
    int queues; /* that it makes before */
    pthread_t thread;
} closing;

static closing closed_in_making;

static void *close_vm(void *vm) {
    cr_assert_eq(eddy_vm_close(vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    return NULL;
}

static eddy_backend_queue *close_and_make(eddy_backend *backend, int32_t priority) {
    closing *at = &closed_in_making;
    if (at->queues-- == 0) {
        start_thread(&at->thread, close_vm, at->vm);
        while (eddy_load_acquire(&at->vm->state) == EDDY_VM_RUNNING)
            sched_yield();
    }
    return at->real->queue_create(backend, priority);
}

static eddy_backend *far_that_closes(eddy_vm *vm, int queues) {
    eddy_backend *far = eddy_far_create(&(eddy_far_options){.seed = 1});
    cr_assert_not_null(far);
    closed_in_making =
        (closing){.class = *far->class, .real = far->class, .vm = vm, .queues = queues};
    closed_in_making.class.queue_create = close_and_make;
    far->class = &closed_in_making.class;
    return far;
}

static void expect_shut_down(eddy_status status, const char *op) {
    cr_assert_eq(status, EDDY_SHUT_DOWN);
    eddy_error error = taken_error();
    cr_assert_eq(error.status, EDDY_SHUT_DOWN, "%s", error.message);
    cr_assert_str_eq(error.op, op);
    join_thread(closed_in_making.thread);
}

static void end_closed(vm_session *session) {
    eddy_vm_destroy(session->vm);
    assert_no_memory_held();
    eddy_sub_relaxed(&sessions_open, 1);
}

Test(device_hostile, a_device_that_is_added_while_its_vm_closes_says_so) {
    for (int path = 0; path < 3; path++)
        for (int queues = 0; queues < 3; queues++) {
            vm_session session = session_open(session_paths[path]);
            session.far = far_that_closes(session.vm, queues);
            expect_shut_down(eddy_vm_device_add(session.vm, session.far, "far", INT64_MAX,
                                                test_origin, &session.device),
                             "test");
            session.far->class->destroy(session.far);
            end_closed(&session);
        }
}

Test(device_hostile, a_stream_that_is_made_while_its_vm_closes_says_so) {
    for (int path = 0; path < 3; path++) {
        vm_session session = session_open(session_paths[path]);
        session.far = far_that_closes(session.vm, 3);
        cr_assert_eq(eddy_vm_device_add(session.vm, session.far, "far", INT64_MAX, test_origin,
                                        &session.device),
                     EDDY_OK);
        expect_shut_down(
            eddy_vm_device_stream_create(session.vm, session.device, 0, NULL, &session.stream),
            "stream_create");
        end_closed(&session);
    }
}
