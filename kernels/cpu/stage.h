/* One elementwise loop made of several, which run one after another over some cache lines at a time: what is between them stays in the
 * first cache. Long functions (sin, pow) are then compiled once, in the loop of their op. */
#ifndef EDDY_KERNELS_CPU_STAGE_H
#define EDDY_KERNELS_CPU_STAGE_H

#include <kernels/cpu/dense.h>

#define EDDY_STAGE_BUFFERS 2
/* Of one stage at most, what it writes among them: all there is. */
#define EDDY_STAGE_OPERANDS (EDDY_DENSE_OPERANDS + EDDY_STAGE_BUFFERS)
#define EDDY_STAGE_BYTES 2048 /* of an operand at a time */

/* Operands are numbers: those of the whole, its target behind them, then the buffers. The last one is written; it may be read too. */
typedef struct eddy_stage {
    eddy_loop_fn *loop;
    uint8_t operands[EDDY_STAGE_OPERANDS];
    uint8_t operand_count;
} eddy_stage;

typedef struct eddy_stage_list {
    const eddy_stage *stages;
    uint8_t count;
    uint8_t operand_count; /* of the whole, with its target */
    uint8_t element_bytes;
} eddy_stage_list;

/* Elements lie side by side; each stage gets the attributes. */
void eddy_stage_run(const eddy_stage_list *list, char *const *data, int64_t count,
                    const void *attributes);

#endif
