#define EDDY_ELEMENT f64
#define EDDY_REAL double
#include <kernels/cpu/pool/pool_average_typed.h>
