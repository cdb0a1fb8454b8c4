#include <kernels/cpu/index/mask_block.h>
#include <kernels/cpu/lanes.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t element_at(int bits, const void *from, int64_t i) {
    switch (bits) {
    case 8:
        return ((const uint8_t *)from)[i];
    case 16:
        return ((const uint16_t *)from)[i];
    case 32:
        return ((const uint32_t *)from)[i];
    default:
        return ((const uint64_t *)from)[i];
    }
}

INLINE void put_at(int bits, void *to, int64_t i, uint64_t element) {
    switch (bits) {
    case 8:
        ((uint8_t *)to)[i] = (uint8_t)element;
        break;
    case 16:
        ((uint16_t *)to)[i] = (uint16_t)element;
        break;
    case 32:
        ((uint32_t *)to)[i] = (uint32_t)element;
        break;
    default:
        ((uint64_t *)to)[i] = element;
        break;
    }
}

/* The element is read whatever the mask says, so there is no branch that could be unpredictable. */
INLINE void fill(int bits, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                 const uint8_t *mask, int64_t mask_stride, uint64_t filled, int64_t count) {
    EDDY_EACH_APART (i, count) {
        uint64_t element = element_at(bits, from, i * from_stride);
        put_at(bits, to, i * to_stride, mask[i * mask_stride] ? filled : element);
    }
}

#define FILL(bits)                                                                                 \
    static void fill_##bits(void *out, int64_t out_stride, const void *in, int64_t in_stride,      \
                            const uint8_t *mask, int64_t mask_stride, const void *value,           \
                            int64_t count) {                                                       \
        uint64_t filled = element_at(bits, value, 0);                                              \
        if (out_stride == 1 && in_stride == 1 && mask_stride == 1)                                 \
            fill(bits, out, 1, in, 1, mask, 1, filled, count);                                     \
        else                                                                                       \
            fill(bits, out, out_stride, in, in_stride, mask, mask_stride, filled, count);          \
    }

FILL(8)
FILL(16)
FILL(32)
FILL(64)

/* Elements whose positions in the source are computed together: the prefix sums of a word's bytes count the selected
 * elements before each. */
#define GROUP 8
#define ONES UINT64_C(0x0101010101010101)

/* For each byte: 1 if it is not 0, else 0. */
static inline uint64_t truths(uint64_t bytes) {
    uint64_t low = ~(ONES << 7);
    return (((bytes & low) + low) | bytes) >> 7 & ONES;
}

/* Each element is selected by bit operations, so there is no branch. */
#define PUT(bits)                                                                                  \
    static inline void put_##bits(uint##bits##_t *to, const uint##bits##_t *from, uint64_t holds,  \
                                  uint64_t before, const uint##bits##_t *next) {                   \
        for (int l = 0; l < GROUP; l++, holds >>= 8, before >>= 8) {                               \
            uint64_t chosen = 0 - (holds & 1);                                                     \
            to[l] = (uint##bits##_t)(from[l] ^ ((from[l] ^ next[before & 255]) & chosen));         \
        }                                                                                          \
    }

/* The same with an instruction that permutes the elements of a register. Lane l receives byte l of a word, and the bits
 * above it. */
#define PUT_LANES(bits, lanes_of)                                                                  \
    typedef uint##bits##_t group_##bits __attribute__((vector_size(bits), aligned(1), may_alias)); \
    static inline void put_##bits(uint##bits##_t *to, const uint##bits##_t *from, uint64_t holds,  \
                                  uint64_t before, const uint##bits##_t *next) {                   \
        group_##bits places = lanes_of(before), chosen = 0 - (lanes_of(holds) & 1);                \
        group_##bits there = *(const group_##bits *)from, put = *(const group_##bits *)next;       \
        *(group_##bits *)to = there ^ ((there ^ __builtin_shuffle(put, places)) & chosen);         \
    }

PUT(8)
PUT(16)
#if defined(__AVX2__) && !defined(__clang__)
static inline __attribute__((vector_size(32))) uint32_t lanes_32(uint64_t word) {
    typedef uint32_t lanes __attribute__((vector_size(32)));
    uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);
    return (lanes){low, low, low, low, high, high, high, high} >>
           (lanes){0, 8, 16, 24, 0, 8, 16, 24};
}

PUT_LANES(32, lanes_32)
#else
PUT(32)
#endif
#if defined(__AVX512F__) && !defined(__clang__)
static inline __attribute__((vector_size(64))) uint64_t lanes_64(uint64_t word) {
    typedef uint64_t lanes __attribute__((vector_size(64)));
    return (lanes){word, word, word, word, word, word, word, word} >>
           (lanes){0, 8, 16, 24, 32, 40, 48, 56};
}

PUT_LANES(64, lanes_64)
#else
PUT(64)
#endif

/* The bytes of a word are in the order of memory on little-endian machines only. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define EXPAND_GROUPS(bits)                                                                        \
    for (; i + GROUP <= count; i += GROUP) {                                                       \
        uint64_t holds;                                                                            \
        memcpy(&holds, mask + i, sizeof(holds));                                                   \
        holds = truths(holds);                                                                     \
        put_##bits(to + i, from + i, holds, holds * ONES - holds, next);                           \
        next += holds * ONES >> 56;                                                                \
    }
#else
#define EXPAND_GROUPS(bits)
#endif

#define EXPAND(bits)                                                                               \
    static int64_t expand_##bits(void *out, const void *in, const uint8_t *mask,                   \
                                 const void *source, int64_t count) {                              \
        uint##bits##_t *to = out;                                                                  \
        const uint##bits##_t *from = in, *next = source;                                           \
        int64_t i = 0;                                                                             \
        EXPAND_GROUPS(bits)                                                                        \
        for (; i < count; i++) {                                                                   \
            uint##bits##_t put = *next, element = from[i];                                         \
            to[i] = mask[i] ? put : element;                                                       \
            next += mask[i] != 0;                                                                  \
        }                                                                                          \
        return next - (const uint##bits##_t *)source;                                              \
    }

EXPAND(8)
EXPAND(16)
EXPAND(32)
EXPAND(64)

/* Every number is stored, but it is kept only if the mask holds: there is no branch. */
static int64_t find(int32_t *held, const uint8_t *mask, int64_t stride, int64_t count) {
    int64_t found = 0;
    if (stride == 1)
        for (int64_t i = 0; i < count; i++) {
            held[found] = (int32_t)i;
            found += mask[i] != 0;
        }
    else
        for (int64_t i = 0; i < count; i++) {
            held[found] = (int32_t)i;
            found += mask[i * stride] != 0;
        }
    return found;
}

#define LANES 64
/* Rounds that a lane of one byte can count. */
#define ROUNDS 255

static int64_t count_held(const uint8_t *mask, int64_t count) {
    int64_t held = 0;
    while (count >= LANES) {
        uint8_t lanes[LANES] = {0};
        int64_t rounds = count / LANES < ROUNDS ? count / LANES : ROUNDS;
        for (int64_t r = 0; r < rounds; r++, mask += LANES)
            EDDY_LANES (l, LANES)
                lanes[l] = (uint8_t)(lanes[l] + (mask[l] != 0));
        for (int l = 0; l < LANES; l++)
            held += lanes[l];
        count -= rounds * LANES;
    }
    for (int64_t i = 0; i < count; i++)
        held += mask[i] != 0;
    return held;
}

const eddy_mask_blocks EDDY_ISA_NAME(eddy_cpu_mask_blocks) = {
    .fill_8 = fill_8,
    .fill_16 = fill_16,
    .fill_32 = fill_32,
    .fill_64 = fill_64,
    .expand_8 = expand_8,
    .expand_16 = expand_16,
    .expand_32 = expand_32,
    .expand_64 = expand_64,
    .find = find,
    .count = count_held,
};
