/* Filling a view with one element: the fill kernels, and what needs a ground to write on. */
#ifndef EDDY_KERNELS_CPU_FILL_H
#define EDDY_KERNELS_CPU_FILL_H

#include <kernels/kernel.h>

/* Sets every element to the one at `element`, which has the target's dtype. Big views are cut into slices. */
void eddy_fill_view(eddy_kernel_team *team, const eddy_op_view *target, const void *element);

#endif
