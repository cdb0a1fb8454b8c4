/* Ranges of the user's (eddy/trace.h), as the calling thread has them open. */
#ifndef EDDY_BASE_RANGE_H
#define EDDY_BASE_RANGE_H

#include <stddef.h>

/* " (in train, step 3)", from the outermost on; "" where none is open or there is not enough room. */
void eddy_range_describe(char *buffer, size_t size);

#endif
