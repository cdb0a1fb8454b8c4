/* Matrix products of integers. */
#ifndef EDDY_KERNELS_CPU_MATRIX_INTEGER_H
#define EDDY_KERNELS_CPU_MATRIX_INTEGER_H

#include <kernels/cpu/matrix/matrix_plan.h>

/* Wraps around; any layout; a bias is added. */
void eddy_matrix_integer_run(const eddy_kernel_call *call, const eddy_matrix_plan *plan);

#endif
