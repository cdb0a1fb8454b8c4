/* What elementwise ops should give, written apart from their entries: in double and long double, or in 128-bit
 * integers. */
#ifndef EDDY_TESTS_FUNCTIONAL_ORACLE_H
#define EDDY_TESTS_FUNCTIONAL_ORACLE_H

#include <eddy/dtype.h>
#include <stdbool.h>

/* Operands as numbers: exact for every dtype. */
typedef struct oracle_value {
    long double real;
    bool is_sum;       /* of a result: its terms may cancel, and `scale` is the largest of them */
    long double scale; /* else 0 */
    __int128 integer;
} oracle_value;

oracle_value oracle_load(eddy_dtype dtype, const void *element);

/* The value of an op on operands of `dtype`, behind which the numbers and choices of its attributes stand; false for a dtype that it does not
 * know. For comparisons the result is 0 or 1. */
typedef bool oracle_function(const oracle_value *operands, eddy_dtype dtype, oracle_value *result);

/* Of an op by its name ("add", "add_s", ...); NULL: there is none. */
oracle_function *oracle_of(const char *op);

/* How far `got`, an element of `dtype`, is from the value, in units of its last place (of the scale's, where that is larger): 0 also for NaN where NaN
 * is wanted, infinite where they differ in being finite. Integers and bool: 0, or infinite. */
double oracle_distance(eddy_dtype dtype, oracle_value want, const void *got);

#endif
