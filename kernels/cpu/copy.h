/* Copying one view into another of the same shape: the copy kernel, and what cat and packing use. */
#ifndef EDDY_KERNELS_CPU_COPY_H
#define EDDY_KERNELS_CPU_COPY_H

#include <kernels/kernel.h>

/* Any dtypes and layouts that do not overlap. Big copies are cut into slices; team NULL: none. */
void eddy_copy_view(eddy_kernel_team *team, const eddy_kernel_view *source, const eddy_kernel_view *target);

#endif
