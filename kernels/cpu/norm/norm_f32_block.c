#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/norm/norm_typed.h>
