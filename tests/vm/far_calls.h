/* Synthetic ops on the far device: what runs there finds its operands through the device's own mapping, looks at its sources' words first, and may be late. */
#ifndef EDDY_TESTS_FAR_CALLS_H
#define EDDY_TESTS_FAR_CALLS_H

#include <streams/far.h>
#include <vm/vm.h>

#define FAR_OPERANDS 16

typedef struct far_call {
    void (*body)(const eddy_vm_run *run);
    void (*count)(const eddy_vm_run *run, eddy_shape *shapes, int64_t *bytes); /* NULL: body */
    eddy_shape *shapes;
    int64_t *counted_bytes;
    eddy_vm_run run;
    void *data[FAR_OPERANDS];
    int64_t bytes[FAR_OPERANDS];
    const eddy_kernel_error *sources[8];
} far_call;

static inline void far_call_run(void *context) {
    far_call *call = context;
    for (uint32_t i = 0; i < call->run.source_count; i++)
        if (eddy_load_acquire(&call->sources[i]->status) != EDDY_OK) {
            eddy_store_release(&call->run.error->status, (int32_t)EDDY_SKIPPED);
            return;
        }
    call->run.data = call->data;
    call->run.bytes = call->bytes;
    if (call->count)
        call->count(&call->run, call->shapes, call->counted_bytes);
    else
        call->body(&call->run);
}

static inline void far_call_launch_as(const eddy_vm_run *run, far_call call) {
    call.run = *run;
    int64_t count = run->instruction->operand_count;
    EDDY_ASSERT(count <= FAR_OPERANDS && run->source_count <= 8);
    for (int64_t i = 0; i < count; i++) {
        call.data[i] = eddy_far_translate(run->queue->backend, run->data[i]);
        call.bytes[i] = run->bytes[i];
    }
    for (uint32_t i = 0; i < run->source_count; i++)
        call.sources[i] = run->sources[i];
    (void)eddy_far_launch(run->queue, far_call_run, &call, sizeof(call));
}

static inline void far_call_launch(const eddy_vm_run *run, void (*body)(const eddy_vm_run *run)) {
    far_call_launch_as(run, (far_call){.body = body});
}

static inline void far_call_launch_count(const eddy_vm_run *run,
                                         void (*count)(const eddy_vm_run *run, eddy_shape *shapes,
                                                       int64_t *bytes),
                                         eddy_shape *shapes, int64_t *bytes) {
    far_call_launch_as(run, (far_call){.count = count, .shapes = shapes, .counted_bytes = bytes});
}

#endif
