/* Which sizes recordings vouch for, whatever functions do with numbers. A number of a program (affine.h) is a sum of a, b m, c n and d mn: where it is as
 * foretold, and has one remainder by some divisor, at all sizes that were recorded, it has it at all whose (m, n, mn) differ from theirs by sums of their differences. Elsewhere a
 * function that rounds (to whole tiles, halves, words of 8 bits) may give another number: 8, 16 and 24 say nothing of 12.
 *
 * These sums are a lattice, kept as rows of which each begins behind the one above. */
#ifndef EDDY_PROGRAM_SIZE_LATTICE_H
#define EDDY_PROGRAM_SIZE_LATTICE_H

#include <program/affine.h>

/* Zeroed: only the first sizes. With one size the first row's first number is all there is: what sizes differ by are its multiples. */
typedef struct eddy_size_lattice {
    __int128 rows[3][3];
} eddy_size_lattice;

/* One more pair was recorded. first: always the same one. Where numbers would be too large nothing changes: less follows. */
void eddy_size_lattice_add(eddy_size_lattice *lattice, eddy_sizes first, eddy_sizes sizes);
bool eddy_size_lattice_has(const eddy_size_lattice *lattice, eddy_sizes first, eddy_sizes sizes);

#endif
