/* The calls of a fusion as one instruction of the VM (fusions.h). */
#include <base/dtype.h>
#include <interpreter/call/describe.h>
#include <program/fusions.h>
#include <program/run.h>
#include <string.h>

/* Arguments of the instruction: a reference of the program, where its operands begin (bytes, in their order), and its attributes. */
typedef struct fused_arguments {
    eddy_program *program;
    uint32_t fusion;
    int64_t words[EDDY_FUSION_OPERANDS + EDDY_FUSION_WORDS];
} fused_arguments;

static const eddy_fused_calls *calls_of(const fused_arguments *arguments) {
    return &arguments->program->executable->fusions.items[arguments->fusion];
}

/* ---- the VM's side ---- */

static void fused_run(const eddy_vm_run *run) {
    const fused_arguments *arguments = run->instruction->arguments;
    const eddy_fused_calls *calls = calls_of(arguments);
    char *data[EDDY_FUSION_OPERANDS];
    for (uint32_t k = 0; k < calls->view_count; k++)
        data[k] = (char *)run->data[k] + arguments->words[k];
    eddy_kernel_call call = {.team = run->team, .error = run->error, .launch = run->launch};
    eddy_fused_calls_run(calls, data, arguments->words + calls->view_count, &call);
}

/* The call that gives its last result stands for all. */
static const eddy_op *op_of(const eddy_vm_instruction *instruction) {
    const fused_arguments *arguments = instruction->arguments;
    return eddy_code_instruction_at(&arguments->program->code, calls_of(arguments)->last)->op;
}

static const char *fused_name(const eddy_vm_instruction *instruction) {
    return op_of(instruction)->name;
}

static int fused_describe(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    return snprintf(buffer, size, "%s, and %u calls before it in one kernel",
                    op_of(instruction)->name, calls_of(instruction->arguments)->count - 1);
}

static int fused_explain(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                         char *buffer, size_t size) {
    char text[128];
    fused_describe(instruction, text, sizeof(text));
    return eddy_describe_error(op_of(instruction), NULL, text, error, buffer, size);
}

static void fused_end(const eddy_vm_instruction *instruction) {
    const fused_arguments *arguments = instruction->arguments;
    eddy_program *program = arguments->program;
    eddy_program_release(&program);
}

static const eddy_vm_descriptor descriptor = {.run = fused_run,
                                              .name = fused_name,
                                              .describe = fused_describe,
                                              .explain = fused_explain,
                                              .end = fused_end};

/* ---- submitting ---- */

static void bind(const eddy_run *r, const eddy_fused_calls *calls, fused_arguments *arguments,
                 eddy_vm_operand *operands) {
    const eddy_executable *executable = r->program->executable;
    const int64_t *shifts = r->arguments->words, *words = shifts + executable->base_count - 1;
    for (uint32_t k = 0; k < calls->view_count; k++) {
        const eddy_fused_view *view = &calls->views[k];
        operands[k] = eddy_run_operand_for(r, &executable->partitions.items[view->user],
                                           view->place.base, view->access);
        arguments->words[k] = view->place.offset + shifts[view->place.base - 1];
    }
    eddy_fused_calls_fill(calls, words, arguments->words + calls->view_count);
}

static eddy_status submit(const eddy_run *r, uint32_t fusion, const eddy_fused_calls *calls) {
    const eddy_executable *executable = r->program->executable;
    fused_arguments arguments = {.fusion = fusion};
    eddy_vm_operand operands[EDDY_FUSION_OPERANDS];
    bind(r, calls, &arguments, operands);
    arguments.program = eddy_program_retain(r->program);
    eddy_status status = eddy_run_submit_call(
        r,
        &(eddy_run_part){.device = executable->partitions.items[calls->first].device,
                         .descriptor = &descriptor,
                         .operands = operands,
                         .operand_count = calls->view_count,
                         .cost_ps = calls->cost_ps,
                         .part_count = calls->count - 1,
                         .address =
                             eddy_code_instruction_at(&r->program->code, calls->last)->address},
        &arguments,
        offsetof(fused_arguments, words) +
            (calls->view_count + calls->word_count) * sizeof(int64_t));
    if (status != EDDY_OK)
        eddy_program_release(&arguments.program);
    for (uint32_t k = 0; k < calls->view_count && status == EDDY_OK; k++)
        r->operands[calls->views[k].place.base - 1].storage = operands[k].storage;
    return status;
}

bool eddy_run_submit_fused(const eddy_run *r, uint32_t fusion, eddy_status *status) {
    const eddy_fused_calls *calls = &r->program->executable->fusions.items[fusion];
    if (!eddy_made_kernel_ready(calls->kernel))
        return false;
    *status = submit(r, fusion, calls);
    return true;
}
