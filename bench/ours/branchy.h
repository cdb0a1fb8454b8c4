/* A random program whose tensors have different sizes and lifetimes, to test plans of memory. */
#ifndef BENCH_OURS_BRANCHY_H
#define BENCH_OURS_BRANCHY_H

#include <eddy/eddy.h>

#define BRANCHY_INPUTS 4

typedef struct branchy {
    eddy_tensor *inputs[BRANCHY_INPUTS];
} branchy;

/* Ends the program on failure, as all functions here do. */
void branchy_init(branchy *b);
void branchy_fini(branchy *b);
/* Issues the same ops each time. Returns a number that depends on all branches; the caller owns it. */
eddy_tensor *branchy_run(const branchy *b);

#endif
