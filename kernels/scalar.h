/* The numbers of elementwise ops, converted to a compute type: eddy_scalar_<type>. For CUDA sources too. */
#ifndef EDDY_KERNELS_SCALAR_H
#define EDDY_KERNELS_SCALAR_H

#include <base/builtin.h>
#include <eddy/scalar.h>

/* `attributes` is a scalar, or the attributes of an `_s` op, of which it is the first. Promotion guarantees that an integer compute type
 * has no floating-point scalar; integers wrap around. */
#define EDDY_NUMBER_FLOAT(tag, type)                                                               \
    EDDY_SCALAR type eddy_scalar_##tag(const void *attributes) {                                   \
        const eddy_scalar *s = (const eddy_scalar *)attributes;                                    \
        return s->kind == EDDY_SCALAR_FLOAT ? (type)s->value.floating : (type)s->value.integer;    \
    }
#define EDDY_NUMBER_INTEGER(tag, type)                                                             \
    EDDY_SCALAR type eddy_scalar_##tag(const void *attributes) {                                   \
        return (type)((const eddy_scalar *)attributes)->value.integer;                             \
    }

EDDY_NUMBER_FLOAT(f32, float)
EDDY_NUMBER_FLOAT(f64, double)
EDDY_NUMBER_INTEGER(i8, int8_t)
EDDY_NUMBER_INTEGER(u8, uint8_t)
EDDY_NUMBER_INTEGER(i16, int16_t)
EDDY_NUMBER_INTEGER(i32, int32_t)
EDDY_NUMBER_INTEGER(i64, int64_t)
EDDY_NUMBER_INTEGER(truth, bool)

#undef EDDY_NUMBER_FLOAT
#undef EDDY_NUMBER_INTEGER

#endif
