/* Filling a view with one element: for the fill kernels, and for kernels that write to a filled output. */
#ifndef EDDY_KERNELS_CPU_FILL_H
#define EDDY_KERNELS_CPU_FILL_H

#include <kernels/cpu/walk.h>

/* Sets every element to the one at `element`, which has the target's dtype. Large views are cut into slices. */
void eddy_fill_view(eddy_kernel_team *team, const eddy_op_view *target, const void *element);

/* The same in two steps, for plans. The first step needs no data; it writes at most EDDY_FILL_WORDS_MOST words and returns
 * the address behind them. The first word is the number of elements. */
#define EDDY_FILL_WORDS_MOST (1 + EDDY_WALK_WORDS_MOST(1))
int64_t *eddy_fill_prepare(const eddy_op_view *target, int64_t *words);
void eddy_fill_run(const int64_t *words, eddy_kernel_team *team, const eddy_op_view *target,
                   const void *element);

#endif
