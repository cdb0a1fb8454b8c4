/* Random numbers in bulk: the same bits on every instruction set. */
#ifndef EDDY_KERNELS_CPU_RANDOM_BLOCK_H
#define EDDY_KERNELS_CPU_RANDOM_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* Philox blocks that each function below makes in a call: 4 words each, hence 4 f32 or 2 f64. */
#define EDDY_RANDOM_BLOCKS 64

typedef struct eddy_random_blocks {
    /* Each makes the numbers of Philox blocks block .. block + EDDY_RANDOM_BLOCKS - 1. */
    void (*words)(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t block); /* as they are */
    void (*uniform_f32)(float *out, int bits, uint64_t seed, uint64_t counter,
                        uint64_t block); /* top `bits` bits */
    void (*uniform_f64)(double *out, uint64_t seed, uint64_t counter, uint64_t block); /* 53 bits */
    void (*normal_f32)(float *out, uint64_t seed, uint64_t counter, uint64_t block);
    void (*normal_f64)(double *out, uint64_t seed, uint64_t counter, uint64_t block);
    /* out[i] = `low` plus a number below `bound` (at least 1): the upper 32 bits of the product of `bound` and the first
     * 64 bits of block i (Lemire, 2019). False if the lower bits of a product are less than `least`, so that its number
     * has to be drawn again; `out` is then undefined. */
    bool (*below)(int64_t *out, int64_t low, uint32_t bound, uint32_t least, uint64_t seed,
                  uint64_t counter, uint64_t block);
} eddy_random_blocks;

EDDY_ISA_DECLARE(eddy_random_blocks, eddy_cpu_random_blocks)

#endif
