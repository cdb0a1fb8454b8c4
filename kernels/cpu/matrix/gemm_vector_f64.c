#define EDDY_ELEMENT f64
#define EDDY_REAL double
#define DTYPE EDDY_F64
#include <kernels/cpu/matrix/gemm_vector_typed.h>
