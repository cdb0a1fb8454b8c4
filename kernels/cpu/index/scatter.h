/* Writing or adding elements to the places that indices name: scatter, scatter_add, index_add, index_put and the gradient
 * of embedding. Usually the output is first filled with the ground, which is a copy of the input or zeros; then elements
 * are put into it. If indices name rows of a large output, each row is made once instead, from all that is meant for it.
 *
 * Only one slice writes a place of the output, and it takes the elements for that place in the order of the index: so
 * results do not depend on the number of threads. */
#ifndef EDDY_KERNELS_CPU_SCATTER_H
#define EDDY_KERNELS_CPU_SCATTER_H

#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/walk.h>

/* Operands of the walks. The last is the index's row-major number, for errors. */
enum {
    EDDY_SCATTER_OUT,
    EDDY_SCATTER_SOURCE,
    EDDY_SCATTER_INDEX,
    EDDY_SCATTER_NUMBER,
    EDDY_SCATTER_OPERANDS
};

struct eddy_scatter_putter;

typedef struct eddy_scatter_plan {
    /* Set by the kernel. */
    int64_t step;  /* stride of out, for an index of 1 */
    int64_t bound; /* indices are below it; negative: they have been checked */
    int64_t
        row; /* elements of out that an index names, if they are neighbours; 0: it names one, or they are not */
    int64_t left_out; /* elements with this index are skipped; negative: none */
    eddy_dtype source_dtype, index_dtype;
    bool from_end; /* negative indices count from the end */
    bool adds;
    /* Set by eddy_scatter_lay and eddy_scatter_prepare. */
    bool is_cleared; /* the ground is zeros */
    bool is_aside;   /* the ground is f32 in the workspace, so that sums are rounded once */
    bool by_lines;   /* the inner loop runs along the index rather than across */
    int32_t ground_at, back_at,
        behind_at; /* positions in `words`: of copying or filling the ground, of copying it back, and behind all */
    int64_t places, length; /* of `rest` and of `along` */
    int64_t grain;          /* places of a slice, if the team has several threads */
    int64_t run_most;       /* elements of a row that are put at once */
    int64_t rows;           /* of out, if each row is made once; else 0 */
    const struct eddy_scatter_putter *put;
    int64_t words[]; /* of `along`, of `rest`, ... */
} eddy_scatter_plan;

/* Filled in by a kernel's `prepare`. */
typedef struct eddy_scatter_layout {
    /* `along`: the dims of source that the index runs through, in its order (out's strides are 0). `rest`: the other dims,
     * in any order. */
    eddy_walk along, rest;
    const eddy_op_view *in, *out; /* in: what the ground is a copy of; NULL: zeros */
    eddy_op_view ground;          /* the tensor that is written to, without data */
    int64_t strides[EDDY_RANK_MAX];
} eddy_scatter_layout;

/* A call that is being run. */
typedef struct eddy_scatter {
    const void *in, *source, *index; /* in: not used if the ground is zeros */
    const eddy_op_view *out;
    void *workspace;
    /* Set by eddy_scatter_run. */
    const eddy_kernel_call *call;
    const eddy_scatter_plan *plan;
    eddy_op_view ground; /* data and dtype */
    eddy_walk along, rest;
} eddy_scatter;

/* Bytes of a plan, at most. The ranks of its two walks together are at most EDDY_RANK_MAX. */
#define EDDY_SCATTER_PLAN_MOST                                                                     \
    (sizeof(eddy_scatter_plan) +                                                                   \
     (1 + EDDY_WALK_WORDS_MOST(EDDY_SCATTER_OPERANDS) + 2 * EDDY_COPY_WORDS_MOST) *                \
         sizeof(int64_t))

/* Sets the tensor that is written to, and its strides. plan->adds has to be set. */
void eddy_scatter_lay(eddy_scatter_layout *layout, eddy_scatter_plan *plan, const eddy_op_view *in,
                      const eddy_op_view *out);
/* Plans the layout, at plan->memory, whose kernel's part has to be set. Sets all of the plan except the cost. */
void eddy_scatter_prepare(eddy_scatter_layout *layout, eddy_kernel_plan *plan);
/* Runs the call. The members above `call` have to be set, the others need not be. */
void eddy_scatter_run(eddy_scatter *s, const eddy_kernel_call *call, const eddy_scatter_plan *plan);

#define EDDY_SCATTER_NOWHERE INT64_MIN
/* The index that is used, or EDDY_SCATTER_NOWHERE: if the index is left out, or out of range, which is recorded with its
 * number. */
int64_t eddy_scatter_checked(const eddy_scatter *s, int64_t index, int64_t number);

/* ---- by rows ---- */

/* Rows of the output, 0 if it is not made row by row. The walks are collapsed. */
int64_t eddy_scatter_row_count(const eddy_scatter_layout *layout, const eddy_scatter_plan *plan);
size_t eddy_scatter_rows_workspace(const eddy_scatter_plan *plan);
/* For calls whose input is not the output. */
void eddy_scatter_run_rows(const eddy_scatter *s);

#endif
