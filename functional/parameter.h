/* Parameters of public op functions, converted for the interpreter. */
#ifndef EDDY_FUNCTIONAL_PARAMETER_H
#define EDDY_FUNCTIONAL_PARAMETER_H

#include <base/assert.h>
#include <base/call_site.h>
#include <base/option.h>
#include <eddy/export.h>
#include <eddy/scalar.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <interpreter/call/recorder.h>
#include <stddef.h>
#include <stdint.h>

/* Fails a call before the interpreter sees it, in the form of its messages: "op: sentence (operands)". Operands may be NULL. */
eddy_status eddy_parameter_fail(eddy_status status, eddy_origin origin, eddy_list inputs,
                                const char *format, ...) EDDY_PRINTF(4, 5);

/* Axes as a bit mask that inference completes once the rank is known: bit a for axis a, bit 15 + a for axis -a;
 * 0 for all, EDDY_AXES_NAMELESS if none is named. OUT_OF_RANGE (outside -16 .. 15), INVALID_ARGUMENT (named
 * twice, too many). */
EDDY_MUST_USE eddy_status eddy_parameter_axes(const eddy_axes *axes, uint32_t *mask,
                                              eddy_origin origin, eddy_list inputs);

/* Axes in the order in which they are named, as the dims of a shape; rank 0 for all. INVALID_ARGUMENT (too many). */
EDDY_MUST_USE eddy_status eddy_parameter_axis_list(const eddy_axes *axes, eddy_shape *list,
                                                   eddy_origin origin, eddy_list inputs);

/* A choice is one of the `count` that `attribute` has; INVALID_ARGUMENT. */
EDDY_MUST_USE eddy_status eddy_parameter_choice(int32_t choice, int32_t count,
                                                const char *attribute, eddy_origin origin,
                                                eddy_list inputs);

/* The number as a double. A declared scalar of a recording is lost with it: a replay could not change it any more. */
static inline double eddy_parameter_f64(eddy_scalar scalar) {
    if (EDDY_UNLIKELY(scalar.slot != 0))
        eddy_recorder_lose(eddy_caller_self, scalar.slot);
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
}

/* The number as the attribute, a double, at `offset` of the op's next call. A recording ties a declared scalar to the attribute. */
static inline double eddy_parameter_attribute(const eddy_op *op, size_t offset,
                                              eddy_scalar scalar) {
    if (EDDY_UNLIKELY(scalar.slot != 0))
        eddy_recorder_scalar(eddy_caller_self, op, offset, &scalar);
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
}

#define EDDY_JOINED_STACK 32

/* Lists and single tensors in one array: on the stack if it is short. */
typedef struct eddy_joined {
    eddy_tensor *const *items;
    int64_t count;
    eddy_tensor **memory; /* NULL: on_stack */
    eddy_tensor *on_stack[EDDY_JOINED_STACK];
} eddy_joined;

/* Fills *joined (nothing to release on failure): INVALID_ARGUMENT (a list with a negative count, or with
 * items but no array), OUT_OF_MEMORY. */
EDDY_MUST_USE eddy_status eddy_joined_init(eddy_joined *joined, const eddy_list *pieces,
                                           int32_t piece_count, eddy_origin origin);
void eddy_joined_fini(eddy_joined *joined);

#endif
