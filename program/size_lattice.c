#include <program/size_lattice.h>

#include <string.h>

typedef struct vector {
    __int128 of[3];
} vector;

/* Sizes of 2^30 and more have no class of two (affine.c). */
static vector difference(eddy_sizes first, eddy_sizes sizes) {
    __int128 m = first.of[0], n = first.of[1];
    return (vector){
        {sizes.of[0] - m, sizes.of[1] - n, (__int128)sizes.of[0] * sizes.of[1] - m * n}};
}

/* False where a number would be too large. */
static bool subtract(__int128 *from, const __int128 *row, __int128 times) {
    for (int c = 0; c < 3; c++) {
        __int128 part;
        if (__builtin_mul_overflow(times, row[c], &part) ||
            __builtin_sub_overflow(from[c], part, &from[c]))
            return false;
    }
    return true;
}

/* Euclid's algorithm on whole rows: the row gets the greatest common divisor of both in this column, the other one 0. */
static bool divide(__int128 *row, __int128 *other, int column) {
    while (other[column] != 0) {
        __int128 held[3];
        if (!subtract(row, other, row[column] / other[column]))
            return false;
        memcpy(held, row, sizeof(held));
        memcpy(row, other, sizeof(held));
        memcpy(other, held, sizeof(held));
    }
    return true;
}

/* Keeps numbers small: behind where a row begins they are less than those with which the rows below begin. */
static bool reduce(eddy_size_lattice *lattice, __int128 *row, int column) {
    for (int below = column; below < 3; below++)
        if (lattice->rows[below][below] != 0 &&
            !subtract(row, lattice->rows[below], row[below] / lattice->rows[below][below]))
            return false;
    return true;
}

static bool add(eddy_size_lattice *lattice, vector more) {
    for (int c = 0; c < 3; c++)
        if (!reduce(lattice, more.of, c) || !divide(lattice->rows[c], more.of, c))
            return false;
    return reduce(lattice, lattice->rows[0], 1) && reduce(lattice, lattice->rows[1], 2);
}

void eddy_size_lattice_add(eddy_size_lattice *lattice, eddy_sizes first, eddy_sizes sizes) {
    eddy_size_lattice widened = *lattice;
    if (add(&widened, difference(first, sizes)))
        *lattice = widened;
}

bool eddy_size_lattice_has(const eddy_size_lattice *lattice, eddy_sizes first, eddy_sizes sizes) {
    vector rest = difference(first, sizes);
    for (int c = 0; c < 3; c++) {
        const __int128 *row = lattice->rows[c];
        if (row[c] != 0 && rest.of[c] % row[c] == 0 && !subtract(rest.of, row, rest.of[c] / row[c]))
            return false;
        if (rest.of[c] != 0)
            return false;
    }
    return true;
}
