/* Around each call that asks one of NVIDIA's libraries for a context or a plan. Such a call may take a second. Meanwhile it holds locks, loads other libraries and compiles; and what it loads is
 * registered to end with the process.
 *
 *   fork   waits until the question is over (base/fork_gate.h)
 *   exit   waits too, 10 s at most (`halt` of the backend). Eddy's handler runs ahead of the library's end, since it is registered again behind each question that may have registered one.
 *
 * One case is left: a process that ends during the question that first loads a library. The end of that library is then registered behind Eddy's handler, and runs ahead of it.
 *
 * Launching thread, within an entry (eddy_cuda_backend_begin). */
#ifndef EDDY_STREAMS_CUDA_QUESTION_H
#define EDDY_STREAMS_CUDA_QUESTION_H

#include <streams/backend.h>

void eddy_cuda_question_begin(eddy_backend *backend);
void eddy_cuda_question_end(eddy_backend *backend);

#endif
