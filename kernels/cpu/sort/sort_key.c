#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/sort/sort_block.h>
#include <kernels/cpu/sort/sort_key.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Elements turned into keys at a time. */
#define PIECE 512
/* Up to so many records are sorted by insertion. */
#define FEW 48

eddy_sort_order eddy_sort_order_of(eddy_dtype dtype, int64_t count, bool is_descending) {
    size_t bytes = eddy_dtype_bytes(dtype);
    return (eddy_sort_order){.is_narrow = bytes <= 4 && count <= UINT32_MAX,
                             .is_descending = is_descending,
                             .key_bytes = (int32_t)bytes,
                             .dtype = dtype};
}

/* ---- keys ---- */

/* Those of f32 are in sort_block.c: they are asked for most. */
#define KEYS(name, type, key_type, key)                                                                                \
    static void keys_##name(key_type *restrict keys, const void *elements, int64_t count) {                            \
        const type *restrict x = elements;                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type bits = x[i];                                                                                          \
            keys[i] = key;                                                                                             \
        }                                                                                                              \
    }

KEYS(f64, uint64_t, uint64_t, EDDY_SORT_FLOAT_KEY(bits, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000), UINT64_MAX))
KEYS(f16, uint16_t, uint32_t, EDDY_SORT_FLOAT_KEY((uint32_t)bits, 0x8000u, 0x7c00u, 0xffffu))
KEYS(bf16, uint16_t, uint32_t, EDDY_SORT_FLOAT_KEY((uint32_t)bits, 0x8000u, 0x7f80u, 0xffffu))
KEYS(i8, uint8_t, uint32_t, bits ^ 0x80u)
KEYS(u8, uint8_t, uint32_t, bits)
KEYS(i16, uint16_t, uint32_t, bits ^ 0x8000u)
KEYS(i32, uint32_t, uint32_t, bits ^ UINT32_C(0x80000000))
KEYS(i64, uint64_t, uint64_t, bits ^ UINT64_C(1) << 63)

/* Of dtypes of up to four bytes. */
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

/* Of all dtypes, up to PIECE elements. */
static void fill_keys(eddy_dtype dtype, uint64_t *keys, const void *elements, int64_t count) {
    uint32_t shorter[PIECE];
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
    /* Through each type, for the byte order's sake. */
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

/* A piece of the elements: where they lie, or in *buffer. */
static const void *gather(const eddy_sort_order *order, uint64_t *buffer, const void *elements, int64_t stride,
                          int64_t count) {
    if (stride == 1)
        return elements;
    eddy_chunk_load(order->dtype, buffer, order->dtype, elements, stride, count);
    return buffer;
}

/* Keys of a piece of the elements, in the order asked for: of narrow records, and of wide ones. */
static void load_narrow_keys(const eddy_sort_order *order, uint32_t *keys, const void *elements, int64_t stride,
                             int64_t count) {
    uint64_t gathered[PIECE];
    fill_short_keys(order->dtype, keys, gather(order, gathered, elements, stride, count), count);
    uint32_t turn = order->is_descending ? (uint32_t)all_bits(order) : 0;
    for (int64_t i = 0; i < count; i++)
        keys[i] ^= turn;
}

static void load_wide_keys(const eddy_sort_order *order, uint64_t *keys, const void *elements, int64_t stride,
                           int64_t count) {
    uint64_t gathered[PIECE];
    fill_keys(order->dtype, keys, gather(order, gathered, elements, stride, count), count);
    uint64_t turn = order->is_descending ? all_bits(order) : 0;
    for (int64_t i = 0; i < count; i++)
        keys[i] ^= turn;
}

static void load_narrow(const eddy_sort_order *order, uint64_t *restrict records, const void *elements, int64_t stride,
                        int64_t first, int64_t count) {
    uint32_t keys[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = eddy_min_i64(PIECE, count - done), index = first + done;
        load_narrow_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        for (int64_t i = 0; i < piece; i++)
            records[index + i] = (uint64_t)keys[i] << 32 | (uint64_t)(index + i);
    }
}

void eddy_sort_load_keys(const eddy_sort_order *order, uint32_t *keys, const void *elements, int64_t stride,
                         int64_t count) {
    for (int64_t done = 0; done < count; done += PIECE)
        load_narrow_keys(order, keys + done, eddy_chunk_at(elements, order->dtype, done * stride), stride,
                         eddy_min_i64(PIECE, count - done));
}

static void load_wide(const eddy_sort_order *order, eddy_sort_wide *restrict records, const void *elements,
                      int64_t stride, int64_t first, int64_t count) {
    uint64_t keys[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = eddy_min_i64(PIECE, count - done), index = first + done;
        load_wide_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        for (int64_t i = 0; i < piece; i++)
            records[index + i] = (eddy_sort_wide){keys[i], (uint64_t)(index + i)};
    }
}

void eddy_sort_load(const eddy_sort_order *order, void *records, const void *elements, int64_t stride, int64_t first,
                    int64_t count) {
    if (order->is_narrow)
        load_narrow(order, records, elements, stride, first, count);
    else
        load_wide(order, records, elements, stride, first, count);
}

/* ---- sorting ---- */

#define NARROW_LESS(a, b) ((a) < (b))
#define NARROW_KEY(record) ((record) >> 32)
#define WIDE_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))
#define WIDE_KEY(record) ((record).key)

/* Least significant byte first: each pass is stable, so that equal keys stay in the order of their indices. Bytes that are the
 * same in all keys are left out. */
#define SORT(name, type, LESS, KEY, BYTES)                                                                                      \
    static void insert_##name(type *records, int64_t count) {                                                                   \
        for (int64_t i = 1; i < count; i++) {                                                                                   \
            type record = records[i];                                                                                           \
            int64_t to = i;                                                                                                     \
            for (; to > 0 && LESS(record, records[to - 1]); to--)                                                               \
                records[to] = records[to - 1];                                                                                  \
            records[to] = record;                                                                                               \
        }                                                                                                                       \
    }                                                                                                                           \
    static void radix_##name(type *records, type *spare, int64_t count, int32_t key_bytes) {                                    \
        int64_t places[BYTES][256];                                                                                             \
        memset(places, 0, sizeof(places[0]) * (size_t)key_bytes);                                                               \
        for (int64_t i = 0; i < count; i++)                                                                                     \
            for (int32_t b = 0; b < key_bytes; b++)                                                                             \
                places[b][KEY(records[i]) >> (8 * b) & 255]++;                                                                  \
        type *from = records, *to = spare;                                                                                      \
        for (int32_t b = 0; b < key_bytes; b++) {                                                                               \
            if (places[b][KEY(from[0]) >> (8 * b) & 255] == count)                                                              \
                continue;                                                                                                       \
            int64_t place = 0;                                                                                                  \
            for (int d = 0; d < 256; d++) {                                                                                     \
                int64_t with = places[b][d];                                                                                    \
                places[b][d] = place;                                                                                           \
                place += with;                                                                                                  \
            }                                                                                                                   \
            for (int64_t i = 0; i < count; i++)                                                                                 \
                to[places[b][KEY(from[i]) >> (8 * b) & 255]++] = from[i];                                                       \
            type *swapped = from;                                                                                               \
            from = to;                                                                                                          \
            to = swapped;                                                                                                       \
        }                                                                                                                       \
        if (from != records)                                                                                                    \
            memcpy(records, from, sizeof(type) * (size_t)count);                                                                \
    }                                                                                                                           \
    /* a[i] and b[begin - i] are the first records that the merge has at `begin` or later: found by halving (the merge path of\
     * Odeh, Green, Mwassi, Shmueli and Birk, 2012). */ \
    static void merge_##name(type *to, const type *a, int64_t a_count, const type *b, int64_t b_count, int64_t begin,           \
                             int64_t end) {                                                                                     \
        int64_t i = begin > b_count ? begin - b_count : 0, above = begin < a_count ? begin : a_count;                           \
        while (i < above) {                                                                                                     \
            int64_t middle = i + (above - i) / 2;                                                                               \
            if (LESS(a[middle], b[begin - 1 - middle]))                                                                         \
                i = middle + 1;                                                                                                 \
            else                                                                                                                \
                above = middle;                                                                                                 \
        }                                                                                                                       \
        for (int64_t j = begin - i, o = begin; o < end; o++) {                                                                  \
            bool is_first = j >= b_count || (i < a_count && LESS(a[i], b[j]));                                                  \
            to[o - begin] = is_first ? a[i++] : b[j++];                                                                         \
        }                                                                                                                       \
    }                                                                                                                           \
    /* A heap with its largest record on top; `record` takes the place `at` or one below. */                                    \
    static void sink_##name(type *heap, int64_t count, int64_t at, type record) {                                               \
        for (int64_t child; (child = 2 * at + 1) < count; at = child) {                                                         \
            if (child + 1 < count && LESS(heap[child], heap[child + 1]))                                                        \
                child++;                                                                                                        \
            if (!LESS(record, heap[child]))                                                                                     \
                break;                                                                                                          \
            heap[at] = heap[child];                                                                                             \
        }                                                                                                                       \
        heap[at] = record;                                                                                                      \
    }                                                                                                                           \
    static void heapify_##name(type *heap, int64_t count) {                                                                     \
        for (int64_t at = count / 2 - 1; at >= 0; at--)                                                                         \
            sink_##name(heap, count, at, heap[at]);                                                                             \
    }                                                                                                                           \
    static void unheap_##name(type *heap, int64_t count) {                                                                      \
        for (int64_t left = count - 1; left > 0; left--) {                                                                      \
            type last = heap[left];                                                                                             \
            heap[left] = heap[0];                                                                                               \
            sink_##name(heap, left, 0, last);                                                                                   \
        }                                                                                                                       \
    }

SORT(narrow, uint64_t, NARROW_LESS, NARROW_KEY, 4)
SORT(wide, eddy_sort_wide, WIDE_LESS, WIDE_KEY, 8)

void eddy_sort_records(const eddy_sort_order *order, void *records, void *spare, int64_t count) {
    if (count <= FEW && order->is_narrow)
        insert_narrow(records, count);
    else if (count <= FEW)
        insert_wide(records, count);
    else if (order->is_narrow)
        radix_narrow(records, spare, count, order->key_bytes);
    else
        radix_wide(records, spare, count, order->key_bytes);
}

void eddy_sort_merge(const eddy_sort_order *order, void *to, const void *first, int64_t first_count, const void *second,
                     int64_t second_count, int64_t begin, int64_t end) {
    if (order->is_narrow)
        merge_narrow(to, first, first_count, second, second_count, begin, end);
    else
        merge_wide(to, first, first_count, second, second_count, begin, end);
}

/* Indices grow: an equal key is not less than what is there. */
static void least_narrow(const eddy_sort_order *order, uint64_t *heap, int64_t kept, const void *elements,
                         int64_t stride, int64_t count) {
    uint32_t keys[PIECE];
    heapify_narrow(heap, kept);
    for (int64_t done = kept; done < count; done += PIECE) {
        int64_t piece = eddy_min_i64(PIECE, count - done);
        load_narrow_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        uint64_t top = NARROW_KEY(heap[0]);
        for (int64_t i = 0; i < piece; i++)
            if (EDDY_UNLIKELY(keys[i] < top)) {
                sink_narrow(heap, kept, 0, (uint64_t)keys[i] << 32 | (uint64_t)(done + i));
                top = NARROW_KEY(heap[0]);
            }
    }
    unheap_narrow(heap, kept);
}

static void least_wide(const eddy_sort_order *order, eddy_sort_wide *heap, int64_t kept, const void *elements,
                       int64_t stride, int64_t count) {
    uint64_t keys[PIECE];
    heapify_wide(heap, kept);
    for (int64_t done = kept; done < count; done += PIECE) {
        int64_t piece = eddy_min_i64(PIECE, count - done);
        load_wide_keys(order, keys, eddy_chunk_at(elements, order->dtype, done * stride), stride, piece);
        for (int64_t i = 0; i < piece; i++)
            if (EDDY_UNLIKELY(keys[i] < WIDE_KEY(heap[0])))
                sink_wide(heap, kept, 0, (eddy_sort_wide){keys[i], (uint64_t)(done + i)});
    }
    unheap_wide(heap, kept);
}

void eddy_sort_least(const eddy_sort_order *order, void *records, int64_t kept, const void *elements, int64_t stride,
                     int64_t count) {
    eddy_sort_load(order, records, elements, stride, 0, kept);
    if (order->is_narrow)
        least_narrow(order, records, kept, elements, stride, count);
    else
        least_wide(order, records, kept, elements, stride, count);
}
