#define EDDY_ELEMENT f32
#define EDDY_REAL float
#define DTYPE EDDY_F32
#include <kernels/cpu/matrix/gemm_vector_typed.h>
