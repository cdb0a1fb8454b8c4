/* Matrix products of integers. */
#ifndef EDDY_KERNELS_CPU_MATRIX_INTEGER_H
#define EDDY_KERNELS_CPU_MATRIX_INTEGER_H

#include <kernels/cpu/matrix/matrix_plan.h>

/* Writes the plan, and sets the function to run. Products wrap around; any layout; a bias (the third operand) is added.
 * The output is not empty. */
void eddy_matrix_integer_prepare(const eddy_matrix_plan *matrices, eddy_kernel_plan *plan);

#endif
