/* Little address space (ulimit -v): from none to plenty, in small steps, a process of its own multiplies, convolves and pools
 * at sizes that go to a library. It gives the right numbers or says that there is no memory, and never dies of a signal: a convolution or
 * a pool that the library serves is done by it or fails. */
#include <eddy/eddy.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_BYTES ((int64_t)2 << 20)
#define STEPS 120

/* What the process has now; -1: unknown. */
static int64_t address_space_bytes(void) {
    long pages = -1;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld", &pages) != 1)
        pages = -1;
    if (file)
        fclose(file);
    return pages < 0 ? -1 : (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* 0: all right; 1: no memory, as it should be; 2: wrong numbers, or another error. */
static int compute(void) {
    enum { SIDE = 64, CHANNELS = 16 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_full(EDDY_SHAPE(SIDE, SIDE), EDDY_S(0.5), EDDY_F32, NULL);
    double product = eddy_item_f64(eddy_sum(eddy_matmul(a, a), EDDY_ALL_AXES, NULL), NULL);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, CHANNELS, SIDE, SIDE), EDDY_F32, NULL);
    eddy_tensor *w = eddy_ones(EDDY_SHAPE(CHANNELS, CHANNELS, 3, 3), EDDY_F32, NULL);
    double convolved =
        eddy_item_f64(eddy_sum(eddy_conv2d(x, w, EDDY_NONE, NULL), EDDY_ALL_AXES, NULL), NULL);
    double pooled = eddy_item_f64(
        eddy_sum(eddy_max_pool2d(x, EDDY_PAIR(3, 3), NULL), EDDY_ALL_AXES, NULL), NULL);
    eddy_scope_end(scope);
    eddy_status status = eddy_error_take(NULL);
    if (status != EDDY_OK)
        return status == EDDY_OUT_OF_MEMORY ? 1 : 2;
    bool is_right = product == SIDE * SIDE * SIDE * 0.25 &&
                    convolved == 2.0 * CHANNELS * (SIDE - 2) * (SIDE - 2) * CHANNELS * 9 &&
                    pooled == 2.0 * CHANNELS * (SIDE / 3) * (SIDE / 3);
    if (!is_right)
        fprintf(stderr, "%g %g %g\n", product, convolved, pooled);
    return is_right ? 0 : 2;
}

static int run_with(int64_t more) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        int64_t bytes = address_space_bytes() + more;
        const struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
        _exit(setrlimit(RLIMIT_AS, &limit) == 0 ? compute() : 3);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    int right = 0, bad = 0;
    if (address_space_bytes() < 0)
        return 77;
    for (int step = 0; step < STEPS; step++) {
        int status = run_with(step * STEP_BYTES);
        bool is_good = WIFEXITED(status) && WEXITSTATUS(status) <= 1;
        right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        bad += !is_good;
        if (!is_good)
            fprintf(stderr, "with %lld MB of address space more than at its start: %s %d\n",
                    (long long)(step * STEP_BYTES >> 20),
                    WIFSIGNALED(status) ? "signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    printf("%d of %d right, %d bad\n", right, STEPS, bad);
    return bad > 0 || right == 0;
}
