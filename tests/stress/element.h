/* One element of any dtype, as the manual says it behaves: plain arithmetic that shares nothing with the library. */
#ifndef EDDY_TESTS_ELEMENT_H
#define EDDY_TESTS_ELEMENT_H

#include <eddy/dtype.h>
#include <eddy/scalar.h>
#include <stdbool.h>
#include <stdint.h>

/* The value, exact: `number` of floats, `whole` of integers and bool. */
typedef union element {
    double number;
    int64_t whole;
} element;

typedef enum element_op {
    ELEMENT_ADD,
    ELEMENT_SUB,
    ELEMENT_MUL,
    ELEMENT_DIV, /* floats only */
    ELEMENT_OP_COUNT
} element_op;

typedef enum element_order {
    ELEMENT_EQ,
    ELEMENT_NE,
    ELEMENT_LT,
    ELEMENT_LE,
    ELEMENT_GT,
    ELEMENT_GE,
    ELEMENT_ORDER_COUNT
} element_order;

bool element_is_float(eddy_dtype dtype);
/* bool, integer, float. */
int element_category(eddy_dtype dtype);
/* The dtype that two tensors of rank above 0 meet in. */
eddy_dtype element_promote(eddy_dtype a, eddy_dtype b);

/* Float to integer truncates and saturates, integer to integer wraps around, to bool is != 0; rounding is to nearest even,
 * once. */
element element_cast(element value, eddy_dtype from, eddy_dtype to);
element element_from_scalar(eddy_scalar scalar, eddy_dtype dtype);

/* Both operands and the result are of the dtype. */
element element_binary(element_op op, eddy_dtype dtype, element a, element b);
bool element_compare(element_order order, eddy_dtype dtype, element a, element b);
element element_neg(eddy_dtype dtype, element a);
element element_relu(eddy_dtype dtype, element a);
element element_sqrt(eddy_dtype dtype, element a);

bool element_is_nan(eddy_dtype dtype, element a);
/* Zeros of either sign are one, and so are NaNs. */
bool element_same(eddy_dtype dtype, element a, element b);
double element_as_double(eddy_dtype dtype, element a);

/* In memory. */
element element_load(eddy_dtype dtype, const void *source);
void element_store(eddy_dtype dtype, void *target, element value);

#endif
