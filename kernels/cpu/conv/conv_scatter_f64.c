#define EDDY_ELEMENT f64
#define EDDY_REAL double
#include <kernels/cpu/conv/conv_scatter_typed.h>
