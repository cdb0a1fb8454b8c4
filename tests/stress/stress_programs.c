/* Random programs against the sequential oracle, on every path.
 *
 *   stress_programs PROGRAMS [SEED [THREADS]]
 *
 * Each program runs once on each of: the caller's path, the scheduler's, the workers', one-thread mode with fake streams whose
 * every completion is drawn from the seed, the far device, and that and the host with copies between the two. On the threaded paths several issuing threads pass the program's steps round,
 * handing tensors on. Values, poison and blame must equal the oracle's. Prints the seed of the first difference. */
#include "run.h"
#include "watch.h"

#include <pthread.h>

#define THREADS_MAX 4

/* A VM, which lives through many programs, as it does for a user. */
typedef struct stress_path {
    const char *name;
    eddy_runtime_options options;
    bool has_fakes;
    bool is_far, is_mixed; /* on the far device; every third slot on the host */
    int thread_count;
    program_run run;
    _Atomic int turn; /* atomic: the next step; release hands the run on */
} stress_path;

typedef struct step_issuer {
    stress_path *path;
    int number;
} step_issuer;

/* Which thread issues a step: drawn from the program's seed. */
static int issuer_of(const stress_path *path, int index) {
    uint64_t state = path->run.program->seed * 31 + (uint64_t)index * 7 + 1;
    program_random(&state);
    return (int)(program_random(&state) % (uint64_t)path->thread_count);
}

static void *issue(void *context) {
    step_issuer *issuer = context;
    stress_path *path = issuer->path;
    for (;;) {
        int turn = eddy_load_acquire(&path->turn);
        if (turn >= path->run.program->step_count)
            return NULL;
        if (issuer_of(path, turn) != issuer->number) {
            sched_yield();
            continue;
        }
        program_run_step(&path->run, turn);
        eddy_store_release(&path->turn, turn + 1);
    }
}

static void path_run(stress_path *path, const random_program *program) {
    pthread_t threads[THREADS_MAX];
    step_issuer issuers[THREADS_MAX];
    program_run_begin(&path->run, program);
    eddy_store_relaxed(&path->turn, 0);
    for (int i = 0; i < path->thread_count; i++) {
        issuers[i] = (step_issuer){path, i};
        if (i > 0)
            must(pthread_create(&threads[i], NULL, issue, &issuers[i]) == 0);
    }
    issue(&issuers[0]);
    for (int i = 1; i < path->thread_count; i++)
        pthread_join(threads[i], NULL);
    program_run_end(&path->run);
}

static void path_open(stress_path *path, uint64_t seed) {
    must(eddy_vm_create(&path->options, &path->run.vm) == EDDY_OK);
    path->run.path = path->name;
    program_run_open_streams(&path->run, path->has_fakes);
    if (path->is_far)
        program_run_open_far(&path->run, seed, path->is_mixed);
}

static void path_close(stress_path *path) {
    program_run_close_streams(&path->run);
    must(eddy_vm_close(path->run.vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(path->run.vm);
}

int main(int argc, char **argv) {
    long programs = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 2;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    static stress_path paths[] = {
        {.name = "caller", .options = {.threads = 2}},
        {.name = "scheduler", .options = {.threads = 2, .uses_full_path = true}},
        {.name = "worker", .options = {.threads = 3, .uses_worker_path = true}},
        {.name = "fakes",
         .options = {.uses_one_thread = true},
         .has_fakes = true,
         .thread_count = 1},
        {.name = "one thread", .options = {.uses_one_thread = true}, .thread_count = 1},
        {.name = "far", .options = {.threads = 2}, .is_far = true},
        {.name = "far, scheduler",
         .options = {.threads = 2, .uses_full_path = true},
         .is_far = true},
        {.name = "far and host", .options = {.threads = 3}, .is_far = true, .is_mixed = true},
        {.name = "far and host, one thread",
         .options = {.uses_one_thread = true},
         .thread_count = 1,
         .is_far = true,
         .is_mixed = true},
    };
    int count = (int)(sizeof(paths) / sizeof(paths[0]));
    watch_begin("programs", seed);
    for (int i = 0; i < count; i++) {
        if (paths[i].thread_count == 0)
            paths[i].thread_count = threads;
        path_open(&paths[i], seed);
    }
    for (long p = 0; p < programs; p++) {
        watch();
        random_program program;
        for (int i = 0; i < count; i++) {
            program_make(&program, seed + (uint64_t)p, paths[i].has_fakes);
            path_run(&paths[i], &program);
        }
    }
    for (int i = 0; i < count; i++)
        path_close(&paths[i]);
    must(program_run_has_ended_all());
    watch_no_memory_held();
    printf("%ld programs on %d paths agree with the oracle\n", programs, count);
    return 0;
}
