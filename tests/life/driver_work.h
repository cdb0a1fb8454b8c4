/* What driver_faults.c lets a device do while calls of its driver fail: some of everything that the public functions offer. */
#ifndef TESTS_LIFE_DRIVER_WORK_H
#define TESTS_LIFE_DRIVER_WORK_H

#include <eddy/eddy.h>
#include <stdbool.h>

#define DRIVER_PARTS 12
#define DRIVER_RESULTS 7
#define DRIVER_ELEMENTS 24
/* What no wait takes. */
#define DRIVER_DEADLINE ((int64_t)60 * 1000000000)

/* A tensor that the work has read, or has tried to; all zero where it has not. */
typedef struct driver_result {
    double elements[DRIVER_ELEMENTS];
    bool is_read;
} driver_result;

typedef struct driver_results {
    driver_result all[DRIVER_PARTS][DRIVER_RESULTS];
} driver_results;

/* Numbers that are the same on every device. `other` is a second device. Any call may fail; one that fails in a way that no lack and no loss of a device explains ends the process, with a line. */
void driver_work_run(eddy_device device, eddy_device other, driver_results *results);

/* Ends the process unless the status is OK, or one that a device brings about that fails. */
void driver_work_expect(eddy_status status, const char *what);

#endif
