/* What a call came to: the test fails where it is not what was expected. */
#ifndef TESTS_PROGRAM_OUTCOME_H
#define TESTS_PROGRAM_OUTCOME_H

#include <eddy/eddy.h>

/* The status is EDDY_OK. The error slot is taken, so its sentence is what the failed test shows. */
void must(eddy_status status);

/* The error slot holds this status with exactly this sentence. It is taken. */
void expect_error(eddy_status status, const char *sentence);

/* Two tensors, waited for, have as many bytes, and the same ones. what: for the message of a failure. */
void must_have_same_bits(eddy_tensor *a, eddy_tensor *b, const char *what);

/* The sum of all elements, waited for; the tape does not see it. */
double sum_of(eddy_tensor *x);

#endif
