#define EDDY_ELEMENT f64
#define EDDY_REAL double
#define EDDY_WRAPPING double
#include <kernels/cpu/reduce/scan_typed.h>
