/* What tests of programs under autograd share. */
#ifndef TESTS_PROGRAM_TAPED_H
#define TESTS_PROGRAM_TAPED_H

#include <eddy/eddy.h>

/* Makes a tensor a leaf that wants a gradient, and gives it back. */
eddy_tensor *leaf(eddy_tensor *tensor);
/* The sum of all elements, with its gradient. */
eddy_tensor *all(eddy_tensor *x);

/* A custom function: the cube of its one input. It does not say that it is pure. */
extern const eddy_function cube_function;

/* Ends the scope: no error, no tensor, and no memory of programs is left. */
void expect_nothing_left(eddy_scope *scope);
/* What is said about the function has this part. */
void expect_explained(eddy_recorded *recorded, const char *part);

#endif
