#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/sort/sort_block.h>
#include <kernels/cpu/sort/sort_width.h>
#include <kernels/cpu/walk.h>
#include <kernels/float_key.h>
#include <string.h>

eddy_sort_order eddy_sort_order_of(eddy_dtype dtype, int64_t count, bool is_descending) {
    size_t bytes = eddy_dtype_bytes(dtype);
    return (eddy_sort_order){.is_narrow = bytes <= 4 && count <= UINT32_MAX,
                             .is_descending = is_descending,
                             .key_bytes = (int32_t)bytes,
                             .dtype = dtype};
}

/* ---- keys ---- */

/* The keys of f32 are in sort_block.c: f32 is the most frequent dtype. */
#define KEYS(name, type, key_type, key)                                                            \
    static void keys_##name(key_type *restrict keys, const void *elements, int64_t count) {        \
        const type *restrict x = elements;                                                         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type bits = x[i];                                                                      \
            keys[i] = key;                                                                         \
        }                                                                                          \
    }

KEYS(f64, uint64_t, uint64_t, eddy_f64_key(bits))
KEYS(f16, uint16_t, uint32_t, EDDY_F16_KEY(bits))
KEYS(bf16, uint16_t, uint32_t, EDDY_BF16_KEY(bits))
KEYS(i8, uint8_t, uint32_t, bits ^ 0x80u)
KEYS(u8, uint8_t, uint32_t, bits)
KEYS(i16, uint16_t, uint32_t, bits ^ 0x8000u)
KEYS(i32, uint32_t, uint32_t, bits ^ UINT32_C(0x80000000))
KEYS(i64, uint64_t, uint64_t, bits ^ UINT64_C(1) << 63)

/* For dtypes of up to four bytes. */
static void fill_short_keys(eddy_dtype dtype, uint32_t *keys, const void *elements, int64_t count) {
    switch (dtype) {
    case EDDY_F32:
        eddy_cpu_sort_blocks()->keys_f32(keys, elements, count);
        break;
    case EDDY_F16:
        keys_f16(keys, elements, count);
        break;
    case EDDY_BF16:
        keys_bf16(keys, elements, count);
        break;
    case EDDY_I8:
        keys_i8(keys, elements, count);
        break;
    case EDDY_I16:
        keys_i16(keys, elements, count);
        break;
    case EDDY_I32:
        keys_i32(keys, elements, count);
        break;
    default:
        keys_u8(keys, elements, count);
        break;
    }
}

/* For all dtypes, up to EDDY_SORT_PIECE elements. */
static void fill_keys(eddy_dtype dtype, uint64_t *keys, const void *elements, int64_t count) {
    uint32_t shorter[EDDY_SORT_PIECE];
    if (dtype == EDDY_F64) {
        keys_f64(keys, elements, count);
    } else if (dtype == EDDY_I64) {
        keys_i64(keys, elements, count);
    } else {
        fill_short_keys(dtype, shorter, elements, count);
        for (int64_t i = 0; i < count; i++)
            keys[i] = shorter[i];
    }
}

static uint64_t all_bits(const eddy_sort_order *order) {
    return UINT64_MAX >> (64 - 8 * order->key_bytes);
}

uint64_t eddy_sort_nan_key(const eddy_sort_order *order) {
    return order->is_descending ? 0 : all_bits(order);
}

bool eddy_sort_element(const eddy_sort_order *order, uint64_t key, void *element) {
    uint64_t all = all_bits(order), top = all ^ all >> 1, bits;
    key ^= order->is_descending ? all : 0;
    if (!eddy_dtype_is_float(order->dtype))
        bits = order->dtype == EDDY_U8 || order->dtype == EDDY_BOOL ? key : key ^ top;
    else if (key == top || key == all)
        return false;
    else
        bits = key & top ? key ^ top : ~key & all;
    /* Each size has a variable of its own type, so that the code does not depend on the byte order. */
    uint32_t bits_32 = (uint32_t)bits;
    uint16_t bits_16 = (uint16_t)bits;
    uint8_t bits_8 = (uint8_t)bits;
    switch (order->key_bytes) {
    case 1:
        memcpy(element, &bits_8, sizeof(bits_8));
        break;
    case 2:
        memcpy(element, &bits_16, sizeof(bits_16));
        break;
    case 4:
        memcpy(element, &bits_32, sizeof(bits_32));
        break;
    default:
        memcpy(element, &bits, sizeof(bits));
        break;
    }
    return true;
}

/* A piece of the elements: in place, or gathered in *buffer. */
static const void *gather(const eddy_sort_order *order, uint64_t *buffer, const void *elements,
                          int64_t stride, int64_t count) {
    if (stride == 1)
        return elements;
    eddy_chunk_load(order->dtype, buffer, order->dtype, elements, stride, count);
    return buffer;
}

void eddy_sort_keys_narrow(const eddy_sort_order *order, uint32_t *keys, const void *elements,
                           int64_t stride, int64_t count) {
    uint64_t gathered[EDDY_SORT_PIECE];
    fill_short_keys(order->dtype, keys, gather(order, gathered, elements, stride, count), count);
    uint32_t turn = order->is_descending ? (uint32_t)all_bits(order) : 0;
    for (int64_t i = 0; i < count; i++)
        keys[i] ^= turn;
}

void eddy_sort_keys_wide(const eddy_sort_order *order, uint64_t *keys, const void *elements,
                         int64_t stride, int64_t count) {
    uint64_t gathered[EDDY_SORT_PIECE];
    fill_keys(order->dtype, keys, gather(order, gathered, elements, stride, count), count);
    uint64_t turn = order->is_descending ? all_bits(order) : 0;
    for (int64_t i = 0; i < count; i++)
        keys[i] ^= turn;
}

void eddy_sort_load_keys(const eddy_sort_order *order, uint32_t *keys, const void *elements,
                         int64_t stride, int64_t count) {
    for (int64_t done = 0; done < count; done += EDDY_SORT_PIECE)
        eddy_sort_keys_narrow(order, keys + done,
                              eddy_chunk_at(elements, order->dtype, done * stride), stride,
                              eddy_min_i64(EDDY_SORT_PIECE, count - done));
}

/* ---- records ---- */

static const eddy_sort_width *width_of(const eddy_sort_order *order) {
    return order->is_narrow ? &eddy_sort_width_narrow : &eddy_sort_width_wide;
}

void eddy_sort_load(const eddy_sort_order *order, void *records, const void *elements,
                    int64_t stride, int64_t first, int64_t count) {
    width_of(order)->load(order, records, elements, stride, first, count);
}

void eddy_sort_records(const eddy_sort_order *order, void *records, void *spare, int64_t count) {
    width_of(order)->sort(records, spare, count, order->key_bytes);
}

void eddy_sort_merge(const eddy_sort_order *order, void *to, const void *first, int64_t first_count,
                     const void *second, int64_t second_count, int64_t begin, int64_t end) {
    width_of(order)->merge(to, first, first_count, second, second_count, begin, end);
}

void eddy_sort_least(const eddy_sort_order *order, void *records, int64_t kept,
                     const void *elements, int64_t stride, int64_t count) {
    eddy_sort_load(order, records, elements, stride, 0, kept);
    width_of(order)->least(order, records, kept, elements, stride, count);
}
