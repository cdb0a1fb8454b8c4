/* The sum of losses, in the order of the CPU: by rows, and the rows pairwise (kernels/loss_tree.h). */
#include <kernels/cuda/loss_total.cuh>
#include <kernels/loss_tree.h>

namespace {

/* Threads of the block, and the levels of the tree at whose end they stand. */
constexpr int threads = 256, levels = 8;
/* Levels of a thread's own part of the tree: enough for EDDY_CUDA_LOSSES_MOST. More of them would be a stack that the driver has to find memory for. */
constexpr int depth = 24;

EDDY_SCALAR double sum_of(const double *values, int64_t count) {
    double sum = 0;
    EDDY_CUDA_UNROLLED
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Losses [begin, begin + count) of a row or more, whose sum is a node of the tree. */
struct node {
    int64_t begin, count;

    EDDY_CUDA_MEMBER bool is_row() const {
        return count <= EDDY_LOSS_ROW;
    }
    EDDY_CUDA_MEMBER node left() const {
        return {begin, eddy_loss_left_rows(count) * EDDY_LOSS_ROW};
    }
    EDDY_CUDA_MEMBER node right() const {
        const int64_t before = eddy_loss_left_rows(count) * EDDY_LOSS_ROW;
        return {begin + before, count - before};
    }
    EDDY_CUDA_MEMBER double row(const eddy_cuda_loss_total &p) const {
        return p.are_summed ? p.losses[begin / EDDY_LOSS_ROW] : sum_of(p.losses + begin, count);
    }
};

/* Goes down to the left, with what is to the right put aside; then up as far as both sides are known. */
EDDY_SCALAR double sum_below(const eddy_cuda_loss_total &p, node at) {
    struct {
        node right;
        double left;
        bool has_left;
    } aside[depth];
    int used = 0;
    for (;;) {
        EDDY_CUDA_ROLLED
        for (; !at.is_row(); at = at.left())
            aside[used++] = {at.right(), 0, false};
        double sum = at.row(p);
        EDDY_CUDA_ROLLED
        for (; used > 0 && aside[used - 1].has_left; used--)
            sum = aside[used - 1].left + sum;
        if (used == 0)
            return sum;
        aside[used - 1].left = sum;
        aside[used - 1].has_left = true;
        at = aside[used - 1].right;
    }
}

/* A block does all. A thread's number says whether it goes left or right at each level; where the tree ends before, the leftmost thread has the end. */
template <class element> EDDY_CUDA_MEMBER void add_all(const eddy_cuda_loss_total &p) {
    EDDY_CUDA_SHARED(double, values, threads);
    if (eddy_cuda_is_skipped(p.gate) || blockIdx.x > 0)
        return;
    const int own = (int)threadIdx.x;
    node at = {0, p.count};
    uint32_t forks = 0; /* bit per level, the lowest the root's */
    bool is_owner = true;
    EDDY_CUDA_ROLLED
    for (int level = 0; level < levels; level++) {
        const bool goes_right = own >> (levels - 1 - level) & 1;
        if (at.is_row()) {
            is_owner &= !goes_right;
        } else {
            forks |= 1u << level;
            at = goes_right ? at.right() : at.left();
        }
    }
    values[own] = is_owner ? sum_below(p, at) : 0;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (int level = levels - 1; level >= 0; level--) {
        const int apart = threads >> (level + 1);
        if (own % (2 * apart) == 0 && (forks >> level & 1))
            values[own] += values[own + apart];
        __syncthreads();
    }
    if (own == 0)
        *(typename element::stored *)p.out =
            element::round(values[0] / eddy_cuda_divisor_whole(p.divisor));
}

} // namespace

/* Sums of rows, each a thread's. */
EDDY_CUDA_KERNEL(eddy_loss_rows, eddy_cuda_loss_total) {
    const eddy_cuda_loss_total &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t rows = (p.count + EDDY_LOSS_ROW - 1) / EDDY_LOSS_ROW,
                  step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += step) {
        const int64_t left = p.count - r * EDDY_LOSS_ROW;
        p.sums[r] =
            sum_of(p.losses + r * EDDY_LOSS_ROW, left < EDDY_LOSS_ROW ? left : EDDY_LOSS_ROW);
    }
}

#define TOTAL(name, dtype)                                                                         \
    EDDY_CUDA_BLOCK_KERNEL(eddy_loss_total_##name, eddy_cuda_loss_total) {                         \
        add_all<eddy_cuda_loss_##name>(parameters);                                                \
    }
EDDY_CUDA_LOSS_DTYPES(TOTAL)
