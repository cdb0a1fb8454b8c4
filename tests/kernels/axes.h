/* Index arithmetic of reductions over a set of axes, written apart from the library's. */
#ifndef EDDY_TESTS_KERNELS_AXES_H
#define EDDY_TESTS_KERNELS_AXES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shape_case {
    int32_t rank;
    int64_t shape[4];
} shape_case;

/* Shapes round the sizes of lanes, blocks and panels. */
#define SMALL_SHAPES 20
extern const shape_case small_shapes[SMALL_SHAPES];

/* The output's shape; returns its rank. */
int32_t output_shape(const shape_case *c, uint32_t axes, bool keeps_dims, int64_t *shape);

/* The flat number of the output that input element `flat` goes to, and its number within the reduced dims. */
int64_t output_of(const shape_case *c, uint32_t axes, int64_t flat, int64_t *within);

#endif
