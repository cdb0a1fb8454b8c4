/* Towers of small products, which several streams run at once, in runtimes of a test's own. */
#ifndef TESTS_PROGRAM_TOWERS_H
#define TESTS_PROGRAM_TOWERS_H

#include <eddy/eddy.h>

/* Products with the weight, each through tanh. */
eddy_tensor *towers_grow(eddy_tensor *h, eddy_tensor *weight, int depth);

/* A new runtime, which becomes the thread's; and the end of its use, and of this reference. */
eddy_runtime *towers_enter(const eddy_runtime_options *options);
void towers_leave(eddy_runtime **runtime);

#endif
