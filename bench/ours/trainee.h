/* Parameters, their moments and a step of AdamW, for the small_* rows' networks. */
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

/* f32 in [-scale, scale), the same at each run. Ends the program on failure, as everything here. */
eddy_tensor *trainee_floats(trainee *t, eddy_shape shape, float scale);
/* Adds a parameter, uniform in one over the root of its inputs. */
void trainee_add(trainee *t, eddy_shape shape);
/* Backward of the loss and one step of AdamW. */
void trainee_learn(trainee *t, eddy_tensor *loss);
void trainee_fini(trainee *t);

#endif
