/* Launches without memory, among others that wait for memory too, of one device and of two, and of the host (vm/DEVICES.md 4): what is launched first, and who fails. */
#include "short_of_memory.h"

#define LIMIT (8 << 20)

/* ---- a thread that runs all that is launched ---- */

typedef struct stepper {
    eddy_backend *far[2];
    _Atomic bool is_ending;
    pthread_t thread;
} stepper;

static void *step_main(void *context) {
    stepper *self = context;
    while (!eddy_load_acquire(&self->is_ending)) {
        bool any = eddy_far_step(self->far[0], 0);
        if (self->far[1])
            any |= eddy_far_step(self->far[1], 0);
        if (!any)
            sched_yield();
    }
    return NULL;
}

static void stepper_begin(stepper *self) {
    start_thread(&self->thread, step_main, self);
}

static void stepper_end(stepper *self) {
    eddy_store_release(&self->is_ending, true);
    join_thread(self->thread);
}

/* ---- others read meanwhile ---- */

typedef struct poller {
    vm_session *session;
    eddy_storage_number storage;
    _Atomic bool *is_over;
    pthread_t thread;
} poller;

static void *poll_main(void *context) {
    poller *self = context;
    while (!eddy_load_acquire(self->is_over)) {
        int64_t value;
        cr_assert_eq(eddy_vm_read_small(self->session->vm, self->storage, 0, sizeof(value), &value,
                                        &forever),
                     EDDY_OK);
    }
    return NULL;
}

#define POLLERS 8

Test(shortage_order, what_never_fits_fails_though_others_read) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.seed = 3, .bytes = LIMIT});
    eddy_storage_number kept = session_make_sized(&session, 1, 5 << 20, 0, NULL);
    _Atomic bool is_over = false;
    poller pollers[POLLERS];
    for (int i = 0; i < POLLERS; i++) {
        eddy_storage_number small = session_make_sized(&session, 2 + i, 64, 0, NULL);
        cr_assert_eq(wait_for(&session, small), EDDY_OK);
        pollers[i] = (poller){.session = &session, .storage = small, .is_over = &is_over};
        start_thread(&pollers[i].thread, poll_main, &pollers[i]);
    }
    for (int round = 0; round < 5; round++) {
        eddy_storage_number large = session_make_sized(&session, 10, 5 << 20, 0, NULL);
        cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
        session_release(&session, large);
    }
    eddy_store_release(&is_over, true);
    for (int i = 0; i < POLLERS; i++) {
        join_thread(pollers[i].thread);
        session_release(&session, pollers[i].storage);
    }
    session_release(&session, kept);
    session_close(&session);
}

/* ---- beyond the window ---- */

#define MANY (EDDY_DEVICE_WINDOW + 100)

Test(shortage_order, a_late_call_fills_though_the_window_is_full) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    eddy_storage_number input = session_make_sized(&session, 1, 6 << 20, 0, NULL);
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, input), EDDY_OK);
    eddy_storage_number late = make_late(&session, 2, input, CELLS);
    session_release(&session, input);
    await_ticket(&session, 2);
    session.stream = session.far_streams[1];
    eddy_storage_number large = session_make_sized(&session, 3, 6 << 20, 0, NULL);
    await_stall(&session);
    static eddy_storage_number small[MANY];
    for (int i = 0; i < MANY; i++)
        small[i] = session_make_sized(&session, 4, 64, 0, NULL);
    eddy_vm_wait briefly = {50000000, test_origin};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, small[MANY - 1], &briefly), EDDY_TIMED_OUT,
                 "all are dispatched then, or wait for the window");
    taken_error();
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    cr_assert_eq(wait_for(&session, large), EDDY_OK);
    cr_assert_eq(wait_for(&session, late), EDDY_OK);
    session_release(&session, late);
    session_release(&session, large);
    for (int i = 0; i < MANY; i++)
        session_release(&session, small[i]);
    session_settle(&session);
    stepper_end(&stepping);
    session_close(&session);
}

/* ---- given up with a ticket that is lost ---- */

static void gone(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error) {
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, test_origin,
                    instruction->sequence - 1 - (uint64_t)operand, "operand was given up");
}

static const eddy_vm_descriptor give_up_op = {.run = synthetic_run,
                                              .name = synthetic_name,
                                              .describe = synthetic_describe,
                                              .explain = synthetic_explain,
                                              .end = synthetic_end,
                                              .gone = gone};

/* Makes `bytes`, and gives `bare` up, which it does not touch. */
static eddy_storage_number make_giving(vm_session *session, int64_t seed, int64_t bytes,
                                       eddy_storage_number bare) {
    eddy_vm_operand operands[2] = {
        {.access = EDDY_ACCESS_MUT,
         .is_new = true,
         .covers_all = true,
         .device = session->device,
         .bytes = bytes},
        {.storage = bare, .access = EDDY_ACCESS_MUT, .covers_all = true, .is_given_up = true}};
    synthetic_arguments arguments = {.seed = seed, .accesses = 1 | 3 << 2};
    eddy_vm_call call = {
        .instruction = {.descriptor = &give_up_op, .arguments = &arguments, .operand_count = 2},
        .argument_bytes = sizeof(arguments),
        .operands = operands,
        .stream = session->stream,
        .cost_ps = session->cost_ps,
        .part_count = 8};
    cr_assert_eq(synthetic_submit(session->vm, &call), EDDY_OK);
    return operands[0].storage;
}

Test(shortage_order, what_was_given_up_by_what_stalls_is_free_for_others) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    eddy_storage_number given = session_make_sized(&session, 1, 5 << 20, 0, NULL);
    eddy_storage_number input = session_make_sized(&session, 2, 64, 0, NULL);
    run_pieces(&session, 4);
    cr_assert_eq(wait_for(&session, input), EDDY_OK);
    cr_assert_eq(wait_for(&session, given), EDDY_OK);
    eddy_storage_number late = make_late(&session, 3, input, (4 << 20) / 8);
    await_ticket(&session, 3);
    session.stream = session.far_streams[1];
    /* Never fits, and comes after what fills. */
    eddy_storage_number large = make_giving(&session, 4, 20 << 20, given);
    await_stall(&session);
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    cr_assert_eq(wait_for(&session, large), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&session, late), EDDY_OK);
    eddy_storage_number all[] = {given, input, late, large};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_settle(&session);
    stepper_end(&stepping);
    session_close(&session);
}

/* ---- what fills lacks what an earlier call gives back ---- */

Test(shortage_order, what_fills_has_the_memory_of_an_earlier_call) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    eddy_storage_number big = session_make_sized(&session, 1, 5 << 20, 0, NULL);
    eddy_storage_number input = session_make_sized(&session, 2, 64, 0, NULL);
    run_pieces(&session, 4);
    cr_assert_eq(wait_for(&session, input), EDDY_OK);
    cr_assert_eq(wait_for(&session, big), EDDY_OK);
    session.stream = session.far_streams[1];
    hold_back(&session, session.stream);
    eddy_storage_number never = session_make_sized(&session, 3, 20 << 20, 0, NULL);
    eddy_storage_number reader = session_make_sized(&session, 4, 64, 1, &big);
    session_release(&session, big);
    session.stream = session.far_streams[0];
    eddy_storage_number late = make_late(&session, 5, input, (4 << 20) / 8);
    await_ticket(&session, 3);
    session_step(&session);
    await_stall(&session);
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    cr_assert_eq(wait_for(&session, never), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&session, reader), EDDY_OK);
    cr_assert_eq(wait_for(&session, late), EDDY_OK);
    eddy_storage_number all[] = {input, late, never, reader};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_settle(&session);
    stepper_end(&stepping);
    session_close(&session);
}

/* ---- two devices ---- */

Test(shortage_order, a_launch_has_the_memory_that_another_stalled_device_gives_back) {
    vm_session none = session_open_threads(2);
    vm_session one = with_far(none, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    vm_session two = with_far(none, (eddy_far_options){.is_by_hand = true, .bytes = LIMIT});
    eddy_storage_number big = session_make_sized(&one, 1, 6 << 20, 0, NULL);
    run_pieces(&one, 2);
    cr_assert_eq(wait_for(&one, big), EDDY_OK);
    hold_back(&two, two.vm->devices[two.device]->to_device);
    eddy_storage_number copy = 0;
    cr_assert_eq(eddy_vm_copy(one.vm, NULL, big, 0, 64, two.device, NULL, &copy), EDDY_OK);
    session_release(&one, big);
    eddy_storage_number large = session_make_sized(&one, 2, 6 << 20, 0, NULL);
    await_stall(&one);
    eddy_storage_number never = session_make_sized(&two, 3, 20 << 20, 0, NULL);
    await_stall(&two);
    stepper stepping = {.far = {one.far, two.far}};
    session_step(&two);
    stepper_begin(&stepping);
    cr_assert_eq(wait_for(&two, never), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&one, large), EDDY_OK);
    cr_assert_eq(wait_for(&two, copy), EDDY_OK);
    eddy_storage_number all[] = {copy, large, never};
    for (int i = 0; i < 3; i++)
        session_release(&one, all[i]);
    session_settle(&one);
    stepper_end(&stepping);
    for (int i = 0; i < 3; i++)
        eddy_vm_stream_release(one.far_streams[i]);
    session_close(&two);
}

/* ---- what is copied to the host takes its memory ---- */

typedef struct lender {
    vm_session *session;
    eddy_storage_number storage;
    eddy_status status;
    pthread_t thread;
} lender;

static void *lend_main(void *context) {
    lender *self = context;
    void *data;
    eddy_vm_lend *lend;
    self->status =
        eddy_vm_lend_begin(self->session->vm, self->storage, false, &forever, &data, &lend);
    if (self->status == EDDY_OK)
        eddy_vm_lend_end(self->session->vm, lend, false);
    else
        taken_error();
    return NULL;
}

Test(shortage_order, a_copy_to_the_host_has_the_memory_that_one_from_there_gives_back) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    session.stream = session.far_streams[1];
    eddy_storage_number first = session_make_sized(&session, 1, 50 << 20, 0, NULL);
    eddy_storage_number second = session_make_sized(&session, 2, 50 << 20, 0, NULL);
    run_pieces(&session, 4);
    cr_assert_eq(wait_for(&session, second), EDDY_OK);
    hold_back(&session, session.stream);
    session_overwrite(&session, first, 3);
    lender thread = {.session = &session, .storage = first};
    uint64_t issued = eddy_vm_counters_read(session.vm).submitted;
    start_thread(&thread.thread, lend_main, &thread);
    while (eddy_vm_counters_read(session.vm).submitted == issued)
        sched_yield();
    session.stream = session.far_streams[2];
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, second, true, &forever, &data, &lend), EDDY_OK);
    stepper_end(&stepping);
    stepping.is_ending = false;
    eddy_memory_limit_set(80 << 20);
    eddy_storage_number running = session_make(&session, 5);
    session_step(&session);
    await_ticket(&session, 6);
    run_pieces(&session, 3); /* of stream 1 */
    await_stall(&session);
    eddy_vm_lend_end(session.vm, lend, false);
    usleep(100000);
    stepper_begin(&stepping);
    join_thread(thread.thread);
    cr_assert_eq(thread.status, EDDY_OK);
    cr_assert_eq(wait_for(&session, second), EDDY_OK);
    eddy_storage_number all[] = {first, second, running};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_settle(&session);
    stepper_end(&stepping);
    eddy_memory_limit_set(0);
    session_close(&session);
}

/* ---- what is copied to the host lacks what an earlier call gives back ---- */

Test(shortage_order, a_copy_to_the_host_has_the_memory_of_an_earlier_call) {
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true});
    session.stream = session.far_streams[1];
    eddy_storage_number first = session_make_sized(&session, 1, 50 << 20, 0, NULL);
    run_pieces(&session, 2);
    cr_assert_eq(wait_for(&session, first), EDDY_OK);
    vm_session host = session;
    host.device = 0;
    host.stream = NULL;
    eddy_storage_number there = session_make_sized(&host, 2, 50 << 20, 0, NULL);
    cr_assert_eq(wait_for(&host, there), EDDY_OK);
    session.stream = session.far_streams[2];
    eddy_storage_number running = session_make(&session, 5);
    session.stream = session.far_streams[1];
    eddy_storage_number never = session_make_sized(&session, 3, 210 << 20, 0, NULL);
    await_stall(&session);
    eddy_storage_number copy = 0;
    cr_assert_eq(
        eddy_vm_copy(session.vm, session.stream, there, 0, 64, session.device, NULL, &copy),
        EDDY_OK);
    session_release(&session, there);
    eddy_memory_limit_set(80 << 20);
    lender thread = {.session = &session, .storage = first};
    uint64_t issued = eddy_vm_counters_read(session.vm).submitted;
    start_thread(&thread.thread, lend_main, &thread);
    while (eddy_vm_counters_read(session.vm).submitted == issued)
        sched_yield();
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    join_thread(thread.thread);
    cr_assert_eq(thread.status, EDDY_OK);
    cr_assert_eq(wait_for(&session, never), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(wait_for(&session, copy), EDDY_OK);
    eddy_storage_number all[] = {first, running, never, copy};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_settle(&session);
    stepper_end(&stepping);
    eddy_memory_limit_set(0);
    session_close(&session);
}

/* ---- the order of the calls, beyond the window ---- */

static int order[EDDY_DEVICE_WINDOW + 200];
static _Atomic int order_count;

static void run_noting(const eddy_vm_run *run) {
    order[eddy_add_relaxed(&order_count, 1)] =
        (int)((const synthetic_arguments *)run->instruction->arguments)->seed;
}

static const eddy_vm_descriptor noting_op = {.run = run_noting, .name = synthetic_name};

Test(shortage_order, calls_are_launched_in_their_order_beyond_the_window) {
    vm_session session = session_open_threads(2);
    session_own(&session, (eddy_far_options){.is_by_hand = true});
    static eddy_storage_number all[EDDY_DEVICE_WINDOW + 200];
    int count = EDDY_DEVICE_WINDOW + 100;
    for (int i = 0; i < count; i++) {
        /* Beyond the window two calls of one stream, then others of a third one. */
        session.stream = session.far_streams[i < EDDY_DEVICE_WINDOW       ? 0
                                             : i < EDDY_DEVICE_WINDOW + 2 ? 1
                                                                          : 2];
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device,
                                  .bytes = 8};
        synthetic_arguments arguments = {.seed = i};
        cr_assert_eq(
            session_submit(&session, &noting_op, &target, 1, &arguments, sizeof(arguments)),
            EDDY_OK);
        all[i] = target.storage;
    }
    usleep(200000);
    stepper stepping = {.far = {session.far}};
    stepper_begin(&stepping);
    session_settle(&session);
    stepper_end(&stepping);
    for (int i = 0; i < count; i++)
        cr_assert_eq(order[i], i, "number %d is call %d", i, order[i]);
    for (int i = 0; i < count; i++)
        session_release(&session, all[i]);
    session_close(&session);
}
