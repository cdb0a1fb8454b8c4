/* What tests of runs that are recorded share. */
#ifndef TESTS_PROGRAM_INLINED_H
#define TESTS_PROGRAM_INLINED_H

#include <eddy/eddy.h>

/* f32: first, first + 1, ... */
eddy_tensor *line(double first, int64_t count);
void begin(bool records_only);
/* The one output of a run. */
eddy_tensor *run(eddy_program *program, eddy_list inputs);
int64_t recorded_of(const eddy_program *program);
/* y = 2 tanh(x) + b, of three numbers; b is captured. */
eddy_program *make_affine(eddy_tensor *b);

#endif
