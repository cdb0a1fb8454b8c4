/* Functions that are made of ops and views.
 *
 * They follow PyTorch's functions of the same names and return new tensors, owned as <eddy/tensor.h> says, or NULL (a status)
 * with the error in the slot, as ops do. They wait for a shape that is not known yet. Any thread. */
#ifndef EDDY_COMPOSE_H
#define EDDY_COMPOSE_H

#include <eddy/choice.h>
#include <eddy/export.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The products of all pairs of a [M] and b [N]: [M, N]. Dtypes are promoted as by mul. SHAPE_MISMATCH. */
EDDY_API eddy_tensor *eddy_outer(eddy_tensor *a, eddy_tensor *b);

/* x where it is above 0, else weight * x: weight has one element, or one for each channel, axis 1 of x. Dtypes are promoted as by
 * mul. SHAPE_MISMATCH. */
EDDY_API eddy_tensor *eddy_prelu(eddy_tensor *x, eddy_tensor *weight);

/* For vectors (or numbers) of lengths n0, n1, ..: as many views of shape [n0, n1, ..], the i-th with vector i along axis i
 * and repeated along the others; such a view cannot be written to. With EDDY_INDEXING_XY the first two axes are
 * exchanged. outputs has room for tensors.count of them; all or none are made. INVALID_ARGUMENT (no tensors or more than
 * 16), SHAPE_MISMATCH, DTYPE_MISMATCH. */
EDDY_API eddy_status eddy_meshgrid(eddy_list tensors, eddy_indexing indexing,
                                   eddy_tensor **outputs);

/* The sum of products that an equation names: "ij,jk->ik" is the matrix product. Each term gives the labels (letters) of
 * an operand's axes, "..." the axes without a label, which broadcast. Without "->" the result has the axes of
 * "..." and then the labels that occur once, in the order of the alphabet, capitals first. A label that occurs twice in a term takes the
 * diagonal. Axes of size 1 broadcast. There are up to 32 operands of one dtype, not bool. They are multiplied from left to right, by matrix
 * products if an axis is summed. Integers that are summed over axes of one operand alone become i64, as in
 * eddy_sum, and so do their products; matrix products keep their dtype and wrap around, as in eddy_mm. With one operand the
 * result may be a view.
 * INVALID_ARGUMENT (equation), SHAPE_MISMATCH (ranks, sizes), DTYPE_MISMATCH. */
EDDY_API eddy_tensor *eddy_einsum(const char *equation, eddy_list operands);

typedef struct eddy_conv1d_options {
    size_t size;      /* of this struct; EDDY_OPTIONS fills it in */
    int64_t stride;   /* Elements from one window to the next; 0: 1 */
    int64_t padding;  /* Zeros before and after each row */
    int64_t dilation; /* Elements from one element of the window to the next; 0: 1 */
    int64_t groups;   /* Groups of channels, convolved independently; 0: 1 */
} eddy_conv1d_options;

/* conv2d (<eddy/ops.h>) of rows: x [N, C, L] or [C, L], weight [O, C / groups, K], bias [O] or EDDY_NONE. SHAPE_MISMATCH,
 * DTYPE_MISMATCH, INVALID_ARGUMENT (options), SIZE_OVERFLOW. */
EDDY_API eddy_tensor *eddy_conv1d(eddy_tensor *x, eddy_tensor *weight, eddy_tensor *bias,
                                  const eddy_conv1d_options *options);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_outer(...) EDDY_AT_CALL_SITE(eddy_outer(__VA_ARGS__))
#define eddy_prelu(...) EDDY_AT_CALL_SITE(eddy_prelu(__VA_ARGS__))
#define eddy_meshgrid(...) EDDY_AT_CALL_SITE(eddy_meshgrid(__VA_ARGS__))
#define eddy_einsum(...) EDDY_AT_CALL_SITE(eddy_einsum(__VA_ARGS__))
#define eddy_conv1d(...) EDDY_AT_CALL_SITE(eddy_conv1d(__VA_ARGS__))
#endif
#endif
