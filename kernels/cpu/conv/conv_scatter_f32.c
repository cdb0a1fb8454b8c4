#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/conv/conv_scatter_typed.h>
