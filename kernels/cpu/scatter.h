/* Writing or adding elements to the places that indices name: scatter, scatter_add, index_add, index_put and the gradient of
 * embedding.
 *
 * A place of the output is written by one slice only, which takes the elements meant for it in the order of the index: no
 * bit depends on the number of threads. */
#ifndef EDDY_KERNELS_CPU_SCATTER_H
#define EDDY_KERNELS_CPU_SCATTER_H

#include <kernels/cpu/walk.h>

typedef struct eddy_scatter {
    const eddy_kernel_call *call;
    /* The dims of source that the index goes through, in its order; then those besides, in any order. Operands of both:
     * out (strides 0 in `along`), source, index, and the index's row-major number for errors. */
    eddy_walk along, rest;
    const void *source, *index;
    eddy_dtype source_dtype, index_dtype;
    int64_t step;     /* of out, for an index of 1 */
    int64_t bound;    /* indices are below it; negative: they have been checked */
    bool from_end;    /* negative indices count from the end */
    int64_t left_out; /* an index whose elements are not taken; negative: none */
    bool adds;
    bool by_lines; /* along the index rather than across */
    /* What is written to: the output, or f32 in the workspace where a sum is to be rounded once. */
    eddy_kernel_view ground;
    int64_t strides[EDDY_RANK_MAX];
} eddy_scatter;

/* Bytes of workspace that `out` takes. */
size_t eddy_scatter_workspace(const eddy_kernel_view *out, bool adds);
/* Lays the ground: in's elements, or 0 where `in` is NULL. s->call and s->adds are set. */
void eddy_scatter_begin(eddy_scatter *s, const eddy_kernel_view *in, const eddy_kernel_view *out, void *workspace);
/* Does the work, and rounds a ground in the workspace to the output. Everything is set but by_lines. */
void eddy_scatter_end(eddy_scatter *s, const eddy_kernel_view *out);

#endif
