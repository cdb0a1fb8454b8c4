/* Numbers beside tensors: the one rule by which an eddy_scalar becomes a number of a dtype (docs/numbers.md). */
#ifndef EDDY_BASE_NUMBER_H
#define EDDY_BASE_NUMBER_H

#include <eddy/dtype.h>
#include <eddy/scalar.h>
#include <stdbool.h>

/* Makes *number one of the dtype's: FLOAT for floats, which round it once; INT for integers, towards 0; BOOL (whether it is
 * not 0) for bool. False where an integer dtype does not hold it (too large, too small, NaN), and *number is as it was;
 * with `wraps` an integer wraps around instead, as sums and products do. */
bool eddy_number_convert(eddy_scalar *number, eddy_dtype dtype, bool wraps);

/* The number as text, as errors show it: "256", "nan". Returns its length as snprintf does. */
int eddy_number_format(eddy_scalar number, char *buffer, size_t size);

#endif
