#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/reduce/reduce_real_typed.h>
