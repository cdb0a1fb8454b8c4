/* Reproducible random values for the tests of this room. */
#ifndef EDDY_TESTS_FUNCTIONAL_RANDOM_H
#define EDDY_TESTS_FUNCTIONAL_RANDOM_H

#include <eddy/dtype.h>
#include <stdint.h>

/* From EDDY_TEST_SEED, else fixed; failures print it. */
uint64_t random_seed(void);
uint64_t random_next(void);
/* 0 .. bound - 1 */
int64_t random_below(int64_t bound);
/* Writes one element: numbers of every size, and often a special one (NaN, infinities, zeros, subnormals,
 * extremes). */
void random_element(eddy_dtype dtype, void *element);

#endif
