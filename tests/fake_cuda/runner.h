/* The thread of a device: runs pieces one at a time, of streams that may go on, which it picks by the seed. */
#ifndef EDDY_TESTS_FAKE_CUDA_RUNNER_H
#define EDDY_TESTS_FAKE_CUDA_RUNNER_H

#include <tests/fake_cuda/device.h>

/* Of a thread; `context` is the device. It ends soon after is_ending. */
void *fake_runner_main(void *context);

#endif
