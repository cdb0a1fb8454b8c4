/* Calls that are left to a device's launcher (vm/attend.h). The device is the far one without its `run`: the ops here run on the launcher, and launch nothing. */
#include "session.h"
#include <sched.h>
#include <vm/device.h>
#include <vm/engine.h>

static eddy_sleep_word launched; /* atomic: how many have run there */

/* The latch: NULL, or one that it passes. */
static void run_noted(const eddy_vm_run *run) {
    vm_latch *latch = ((const latch_arguments *)run->instruction->arguments)->latch;
    if (latch)
        latch_pass(latch);
    eddy_add_release(&launched, 1u);
}

static const eddy_vm_descriptor noted_op = {.run = run_noted, .name = latch_name};

static eddy_backend_class own_class;

static eddy_backend *create_own(void) {
    eddy_backend *far = eddy_far_create(&(eddy_far_options){.seed = 1});
    cr_assert_not_null(far);
    if (!own_class.name) {
        own_class = *far->class;
        own_class.run = NULL;
    }
    far->class = &own_class;
    return far;
}

static vm_session open_own(int64_t threads) {
    vm_session session = session_open_threads(threads);
    eddy_store_relaxed(&launched, 0u);
    session_add(&session, create_own());
    return session;
}

static eddy_storage_number make_noted(vm_session *session, vm_latch *latch) {
    latch_arguments arguments = {latch};
    eddy_vm_operand made = {.access = EDDY_ACCESS_MUT,
                            .is_new = true,
                            .covers_all = true,
                            .device = session->device,
                            .bytes = 64};
    cr_assert_eq(session_submit(session, &noted_op, &made, 1, &arguments, sizeof(arguments)),
                 EDDY_OK);
    return made.storage;
}

static void note(vm_session *session, eddy_storage_number storage, vm_latch *latch) {
    latch_arguments arguments = {latch};
    eddy_vm_operand written = {.storage = storage, .access = EDDY_ACCESS_MUT, .covers_all = true};
    cr_assert_eq(session_submit(session, &noted_op, &written, 1, &arguments, sizeof(arguments)),
                 EDDY_OK);
}

/* A launch that lasts until the latch is opened: it has begun. */
static eddy_storage_number hold_launcher(vm_session *session, vm_latch *latch) {
    eddy_storage_number made = make_noted(session, latch);
    latch_await(latch, 1);
    return made;
}

/* Without a wait of the VM, which would look after everything itself. */
static void await_launched(uint32_t count) {
    while (eddy_load_acquire(&launched) < count)
        sched_yield();
}

/* The scheduler thread would take what nobody else does. */
static void await_sleeping_scheduler(vm_session *session) {
    while (!eddy_load_seq_cst(&session->vm->is_asleep))
        sched_yield();
}

static void close_with(vm_session *session, eddy_storage_number storage) {
    session_settle(session);
    session_release(session, storage);
    session_close(session);
}

static void pause_for(int64_t ns) {
    for (int64_t until_ns = eddy_clock_ns() + ns; eddy_clock_ns() < until_ns;)
        eddy_atomic_pause();
}

/* At any moment while it spins, looks for the last time and sleeps. */
Test(attend, what_is_left_to_a_launcher_that_falls_asleep_is_launched) {
    vm_session session = open_own(2);
    eddy_storage_number storage = make_noted(&session, NULL);
    for (uint32_t i = 1; i <= 2000; i++) {
        await_launched(i);
        pause_for(i * 7 % 40000);
        note(&session, storage, NULL);
    }
    await_launched(2001);
    close_with(&session, storage);
}

/* It has found nothing to do, and waits for the lock to say that it sleeps, which the issuer takes once more ahead of it. */
Test(attend, what_is_left_to_a_launcher_that_is_about_to_say_that_it_sleeps_is_launched) {
    vm_session session = open_own(2);
    eddy_storage_number storage = make_noted(&session, NULL);
    for (uint32_t i = 1; i <= 1000; i++) {
        await_launched(i);
        eddy_vm_lock(session.vm);
        pause_for(100000);
        eddy_vm_unlock(session.vm);
        note(&session, storage, NULL);
    }
    await_launched(1001);
    close_with(&session, storage);
}

/* Nobody waits for anything: it is the many that make their issuer look after them. */
Test(attend, many_calls_behind_a_launch_that_lasts_are_taken_by_their_issuer) {
    vm_session session = open_own(2);
    vm_latch latch = {0};
    eddy_storage_number storage = hold_launcher(&session, &latch);
    await_sleeping_scheduler(&session);
    for (int i = 0; i < 600; i++)
        note(&session, storage, NULL);
    while (eddy_load_acquire(&session.vm->counted.nodes_made) < 512)
        sched_yield();
    cr_assert_eq(eddy_load_acquire(&launched), 0);
    latch_open(&latch);
    close_with(&session, storage);
}

Test(attend, other_instructions_are_not_held_up_by_what_is_left) {
    vm_session session = open_own(2);
    vm_latch latch = {0};
    eddy_storage_number storage = hold_launcher(&session, &latch);
    for (int i = 0; i < 100; i++) {
        note(&session, storage, NULL);
        vm_session host = session;
        host.device = 0;
        host.stream = NULL;
        host.cost_ps = COST_SCHEDULER;
        eddy_storage_number seen = session_make(&host, i);
        cr_assert_eq(session_read(&host, seen), value_of(i, 0));
        session_release(&host, seen);
    }
    cr_assert_eq(eddy_load_acquire(&launched), 0);
    latch_open(&latch);
    close_with(&session, storage);
}

#define DEVICES 3

/* As large as a record may be: the calls that are left to the three are more than the ring has room for. */
typedef struct large_arguments {
    latch_arguments first;
    char rest[EDDY_RECORD_ARGUMENT_BYTES - sizeof(latch_arguments)];
} large_arguments;

Test(attend, who_waits_for_room_looks_after_what_fills_it) {
    vm_session session = open_own(2);
    vm_latch latch = {0};
    vm_session on[DEVICES] = {session, session, session};
    eddy_storage_number storages[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        if (d > 0)
            cr_assert_eq(eddy_vm_device_add(session.vm, create_own(), "other", INT64_MAX,
                                            test_origin, &on[d].device),
                         EDDY_OK);
        on[d].stream = eddy_vm_device_stream(session.vm, on[d].device);
        storages[d] = make_noted(&on[d], &latch);
        latch_await(&latch, (uint32_t)d + 1);
    }
    await_sleeping_scheduler(&session);
    large_arguments arguments = {{NULL}, {0}};
    for (int i = 0; i < 500 * DEVICES; i++) {
        int d = i % DEVICES;
        eddy_vm_operand written = {
            .storage = storages[d], .access = EDDY_ACCESS_MUT, .covers_all = true};
        cr_assert_eq(session_submit(&on[d], &noted_op, &written, 1, &arguments, sizeof(arguments)),
                     EDDY_OK);
    }
    cr_assert_eq(eddy_load_acquire(&launched), 0);
    latch_open(&latch);
    session_settle(&session);
    for (int d = 0; d < DEVICES; d++)
        session_release(&session, storages[d]);
    session_close(&session);
}

typedef struct asking {
    vm_session *session;
    vm_latch *latches;
    _Atomic int issued, let_go; /* atomic: release, acquire; rounds */
} asking;

#define ROUNDS 400

/* What it asks for passes while the launcher is in a launch that lasts until then. It asks at any moment of the turn in which the launcher found that launch. */
static void *ask(void *context) {
    asking *a = context;
    for (int i = 0; i < ROUNDS; i++) {
        while (eddy_load_acquire(&a->issued) < i)
            eddy_atomic_pause();
        eddy_vm_event *event;
        cr_assert_eq(eddy_vm_event_record(a->session->vm, NULL, test_origin, &event), EDDY_OK);
        while (!eddy_vm_event_query(event))
            sched_yield();
        eddy_vm_event_release(event);
        latch_open(&a->latches[i]);
        eddy_store_release(&a->let_go, i + 1);
    }
    return NULL;
}

Test(attend, a_launcher_that_gives_up_the_role_leaves_nothing_that_was_asked_for) {
    static vm_latch latches[ROUNDS];
    vm_session session = open_own(2);
    asking a = {.session = &session, .latches = latches};
    eddy_storage_number storage = make_noted(&session, NULL);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, ask, &a), 0);
    for (int i = 0; i < ROUNDS; i++) {
        note(&session, storage, NULL);
        eddy_store_release(&a.issued, i);
        note(&session, storage, &latches[i]);
        for (int k = 0; k < i % 5; k++)
            note(&session, storage, NULL);
        while (eddy_load_acquire(&a.let_go) <= i)
            sched_yield();
    }
    pthread_join(thread, NULL);
    close_with(&session, storage);
}

/* ---- a launcher's turn of the engine, on the thread of the test ---- */

static void take_role(eddy_vm *vm) {
    while (!eddy_engine_request(vm))
        sched_yield();
}

typedef struct latched_work {
    eddy_work work;
    vm_latch *latch;
} latched_work;

static void pass(eddy_work *work, eddy_status failure) {
    cr_assert_eq(failure, EDDY_OK);
    latch_pass(((latched_work *)(void *)work)->latch);
}

/* More than it takes at once, while there is something to launch. */
Test(attend, a_launcher_wakes_the_scheduler_thread_for_what_was_asked_for) {
    vm_session session = session_open_threads(2);
    vm_latch latch = {0};
    latched_work works[] = {{{.run = pass}, &latch}, {{.run = pass}, &latch}};
    eddy_work_queue *launcher = eddy_launcher_create(true, (eddy_launcher_duty){0});
    eddy_work_queue_dispatch(launcher, &works[0].work);
    latch_await(&latch, 1);
    eddy_work_queue_dispatch(launcher, &works[1].work);
    take_role(session.vm);
    eddy_vm_event *events[100];
    for (int i = 0; i < 100; i++)
        cr_assert_eq(eddy_vm_event_record(session.vm, NULL, test_origin, &events[i]), EDDY_OK);
    const eddy_engine_turn turn = {.budget_ns = INT64_MAX, .launcher = launcher};
    eddy_engine_work(session.vm, &turn);
    while (!eddy_vm_event_query(events[99]))
        sched_yield();
    latch_open(&latch);
    launcher->class->destroy(launcher);
    for (int i = 0; i < 100; i++)
        eddy_vm_event_release(events[i]);
    session_close(&session);
}
