#define EDDY_ELEMENT f32
#define EDDY_REAL float
#include <kernels/cpu/loss/loss_typed.h>
