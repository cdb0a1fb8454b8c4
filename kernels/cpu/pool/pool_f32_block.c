#define EDDY_ELEMENT f32
#define EDDY_REAL float
#define EDDY_WHOLE int32_t
#include <kernels/cpu/pool/pool_typed.h>
