/* How VMs begin and end.
 *
 *   stress_life ROUNDS [SEED]
 *
 * Created and closed again and again, alone and beside another; closed while busy and with an open lend; forked while busy; used
 * by many short-lived threads; without threads to be had. Each ends as DESIGN says, and none hangs. */
#include "../vm/synthetic.h"
#include "program.h"
#include "watch.h"

#include <base/sleep.h>
#include <base/status.h>
#include <base/thread.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <vm/machine.h>

#define COST_WORKER INT64_C(10000000000)

static const eddy_vm_wait forever = {EDDY_CLOCK_FOREVER, {"stress", NULL}};

static eddy_vm *create(const eddy_runtime_options *options) {
    eddy_vm *vm;
    must(eddy_vm_create(options, &vm) == EDDY_OK);
    return vm;
}

static void close_and_destroy(eddy_vm *vm) {
    must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(vm);
}

/* One operand: new where *storage is 0, else in place. */
static eddy_status call(eddy_vm *vm, eddy_storage_number *storage, int64_t seed, int64_t cost_ps) {
    bool is_new = *storage == 0;
    synthetic_arguments arguments = {.seed = seed, .accesses = is_new ? 1 : 2};
    eddy_vm_operand operand = {.storage = *storage,
                               .access = EDDY_ACCESS_MUT,
                               .is_new = is_new,
                               .covers_all = is_new,
                               .bytes = 32};
    eddy_vm_call made = {
        .instruction = {.descriptor = &synthetic_op, .arguments = &arguments, .operand_count = 1},
        .argument_bytes = sizeof(arguments),
        .operands = &operand,
        .cost_ps = cost_ps};
    eddy_status status = synthetic_submit(vm, &made);
    *storage = operand.storage;
    return status;
}

/* A chain on one storage; what its first cell comes to. */
static int64_t run_chain(eddy_vm *vm, eddy_storage_number *storage, int length, uint64_t *state) {
    int64_t expected = 0;
    for (int i = 0; i < length; i++) {
        int64_t seed = (int64_t)(program_random(state) >> 8);
        static const int64_t costs[5] = {100000, 2000000, 20000000, 100000000, COST_WORKER};
        bool is_new = *storage == 0;
        must(call(vm, storage, seed, costs[program_random(state) % 5]) == EDDY_OK);
        expected = is_new ? synthetic_mix(seed, 0) : synthetic_mix(expected, seed);
    }
    return expected;
}

static void check_chain(eddy_vm *vm, eddy_storage_number storage, int64_t expected) {
    int64_t found;
    must(eddy_vm_read_small(vm, storage, 0, 8, &found, &forever) == EDDY_OK);
    must(found == expected);
}

static eddy_runtime_options mode(int number) {
    static const eddy_runtime_options modes[5] = {{.threads = 2},
                                                  {.threads = 2, .uses_full_path = true},
                                                  {.threads = 3, .uses_worker_path = true},
                                                  {.uses_one_thread = true},
                                                  {.threads = 2, .in_flight_high = 8}};
    return modes[number % 5];
}

/* ---- again and again ---- */

static void create_and_close(long rounds, uint64_t *state) {
    eddy_vm *lasting = NULL; /* now and then one that keeps the team alive */
    for (long i = 0; i < rounds; i++) {
        watch();
        eddy_runtime_options options = mode((int)i);
        if (i % 50 == 10)
            lasting = create(&(eddy_runtime_options){.threads = 2, .uses_worker_path = true});
        eddy_vm *vm = create(&options);
        eddy_storage_number kept = 0, released = 0;
        run_chain(vm, &kept, 1 + (int)(program_random(state) % 20), state);
        run_chain(vm, &released, 1 + (int)(program_random(state) % 20), state);
        synthetic_release(vm, released);
        if (lasting) {
            eddy_storage_number other = 0;
            run_chain(lasting, &other, 5, state);
            synthetic_release(lasting, other);
        }
        must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
        if (i % 2)
            synthetic_release(vm, kept); /* a handle that outlives its runtime */
        must(call(vm, &(eddy_storage_number){0}, 1, 0) == EDDY_SHUT_DOWN);
        eddy_error_take(NULL);
        eddy_vm_destroy(vm);
        if (i % 50 == 40) {
            close_and_destroy(lasting);
            lasting = NULL;
        }
    }
    if (lasting)
        close_and_destroy(lasting);
    watch_no_memory_held();
}

/* ---- closed while others use it ---- */

typedef struct careless_user {
    eddy_vm *vm;
    uint64_t state;
    int number;
    eddy_status ended_by;
} careless_user;

/* Uses the VM until it is refused. */
static void *use_until_refused(void *context) {
    careless_user *user = context;
    eddy_vm *vm = user->vm;
    eddy_status status = EDDY_OK;
    while (status == EDDY_OK) {
        eddy_storage_number a = 0;
        for (int i = 0; i < 4 && status == EDDY_OK; i++)
            status = call(vm, &a, i, i % 2 ? COST_WORKER : 100000);
        int64_t value;
        void *data;
        eddy_vm_lend *lend;
        eddy_vm_event *event;
        if (status == EDDY_OK)
            switch (program_random(&user->state) % 5) {
            case 0:
                status = eddy_vm_read_small(vm, a, 0, 8, &value, &forever);
                break;
            case 1:
                status = eddy_vm_sync(vm, &forever, NULL);
                break;
            case 2:
                status = eddy_vm_lend_begin(vm, a, true, &forever, &data, &lend);
                if (status == EDDY_OK)
                    eddy_vm_lend_end(vm, lend, false);
                break;
            case 3:
                status = eddy_vm_event_record(vm, NULL, (eddy_origin){"test", NULL}, &event);
                if (status == EDDY_OK) {
                    status = eddy_vm_event_wait(event, &forever);
                    eddy_vm_event_release(event);
                }
                break;
            default:
                status = eddy_vm_sync_service(vm, &forever);
                break;
            }
        if (a)
            synthetic_release(vm, a);
    }
    eddy_error_take(NULL);
    user->ended_by = status;
    return NULL;
}

static void close_under_use(long rounds, uint64_t *state) {
    for (long i = 0; i < rounds; i++) {
        watch();
        eddy_runtime_options options = mode((int)i);
        eddy_vm *vm = create(&options);
        careless_user users[3];
        pthread_t threads[3];
        for (int u = 0; u < 3; u++) {
            users[u] = (careless_user){vm, program_random(state), u, EDDY_OK};
            must(pthread_create(&threads[u], NULL, use_until_refused, &users[u]) == 0);
        }
        while (eddy_vm_counters_read(vm).submitted < program_random(state) % 200)
            sched_yield();
        must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
        for (int u = 0; u < 3; u++) {
            pthread_join(threads[u], NULL);
            must(users[u].ended_by == EDDY_SHUT_DOWN);
        }
        eddy_vm_destroy(vm);
    }
    watch_no_memory_held();
}

/* ---- busy ---- */

typedef struct gate_arguments {
    eddy_sleep_word *is_open;
} gate_arguments;

static void wait_at_gate(const eddy_vm_run *run) {
    eddy_sleep_word *is_open = ((const gate_arguments *)run->instruction->arguments)->is_open;
    while (eddy_load_acquire(is_open) == 0)
        eddy_sleep_wait(is_open, 0, EDDY_CLOCK_FOREVER);
}

static const eddy_vm_descriptor gate_op = {.run = wait_at_gate, .name = synthetic_name};

static eddy_storage_number start_gate(eddy_vm *vm, eddy_sleep_word *is_open) {
    gate_arguments arguments = {is_open};
    eddy_vm_operand operand = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 32};
    eddy_vm_call made = {
        .instruction = {.descriptor = &gate_op, .arguments = &arguments, .operand_count = 1},
        .argument_bytes = sizeof(arguments),
        .operands = &operand,
        .cost_ps = COST_WORKER};
    must(synthetic_submit(vm, &made) == EDDY_OK);
    return operand.storage;
}

static void open_gate(eddy_sleep_word *is_open) {
    eddy_store_release(is_open, 1u);
    eddy_sleep_wake_all(is_open);
}

static _Atomic int64_t clock_ns = 1;
static int64_t injected_clock(void) {
    /* Each look takes a tenth of a second: a second is over after ten. */
    return eddy_add_relaxed(&clock_ns, INT64_C(100000000));
}

/* What is abandoned stays: these are the last to run, each in a process of its own. */
static void close_while_busy(void) {
    eddy_sleep_word is_open = 0;
    eddy_vm *vm = create(&(eddy_runtime_options){.threads = 2});
    start_gate(vm, &is_open);
    eddy_clock_replace(injected_clock);
    must(eddy_vm_close(vm, INT64_C(1000000000)) == EDDY_TIMED_OUT);
    eddy_clock_replace(NULL);
    eddy_vm_destroy(vm);
    must(call(vm, &(eddy_storage_number){0}, 1, 0) == EDDY_SHUT_DOWN);
    /* Beside the abandoned one a new one works. */
    eddy_vm *other = create(&(eddy_runtime_options){.threads = 3, .uses_worker_path = true});
    uint64_t state = 5;
    eddy_storage_number a = 0;
    int64_t expected = run_chain(other, &a, 20, &state);
    check_chain(other, a, expected);
    open_gate(&is_open);
    synthetic_release(other, a);
    close_and_destroy(other);
}

static void close_with_an_open_lend(void) {
    eddy_vm *vm = create(&(eddy_runtime_options){.threads = 2});
    eddy_storage_number a = 0;
    uint64_t state = 7;
    run_chain(vm, &a, 3, &state);
    void *data;
    eddy_vm_lend *lend;
    must(eddy_vm_lend_begin(vm, a, true, &forever, &data, &lend) == EDDY_OK);
    eddy_storage_number behind = a;
    must(call(vm, &behind, 4, 0) == EDDY_OK);
    must(eddy_vm_close(vm, 1000000) == EDDY_TIMED_OUT);
    memset(data, 1, 32); /* still the lender's */
    eddy_vm_lend_end(vm, lend, false);
    synthetic_release(vm, a);
    eddy_vm_destroy(vm);
}

static void exit_while_busy(void) {
    eddy_sleep_word is_open = 0;
    eddy_vm *vm = create(&(eddy_runtime_options){.threads = 2});
    start_gate(vm, &is_open);
    exit(0); /* with a kernel inside; nobody joins */
}

static void fork_while_busy(void) {
    eddy_sleep_word is_open = 0;
    eddy_vm *vm = create(&(eddy_runtime_options){.threads = 2});
    eddy_storage_number gate = start_gate(vm, &is_open), a = 0;
    uint64_t state = 9;
    int64_t expected = run_chain(vm, &a, 200, &state);
    fflush(NULL);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        watch();
        int64_t value;
        must(call(vm, &(eddy_storage_number){0}, 1, 0) == EDDY_FORKED);
        must(eddy_vm_read_small(vm, a, 0, 8, &value, &forever) == EDDY_FORKED);
        synthetic_release(vm, a);
        must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_FORKED);
        eddy_vm_destroy(vm);
        /* ThreadSanitizer allows no threads after a fork; gcc 12's AddressSanitizer does not take its allocator's locks for
         * one, so that a thread of the child waits for ever where the parent's was allocating. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
        eddy_vm *fresh = create(&(eddy_runtime_options){.threads = 2});
        eddy_storage_number b = 0;
        int64_t wanted = run_chain(fresh, &b, 50, &state);
        check_chain(fresh, b, wanted);
        synthetic_release(fresh, b);
        close_and_destroy(fresh);
#endif
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_chain(vm, a, expected);
    open_gate(&is_open);
    synthetic_release(vm, a);
    synthetic_release(vm, gate);
    close_and_destroy(vm);
}

/* Runs it in a process of its own, which must end well. */
static void apart(void (*run)(void)) {
    fflush(NULL);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        watch();
        run();
        fflush(NULL);
        _exit(0); /* what was abandoned is no leak */
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- threads that come and go ---- */

typedef struct short_life {
    eddy_vm *vm;
    eddy_storage_number *handed_on; /* what the thread before has made */
    int64_t number;
} short_life;

static void *live_shortly(void *context) {
    short_life *life = context;
    eddy_storage_number a = 0;
    must(call(life->vm, &a, life->number, life->number % 3 == 0 ? COST_WORKER : 100000) == EDDY_OK);
    if (*life->handed_on)
        synthetic_release(life->vm, *life->handed_on);
    *life->handed_on = a;
    if (life->number % 7 == 0)
        check_chain(life->vm, a, synthetic_mix(life->number, 0));
    return NULL;
}

static void many_short_threads(long count) {
    eddy_vm *vm = create(&(eddy_runtime_options){.threads = 2});
    eddy_storage_number handed_on = 0;
    for (long i = 0; i < count; i++) {
        watch();
        short_life life = {vm, &handed_on, i};
        pthread_t thread;
        must(pthread_create(&thread, NULL, live_shortly, &life) == 0);
        pthread_join(thread, NULL);
    }
    /* Nothing is kept for a thread that is gone. */
    must(eddy_memory_counted(EDDY_MEMORY_HANDLE).bytes <=
         64 * (int64_t)sizeof(eddy_vm_release_link));
    synthetic_release(vm, handed_on);
    close_and_destroy(vm);
    watch_no_memory_held();
}

static void no_threads_to_be_had(uint64_t *state) {
    for (int64_t allowed = 0; allowed < 6; allowed++) {
        watch();
        eddy_thread_fail_at(allowed, 1 << 20);
        eddy_vm *vm = create(&(eddy_runtime_options){.threads = 4});
        eddy_storage_number a = 0;
        int64_t expected = run_chain(vm, &a, 100, state);
        check_chain(vm, a, expected);
        synthetic_release(vm, a);
        close_and_destroy(vm);
        eddy_thread_fail_at(0, 0);
    }
    watch_no_memory_held();
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t state = seed;
    watch_begin("life", seed);
    apart(close_while_busy);
    apart(close_with_an_open_lend);
    apart(exit_while_busy);
    apart(fork_while_busy);
    no_threads_to_be_had(&state);
    create_and_close(rounds, &state);
    close_under_use(rounds / 5, &state);
    many_short_threads(10 * rounds);
    printf("%ld rounds\n", rounds);
    return 0;
}
