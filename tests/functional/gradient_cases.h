/* Calls whose gradients tests look at: those that the entries of ops name, and functions of tensors (gradient_chains.h). */
#ifndef EDDY_TESTS_FUNCTIONAL_GRADIENT_CASES_H
#define EDDY_TESTS_FUNCTIONAL_GRADIENT_CASES_H

#include <eddy/eddy.h>

#define GRADIENT_VARIABLE_MAX 6
#define GRADIENT_ELEMENT_MAX 64
#define GRADIENT_OUTPUT_MAX 128

/* Operands: those of described.h, and variables: "[2,3]" of f64, or "[2]=1,0.5" with the elements it has; "#0" is the first once more.
 * "least..most" is within what the elements of those behind it are, -2 and 2 else. */
typedef struct gradient_case {
    const char *name, *operands, *attributes;
    eddy_tensor *(*run)(eddy_tensor *const *x); /* NULL: the op of that name */
} gradient_case;

extern const gradient_case gradient_cases[];
extern const size_t gradient_case_count;

/* Its variables, and weights for the elements of its output. */
typedef struct gradient_problem {
    const gradient_case *which;
    int count; /* of variables */
    eddy_shape shapes[GRADIENT_VARIABLE_MAX];
    double values[GRADIENT_VARIABLE_MAX][GRADIENT_ELEMENT_MAX];
    double weights[GRADIENT_OUTPUT_MAX];
} gradient_problem;

void gradient_problem_make(gradient_problem *p, const gradient_case *c);
/* The floats that the call gives, one behind another where there are several; NULL with an error. What is drawn is the same at every call. */
eddy_tensor *gradient_case_output(const gradient_case *c, eddy_tensor *const *x);
int64_t gradient_element_count(const eddy_shape *shape);

#endif
