/* Work for faults.c that records, builds and replays programs. */
#ifndef TESTS_LIFE_FAULT_PROGRAMS_H
#define TESTS_LIFE_FAULT_PROGRAMS_H

#include <eddy/status.h>

/* Two sums that depend on all that it ran: programs, and recorded functions. */
eddy_status run_programs(double *results);
/* The same of sizes that follow from others. */
eddy_status run_program_buckets(double *results);
/* The same of what guards read, of startup programs, shared builds and fast passes. */
eddy_status run_program_guards(double *results);
/* The same of calls behind runs, callbacks and rings. */
eddy_status run_program_callbacks(double *results);
/* The same of branches and loops, of gradients back through loops, and of scans. */
eddy_status run_program_branches(double *results);
eddy_status run_program_loops(double *results);
eddy_status run_program_scans(double *results);
/* The same of gradients that go back through runs, and through those of sizes that follow from others: one by one, in a bucket, from many outputs. */
eddy_status run_program_gradients(double *results);
eddy_status run_program_gradient_sizes(double *results);
eddy_status run_program_gradient_buckets(double *results);
eddy_status run_program_gradient_many(double *results);
/* The same of recorded functions that read what they have computed. */
eddy_status run_program_paths(double *results);
/* The same of recorded functions of two sizes. */
eddy_status run_program_sizes(double *results);
/* The same of programs on several devices. */
eddy_status run_program_devices(double *results);
#endif
