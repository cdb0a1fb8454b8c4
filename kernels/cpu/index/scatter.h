/* Writing or adding elements to the places that indices name: scatter, scatter_add, index_add, index_put and the gradient of
 * embedding. Mostly the output is first made a copy of the input, the ground, and then written to. Where indices name rows of a
 * large one, each of its rows is made once, of all that is meant for it.
 *
 * A place of the output is written by one slice only, which takes the elements meant for it in the order of the index: no
 * bit depends on the number of threads. */
#ifndef EDDY_KERNELS_CPU_SCATTER_H
#define EDDY_KERNELS_CPU_SCATTER_H

#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/walk.h>

/* Operands of the walks: the last is the index's row-major number, for errors. */
enum {
    EDDY_SCATTER_OUT,
    EDDY_SCATTER_SOURCE,
    EDDY_SCATTER_INDEX,
    EDDY_SCATTER_NUMBER,
    EDDY_SCATTER_OPERANDS
};

struct eddy_scatter_putter;

typedef struct eddy_scatter_plan {
    /* The kernel's. */
    int64_t step;  /* of out, for an index of 1 */
    int64_t bound; /* indices are below it; negative: they have been checked */
    int64_t
        row; /* elements of out that an index names, neighbours all; 0: it is one, or they are not */
    int64_t left_out; /* an index whose elements are not taken; negative: none */
    eddy_dtype source_dtype, index_dtype;
    bool from_end; /* negative indices count from the end */
    bool adds;
    /* eddy_scatter_lay's and eddy_scatter_prepare's. */
    bool is_cleared; /* the ground is zeros */
    bool is_aside;   /* the ground is f32 in the workspace: sums are to be rounded once */
    bool by_lines;   /* along the index rather than across */
    int32_t ground_at, back_at,
        behind_at; /* of the words: how the ground is laid and comes back; the first behind all */
    int64_t places, length; /* of `rest` and of `along` */
    int64_t grain;          /* places of a slice, if there is someone to share them with */
    int64_t run_most;       /* elements of a row that are put at once */
    int64_t rows;           /* of out, if it is made by rows; else 0 */
    const struct eddy_scatter_putter *put;
    int64_t words[]; /* of `along`, of `rest`, ... */
} eddy_scatter_plan;

/* What a kernel's `prepare` lays out for its plan. */
typedef struct eddy_scatter_layout {
    /* The dims of source that the index goes through, in its order (out's strides are 0); then those besides, in any order. */
    eddy_walk along, rest;
    const eddy_op_view *in, *out; /* in: what the ground is laid with; NULL: zeros */
    eddy_op_view ground;          /* what is written to, without data */
    int64_t strides[EDDY_RANK_MAX];
} eddy_scatter_layout;

/* A call that runs. */
typedef struct eddy_scatter {
    const void *in, *source, *index; /* in: whatever, where the ground is zeros */
    const eddy_op_view *out;
    void *workspace;
    /* eddy_scatter_run's */
    const eddy_kernel_call *call;
    const eddy_scatter_plan *plan;
    eddy_op_view ground; /* data and dtype */
    eddy_walk along, rest;
} eddy_scatter;

/* Bytes that a plan takes at most, of whose walks the dims are EDDY_RANK_MAX together. */
#define EDDY_SCATTER_PLAN_MOST                                                                     \
    (sizeof(eddy_scatter_plan) +                                                                   \
     (1 + EDDY_WALK_WORDS_MOST(EDDY_SCATTER_OPERANDS) + 2 * EDDY_COPY_WORDS_MOST) *                \
         sizeof(int64_t))

/* Says where it will be written, and what strides it has there. plan->adds is set. */
void eddy_scatter_lay(eddy_scatter_layout *layout, eddy_scatter_plan *plan, const eddy_op_view *in,
                      const eddy_op_view *out);
/* Plans what is laid out, at plan->memory, where the kernel's part is set: all but the cost. */
void eddy_scatter_prepare(eddy_scatter_layout *layout, eddy_kernel_plan *plan);
/* Does the work. What is above the call is set, the rest need not be. */
void eddy_scatter_run(eddy_scatter *s, const eddy_kernel_call *call, const eddy_scatter_plan *plan);

#define EDDY_SCATTER_NOWHERE INT64_MIN
/* The index as it is used, or EDDY_SCATTER_NOWHERE: one out of range is recorded, with its number. */
int64_t eddy_scatter_checked(const eddy_scatter *s, int64_t index, int64_t number);

/* ---- by rows ---- */

/* Rows of the output, 0 where it is not made by rows. The walks are collapsed. */
int64_t eddy_scatter_row_count(const eddy_scatter_layout *layout, const eddy_scatter_plan *plan);
size_t eddy_scatter_rows_workspace(const eddy_scatter_plan *plan);
/* Where the input is not the output. */
void eddy_scatter_run_rows(const eddy_scatter *s);

#endif
