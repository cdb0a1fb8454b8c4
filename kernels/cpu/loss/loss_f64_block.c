#define EDDY_ELEMENT f64
#define EDDY_REAL double
#include <kernels/cpu/loss/loss_typed.h>
