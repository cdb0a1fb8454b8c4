#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/pool/pool_average_typed.h>
