/* Instructions for which there is no memory (PROTOCOL.md section 12). A kernel at a latch holds what is to come free. */
#include "session.h"

#define MB ((int64_t)1 << 20)

static eddy_storage_number submit(vm_session *session, int64_t bytes, int64_t seed, int input_count,
                                  const eddy_storage_number *inputs) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = bytes};
    cr_assert_eq(session_call(session, &synthetic_op, seed, false, input_count, inputs, 1, &target), EDDY_OK);
    return target.storage;
}

static vm_session open_workers(int64_t limit) {
    vm_session session = session_open((eddy_runtime_options){.threads = 3, .worker_path = true});
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
        eddy_storage_number given = submit(&session, 5 * MB, 1, 0, NULL), kept = submit(&session, 5 * MB, 2, 0, NULL);
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
        latch_open(&latch);
        cr_assert_eq(session_read(&session, large), value_of(5, 0), "small first: %d", small_first);
        cr_assert_eq(session_read(&session, small), value_from(4, value_of(1, 0)));
        close_all(&session, 4, (eddy_storage_number[]){kept, reader, small, large});
    }
}

/* The oldest fails, and what its successors gave up is enough for the next. */
Test(starved, the_oldest_fails_first_and_its_successors_give_up_what_they_hold) {
    vm_session session = open_workers(12 * MB);
    eddy_storage_number given = submit(&session, 5 * MB, 1, 0, NULL), kept = submit(&session, 5 * MB, 2, 0, NULL);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number holder = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    eddy_storage_number oldest = submit(&session, 6 * MB, 3, 0, NULL);
    eddy_storage_number successor = submit(&session, CELLS * 8, 4, 2, (eddy_storage_number[]){oldest, given});
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
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 5 * MB};
        eddy_vm_call call = {.descriptor = &name_op,
                             .operands = &target,
                             .operand_count = 1,
                             .cost_ps = COST_WORKER,
                             .place = EDDY_PLACE_WORKER};
        cr_assert_eq(eddy_vm_submit(session.vm, &call), EDDY_OK);
        if (fits)
            session_release(&session, passing);
        latch_open(&latch);
        char name[16] = "";
        eddy_status status = eddy_vm_read_small(session.vm, target.storage, 0, sizeof(name), name, &forever);
        taken_error();
        cr_assert_eq(status, fits ? EDDY_OK : EDDY_OUT_OF_MEMORY);
        cr_assert_eq(strncmp(name, "eddy-worker", 11) == 0, fits, "%s", name);
        if (!fits)
            session_release(&session, passing);
        close_all(&session, 2, (eddy_storage_number[]){reader, target.storage});
    }
}
