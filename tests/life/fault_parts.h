/* What the works of faults.c are made of. */
#ifndef TESTS_LIFE_FAULT_PARTS_H
#define TESTS_LIFE_FAULT_PARTS_H

#include <eddy/tensor.h>

/* Of x. */
#define ROWS 4
#define COLUMNS 6

#define FAULT_PARTS_MOST 4

/* x: ones. */
typedef eddy_status fault_part(eddy_tensor *x, double *result);

/* Runs the parts up to the first that is NULL; each result goes into one of two sums. */
eddy_status fault_run_parts(fault_part *const *parts, double *results);

/* The sum of the gradient of w, from the squares of y. */
eddy_status fault_go_back(eddy_tensor *y, eddy_tensor *w, double *result);
/* The squares of the gradient, which go back to w through the calls of the runs. */
eddy_status fault_penalize(eddy_tensor *y, eddy_tensor *w);

#endif
