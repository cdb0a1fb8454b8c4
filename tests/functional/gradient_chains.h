/* What gradients go back through besides single calls of ops: views, ops in place, one after another. CHAIN(name, operands, result): the
 * operands as in the gradient cases of entries. */
#ifndef EDDY_TESTS_FUNCTIONAL_GRADIENT_CHAINS_H
#define EDDY_TESTS_FUNCTIONAL_GRADIENT_CHAINS_H

#include <eddy/eddy.h>

#define A x[0]
#define B x[1]

static eddy_tensor *multiplied_in_place(eddy_tensor *const *x) {
    eddy_tensor *y = eddy_mul(A, B);
    return eddy_sigmoid_inplace(y) == EDDY_OK ? eddy_mul(y, A) : NULL;
}

/* A convolution's weight is its input's gradient by one of ones. */
static eddy_tensor *convolved_twice(eddy_tensor *const *x) {
    eddy_tensor *ones = eddy_ones(EDDY_SHAPE(1, 2, 2, 2), EDDY_F64, NULL);
    eddy_tensor *weight = eddy_conv2d_backward_weight(ones, A, (eddy_pair){2, 2}, NULL);
    eddy_tensor *y = eddy_conv_transpose2d(A, weight, EDDY_NONE,
                                           EDDY_OPTIONS(conv_transpose2d, .stride = {2, 1}));
    return eddy_conv2d(y, B, EDDY_NONE, NULL);
}

/* What lies beside the operand. */
static eddy_tensor *strided_beside(eddy_tensor *const *x) {
    eddy_tensor *part = eddy_narrow(eddy_contiguous(eddy_exp(A)), 0, 1, 2);
    return eddy_add(eddy_as_strided(part, EDDY_SHAPE(2), (int64_t[]){1}, 1),
                    eddy_narrow(A, 0, 0, 2));
}

/* clang-format off */
#define CHAINS(chain)                                                                                                  \
    chain(reshape, "[3,4]", eddy_reshape(eddy_t(A), EDDY_SHAPE(2, -1)))                                                \
    chain(permute, "[2,3,4]", eddy_permute(A, EDDY_AXES(2, 0, 1)))                                                     \
    chain(expand, "[3,1]", eddy_expand(A, EDDY_SHAPE(2, 3, 4)))                                                        \
    chain(slice, "[2,7]", eddy_slice(A, 1, 1, 6, 2))                                                                   \
    chain(select, "[2,3]", eddy_select(A, -1, 2))                                                                      \
    chain(narrow, "[4,3]", eddy_narrow(A, 0, 1, 2))                                                                    \
    chain(squeeze, "[2,3]", eddy_squeeze(eddy_unsqueeze(A, 1), EDDY_ALL_AXES))                                                  \
    chain(flatten, "[2,3,2]", eddy_flatten(eddy_transpose(A, 0, 2), 0, -1))                                            \
    chain(contiguous, "[2,3]", eddy_contiguous(eddy_t(A)))                                                             \
    chain(to_device, "[2,3]", eddy_to_device(A, eddy_device_of(A)))                                                           \
    /* Windows that overlap; every second element of a transposed one; of what repeats. */                             \
    chain(as_strided, "[2,4]", eddy_as_strided(A, EDDY_SHAPE(3, 3), (int64_t[]){2, 1}, 1))                             \
    chain(as_strided_of_transposed, "[2,4]", eddy_as_strided(eddy_t(A), EDDY_SHAPE(2, 2), (int64_t[]){4, 2}, 0))       \
    chain(as_strided_of_expanded, "[3]",                                                                               \
          eddy_as_strided(eddy_expand(A, EDDY_SHAPE(2, 3)), EDDY_SHAPE(4), (int64_t[]){0}, 1))                         \
    chain(as_strided_of_part, "[4]", strided_beside(x))                                                                \
    chain(twice, "[2,3]", eddy_mul(eddy_exp(A), eddy_add(A, eddy_exp(A))))                                             \
    chain(cast_twice, "[2,3]", eddy_cast(eddy_cast(A, EDDY_F64), EDDY_F64))                                            \
    chain(inplace, "[2,3] [3]", multiplied_in_place(x))                                                                \
    chain(conv2d_twice, "[1,2,3,3] [1,2,2,2]", convolved_twice(x))
/* clang-format on */

#define CHAIN_FUNCTION(name, operands, result)                                                     \
    static eddy_tensor *chain_##name(eddy_tensor *const *x) {                                      \
        return result;                                                                             \
    }
CHAINS(CHAIN_FUNCTION)

#endif
