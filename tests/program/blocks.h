/* Functions of branches and loops, and small tensors, for tests. */
#ifndef TESTS_PROGRAM_BLOCKS_H
#define TESTS_PROGRAM_BLOCKS_H

#include <eddy/eddy.h>

/* outputs[0], and the status of a function that gives it. */
eddy_status done(eddy_tensor **outputs, eddy_tensor *tensor);

/* Of inputs[0]: twice, the same, half, whether the sum is above 4, something whose shape depends on data on the way. */
eddy_status twice(void *context, eddy_list inputs, eddy_tensor **outputs);
eddy_status same(void *context, eddy_list inputs, eddy_tensor **outputs);
eddy_status half(void *context, eddy_list inputs, eddy_tensor **outputs);
eddy_status is_large(void *context, eddy_list inputs, eddy_tensor **outputs);
eddy_status late(void *context, eddy_list inputs, eddy_tensor **outputs);

/* f32 of shape [3] and []. */
eddy_tensor *of(double value);
eddy_tensor *scalar(double value);
/* bool of shape []. */
eddy_tensor *truth(bool value);

/* eddy_record_end; the test fails where there is no program. */
eddy_program *end(const eddy_bindings *bindings);

#endif
