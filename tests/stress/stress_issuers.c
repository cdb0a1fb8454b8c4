/* Several threads issue random programs into one VM at the same time.
 *
 *   stress_issuers PROGRAMS [SEED [THREADS]]
 *
 * Each thread has slots and an oracle of its own and takes no turns with the others; what it gives up goes through a mailbox to
 * the next thread, which releases it. On the caller's, the scheduler's and the workers' path, in one-thread mode, and with
 * low marks. */
#include "run.h"
#include "watch.h"

#include "../vm/synthetic.h"
#include <base/lifo.h>
#include <pthread.h>

#define THREADS_MAX 4

/* A storage on its way to who releases it. */
typedef struct parcel {
    eddy_lifo_link link;
    eddy_storage_number storage;
} parcel;

typedef struct free_issuer {
    program_run run;   /* first: the hook finds its issuer by it */
    eddy_lifo mailbox; /* pushed by another thread, taken by this one */
    struct free_issuer *next;
    uint64_t seed;
    long programs;
    pthread_t thread;
} free_issuer;

static void send_on(program_run *run, eddy_storage_number storage) {
    free_issuer *issuer = (free_issuer *)(void *)run;
    parcel *sent = malloc(sizeof(*sent));
    must(sent);
    sent->storage = storage;
    eddy_lifo_push(&issuer->next->mailbox, &sent->link);
}

static void empty_mailbox(free_issuer *issuer) {
    eddy_lifo_link *link = eddy_lifo_take_all(&issuer->mailbox);
    while (link) {
        parcel *got = (parcel *)(void *)link;
        link = link->next;
        synthetic_release(issuer->run.vm, got->storage);
        free(got);
    }
}

static void *issue(void *context) {
    free_issuer *issuer = context;
    for (long p = 0; p < issuer->programs; p++) {
        random_program program;
        program_make(&program, issuer->seed + (uint64_t)p, false);
        program_run_begin(&issuer->run, &program);
        for (int i = 0; i < program.step_count; i++) {
            program_run_step(&issuer->run, i);
            if (i % 3 == 0)
                empty_mailbox(issuer);
        }
        program_run_end(&issuer->run);
        watch();
    }
    return NULL;
}

static void run_path(const char *name, const eddy_runtime_options *options, long programs,
                     uint64_t seed, int threads) {
    static free_issuer issuers[THREADS_MAX];
    eddy_vm *vm;
    must(eddy_vm_create(options, &vm) == EDDY_OK);
    for (int i = 0; i < threads; i++) {
        issuers[i] =
            (free_issuer){.run = {.path = name, .vm = vm, .is_shared = true, .release = send_on},
                          .next = &issuers[(i + 1) % threads],
                          .seed = seed + (uint64_t)i * 1000000007,
                          .programs = programs};
        program_run_open_streams(&issuers[i].run, false);
    }
    for (int i = 0; i < threads; i++)
        must(pthread_create(&issuers[i].thread, NULL, issue, &issuers[i]) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(issuers[i].thread, NULL);
    for (int i = 0; i < threads; i++) {
        empty_mailbox(&issuers[i]);
        program_run_close_streams(&issuers[i].run);
    }
    must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(vm);
}

int main(int argc, char **argv) {
    long programs = argc > 1 ? strtol(argv[1], NULL, 10) : 500;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 3;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    watch_begin("issuers", seed);
    run_path("caller", &(eddy_runtime_options){.threads = 2}, programs, seed, threads);
    run_path("scheduler", &(eddy_runtime_options){.threads = 2, .uses_full_path = true}, programs,
             seed, threads);
    run_path("worker", &(eddy_runtime_options){.threads = 3, .uses_worker_path = true}, programs,
             seed, threads);
    run_path("one thread", &(eddy_runtime_options){.uses_one_thread = true}, programs, seed,
             threads);
    run_path("low marks", &(eddy_runtime_options){.threads = 2, .in_flight_high = 6}, programs,
             seed, threads);
    watch_no_memory_held();
    printf("%ld programs on each of %d threads agree with their oracles\n", programs, threads);
    return 0;
}
