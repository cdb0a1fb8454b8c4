/* What the kernel check_finite is told, which is no op's: devices that run no code of the host look through results with it (EDDY_CHECK_FINITE). Plain C, for CUDA sources
 * too. */
#ifndef EDDY_KERNELS_FINITE_H
#define EDDY_KERNELS_FINITE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct eddy_attributes_check_finite {
    int64_t operand;     /* number of the one that is looked through: the failure's position */
    bool wants_infinity; /* an infinity is an error, too, unless an operand of the call held one */
} eddy_attributes_check_finite;

#endif
