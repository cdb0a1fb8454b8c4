/* Ops that CUDA devices have no kernels for. Tests that go through all ops expect UNSUPPORTED of these where tensors are there. An op that gains one leaves the list, with
 * what tests/meson.build leaves out for its sake (cuda_gaps); with the last of them this file goes. */
#ifndef EDDY_TESTS_FUNCTIONAL_LACKING_H
#define EDDY_TESTS_FUNCTIONAL_LACKING_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_lacking(const char *op) {
    static const char *const ops[] = {"nonzero",       "masked_select", "unique",
                                      "unique_counts", "bincount",      "logsumexp"};
    const char *device = getenv("EDDY_DEVICE");
    if (!device || strncmp(device, "cuda", 4) != 0)
        return false;
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(ops[i], op) == 0)
            return true;
    return false;
}

/* Whose gradient needs such an op, or its functions, for some attributes: it is left out. */
static inline bool has_lacking_gradient(const char *op) {
    return is_lacking(op) || (strcmp(op, "masked_scatter") == 0 && is_lacking("masked_select")) ||
           (strcmp(op, "norm") == 0 && is_lacking("logsumexp"));
}

#endif
