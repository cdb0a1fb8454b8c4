/* The interleavings of vm/PROTOCOL.md section 13, each by its name; those with an end, a bound or a shortage in them stand in
 * test_hostile.c. */
#include "session.h"
#include <base/trace.h>
#include <vm/engine.h>

/* ---- two issuers and a hand-over between them ---- */

typedef struct hand_over {
    vm_session session;
    _Atomic eddy_storage_number shown; /* atomic: maker stores (release), user takes (acquire) */
    int64_t mismatches;
} hand_over;

#define HAND_OVERS 3000

static void *use_what_is_shown(void *context) {
    hand_over *shared = context;
    for (int i = 0; i < HAND_OVERS; i++) {
        eddy_storage_number a;
        while ((a = eddy_exchange_acq_rel(&shared->shown, 0u)) == 0)
            sched_yield();
        session_mix_in(&shared->session, a, i, 0, NULL);
        if (i % 3 == 0) {
            int64_t value;
            if (eddy_vm_read_small(shared->session.vm, a, 0, 8, &value, &forever) != EDDY_OK ||
                value != synthetic_mix(synthetic_mix(value_of(i, 0), 1), i))
                shared->mismatches++;
        }
        session_release(&shared->session, a);
    }
    return NULL;
}

Test(interleavings, two_issuers_hand_over) {
    static const eddy_runtime_options paths[] = {{.threads = 2},
                                                 {.threads = 2, .uses_full_path = true},
                                                 {.threads = 2, .uses_worker_path = true},
                                                 {.uses_one_thread = true}};
    for (int p = 0; p < 4; p++) {
        hand_over shared = {.session = session_open(paths[p])};
        static const int64_t costs[3] = {COST_CALLER, COST_SCHEDULER, COST_WORKER};
        vm_session maker = shared.session;
        pthread_t thread;
        start_thread(&thread, use_what_is_shown, &shared);
        for (int i = 0; i < HAND_OVERS; i++) {
            maker.cost_ps = costs[i % 3];
            eddy_storage_number a = session_make(&maker, i);
            session_mix_in(&maker, a, 1, 0, NULL);
            while (eddy_load_acquire(&shared.shown) != 0)
                sched_yield();
            eddy_store_release(&shared.shown, a);
        }
        join_thread(thread);
        cr_assert_eq(shared.mismatches, 0);
        session_close(&shared.session);
    }
}

/* ---- a release racing with a use ---- */

typedef struct release_race {
    vm_session session;
    eddy_storage_number storage;
    vm_latch start;
} release_race;

static void *release_when_started(void *context) {
    release_race *race = context;
    latch_pass(&race->start);
    session_release(&race->session, race->storage);
    return NULL;
}

/* The releaser has a reference of its own: the user's use came before its own release. Both hit the same storage while
 * the engine retires the use. */
Test(interleavings, release_races_with_use) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    for (int i = 0; i < 1500; i++) {
        release_race race = {.session = session, .storage = session_make(&session, i)};
        pthread_t thread;
        start_thread(&thread, release_when_started, &race);
        latch_await(&race.start, 1);
        session.cost_ps = i % 2 ? COST_SCHEDULER : COST_WORKER;
        eddy_storage_number b = session_make_from(&session, 7, 1, &race.storage);
        latch_open(&race.start);
        /* Churn: a storage freed too early would be written by these. */
        for (int k = 0; k < 4; k++)
            session_release(&session, session_make(&session, k));
        cr_assert_eq(session_read(&session, b), value_from(7, value_of(i, 0)), "round %d", i);
        join_thread(thread);
        session_release(&session, b);
    }
    session_close(&session);
}

/* ---- an in-place write from another thread while the caller runs an op itself ---- */

static void *write_in_place(void *context) {
    release_race *race = context;
    latch_pass(&race->start);
    session_mix_in(&race->session, race->storage, 9, 0, NULL);
    return NULL;
}

static vm_latch reading_latch;

static void read_slowly_run(const eddy_vm_run *run) {
    const int64_t *cells = run->data[0];
    int64_t first = cells[0];
    latch_pass(&reading_latch);
    /* The writer has been let go; it may not have touched the cells. */
    for (int i = 0; i < 1000; i++)
        eddy_atomic_pause();
    ((int64_t *)run->data[1])[0] = first == cells[0] && cells[CELLS - 1] == value_of(5, CELLS - 1);
}

static const eddy_vm_descriptor read_slowly_op = {.run = read_slowly_run, .name = synthetic_name};

static void *let_both_go(void *context) {
    release_race *race = context;
    latch_await(&reading_latch, 1);
    latch_open(&race->start);
    /* The writer's call is under way: it sleeps on the submission lock, or will. */
    while (eddy_load_relaxed(&race->session.vm->submission.word) != 2)
        sched_yield();
    latch_open(&reading_latch);
    return NULL;
}

Test(interleavings, in_place_from_another_thread_while_caller_runs) {
    vm_session session = session_open_threads(2);
    release_race race = {.session = session, .storage = session_make(&session, 5)};
    pthread_t writer, conductor;
    start_thread(&writer, write_in_place, &race);
    start_thread(&conductor, let_both_go, &race);
    latch_await(&race.start, 1);
    eddy_vm_operand operands[2] = {
        {.storage = race.storage},
        {.access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8}};
    cr_assert_eq(session_submit(&session, &read_slowly_op, operands, 2, NULL, 0), EDDY_OK);
    join_thread(writer);
    join_thread(conductor);
    cr_assert_eq(eddy_vm_counters_read(session.vm).caller_run, 3, "all three at their calls");
    cr_assert_eq(session_read(&session, operands[1].storage), 1);
    cr_assert_eq(session_read(&session, race.storage), synthetic_mix(value_of(5, 0), 9));
    session_release(&session, race.storage);
    session_release(&session, operands[1].storage);
    session_close(&session);
}

/* ---- a 1 s op beside a thousand cheap ones ---- */

Test(interleavings, slow_op_beside_a_thousand_cheap) {
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    session.cost_ps = INT64_C(1000000000000);
    eddy_storage_number slow = session_latch(&session, &latch, 0, NULL);
    latch_await(&latch, 1);
    session.cost_ps = COST_CALLER;
    eddy_storage_number a = session_make(&session, 0);
    int64_t expected = value_of(0, 0);
    for (int i = 0; i < 1000; i++) {
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
        eddy_storage_number b = session_make(&session, i);
        session_release(&session, b);
    }
    cr_assert_eq(session_read(&session, a), expected, "none of them waited for it");
    cr_assert_eq(eddy_vm_counters_read(session.vm).caller_run, 2001, "readiness is per storage");
    cr_assert_not(eddy_vm_is_ready(session.vm, slow));
    latch_open(&latch);
    session_settle(&session);
    session_release(&session, a);
    session_release(&session, slow);
    session_close(&session);
}

/* ---- 40,000 ops behind a lend ---- */

Test(interleavings, forty_thousand_behind_a_lend) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    int64_t expected = 4711;
    for (int i = 0; i < 40000; i++) {
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    cr_assert_eq(*(int64_t *)data, value_of(1, 0));
    *(int64_t *)data = 4711;
    eddy_vm_lend_end(session.vm, lend, false);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_close(&session);
}

/* ---- a deleter that releases ---- */

typedef struct chain_link {
    vm_session *session;
    eddy_storage_number next;
    int64_t cells[CELLS];
} chain_link;

static _Atomic int chain_links_deleted;

static void release_next(void *context) {
    chain_link *link = context;
    eddy_add_relaxed(&chain_links_deleted, 1);
    if (link->next)
        session_release(link->session, link->next);
}

Test(interleavings, deleter_that_releases) {
    for (int mode = 0; mode < 3; mode++) {
        enum { LINKS = 300 };
        static chain_link links[LINKS];
        vm_session session = session_open((eddy_runtime_options){
            .threads = 2, .uses_worker_path = mode == 1, .uses_one_thread = mode == 2});
        eddy_store_relaxed(&chain_links_deleted, 0);
        eddy_storage_number next = 0;
        for (int i = 0; i < LINKS; i++) {
            links[i] = (chain_link){.session = &session, .next = next};
            cr_assert_eq(eddy_vm_storage_borrow(session.vm, links[i].cells, sizeof(links[i].cells),
                                                release_next, &links[i], &next),
                         EDDY_OK);
        }
        /* In use when it is released, so that it takes the long way. */
        eddy_storage_number user = session_make_from(&session, 1, 1, &next);
        session_release(&session, next);
        session_release(&session, user);
        while (eddy_load_relaxed(&chain_links_deleted) < LINKS) {
            cr_assert_eq(eddy_vm_sync_service(session.vm, &forever), EDDY_OK);
            sched_yield();
        }
        session_close(&session);
    }
}

/* ---- a callback that issues ops, and is refused a wait ---- */

typedef struct issuing_callback {
    vm_session *session;
    eddy_storage_number target;
    eddy_status waited, synced, service_synced;
    int issued;
} issuing_callback;

static void issue_and_wait(void *context, void *data, int64_t bytes, const eddy_error *error) {
    issuing_callback *callback = context;
    (void)data, (void)bytes, (void)error;
    vm_session *session = callback->session;
    /* Twice the high mark: the service thread is never held back. */
    for (int i = 0; i < 40; i++) {
        session_mix_in(session, callback->target, i, 0, NULL);
        callback->issued++;
    }
    callback->waited = eddy_vm_wait_storage(session->vm, callback->target, &forever);
    callback->synced = eddy_vm_sync(session->vm, &forever, NULL);
    callback->service_synced = eddy_vm_sync_service(session->vm, &forever);
    eddy_error_take(NULL);
}

Test(interleavings, callback_issues_and_is_refused_a_wait) {
    vm_session session = session_open(
        (eddy_runtime_options){.threads = 2, .uses_worker_path = true, .in_flight_high = 20});
    eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
    session_settle(&session);
    /* What the callback issues waits behind the callback itself, so its waits cannot be over. */
    issuing_callback callback = {.session = &session, .target = a};
    cr_assert_eq(eddy_vm_access(session.vm, a, true, issue_and_wait, &callback, test_origin),
                 EDDY_OK);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_OK);
    cr_assert_eq(callback.issued, 40);
    cr_assert_eq(callback.waited, EDDY_WOULD_DEADLOCK);
    cr_assert_eq(callback.synced, EDDY_WOULD_DEADLOCK);
    cr_assert_eq(callback.service_synced, EDDY_WOULD_DEADLOCK);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 40; i++)
        expected = synthetic_mix(expected, i);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

/* ---- a lender that waits behind its own lend ---- */

typedef struct other_lender {
    vm_session *session;
    eddy_storage_number storage;
    eddy_status status;
} other_lender;

static void *wait_behind_it(void *context) {
    other_lender *waiter = context;
    waiter->status = eddy_vm_wait_storage(waiter->session->vm, waiter->storage, &forever);
    return NULL;
}

Test(interleavings, lender_waits_behind_own_lend) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    /* Through a long chain. */
    eddy_storage_number chain[200];
    for (int i = 0; i < 200; i++)
        chain[i] = session_make_from(&session, i, 1, i == 0 ? &a : &chain[i - 1]);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, chain[199], &forever), EDDY_WOULD_DEADLOCK);
    cr_assert_eq(eddy_vm_sync(session.vm, &forever, NULL), EDDY_WOULD_DEADLOCK);
    /* Another thread may wait there: the lender will end it. */
    other_lender other = {.session = &session, .storage = chain[199], .status = EDDY_INTERNAL};
    pthread_t thread;
    uint64_t submitted = eddy_vm_counters_read(session.vm).submitted;
    start_thread(&thread, wait_behind_it, &other);
    while (eddy_vm_counters_read(session.vm).submitted == submitted)
        sched_yield();
    eddy_vm_lend_end(session.vm, lend, false);
    join_thread(thread);
    cr_assert_eq(other.status, EDDY_OK);
    cr_assert_eq(taken_error().status, EDDY_WOULD_DEADLOCK);
    session_release(&session, a);
    for (int i = 0; i < 200; i++)
        session_release(&session, chain[i]);
    session_close(&session);
}

/* ---- a release for which the lock was busy, and a sync behind it ---- */

typedef struct watched_sync {
    vm_session session;
    vm_latch released;
    uint64_t last; /* sequence number of what the engine may take before it stops */
    _Atomic bool is_deleted, has_looked;
    bool was_deleted; /* when the waits had returned */
} watched_sync;

static _Thread_local bool is_syncing;

/* Waits for everything, and looks whether the deleter has run by then. */
static void sync_and_look(watched_sync *shared) {
    is_syncing = true;
    cr_assert_eq(eddy_vm_sync(shared->session.vm, &forever, NULL), EDDY_OK);
    cr_assert_eq(eddy_vm_sync_service(shared->session.vm, &forever), EDDY_OK);
    shared->was_deleted = eddy_load_acquire(&shared->is_deleted);
    eddy_store_release(&shared->has_looked, true);
}

typedef struct busy_item {
    vm_session *session;
    eddy_storage_number storage;
} busy_item;

static void *release_one(void *context) {
    const busy_item *item = context;
    session_release(item->session, item->storage);
    return NULL;
}

static void note_deleted(void *context) {
    eddy_store_release(&((watched_sync *)context)->is_deleted, true);
}

static void *release_and_sync(void *context) {
    static int64_t cells[CELLS];
    watched_sync *shared = context;
    eddy_storage_number a;
    cr_assert_eq(
        eddy_vm_storage_borrow(shared->session.vm, cells, sizeof(cells), note_deleted, shared, &a),
        EDDY_OK);
    eddy_vm_lock(shared->session.vm);
    pthread_t thread;
    busy_item item = {&shared->session, a};
    start_thread(&thread, release_one, &item);
    join_thread(thread);
    eddy_vm_unlock(shared->session.vm);
    latch_pass(&shared->released);
    sync_and_look(shared);
    return NULL;
}

/* The engine stops behind the barrier, but where the thread that waits for that plays its role. */
static void await_look_behind(void *context, const eddy_trace_event *event) {
    watched_sync *shared = context;
    if (event->kind != EDDY_TRACE_ENDS || event->sequence <= shared->last || is_syncing)
        return;
    while (!eddy_load_acquire(&shared->has_looked))
        sched_yield();
}

static eddy_status listen_behind(watched_sync *shared, uint32_t *place) {
    eddy_trace_listener listener = {await_look_behind, shared, 1u << EDDY_TRACE_SCHEDULE};
    return eddy_trace_add(&listener, place);
}

/* The sync covers the release, though the engine has taken nothing but the sync when that returns. */
Test(interleavings, sync_after_a_release_without_the_lock) {
    watched_sync shared = {.session = session_open_threads(2)};
    pthread_t thread;
    while (!eddy_engine_request(shared.session.vm))
        sched_yield();
    start_thread(&thread, release_and_sync, &shared);
    latch_await(&shared.released, 1);
    uint64_t submitted = eddy_vm_counters_read(shared.session.vm).submitted;
    latch_open(&shared.released);
    while (eddy_vm_counters_read(shared.session.vm).submitted == submitted)
        sched_yield();
    uint32_t place;
    cr_assert_eq(listen_behind(&shared, &place), EDDY_OK);
    eddy_engine_turn turn = {.budget_ns = 1, .is_caller = true};
    eddy_engine_work(shared.session.vm, &turn);
    join_thread(thread);
    eddy_trace_remove(place);
    cr_assert(shared.was_deleted);
    session_close(&shared.session);
}

/* ---- releases that find the ring full, and a sync behind them ---- */

static void *sync_behind(void *context) {
    sync_and_look(context);
    return NULL;
}

/* Calls that read `a` until the ring has no room; how many. Their results stand in `made`. */
static int fill_ring(vm_session *session, eddy_storage_number a, eddy_storage_number *made) {
    int count = 0;
    for (; eddy_ring_has_room(&session->vm->ring, EDDY_RECORD_LINES_MAX + 2); count++)
        made[count] = session_make_from(session, count, 1, &a);
    return count;
}

Test(interleavings, sync_after_releases_into_a_full_ring) {
    static int64_t cells[CELLS];
    static eddy_storage_number made[EDDY_RING_LINES];
    watched_sync full = {
        .session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true})};
    eddy_vm *vm = full.session.vm;
    eddy_storage_number a;
    cr_assert_eq(eddy_vm_storage_borrow(vm, cells, sizeof(cells), note_deleted, &full, &a),
                 EDDY_OK);
    while (!eddy_engine_request(vm))
        sched_yield();
    int count = fill_ring(&full.session, a, made);
    full.last = vm->sequence;
    for (int i = 0; i < count; i++)
        session_release(&full.session, i == count / 2 ? a : made[i]);
    session_release(&full.session, made[count / 2]);
    cr_assert_lt(vm->pending_count, EDDY_PENDING_RELEASES);
    uint32_t place;
    cr_assert_eq(listen_behind(&full, &place), EDDY_OK);
    pthread_t thread;
    start_thread(&thread, sync_behind, &full);
    eddy_engine_turn turn = {.budget_ns = INT64_MAX};
    eddy_engine_work(vm, &turn);
    join_thread(thread);
    eddy_trace_remove(place);
    cr_assert(full.was_deleted);
    session_close(&full.session);
}

/* ---- a thread that makes tensors and sleeps while another releases them ---- */

typedef struct sleeping_maker {
    vm_session session;
    vm_latch asleep;
    eddy_storage_number made[2000];
} sleeping_maker;

static void *make_and_sleep(void *context) {
    sleeping_maker *maker = context;
    for (int i = 0; i < 2000; i++)
        maker->made[i] = session_make(&maker->session, i);
    latch_pass(&maker->asleep);
    return NULL;
}

/* The maker issues nothing more: what is released by another thread is freed, and its numbers are used again. */
Test(interleavings, maker_sleeps_while_another_releases) {
    for (int mode = 0; mode < 2; mode++) {
        static sleeping_maker maker;
        maker = (sleeping_maker){.session = session_open((eddy_runtime_options){
                                     .threads = 2, .uses_worker_path = mode == 1})};
        pthread_t thread;
        start_thread(&thread, make_and_sleep, &maker);
        latch_await(&maker.asleep, 1);
        eddy_storage_number highest = 0;
        for (int i = 0; i < 2000; i++) {
            highest = maker.made[i] > highest ? maker.made[i] : highest;
            session_release(&maker.session, maker.made[i]);
        }
        session_settle(&maker.session);
        /* A few hundred are on their way back at any time: the table may grow by one chunk; without reuse it would by four. */
        eddy_storage_number most = (highest / EDDY_STORAGE_CHUNK + 2) * EDDY_STORAGE_CHUNK;
        for (int i = 0; i < 4000; i++) {
            eddy_storage_number a = session_make(&maker.session, i);
            cr_assert_lt(a, most, "numbers come back");
            session_release(&maker.session, a);
            if (i % 200 == 199)
                session_settle(&maker.session);
        }
        latch_open(&maker.asleep);
        join_thread(thread);
        session_close(&maker.session);
    }
}

/* ---- whose lend, whose mark ---- */

typedef struct reading_lender {
    vm_session *session;
    eddy_storage_number storage;
    vm_latch latch;
    uint64_t submitted;
} reading_lender;

static void *lend_until_another_waits(void *context) {
    reading_lender *lender = context;
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(
        eddy_vm_lend_begin(lender->session->vm, lender->storage, false, &forever, &data, &lend),
        EDDY_OK);
    latch_pass(&lender->latch);
    while (eddy_vm_counters_read(lender->session->vm).submitted == lender->submitted)
        sched_yield();
    eddy_vm_lend_end(lender->session->vm, lend, false);
    return NULL;
}

/* Two threads are lent the same: the one that has ended its own may wait for the other. */
Test(interleavings, unmap_other) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    reading_lender other = {.session = &session, .storage = a};
    void *data;
    eddy_vm_lend *own;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, false, &forever, &data, &own), EDDY_OK);
    pthread_t thread;
    start_thread(&thread, lend_until_another_waits, &other);
    latch_await(&other.latch, 1);
    session_mix_in(&session, a, 2, 0, NULL);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_WOULD_DEADLOCK);
    taken_error();
    eddy_vm_lend_end(session.vm, own, false);
    other.submitted = eddy_vm_counters_read(session.vm).submitted;
    latch_open(&other.latch);
    cr_assert_eq(session_read(&session, a), synthetic_mix(value_of(1, 0), 2));
    join_thread(thread);
    session_release(&session, a);
    session_close(&session);
}

/* Both the wait for a shape and the lend give up while the kernel that finds it runs, and come to it once it has. */
Test(interleavings, map_late) {
    static const eddy_vm_wait impatient = {1, {"test", NULL}};
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    vm_latch latch = {0};
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true};
    cr_assert_eq(session_call(&session, &synthetic_late_op, 3, false, 1, &held, 1, &target),
                 EDDY_OK);
    eddy_shape shape;
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_late_shape(session.vm, target.storage, &impatient, &shape),
                 EDDY_TIMED_OUT);
    cr_assert_eq(eddy_vm_lend_begin(session.vm, target.storage, true, &impatient, &data, &lend),
                 EDDY_TIMED_OUT);
    taken_error();
    latch_open(&latch);
    cr_assert_eq(eddy_vm_late_shape(session.vm, target.storage, &forever, &shape), EDDY_OK);
    cr_assert(shape.rank == 1 && shape.dims[0] == CELLS);
    cr_assert_eq(eddy_vm_lend_begin(session.vm, target.storage, true, &forever, &data, &lend),
                 EDDY_OK);
    eddy_vm_lend_end(session.vm, lend, false);
    session_release(&session, held);
    session_release(&session, target.storage);
    session_close(&session);
}

/* What a refused wait wanted is nothing to the thread's next wait, though both use the same waiter. */
Test(interleavings, stale_wanted) {
    eddy_thread_fail_at(2, 1); /* two workers, no third: a waiter may run a kernel */
    vm_session session = session_open_threads(3);
    session.cost_ps = COST_WORKER;
    vm_latch busy = {0}, foreign = {0};
    eddy_storage_number held[2] = {session_latch(&session, &busy, 0, NULL),
                                   session_latch(&session, &busy, 0, NULL)};
    latch_await(&busy, 2); /* every worker is inside */
    eddy_storage_number queued = session_latch(&session, &foreign, 0, NULL);
    session.cost_ps = COST_CALLER;
    eddy_storage_number lent = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, lent, true, &forever, &data, &lend), EDDY_OK);
    eddy_storage_number behind =
        session_make_from(&session, 2, 2, (eddy_storage_number[]){queued, lent});
    cr_assert_eq(eddy_vm_wait_storage(session.vm, behind, &forever), EDDY_WOULD_DEADLOCK);
    taken_error();
    session.cost_ps = COST_WORKER;
    eddy_storage_number wanted = session_make(&session, 3);
    /* Were it to run the kernel that it wanted before, it would stay at the latch. */
    cr_assert_eq(session_read(&session, wanted), value_of(3, 0));
    cr_assert_eq(eddy_load_acquire(&foreign.entered), 0);
    eddy_vm_lend_end(session.vm, lend, false);
    latch_open(&foreign);
    latch_open(&busy);
    eddy_storage_number all[] = {held[0], held[1], queued, lent, behind, wanted};
    for (int i = 0; i < 6; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* More nodes stand between the wait and the lend than a search visits where none is open. */
Test(interleavings, trace_while_a_lend_is_open) {
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1), free_chain = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    vm_latch latch = {0};
    session.cost_ps = COST_WORKER;
    eddy_storage_number held = session_latch(&session, &latch, 0, NULL);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 2000; i++) {
        session_mix_in(&session, a, i, 0, NULL);
        session_mix_in(&session, free_chain, i, i == 0, &held);
    }
    cr_assert_eq(eddy_vm_wait_storage(session.vm, a, &forever), EDDY_WOULD_DEADLOCK);
    taken_error();
    latch_open(&latch);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, free_chain, &forever), EDDY_OK,
                 "no lend is in its way");
    eddy_vm_lend_end(session.vm, lend, false);
    for (int i = 0; i < 2000; i++)
        expected = synthetic_mix(expected, i);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_release(&session, held);
    session_release(&session, free_chain);
    session_close(&session);
}

/* ---- a long list of ready instructions ---- */

typedef struct ready_list {
    eddy_vm *vm;
    pthread_t engine;
    uint64_t published_before; /* the first of them ran */
    uint64_t most_unpublished;
    int64_t run_by_engine, run;
} ready_list;

typedef struct ready_arguments {
    ready_list *list;
} ready_arguments;

static void count_ready_run(const eddy_vm_run *run) {
    ready_list *list = ((const ready_arguments *)run->instruction->arguments)->list;
    uint64_t published = eddy_load_acquire(&list->vm->retired);
    if (list->run++ == 0)
        list->published_before = published;
    if (pthread_equal(pthread_self(), list->engine))
        list->run_by_engine++;
    uint64_t unpublished = (uint64_t)list->run - (published - list->published_before);
    if (unpublished > list->most_unpublished)
        list->most_unpublished = unpublished;
}

static const eddy_vm_descriptor count_ready_op = {.run = count_ready_run, .name = synthetic_name};

/* A lend ends, and thousands are ready: who works them tells how far it is, and leaves them to others once its time is over. */
Test(interleavings, run_ready) {
    enum { COUNT = 3000 };
    vm_session session = session_open_threads(2);
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    ready_list list = {.vm = session.vm, .engine = pthread_self()};
    ready_arguments arguments = {&list};
    for (int i = 0; i < COUNT; i++) {
        eddy_vm_operand operand = {.storage = a, .access = EDDY_ACCESS_MUT};
        cr_assert_eq(
            session_submit(&session, &count_ready_op, &operand, 1, &arguments, sizeof(arguments)),
            EDDY_OK);
    }
    while (!eddy_engine_request(session.vm))
        sched_yield();
    eddy_vm_lend_end(session.vm, lend, false);
    eddy_engine_turn turn = {.budget_ns = 1, .is_caller = true};
    eddy_engine_work(session.vm, &turn);
    int64_t run_in_turn = list.run_by_engine;
    session_settle(&session);
    cr_assert_eq(list.run, COUNT);
    cr_assert(run_in_turn > 0 && run_in_turn <= 200, "%d", (int)run_in_turn);
    cr_assert_leq(list.most_unpublished, 200);
    session_release(&session, a);
    session_close(&session);
}
