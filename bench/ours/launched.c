/* The row about devices: instructions with an empty body, through engine and launcher, on a device that has nothing to do. What is marked is complete. */
#include <base/memory.h>
#include <base/options.h>
#include <bench/ours/empty_call.h>
#include <bench/ours/must.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/version.h>
#include <stdlib.h>
#include <streams/backend.h>

/* ---- the device ---- */

typedef struct idle_backend {
    eddy_backend base;
    eddy_backend_queue queues[EDDY_BACKEND_QUEUES];
    uint32_t queue_count;
    eddy_kernel_error words[EDDY_BACKEND_WORDS];
} idle_backend;

static eddy_backend_queue *queue_create(eddy_backend *base, int32_t priority) {
    idle_backend *backend = (idle_backend *)(void *)base;
    (void)priority;
    if (backend->queue_count == EDDY_BACKEND_QUEUES)
        return NULL;
    eddy_backend_queue *queue = &backend->queues[backend->queue_count];
    *queue = (eddy_backend_queue){.backend = base, .number = backend->queue_count++};
    return queue;
}

static eddy_status wait(eddy_backend_queue *queue, eddy_backend_queue *other, uint64_t ticket) {
    (void)queue;
    (void)other;
    (void)ticket;
    return EDDY_OK;
}

static eddy_status copy(eddy_backend_queue *queue, void *to, const void *from, int64_t bytes,
                        eddy_copy_direction direction) {
    (void)queue;
    (void)direction;
    memcpy(to, from, (size_t)bytes);
    return EDDY_OK;
}

static eddy_status look(const eddy_backend_launch *launch) {
    (void)launch;
    return EDDY_OK;
}

static eddy_status skip(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_store_release(&eddy_backend_error(queue->backend, ticket)->status, EDDY_SKIPPED);
    return EDDY_OK;
}

static eddy_status mark(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_store_release(&queue->completed, ticket);
    return EDDY_OK;
}

static void await(eddy_backend *backend, uint32_t seen) {
    if (!eddy_doorbell_spin(&backend->progress, seen))
        eddy_doorbell_sleep(&backend->progress, seen, EDDY_CLOCK_FOREVER);
}

static void *memory_acquire(eddy_backend *backend, int64_t bytes) {
    (void)backend;
    return aligned_alloc(512, ((size_t)bytes + 511) / 512 * 512);
}

static void memory_release(eddy_backend *backend, void *data, int64_t bytes) {
    (void)backend;
    (void)bytes;
    free(data);
}

static void destroy(eddy_backend *backend) {
    free(backend);
}

static const eddy_backend_class idle = {.name = "idle",
                                        .queue_create = queue_create,
                                        .wait = wait,
                                        .copy = copy,
                                        .look = look,
                                        .skip = skip,
                                        .mark = mark,
                                        .await = await,
                                        .memory_acquire = memory_acquire,
                                        .memory_release = memory_release,
                                        .destroy = destroy};

/* ---- the row ---- */

static eddy_vm *vm;
static eddy_vm_stream *stream;
static eddy_storage_number object;
static eddy_vm_release_link link_of_object;

static void submit(eddy_vm_operand *operand) {
    eddy_vm_call call = {.instruction = {.descriptor = &empty_call, .operand_count = 1},
                         .operands = operand,
                         .stream = stream};
    must(eddy_vm_submit(vm, &call));
}

static void begin(void) {
    eddy_runtime_options options;
    uint8_t device;
    idle_backend *backend = aligned_alloc(64, (sizeof(*backend) + 63) / 64 * 64);
    memset(backend, 0, sizeof(*backend));
    backend->base.class = &idle;
    backend->base.errors = backend->words;
    must(eddy_options_resolve(NULL, &options));
    must(eddy_vm_create(&options, &vm));
    must(eddy_vm_device_add(vm, &backend->base, "launched", INT64_C(1) << 30,
                            (eddy_origin){"device", NULL}, &device));
    stream = eddy_vm_device_stream(vm, device);
    eddy_vm_operand made = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .device = device, .bytes = 64};
    submit(&made);
    object = made.storage;
}

static void end(void) {
    link_of_object = (eddy_vm_release_link){.storage = object, .recycle = recycle_nothing};
    eddy_vm_release(vm, &link_of_object);
    must(eddy_vm_close(vm, EDDY_FOREVER));
    eddy_vm_destroy(vm);
}

int main(int argc, char **argv) {
    int count = bench_sample_count(argc, argv, 2);
    const eddy_vm_wait forever = {.timeout_ns = EDDY_FOREVER, .origin = {"sync", NULL}};
    bench_samples samples = {.count = 0};
    if (argc < 2 || strcmp(argv[1], "fake_launch")) {
        fprintf(stderr, "launched: no such row\n");
        return 2;
    }
    begin();
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        for (int k = 0; k < BENCH_TASKS; k++) {
            eddy_vm_operand written = {.storage = object, .access = EDDY_ACCESS_MUT};
            submit(&written);
        }
        must(eddy_vm_sync(vm, &forever, NULL));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / BENCH_TASKS);
    }
    end();
    bench_print_row(argv[1], "ns", eddy_version_text(), "launcher", &samples);
    return 0;
}
