/* Convolutions by oneDNN, slice by slice. Slices follow from shapes alone, so results do not depend on the number of threads. */
#ifndef EDDY_KERNELS_CPU_CONV_LIBRARY_H
#define EDDY_KERNELS_CPU_CONV_LIBRARY_H

#include <kernels/cpu/conv/conv_plan.h>

#ifdef EDDY_HAVE_DNNL
#include <kernels/cpu/conv/conv_prepared.h>

typedef struct eddy_conv_request {
    const eddy_conv_plan *plan;
    eddy_conv_direction direction;
    const eddy_op_view *bias; /* NULL: none */
    int64_t slices_most;
    bool is_winograd; /* by Winograd's algorithm, where the library has that and it pays */
} eddy_conv_request;

/* How the library computes a call; a part of the call's plan (kernels/kernel.h). */
typedef struct eddy_conv_library {
    eddy_conv_cut cut;
    eddy_conv_kinds kinds;
    const eddy_conv_prepared
        *prepared[EDDY_CONV_KINDS]; /* one for each kind, others NULL; held until the end */
    int64_t parts;
    bool is_winograd; /* by Winograd's algorithm */
    bool stages;      /* operands are converted to f32 in the same order, and results from it */
    /* Bytes of buffers, rounded up to a multiple of 64. */
    size_t bias_bytes, x_bytes, y_bytes, w_bytes, x_stage_bytes, y_stage_bytes, w_stage_bytes,
        scratch_bytes, part_bytes, workspace_bytes;
} eddy_conv_library;

/* UNSUPPORTED if the library does not serve the request. After UNSUPPORTED or OUT_OF_MEMORY there is nothing to end. Sets
 * *has_started_library if this call started the library, which it does not if memory is short. For eddy_kernel.prepare. */
EDDY_MUST_USE eddy_status eddy_conv_library_prepare(eddy_conv_library *library,
                                                    const eddy_conv_request *request,
                                                    bool *has_started_library);
void eddy_conv_library_end(const eddy_conv_library *library);
/* Computes, with workspace_bytes of workspace. EDDY_CONV_WEIGHT: writes a gradient of the weight in f32 for each slice to
 * `sums`, `sum_bytes` apart. If the library lacks memory, the call fails. */
void eddy_conv_library_run(const eddy_conv_library *library, const eddy_conv_request *request,
                           const eddy_kernel_call *call, void *workspace, void *sums,
                           size_t sum_bytes);
#endif

#endif
