#define EDDY_ELEMENT f64
#define EDDY_REAL double
#define WIDTH EDDY_GEMM_WIDTH_F64
#include <kernels/cpu/matrix/gemm_typed.h>
