#define EDDY_ELEMENT f32
#define EDDY_FROM float
#define EDDY_REAL double
#define EDDY_WRAPPING double
#define EDDY_LOWEST (-__builtin_inf())
#define EDDY_HIGHEST __builtin_inf()
#define EDDY_IS_WIDE
#include <kernels/cpu/reduce/reduce_wide_typed.h>

const eddy_reduce_wide_blocks EDDY_ISA_NAME(eddy_cpu_reduce_wide_f32) = {WIDE_OPS};
