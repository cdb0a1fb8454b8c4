/* Numbers of a program as those of two others foretell them: equal in both, or on the line through both. One number of the arguments differs, and is known
 * of all three: the size, which is 2 or more, since 0 and 1 have rules of their own (no elements; broadcasting). */
#ifndef EDDY_PROGRAM_AFFINE_H
#define EDDY_PROGRAM_AFFINE_H

#include <base/shape.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SIZE_LEAST 2

typedef struct eddy_affine {
    int64_t sizes[2]; /* of the two known programs; they differ */
    int64_t size;     /* of the third */
} eddy_affine;

/* The third number. False where it is none, or does not fit. */
EDDY_MUST_USE bool eddy_affine_number(const eddy_affine *affine, int64_t first, int64_t second,
                                      int64_t *third);
/* The same of a layout. Dims that change are 2 or more in all three. A stride that is row-major in two is so in the third, though it may be on no line. */
EDDY_MUST_USE bool eddy_affine_layout(const eddy_affine *affine, const eddy_layout *first,
                                      const eddy_layout *second, eddy_layout *third);
/* The same of an attribute; third: a copy of the first. Integers, shapes, and floating numbers that are integers; any other has to be equal in both. */
EDDY_MUST_USE bool eddy_affine_attribute(const eddy_affine *affine,
                                         const eddy_op_attribute *attribute, const char *first,
                                         const char *second, char *third);

#endif
