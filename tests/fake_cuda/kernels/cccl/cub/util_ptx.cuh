/* Stands ahead of CUB's file of this name, which it includes: what CUB's merge sort and scan of a block take from the device, by grid.h, on the host. What they only mention is declared,
 * and defined nowhere. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_CCCL_CUB_UTIL_PTX_CUH
#define EDDY_TESTS_FAKE_CUDA_KERNELS_CCCL_CUB_UTIL_PTX_CUH

#include <cstddef>
#include <cuda/ptx>

namespace cuda {
namespace ptx {
inline unsigned get_sreg_laneid() {
    return eddy_grid_lane();
}
unsigned get_sreg_lanemask_le();
unsigned get_sreg_lanemask_lt();
unsigned get_sreg_lanemask_ge();
} // namespace ptx
} // namespace cuda

unsigned __ballot_sync(unsigned, int);
int __all_sync(unsigned, int);
int __any_sync(unsigned, int);
int __clz(int);
unsigned __shfl_sync(unsigned, unsigned, int, int);
void __syncwarp(unsigned);
unsigned __vmaxs2(unsigned, unsigned);
unsigned __vmaxu2(unsigned, unsigned);
unsigned __vmins2(unsigned, unsigned);
unsigned __vminu2(unsigned, unsigned);

#include_next <cub/util_ptx.cuh>

namespace cub {
/* CUB's own is an instruction by its name. Of a whole warp: a lane that has none so far below keeps its own. */
template <> inline int64_t ShuffleUp<32, int64_t>(int64_t mine, int delta, int, unsigned mask) {
    return __shfl_sync(mask, mine, eddy_grid_lane() - (unsigned)delta);
}
} // namespace cub

#endif
