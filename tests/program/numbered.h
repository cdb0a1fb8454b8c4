/* Programs with numbers that a run gives, for tests: as recorded functions make them. */
#ifndef TESTS_PROGRAM_NUMBERED_H
#define TESTS_PROGRAM_NUMBERED_H

#include <eddy/eddy.h>
#include <program/recording.h>

/* Opens a recording of the calling thread, whose numbers these are from now on. They outlive it. */
eddy_recording *record_numbers(eddy_scalar *numbers, uint32_t count);
/* The built program of the recording, which ends. Fails the test if there is none, or a number is lost. */
eddy_program *end_numbers(eddy_recording *recording, const eddy_bindings *bindings);

#endif
