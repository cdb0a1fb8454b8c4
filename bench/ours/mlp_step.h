/* A training step of the mlp rows' network, op by op: the backward pass is written in ops, without the tape. */
#ifndef BENCH_OURS_MLP_STEP_H
#define BENCH_OURS_MLP_STEP_H

#include <eddy/eddy.h>
#include <stdbool.h>

/* rows: of the batch. Ends the program on failure, as all functions here do. */
void mlp_step_init(int rows);
void mlp_step_fini(void);
/* Issues a step. Returns its loss, which the caller owns. */
eddy_tensor *mlp_step(bool with_adam);

#endif
