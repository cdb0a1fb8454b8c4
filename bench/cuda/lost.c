/* Whether a lost device takes nothing with it but its own tensors: a kernel of the program's own traps on the device that Eddy uses.
 *
 *   cuda_lost [--device N]       status 0 and a line "lost: ..." if so */
#include "bare.h"

#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE (20 * INT64_C(1000000000)) /* ns */

static eddy_tensor *ones(eddy_device device) {
    return eddy_ones(EDDY_SHAPE(4), EDDY_F32, EDDY_OPTIONS(ones, .device = device));
}

static int failed(const char *what) {
    eddy_error error = {0};
    eddy_error_take(&error);
    fprintf(stderr, "cuda_lost: %s: %s\n", what, error.message);
    return 1;
}

int main(int argc, char **argv) {
    int index = argc == 3 && strcmp(argv[1], "--device") == 0 ? atoi(argv[2]) : 0;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = ones(EDDY_CUDA(index)), *here = ones(EDDY_CPU);
    if (!there || !here || eddy_wait(eddy_add(there, there), DEADLINE) != EDDY_OK)
        return failed("an add before the loss");
    if (!bare_begin(index) || !bare_trap())
        return failed("the kernel that traps did not run");
    if (eddy_wait(eddy_add(there, there), DEADLINE) != EDDY_DEVICE_LOST)
        return failed("an add there says something else");
    eddy_error said;
    eddy_error_take(&said);
    double sum = 0;
    if (eddy_read_f64(eddy_sum(eddy_add(here, here), EDDY_ALL_AXES, NULL), &sum, NULL) != EDDY_OK ||
        sum != 8)
        return failed("the CPU computes no more");
    eddy_scope_end(scope);
    if (eddy_runtime_shutdown(eddy_runtime_current(), DEADLINE) != EDDY_OK)
        return failed("the runtime does not end");
    printf("lost: %s\n", said.message);
    return 0;
}
