/* What a kernel reads and writes, as far as its parameters say. */
#ifndef EDDY_TESTS_FAKE_CUDA_TOUCH_H
#define EDDY_TESTS_FAKE_CUDA_TOUCH_H

#include <tests/fake_cuda/stream.h>

/* Fills the touches of the piece of a kernel, which the stream is about to get, and whose parameters are there. README.md says by which rules. Lock. */
void fake_touch_kernel(const fake_stream *stream, fake_piece *piece);

#endif
