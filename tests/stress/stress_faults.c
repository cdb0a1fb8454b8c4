/* No memory, at every moment.
 *
 *   stress_faults ROUNDS [SEED]
 *
 * A scripted session in which each allocation fails once: every call answers cleanly and can be tried again, nothing leaks,
 * nothing hangs. Then work under a byte limit: what fits in the end goes through, what does not is an error. */
#include "../vm/synthetic.h"
#include "program.h"
#include "watch.h"

#include <base/sleep.h>
#include <base/status.h>
#include <stdlib.h>
#include <vm/vm.h>

#define COST_WORKER INT64_C(100000000)

static const eddy_vm_wait forever = {EDDY_CLOCK_FOREVER, {"stress", NULL}};

/* A clean refusal: OUT_OF_MEMORY, with its record in the thread's slot. */
static bool is_refused(eddy_status status) {
    eddy_error error = {0};
    eddy_error_take(&error);
    if (status == EDDY_OK)
        return false;
    must(error.status == status);
    must(status == EDDY_OUT_OF_MEMORY);
    return true;
}

/* Tries a call until it is not refused; one allocation fails, so that the second try works. */
#define INSIST(call)                                                                               \
    do {                                                                                           \
        if (is_refused(call))                                                                      \
            must((call) == EDDY_OK);                                                               \
    } while (0)

typedef struct fault_script {
    eddy_vm *vm;
    eddy_vm_stream *stream;
    int64_t cost_ps;
    int64_t buffer[4];
    _Atomic int deleted, called_back;
} fault_script;

static eddy_status call(fault_script *script, const eddy_vm_descriptor *descriptor,
                        eddy_vm_operand *operands, int count, int64_t seed, int64_t accesses,
                        int64_t padding) {
    struct {
        synthetic_arguments arguments;
        char padding[1000];
    } bytes = {.arguments = {.seed = seed, .late_count = 4, .accesses = accesses}};
    bool is_plain = seed % 2 && synthetic_is_plain(descriptor, operands, count);
    eddy_vm_call made = {.instruction = {.descriptor = is_plain ? &synthetic_plain_op : descriptor,
                                         .arguments = &bytes,
                                         .operand_count = count},
                         .argument_bytes = sizeof(bytes.arguments) + (size_t)padding,
                         .operands = operands,
                         .stream = script->stream,
                         .cost_ps = script->cost_ps,
                         .is_plain = is_plain};
    return synthetic_submit(script->vm, &made);
}

static eddy_storage_number make(fault_script *script, eddy_storage_number input, int64_t seed,
                                int64_t bytes, bool is_late) {
    eddy_vm_operand operands[2] = {{.storage = input},
                                   {.access = is_late ? EDDY_ACCESS_MUT2 : EDDY_ACCESS_MUT,
                                    .is_new = true,
                                    .covers_all = true,
                                    .bytes = bytes}};
    eddy_vm_operand *first = input ? operands : operands + 1;
    const eddy_vm_descriptor *op = is_late ? &synthetic_late_op : &synthetic_op;
    INSIST(call(script, op, first, input ? 2 : 1, seed, input ? 4 : 1, seed % 2 ? 1000 : 0));
    return operands[1].storage;
}

static void note_deleted(void *context) {
    eddy_add_relaxed(&((fault_script *)context)->deleted, 1);
}

static void note_called(void *context, void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    eddy_add_relaxed(&((fault_script *)context)->called_back, 1);
}

/* The value of cell 0, or false when its maker got no memory. */
static bool read_cell(fault_script *script, eddy_storage_number storage, int64_t *value) {
    eddy_status status = eddy_vm_read_small(script->vm, storage, 0, 8, value, &forever);
    if (status == EDDY_OUT_OF_MEMORY || status == EDDY_SKIPPED) {
        eddy_error error;
        eddy_error_take(&error);
        must(error.status == status);
        /* No memory to wait, which goes away, or none for the maker, which stays. */
        status = eddy_vm_read_small(script->vm, storage, 0, 8, value, &forever);
        eddy_error_take(NULL);
        must(status == EDDY_OK || status == EDDY_OUT_OF_MEMORY || status == EDDY_SKIPPED);
        return status == EDDY_OK;
    }
    must(status == EDDY_OK);
    return true;
}

/* Links that base/memory.h knows nothing of: a release takes no memory. */
static _Atomic int links_out;

static void recycle(eddy_vm_release_link *link) {
    free(link);
    eddy_sub_relaxed(&links_out, 1);
}

static void release(fault_script *script, eddy_storage_number storage) {
    eddy_vm_release_link *link = malloc(sizeof(*link));
    must(link);
    eddy_add_relaxed(&links_out, 1);
    link->storage = storage;
    link->recycle = recycle;
    eddy_vm_release(script->vm, link);
}

/* Every kind of instruction once; true when nothing was lost for want of memory. */
static bool play(fault_script *script) {
    eddy_vm *vm = script->vm;
    bool is_whole = true;
    int64_t value, first = synthetic_mix(3, 0);
    eddy_storage_number a = make(script, 0, 3, 32, false);
    eddy_storage_number large = make(script, 0, 4, 200000, false);
    eddy_storage_number b = make(script, a, 5, 32, false);
    eddy_storage_number late = make(script, b, 6, 0, true);
    eddy_storage_number by_hand, borrowed;
    void *data;
    INSIST(eddy_vm_storage_create(vm, 64, &by_hand, &data));
    memset(data, 0, 64);
    eddy_vm_storage_written(vm);
    INSIST(eddy_vm_storage_borrow(vm, script->buffer, sizeof(script->buffer), note_deleted, script,
                                  &borrowed));

    eddy_vm_operand wide[20] = {0};
    for (int i = 0; i < 19; i++)
        wide[i].storage = i % 2 ? a : by_hand;
    wide[19] = (eddy_vm_operand){.storage = borrowed, .access = EDDY_ACCESS_MUT};
    INSIST(call(script, &synthetic_op, wide, 20, 7, (int64_t)2 << 38, 0));

    eddy_vm_stream *stream;
    eddy_vm_event *event;
    eddy_status status = eddy_vm_stream_create(vm, true, 0, NULL, &stream);
    if (is_refused(status))
        must(eddy_vm_stream_create(vm, true, 0, NULL, &stream) == EDDY_OK);
    INSIST(eddy_vm_event_record(vm, NULL, (eddy_origin){"test", NULL}, &event));
    INSIST(eddy_vm_stream_wait(vm, stream, event, (eddy_origin){"test", NULL}));
    INSIST(eddy_vm_event_wait(event, &forever));
    eddy_storage_number both[2] = {a, by_hand};
    INSIST(eddy_vm_touch(vm, stream, both, 2, (eddy_origin){"test", NULL}));
    script->stream = stream;
    eddy_storage_number c = make(script, a, 8, 32, false);
    eddy_storage_number d = make(script, c, 9, 32, false);
    script->stream = NULL;
    INSIST(eddy_vm_access(vm, a, false, note_called, script, (eddy_origin){"test", NULL}));

    eddy_vm_lend *lend;
    status = eddy_vm_lend_begin(vm, by_hand, true, &forever, &data, &lend);
    if (is_refused(status))
        must(eddy_vm_lend_begin(vm, by_hand, true, &forever, &data, &lend) == EDDY_OK);
    *(int64_t *)data = 12;
    eddy_vm_lend_end(vm, lend, false);

    if (read_cell(script, a, &value))
        must(value == first);
    else
        is_whole = false;
    if (read_cell(script, b, &value))
        must(value == synthetic_mix(synthetic_mix(5, first), 0));
    else
        is_whole = false;
    if (read_cell(script, d, &value))
        must(value ==
             synthetic_mix(synthetic_mix(9, synthetic_mix(synthetic_mix(8, first), 0)), 0));
    else
        is_whole = false;
    must(read_cell(script, by_hand, &value) && value == 12);
    is_whole &= read_cell(script, late, &value);
    is_whole &= read_cell(script, large, &value);
    eddy_shape shape;
    status = eddy_vm_late_shape(vm, late, &forever, &shape);
    eddy_error_take(NULL);
    must(status == EDDY_OK ? shape.dims[0] == 4 : status == EDDY_OUT_OF_MEMORY);
    INSIST(eddy_vm_recover(vm, &borrowed, 1, (eddy_origin){"test", NULL}));
    status = eddy_vm_sync(vm, &forever, NULL);
    if (status != EDDY_OK) {
        must(status == EDDY_OUT_OF_MEMORY);
        eddy_error_take(NULL);
    }
    must(eddy_vm_sync_service(vm, &forever) == EDDY_OK);
    eddy_storage_number all[] = {a, large, b, late, by_hand, borrowed, c, d};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        release(script, all[i]);
    eddy_vm_event_release(event);
    eddy_vm_stream_release(stream);
    return is_whole;
}

/* Fails allocation after allocation, until the script needs no more. */
static void fail_each(const eddy_runtime_options *options, int64_t cost_ps) {
    bool was_injected = true;
    int64_t n = 0;
    for (; was_injected; n++) {
        watch();
        fault_script script = {.cost_ps = cost_ps};
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, n, 1);
        if (is_refused(eddy_vm_create(options, &script.vm)))
            must(eddy_vm_create(options, &script.vm) == EDDY_OK);
        bool is_whole = play(&script);
        was_injected = eddy_memory_failures_injected() > 0;
        must(is_whole || was_injected);
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        /* The same VM, as if nothing had been. */
        must(play(&script));
        must(eddy_vm_close(script.vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
        eddy_vm_destroy(script.vm);
        must(eddy_load_relaxed(&script.deleted) == 2);
        must(eddy_load_relaxed(&script.called_back) == 2);
        must(eddy_load_relaxed(&links_out) == 0);
        must(eddy_load_relaxed(&synthetic_open) == 0);
        watch_no_memory_held();
    }
    printf("each of %lld allocations failed once\n", (long long)n - 1);
}

/* ---- a byte limit ---- */

#define LIMIT (INT64_C(48) << 20)

/* Issues far more than fits, of which little is alive at a time: releases on their way are waited for, caches of other sizes
 * are given up, and every instruction goes through. */
static void what_fits_in_the_end_goes_through(const eddy_runtime_options *options, int64_t cost_ps,
                                              long count, uint64_t *state) {
    fault_script script = {.cost_ps = cost_ps};
    must(eddy_vm_create(options, &script.vm) == EDDY_OK);
    eddy_storage_number last = 0;
    int64_t expected = 0;
    for (long i = 0; i < count; i++) {
        watch();
        int64_t bytes = (int64_t)(4 + program_random(state) % 8) << 20;
        eddy_storage_number made = make(&script, last, 2 * i, bytes, false);
        expected = i == 0 ? synthetic_mix(0, 0) : synthetic_mix(synthetic_mix(2 * i, expected), 0);
        if (last)
            release(&script, last);
        last = made;
    }
    int64_t value;
    must(eddy_vm_read_small(script.vm, last, 0, 8, &value, &forever) == EDDY_OK);
    must(value == expected);
    release(&script, last);
    must(eddy_vm_close(script.vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(script.vm);
    must(eddy_memory_counted(EDDY_MEMORY_TENSOR).peak_bytes <= LIMIT);
    watch_no_memory_held();
}

/* Keeps more than fits: some are refused with an error, the rest are right, and afterwards there is room again. */
static void what_does_not_fit_is_an_error(const eddy_runtime_options *options, int64_t cost_ps) {
    fault_script script = {.cost_ps = cost_ps};
    must(eddy_vm_create(options, &script.vm) == EDDY_OK);
    for (int round = 0; round < 3; round++) {
        watch();
        enum { KEPT = 12 };
        eddy_storage_number kept[KEPT];
        int refused = 0;
        for (int i = 0; i < KEPT; i++)
            kept[i] = make(&script, 0, 2 * i, (int64_t)8 << 20, false);
        for (int i = 0; i < KEPT; i++) {
            int64_t value;
            eddy_status status = eddy_vm_read_small(script.vm, kept[i], 0, 8, &value, &forever);
            must(status == EDDY_OK ? value == synthetic_mix(2 * i, 0)
                                   : status == EDDY_OUT_OF_MEMORY);
            refused += status != EDDY_OK;
            eddy_error_take(NULL);
        }
        must(refused >= KEPT - 6 && refused < KEPT);
        for (int i = 0; i < KEPT; i++)
            release(&script, kept[i]);
        eddy_vm_sync(script.vm, &forever, NULL) == EDDY_OK ? (void)0 : (void)eddy_error_take(NULL);
        eddy_vm_counters counters = eddy_vm_counters_read(script.vm);
        must(counters.errors_made == counters.errors_seen);
    }
    must(eddy_vm_close(script.vm, EDDY_CLOCK_FOREVER) == EDDY_OK);
    eddy_vm_destroy(script.vm);
    watch_no_memory_held();
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t state = seed;
    watch_begin("faults", seed);
    static const struct {
        eddy_runtime_options options;
        int64_t cost_ps;
    } paths[] = {{{.threads = 2}, 100000},
                 {{.threads = 2, .uses_full_path = true}, 2000000},
                 {{.threads = 2, .uses_worker_path = true}, COST_WORKER},
                 {{.uses_one_thread = true}, 100000}};
    int count = (int)(sizeof(paths) / sizeof(paths[0]));
    for (int i = 0; i < count; i++)
        fail_each(&paths[i].options, paths[i].cost_ps);
    eddy_memory_limit_set(LIMIT);
    for (int i = 0; i < count; i++) {
        what_fits_in_the_end_goes_through(&paths[i].options, paths[i].cost_ps, rounds, &state);
        what_does_not_fit_is_an_error(&paths[i].options, paths[i].cost_ps);
    }
    eddy_memory_limit_set(0);
    printf("%ld instructions on each path inside %lld bytes\n", rounds, (long long)LIMIT);
    return 0;
}
