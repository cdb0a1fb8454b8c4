#include <kernels/cpu/lanes.h>
#include <kernels/cpu/mask_block.h>

/* The element is read whatever the mask says, and no branch has to be foretold. */
#define FILL(bits)                                                                                                     \
    static void fill_##bits(void *out, int64_t out_stride, const void *in, int64_t in_stride, const uint8_t *mask,     \
                            int64_t mask_stride, const void *value, int64_t count) {                                   \
        uint##bits##_t *to = out;                                                                                      \
        const uint##bits##_t *from = in, filled = *(const uint##bits##_t *)value;                                      \
        if (out_stride == 1 && in_stride == 1 && mask_stride == 1) {                                                   \
            EDDY_LANES_INDEPENDENT                                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                uint##bits##_t element = from[i];                                                                      \
                to[i] = mask[i] ? filled : element;                                                                    \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                uint##bits##_t element = from[i * in_stride];                                                          \
                to[i * out_stride] = mask[i * mask_stride] ? filled : element;                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

FILL(8)
FILL(16)
FILL(32)
FILL(64)

const eddy_mask_blocks EDDY_ISA_NAME(eddy_cpu_mask_blocks) = {fill_8, fill_16, fill_32, fill_64};
