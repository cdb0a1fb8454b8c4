#include "trainee.h"

#include <bench/ours/must.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <math.h>

eddy_tensor *trainee_floats(trainee *t, eddy_shape shape, float scale) {
    size_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= (size_t)shape.dims[d];
    float *values = bench_random_floats(&t->random, count);
    for (size_t i = 0; i < count; i++)
        values[i] *= scale;
    eddy_tensor *tensor = must_tensor(eddy_from_data(values, shape, EDDY_F32, NULL));
    free(values);
    return tensor;
}

void trainee_add(trainee *t, eddy_shape shape) {
    int64_t inputs = 1;
    for (int32_t d = 1; d < shape.rank; d++)
        inputs *= shape.dims[d];
    eddy_tensor *parameter = trainee_floats(t, shape, 1 / sqrtf((float)inputs));
    must(eddy_requires_grad_set(parameter, true));
    t->m[t->count] = must_tensor(eddy_zeros_like(parameter, NULL));
    t->v[t->count] = must_tensor(eddy_zeros_like(parameter, NULL));
    t->parameters[t->count++] = parameter;
    if (!t->step)
        t->step = must_tensor(eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL));
}

void trainee_learn(trainee *t, eddy_tensor *loss) {
    must(eddy_backward(loss));
    eddy_tensor *gradients[TRAINEE_PARAMETERS_MAX];
    for (int i = 0; i < t->count; i++)
        gradients[i] = must_tensor(eddy_grad_of(t->parameters[i]));
    eddy_list parameters = {t->parameters, t->count};
    must(eddy_adamw_step(parameters, (eddy_list){gradients, t->count}, (eddy_list){t->m, t->count},
                         (eddy_list){t->v, t->count}, t->step, EDDY_S(BENCH_ADAM_RATE), NULL));
    must(eddy_grads_zero(parameters));
}

void trainee_fini(trainee *t) {
    for (int i = 0; i < t->count; i++) {
        eddy_release(&t->parameters[i]);
        eddy_release(&t->m[i]);
        eddy_release(&t->v[i]);
    }
    eddy_release(&t->step);
}
