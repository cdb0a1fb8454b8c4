/* sort, argsort and topk on CUDA devices: which kernels there are, and what they get (sort.cuh, sort.cu, sort.c). Plain C.
 *
 * As on the host, records are sorted: a key that sorts in the order of the elements, and the element's index in its line. No two records are equal, so that any way to sort them is
 * stable. They are narrow, one word, or wide, two.
 *
 *     eddy_sort_tile_<width>    sorts each tile of a line; if that is the line, its result may be put at once
 *     eddy_sort_merge_<width>   makes one run of two neighbouring ones, from tiles on: each launch halves their number
 *     eddy_sort_put_<width>     puts the results of lines that were merged */
#ifndef EDDY_KERNELS_CUDA_SORT_H
#define EDDY_KERNELS_CUDA_SORT_H

#include <kernels/cuda/parameters.h>

#define EDDY_CUDA_SORT_WIDTHS(row) row(narrow) row(wide)

/* Records that a block of threads has in its memory, a power of two. */
#define EDDY_CUDA_SORT_TILE 2048
/* Records of a thread there. */
#define EDDY_CUDA_SORT_EACH 8
#define EDDY_CUDA_SORT_THREADS (EDDY_CUDA_SORT_TILE / EDDY_CUDA_SORT_EACH)

typedef struct eddy_cuda_sort_wide {
    uint64_t key, index;
} eddy_cuda_sort_wide;

/* The results, which a dim of lines has strides for. */
enum { EDDY_CUDA_SORT_IN, EDDY_CUDA_SORT_INDICES, EDDY_CUDA_SORT_VALUES, EDDY_CUDA_SORT_OPERANDS };

/* What the key of an element is made of. */
typedef enum eddy_cuda_sort_kind {
    EDDY_CUDA_SORT_UNSIGNED,
    EDDY_CUDA_SORT_SIGNED,
    EDDY_CUDA_SORT_F16,
    EDDY_CUDA_SORT_BF16,
    EDDY_CUDA_SORT_F32,
    EDDY_CUDA_SORT_F64
} eddy_cuda_sort_kind;

typedef struct eddy_cuda_sort_call {
    eddy_cuda_gate gate;
    const void *in;
    int64_t *indices;
    void *values;     /* NULL: are not wanted */
    const void *from; /* records [line][count], of a merge and of what puts */
    void *to;         /* of a merge, and of tiles; NULL: a tile is a line, whose result is put */
    int64_t lines, count;
    int64_t kept;  /* of a line, the least ones: of a run no others are needed either */
    int64_t tiles; /* of a line; of short lines, which have one, several share a block's memory */
    int64_t run;   /* records of a run that is merged, or of a tile: then a power of two */
    int32_t kind;
    int32_t element_bytes;
    uint32_t is_descending;
    uint32_t is_across; /* neighbours in memory are of different lines */
    int32_t rank;       /* of lines; dims outermost first, strides in bytes */
    int64_t dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_SORT_OPERANDS][EDDY_CUDA_RANK_MAX];
    int64_t steps[EDDY_CUDA_SORT_OPERANDS]; /* bytes from element to element of a line */
} eddy_cuda_sort_call;

#endif
