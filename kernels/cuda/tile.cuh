/* The product of two matrices, tile by tile: a block of 256 threads stages some terms of both in shared memory, and each thread sums up a square of the product. */
#ifndef EDDY_KERNELS_CUDA_TILE_CUH
#define EDDY_KERNELS_CUDA_TILE_CUH

#include <kernels/cuda/elementwise.cuh>

/* Threads of a block are 16 by 16, and stage 16 terms at once. */
#define EDDY_CUDA_TILE_SIDE 16
#define EDDY_CUDA_TILE_THREADS 256

EDDY_SCALAR float eddy_cuda_multiply_add(float a, float b, float c) {
    return eddy_fma_f32(a, b, c);
}
EDDY_SCALAR double eddy_cuda_multiply_add(double a, double b, double c) {
    return eddy_fma_f64(a, b, c);
}

/* Terms of the rows of the left and the columns of the right matrix. One line more keeps threads apart that store one. */
template <class computed, int tile> struct eddy_cuda_stage {
    computed left[EDDY_CUDA_TILE_SIDE][tile + 1], right[EDDY_CUDA_TILE_SIDE][tile + 1];
};

/* Number `i` of what a thread stages of either matrix, below tile / 16: a term and a line. With `along`, neighbouring threads have neighbouring terms. */
template <int tile> struct eddy_cuda_staged {
    int term, line;

    EDDY_CUDA_MEMBER eddy_cuda_staged(bool along, int i) {
        const int t = (int)threadIdx.x + i * EDDY_CUDA_TILE_THREADS;
        term = along ? t % EDDY_CUDA_TILE_SIDE : t / tile;
        line = along ? t / EDDY_CUDA_TILE_SIDE : t % tile;
    }
};

/* The thread's square: rows that are neighbours, and columns that are 16 apart. */
template <class computed, int tile> struct eddy_cuda_square {
    static constexpr int each = tile / EDDY_CUDA_TILE_SIDE;
    computed sums[each][each];

    EDDY_CUDA_MEMBER eddy_cuda_square() : sums() {
    }
    static EDDY_CUDA_MEMBER int row(int i) {
        return (int)threadIdx.x / EDDY_CUDA_TILE_SIDE * each + i;
    }
    static EDDY_CUDA_MEMBER int column(int j) {
        return (int)threadIdx.x % EDDY_CUDA_TILE_SIDE + j * EDDY_CUDA_TILE_SIDE;
    }
    /* left(row, k) and right(k, column) are elements of what is staged. */
    template <class left_fn, class right_fn>
    EDDY_CUDA_MEMBER void add(const left_fn &left_at, const right_fn &right_at) {
        for (int k = 0; k < EDDY_CUDA_TILE_SIDE; k++) {
            computed left[each], right[each];
            for (int i = 0; i < each; i++) {
                left[i] = left_at(row(i), k);
                right[i] = right_at(k, column(i));
            }
            for (int i = 0; i < each; i++)
                for (int j = 0; j < each; j++)
                    sums[i][j] = eddy_cuda_multiply_add(left[i], right[j], sums[i][j]);
        }
    }
    EDDY_CUDA_MEMBER void add(const eddy_cuda_stage<computed, tile> &stage) {
        add([&](int line, int k) { return stage.left[k][line]; },
            [&](int k, int line) { return stage.right[k][line]; });
    }
    /* Calls function(row, column, sum) for each element: unrolled, so that sums stay in registers. */
    template <class work> EDDY_CUDA_MEMBER void each_of(const work &function) {
        EDDY_CUDA_UNROLLED
        for (int i = 0; i < each; i++) {
            EDDY_CUDA_UNROLLED
            for (int j = 0; j < each; j++)
                function(row(i), column(j), sums[i][j]);
        }
    }
};

#endif
