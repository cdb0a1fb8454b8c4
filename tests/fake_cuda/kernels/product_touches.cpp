/* What matrix products touch. */
#include <kernels/cuda/product.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_matrix(const eddy_cuda_product &p, int which, int64_t rows, int64_t columns,
                         int64_t bytes, touch_fn *say, void *context) {
    if (rows == 0 || columns == 0)
        return;
    range all = {0, bytes};
    all.reach(rows - 1, p.matrices[which].row * bytes);
    all.reach(columns - 1, p.matrices[which].column * bytes);
    for (uint32_t d = 0; d < p.rank; d++)
        all.reach(p.dims[d] - 1, p.strides[which][d] * bytes);
    all.touch(say, context, p.data[which], which == EDDY_CUDA_PRODUCT_OUT);
}

static void touch_product(const eddy_cuda_product &p, int64_t bytes, touch_fn *say, void *context) {
    touch_matrix(p, EDDY_CUDA_PRODUCT_A, p.rows, p.depth, bytes, say, context);
    touch_matrix(p, EDDY_CUDA_PRODUCT_B, p.depth, p.columns, bytes, say, context);
    touch_matrix(p, EDDY_CUDA_PRODUCT_OUT, p.rows, p.columns, bytes, say, context);
    if (!p.in)
        return;
    range in = {0, bytes};
    in.reach(p.rows - 1, p.in_strides.row * bytes);
    in.reach(p.columns - 1, p.in_strides.column * bytes);
    in.touch(say, context, p.in, false);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_u8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4,
                     bytes_of_i64 = 8;
#define PRODUCT(name, dtype, number)                                                               \
    TOUCHES(eddy_product_##name##_large, eddy_cuda_product, touch_product, bytes_of_##name)        \
    TOUCHES(eddy_product_##name##_small, eddy_cuda_product, touch_product, bytes_of_##name)
EDDY_CUDA_PRODUCTS(PRODUCT)
