/* One elementwise loop made of several. They run one after another over some cache lines at a time, so that intermediate
 * results stay in the first-level cache. Long functions (sin, pow) are then compiled once, in the loop of their op. */
#ifndef EDDY_KERNELS_CPU_STAGE_H
#define EDDY_KERNELS_CPU_STAGE_H

#include <kernels/cpu/dense.h>

#define EDDY_STAGE_BUFFERS 2
/* Operands of one stage at most, its target included: as many as there are. */
#define EDDY_STAGE_OPERANDS (EDDY_DENSE_OPERANDS + EDDY_STAGE_BUFFERS)
#define EDDY_STAGE_BYTES 2048 /* of an operand at a time */

/* Operands are numbers: first the operands of the whole loop, its target last, then the buffers. A stage writes its last
 * operand, and may read it too. */
typedef struct eddy_stage {
    eddy_loop_fn *loop;
    uint8_t operands[EDDY_STAGE_OPERANDS];
    uint8_t operand_count;
} eddy_stage;

typedef struct eddy_stage_list {
    const eddy_stage *stages;
    uint8_t count;
    uint8_t operand_count; /* of the whole loop, its target included */
    uint8_t element_bytes;
} eddy_stage_list;

/* Elements are contiguous; each stage receives the attributes. */
void eddy_stage_run(const eddy_stage_list *list, char *const *data, int64_t count,
                    const void *attributes);

#endif
