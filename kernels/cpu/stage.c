#include <base/assert.h>
#include <kernels/cpu/stage.h>

void eddy_stage_run(const eddy_stage_list *list, char *const *data, int64_t count,
                    const void *attributes) {
    EDDY_ASSERT(list->operand_count <= EDDY_DENSE_OPERANDS);
    _Alignas(64) char buffers[EDDY_STAGE_BUFFERS][EDDY_STAGE_BYTES];
    int64_t bytes = list->element_bytes, chunk = EDDY_STAGE_BYTES / bytes;
    char *all[EDDY_STAGE_OPERANDS], *at[EDDY_STAGE_OPERANDS];
    int64_t strides[EDDY_STAGE_OPERANDS];
    for (int32_t k = 0; k < EDDY_STAGE_OPERANDS; k++)
        strides[k] = bytes;
    for (int32_t k = 0; k < EDDY_STAGE_BUFFERS; k++)
        all[list->operand_count + k] = buffers[k];
    for (int64_t begin = 0; begin < count; begin += chunk) {
        int64_t length = count - begin < chunk ? count - begin : chunk;
        for (int32_t k = 0; k < list->operand_count; k++)
            all[k] = data[k] + begin * bytes;
        for (const eddy_stage *stage = list->stages; stage < list->stages + list->count; stage++) {
            for (int32_t k = 0; k < stage->operand_count; k++)
                at[k] = all[stage->operands[k]];
            stage->loop(at, strides, length, attributes);
        }
    }
}
