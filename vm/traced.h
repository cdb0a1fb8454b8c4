/* What events tell of instructions (base/trace.h). */
#ifndef EDDY_VM_TRACED_H
#define EDDY_VM_TRACED_H

#include <base/trace.h>
#include <vm/device.h>
#include <vm/machine.h>

/* Fields of an event about an instruction of the VM, while it is there. */
#define EDDY_TRACED(vm_, instruction_)                                                             \
    .op = eddy_instruction_name(instruction_), .runtime = (vm_)->number,                           \
    .sequence = (instruction_)->view.sequence, .address = (instruction_)->view.address,            \
    .stream = (instruction_)->stream, .instruction = &(instruction_)->view,                        \
    .describe = eddy_traced_describe

/* Where a kernel runs, or has run. */
static inline eddy_trace_stream eddy_traced_stream(const eddy_vm_stream *stream) {
    const eddy_vm_device *device = stream->device;
    return (eddy_trace_stream){.runtime = stream->vm->number,
                               .number = stream->number,
                               .is_ordered = stream->is_ordered,
                               .is_devices = device != NULL,
                               .name = stream->name ? stream->name
                                       : device     ? device->name
                                                    : NULL};
}
#define EDDY_TRACED_ON(stream_)                                                                    \
    .on = (const eddy_trace_stream[]) {                                                            \
        eddy_traced_stream(stream_)                                                                \
    }

/* What its descriptor says; else nothing. */
static inline int eddy_traced_describe(const eddy_vm_instruction *instruction, char *buffer,
                                       size_t size) {
    const eddy_vm_descriptor *descriptor = instruction->descriptor;
    if (descriptor && descriptor->describe)
        return descriptor->describe(instruction, buffer, size);
    buffer[0] = '\0';
    return 0;
}

/* Bytes of a call's operands. */
static inline int64_t eddy_traced_bytes(const eddy_vm_run *run) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < run->instruction->operand_count; i++)
        bytes += run->bytes[i];
    return bytes;
}

/* The last instruction that the calling thread has submitted while somebody heard of anything. */
typedef struct eddy_traced_number {
    uint64_t sequence : 48; /* 0: none */
    uint64_t runtime : 16;
} eddy_traced_number;
extern __thread __attribute__((tls_model("initial-exec"))) eddy_traced_number eddy_traced_issued;

#endif
