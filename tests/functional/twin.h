/* Two tensors of the same elements and layout, one on the CPU and one on a CUDA device, for tests that compare both. Random ones take
 * their numbers from random.h. All belong to the innermost scope. */
#ifndef EDDY_TESTS_FUNCTIONAL_TWIN_H
#define EDDY_TESTS_FUNCTIONAL_TWIN_H

#include <eddy/eddy.h>
#include <tests/rounds.h>

#define TWIN_THERE EDDY_CUDA(0)

typedef struct twin {
    eddy_tensor *here, *there;
} twin;

/* Runs the statement behind it for every dtype, several times (twin_round counts them), in a scope of its own. */
#define TWIN_EACH_DTYPE(dtype)                                                                     \
    for (int twin_round = 0; twin_round < ROUNDS_OF(6) * EDDY_DTYPE_COUNT; twin_round++)           \
        for (eddy_scope *twin_scope = eddy_scope_begin(); twin_scope;                              \
             eddy_scope_end(twin_scope), twin_scope = NULL)                                        \
            for (eddy_dtype dtype = (eddy_dtype)(twin_round % EDDY_DTYPE_COUNT), twin_once = 0;    \
                 twin_once == 0; twin_once = 1)

/* One of indices, by chance. */
eddy_dtype twin_index_dtype(void);

/* `elements` in row-major order of the shape; contiguous. */
twin twin_of(const void *elements, eddy_shape shape, eddy_dtype dtype);
/* Of any layout: axes in any order, their elements apart, and broadcast unless it is to be written. */
twin twin_random(eddy_dtype dtype, eddy_shape shape, bool is_written);
/* The same, of integers least .. most. */
twin twin_indices(eddy_dtype dtype, eddy_shape shape, int64_t least, int64_t most);

/* The same, of finite numbers that are neither large nor, if they are written as floats, round. */
twin twin_numbers(eddy_dtype dtype, eddy_shape shape, bool is_written);

/* Fails the test unless both are there, with one shape and the same bits. Any two NaNs are the same. */
void twin_expect_equal(const char *what, eddy_tensor *here, eddy_tensor *there);

/* A rank of up to `rank`, dims of up to `most`, rarely 0. */
eddy_shape twin_shape(int32_t rank, int64_t most);

/* Fails the test unless both hold an error, or neither does, and it has the same words. Returns whether they do. */
bool twin_fail_alike(eddy_tensor *here, eddy_tensor *there);
/* Both do. */
void twin_expect_error(eddy_tensor *here, eddy_tensor *there);

/* The fake driver has found nothing wrong. */
void twin_expect_no_findings(void);

#endif
