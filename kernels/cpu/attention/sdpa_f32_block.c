#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/attention/sdpa_typed.h>
