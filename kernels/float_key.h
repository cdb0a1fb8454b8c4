/* Keys that sort in the order of floats: unsigned numbers made of their bits, with one key for -0 and 0, and one for every NaN, above infinity.
 *
 * In negative numbers all bits are inverted, in others the sign only. */
#ifndef EDDY_KERNELS_FLOAT_KEY_H
#define EDDY_KERNELS_FLOAT_KEY_H

#include <base/builtin.h>

/* Of a float of at most 32 bits. `top` is the sign bit, `all` has all bits of the type. */
EDDY_SCALAR uint32_t eddy_float_key(uint32_t bits, uint32_t top, uint32_t infinity, uint32_t all) {
    uint32_t size = bits & ~top;
    return size > infinity ? all : size == 0 ? top : bits & top ? ~bits & all : bits | top;
}

EDDY_SCALAR uint64_t eddy_f64_key(uint64_t bits) {
    const uint64_t top = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff0000000000000),
                   size = bits & ~top;
    return size > infinity ? UINT64_MAX : size == 0 ? top : bits & top ? ~bits : bits | top;
}

#define EDDY_F32_KEY(bits) eddy_float_key(bits, 0x80000000u, 0x7f800000u, 0xffffffffu)
#define EDDY_F16_KEY(bits) eddy_float_key(bits, 0x8000, 0x7c00, 0xffff)
#define EDDY_BF16_KEY(bits) eddy_float_key(bits, 0x8000, 0x7f80, 0xffff)

#endif
