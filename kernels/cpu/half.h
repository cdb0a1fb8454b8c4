/* f16 in branch-free inline form, so that loops over it vectorise on every instruction set. bf16 is in base/bf16.h. The
 * same results as base's functions, bit for bit (tests/kernels/test_copy.c). */
#ifndef EDDY_KERNELS_CPU_HALF_H
#define EDDY_KERNELS_CPU_HALF_H

#include <base/builtin.h>

/* Exact. The half's exponent and mantissa are moved into place and scaled by 2^112, which also makes subnormals normal. */
EDDY_SCALAR float eddy_half_load(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t scaled = eddy_bits_of_f32(eddy_f32_of_bits(magnitude) * 0x1p112f);
    uint32_t special = magnitude | 0x7f800000u;
    uint32_t bits = magnitude >= 0x0f800000u ? special : scaled;
    return eddy_f32_of_bits(bits | (uint32_t)(half & 0x8000u) << 16);
}

/* Rounds to nearest even by adding a power of two whose last bit has the weight of the half's last bit (after Marat
 * Dukhan's FP16). Overflow gives infinity; NaN stays a quiet NaN with its sign. */
EDDY_SCALAR uint16_t eddy_half_store(float value) {
    uint32_t bits = eddy_bits_of_f32(value);
    uint32_t doubled = bits + bits;
    float base = (eddy_f32_of_bits(bits & 0x7fffffffu) * 0x1p112f) * 0x1p-110f;
    uint32_t bias = doubled & 0xff000000u;
    bias = bias < 0x71000000u ? 0x71000000u : bias;
    uint32_t rounded = eddy_bits_of_f32(eddy_f32_of_bits((bias >> 1) + 0x07800000u) + base);
    uint32_t magnitude = ((rounded >> 13) & 0x7c00u) + (rounded & 0x0fffu);
    uint32_t quiet = 0x7e00u | ((bits >> 13) & 0x03ffu);
    return (uint16_t)(((bits >> 16) & 0x8000u) | (doubled > 0xff000000u ? quiet : magnitude));
}

/* An integer as a double that is to be rounded again, to 24 bits or fewer. From 2^53 on, the bits below 2^11 become one
 * sticky bit, so that the second rounding is correct. */
EDDY_SCALAR double eddy_f64_of_i64(int64_t value) {
    int64_t sticky = (value & ~INT64_C(0x7ff)) | (int64_t)((value & 0x7ff) != 0) << 10;
    bool is_exact = value > -(INT64_C(1) << 53) && value < INT64_C(1) << 53;
    return (double)(is_exact ? value : sticky);
}

/* Double to float, rounded to odd: the last bit is set if the result is inexact, so that a second rounding to 16 bits is
 * correct. */
EDDY_SCALAR float eddy_f32_round_to_odd(double value) {
    float nearest = (float)value;
    double back = (double)nearest;
    double magnitude = value < 0 ? -value : value, back_magnitude = back < 0 ? -back : back;
    uint32_t bits = eddy_bits_of_f32(nearest);
    uint32_t odd = (bits - (back_magnitude > magnitude ? 1u : 0u)) | 1u;
    return eddy_f32_of_bits(back == value || value != value ? bits : odd);
}

#endif
