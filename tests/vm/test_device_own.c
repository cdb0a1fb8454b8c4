/* Late calls on a device that runs no code of the host (vm/DEVICES.md 6): `count` and `run` launch, and what is counted comes back with the ticket. The device is the far one without
 * its `run`, and the ops here launch on it as kernels of a device's own do. */
#include "by_hand.h"
#include <streams/launcher.h>

/* ---- ops ---- */

typedef struct own_arguments {
    int64_t value; /* of the cells that are made */
    bool fails;    /* what counts */
    bool overflows;
} own_arguments;

/* What a kernel gets, as the device sees it. */
typedef struct own_parameters {
    eddy_backend_launch launch;
    eddy_kernel_error *error;
    const own_arguments *arguments;
    const int64_t *from;
    int64_t *to, *workspace, cells;
} own_parameters;

static own_parameters parameters_of(const eddy_vm_run *run, const void *from, void *to) {
    const eddy_backend *backend = run->launch->queue->backend;
    return (own_parameters){.launch = *run->launch,
                            .error = run->error,
                            .arguments = run->instruction->arguments,
                            .from = eddy_far_translate(backend, from),
                            .to = eddy_far_translate(backend, to),
                            .workspace = eddy_far_translate(backend, run->workspace)};
}

static void launch(const eddy_vm_run *run, void (*kernel)(void *context),
                   const own_parameters *parameters) {
    (void)eddy_far_launch(run->launch->queue, kernel, parameters, sizeof(*parameters));
}

static void kernel_make(void *context) {
    own_parameters *p = context;
    p->workspace[0] = -1;
    for (int64_t c = 0; c < CELLS && eddy_backend_may_run(&p->launch); c++)
        p->to[c] = p->from ? p->from[0] : p->arguments->value;
}

static void run_make(const eddy_vm_run *run) {
    own_parameters p = parameters_of(run, NULL, run->data[0]);
    launch(run, kernel_make, &p);
}

static void run_copy(const eddy_vm_run *run) {
    own_parameters p = parameters_of(run, run->data[0], run->data[1]);
    launch(run, kernel_make, &p);
}

/* The input's first cell says how many cells the result has. */
static void kernel_count(void *context) {
    own_parameters *p = context;
    if (!eddy_backend_may_run(&p->launch))
        return;
    p->workspace[0] = p->from[1];
    p->error->counted = p->from[0];
    if (p->arguments->fails)
        eddy_store_release(&p->error->status, (int32_t)EDDY_OUT_OF_RANGE);
}

static void late_count(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    cr_assert(run->launch && !shapes && !bytes);
    own_parameters p = parameters_of(run, run->data[0], NULL);
    launch(run, kernel_count, &p);
}

static void late_shape(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes) {
    const own_arguments *arguments = run->instruction->arguments;
    shapes[0] = (eddy_shape){2, {run->error->counted, 1}};
    bytes[0] = run->error->counted * 8;
    if (arguments->overflows)
        eddy_store_relaxed(&run->error->status, (int32_t)EDDY_SIZE_OVERFLOW);
}

/* With what the count has left in the workspace. */
static void kernel_fill(void *context) {
    own_parameters *p = context;
    for (int64_t c = 0; c < p->cells && eddy_backend_may_run(&p->launch); c++)
        p->to[c] = p->workspace[0] + c;
}

static void late_run(const eddy_vm_run *run) {
    own_parameters p = parameters_of(run, NULL, run->data[1]);
    p.cells = run->late_shapes[0].dims[0];
    cr_assert_eq(p.cells * 8, run->bytes[1]);
    launch(run, kernel_fill, &p);
}

static size_t own_workspace(const eddy_vm_run *run) {
    (void)run;
    return 64;
}

static const char *own_name(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "own";
}

static const eddy_vm_descriptor make_op = {
    .run = run_make, .workspace = own_workspace, .name = own_name};
static const eddy_vm_descriptor copy_op = {
    .run = run_copy, .workspace = own_workspace, .name = own_name};
static const eddy_vm_descriptor late_op = {.run = late_run,
                                           .workspace = own_workspace,
                                           .count = late_count,
                                           .shape = late_shape,
                                           .name = own_name};

/* ---- sessions ---- */

#define ON_EACH_PATH_OWN(session, seeds)                                                           \
    for (uint64_t seed = 1; seed <= (seeds); seed++)                                               \
        ON_EACH_PATH(session)                                                                      \
    for (bool is_first = (session_own(&session, (eddy_far_options){.seed = seed}), true);          \
         is_first; is_first = false)

static void submit(vm_session *session, const eddy_vm_descriptor *descriptor,
                   eddy_vm_operand *operands, int64_t count, own_arguments arguments) {
    cr_assert_eq(
        session_submit(session, descriptor, operands, count, &arguments, sizeof(arguments)),
        EDDY_OK);
}

static eddy_vm_operand new_cells(const vm_session *session) {
    return (eddy_vm_operand){.access = EDDY_ACCESS_MUT,
                             .is_new = true,
                             .covers_all = true,
                             .device = session->device,
                             .bytes = CELLS * 8};
}

/* Cells that say `value`, in a new storage or an old one. */
static eddy_storage_number make(vm_session *session, const eddy_storage_number *old,
                                int64_t value) {
    eddy_vm_operand target = new_cells(session);
    if (old)
        target = (eddy_vm_operand){.storage = *old, .access = EDDY_ACCESS_MUT, .covers_all = true};
    submit(session, &make_op, &target, 1, (own_arguments){.value = value});
    return target.storage;
}

static eddy_storage_number make_late(vm_session *session, eddy_storage_number input,
                                     own_arguments arguments) {
    eddy_vm_operand operands[] = {{.storage = input},
                                  {.access = EDDY_ACCESS_MUT2,
                                   .is_new = true,
                                   .covers_all = true,
                                   .device = session->device}};
    submit(session, &late_op, operands, 2, arguments);
    return operands[1].storage;
}

static void expect_late(vm_session *session, eddy_storage_number storage, int64_t value) {
    eddy_shape shape;
    cr_assert_eq(eddy_vm_late_shape(session->vm, storage, &forever, &shape), EDDY_OK);
    cr_assert(shape.rank == 2 && shape.dims[0] == value && shape.dims[1] == 1);
    int64_t last;
    cr_assert_eq(eddy_vm_read_small(session->vm, storage, (value - 1) * 8, 8, &last, &forever),
                 EDDY_OK);
    cr_assert_eq(last, 2 * value - 1);
}

static void expect_failure(vm_session *session, eddy_storage_number storage, eddy_status status) {
    cr_assert_eq(eddy_vm_wait_storage(session->vm, storage, &forever), status);
    taken_error();
}

static void release_all(vm_session *session, const eddy_storage_number *all, int count) {
    for (int i = 0; i < count; i++)
        session_release(session, all[i]);
}

/* ---- shapes ---- */

/* Of inputs that are written again at once, on three streams. */
Test(device_own, shapes_are_made_of_what_was_counted) {
    ON_EACH_PATH_OWN(session, 20) {
        eddy_storage_number input = make(&session, NULL, 1), late[12];
        for (int i = 0; i < 12; i++) {
            session.stream = session.far_streams[i % 3];
            late[i] = make_late(&session, input, (own_arguments){0});
            make(&session, &input, i + 2);
        }
        for (int i = 0; i < 12; i++)
            expect_late(&session, late[i], i + 1);
        release_all(&session, late, 12);
        session_release(&session, input);
    }
}

static vm_session open_by_hand(void) {
    vm_session session = session_open_threads(2);
    session_own(&session, (eddy_far_options){.is_by_hand = true});
    return session;
}

/* Its second ticket comes behind what was dispatched meanwhile, of the same queue too. */
Test(device_own, others_go_on_between_count_and_fill) {
    vm_session session = open_by_hand();
    eddy_storage_number all[] = {make(&session, NULL, 3), 0, 0};
    await_ticket(&session, 1);
    run_pieces(&session, 2);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, all[0], &forever), EDDY_OK);
    all[1] = make_late(&session, all[0], (own_arguments){0});
    all[2] = make(&session, NULL, 9);
    await_ticket(&session, 3);
    run_pieces(&session, 4);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, all[2], &forever), EDDY_OK);
    cr_assert_not(eddy_vm_is_ready(session.vm, all[1]));
    await_ticket(&session, 4);
    run_pieces(&session, 2);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, all[1], &forever), EDDY_OK);
    release_all(&session, all, 3);
    session_close(&session);
}

/* ---- the window ---- */

#define ROUND_CALLS 200

static uint32_t count_round(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return ROUND_CALLS;
}

static size_t some_state(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return 8;
}

static bool is_the_only_round(const eddy_vm_run *run) {
    (void)run;
    return false;
}

static const eddy_vm_rounds one_round = {
    .call_count = count_round, .state_bytes = some_state, .goes_on = is_the_only_round};

/* Launching thread: notes how many were launched before it. */
static int launched;
typedef struct noting_arguments {
    int *at;
} noting_arguments;

static void run_noting(const eddy_vm_run *run) {
    *((const noting_arguments *)run->instruction->arguments)->at = launched++;
}

static const eddy_vm_descriptor noting_op = {.run = run_noting, .name = own_name};
static const eddy_vm_descriptor round_op = {
    .run = run_noting, .name = own_name, .is_program = true, .rounds = &one_round};

static eddy_storage_number note(vm_session *session, const eddy_vm_descriptor *descriptor,
                                int *at) {
    eddy_vm_operand target = new_cells(session);
    noting_arguments arguments = {at};
    cr_assert_eq(session_submit(session, descriptor, &target, 1, &arguments, sizeof(arguments)),
                 EDDY_OK);
    return target.storage;
}

/* A round that needs more of the window than is left is not passed by those that need less. */
Test(device_own, a_round_keeps_its_turn) {
    enum { AHEAD = EDDY_DEVICE_WINDOW - ROUND_CALLS / 2, BEHIND = 50 };
    static eddy_storage_number all[AHEAD + 1 + BEHIND];
    static int at[AHEAD + 1 + BEHIND];
    vm_session session = open_by_hand();
    for (int i = 0; i < AHEAD + 1 + BEHIND; i++) {
        session.stream = session.far_streams[i < AHEAD ? 0 : i == AHEAD ? 1 : 2];
        all[i] = note(&session, i == AHEAD ? &round_op : &noting_op, &at[i]);
    }
    while (eddy_vm_counters_read(session.vm).nodes_made < AHEAD + 1 + BEHIND)
        sched_yield();
    run_pieces(&session, AHEAD + 1 + BEHIND); /* their marks */
    session_settle(&session);
    for (int i = AHEAD + 1; i < AHEAD + 1 + BEHIND; i++)
        cr_assert_gt(at[i], at[AHEAD], "call %d", i);
    release_all(&session, all, AHEAD + 1 + BEHIND);
    session_close(&session);
}

/* ---- failures ---- */

Test(device_own, a_failed_count_is_not_filled) {
    ON_EACH_PATH_OWN(session, 10) {
        eddy_storage_number input = make(&session, NULL, 3);
        eddy_storage_number late = make_late(&session, input, (own_arguments){.fails = true});
        eddy_storage_number behind = make_late(&session, late, (own_arguments){0});
        expect_failure(&session, late, EDDY_OUT_OF_RANGE);
        expect_failure(&session, behind, EDDY_OUT_OF_RANGE);
        eddy_shape shape;
        cr_assert_eq(eddy_vm_late_shape(session.vm, late, &forever, &shape), EDDY_OUT_OF_RANGE);
        taken_error();
        release_all(&session, (eddy_storage_number[]){input, late, behind}, 3);
    }
}

Test(device_own, shapes_may_fail) {
    ON_EACH_PATH_OWN(session, 10) {
        eddy_storage_number input = make(&session, NULL, 3);
        eddy_storage_number late = make_late(&session, input, (own_arguments){.overflows = true});
        expect_failure(&session, late, EDDY_SIZE_OVERFLOW);
        cr_assert_eq(eddy_vm_counters_read(session.vm).errors_made, 1);
        release_all(&session, (eddy_storage_number[]){input, late}, 2);
    }
}

/* What comes between the two writes to its own. */
Test(device_own, a_workspace_stays_from_count_to_fill) {
    ON_EACH_PATH_OWN(session, 10) {
        eddy_storage_number inputs[6], late[6], others[6];
        for (int i = 0; i < 6; i++) {
            session.stream = session.far_streams[i % 2];
            inputs[i] = make(&session, NULL, 1 + i);
            late[i] = make_late(&session, inputs[i], (own_arguments){0});
            others[i] = make(&session, NULL, 0);
        }
        for (int i = 0; i < 6; i++)
            expect_late(&session, late[i], 1 + i);
        release_all(&session, others, 6);
        release_all(&session, inputs, 6);
        release_all(&session, late, 6);
    }
}

Test(device_own, a_device_may_be_lost_between_count_and_fill) {
    for (int has_second = 0; has_second < 2; has_second++) {
        vm_session session = open_by_hand();
        eddy_storage_number input = make(&session, NULL, 3), other;
        eddy_storage_number late = make_late(&session, input, (own_arguments){0});
        await_ticket(&session, 1);
        run_pieces(&session, 2);
        await_ticket(&session, 2);
        run_pieces(&session, has_second ? 2 : 1);
        if (has_second)
            await_ticket(&session, 3);
        eddy_far_lose(session.far);
        other = make(&session, NULL, 1);
        expect_failure(&session, late, EDDY_DEVICE_LOST);
        expect_failure(&session, other, EDDY_DEVICE_LOST);
        release_all(&session, (eddy_storage_number[]){input, late, other}, 3);
        session_close(&session);
    }
}

/* ---- memory ---- */

#define MB_CELLS (1 << 17)

Test(device_own, what_never_fits_is_not_filled) {
    ON_EACH_PATH(session) {
        session_own(&session, (eddy_far_options){.seed = 1, .bytes = 8 << 20});
        eddy_storage_number all[] = {make(&session, NULL, 5 * MB_CELLS), 0, 0, 0};
        all[1] = make_late(&session, all[0], (own_arguments){0});
        expect_late(&session, all[1], 5 * MB_CELLS);
        all[2] = make_late(&session, all[0], (own_arguments){0});
        all[3] = make(&session, NULL, 2);
        expect_failure(&session, all[2], EDDY_OUT_OF_MEMORY);
        cr_assert_eq(session_read(&session, all[3]), 2);
        release_all(&session, all, 4);
    }
}

static void await_stalled(vm_session *session) {
    while (!eddy_launcher_is_stalled(session->vm->devices[session->device]->launcher))
        sched_yield();
}

/* Another stream reads what is released. */
Test(device_own, a_fill_waits_for_memory) {
    vm_session session = session_open_threads(2);
    session_own(&session, (eddy_far_options){.is_by_hand = true, .bytes = 8 << 20});
    eddy_storage_number input = make(&session, NULL, 5 * MB_CELLS);
    eddy_storage_number large = make_late(&session, input, (own_arguments){0});
    run_pieces(&session, 6);
    eddy_vm_operand reading[] = {{.storage = large}, new_cells(&session)};
    session.stream = session.far_streams[1];
    submit(&session, &copy_op, reading, 2, (own_arguments){0});
    session_release(&session, large);
    session.stream = session.far_streams[0];
    eddy_storage_number late = make_late(&session, input, (own_arguments){0});
    await_ticket(&session, 5);
    run_pieces(&session, 2); /* of the first stream */
    await_stalled(&session);
    run_pieces(&session, 4);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, late, &forever), EDDY_OK);
    release_all(&session, (eddy_storage_number[]){input, reading[1].storage, late}, 3);
    session_close(&session);
}

/* At any moment: also where the engine makes shapes. */
static void *lose(void *far) {
    eddy_far_lose(far);
    return NULL;
}

Test(device_own, a_device_may_be_lost_at_any_moment) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        vm_session session = session_open(session_paths[seed % 3]);
        session_own(&session, (eddy_far_options){.seed = seed});
        eddy_storage_number input = make(&session, NULL, 1);
        pthread_t thread;
        for (int i = 0; i < 20; i++) {
            if (i == (int)(seed % 20))
                start_thread(&thread, lose, session.far);
            session.stream = session.far_streams[i % 3];
            session_release(&session, make_late(&session, input, (own_arguments){0}));
            make(&session, &input, i + 2);
        }
        session_settle(&session);
        join_thread(thread);
        session_release(&session, input);
        session_close(&session);
    }
}
