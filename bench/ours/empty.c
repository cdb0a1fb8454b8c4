/* Rows about the VM alone: instructions with an empty body, through the VM's interface and the scheduler, in the same four
 * dependency graphs as the peers. */
#include <base/options.h>
#include <bench/ours/empty_call.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/tensor.h>
#include <eddy/version.h>

static eddy_vm *vm;
static eddy_storage_number objects[BENCH_DAG_OBJECTS];
static eddy_vm_release_link links[BENCH_DAG_OBJECTS];

static void submit(eddy_vm_operand *operands, int64_t count) {
    eddy_vm_call call = {.instruction = {.descriptor = &empty_call, .operand_count = count},
                         .operands = operands};
    must(eddy_vm_submit(vm, &call));
}

static eddy_vm_operand operand(uint32_t object, eddy_access access) {
    return (eddy_vm_operand){.storage = objects[object], .access = (uint8_t)access};
}

static void chain(void) {
    for (int i = 0; i < BENCH_TASKS; i++) {
        eddy_vm_operand written = operand(0, EDDY_ACCESS_MUT);
        submit(&written, 1);
    }
}

static void independent(void) {
    for (int i = 0; i < BENCH_TASKS; i++)
        submit(NULL, 0);
}

static void fan(void) {
    for (int i = 0; i < BENCH_TASKS; i++) {
        bool is_writer = i % (BENCH_FAN_READERS + 1) == 0;
        eddy_vm_operand used = operand(0, is_writer ? EDDY_ACCESS_MUT : EDDY_ACCESS_CONST);
        submit(&used, 1);
    }
}

static void dag(void) {
    uint32_t state = 1;
    for (int i = 0; i < BENCH_TASKS; i++) {
        uint32_t a = bench_random(&state) % BENCH_DAG_OBJECTS,
                 b = bench_random(&state) % BENCH_DAG_OBJECTS;
        uint32_t c = bench_random(&state) % BENCH_DAG_OBJECTS;
        eddy_vm_operand used[3] = {operand(a, EDDY_ACCESS_CONST), operand(b, EDDY_ACCESS_CONST),
                                   operand(c, EDDY_ACCESS_MUT)};
        submit(used, 3);
    }
}

static const struct {
    const char *row;
    void (*issue)(void);
} shapes[] = {
    {"empty_chain", chain},
    {"empty_independent", independent},
    {"empty_fan", fan},
    {"empty_dag", dag},
};

static void begin(void) {
    eddy_runtime_options options;
    must(eddy_options_resolve(EDDY_OPTIONS(runtime, .uses_full_path = true), &options));
    must(eddy_vm_create(&options, &vm));
    for (int i = 0; i < BENCH_DAG_OBJECTS; i++) {
        void *data;
        must(eddy_vm_storage_create(vm, 64, &objects[i], &data));
        eddy_vm_storage_written(vm);
    }
}

static void end(void) {
    for (int i = 0; i < BENCH_DAG_OBJECTS; i++) {
        links[i].storage = objects[i];
        links[i].recycle = recycle_nothing;
        eddy_vm_release(vm, &links[i]);
    }
    must(eddy_vm_close(vm, EDDY_FOREVER));
    eddy_vm_destroy(vm);
}

static path_counts counts(void) {
    eddy_vm_counters counters = eddy_vm_counters_read(vm);
    return (path_counts){(int64_t)counters.caller_run, (int64_t)counters.scheduler_run,
                         (int64_t)counters.worker_run};
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    const eddy_vm_wait wait = {.timeout_ns = EDDY_FOREVER, .origin = {"sync", NULL}};
    for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        if (strcmp(row, shapes[s].row))
            continue;
        bench_samples samples = {.count = 0};
        begin();
        path_counts before = counts();
        for (int i = -2; i < count; i++) {
            double began = bench_now_ns();
            shapes[s].issue();
            must(eddy_vm_sync(vm, &wait, NULL));
            if (i >= 0)
                bench_samples_push(&samples, (bench_now_ns() - began) / BENCH_TASKS);
        }
        char path[PATH_BYTES];
        path_format(before, counts(), path);
        end();
        bench_print_row(row, "ns", eddy_version_text(), path, &samples);
        return 0;
    }
    fprintf(stderr, "empty: no such row: %s\n", row);
    return 2;
}
