/* A program to be watched: says that it is ready, and computes until its input ends. */
#include <eddy/eddy.h>
#include <poll.h>
#include <stdio.h>

static int is_over(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

int main(void) {
    eddy_tensor *x = eddy_full(EDDY_SHAPE(64, 64), EDDY_S(0.5), EDDY_F32, NULL);
    eddy_wait(x, EDDY_FOREVER);
    puts("ready");
    fflush(stdout);
    while (!is_over()) {
        eddy_tensor *y = eddy_matmul(x, x);
        eddy_wait(y, EDDY_FOREVER);
        eddy_release(&y);
    }
    eddy_release(&x);
    return eddy_error_take(NULL) != EDDY_OK;
}
