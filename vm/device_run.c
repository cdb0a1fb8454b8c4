#include <base/float_environment.h>
#include <base/memory.h>
#include <string.h>
#include <vm/device_run.h>
#include <vm/execute.h>

/* Addresses as the device sees them, which stay until it runs. */
typedef struct device_run {
    eddy_vm_run run;
    eddy_shape *shapes; /* NULL: `run` */
    int64_t *counted_bytes;
    const eddy_kernel_error *sources[EDDY_BACKEND_SOURCES];
    uint32_t source_count;
    void *data[]; /* operand_count, then as many sizes */
} device_run;

static bool has_bad_source(const device_run *call) {
    for (uint32_t i = 0; i < call->source_count; i++)
        if (eddy_load_acquire(&call->sources[i]->status) != EDDY_OK)
            return true;
    return false;
}

/* On the device. */
static void run_there(void *context) {
    device_run *call = context;
    const eddy_vm_descriptor *descriptor = call->run.instruction->descriptor;
    if (has_bad_source(call)) {
        eddy_store_release(&call->run.error->status, (int32_t)EDDY_SKIPPED);
        return;
    }
    call->run.data = call->data;
    call->run.bytes =
        (const int64_t *)(const void *)(call->data + call->run.instruction->operand_count);
    eddy_float_environment environment = eddy_float_environment_enter();
    if (call->shapes)
        descriptor->count(&call->run, call->shapes, call->counted_bytes);
    else
        descriptor->run(&call->run);
    eddy_float_environment_leave(environment);
    if (!call->shapes && call->run.vm->checks_finite)
        eddy_vm_execute_check_finite(&call->run);
}

bool eddy_device_run_launch(const eddy_vm_run *run, const eddy_device_launch *launch,
                            eddy_backend_queue *queue, eddy_shape *shapes, int64_t *bytes) {
    const eddy_backend_class *class = queue->backend->class;
    size_t count = (size_t)run->instruction->operand_count;
    size_t call_bytes = sizeof(device_run) + count * (sizeof(void *) + sizeof(int64_t));
    device_run *call = eddy_memory_acquire(call_bytes, EDDY_MEMORY_ARGUMENT);
    if (!call)
        return false;
    call->run = *run;
    call->run.workspace = class->translate(queue->backend, run->workspace);
    call->run.team = &eddy_team_serial;
    call->shapes = shapes;
    call->counted_bytes = bytes;
    call->source_count = launch->source_count;
    memcpy(call->sources, launch->sources, sizeof(call->sources));
    for (size_t i = 0; i < count; i++)
        call->data[i] = class->translate(queue->backend, run->data[i]);
    memcpy(call->data + count, run->bytes, count * sizeof(int64_t));
    (void)class->run(queue, run_there, call, call_bytes);
    eddy_memory_release(call, call_bytes, EDDY_MEMORY_ARGUMENT);
    return true;
}
