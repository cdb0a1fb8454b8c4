#define EDDY_ELEMENT f64
#define EDDY_REAL double
#define EDDY_WHOLE int64_t
#include <kernels/cpu/pool/pool_typed.h>
