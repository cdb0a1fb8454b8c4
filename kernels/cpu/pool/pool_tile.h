/* Pools over row-major planes of f32 or f64, in two sweeps: what each window has of each row, row after row of the image in one
 * run, and then the rows that windows have in common. Elements and rows are taken in the order in which a window by itself
 * takes them, so that the bits are the same. */
#ifndef EDDY_KERNELS_CPU_POOL_TILE_H
#define EDDY_KERNELS_CPU_POOL_TILE_H

#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/pool/pool_plan.h>

typedef enum eddy_pool_kind {
    EDDY_POOL_MAX,
    EDDY_POOL_MAX_INDEX,
    EDDY_POOL_AVERAGE
} eddy_pool_kind;

/* How planes are cut, for the plan of a call. */
typedef struct eddy_pool_tiles {
    bool is_flat;          /* rows lie one behind the other, whole strides long */
    int64_t columns, rows; /* outputs of a tile's row, and rows of them, at most */
    int64_t pitch;         /* from a row of these to the next */
    int64_t rows_begin, rows_end, columns_begin, columns_end; /* outputs whose windows are whole */
} eddy_pool_tiles;

typedef struct eddy_pool_tiling {
    eddy_pool_kind kind;
    const eddy_image *x, *out, *indices; /* indices: EDDY_POOL_MAX_INDEX alone */
    const eddy_pool_axis *height, *width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive, and windows alike */
    const eddy_pool_ops *ops;
    const eddy_pool_tiles *tiles;
} eddy_pool_tiling;

/* Sets *tiles, which the tiling has yet to get. False where this is no way to go: other layouts and dtypes, windows unlike each other,
 * tall windows. */
bool eddy_pool_tiles_init(eddy_pool_tiles *tiles, const eddy_pool_tiling *tiling);
/* Rows oh .. oh + count of the output. */
void eddy_pool_tiling_run(const eddy_pool_tiling *tiling, int64_t n, int64_t c, int64_t oh,
                          int64_t count);

#endif
