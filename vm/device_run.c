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
    eddy_backend_launch launch;
    void *data[]; /* operand_count, then as many sizes */
} device_run;

/* On the device. */
static void run_there(void *context) {
    device_run *call = context;
    const eddy_vm_descriptor *descriptor = call->run.instruction->descriptor;
    if (!eddy_backend_may_run(&call->launch))
        return;
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

bool eddy_device_run_launch(const eddy_vm_run *run, const eddy_backend_launch *launch,
                            eddy_shape *shapes, int64_t *bytes) {
    eddy_backend_queue *queue = launch->queue;
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
    call->launch = *launch;
    for (size_t i = 0; i < count; i++)
        call->data[i] = class->translate(queue->backend, run->data[i]);
    memcpy(call->data + count, run->bytes, count * sizeof(int64_t));
    (void)class->run(queue, run_there, call, call_bytes);
    eddy_memory_release(call, call_bytes, EDDY_MEMORY_ARGUMENT);
    return true;
}
