/* The operands of the op rows. The rows themselves are the `bench` keys of the entries in
 * functional/ops, from which <bench/op_rows.h> is generated.
 *
 * A row is op_<name>_<size>_<threads>t with a size of 1e2, 1e4, 1e6 or 1e7 elements n, or cost_<name>_<size> with any power
 * of ten from 1e2 to 1e7. The operands have the same names in both programs, and are f32 unless stated otherwise:
 *
 *   x, y, z, w  [n], in (0.1, 0.9); w: a target  s           [n], in (-1, 1)
 *   same        [n], as x                        numbers     i64 [n], in [0, 1000)
 *   i, j        i32 [n], in [1, 1000]            b, c        bool [n]
 *   m, o        [rows, columns] in (-1, 1); transposed: a view of m
 *   near        [rows, columns] in (0.9, 1.1)    places      i64 [rows, columns], below columns
 *   square      [columns, columns] in (-1, 1)    tall        [rows], in (0.1, 0.9)
 *   row, column [columns], [rows, 1], in (0.1, 0.9)
 *   labels      i64 [rows], below columns        picks       i64 [rows], below rows
 *   table       [1000, columns]                  words       i64 [rows], below 1000
 *   weight, bias [columns]
 *   q, k, v     [heads, tokens, 32]; tokens at most 1024; turned_q: a view of q, [heads, 32, tokens]
 *   positions   i64 [tokens], 0 to tokens - 1
 *   images      [batch, 16, side, side]          filters     [16, 16, 3, 3]
 *   signals     [batch, 16, side * side]         filters_1d  [16, 16, 3]
 *   means, variances, gain, shift [16], in (0.1, 0.9)
 *   first, second: the two results of Eddy's calls that have two
 *   Optimiser steps change the parameters by the gradients and the state, all [n]; the rates are so small that neither grows.
 *   The norm is below the limit of clipping: Eddy reads the gradients and writes none (libtorch multiplies them by 1).
 *
 * There are 100 columns below 1e6 elements, else 1000. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include <bench/sample.h>
#include <stdbool.h>

/* The shapes for a number of elements. */
typedef struct bench_op_shape {
    long n, rows, columns;
    long heads, tokens;         /* of q, k and v; a head has 32 elements */
    long batch, channels, side; /* of images */
} bench_op_shape;

static inline bench_op_shape bench_op_shape_of(long n) {
    bench_op_shape shape = {.n = n, .columns = n < 1000000 ? 100 : 1000, .channels = 16};
    shape.rows = n / shape.columns;
    /* For 1e2: a head has three tokens. */
    long per_head = n / 32;
    shape.tokens = per_head < 4 ? per_head : per_head / 4 < 1024 ? per_head / 4 : 1024;
    shape.heads = per_head / shape.tokens;
    /* For 1e2; 1e3; 1e4 and 1e5; 1e6 and 1e7 elements. */
    shape.side = n < 1000 ? 2 : n < 10000 ? 7 : n < 1000000 ? 25 : 56;
    shape.batch = n / (shape.channels * shape.side * shape.side);
    return shape;
}

/* ---- rows ---- */

typedef struct bench_op_row {
    char row[64], op[48];
    long n;
} bench_op_row;

/* Removes the next row from a comma-separated list; false at its end. n is 0 if the name is not a row's. */
static inline bool bench_op_row_next(const char **list, bench_op_row *row) {
    memset(row, 0, sizeof(*row));
    if (!**list)
        return false;
    size_t length = strcspn(*list, ",");
    snprintf(row->row, sizeof(row->row), "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    /* op_<name>_1e4_1t, cost_<name>_1e4; the name itself may contain underscores. */
    const char *name = row->row + strcspn(row->row, "_"), *size = strstr(row->row, "_1e");
    if (size && size > name) {
        snprintf(row->op, sizeof(row->op), "%.*s", (int)(size - name - 1), name + 1);
        row->n = (long)strtod(size + 1, NULL);
    }
    return true;
}

/* bytes: that a call must read and write. path: NULL for peers. */
static inline void bench_print_op(const char *row, const char *version, const char *path,
                                  double bytes, const bench_samples *samples) {
    printf("{\"row\": \"%s\", \"unit\": \"us\", \"version\": \"%s\", \"bytes\": %.0f", row, version,
           bytes);
    if (path)
        printf(", \"path\": \"%s\"", path);
    bench_print_samples(samples);
}

#endif
