/* A process that ends or forks while the launching thread of a CUDA device is inside cuDNN. The fake of that takes longer for a plan (FAKE_CUDA_DNN_PLAN_MS) than work gets at exit, and at its own end it finds
 * whoever is inside.
 *
 *   test-plan_exit exits|shuts_down|forks|behind_products
 *
 * 0: all is well. 1: a call has failed, or the library was not used. A finding of the fake ends the process. */
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/functional/fake_dnn.h>
#include <unistd.h>

/* With the seed the fake takes the sizes that are used below. */
#define SEED "2"
#define PLAN_MS "1200"
/* More geometries than questions that register a handler in any case (streams/cuda/question.c). */
#define PRODUCTS 80
#define WATCHDOG_SECONDS 100

static eddy_tensor *ones(eddy_shape shape, eddy_dtype dtype) {
    return eddy_ones(shape, dtype, EDDY_OPTIONS(ones, .device = EDDY_CUDA(0)));
}

static eddy_tensor *attend(int64_t rows) {
    eddy_tensor *x = ones(EDDY_SHAPE(rows, 8), EDDY_F16);
    return eddy_sdpa(x, x, x, EDDY_NONE, NULL);
}

static eddy_tensor *convolve(int64_t rows) {
    return eddy_conv2d(ones(EDDY_SHAPE(1, 3, rows, 7), EDDY_F32),
                       ones(EDDY_SHAPE(4, 3, 3, 2), EDDY_F32), EDDY_NONE, NULL);
}

static bool multiply(void) {
    bool is_well = true;
    for (int64_t rows = 2; rows < 2 + PRODUCTS; rows++) {
        eddy_tensor *x = ones(EDDY_SHAPE(rows, rows), EDDY_F32);
        is_well &= eddy_wait(eddy_matmul(x, x), EDDY_FOREVER) == EDDY_OK;
    }
    return is_well;
}

/* The first call is over: what the library registers for its end comes with its first plan. The second plan is under way. */
static bool begin(eddy_tensor *(*call)(int64_t rows), int64_t rows) {
    bool is_well =
        eddy_wait(call(rows), EDDY_FOREVER) == EDDY_OK && executions() == 1 && call(rows + 1);
    while (is_well && plans_under_way() == 0)
        usleep(1000);
    return is_well;
}

static bool is_forked_well(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(WATCHDOG_SECONDS);
        exit(0);
    }
    int code;
    return waitpid(child, &code, 0) == child && code == 0;
}

int main(int argc, char **argv) {
    const char *way = argc == 2 ? argv[1] : "";
    bool is_behind_products = strcmp(way, "behind_products") == 0;
    alarm(WATCHDOG_SECONDS);
    setenv("FAKE_CUDA_DNN_PLAN_MS", PLAN_MS, 1);
    setenv("FAKE_CUDA_SEED", SEED, 1);
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = !is_behind_products));
    bool is_well = runtime && eddy_runtime_use(runtime) == EDDY_OK;
    if (is_behind_products)
        is_well = is_well && multiply() && begin(convolve, 5);
    else
        is_well = is_well && begin(attend, 8);
    if (strcmp(way, "shuts_down") == 0)
        is_well = is_well && eddy_runtime_shutdown(runtime, 100000000) == EDDY_TIMED_OUT;
    if (strcmp(way, "forks") == 0)
        is_well = is_well && is_forked_well();
    eddy_error_take(NULL);
    return is_well ? 0 : 1;
}
