/* Pools over row-major planes of f32 or f64, in two sweeps. The first computes the result of each window for each row of
 * the image, in one run per row. The second joins the rows of each window; windows share them. Elements and rows are
 * combined in the same order as for a single window, so the bits are the same. */
#ifndef EDDY_KERNELS_CPU_POOL_TILE_H
#define EDDY_KERNELS_CPU_POOL_TILE_H

#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/pool/pool_plan.h>

typedef enum eddy_pool_kind {
    EDDY_POOL_MAX,
    EDDY_POOL_MAX_INDEX,
    EDDY_POOL_AVERAGE
} eddy_pool_kind;

/* How planes are cut into tiles; a part of a call's plan. */
typedef struct eddy_pool_tiles {
    bool is_flat;          /* rows are contiguous, and a whole number of strides long */
    int64_t columns, rows; /* outputs of a tile's row, and rows of them, at most */
    int64_t pitch;         /* elements from one of these rows to the next */
    int64_t rows_begin, rows_end, columns_begin, columns_end; /* outputs whose windows are whole */
} eddy_pool_tiles;

typedef struct eddy_pool_tiling {
    eddy_pool_kind kind;
    const eddy_image *x, *out, *indices; /* indices: EDDY_POOL_MAX_INDEX alone */
    const eddy_pool_axis *height, *width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive, with windows of one size */
    const eddy_pool_ops *ops;
    const eddy_pool_tiles *tiles;
} eddy_pool_tiling;

/* Sets *tiles; the caller then stores it in the tiling. False if tiles do not serve the call: other layouts and dtypes,
 * windows of different sizes, tall windows. */
bool eddy_pool_tiles_init(eddy_pool_tiles *tiles, const eddy_pool_tiling *tiling);
/* Computes rows oh .. oh + count - 1 of the output. */
void eddy_pool_tiling_run(const eddy_pool_tiling *tiling, int64_t n, int64_t c, int64_t oh,
                          int64_t count);

#endif
