/* Copies to row-major order. */
#ifndef EDDY_INTERPRETER_HOST_ROW_MAJOR_H
#define EDDY_INTERPRETER_HOST_ROW_MAJOR_H

#include <base/shape.h>
#include <kernels/kernel.h>
#include <stddef.h>

/* Copies the elements of `layout` over `source` (its storage) to `target`, row-major: in slices by the team, each of which
 * writes a range of `target` that follows from the count alone. Blocks until all are copied. */
void eddy_row_major_copy(const eddy_layout *layout, size_t element_bytes, const char *source,
                         char *target, eddy_kernel_team *team);

#endif
