/* A process that ends while the launching thread of a CUDA device is inside cuDNN, whose fake takes longer for a plan (FAKE_CUDA_DNN_PLAN_MS) than work gets at exit, and finds who is inside it at its end.
 *
 *   test-plan_exit exits|shuts_down
 *
 * 0: all is well. 1: a call has failed; else the fake's finding ends it. */
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/fake_dnn.h>

static eddy_tensor *attend(int64_t rows) {
    eddy_tensor *x =
        eddy_ones(EDDY_SHAPE(rows, 8), EDDY_F16, EDDY_OPTIONS(ones, .device = EDDY_CUDA(0)));
    return eddy_sdpa(x, x, x, EDDY_NONE, NULL);
}

int main(int argc, char **argv) {
    /* With the seed it takes both. */
    setenv("FAKE_CUDA_DNN_PLAN_MS", "1200", 1);
    setenv("FAKE_CUDA_SEED", "2", 1);
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = true));
    if (argc != 2 || !runtime || eddy_runtime_use(runtime) != EDDY_OK)
        return 1;
    /* What the library registers for its end comes with its first plan. */
    if (eddy_wait(attend(8), EDDY_FOREVER) != EDDY_OK || executions() != 1 || !attend(9))
        return 1;
    if (strcmp(argv[1], "shuts_down") == 0 &&
        eddy_runtime_shutdown(runtime, 100000000) != EDDY_TIMED_OUT)
        return 1;
    eddy_error_take(NULL);
    return 0;
}
