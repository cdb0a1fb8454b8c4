/* What the kernel of the fake library of products touches. */
#include <streams/cuda/blas.h>
#include <tests/fake_cuda/kernels/blas_product.h>
#include <tests/fake_cuda/kernels/touches.h>

static int64_t element_bytes(const fake_blas_product &p) {
    return p.type == EDDY_BLAS_F64 ? 8 : p.type == EDDY_BLAS_F32 ? 4 : 2;
}

static void touch_matrix(const fake_blas_product &p, const void *data, const fake_blas_matrix &of,
                         int64_t rows, int64_t columns, bool is_write, touch_fn *say,
                         void *context) {
    const int64_t bytes = element_bytes(p);
    range all = {0, bytes};
    all.reach(rows - 1, bytes);
    all.reach(columns - 1, of.leading * bytes);
    all.reach(p.batches - 1, of.batch * bytes);
    all.touch(say, context, data, is_write);
}

static void touch_product(const fake_blas_product &p, touch_fn *say, void *context) {
    touch_matrix(p, p.a, p.a_of, p.is_a_transposed ? p.depth : p.rows,
                 p.is_a_transposed ? p.rows : p.depth, false, say, context);
    touch_matrix(p, p.b, p.b_of, p.is_b_transposed ? p.columns : p.depth,
                 p.is_b_transposed ? p.depth : p.columns, false, say, context);
    if (p.c)
        touch_matrix(p, p.c, p.c_of, p.rows, p.columns, false, say, context);
    if (p.bias)
        say(context, p.bias, (size_t)(p.rows * element_bytes(p)), false);
    touch_matrix(p, p.d, p.d_of, p.rows, p.columns, true, say, context);
    if (p.workspace_bytes > 0)
        say(context, p.workspace, p.workspace_bytes, true);
}

extern "C" void fake_blas_multiply_touches(const void *parameters, touch_fn *say, void *context);
void fake_blas_multiply_touches(const void *parameters, touch_fn *say, void *context) {
    touch_product(*(const fake_blas_product *)parameters, say, context);
}
