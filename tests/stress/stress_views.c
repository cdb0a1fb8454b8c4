/* Random programs at the public functions against the oracle, on every path.
 *
 *   stress_views PROGRAMS [SEED [THREADS]]
 *
 * Each program runs once on each path; up to THREADS threads take its steps in turn and hand the tensors on. Prints the seed of
 * the first difference. */
#include "views.h"
#include "watch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define STEPS 60
#define THREADS_MAX 4

typedef struct shared_run {
    views_run run;
    eddy_runtime *runtime;
    int thread_count;
    atomic_int turn; /* the next step; release hands the run on */
} shared_run;

typedef struct issuer {
    shared_run *shared;
    int number;
} issuer;

static void *issue(void *context) {
    issuer *me = context;
    shared_run *shared = me->shared;
    must(eddy_runtime_use(shared->runtime) == EDDY_OK);
    for (;;) {
        int turn = atomic_load_explicit(&shared->turn, memory_order_acquire);
        if (turn >= STEPS)
            break;
        if ((int)((shared->run.seed * 31 + (uint64_t)turn * 7919 / 13) %
                  (uint64_t)shared->thread_count) != me->number) {
            sched_yield();
            continue;
        }
        views_step(&shared->run, turn);
        atomic_store_explicit(&shared->turn, turn + 1, memory_order_release);
    }
    must(eddy_runtime_use(NULL) == EDDY_OK);
    return NULL;
}

static void run_program(shared_run *shared, uint64_t seed, const char *path) {
    views_begin(&shared->run, seed, path);
    atomic_store_explicit(&shared->turn, 0, memory_order_relaxed);
    pthread_t threads[THREADS_MAX];
    issuer issuers[THREADS_MAX];
    for (int i = 0; i < shared->thread_count; i++) {
        issuers[i] = (issuer){shared, i};
        if (i > 0)
            must(pthread_create(&threads[i], NULL, issue, &issuers[i]) == 0);
    }
    issue(&issuers[0]);
    for (int i = 1; i < shared->thread_count; i++)
        pthread_join(threads[i], NULL);
    views_end(&shared->run, STEPS);
}

int main(int argc, char **argv) {
    long programs = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 2;
    if (threads < 1 || threads > THREADS_MAX)
        threads = THREADS_MAX;
    static const struct {
        const char *name;
        eddy_runtime_options options;
    } paths[] = {
        {"caller", {.threads = 2}},
        {"scheduler", {.threads = 2, .uses_full_path = true}},
        {"worker", {.threads = 3, .uses_worker_path = true}},
        {"one thread", {.uses_one_thread = true}},
    };
    enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
    static shared_run shared[PATHS];
    watch_begin("views", seed);
    for (int i = 0; i < PATHS; i++)
        must((shared[i].runtime = eddy_runtime_create(&paths[i].options)) != NULL);
    for (long p = 0; p < programs; p++) {
        watch();
        for (int i = 0; i < PATHS; i++) {
            /* As many as there may be in a fourth of the programs: handing on takes longer than the steps. */
            shared[i].thread_count = (p + i) % 4 == 0 ? threads : 1;
            run_program(&shared[i], seed + (uint64_t)p, paths[i].name);
        }
    }
    must(eddy_live_count() == 0);
    for (int i = 0; i < PATHS; i++) {
        must(eddy_runtime_shutdown(shared[i].runtime, EDDY_FOREVER) == EDDY_OK);
        eddy_runtime_release(&shared[i].runtime);
    }
    printf("%ld programs on %d paths agree with the oracle\n", programs, PATHS);
    return 0;
}
