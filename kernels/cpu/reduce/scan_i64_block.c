#define EDDY_ELEMENT i64
#define EDDY_REAL int64_t
#define EDDY_WRAPPING uint64_t
#include <kernels/cpu/reduce/scan_typed.h>
