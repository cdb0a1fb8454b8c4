/* Launches of kernels (kernels/cuda/launch.h), and the one that only looks. */
#ifndef EDDY_STREAMS_CUDA_LAUNCH_H
#define EDDY_STREAMS_CUDA_LAUNCH_H

#include <base/assert.h>
#include <streams/backend.h>

/* `look` of the backend. Launching thread. */
eddy_status eddy_cuda_launch_look(const eddy_backend_launch *launch);
/* Before something that does not look itself, and writes nothing in place: looks, unless something of the launch has. False: there was no memory for that, and the launch has failed. Launching
 * thread. */
EDDY_MUST_USE bool eddy_cuda_launch_gate(eddy_backend_launch *launch);

#endif
