/* bf16 as its 16 bits. To it rounds to nearest even, NaN stays NaN (quiet), overflow gives infinity, subnormals are exact. Branch-free, so
 * that loops over it vectorise; for CUDA sources too. */
#ifndef EDDY_BASE_BF16_H
#define EDDY_BASE_BF16_H

#include <base/builtin.h>

EDDY_SCALAR float eddy_bf16_to_f32(uint16_t bits) {
    return eddy_f32_of_bits((uint32_t)bits << 16);
}

EDDY_SCALAR uint16_t eddy_f32_to_bf16(float value) {
    uint32_t bits = eddy_bits_of_f32(value);
    uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u), quiet = bits | 0x400000u;
    return (uint16_t)((value != value ? quiet : rounded) >> 16);
}

#endif
