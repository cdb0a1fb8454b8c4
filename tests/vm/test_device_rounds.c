/* Runs that are launched in rounds, between which other instructions go on, memory is short and devices are lost (vm/DEVICES.md 6). The device runs no code of the host, and what is launched are
 * marks alone: a round has no calls. */
#include "by_hand.h"
#include <base/status.h>

/* ---- ops ---- */

typedef struct rounds_arguments {
    int64_t rounds;
    int64_t workspace_bytes;
    bool is_lost_between; /* the device, as the first round has ended */
    bool gives_up;        /* the operand */
} rounds_arguments;

static const rounds_arguments *arguments_of(const eddy_vm_instruction *instruction) {
    return instruction->arguments;
}

static void run_nothing(const eddy_vm_run *run) {
    (void)run;
}

static size_t workspace_of(const eddy_vm_run *run) {
    return (size_t)arguments_of(run->instruction)->workspace_bytes;
}

static const char *name_of(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "rounds";
}

static uint32_t no_calls(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return 0;
}

static size_t one_count(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return sizeof(int64_t);
}

static bool has_another(const eddy_vm_run *run) {
    int64_t *ended = run->state;
    const rounds_arguments *arguments = arguments_of(run->instruction);
    if (arguments->is_lost_between)
        eddy_far_lose(run->launch->queue->backend);
    return ++*ended < arguments->rounds;
}

static void say_gone(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error) {
    (void)operand;
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, test_origin, instruction->sequence - 1,
                    "given up");
}

static const eddy_vm_rounds marks_alone = {
    .call_count = no_calls, .state_bytes = one_count, .goes_on = has_another};
static const eddy_vm_descriptor call_op = {.run = run_nothing, .name = name_of};
static const eddy_vm_descriptor rounds_op = {.run = run_nothing,
                                             .workspace = workspace_of,
                                             .name = name_of,
                                             .is_program = true,
                                             .rounds = &marks_alone,
                                             .gone = say_gone};

static vm_session open_own(int64_t bytes) {
    vm_session session = session_open_threads(2);
    session_own(&session, (eddy_far_options){.is_by_hand = true, .bytes = bytes});
    return session;
}

static eddy_storage_number make(vm_session *session, int64_t bytes) {
    eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                              .is_new = true,
                              .covers_all = true,
                              .device = session->device,
                              .bytes = bytes};
    cr_assert_eq(session_submit(session, &call_op, &target, 1, NULL, 0), EDDY_OK);
    return target.storage;
}

/* Changes it in place. */
static void change(vm_session *session, eddy_storage_number storage, rounds_arguments arguments) {
    eddy_vm_operand target = {
        .storage = storage, .access = EDDY_ACCESS_MUT, .is_given_up = arguments.gives_up};
    eddy_vm_call call = {
        .instruction = {.descriptor = &rounds_op, .arguments = &arguments, .operand_count = 1},
        .argument_bytes = sizeof(arguments),
        .operands = &target,
        .stream = session->stream,
        .cost_ps = session->cost_ps,
        .part_count = 1};
    cr_assert_eq(eddy_vm_submit(session->vm, &call), EDDY_OK);
}

/* On the device, and the engine has heard of it. */
static eddy_storage_number make_there(vm_session *session, int64_t bytes) {
    eddy_storage_number storage = make(session, bytes);
    run_pieces(session, 1);
    cr_assert_eq(wait_for(session, storage), EDDY_OK);
    return storage;
}

/* ---- a lost device ---- */

/* What the run changes in place is as it was only if no round has begun: the second is never launched, and the first has written. */
Test(device_rounds, a_device_lost_between_rounds_tears_what_is_changed_in_place) {
    vm_session session = open_own(0);
    eddy_storage_number storage = make_there(&session, 8);
    change(&session, storage, (rounds_arguments){.rounds = 2, .is_lost_between = true});
    run_pieces(&session, 1);
    cr_assert_eq(wait_for(&session, storage), EDDY_TORN);
    session_release(&session, storage);
    session_close(&session);
}

Test(device_rounds, a_device_lost_ahead_of_the_first_round_leaves_what_is_changed_in_place) {
    vm_session session = open_own(0);
    eddy_storage_number storage = make_there(&session, 8);
    eddy_far_lose(session.far);
    change(&session, storage, (rounds_arguments){.rounds = 2});
    cr_assert_eq(wait_for(&session, storage), EDDY_SKIPPED);
    session_release(&session, storage);
    session_close(&session);
}

Test(device_rounds, a_device_lost_within_a_round_tears_what_is_changed_in_place) {
    for (int round = 1; round <= 2; round++) {
        vm_session session = open_own(0);
        eddy_storage_number storage = make_there(&session, 8);
        change(&session, storage, (rounds_arguments){.rounds = 2});
        run_pieces(&session, round - 1);
        await_ticket(&session, (uint64_t)round + 1);
        eddy_far_lose(session.far);
        cr_assert_eq(wait_for(&session, storage), EDDY_TORN);
        session_release(&session, storage);
        session_close(&session);
    }
}

/* ---- others between rounds ---- */

/* What touches the operand comes after the last round, on any queue; the rest does not wait. */
Test(device_rounds, only_what_touches_its_operands_waits_for_the_last_round) {
    vm_session session = open_own(0);
    eddy_storage_number storage = make_there(&session, 8);
    change(&session, storage, (rounds_arguments){.rounds = 3});
    session.stream = session.far_streams[1];
    eddy_vm_operand reading[] = {{.storage = storage},
                                 {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device,
                                  .bytes = 8}};
    cr_assert_eq(session_submit(&session, &call_op, reading, 2, NULL, 0), EDDY_OK);
    session.stream = session.far_streams[0];
    eddy_storage_number other = make(&session, 8);
    await_ticket(&session, 3);
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, other), EDDY_OK);
    await_ticket(&session, 4);
    run_pieces(&session, 1);
    await_ticket(&session, 5);
    cr_assert_eq(session.vm->devices[session.device]->ticket, 5, "the reader has none");
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, reading[1].storage), EDDY_OK);
    eddy_storage_number all[] = {storage, other, reading[1].storage};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* A later round may need what the run gives up. */
Test(device_rounds, what_it_gives_up_stays_until_the_last_round_has_ended) {
    vm_session session = open_own(0);
    eddy_storage_number storage = make_there(&session, 1 << 20);
    eddy_device_pool *pool = session.vm->devices[session.device]->pool;
    change(&session, storage, (rounds_arguments){.rounds = 3, .gives_up = true});
    for (int round = 1; round <= 3; round++) {
        await_ticket(&session, (uint64_t)round + 1);
        cr_assert_eq(eddy_device_pool_statistics_read(pool).live_bytes, 1 << 20);
        run_pieces(&session, 1);
    }
    cr_assert_eq(wait_for(&session, storage), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_device_pool_statistics_read(pool).live_bytes, 0);
    session_release(&session, storage);
    session_close(&session);
}

/* The round behind it is launched first, in the same queue too, until the run gives its memory back. */
Test(device_rounds, a_launch_that_stalls_has_the_memory_of_a_run_once_that_is_over) {
    for (int stream = 0; stream < 2; stream++) {
        vm_session session = open_own(8 << 20);
        eddy_storage_number storage = make_there(&session, 8);
        change(&session, storage, (rounds_arguments){.rounds = 4, .workspace_bytes = 5 << 20});
        await_ticket(&session, 2);
        session.stream = session.far_streams[stream];
        eddy_storage_number large = make(&session, 5 << 20), behind = make(&session, 8);
        await_stall(&session);
        run_pieces(&session, 4 + 2);
        cr_assert_eq(wait_for(&session, large), EDDY_OK);
        cr_assert_eq(wait_for(&session, behind), EDDY_OK);
        cr_assert_eq(wait_for(&session, storage), EDDY_OK);
        eddy_storage_number all[] = {storage, large, behind};
        for (int i = 0; i < 3; i++)
            session_release(&session, all[i]);
        session_close(&session);
    }
}

/* Also if it was called first, and could not begin. */
Test(device_rounds, an_earlier_call_that_was_ready_later_has_the_memory_of_a_run) {
    vm_session session = open_own(8 << 20);
    eddy_storage_number storage = make_there(&session, 8);
    session.stream = session.far_streams[1];
    hold_back(&session, session.stream);
    eddy_storage_number large = make(&session, 5 << 20);
    session.stream = session.far_streams[0];
    change(&session, storage, (rounds_arguments){.rounds = 4, .workspace_bytes = 5 << 20});
    await_ticket(&session, 2);
    session_step(&session);
    await_stall(&session);
    run_pieces(&session, 4 + 2);
    cr_assert_eq(wait_for(&session, large), EDDY_OK);
    cr_assert_eq(wait_for(&session, storage), EDDY_OK);
    session_release(&session, storage);
    session_release(&session, large);
    session_close(&session);
}

/* Earlier calls have taken all of the window by then, so that the next round waits for that. */
Test(device_rounds, a_round_beyond_the_window_comes_ahead_of_a_launch_that_stalls) {
    enum { CALLS = EDDY_DEVICE_WINDOW + 100 };
    vm_session session = open_own(8 << 20);
    eddy_storage_number storage = make_there(&session, 8), last = 0;
    session.stream = session.far_streams[1];
    hold_back(&session, session.stream);
    eddy_storage_number large = make(&session, 5 << 20);
    for (int i = 0; i < CALLS; i++) {
        if (last)
            session_release(&session, last);
        last = make(&session, 8);
    }
    session.stream = session.far_streams[0];
    change(&session, storage, (rounds_arguments){.rounds = 3, .workspace_bytes = 5 << 20});
    await_ticket(&session, 2);
    session_step(&session);
    await_stall(&session);
    eddy_vm_wait briefly = {50000000, test_origin};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, last, &briefly), EDDY_TIMED_OUT,
                 "all are dispatched then, or wait for the window");
    taken_error();
    run_pieces(&session, 3 + 2 + CALLS);
    cr_assert_eq(wait_for(&session, large), EDDY_OK);
    cr_assert_eq(wait_for(&session, last), EDDY_OK);
    cr_assert_eq(wait_for(&session, storage), EDDY_OK);
    cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 0);
    eddy_storage_number all[] = {storage, large, last};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* It fails once the run is over, and does not wait for more for ever. */
Test(device_rounds, a_launch_that_stalls_ahead_of_a_round_and_never_fits_ends) {
    vm_session session = open_own(8 << 20);
    eddy_storage_number storage = make_there(&session, 5 << 20);
    change(&session, storage, (rounds_arguments){.rounds = 2});
    await_ticket(&session, 2);
    session.stream = session.far_streams[1];
    eddy_storage_number large = make(&session, 5 << 20);
    run_pieces(&session, 3);
    cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&session, storage), EDDY_OK);
    session_release(&session, storage);
    session_release(&session, large);
    session_close(&session);
}

/* ---- marks that wait ---- */

/* The launching thread's, but `may_go_on`. */
static struct {
    const eddy_backend_class *real;
    eddy_backend_queue *queue; /* of the one mark that waits; NULL: none does */
    uint64_t ticket;
    bool has_waited, has_waited_too_long;
    _Atomic bool may_go_on;
} marking;

static eddy_status mark_waiting(eddy_backend *backend) {
    (void)backend;
    eddy_backend_queue *queue = marking.queue;
    marking.queue = NULL;
    return queue ? marking.real->mark(queue, marking.ticket) : EDDY_OK;
}

static eddy_status mark_later(eddy_backend_queue *queue, uint64_t ticket) {
    (void)mark_waiting(queue->backend);
    marking.queue = queue;
    marking.ticket = ticket;
    marking.has_waited = true;
    return EDDY_OK;
}

static eddy_status mark_now(eddy_backend_queue *queue, uint64_t ticket) {
    (void)mark_waiting(queue->backend);
    return marking.real->mark(queue, ticket);
}

static void run_held(const eddy_vm_run *run) {
    (void)run;
    while (!eddy_load_acquire(&marking.may_go_on))
        sched_yield();
}

static void run_alone(const eddy_vm_run *run) {
    (void)run;
    marking.has_waited_too_long |= marking.queue != NULL;
}

static const eddy_vm_descriptor held_op = {.run = run_held, .name = name_of};
static const eddy_vm_descriptor alone_op = {
    .run = run_alone, .name = name_of, .is_program = true, .rounds = &marks_alone};

/* A round is many launches, behind which no mark of what is ahead of it waits. */
Test(device_rounds, no_mark_waits_for_a_round) {
    vm_session session = session_open_threads(2);
    static eddy_backend_class class;
    session.far = eddy_far_create(&(eddy_far_options){0});
    cr_assert_not_null(session.far);
    marking.real = session.far->class;
    class = *marking.real;
    class.run = NULL;
    class.mark = mark_now;
    class.mark_later = mark_later;
    class.mark_waiting = mark_waiting;
    session.far->class = &class;
    session_add(&session, session.far);
    eddy_storage_number storages[3];
    const eddy_vm_descriptor *const ops[] = {&held_op, &call_op, &alone_op};
    for (int i = 0; i < 3; i++) {
        rounds_arguments arguments = {.rounds = 1};
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device,
                                  .bytes = 8};
        eddy_vm_call call = {
            .instruction = {.descriptor = ops[i], .arguments = &arguments, .operand_count = 1},
            .argument_bytes = sizeof(arguments),
            .operands = &target,
            .stream = session.stream,
            .cost_ps = session.cost_ps,
            .part_count = ops[i] == &alone_op ? 1 : 0};
        cr_assert_eq(eddy_vm_submit(session.vm, &call), EDDY_OK);
        storages[i] = target.storage;
    }
    eddy_vm_wait briefly = {50000000, test_origin};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, storages[2], &briefly), EDDY_TIMED_OUT,
                 "all are dispatched then");
    taken_error();
    eddy_store_release(&marking.may_go_on, true);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(wait_for(&session, storages[i]), EDDY_OK);
        session_release(&session, storages[i]);
    }
    session_close(&session);
    cr_assert(marking.has_waited && !marking.has_waited_too_long);
}
