/* Around what asks a library of NVIDIA's for a plan. It may take a second, and longer than other calls of its holds locks, compiles, and registers what is to run at exit. So a fork waits for it
 * (base/fork_gate.h), and Eddy's own handler is registered again behind it: that waits until no thread is inside (`halt` of the backend), before anything of the library's ends. Of the first question
 * alone what it has registered comes ahead.
 *
 * Launching thread, within an entry (eddy_cuda_backend_begin). */
#ifndef EDDY_STREAMS_CUDA_QUESTION_H
#define EDDY_STREAMS_CUDA_QUESTION_H

void eddy_cuda_question_begin(void);
void eddy_cuda_question_end(void);

#endif
