/* Ends a measuring program with the error of the Eddy call that failed: a run that failed gives no figures. */
#ifndef BENCH_OURS_MUST_H
#define BENCH_OURS_MUST_H

#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must_fail(void) {
    eddy_error error = {0};
    eddy_status status = eddy_error_take(&error);
    fprintf(stderr, "bench: %s: %s\n", eddy_status_text(status), error.message);
    exit(1);
}

static inline void must(eddy_status status) {
    if (status != EDDY_OK)
        must_fail();
}

static inline eddy_tensor *must_tensor(eddy_tensor *tensor) {
    if (!tensor)
        must_fail();
    return tensor;
}

#endif
