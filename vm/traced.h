/* What events tell of instructions (base/trace.h). */
#ifndef EDDY_VM_TRACED_H
#define EDDY_VM_TRACED_H

#include <base/trace.h>
#include <vm/instruction.h>

/* Fields of an event about an instruction, while it is there. */
#define EDDY_TRACED(instruction_)                                                                  \
    .op = eddy_instruction_name(instruction_), .sequence = (instruction_)->view.sequence,          \
    .address = (instruction_)->view.address, .stream = (instruction_)->stream,                     \
    .instruction = &(instruction_)->view, .describe = eddy_traced_describe

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

/* The number of the last instruction that the calling thread has submitted; 0 after eddy_traced_begin. */
extern __thread __attribute__((tls_model("initial-exec"))) uint64_t eddy_traced_issued;

#endif
