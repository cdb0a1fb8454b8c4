/* Convolutions by Winograd's algorithm: the op stays, and gets the kernel that may use it. */
#include <interpreter/call/op.h>
#include <program/passes/passes.h>

static const char *const convolutions[] = {"conv2d", "conv_transpose2d", "conv2d_backward_weight"};

#define CONVOLUTIONS (sizeof(convolutions) / sizeof(*convolutions))

bool eddy_pass_winograd(eddy_code *code, const uint32_t *bases) {
    (void)bases;
    for (size_t c = 0; c < CONVOLUTIONS; c++) {
        const eddy_op *op = eddy_op_find_built_in(convolutions[c]);
        for (uint32_t i = 0; i < code->instructions.count; i++) {
            eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
            if (instruction->op == op && instruction->kernel->fast)
                instruction->kernel = instruction->kernel->fast;
        }
    }
    return true;
}
