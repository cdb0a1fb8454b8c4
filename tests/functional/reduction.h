/* What reductions should give, written apart from their kernels: in long double over the elements, or in integers of 64 bits. */
#ifndef EDDY_TESTS_FUNCTIONAL_REDUCTION_H
#define EDDY_TESTS_FUNCTIONAL_REDUCTION_H

#include <eddy/dtype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names of all reductions over axes, from the op list. */
extern const char *const reduction_names[];
extern const size_t reduction_count;

/* `real` of a float, else `whole`: exact for every dtype. */
typedef union reduction_element {
    double real;
    int64_t whole;
} reduction_element;

typedef struct reduction_elements {
    const reduction_element *at; /* those of one output, in row-major order */
    int64_t count;
    eddy_dtype dtype;
    double parameter; /* correction, p; unused where the op has none */
} reduction_elements;

/* `real` of a float result, else `whole`. */
typedef struct reduction_value {
    long double real;
    double bound; /* how far off it may be, before it is rounded to 16 bits */
    int64_t whole;
} reduction_value;

/* The default of an op's option that is a number; 0 where it has none. */
double reduction_parameter(const char *op);

/* False where the op refuses to reduce nothing. */
bool reduction_apply(const char *op, const reduction_elements *elements, reduction_value *want);

/* Whether `got`, a number of the dtype, is within the bound. */
bool reduction_is_near(eddy_dtype dtype, reduction_value want, double got);

#endif
