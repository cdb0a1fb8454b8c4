/* Numbers of a program as those of others foretell them. All are of one function, whose arguments differ in one size or in two that change independently:
 *
 *   one size   two known programs    a number is equal in both, or on the line through both
 *   two sizes  four known programs   a number is a + b m + c n + d mn of the sizes m and n (a batch of sequences that is one row of numbers has mn)
 *
 * Sizes are 2 or more, since 0 and 1 have rules of their own (no elements; broadcasting). */
#ifndef EDDY_PROGRAM_AFFINE_H
#define EDDY_PROGRAM_AFFINE_H

#include <base/shape.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SIZE_LEAST 2
#define EDDY_SIZES_MOST 2
#define EDDY_KNOWN_MOST 4

/* The second one is 0 where there is one. */
typedef struct eddy_sizes {
    int64_t of[EDDY_SIZES_MOST];
} eddy_sizes;

typedef struct eddy_affine {
    int32_t count; /* of the known programs */
    /* A number is that of the first one, and of each other one `parts` / `whole` of how far it is away from the first one's. */
    int64_t parts[EDDY_KNOWN_MOST - 1], whole;
} eddy_affine;

/* What two programs say of one size, or four of two. False where these say nothing (the sizes of two are the same; some a + b m + c n + d mn is 0 for all four, as of three with one m, or of
 * four with one product), and where the numbers are too large. */
EDDY_MUST_USE bool eddy_affine_of(const eddy_sizes *known, int32_t size_count, eddy_sizes sizes,
                                  eddy_affine *affine);

/* The number that those of the known programs foretell. False where it is none, or does not fit. */
EDDY_MUST_USE bool eddy_affine_number(const eddy_affine *affine, const int64_t *known,
                                      int64_t *told);
/* The same of a layout. Dims that change are 2 or more everywhere. A stride that is row-major in all that are known is so in the one that is told, though it may be no such number. */
EDDY_MUST_USE bool eddy_affine_layout(const eddy_affine *affine, const eddy_layout *known,
                                      eddy_layout *told);
/* The same of an attribute; told: a copy of the first. Integers, shapes, and floating numbers that are integers; any other has to be equal in all. */
EDDY_MUST_USE bool eddy_affine_attribute(const eddy_affine *affine,
                                         const eddy_op_attribute *attribute,
                                         const char *const *known, char *told);

#endif
