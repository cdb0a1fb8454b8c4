/* Writing or adding elements to the places that indices name: scatter, scatter_add, index_add, index_put and the gradient of
 * embedding. Mostly the output is first made a copy of the input, the ground, and then written to. Where indices name rows of a
 * large one, each of its rows is made once, of all that is meant for it.
 *
 * A place of the output is written by one slice only, which takes the elements meant for it in the order of the index: no
 * bit depends on the number of threads. */
#ifndef EDDY_KERNELS_CPU_SCATTER_H
#define EDDY_KERNELS_CPU_SCATTER_H

#include <kernels/cpu/walk.h>

/* Operands of the walks: the last is the index's row-major number, for errors. */
enum { EDDY_SCATTER_OUT, EDDY_SCATTER_SOURCE, EDDY_SCATTER_INDEX, EDDY_SCATTER_NUMBER, EDDY_SCATTER_OPERANDS };

typedef struct eddy_scatter {
    const eddy_kernel_call *call;
    /* The dims of source that the index goes through, in its order (out's strides are 0); then those besides, in any order. */
    eddy_walk *along, *rest; /* the caller's: in here they would be cleared for nothing */
    const void *source, *index;
    eddy_dtype source_dtype, index_dtype;
    int64_t step;     /* of out, for an index of 1 */
    int64_t bound;    /* indices are below it; negative: they have been checked */
    int64_t row;      /* elements of out that an index names, neighbours all; 0: it is one, or they are not */
    bool from_end;    /* negative indices count from the end */
    int64_t left_out; /* an index whose elements are not taken; negative: none */
    bool adds;
    bool by_lines;              /* along the index rather than across */
    const eddy_op_view *in;     /* what the ground is laid with; NULL: zeros */
    void *workspace;
    /* What is written to: the output, or f32 in the workspace where a sum is to be rounded once. */
    eddy_op_view ground;
    int64_t strides[EDDY_RANK_MAX];
} eddy_scatter;

/* Bytes of workspace for `out`, of which `length` indices name rows of `row` elements (as s->row). */
size_t eddy_scatter_workspace(const eddy_op_view *out, bool adds, int64_t row, int64_t length);
/* Says where it will be written. s->call and s->adds are set. */
void eddy_scatter_begin(eddy_scatter *s, const eddy_op_view *in, const eddy_op_view *out, void *workspace);
/* Does the work, and rounds a ground in the workspace to the output. Everything is set but by_lines. */
void eddy_scatter_end(eddy_scatter *s, const eddy_op_view *out);

#define EDDY_SCATTER_NOWHERE INT64_MIN
/* The index as it is used, or EDDY_SCATTER_NOWHERE: one out of range is recorded, with its number. */
int64_t eddy_scatter_checked(const eddy_scatter *s, int64_t index, int64_t number);

/* ---- by rows ---- */

/* Bytes of workspace, 0 where the output is not made by rows. */
size_t eddy_scatter_rows_workspace(const eddy_op_view *out, bool adds, int64_t row, int64_t length);
/* False where operands do not lie in rows; then nothing is done. `along` and `rest` are collapsed. */
bool eddy_scatter_rows(const eddy_scatter *s, const eddy_op_view *out);

#endif
