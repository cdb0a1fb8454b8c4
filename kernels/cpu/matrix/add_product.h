/* sum += a b, for matrices of f32 or f64. The kernel of an op that programs alone have (program/passes/accumulate.c). */
#ifndef EDDY_KERNELS_CPU_ADD_PRODUCT_H
#define EDDY_KERNELS_CPU_ADD_PRODUCT_H

#include <kernels/kernel.h>

/* views: a [M, K], b [K, N], sum [M, N], which overlaps neither. The product is rounded before it is added, as by matmul and add. The fast kernel goes on from the
 * sum instead, where its rows or columns lie as a matrix library takes them. */
extern const eddy_kernel eddy_cpu_add_product;

/* A matmul that goes on from what its output holds, for such outputs: UNSUPPORTED for others, and then nothing is planned. */
extern const eddy_kernel eddy_cpu_matmul_onto;

#endif
