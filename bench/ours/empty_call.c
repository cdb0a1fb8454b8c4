#include <bench/ours/empty_call.h>
#include <stdio.h>

static void run_empty(const eddy_vm_run *run) {
    (void)run;
}

static const char *name_empty(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "empty";
}

static int describe_empty(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    return snprintf(buffer, size, "empty with %lld operands",
                    (long long)instruction->operand_count);
}

static int explain_empty(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                         char *buffer, size_t size) {
    (void)instruction;
    (void)error;
    return snprintf(buffer, size, "an empty body cannot fail");
}

const eddy_vm_descriptor empty_call = {
    .run = run_empty, .name = name_empty, .describe = describe_empty, .explain = explain_empty};

void recycle_nothing(eddy_vm_release_link *link) {
    (void)link;
}
