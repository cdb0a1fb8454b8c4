#include <kernels/cpu/lanes.h>
#include <kernels/cpu/move_block.h>
#include <string.h>

#define VECTORS 4

typedef char vector __attribute__((vector_size(EDDY_VECTOR_BYTES), aligned(1), may_alias));

/* All loads of a step come before its stores: a load that comes just after a store to the same place of another page waits
 * for it. */
static void copy(void *target, const void *source, size_t bytes) {
    char *to = target;
    const char *from = source;
    size_t done = 0;
    for (; done + VECTORS * EDDY_VECTOR_BYTES <= bytes; done += VECTORS * EDDY_VECTOR_BYTES) {
        vector step[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            step[v] = *(const vector *)(from + done + v * EDDY_VECTOR_BYTES);
        for (int v = 0; v < VECTORS; v++)
            *(vector *)(to + done + v * EDDY_VECTOR_BYTES) = step[v];
    }
    memcpy(to + done, from + done, bytes - done);
}

static void fill(void *target, const void *line, size_t bytes) {
    char *to = target;
    vector value = *(const vector *)line;
    size_t done = 0;
    for (; done + VECTORS * EDDY_VECTOR_BYTES <= bytes; done += VECTORS * EDDY_VECTOR_BYTES)
        for (int v = 0; v < VECTORS; v++)
            *(vector *)(to + done + v * EDDY_VECTOR_BYTES) = value;
    for (; done + EDDY_MOVE_LINE <= bytes; done += EDDY_MOVE_LINE)
        memcpy(to + done, line, EDDY_MOVE_LINE);
    memcpy(to + done, line, bytes - done);
}

#define REVERSE(bits)                                                                                                  \
    static void reverse_##bits(void *target, const void *source, int64_t count) {                                      \
        uint##bits##_t *restrict to = target;                                                                          \
        const uint##bits##_t *restrict from = source;                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = from[-i];                                                                                          \
    }

REVERSE(32)
REVERSE(64)

const eddy_move_blocks EDDY_ISA_NAME(eddy_cpu_move_blocks) = {copy, fill, reverse_32, reverse_64};
