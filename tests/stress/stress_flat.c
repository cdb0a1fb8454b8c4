/* What must stay flat however long it goes on.
 *
 *   stress_flat INSTRUCTIONS [SEED]
 *
 * Memory over many instructions; what a fast producer has in flight; what an idle VM does, which is nothing. */
#include "../vm/synthetic.h"
#include "program.h"
#include "watch.h"

#include <base/lifo.h>
#include <base/sleep.h>
#include <base/status.h>
#include <stdlib.h>
#include <vm/vm.h>

static const eddy_vm_wait forever = {EDDY_CLOCK_FOREVER, {"stress", NULL}};

/* ---- links that are used again, so that the stress itself takes no memory ---- */

static eddy_lifo spare_links;
static eddy_lifo_link *taken_links;

static void recycle(eddy_vm_release_link *link) {
    eddy_lifo_push(&spare_links, &link->link);
}

static void release(eddy_vm *vm, eddy_storage_number storage) {
    if (!taken_links)
        taken_links = eddy_lifo_take_all(&spare_links);
    eddy_vm_release_link *link = (eddy_vm_release_link *)(void *)taken_links;
    if (link)
        taken_links = taken_links->next;
    else
        must(link = malloc(sizeof(*link)));
    link->storage = storage;
    link->recycle = recycle;
    eddy_vm_release(vm, link);
}

static void free_links(void) {
    for (int i = 0; i < 2; i++) {
        while (taken_links) {
            eddy_lifo_link *next = taken_links->next;
            free(taken_links);
            taken_links = next;
        }
        taken_links = eddy_lifo_take_all(&spare_links);
    }
}

static eddy_storage_number call(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number input,
                                int64_t bytes, int64_t seed, int64_t cost_ps, int64_t sleep_ns) {
    synthetic_arguments arguments = {.seed = seed, .sleep_ns = sleep_ns};
    eddy_vm_operand operands[2];
    int count = 0;
    if (input)
        operands[count++] = (eddy_vm_operand){.storage = input};
    arguments.accesses = (int64_t)1 << 2 * count;
    operands[count++] = (eddy_vm_operand){
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = bytes};
    eddy_vm_call made = {.instruction = {.descriptor = &synthetic_op,
                                         .arguments = &arguments,
                                         .operand_count = count},
                         .argument_bytes = sizeof(arguments),
                         .operands = operands,
                         .stream = stream,
                         .cost_ps = cost_ps};
    must(synthetic_submit(vm, &made) == EDDY_OK);
    return operands[count - 1].storage;
}

/* ---- memory ---- */

static int64_t resident_bytes(void) {
    FILE *status = fopen("/proc/self/status", "r");
    must(status);
    char line[200];
    int64_t kilobytes = -1;
    while (fgets(line, sizeof(line), status))
        if (sscanf(line, "VmRSS: %ld", &kilobytes) == 1)
            break;
    fclose(status);
    must(kilobytes > 0);
    return kilobytes * 1024;
}

typedef struct house {
    int64_t resident, bytes, blocks, acquisitions;
} house;

static house look_at_house(void) {
    house found = {.resident = resident_bytes()};
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++) {
        eddy_memory_count count = eddy_memory_counted((eddy_memory_purpose)p);
        found.bytes += count.bytes;
        found.blocks += count.blocks;
        found.acquisitions += count.acquisitions;
    }
    return found;
}

/* A walk over a few live storages: makes one from another, gives up the oldest; every place takes its share. */
static void walk(eddy_vm *vm, long instructions, uint64_t *state) {
    enum { LIVE = 16 };
    eddy_storage_number live[LIVE] = {0};
    for (long i = 0; i < instructions; i++) {
        if (i % 65536 == 0)
            watch();
        uint64_t random = program_random(state);
        int64_t cost = random % 64 == 0 ? 100000000 : random % 4 == 0 ? 2000000 : 100000;
        int64_t bytes = 64 << (random >> 20) % 6;
        int slot = (int)(random >> 40) % LIVE, input = (int)(random >> 50) % LIVE;
        eddy_storage_number made = call(vm, NULL, live[input], bytes, i, cost, 0);
        if (live[slot])
            release(vm, live[slot]);
        live[slot] = made;
        if (random % 1000 == 7) {
            int64_t value;
            must(eddy_vm_read_small(vm, made, 0, 8, &value, &forever) == EDDY_OK);
        }
    }
    must(eddy_vm_sync(vm, &forever, NULL) == EDDY_OK);
    for (int i = 0; i < LIVE; i++)
        if (live[i])
            release(vm, live[i]);
    must(eddy_vm_sync(vm, &forever, NULL) == EDDY_OK);
}

static void memory_is_flat(const eddy_runtime_options *options, long instructions,
                           uint64_t *state) {
    eddy_vm *vm;
    must(eddy_vm_create(options, &vm) == EDDY_OK);
    walk(vm, instructions / 5, state);
    house before = look_at_house();
    walk(vm, instructions - instructions / 5, state);
    house after = look_at_house();
    printf(
        "%ld instructions: resident %+lld, held %+lld bytes in %+lld blocks, %+lld acquisitions\n",
        instructions, (long long)(after.resident - before.resident),
        (long long)(after.bytes - before.bytes), (long long)(after.blocks - before.blocks),
        (long long)(after.acquisitions - before.acquisitions));
    /* More may be in flight at some moment than ever before, which costs a chunk of nodes; per instruction it is nothing. */
    must(after.bytes - before.bytes < 16 << 20);
    must(after.blocks - before.blocks < 2000);
    must(after.acquisitions - before.acquisitions < 4000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose own memory grows */
    must(after.resident - before.resident < 24 << 20);
#endif
    must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(vm);
}

/* ---- the marks ---- */

/* Each kernel takes a hundred times what issuing it does. */
static void fast_producer(long instructions) {
    const int64_t high = 100, high_bytes = 64 << 10, bytes = 1024;
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        eddy_runtime_options options = {.threads = 2,
                                        .in_flight_high = by_bytes ? 1 << 20 : high,
                                        .in_flight_bytes_high =
                                            by_bytes ? high_bytes : (int64_t)1 << 40};
        eddy_vm *vm;
        eddy_vm_stream *stream;
        must(eddy_vm_create(&options, &vm) == EDDY_OK);
        must(eddy_vm_stream_create(vm, true, 0, NULL, &stream) == EDDY_OK);
        eddy_storage_number last = 0;
        for (long i = 0; i < instructions; i++) {
            watch();
            eddy_storage_number made = call(vm, stream, last, bytes, i, 100000000, 50000);
            if (last)
                release(vm, last);
            last = made;
        }
        int64_t value;
        must(eddy_vm_read_small(vm, last, 0, 8, &value, &forever) == EDDY_OK);
        release(vm, last);
        eddy_vm_counters counters = eddy_vm_counters_read(vm);
        printf("fast producer: at most %lld in flight, %lld bytes\n",
               (long long)counters.in_flight_peak, (long long)counters.bytes_in_flight_peak);
        must(counters.in_flight_peak > 1);
        /* The read at the end is exempt. */
        if (by_bytes)
            must(counters.bytes_in_flight_peak <= high_bytes + bytes);
        else
            must(counters.in_flight_peak <= high + 1);
        eddy_vm_stream_release(stream);
        must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
        eddy_vm_destroy(vm);
    }
}

/* ---- idle ---- */

static void sleep_ms(long ms) {
    struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

/* Wake-ups and times asleep of the whole process are counted: nobody else is there. */
static void idle_sleeps(void) {
    watch();
    eddy_vm *vm;
    must(eddy_vm_create(&(eddy_runtime_options){.threads = 4}, &vm) == EDDY_OK);
    eddy_storage_number a = call(vm, NULL, 0, 64, 1, 100000000, 0);
    must(eddy_vm_sync(vm, &forever, NULL) == EDDY_OK);
    /* Until all have spun out. */
    uint64_t sleeps, wakes;
    do {
        sleeps = eddy_sleep_count();
        wakes = eddy_sleep_wake_count();
        sleep_ms(50);
    } while (sleeps != eddy_sleep_count() || wakes != eddy_sleep_wake_count());
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    sleep_ms(200);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    printf("idle: %llu sleeps, %llu wake-ups in 200 ms\n",
           (unsigned long long)(eddy_sleep_count() - sleeps),
           (unsigned long long)(eddy_sleep_wake_count() - wakes));
    must(eddy_sleep_count() == sleeps);
    must(eddy_sleep_wake_count() == wakes);
#if !defined(__SANITIZE_THREAD__) /* which has a thread of its own */
    int64_t used_ns =
        (after.tv_sec - before.tv_sec) * INT64_C(1000000000) + after.tv_nsec - before.tv_nsec;
    must(used_ns < 20000000);
#endif
    release(vm, a);
    must(eddy_vm_close(vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(vm);
}

int main(int argc, char **argv) {
    long instructions = argc > 1 ? strtol(argv[1], NULL, 10) : 10000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t state = seed;
    watch_begin("flat", seed);
    idle_sleeps();
    fast_producer(3000);
    memory_is_flat(&(eddy_runtime_options){.threads = 2}, instructions, &state);
    memory_is_flat(&(eddy_runtime_options){.threads = 2, .uses_full_path = true}, instructions / 10,
                   &state);
    memory_is_flat(&(eddy_runtime_options){.uses_one_thread = true}, instructions / 10, &state);
    free_links();
    watch_no_memory_held();
    return 0;
}
