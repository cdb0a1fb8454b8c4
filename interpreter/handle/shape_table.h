/* Interned shapes: a small number that names a shape, for errors, traces and dumps of instructions that carry no
 * dims.
 *
 * The table only grows, up to a bound; past it shapes get no number (0) and are not shown. Any thread;
 * look-ups take no lock. */
#ifndef EDDY_INTERPRETER_HANDLE_SHAPE_TABLE_H
#define EDDY_INTERPRETER_HANDLE_SHAPE_TABLE_H

#include <eddy/shape.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SHAPE_NUMBER_MAX 16384

/* The shape's number, 1 .. EDDY_SHAPE_NUMBER_MAX; 0 if the table is full or there is no memory. */
uint32_t eddy_shape_table_intern(int32_t rank, const int64_t *dims);
/* False for 0. */
bool eddy_shape_table_find(uint32_t number, eddy_shape *shape);

/* In a forked child. */
void eddy_shape_table_fork_child(void);

#endif
