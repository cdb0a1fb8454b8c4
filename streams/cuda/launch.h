/* Launches of kernels (kernels/cuda/launch.h), and the one that only looks. */
#ifndef EDDY_STREAMS_CUDA_LAUNCH_H
#define EDDY_STREAMS_CUDA_LAUNCH_H

#include <streams/backend.h>

/* `look` of the backend. Launching thread. */
eddy_status eddy_cuda_launch_look(const eddy_backend_launch *launch);

#endif
