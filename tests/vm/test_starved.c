/* Instructions for which there is no memory (PROTOCOL.md section 12). A kernel at a latch holds what is to come free. */
#include "by_hand.h"

#define MB ((int64_t)1 << 20)

static eddy_storage_number submit(vm_session *session, int64_t bytes, int64_t seed, int input_count,
                                  const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, input_count, inputs, 1, &target),
                 EDDY_OK);
    return target.storage;
}

static vm_session open_workers(int64_t limit) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 3, .uses_worker_path = true});
    session.cost_ps = COST_WORKER;
    eddy_memory_limit_set(limit);
    return session;
}

static void close_all(vm_session *session, int count, const eddy_storage_number *storages) {
    for (int i = 0; i < count; i++)
        session_release(session, storages[i]);
    session_close(session);
    eddy_memory_limit_set(0);
}

/* One of them needs little and gives much back; the other needs it. Neither fails, whichever came first. */
Test(starved, what_fits_runs_before_anything_fails) {
    for (int small_first = 0; small_first < 2; small_first++) {
        vm_session session = open_workers(13 * MB);
        eddy_storage_number given = submit(&session, 5 * MB, 1, 0, NULL),
                            kept = submit(&session, 5 * MB, 2, 0, NULL);
        eddy_storage_number passing = submit(&session, 5 * MB / 2, 3, 0, NULL);
        session_settle(&session);
        vm_latch latch = {0};
        eddy_storage_number reader = session_latch(&session, &latch, 1, &passing);
        latch_await(&latch, 1);
        session_release(&session, passing);
        eddy_storage_number small = 0, large = 0;
        for (int i = 0; i < 2; i++) {
            if ((i == 0) == small_first)
                small = submit(&session, MB, 4, 1, &given);
            else
                large = submit(&session, 6 * MB, 5, 0, NULL);
        }
        session_release(&session, given);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, small, &at_once), EDDY_TIMED_OUT);
        taken_error();
        while (eddy_vm_counters_read(session.vm).starved == 0)
            sched_yield();
        latch_open(&latch);
        cr_assert_eq(session_read(&session, large), value_of(5, 0), "small first: %d", small_first);
        cr_assert_eq(session_read(&session, small), value_from(4, value_of(1, 0)));
        close_all(&session, 4, (eddy_storage_number[]){kept, reader, small, large});
    }
}

/* The oldest fails, and what its successors gave up is enough for the next. */
Test(starved, the_oldest_fails_first_and_its_successors_give_up_what_they_hold) {
    vm_session session = open_workers(12 * MB);
    eddy_storage_number given = submit(&session, 5 * MB, 1, 0, NULL),
                        kept = submit(&session, 5 * MB, 2, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number holder = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    eddy_storage_number oldest = submit(&session, 6 * MB, 3, 0, NULL);
    eddy_storage_number successor =
        submit(&session, CELLS * 8, 4, 2, (eddy_storage_number[]){oldest, given});
    eddy_storage_number next = submit(&session, 6 * MB, 5, 0, NULL);
    session_release(&session, given);
    latch_open(&latch);
    cr_assert_eq(session_read(&session, next), value_of(5, 0));
    cr_assert_eq(eddy_vm_wait_storage(session.vm, oldest, &forever), EDDY_OUT_OF_MEMORY);
    taken_error();
    cr_assert_eq(eddy_vm_wait_storage(session.vm, successor, &forever), EDDY_OUT_OF_MEMORY);
    taken_error();
    close_all(&session, 5, (eddy_storage_number[]){kept, holder, oldest, successor, next});
}

/* Blocks that the issuers' cache keeps. */
Test(starved, what_issuers_keep_is_collected) {
    enum { COUNT = 64, BYTES = 32768 };
    vm_session session = session_open_threads(2);
    eddy_memory_limit_set(4 * MB);
    eddy_storage_number small[COUNT];
    for (int i = 0; i < COUNT; i++)
        small[i] = submit(&session, BYTES, i, 0, NULL);
    session_settle(&session);
    for (int i = 0; i < COUNT; i++)
        session_release(&session, small[i]);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes, COUNT * BYTES);
    session.cost_ps = COST_WORKER;
    eddy_storage_number large = submit(&session, 3 * MB, 1, 0, NULL);
    cr_assert_eq(session_read(&session, large), value_of(1, 0));
    close_all(&session, 1, &large);
}

/* A release that waits for a record to travel in, and none comes. */
Test(starved, releases_that_wait_for_company_are_collected) {
    vm_session session = open_workers(131072);
    eddy_storage_number first = submit(&session, 49152, 1, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &first);
    latch_await(&latch, 1);
    eddy_storage_number large = submit(&session, 98304, 2, 0, NULL);
    session_release(&session, first);
    latch_open(&latch);
    /* Asking without a record: a wait would be one for the release to travel in. */
    while (!eddy_vm_is_ready(session.vm, large))
        sched_yield();
    cr_assert_eq(session_read(&session, large), value_of(2, 0));
    close_all(&session, 2, (eddy_storage_number[]){reader, large});
}

static void name_run(const eddy_vm_run *run) {
    pthread_getname_np(pthread_self(), run->data[0], 16);
}

static const eddy_vm_descriptor name_op = {.run = name_run, .name = synthetic_name};

/* Kernels of registered ops run on workers, also when they are tried again. */
Test(starved, what_is_for_workers_is_tried_again_on_a_worker) {
    for (int fits = 0; fits < 2; fits++) {
        vm_session session = open_workers(8 * MB);
        eddy_storage_number passing = submit(&session, 5 * MB, 1, 0, NULL);
        session_settle(&session);
        vm_latch latch = {0};
        eddy_storage_number reader = session_latch(&session, &latch, 1, &passing);
        latch_await(&latch, 1);
        eddy_vm_operand target = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 5 * MB};
        eddy_vm_call call = {.instruction = {.descriptor = &name_op, .operand_count = 1},
                             .operands = &target,
                             .cost_ps = COST_WORKER,
                             .place = EDDY_PLACE_WORKER};
        cr_assert_eq(synthetic_submit(session.vm, &call), EDDY_OK);
        if (fits)
            session_release(&session, passing);
        latch_open(&latch);
        char name[16] = "";
        eddy_status status =
            eddy_vm_read_small(session.vm, target.storage, 0, sizeof(name), name, &forever);
        taken_error();
        cr_assert_eq(status, fits ? EDDY_OK : EDDY_OUT_OF_MEMORY);
        cr_assert_eq(strncmp(name, "eddy-worker", 11) == 0, fits, "%s", name);
        if (!fits)
            session_release(&session, passing);
        close_all(&session, 2, (eddy_storage_number[]){reader, target.storage});
    }
}

/* ---- storages made by hand (from_data) ---- */

typedef struct hand_maker {
    eddy_vm *vm;
    int64_t bytes;
    eddy_storage_number made;
    eddy_status status;
    eddy_error error;
    _Atomic bool is_done; /* atomic: release, when the rest may be read */
} hand_maker;

static void *make_by_hand(void *context) {
    hand_maker *maker = context;
    void *data;
    maker->status = eddy_vm_storage_create(maker->vm, maker->bytes, &maker->made, &data);
    maker->error = taken_error();
    if (maker->status == EDDY_OK) {
        memset(data, 1, (size_t)maker->bytes);
        eddy_vm_storage_written(maker->vm);
    }
    eddy_store_release(&maker->is_done, true);
    return NULL;
}

/* Until so many instructions are in flight: the maker's own among them. */
static void await_in_flight(const vm_session *session, const hand_maker *maker, int64_t count) {
    while (eddy_vm_counters_read(session->vm).in_flight < count)
        cr_assert_not(eddy_load_acquire(&maker->is_done), "%s", eddy_status_text(maker->status));
}

/* Whose bytes are there already, whoever waits for room: a reader holds them at the latch. */
static void make_at_latch(int64_t limit, int64_t present, bool is_given_up, hand_maker *maker) {
    eddy_memory_limit_set(limit);
    vm_session session = open_workers(limit);
    eddy_storage_number held = submit(&session, present, 1, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &held);
    latch_await(&latch, 1);
    if (is_given_up)
        session_release(&session, held);
    maker->vm = session.vm;
    pthread_t thread;
    start_thread(&thread, make_by_hand, maker);
    await_in_flight(&session, maker, 2);
    latch_open(&latch);
    join_thread(thread);
    if (!is_given_up)
        session_release(&session, held);
    if (maker->status == EDDY_OK)
        session_release(&session, maker->made);
    close_all(&session, 1, &reader);
}

Test(starved, a_storage_made_by_hand_waits_for_what_comes_free) {
    hand_maker maker = {.bytes = 5 * MB};
    make_at_latch(8 * MB, 5 * MB, true, &maker);
    cr_assert_eq(maker.status, EDDY_OK);
}

/* 8 of 12 MB are there, and a call of 3 MB more stands behind the latch: 2 MB by hand have to wait for it. Without that call there is
 * nothing to wait for, although a kernel runs. */
static void make_beside(bool is_queued) {
    vm_session session = open_workers(12 * MB);
    eddy_storage_number present = submit(&session, 8 * MB, 1, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &present), queued = 0;
    latch_await(&latch, 1);
    if (is_queued)
        queued = submit(&session, 3 * MB, 2, 1, &reader);
    hand_maker maker = {.vm = session.vm, .bytes = 2 * MB};
    pthread_t thread;
    start_thread(&thread, make_by_hand, &maker);
    if (is_queued) {
        await_in_flight(&session, &maker, 3);
        session_release(&session, queued);
    } else {
        join_thread(thread);
    }
    latch_open(&latch);
    if (is_queued)
        join_thread(thread);
    cr_assert_eq(maker.status, EDDY_OK);
    close_all(&session, 3, (eddy_storage_number[]){present, reader, maker.made});
}

Test(starved, a_storage_made_by_hand_leaves_room_to_what_is_in_flight) {
    make_beside(true);
}

Test(starved, a_storage_made_by_hand_waits_for_nothing_where_there_is_room) {
    make_beside(false);
}

/* What is in flight on a device takes none of the host's memory: what waits for room here does not wait for it. */
Test(starved, a_storage_made_by_hand_leaves_no_room_to_devices) {
    vm_session session = open_workers(12 * MB);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    eddy_storage_number there = submit(&session, 4 * MB, 1, 0, NULL);
    session.stream = NULL;
    session.device = 0;
    eddy_storage_number present = submit(&session, 8 * MB, 1, 0, NULL);
    cr_assert_eq(session_read(&session, present), value_of(1, 0));
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &present);
    latch_await(&latch, 1);
    eddy_storage_number queued = submit(&session, 3 * MB, 2, 1, &reader);
    hand_maker maker = {.vm = session.vm, .bytes = 2 * MB};
    pthread_t thread;
    start_thread(&thread, make_by_hand, &maker);
    await_in_flight(&session, &maker, 4);
    session_release(&session, queued);
    latch_open(&latch);
    join_thread(thread);
    cr_assert_eq(maker.status, EDDY_OK);
    cr_assert_not(eddy_vm_is_ready(session.vm, there));
    run_pieces(&session, 2);
    session_settle(&session);
    close_all(&session, 4, (eddy_storage_number[]){there, present, reader, maker.made});
}

/* Something always runs: a latch that opens when the other storage has failed. */
Test(starved, a_storage_made_by_hand_fails_when_nothing_comes_free) {
    hand_maker maker = {.bytes = 5 * MB};
    make_at_latch(8 * MB, 5 * MB, false, &maker);
    cr_assert_eq(maker.status, EDDY_OUT_OF_MEMORY);
    cr_assert_str_eq(maker.error.op, "from_data");
    cr_assert(strstr(maker.error.message, "from_data of 5242880 bytes"), "%s", maker.error.message);
}

static void make_in_callback(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)data;
    (void)bytes;
    (void)error;
    make_by_hand(context);
}

/* A latch is held by a kernel meanwhile: who waited for it would wait for ever. */
Test(starved, a_storage_made_in_a_callback_waits_for_nothing) {
    vm_session session = open_workers(8 * MB);
    eddy_storage_number held = submit(&session, 5 * MB, 1, 0, NULL),
                        small = submit(&session, CELLS * 8, 2, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &held);
    latch_await(&latch, 1);
    hand_maker maker = {.vm = session.vm, .bytes = 5 * MB};
    cr_assert_eq(eddy_vm_access(session.vm, small, false, make_in_callback, &maker, test_origin),
                 EDDY_OK);
    cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
    while (!eddy_load_acquire(&maker.is_done))
        sched_yield();
    cr_assert_eq(maker.status, EDDY_OUT_OF_MEMORY);
    latch_open(&latch);
    close_all(&session, 3, (eddy_storage_number[]){held, small, reader});
}
