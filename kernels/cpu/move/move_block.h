/* Moving contiguous memory where the C library or portable loops are slow. */
#ifndef EDDY_KERNELS_CPU_MOVE_BLOCK_H
#define EDDY_KERNELS_CPU_MOVE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stddef.h>
#include <stdint.h>

#define EDDY_MOVE_LINE 64

typedef struct eddy_move_blocks {
    /* Copies between memory that does not overlap. The target may lie just after the source, modulo a page. */
    void (*copy)(void *target, const void *source, size_t bytes);
    /* The same for up to some hundred bytes, at any address. */
    void (*copy_short)(void *target, const void *source, size_t bytes);
    /* Fills with copies of the EDDY_MOVE_LINE bytes at `line`, which repeat every eight bytes. */
    void (*fill)(void *target, const void *line, size_t bytes);
    /* target[i] = source[-i], of elements of 4 and 8 bytes. */
    void (*reverse_32)(void *target, const void *source, int64_t count);
    void (*reverse_64)(void *target, const void *source, int64_t count);
} eddy_move_blocks;

EDDY_ISA_DECLARE(eddy_move_blocks, eddy_cpu_move_blocks)

#endif
