/* Parameters, their moments and a step of AdamW, for the networks of the small_* rows. */
#ifndef BENCH_OURS_TRAINEE_H
#define BENCH_OURS_TRAINEE_H

#include <eddy/eddy.h>
#include <stdint.h>

#define TRAINEE_PARAMETERS_MAX 16

typedef struct trainee {
    int count;
    eddy_tensor *parameters[TRAINEE_PARAMETERS_MAX];
    eddy_tensor *m[TRAINEE_PARAMETERS_MAX], *v[TRAINEE_PARAMETERS_MAX];
    eddy_tensor *step;
    uint32_t random;
} trainee;

/* f32 in [-scale, scale), the same in each run. All functions here end the program on failure. */
eddy_tensor *trainee_floats(trainee *t, eddy_shape shape, float scale);
/* Adds a parameter, uniform in [-b, b) with b = 1 / sqrt(inputs). */
void trainee_add(trainee *t, eddy_shape shape);
/* Backward pass from the loss, and one step of AdamW. */
void trainee_learn(trainee *t, eddy_tensor *loss);
void trainee_fini(trainee *t);

#endif
