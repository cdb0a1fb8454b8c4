/* Inputs of a run that are on another device than the program has them. */
#ifndef EDDY_PROGRAM_FEEDS_H
#define EDDY_PROGRAM_FEEDS_H

#include <interpreter/handle/tensor.h>
#include <program/run.h>

/* The same as below, of a program that has some of them on other devices than the CPU. */
bool eddy_feeds_differ(const eddy_run *r);

static inline bool eddy_feeds_is_needed(const eddy_run *r) {
    if (EDDY_UNLIKELY(r->program && r->program->has_devices))
        return eddy_feeds_differ(r);
    for (int64_t i = 0; r->inputs.items && i < r->inputs.count; i++) {
        const eddy_tensor *input = r->inputs.items[i];
        if (EDDY_UNLIKELY(eddy_tensor_is_live(input) && input->device_kind != EDDY_DEVICE_CPU))
            return true;
    }
    return false;
}

/* Runs with copies of these inputs, which the program counts. */
eddy_status eddy_feeds_run(eddy_run *r, eddy_status (*run)(eddy_run *r));

#endif
