/* Random programs, of which memory does not suffice for all, on two small devices and the host, and on a device that runs no code of the host (vm/DEVICES.md 4): each call ends, and what has not failed
 * is right. */
#include "short_of_memory.h"

static void gone(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error) {
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, test_origin,
                    instruction->sequence - 1 - (uint64_t)operand, "operand was given up");
}
static size_t workspace_of(const eddy_vm_run *run) {
    return (size_t)((const synthetic_arguments *)run->instruction->arguments)->sleep_ns;
}
static void work_run(const eddy_vm_run *run) {
    synthetic_arguments arguments = *(const synthetic_arguments *)run->instruction->arguments;
    if (arguments.sleep_ns && run->workspace)
        memset(run->workspace, 0x5a, (size_t)arguments.sleep_ns);
    arguments.sleep_ns = 0;
    eddy_vm_instruction instruction = *run->instruction;
    instruction.arguments = &arguments;
    eddy_vm_run inner = *run;
    inner.instruction = &instruction;
    synthetic_run(&inner);
}
static const eddy_vm_descriptor give_up_op = {.run = synthetic_run,
                                              .name = synthetic_name,
                                              .describe = synthetic_describe,
                                              .explain = synthetic_explain,
                                              .end = synthetic_end,
                                              .gone = gone};
static const eddy_vm_descriptor work_op = {.run = work_run,
                                           .workspace = workspace_of,
                                           .name = synthetic_name,
                                           .describe = synthetic_describe,
                                           .explain = synthetic_explain,
                                           .end = synthetic_end};
static const eddy_vm_descriptor late_op = {.run = work_run,
                                           .workspace = workspace_of,
                                           .count = synthetic_count,
                                           .name = synthetic_name,
                                           .describe = synthetic_describe,
                                           .explain = synthetic_explain,
                                           .end = synthetic_end};

#define ALIVE 10
typedef struct tensor {
    eddy_storage_number number;
    int64_t value, bytes;
    uint8_t on; /* session: 0 host, 1, 2 */
} tensor;

typedef struct issuer {
    vm_session sessions[3];
    uint64_t random;
    int calls;
    bool may_lose, checks;
    tensor alive[ALIVE];
    pthread_t thread;
} issuer;

static int64_t a_size(issuer *self) {
    switch (next_random(&self->random) % 6) {
    case 0:
        return 3 << 20;
    case 1:
    case 2:
        return 1 << 20;
    case 3:
        return 300 << 10;
    default:
        return 64;
    }
}

static eddy_vm_stream *a_stream(issuer *self, int on) {
    return on == 0 ? NULL : self->sessions[on].far_streams[next_random(&self->random) % 3];
}

static void submit(issuer *self, int on, const eddy_vm_descriptor *descriptor,
                   eddy_vm_operand *operands, int64_t count, synthetic_arguments *arguments) {
    eddy_vm_call call = {
        .instruction = {.descriptor = descriptor, .arguments = arguments, .operand_count = count},
        .argument_bytes = sizeof(*arguments),
        .operands = operands,
        .stream = a_stream(self, on),
        .cost_ps = COST_CALLER,
        .part_count = 8};
    cr_assert_eq(synthetic_submit(self->sessions[on].vm, &call), EDDY_OK);
}

static tensor make(issuer *self, int on, const tensor *input) {
    int64_t seed = next_random(&self->random);
    uint32_t kind = next_random(&self->random) % 8;
    eddy_vm_operand operands[2] = {{.storage = input ? input->number : 0}};
    int n = input ? 1 : 0;
    synthetic_arguments arguments = {.seed = seed, .accesses = INT64_C(1) << 2 * n};
    bool is_late = kind < 3 && on != 0;
    int64_t bytes = a_size(self);
    operands[n] = (eddy_vm_operand){.access = is_late ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT,
                                    .is_new = true,
                                    .covers_all = true,
                                    .device = self->sessions[on].device,
                                    .bytes = is_late ? 0 : bytes};
    arguments.late_count = bytes / 8;
    if (kind % 2 && next_random(&self->random) % 3 == 0)
        arguments.sleep_ns = 1 << 20;
    if (!is_late && !(kind % 2))
        arguments.sleep_ns = 0;
    submit(self, on,
           is_late    ? (kind % 2 ? &late_op : &synthetic_late_op)
           : kind % 2 ? &work_op
                      : &synthetic_op,
           operands, n + 1, &arguments);
    return (tensor){operands[n].storage, input ? value_from(seed, input->value) : value_of(seed, 0),
                    bytes, (uint8_t)on};
}

static void drop(issuer *self, tensor *t) {
    session_release(&self->sessions[0], t->number);
    t->number = 0;
}

static void check(issuer *self, tensor *t) {
    int64_t value = 0;
    eddy_status status =
        eddy_vm_read_small(self->sessions[0].vm, t->number, 0, sizeof(value), &value, &forever);
    taken_error();
    if (status == EDDY_OK)
        cr_assert_eq(value, t->value, "wrong value");
    else
        cr_assert(status == EDDY_OUT_OF_MEMORY || status == EDDY_SKIPPED || status == EDDY_TORN ||
                      status == EDDY_DEVICE_LOST || status == EDDY_INVALID_ARGUMENT,
                  "status %d", (int)status);
    if (status == EDDY_DEVICE_LOST || status == EDDY_TORN)
        cr_assert(self->may_lose || status == EDDY_TORN, "lost");
}

typedef struct expected {
    int64_t value;
    bool may_lose;
} expected;

static void on_access(void *context, void *data, int64_t bytes, const eddy_error *error) {
    expected *e = context;
    (void)error;
    (void)bytes;
    if (data) {
        cr_assert_eq(*(int64_t *)data, e->value, "wrong value in a callback");
    }
    free(e);
}

static void step(issuer *self) {
    tensor *t = &self->alive[next_random(&self->random) % ALIVE],
           *from = &self->alive[next_random(&self->random) % ALIVE];
    eddy_vm *vm = self->sessions[0].vm;
    uint32_t kind = next_random(&self->random) % 100;
    if (kind < 55) {
        tensor made = make(self, from->on, from);
        drop(self, t);
        *t = made;
    } else if (kind < 62) { /* in place */
        int64_t seed = next_random(&self->random);
        eddy_vm_operand operand = {.storage = t->number, .access = EDDY_ACCESS_MUT};
        synthetic_arguments arguments = {.seed = seed, .accesses = 2};
        submit(self, t->on, &synthetic_op, &operand, 1, &arguments);
        t->value = synthetic_mix(t->value, seed);
    } else if (kind < 64) { /* gives up `t`, and makes another in its place */
        int64_t seed = next_random(&self->random), bytes = a_size(self);
        bool is_bare = next_random(&self->random) % 2;
        eddy_vm_operand operands[2] = {{.access = EDDY_ACCESS_MUT,
                                        .is_new = true,
                                        .covers_all = true,
                                        .device = self->sessions[t->on].device,
                                        .bytes = bytes},
                                       {.storage = t->number,
                                        .access = EDDY_ACCESS_MUT,
                                        .covers_all = is_bare,
                                        .is_given_up = true}};
        synthetic_arguments arguments = {.seed = seed, .accesses = 1 | (is_bare ? 3 : 2) << 2};
        submit(self, t->on, &give_up_op, operands, 2, &arguments);
        int on = t->on;
        drop(self, t);
        *t = (tensor){operands[0].storage, value_of(seed, 0), bytes, (uint8_t)on};
    } else if (kind < 76) { /* a copy */
        int to = (int)(next_random(&self->random) % 3);
        if (to == 0 && from->on == 0)
            return;
        eddy_storage_number copy = 0;
        int64_t bytes = 64;
        cr_assert_eq(
            eddy_vm_copy(vm, NULL, from->number, 0, bytes, self->sessions[to].device, NULL, &copy),
            EDDY_OK);
        int64_t value = from->value;
        drop(self, t);
        *t = (tensor){copy, value, bytes, (uint8_t)to};
    } else if (kind < 80) {
        check(self, t);
    } else if (kind < 86) { /* a lend */
        bool is_mut = next_random(&self->random) % 2;
        void *data;
        eddy_vm_lend *lend;
        eddy_status status = eddy_vm_lend_begin(vm, t->number, is_mut, &forever, &data, &lend);
        if (status != EDDY_OK) {
            taken_error();
            return;
        }
        cr_assert_eq(*(int64_t *)data, t->value, "wrong value in a lend");
        for (uint32_t i = next_random(&self->random) % 8; i-- > 0;) {
            tensor made = make(self, from->on, from == t ? NULL : from);
            tensor *other = &self->alive[next_random(&self->random) % ALIVE];
            if (other == t || other == from) {
                drop(self, &made);
                continue;
            }
            drop(self, other);
            *other = made;
        }
        if (is_mut) {
            t->value = next_random(&self->random);
            *(int64_t *)data = t->value;
        }
        eddy_vm_lend_end(vm, lend, false);
    } else if (kind < 90) { /* a lend there */
        if (t->on == 0)
            return;
        void *data, *native;
        eddy_vm_lend *lend;
        eddy_status status =
            eddy_vm_lend_begin_there(vm, t->number, next_random(&self->random) % 2,
                                     a_stream(self, t->on), &forever, &data, &native, &lend);
        if (status != EDDY_OK) {
            taken_error();
            return;
        }
        eddy_status ended = eddy_vm_lend_end_there(vm, lend);
        (void)ended;
    } else if (kind < 94) { /* a callback */
        expected *e = malloc(sizeof(*e));
        *e = (expected){t->value, self->may_lose};
        if (eddy_vm_access(vm, t->number, false, on_access, e, test_origin) != EDDY_OK) {
            taken_error();
            free(e);
        }
    } else if (kind < 97) { /* one stream waits for another */
        int a = 1 + (int)(next_random(&self->random) % 2),
            b = 1 + (int)(next_random(&self->random) % 2);
        eddy_vm_event *event;
        cr_assert_eq(eddy_vm_event_record(vm, a_stream(self, a), test_origin, &event), EDDY_OK);
        cr_assert_eq(eddy_vm_stream_wait(vm, a_stream(self, b), event, test_origin), EDDY_OK);
        eddy_vm_event_release(event);
    } else if (kind < 98) {
        eddy_vm_memory_trim(vm, self->sessions[1 + next_random(&self->random) % 2].device);
    } else if (kind < 99) {
        char text[2000];
        size_t length;
        eddy_vm_explain(vm, t->number, text, sizeof(text), &length);
    }
    if (self->may_lose && next_random(&self->random) % 1000 == 0)
        eddy_far_lose(self->sessions[1 + next_random(&self->random) % 2].far);
}

static void *issue(void *context) {
    issuer *self = context;
    for (int i = 0; i < ALIVE; i++) {
        uint32_t on = next_random(&self->random) % 8;
        self->alive[i] = make(self, on == 0 ? 0 : 1 + (int)(on % 2), NULL);
    }
    for (int i = 0; i < self->calls; i++)
        step(self);
    for (int i = 0; i < ALIVE; i++) {
        if (self->checks)
            check(self, &self->alive[i]);
        drop(self, &self->alive[i]);
    }
    return NULL;
}

#define SEEDS 6
#define CALLS 400

static void run_all(uint64_t first, int thread_count, bool may_lose, eddy_runtime_options options) {
    for (uint64_t seed = first; seed < first + ROUNDS_OF(SEEDS); seed++) {
        vm_session none = session_open(options);
        vm_session one = with_far(none, (eddy_far_options){.seed = seed, .bytes = 20 << 20}),
                   two = with_far(none, (eddy_far_options){.seed = seed + 1, .bytes = 10 << 20});
        issuer issuers[3];
        for (int i = 0; i < thread_count; i++) {
            issuers[i] = (issuer){.sessions = {none, one, two},
                                  .random = seed * 7 + (uint64_t)i,
                                  .calls = CALLS,
                                  .may_lose = may_lose,
                                  .checks = (seed + (uint64_t)i) % 4 != 0};
            if (i > 0)
                start_thread(&issuers[i].thread, issue, &issuers[i]);
        }
        issue(&issuers[0]);
        for (int i = 1; i < thread_count; i++)
            join_thread(issuers[i].thread);
        for (int i = 0; i < 3; i++)
            eddy_vm_stream_release(one.far_streams[i]);
        if (seed % 3)
            session_settle(&two);
        session_close(&two);
    }
}

Test(shortage_random, one_issuer) {
    run_all(1000, 1, false, (eddy_runtime_options){.threads = 2});
}
Test(shortage_random, three_issuers) {
    run_all(2000, 3, false, (eddy_runtime_options){.threads = 2});
}
Test(shortage_random, lost) {
    run_all(3000, 2, true, (eddy_runtime_options){.threads = 2});
}
Test(shortage_random, full_path) {
    run_all(4000, 2, false, (eddy_runtime_options){.threads = 2, .uses_full_path = true});
}
Test(shortage_random, worker_path) {
    run_all(5000, 2, true, (eddy_runtime_options){.threads = 3, .uses_worker_path = true});
}
Test(shortage_random, one_thread) {
    run_all(6000, 1, false, (eddy_runtime_options){.uses_one_thread = true});
}
Test(shortage_random, one_thread_shared) {
    run_all(7000, 2, true, (eddy_runtime_options){.uses_one_thread = true});
}

/* ---- runs in rounds of many tickets; nothing runs but marks ---- */

typedef struct rounds_arguments {
    int64_t rounds, workspace_bytes, calls;
    bool gives_up;
} rounds_arguments;

static const rounds_arguments *rounds_of(const eddy_vm_instruction *instruction) {
    return instruction->arguments;
}
static void run_nothing(const eddy_vm_run *run) {
    (void)run;
}
static size_t rounds_workspace(const eddy_vm_run *run) {
    return (size_t)rounds_of(run->instruction)->workspace_bytes;
}
static uint32_t rounds_calls(const eddy_vm_instruction *instruction) {
    return (uint32_t)rounds_of(instruction)->calls;
}
static size_t rounds_state(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return sizeof(int64_t);
}
static bool rounds_another(const eddy_vm_run *run) {
    int64_t *ended = run->state;
    return ++*ended < rounds_of(run->instruction)->rounds;
}
static const eddy_vm_rounds rounds_class = {
    .call_count = rounds_calls, .state_bytes = rounds_state, .goes_on = rounds_another};
static const eddy_vm_descriptor call_op = {.run = run_nothing, .name = synthetic_name};
static const eddy_vm_descriptor rounds_op = {.run = run_nothing,
                                             .workspace = rounds_workspace,
                                             .name = synthetic_name,
                                             .is_program = true,
                                             .rounds = &rounds_class,
                                             .gone = gone};

static void rounds_run(uint64_t seed, int calls, bool may_lose) {
    vm_session session = session_open_threads(2);
    session_own(&session, (eddy_far_options){.seed = seed, .bytes = 8 << 20});
    uint64_t random = seed;
    static eddy_storage_number alive[16];
    for (int i = 0; i < 16; i++) {
        eddy_vm_operand target = {.access = EDDY_ACCESS_MUT,
                                  .is_new = true,
                                  .covers_all = true,
                                  .device = session.device,
                                  .bytes = 64};
        cr_assert_eq(session_submit(&session, &call_op, &target, 1, NULL, 0), EDDY_OK);
        alive[i] = target.storage;
    }
    for (int i = 0; i < calls; i++) {
        session.stream = session.far_streams[next_random(&random) % 3];
        int a = (int)(next_random(&random) % 16), b = (int)(next_random(&random) % 16);
        uint32_t kind = next_random(&random) % 40;
        if (kind < 3) {
            rounds_arguments arguments = {
                .rounds = 1 + next_random(&random) % 4,
                .workspace_bytes = next_random(&random) % 2 ? 3 << 20 : 64,
                .calls = next_random(&random) % 4 ? next_random(&random) % 300
                                                  : next_random(&random) % 1900,
                .gives_up = false};
            eddy_vm_operand target = {.storage = alive[a], .access = EDDY_ACCESS_MUT};
            eddy_vm_call call = {.instruction = {.descriptor = &rounds_op,
                                                 .arguments = &arguments,
                                                 .operand_count = 1},
                                 .argument_bytes = sizeof(arguments),
                                 .operands = &target,
                                 .stream = session.stream,
                                 .cost_ps = session.cost_ps,
                                 .part_count = 1};
            cr_assert_eq(eddy_vm_submit(session.vm, &call), EDDY_OK);
        } else {
            eddy_vm_operand operands[2] = {{.storage = alive[a]},
                                           {.access = EDDY_ACCESS_MUT,
                                            .is_new = true,
                                            .covers_all = true,
                                            .device = session.device,
                                            .bytes = kind < 8 ? 3 << 20 : 64}};
            cr_assert_eq(session_submit(&session, &call_op, operands, 2, NULL, 0), EDDY_OK);
            session_release(&session, alive[b]);
            alive[b] = operands[1].storage;
        }
        if (may_lose && next_random(&random) % 2000 == 0)
            eddy_far_lose(session.far);
        if (next_random(&random) % 3000 == 0)
            session_settle(&session);
    }
    for (int i = 0; i < 16; i++)
        session_release(&session, alive[i]);
    session_close(&session);
}

Test(shortage_random, rounds) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(SEEDS); seed++)
        rounds_run(seed, 6000, seed % 3 == 0);
}

/* ---- a full window is taken back ---- */

typedef struct random_stepper {
    eddy_backend *far;
    uint64_t random;
    _Atomic bool is_ending;
    pthread_t thread;
} random_stepper;

static void *random_step_main(void *context) {
    random_stepper *self = context;
    while (!eddy_load_acquire(&self->is_ending))
        if (!eddy_far_step(self->far, next_random(&self->random)))
            sched_yield();
    return NULL;
}

static void full_window(uint64_t seed) {
    uint64_t random = seed;
    vm_session session = session_open_threads(2);
    session_far(&session, (eddy_far_options){.is_by_hand = true, .bytes = 8 << 20});
    random_stepper stepping = {.far = session.far, .random = seed};
    /* Tickets begin anywhere. */
    eddy_storage_number alive[8];
    int64_t values[8];
    for (int i = 0; i < 8; i++) {
        alive[i] = session_make_sized(&session, i, 64, 0, NULL);
        values[i] = value_of(i, 0);
    }
    eddy_storage_number input = session_make_sized(&session, 1, 5 << 20, 0, NULL);
    start_thread(&stepping.thread, random_step_main, &stepping);
    uint32_t before = next_random(&random) % 3000;
    for (uint32_t i = 0; i < before; i++) {
        session_release(&session, alive[0]);
        alive[0] = session_make_sized(&session, 0, 64, 0, NULL);
    }
    session_settle(&session);
    eddy_store_release(&stepping.is_ending, true);
    join_thread(stepping.thread);
    stepping.is_ending = false;
    uint64_t first = 9 + before; /* tickets so far */
    eddy_vm_operand operands[2] = {
        {.storage = input},
        {.access = EDDY_ACCESS_MUT2, .is_new = true, .covers_all = true, .device = session.device}};
    synthetic_arguments arguments = {.seed = 2, .late_count = 8, .accesses = 1 << 2};
    cr_assert_eq(
        session_submit(&session, &synthetic_late_op, operands, 2, &arguments, sizeof(arguments)),
        EDDY_OK);
    session_release(&session, input);
    await_ticket(&session, first + 1);
    session.stream = session.far_streams[next_random(&random) % 3];
    eddy_storage_number large = session_make_sized(&session, 3, 5 << 20, 1, &alive[0]);
    int64_t large_value = value_from(3, values[0]);
    int count = 1000 + (int)(next_random(&random) % 1000), made = 0;
    for (int i = 0; i < count; i++) {
        session.stream = session.far_streams[next_random(&random) % 3];
        int a = (int)(next_random(&random) % 8), b = (int)(next_random(&random) % 8);
        uint32_t kind = next_random(&random) % 10;
        if (kind == 0) {
            session_mix_in(&session, alive[a], 1000 + i, 0, NULL);
            values[a] = synthetic_mix(values[a], 1000 + i);
            made++;
        } else if (kind == 1 && made + 4 < count && session.stream != session.far_streams[0]) {
            eddy_vm_event *event;
            cr_assert_eq(eddy_vm_event_record(session.vm, session.stream, test_origin, &event),
                         EDDY_OK);
            cr_assert_eq(eddy_vm_stream_wait(session.vm,
                                             session.far_streams[next_random(&random) % 3], event,
                                             test_origin),
                         EDDY_OK);
            eddy_vm_event_release(event);
            made += 2;
        } else {
            eddy_storage_number next = session_make_sized(&session, 1000 + i, 64, 1, &alive[a]);
            int64_t value = value_from(1000 + i, values[a]);
            session_release(&session, alive[b]);
            alive[b] = next;
            values[b] = value;
            made++;
        }
    }
    eddy_vm_wait briefly = {50000000, test_origin};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, large, &briefly), EDDY_TIMED_OUT);
    taken_error();
    start_thread(&stepping.thread, random_step_main, &stepping);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(session_read(&session, alive[i]), values[i]);
    int64_t value = 0;
    eddy_status status = eddy_vm_read_small(session.vm, large, 0, 8, &value, &forever);
    taken_error();
    cr_assert(status == EDDY_OK && value == large_value, "status %d", (int)status);
    cr_assert_eq(session_read(&session, operands[1].storage), value_from(2, value_of(1, 0)));
    for (int i = 0; i < 8; i++)
        session_release(&session, alive[i]);
    session_release(&session, large);
    session_release(&session, operands[1].storage);
    session_settle(&session);
    eddy_store_release(&stepping.is_ending, true);
    join_thread(stepping.thread);
    session_close(&session);
}

Test(shortage_random, full_window) {
    for (uint64_t seed = 1; seed <= ROUNDS_OF(SEEDS); seed++)
        full_window(seed);
}
