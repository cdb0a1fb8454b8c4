/* Whether two layouts of one storage share an element. Pure functions. */
#ifndef EDDY_INTERPRETER_CALL_OVERLAP_H
#define EDDY_INTERPRETER_CALL_OVERLAP_H

#include <base/shape.h>
#include <stdbool.h>

/* True if it is proven that an element belongs to both. The search is exact and bounded; if the bound
 * is reached (deep nests of unrelated strides) nothing is proven. Strides are not negative. */
bool eddy_overlap_layouts(const eddy_layout *a, const eddy_layout *b);

/* Same elements in the same order. */
bool eddy_overlap_is_same_layout(const eddy_layout *a, const eddy_layout *b);

#endif
