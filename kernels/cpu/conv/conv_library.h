/* Convolutions by oneDNN, slice by slice. Slices follow from shapes alone, so results do not depend on the number of threads. */
#ifndef EDDY_KERNELS_CPU_CONV_LIBRARY_H
#define EDDY_KERNELS_CPU_CONV_LIBRARY_H

#include <kernels/cpu/conv/conv_plan.h>

#ifdef EDDY_HAVE_DNNL
#include <kernels/cpu/conv/conv_prepared.h>

typedef struct eddy_conv_library {
    const eddy_conv_plan *plan;
    eddy_conv_image x, y;
    eddy_conv_direction direction;
    const eddy_op_view *bias; /* NULL: none */
    eddy_conv_cut cut;
    int64_t parts;
    eddy_conv_kinds kinds;
    const eddy_conv_prepared *prepared[EDDY_CONV_KINDS]; /* for each kind; held until the end */
    int32_t prepared_count;
    bool stages; /* results are f32 first, in the order of the image, and then rounded */
    size_t x_bytes, y_bytes, w_bytes, scratch_bytes, stage_bytes, part_bytes, workspace_bytes; /* of buffers; rounded */
    char *workspace;
    char *sums; /* EDDY_CONV_WEIGHT: a weight in f32 for each slice */
    size_t sum_bytes;
    _Atomic bool has_failed; /* atomic: any slice sets it, read when all are done */
} eddy_conv_library;

/* False where the library does not serve: then there is nothing to end. `most`: slices at most. */
bool eddy_conv_library_begin(eddy_conv_library *work, const eddy_conv_plan *plan, eddy_conv_direction direction,
                             const eddy_op_view *bias, int64_t most);
void eddy_conv_library_end(eddy_conv_library *work);
/* Computes, with as many bytes of workspace as workspace_bytes says. EDDY_CONV_WEIGHT: into `sums`, `sum_bytes` apart.
 * False where the library gave up (no memory): the result is still owed. */
bool eddy_conv_library_run(eddy_conv_library *work, eddy_kernel_team *team, void *workspace, void *sums,
                           size_t sum_bytes);
/* Starts what stands behind such a convolution, for eddy_kernel.start: the library where it serves, and what multiplies where it
 * gives up. */
bool eddy_conv_library_start(const eddy_conv_plan *plan, eddy_conv_direction direction);
#endif

#endif
