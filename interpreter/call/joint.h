/* The joint dims of an elementwise call: all views under the shape of the result, in the order in which the result is written, with
 * adjacent dims merged if all views allow it. */
#ifndef EDDY_INTERPRETER_CALL_JOINT_H
#define EDDY_INTERPRETER_CALL_JOINT_H

#include <base/shape.h>
#include <interpreter/call/fast_op.h>

/* The most views of an elementwise op: inputs and outputs. */
#define EDDY_JOINT_VIEWS (EDDY_FAST_OPERANDS + EDDY_OP_OUTPUT_MAX)

typedef struct eddy_joint {
    eddy_shape shape;
    int64_t strides[EDDY_JOINT_VIEWS][EDDY_RANK_MAX]; /* of each view; 0 where it is broadcast */
} eddy_joint;

/* Sets the strides of view i under joint->shape; false if the layout does not broadcast to it. An absent view has rank 0. */
static inline bool eddy_joint_set(eddy_joint *joint, int64_t i, const eddy_layout *layout) {
    return eddy_layout_broadcast(layout, &joint->shape, joint->strides[i]);
}

/* Merges dims, once all views are set: the last view is the result, or the one that is written in its place. */
static inline void eddy_joint_merge(eddy_joint *joint, int64_t view_count) {
    eddy_layout_sort(joint->shape.rank, joint->shape.dims, joint->strides, (int)view_count,
                     (int)view_count - 1);
    eddy_layout_collapse(&joint->shape.rank, joint->shape.dims, joint->strides, (int)view_count);
}

#endif
