/* matmul, linear, addmm: a tile of the result for each block, which keeps the same depth of rows of a and of columns of b in shared memory at a time. */
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/product.h>

namespace {

#define SIDE EDDY_CUDA_PRODUCT_SIDE
#define THREADS (SIDE * SIDE)
/* Products of an element that are added between two loads. */
#define DEPTH 16

EDDY_SCALAR float add_product(float sum, float a, float b) {
    return eddy_fma_f32(a, b, sum);
}
EDDY_SCALAR double add_product(double sum, double a, double b) {
    return eddy_fma_f64(a, b, sum);
}
EDDY_SCALAR uint32_t add_product(uint32_t sum, uint32_t a, uint32_t b) {
    return sum + a * b;
}
EDDY_SCALAR uint64_t add_product(uint64_t sum, uint64_t a, uint64_t b) {
    return sum + a * b;
}

/* The factors in the type of sums. */
template <class number> struct factors {
    number alpha, beta;
    EDDY_CUDA_MEMBER explicit factors(const eddy_cuda_product &p)
        : alpha((number)p.alpha), beta((number)p.beta) {
    }
};
template <>
EDDY_CUDA_MEMBER factors<uint32_t>::factors(const eddy_cuda_product &p)
    : alpha((uint32_t)p.integer_alpha), beta((uint32_t)p.integer_beta) {
}
template <>
EDDY_CUDA_MEMBER factors<uint64_t>::factors(const eddy_cuda_product &p)
    : alpha(p.integer_alpha), beta(p.integer_beta) {
}

/* A part of an operand in shared memory: `lines` rows of a, or columns of b, each an element of every depth. The padding keeps threads that store along a line off each other's banks. */
template <class number, int lines> struct staged {
    number (*at)[lines + 1]; /* DEPTH of them */

    /* From `data` on there are `left` lines and `depth` of each. Neighbouring threads read along the shorter stride. */
    template <class element>
    EDDY_CUDA_MEMBER void load(const typename element::stored *data, int64_t left, int64_t depth,
                               int64_t line_stride, int64_t depth_stride) const {
        const bool is_along_depth = depth_stride == 1;
        for (int number_of = threadIdx.x; number_of < lines * DEPTH; number_of += THREADS) {
            const int line = is_along_depth ? number_of / DEPTH : number_of % lines,
                      k = is_along_depth ? number_of % DEPTH : number_of / lines;
            if (line < left && k < depth)
                at[k][line] = (number)element::load(data[line * line_stride + k * depth_stride]);
        }
    }
};

struct batch {
    int64_t at[EDDY_CUDA_PRODUCT_MATRICES];

    EDDY_CUDA_MEMBER batch(const eddy_cuda_product &p, int64_t number) : at{} {
        EDDY_CUDA_ROLLED
        for (int d = (int)p.rank - 1; d >= 0; d--) {
            const int64_t index = number % p.dims[d];
            number /= p.dims[d];
            for (int k = 0; k < EDDY_CUDA_PRODUCT_MATRICES; k++)
                at[k] += index * p.strides[k][d];
        }
    }
};

/* `each` times `each` elements for each thread: of every SIDE-th row and column. */
template <class element, class number, int each>
EDDY_CUDA_MEMBER void multiply_tile(const eddy_cuda_product &p, const batch &of, int64_t row,
                                    int64_t column) {
    typedef typename element::stored stored;
    constexpr int lines = SIDE * each;
    EDDY_CUDA_SHARED(number, a_memory, DEPTH * (lines + 1));
    EDDY_CUDA_SHARED(number, b_memory, DEPTH * (lines + 1));
    const staged<number, lines> a = {(number(*)[lines + 1])(void *)a_memory},
                                b = {(number(*)[lines + 1])(void *)b_memory};
    const eddy_cuda_product_matrix &left = p.matrices[EDDY_CUDA_PRODUCT_A],
                                   &right = p.matrices[EDDY_CUDA_PRODUCT_B],
                                   &result = p.matrices[EDDY_CUDA_PRODUCT_OUT];
    const stored *from_a = (const stored *)p.data[EDDY_CUDA_PRODUCT_A] +
                           of.at[EDDY_CUDA_PRODUCT_A] + row * left.row,
                 *from_b = (const stored *)p.data[EDDY_CUDA_PRODUCT_B] +
                           of.at[EDDY_CUDA_PRODUCT_B] + column * right.column;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    number sums[each][each] = {};
    EDDY_CUDA_ROLLED
    for (int64_t begin = 0; begin < p.depth; begin += DEPTH) {
        const int depth = p.depth - begin < DEPTH ? (int)(p.depth - begin) : DEPTH;
        a.template load<element>(from_a + begin * left.column, p.rows - row, depth, left.row,
                                 left.column);
        b.template load<element>(from_b + begin * right.row, p.columns - column, depth,
                                 right.column, right.row);
        __syncthreads();
        for (int k = 0; k < depth; k++)
            for (int i = 0; i < each; i++)
                for (int j = 0; j < each; j++)
                    sums[i][j] =
                        add_product(sums[i][j], a.at[k][y + i * SIDE], b.at[k][x + j * SIDE]);
        __syncthreads();
    }
    const factors<number> scale(p);
    EDDY_CUDA_UNROLLED
    for (int i = 0; i < each; i++) {
        EDDY_CUDA_UNROLLED
        for (int j = 0; j < each; j++) {
            const int64_t at_row = row + y + i * SIDE, at_column = column + x + j * SIDE;
            if (at_row >= p.rows || at_column >= p.columns)
                continue;
            number value = p.is_scaled ? scale.alpha * sums[i][j] : sums[i][j];
            if (p.in) {
                const number in = (number)element::load(
                    ((const stored *)
                         p.in)[at_row * p.in_strides.row + at_column * p.in_strides.column]);
                value = value + (p.is_scaled ? scale.beta * in : in);
            }
            ((stored *)
                 p.data[EDDY_CUDA_PRODUCT_OUT])[of.at[EDDY_CUDA_PRODUCT_OUT] + at_row * result.row +
                                                at_column * result.column] =
                element::store((typename element::computed)value);
        }
    }
}

template <class element, class number, int each>
EDDY_CUDA_MEMBER void multiply(const eddy_cuda_product &p) {
    constexpr int lines = SIDE * each;
    const int64_t row_tiles = (p.rows + lines - 1) / lines,
                  column_tiles = (p.columns + lines - 1) / lines, tiles = row_tiles * column_tiles;
    EDDY_CUDA_ROLLED
    for (int64_t task = blockIdx.x; task < tiles * p.batches; task += gridDim.x) {
        const int64_t tile = task % tiles;
        multiply_tile<element, number, each>(p, batch(p, task / tiles), tile / column_tiles * lines,
                                             tile % column_tiles * lines);
    }
}

} // namespace

#define KERNEL(name, element, number, each)                                                        \
    EDDY_CUDA_BLOCK_KERNEL(name, eddy_cuda_product) {                                              \
        if (eddy_cuda_is_skipped(parameters.gate))                                                 \
            return;                                                                                \
        multiply<element, number, each>(parameters);                                               \
    }
#define PRODUCT(name, dtype, number)                                                               \
    KERNEL(eddy_product_##name##_large, eddy_cuda_##name, number, EDDY_CUDA_PRODUCT_LARGE)         \
    KERNEL(eddy_product_##name##_small, eddy_cuda_##name, number, EDDY_CUDA_PRODUCT_SMALL)
EDDY_CUDA_PRODUCTS(PRODUCT)
