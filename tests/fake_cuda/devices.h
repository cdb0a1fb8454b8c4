/* CUDA devices of a test: the fake driver has two, unless it is told otherwise; a GPU's may have one. */
#ifndef EDDY_TESTS_FAKE_CUDA_DEVICES_H
#define EDDY_TESTS_FAKE_CUDA_DEVICES_H

#include <criterion/criterion.h>
#include <eddy/device.h>
#include <stdlib.h>

static inline int32_t cuda_device_count(void) {
    int32_t count = eddy_device_count(EDDY_DEVICE_CUDA);
    cr_assert_geq(count, 1);
    cr_assert(count == 2 || !getenv("FAKE_CUDA_SEED") || getenv("FAKE_CUDA_DEVICES"),
              "the fake driver has %d devices", (int)count);
    return count;
}

/* Another one than the first, where there are several. */
static inline eddy_device cuda_last_device(void) {
    return EDDY_CUDA(cuda_device_count() - 1);
}

/* A test that needs two is skipped where there is one. */
static inline void cuda_ask_for_two(void) {
    if (cuda_device_count() < 2)
        cr_skip_test("there is one device");
}

#endif
