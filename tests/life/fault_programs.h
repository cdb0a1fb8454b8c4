/* Work for faults.c that records, builds and replays programs. */
#ifndef TESTS_LIFE_FAULT_PROGRAMS_H
#define TESTS_LIFE_FAULT_PROGRAMS_H

#include <eddy/status.h>

/* Two sums that depend on all that it ran. */
eddy_status run_programs(double *results);
/* The same of gradients that go back through runs. */
eddy_status run_program_gradients(double *results);
/* The same of recorded functions that read what they have computed. */
eddy_status run_program_paths(double *results);
/* The same of recorded functions of two sizes. */
eddy_status run_program_sizes(double *results);
/* The same of programs on several devices. */
eddy_status run_program_devices(double *results);
#endif
