/* Picking by indices on CUDA devices: which kernels there are (index.cu), and the host's side (index.c). Plain C.
 *
 * They read eddy_cuda_strided. */
#ifndef EDDY_KERNELS_CUDA_INDEX_H
#define EDDY_KERNELS_CUDA_INDEX_H

/* Elements of so many bits: eddy_pick_<bits>. 128: neighbours that are picked together. */
#define EDDY_CUDA_PICKS(row) row(8) row(16) row(32) row(64) row(128)

/* Its operands. The input's address is that for an index of 0; the number is the index's in row-major order, for errors. */
enum {
    EDDY_CUDA_PICK_INPUT,
    EDDY_CUDA_PICK_INDEX,
    EDDY_CUDA_PICK_NUMBER,
    EDDY_CUDA_PICK_OUTPUT,
    EDDY_CUDA_PICK_OPERANDS
};

/* Its attributes. */
enum {
    EDDY_CUDA_PICK_STEP, /* bytes of the input from index to index */
    EDDY_CUDA_PICK_BOUND,
    EDDY_CUDA_PICK_FLAGS
};
#define EDDY_CUDA_PICK_IS_WIDE 1u    /* indices are i64; else i32 */
#define EDDY_CUDA_PICK_FROM_END 2u   /* negative indices count from the end */
#define EDDY_CUDA_PICK_ONLY_LOOKS 4u /* there is nothing to pick, but indices are checked */

/* eddy_one_hot, with the bound and flags in the same places. */
enum {
    EDDY_CUDA_ONE_HOT_INDEX,
    EDDY_CUDA_ONE_HOT_CLASS, /* a number */
    EDDY_CUDA_ONE_HOT_NUMBER,
    EDDY_CUDA_ONE_HOT_OUTPUT,
    EDDY_CUDA_ONE_HOT_OPERANDS
};

#endif
