/* The gradient of an op: a function that calls ops, made in functional/, and a table of the few ops that
 * the backward pass itself needs. */
#ifndef EDDY_INTERPRETER_TAPE_GRADIENT_H
#define EDDY_INTERPRETER_TAPE_GRADIENT_H

#include <base/assert.h>
#include <base/shape.h>
#include <base/status.h>
#include <eddy/op.h>
#include <eddy/tensor.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stdint.h>

/* One call of a gradient. */
typedef struct eddy_gradient_call {
    const eddy_op *op;
    const void *attributes; /* after inference; those of a random op with seed and counter */
    eddy_tensor *const *
        inputs; /* the items of lists in a row; NULL if the value was not saved; EDDY_NONE: absent */
    const eddy_spec *input_specs; /* of all inputs */
    int64_t input_count;
    const int64_t *list_counts;
    eddy_tensor *const *outputs; /* NULL if not saved */
    /* Of each output; NULL for outputs that carry none, and, for some nodes, of those to which none goes back. */
    eddy_tensor *const *grads;
    eddy_tensor *const *extras; /* the tensors that a custom function saved */
    int64_t extra_count;
    const bool *is_wanted; /* per input */
    bool is_recorded;      /* the function's calls are recorded, for gradients of gradients */
    eddy_device device;
    eddy_tensor **
        results; /* per input: to fill, NULL for a gradient of 0; may be broadcast, or of a wider dtype */
    const eddy_outcome *outcome; /* of all calls of the function */
} eddy_gradient_call;

/* OK, or the failure of an op. Results belong to the scope that is open. */
typedef eddy_status eddy_gradient_fn(const eddy_gradient_call *call);

/* The values of the call that an operand's gradient reads: bit i for operand i, for output i. */
typedef struct eddy_gradient_needs {
    bool is_differentiable;
    uint32_t inputs, outputs;
} eddy_gradient_needs;

struct eddy_gradient {
    eddy_gradient_fn *run; /* NULL: results carry no gradient */
    const eddy_gradient_needs *operands;
};

/* Results carry no gradient: comparisons, indices, optimisers. */
extern const eddy_gradient eddy_gradient_none;

/* ---- views ---- */

typedef enum eddy_view_kind {
    EDDY_VIEW_RESHAPE, /* the same elements in the same order */
    EDDY_VIEW_PERMUTE,
    EDDY_VIEW_EXPAND,
    EDDY_VIEW_PART,
    EDDY_VIEW_STRIDED,
    EDDY_VIEW_KIND_COUNT
} eddy_view_kind;

typedef struct eddy_view_attributes {
    int32_t axes[EDDY_RANK_MAX]; /* PERMUTE: the operand's axis of each axis. PART: axes[0] */
    int64_t start, step, length; /* PART */
    bool is_removed;             /* PART: the axis, of length 1, is removed */
    uint8_t order
        [EDDY_RANK_MAX]; /* PART: the operand's axes in their order in memory, the outermost first */
} eddy_view_attributes;

/* Of STRIDED: layouts over one storage. */
typedef struct eddy_strided_attributes {
    eddy_layout from, to;
} eddy_strided_attributes;

/* Views as ops: a name and a gradient, no kernel (functional/gradient/view.c). */
extern const eddy_op eddy_view_ops[EDDY_VIEW_KIND_COUNT];

/* ---- ops that the backward pass needs (functional/gradient/engine.c) ---- */

/* Results belong to the scope that is open; untouched on failure. */
typedef struct eddy_gradient_ops {
    eddy_status (*add)(eddy_tensor *a, eddy_tensor *b, eddy_tensor **result);
    eddy_status (*add_to)(eddy_tensor *sum, eddy_tensor *summand); /* in place */
    eddy_status (*clone)(eddy_tensor *tensor, eddy_tensor **result);
    eddy_status (*ones_like)(eddy_tensor *tensor, eddy_tensor **result);
    eddy_status (*zeros)(const eddy_spec *spec, eddy_device device, eddy_tensor **result);
    /* A gradient for the operand of a slice: its elements undefined, its axes in the operand's order in memory. */
    eddy_status (*room)(const eddy_spec *spec, const eddy_view_attributes *part, eddy_device device,
                        eddy_tensor **result);
    /* Write a gradient to its part of the whole, add it there, and write zeros to begin .. end - 1 of an axis. */
    eddy_status (*put_part)(eddy_tensor *whole, const eddy_view_attributes *part,
                            eddy_tensor *gradient);
    eddy_status (*add_part)(eddy_tensor *whole, const eddy_view_attributes *part,
                            eddy_tensor *gradient);
    eddy_status (*clear)(eddy_tensor *whole, int32_t axis, int64_t begin, int64_t end);
    /* Undoes broadcasting and promotion: sums over axes that were added or repeated, then casts. */
    eddy_status (*fit)(eddy_tensor *gradient, const eddy_spec *spec, eddy_tensor **result);
} eddy_gradient_ops;

extern const eddy_gradient_ops eddy_gradient_ops_table;

#endif
