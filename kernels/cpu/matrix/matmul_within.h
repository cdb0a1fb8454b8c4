/* matmul as a part of another kernel, whose call it is made in: its plan lies behind that kernel's own, and its workspace behind the product, where that lies in the
 * workspace (aside). */
#ifndef EDDY_KERNELS_CPU_MATMUL_WITHIN_H
#define EDDY_KERNELS_CPU_MATMUL_WITHIN_H

#include <kernels/kernel.h>

typedef struct eddy_matmul_within {
    void (*run)(const eddy_kernel_call *call);
    size_t aside_bytes; /* of the product in the workspace; 0: it is computed elsewhere */
    size_t workspace_bytes;
} eddy_matmul_within;

/* The product as a row-major matrix at the workspace's beginning, with the shape of the view. */
eddy_op_view eddy_matmul_aside(const eddy_kernel_call *call, const eddy_op_view *shaped,
                               eddy_dtype dtype, int64_t *strides);

/* views: a, b, product. memory: of matmul's plan. Sets workspace, cost, bytes and has_started_library of the plan to what matmul takes, the product aside included. */
eddy_status eddy_matmul_within_prepare(eddy_matmul_within *within, const eddy_kernel_call *call,
                                       const eddy_op_view *views, void *memory,
                                       eddy_kernel_plan *plan);
void eddy_matmul_within_run(const eddy_matmul_within *within, const eddy_kernel_call *call,
                            const eddy_op_view *views, const void *memory);

#endif
