#include "session.h"
#include <base/float_environment.h>
#include <errno.h>
#include <fenv.h>
#include <time.h>
#include <vm/price.h>

static const eddy_runtime_options paths[] = {{.threads = 2},
                                             {.threads = 2, .uses_full_path = true},
                                             {.threads = 3, .uses_worker_path = true},
                                             {.uses_one_thread = true}};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

/* What ran where after one call of each of the session's costs. */
static eddy_vm_counters run_each_cost(vm_session *session) {
    static const int64_t costs[3] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
    for (int i = 0; i < 3; i++) {
        session->cost_ps = costs[i];
        eddy_storage_number a = session_make(session, i);
        cr_assert_eq(session_read(session, a), value_of(i, 0));
        session_release(session, a);
        session_settle(session);
    }
    return eddy_vm_counters_read(session->vm);
}

Test(execute, the_cost_decides_the_place) {
    vm_session session = session_open_threads(2);
    eddy_vm_counters counters = run_each_cost(&session);
    cr_assert_eq(counters.caller_run, 2);
    cr_assert_eq(counters.scheduler_run, 0);
    cr_assert_eq(counters.worker_run, 1);
    cr_assert_eq(counters.wakes, 0, "the scheduler thread sleeps on");
    session_close(&session);
}

Test(execute, on_the_full_path_nothing_runs_on_the_caller) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    eddy_vm_counters counters = run_each_cost(&session);
    cr_assert_eq(counters.caller_run + counters.scheduler_run, 2,
                 "a thread that waits may take the scheduler's part");
    cr_assert_eq(counters.worker_run, 1);
    session_close(&session);
}

/* ---- permits ---- */

typedef struct crowd {
    vm_session session;
    int64_t cost_ps;
} crowd;

static _Atomic int inside, most_inside;

static void count_inside(const eddy_vm_run *run) {
    int now = eddy_add_relaxed(&inside, 1) + 1, most = eddy_load_relaxed(&most_inside);
    while (now > most && !eddy_cas_relaxed(&most_inside, &most, now)) {
    }
    synthetic_run(run);
    eddy_sub_relaxed(&inside, 1);
}

static const eddy_vm_descriptor crowded_op = {
    .run = count_inside, .name = synthetic_name, .describe = synthetic_describe};

static void *issue_and_wait(void *context) {
    crowd *c = context;
    for (int i = 0; i < 200; i++) {
        eddy_vm_operand target = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 64};
        synthetic_arguments arguments = {.seed = i, .accesses = 1, .sleep_ns = 20000};
        eddy_vm_call call = {
            .instruction = {.descriptor = &crowded_op, .arguments = &arguments, .operand_count = 1},
            .argument_bytes = sizeof(arguments),
            .operands = &target,
            .cost_ps = i % 2 ? c->cost_ps : COST_WORKER};
        cr_assert_eq(synthetic_submit(c->session.vm, &call), EDDY_OK);
        if (i % 5 == 0)
            cr_assert_eq(eddy_vm_wait_storage(c->session.vm, target.storage, &forever), EDDY_OK);
        session_release(&c->session, target.storage);
    }
    return NULL;
}

/* Issuers, waiters and workers together: whoever runs a kernel that is worth microseconds counts. */
Test(execute, there_are_never_more_threads_in_kernels_than_asked_for) {
    vm_session session = session_open_threads(2);
    crowd c = {session, INT64_C(10000000)};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        start_thread(&threads[i], issue_and_wait, &c);
    for (int i = 0; i < 4; i++)
        join_thread(threads[i]);
    cr_assert_leq(eddy_load_relaxed(&most_inside), 2);
    session_close(&session);
}

/* ---- who runs a dear call ---- */

/* Dear, and no more than an issuer runs itself. */
static int64_t dear_cost_ps(void) {
    return eddy_team_hand_over_ns() * 4 * 1000;
}

static pthread_t ran_on;

static void note_thread(const eddy_vm_run *run) {
    ran_on = pthread_self();
    synthetic_run(run);
}

static const eddy_vm_descriptor noting_op = {
    .run = note_thread, .name = synthetic_name, .describe = synthetic_describe};

/* Whether its issuer ran the call. */
static bool runs_itself(vm_session *session, int64_t seed) {
    session->cost_ps = dear_cost_ps();
    eddy_vm_operand target = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = CELLS * 8};
    cr_assert_eq(session_call(session, &noting_op, seed, false, 0, NULL, 1, &target), EDDY_OK);
    cr_assert_eq(session_read(session, target.storage), value_of(seed, 0));
    session_release(session, target.storage);
    return pthread_equal(ran_on, pthread_self());
}

Test(execute, an_issuer_that_waits_for_each_result_runs_dear_calls_itself) {
    vm_session session = session_open_threads(2);
    int by_itself = 0;
    for (int i = 0; i < 100; i++)
        by_itself += runs_itself(&session, i);
    /* Where the machine took the processor away between a call and its read, that looks like work of its own for a while. */
    cr_assert_gt(by_itself, 50);
    session_close(&session);
}

/* Twice what a hand-over is ever thought to cost, and more than was ever estimated for a call here. */
static void work_of_its_own(void) {
    struct timespec least = {0, 20000000};
    nanosleep(&least, NULL);
}

/* The call stays until the issuer, which has come back meanwhile, lets it go. */
Test(execute, an_issuer_with_work_of_its_own_leaves_dear_calls_to_others) {
    vm_session session = session_open_threads(2);
    for (int i = 0; i < 20; i++) {
        session.cost_ps = dear_cost_ps();
        session_release(&session, session_make(&session, i));
        work_of_its_own();
    }
    session.cost_ps = dear_cost_ps();
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_open(&latch);
    session_release(&session, held);
    session_close(&session);
}

/* A call known to gain nothing by helpers. */
static void know_as_whole(const char *op, int64_t cost_ps) {
    eddy_price *price =
        eddy_price_find(op, eddy_record_cost_class_ns(eddy_record_cost_class(cost_ps)));
    for (int i = 0; i < 50; i++)
        eddy_price_note(price, eddy_price_asks_helpers(price), INT64_C(1000000000));
}

typedef struct beside {
    vm_session session;
    vm_latch latch;
    eddy_storage_number held;
} beside;

/* More than what whoever has the role runs beside other issuers, less than alone. */
#define COST_SHARED INT64_C(10000000)

static void *issue_and_stay(void *context) {
    beside *b = context;
    b->session.cost_ps = COST_SHARED;
    session_release(&b->session, session_make(&b->session, 1));
    b->held = session_latch(&b->session, &b->latch, 0, NULL);
    return NULL;
}

/* The other one is inside its kernel all the while. */
Test(execute, two_issuers_run_their_calls_beside_each_other) {
    beside b = {.session = session_open_threads(2)};
    vm_session session = b.session;
    session.cost_ps = COST_SHARED;
    session_release(&session, session_make(&session, 0));
    pthread_t other;
    start_thread(&other, issue_and_stay, &b);
    latch_await(&b.latch, 1);
    for (int i = 0; i < 10; i++) {
        eddy_storage_number a = session_make(&session, i);
        cr_assert_eq(session_read(&session, a), value_of(i, 0));
        session_release(&session, a);
    }
    latch_open(&b.latch);
    join_thread(other);
    session_release(&session, b.held);
    session_close(&session);
}

/* So is this one: others can be run beside it. */
Test(execute, a_call_that_cannot_be_cut_goes_to_another_thread) {
    vm_session session = session_open_threads(2);
    session.cost_ps = dear_cost_ps();
    know_as_whole("latch", session.cost_ps);
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    latch_open(&latch);
    session_release(&session, held);
    session_close(&session);
}

/* ---- plain calls ---- */

Test(execute, a_plain_call_comes_to_what_any_other_does) {
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        vm_session session = session_open_threads(2);
        eddy_storage_number bad = session_make_failing(&session, 1),
                            good = session_make(&session, 2);
        eddy_storage_number inputs[2] = {good, bad};
        eddy_vm_operand operands[3] = {
            {.storage = inputs[0]},
            {.storage = inputs[1]},
            {.access = EDDY_ACCESS_MUT, .is_new = true, .bytes = CELLS * 8}};
        synthetic_arguments arguments = {.seed = 3, .accesses = 1 << 4};
        eddy_vm_call call = {
            .instruction = {.descriptor = is_plain ? &synthetic_plain_op : &synthetic_op,
                            .arguments = &arguments,
                            .operand_count = 3},
            .argument_bytes = sizeof(arguments),
            .operands = operands,
            .is_plain = is_plain};
        cr_assert_eq(synthetic_submit(session.vm, &call), EDDY_OK);
        int64_t value;
        cr_assert_eq(eddy_vm_read_small(session.vm, operands[2].storage, 0, 8, &value, &forever),
                     EDDY_OUT_OF_RANGE);
        eddy_error error;
        cr_assert_eq(eddy_error_take(&error), EDDY_OUT_OF_RANGE);
        cr_assert_eq(error.sequence, 1); /* blamed on the call that failed */
        cr_assert_eq(eddy_vm_counters_read(session.vm).skipped, 1);
        session_release(&session, bad);
        session_release(&session, operands[2].storage);
        /* Both inputs the same, healthy one: it runs. */
        operands[1].storage = good;
        operands[2] =
            (eddy_vm_operand){.access = EDDY_ACCESS_MUT, .is_new = true, .bytes = CELLS * 8};
        cr_assert_eq(synthetic_submit(session.vm, &call), EDDY_OK);
        int64_t read = session_read(&session, operands[2].storage);
        int64_t first = value_of(2, 0);
        cr_assert_eq(read, synthetic_mix(synthetic_mix(synthetic_mix(3, first), first), 0));
        session_release(&session, good);
        session_release(&session, operands[2].storage);
        session_close(&session);
    }
}

/* ---- the environment of a kernel ---- */

static void set_errno_run(const eddy_vm_run *run) {
    errno = 4321;
    volatile double one = 1.0, tiny = 1e-30;
    *(int64_t *)run->data[0] = one + tiny == 1.0; /* to nearest */
    volatile double smallest = 5e-324;
    ((int64_t *)run->data[0])[1] = smallest * 1.0 > 0;
}

static const eddy_vm_descriptor set_errno_op = {.run = set_errno_run, .name = synthetic_name};

Test(execute, kernels_run_in_the_default_floating_point_environment_and_errno_is_kept) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040); /* flush-to-zero, denormals are zero */
#endif
        errno = 17;
        eddy_vm_operand operand = {
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = CELLS * 8};
        cr_assert_eq(session_submit(&session, &set_errno_op, &operand, 1, NULL, 0), EDDY_OK);
        int64_t cells[2] = {0};
        cr_assert_eq(eddy_vm_read_small(session.vm, operand.storage, 0, 16, cells, &forever),
                     EDDY_OK);
        cr_assert_eq(errno, 17, "path %zu", p);
        cr_assert_eq(fegetround(), FE_UPWARD);
        fesetenv(FE_DFL_ENV);
        cr_assert_eq(cells[0], 1);
        cr_assert_eq(cells[1], 1);
        session_release(&session, operand.storage);
        session_close(&session);
    }
}

/* ---- workspace ---- */

static size_t workspace_bytes(const eddy_vm_run *run) {
    return (size_t)((const synthetic_arguments *)run->instruction->arguments)->seed;
}

static void workspace_run(const eddy_vm_run *run) {
    const synthetic_arguments *arguments = run->instruction->arguments;
    memset(run->workspace, 7, (size_t)arguments->seed);
    *(int64_t *)run->data[0] =
        (uintptr_t)run->workspace % 64 == 0 ? ((char *)run->workspace)[arguments->seed - 1] : -1;
}

static const eddy_vm_descriptor workspace_op = {
    .run = workspace_run, .workspace = workspace_bytes, .name = synthetic_name};

Test(execute, a_workspace_is_aligned_and_given_back) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        for (int64_t bytes = 1; bytes < 3000000; bytes = bytes * 7 + 1) {
            synthetic_arguments arguments = {.seed = bytes};
            eddy_vm_operand operand = {
                .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
            cr_assert_eq(
                session_submit(&session, &workspace_op, &operand, 1, &arguments, sizeof(arguments)),
                EDDY_OK);
            cr_assert_eq(session_read(&session, operand.storage), 7);
            session_release(&session, operand.storage);
        }
        session_close(&session);
    }
}

/* ---- no memory ---- */

static eddy_vm_operand large(int64_t bytes) {
    return (eddy_vm_operand){
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = bytes};
}

#define LARGE (INT64_C(8) << 20)

Test(execute, no_memory_poisons_the_output_and_the_next_call_works) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        eddy_vm_operand target = large(LARGE);
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 1000);
        cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, target.storage, &forever), EDDY_OUT_OF_MEMORY,
                     "path %zu", p);
        cr_assert_eq(taken_error().status, EDDY_OUT_OF_MEMORY);
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 0);
        session_overwrite(&session, target.storage, 3);
        cr_assert_eq(session_read(&session, target.storage), value_of(3, 0),
                     "a covering write heals it");
        session_release(&session, target.storage);
        session_close(&session);
    }
}

Test(execute, what_waits_for_one_without_memory_is_skipped) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        eddy_vm_operand target = large(LARGE);
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 1000);
        cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
        eddy_storage_number next = session_make_from(&session, 2, 1, &target.storage);
        eddy_storage_number last = session_make_from(&session, 3, 1, &next);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, last, &forever), EDDY_OUT_OF_MEMORY);
        taken_error();
        eddy_memory_fail_at(EDDY_MEMORY_TENSOR, 0, 0);
        session_settle(&session);
        eddy_storage_number all[] = {target.storage, next, last};
        for (int i = 0; i < 3; i++)
            session_release(&session, all[i]);
        session_close(&session);
    }
}

/* What follows in the queue of an ordered stream has no edge to the one that got no memory: it must not run on nothing. */
Test(execute, no_memory_on_an_ordered_stream_reaches_what_follows_in_its_queue) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        eddy_vm_stream *stream;
        cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &stream), EDDY_OK);
        vm_latch latch = {0};
        eddy_storage_number first = 0;
        session.stream = stream;
        if (!paths[p].uses_one_thread) {
            session.cost_ps = COST_WORKER;
            first = session_latch(&session, &latch, 0, NULL);
            latch_await(&latch, 1);
        }
        eddy_vm_operand target = large(LARGE);
        eddy_memory_limit_set(LARGE / 2); /* there is memory for the small ones */
        cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
        eddy_storage_number next = session_make_from(&session, 2, 1, &target.storage);
        latch_open(&latch);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, next, &forever), EDDY_OUT_OF_MEMORY,
                     "path %zu", p);
        taken_error();
        eddy_memory_limit_set(0);
        session_settle(&session);
        if (first)
            session_release(&session, first);
        session_release(&session, target.storage);
        session_release(&session, next);
        eddy_vm_stream_release(stream);
        session_close(&session);
    }
}

/* The ladder: a release that is on its way frees what the next one needs. */
Test(execute, one_without_memory_waits_for_what_is_being_freed) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session.cost_ps = COST_WORKER;
    eddy_memory_limit_set(12 << 20);
    eddy_vm_operand first = large(LARGE);
    cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &first), EDDY_OK);
    session_settle(&session);
    vm_latch latch = {0};
    eddy_storage_number reader = session_latch(&session, &latch, 1, &first.storage);
    latch_await(&latch, 1);
    session_release(&session, first.storage); /* takes effect after the reader */
    eddy_vm_operand second = large(LARGE);
    cr_assert_eq(session_call(&session, &synthetic_op, 2, false, 0, NULL, 1, &second), EDDY_OK);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, second.storage, &at_once), EDDY_TIMED_OUT);
    taken_error();
    latch_open(&latch);
    cr_assert_eq(session_read(&session, second.storage), value_of(2, 0));
    session_release(&session, reader);
    session_release(&session, second.storage);
    session_close(&session);
    eddy_memory_limit_set(0);
}

/* ---- debug modes ---- */

static int64_t find_negative(const eddy_vm_run *run) {
    for (int64_t i = 0; i < run->instruction->operand_count; i++)
        if (((const synthetic_arguments *)run->instruction->arguments)->accesses >> 2 * i & 3 &&
            run->bytes[i] > 0 && ((const int64_t *)run->data[i])[0] < 0)
            return i;
    return -1;
}

static const eddy_vm_descriptor checked_op = {.run = synthetic_run,
                                              .name = synthetic_name,
                                              .explain = synthetic_explain,
                                              .check_finite = find_negative};

/* The synthetic op's finite values are those that are not negative. */
static int64_t seed_with_sign(bool is_negative) {
    int64_t seed = 1;
    while ((value_of(seed, 0) < 0) != is_negative)
        seed++;
    return seed;
}

Test(execute, a_check_for_finite_outputs_makes_an_error_only_where_it_is_on) {
    for (size_t p = 0; p < PATHS; p++)
        for (int is_on = 0; is_on < 2; is_on++) {
            eddy_runtime_options options = paths[p];
            options.checks_finite = is_on;
            vm_session session = session_open(options);
            eddy_vm_operand good = large(CELLS * 8), bad = large(CELLS * 8);
            cr_assert_eq(session_call(&session, &checked_op, seed_with_sign(false), false, 0, NULL,
                                      1, &good),
                         EDDY_OK);
            cr_assert_eq(
                session_call(&session, &checked_op, seed_with_sign(true), false, 0, NULL, 1, &bad),
                EDDY_OK);
            cr_assert_eq(eddy_vm_wait_storage(session.vm, good.storage, &forever), EDDY_OK);
            cr_assert_eq(eddy_vm_wait_storage(session.vm, bad.storage, &forever),
                         is_on ? EDDY_NOT_FINITE : EDDY_OK);
            taken_error();
            session_release(&session, good.storage);
            session_release(&session, bad.storage);
            session_close(&session);
        }
}

Test(execute, sync_each_op_waits_at_each_call_and_leaves_errors_to_the_reader) {
    for (size_t p = 0; p < PATHS; p++) {
        eddy_runtime_options options = paths[p];
        options.syncs_each_op = true;
        vm_session session = session_open(options);
        session.cost_ps = COST_WORKER;
        for (int i = 0; i < 50; i++) {
            eddy_storage_number a = session_make(&session, i);
            cr_assert(eddy_vm_is_ready(session.vm, a));
            session_release(&session, a);
        }
        eddy_storage_number bad = session_make_failing(&session, 7);
        cr_assert(eddy_vm_is_ready(session.vm, bad));
        cr_assert_eq(taken_error().status, EDDY_OK, "no error of the call");
        cr_assert_eq(eddy_vm_counters_read(session.vm).errors_seen, 0);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, bad, &at_once), EDDY_OUT_OF_RANGE);
        taken_error();
        session_release(&session, bad);
        session_close(&session);
    }
}

/* ---- shapes ---- */

static void count_two(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    const synthetic_arguments *arguments = run->instruction->arguments;
    for (int i = 0; i < 2; i++) {
        shapes[i] = (eddy_shape){2, {arguments->late_count + i, 1}};
        bytes[i] = (arguments->late_count + i) * 8;
    }
}

static const eddy_vm_descriptor two_late_op = {
    .run = synthetic_run, .count = count_two, .name = synthetic_name, .explain = synthetic_explain};

Test(execute, late_outputs_get_their_sizes_and_may_be_empty) {
    for (size_t p = 0; p < PATHS; p++)
        for (int64_t count = 0; count < 3; count++) {
            vm_session session = session_open(paths[p]);
            synthetic_arguments arguments = {
                .seed = 5, .late_count = count, .accesses = 1 | 1 << 2};
            eddy_vm_operand operands[2] = {
                {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true},
                {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true}};
            cr_assert_eq(
                session_submit(&session, &two_late_op, operands, 2, &arguments, sizeof(arguments)),
                EDDY_OK);
            for (int i = 0; i < 2; i++) {
                eddy_shape shape;
                cr_assert_eq(eddy_vm_late_shape(session.vm, operands[i].storage, &forever, &shape),
                             EDDY_OK);
                cr_assert_eq(shape.rank, 2);
                cr_assert_eq(shape.dims[0], count + i);
            }
            cr_assert_eq(eddy_vm_wait_storage(session.vm, operands[0].storage, &forever), EDDY_OK);
            cr_assert_eq(session_read(&session, operands[1].storage), value_of(5, 0));
            session_release(&session, operands[0].storage);
            session_release(&session, operands[1].storage);
            session_close(&session);
        }
}

static void count_many(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    for (int64_t i = 0; i < run->instruction->operand_count; i++) {
        shapes[i] = (eddy_shape){1, {i + 1}};
        bytes[i] = (i + 1) * 8;
    }
}

static void many_run(const eddy_vm_run *run) {
    for (int64_t i = 0; i < run->instruction->operand_count; i++)
        ((int64_t *)run->data[i])[run->bytes[i] / 8 - 1] = i;
}

static const eddy_vm_descriptor many_late_op = {
    .run = many_run, .count = count_many, .name = synthetic_name};

/* More than the operands that fit a record. */
Test(execute, there_may_be_many_late_outputs) {
    enum { MANY = 40 };
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    eddy_vm_operand operands[MANY];
    for (int i = 0; i < MANY; i++)
        operands[i] =
            (eddy_vm_operand){.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true};
    cr_assert_eq(session_submit(&session, &many_late_op, operands, MANY, NULL, 0), EDDY_OK);
    for (int64_t i = 0; i < MANY; i++) {
        int64_t last;
        cr_assert_eq(eddy_vm_read_small(session.vm, operands[i].storage, i * 8, 8, &last, &forever),
                     EDDY_OK);
        cr_assert_eq(last, i);
        session_release(&session, operands[i].storage);
    }
    session_close(&session);
}

Test(execute, an_empty_output_has_a_place_all_the_same) {
    for (size_t p = 0; p < PATHS; p++) {
        vm_session session = session_open(paths[p]);
        eddy_vm_operand target = large(0);
        cr_assert_eq(session_call(&session, &synthetic_op, 1, false, 0, NULL, 1, &target), EDDY_OK);
        eddy_storage_number next = session_make_from(&session, 2, 1, &target.storage);
        cr_assert_eq(session_read(&session, next), value_of(2, 0), "nothing to fold in");
        session_release(&session, target.storage);
        session_release(&session, next);
        session_close(&session);
    }
}
