/* sort, argsort, topk. */
#include <kernels/cuda/sort.cuh>

#define TILE(width)                                                                                \
    EDDY_CUDA_BLOCK_KERNEL(eddy_sort_tile_##width, eddy_cuda_sort_call) {                          \
        const eddy_cuda_sort_call &p = parameters;                                                 \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t at_once = EDDY_CUDA_SORT_TILE / p.run,                                       \
                      units = (p.lines * p.tiles + at_once - 1) / at_once;                         \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x)                           \
            eddy_cuda_sort_tile<eddy_cuda_records_##width>(p, unit);                               \
    }
EDDY_CUDA_SORT_WIDTHS(TILE)

#define MERGE(width)                                                                               \
    EDDY_CUDA_BLOCK_KERNEL(eddy_sort_merge_##width, eddy_cuda_sort_call) {                         \
        const eddy_cuda_sort_call &p = parameters;                                                 \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t pairs = (p.count + 2 * p.run - 1) / (2 * p.run),                             \
                      longest = 2 * p.run < p.kept ? 2 * p.run : p.kept,                           \
                      parts = (longest + EDDY_CUDA_SORT_TILE - 1) / EDDY_CUDA_SORT_TILE;           \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t unit = blockIdx.x; unit < p.lines * pairs * parts; unit += gridDim.x) {       \
            const eddy_cuda_sort_part part(p, unit, pairs, parts);                                 \
            eddy_cuda_sort_merge<eddy_cuda_records_##width>(p, part);                              \
        }                                                                                          \
    }
EDDY_CUDA_SORT_WIDTHS(MERGE)

#define PUT(width)                                                                                 \
    EDDY_CUDA_KERNEL(eddy_sort_put_##width, eddy_cuda_sort_call) {                                 \
        typedef eddy_cuda_records_##width records;                                                 \
        const eddy_cuda_sort_call &p = parameters;                                                 \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.lines * p.kept;     \
             i += step) {                                                                          \
            const int64_t line = i / p.kept, at = i - line * p.kept;                               \
            const records::record *of_line = (const records::record *)p.from + line * p.count;     \
            eddy_cuda_sort_put(p, line, at, records::index(of_line[at]));                          \
        }                                                                                          \
    }
EDDY_CUDA_SORT_WIDTHS(PUT)
