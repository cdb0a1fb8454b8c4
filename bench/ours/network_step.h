/* A training step of the examples' networks (examples/network.h, examples/transformer.h), with gradients by the tape: the step of the cnn
 * and transformer rows. */
#ifndef BENCH_OURS_NETWORK_STEP_H
#define BENCH_OURS_NETWORK_STEP_H

#include <eddy/eddy.h>
#include <examples/network.h>
#include <examples/transformer.h>
#include <stdbool.h>

typedef struct network_step {
    network cnn;
    transformer decoder;
    bool is_cnn;
    eddy_tensor *inputs, *labels; /* labels: used by the cnn only */
    eddy_recorded *recorded;      /* replays the step; NULL: it is calls */
} network_step;

/* rows: of the batch. Ends the program on failure, as all functions here do. */
void network_step_init(network_step *t, bool is_cnn, int rows);
/* From now on the step is a recorded function. */
void network_step_replay(network_step *t);
void network_step_fini(network_step *t);
/* Issues a step. Returns its loss, which the caller owns. */
eddy_tensor *network_step_run(network_step *t);

#endif
