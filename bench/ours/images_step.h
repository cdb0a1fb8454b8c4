/* A training step of three convolutions and two pools on images of 3 x 32 x 32, as a function to be recorded or called. */
#ifndef BENCH_OURS_IMAGES_STEP_H
#define BENCH_OURS_IMAGES_STEP_H

#include <eddy/eddy.h>
#include <stdbool.h>

#define IMAGES_PARAMS 8

typedef struct images_step {
    eddy_tensor *params[IMAGES_PARAMS]; /* of each layer weight and bias */
    eddy_tensor *inputs[2];             /* images, labels */
    bool is_last;                       /* the first convolution makes images channels-last */
} images_step;

/* Ends the program on failure, as images_step_run does. The caller's scope owns its tensors. */
images_step images_step_make(int batch, bool is_last);
/* context: the step; the one output is the loss. */
eddy_status images_step_run(void *context, eddy_recorded_call *call);

#endif
