#define EDDY_ELEMENT f32
#define EDDY_REAL float
#define WIDTH EDDY_GEMM_WIDTH_F32
#include <kernels/cpu/matrix/gemm_typed.h>
