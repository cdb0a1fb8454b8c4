/* Captures: what a stream is asked for goes to a graph (graph.h) instead, and which calls are refused meanwhile, to whom. */
#ifndef EDDY_TESTS_FAKE_CUDA_CAPTURE_H
#define EDDY_TESTS_FAKE_CUDA_CAPTURE_H

#include <tests/fake_cuda/stream.h>

/* Whether the stream captures: it is asked for something that is no kernel, or cannot be while it does, and what it has captured is lost. Lock. */
bool fake_capture_spoil(fake_stream *stream);
/* Whether the entry may not be called by this thread, for a capture that it heeds: that is lost. Lock. */
bool fake_capture_refuses(fake_entry entry);

#endif
