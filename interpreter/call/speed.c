#include <interpreter/call/speed.h>

#include <base/clock.h>
#include <base/float_environment.h>
#include <interpreter/call/op.h>

/* The factor's bounds: a measurement beyond them was disturbed, or ran under a checker. */
#define FACTOR_LEAST (EDDY_SPEED_ONE / 4)
#define FACTOR_MOST (2 * EDDY_SPEED_ONE)

/* Elements of one measurement: about a microsecond, within the first cache. */
#define ELEMENTS 2048
/* The first run of a loop is not counted. The least of the others is: other load only adds. */
#define RUNS 6

_Atomic int64_t eddy_speed_factor = EDDY_SPEED_ONE;

/* Arithmetic on registers, with the work of most ops; none waits for memory. */
static const char *const measured[] = {"exp", "tanh", "log", "sigmoid"};
#define MEASURED 4

static int64_t time_ns(const eddy_kernel *kernel, float *input, float *output) {
    static const int64_t strides[] = {sizeof(float), sizeof(float)};
    char *const data[] = {(char *)input, (char *)output};
    eddy_loop_fn *loop = eddy_kernel_loop(kernel);
    int64_t least = INT64_MAX;
    for (int run = 0; run < RUNS; run++) {
        int64_t began = eddy_clock_ns();
        loop(data, strides, ELEMENTS, NULL);
        int64_t took = eddy_clock_ns() - began;
        if (run > 0 && took < least)
            least = took;
    }
    return least;
}

static int64_t factor_of(const eddy_kernel *kernel, float *input, float *output) {
    int64_t expected_ps = kernel->cost_base_ps + ELEMENTS * (int64_t)kernel->cost_element_ps;
    return time_ns(kernel, input, output) * 1000 * EDDY_SPEED_ONE / expected_ps;
}

/* The mean without the least and the most. */
static int64_t middle_of(const int64_t *factors) {
    int64_t sum = 0, least = factors[0], most = factors[0];
    for (int i = 0; i < MEASURED; i++) {
        sum += factors[i];
        least = factors[i] < least ? factors[i] : least;
        most = factors[i] > most ? factors[i] : most;
    }
    return (sum - least - most) / (MEASURED - 2);
}

void eddy_speed_measure(void) {
    /* Not on the stack, which may be a small one of the program's; a process measures once. */
    static float input[ELEMENTS], output[ELEMENTS];
    eddy_float_environment kept = eddy_float_environment_enter();
    for (int i = 0; i < ELEMENTS; i++)
        input[i] = 0.25f + (float)i / ELEMENTS;
    int64_t factors[MEASURED];
    for (int i = 0; i < MEASURED; i++)
        factors[i] = factor_of(eddy_op_find(measured[i])->kernels[EDDY_F32], input, output);
    eddy_float_environment_leave(kept);
    int64_t factor = middle_of(factors);
    if (factor < FACTOR_LEAST)
        factor = FACTOR_LEAST;
    if (factor > FACTOR_MOST)
        factor = FACTOR_MOST;
    eddy_store_relaxed(&eddy_speed_factor, factor);
}
