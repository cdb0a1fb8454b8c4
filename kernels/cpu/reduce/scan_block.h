/* Running totals on contiguous f64 or i64.
 *
 * A sum restarts at every block of EDDY_SCAN_BLOCK elements; the total before the block is then added to each total of the
 * block. So its error grows with the number of blocks, not of elements, and several blocks are computed side by side. A
 * product does not restart: a block of its own could overflow although the total before it is small. */
#ifndef EDDY_KERNELS_CPU_SCAN_BLOCK_H
#define EDDY_KERNELS_CPU_SCAN_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

#define EDDY_SCAN_BLOCK 1024
/* Lines that are computed side by side: enough to hide the latency of an addition. */
#define EDDY_SCAN_LINES 8
#define EDDY_SCAN_COLUMNS 128

typedef struct eddy_scan_op {
    /* `lines` lines, `apart` elements from line to line, of `count` elements each, in place. totals[l] is the start value
     * of line l and, afterwards, its last total. */
    void (*lines)(void *elements, int64_t lines, int64_t apart, int64_t count, void *totals);
    /* elements[i] = *before op elements[i] */
    void (*shift)(void *elements, int64_t count, const void *before);
    /* One row of lines that run across rows: totals[c] = totals[c] op row[c], row[c] = before[c] op totals[c] */
    void (*row)(void *row, void *totals, const void *before, int64_t columns);
} eddy_scan_op;

typedef struct eddy_scan_blocks {
    eddy_scan_op sum, prod;
} eddy_scan_blocks;

EDDY_ISA_DECLARE(eddy_scan_blocks, eddy_cpu_scan_f64)
EDDY_ISA_DECLARE(eddy_scan_blocks, eddy_cpu_scan_i64)

#endif
