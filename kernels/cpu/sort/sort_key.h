/* Keys that sort in the order of the elements, for sort, argsort, topk and unique.
 *
 * A key is an unsigned number. The keys of floats are made of their bits, with one key for -0 and 0, and one for every
 * NaN, above infinity. The keys of integers are offset to start at 0. A record is a key and the element's index, so that
 * records have a total order and sorting them is stable. If both fit 32 bits, they share one word. */
#ifndef EDDY_KERNELS_CPU_SORT_KEY_H
#define EDDY_KERNELS_CPU_SORT_KEY_H

#include <eddy/dtype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct eddy_sort_wide {
    uint64_t key;
    uint64_t index;
} eddy_sort_wide;

/* The records of one line: narrow ones are key << 32 | index. */
typedef struct eddy_sort_order {
    bool is_narrow;
    bool is_descending; /* keys are inverted: NaN comes first, and equals keep their order */
    int32_t key_bytes;  /* bytes of a key in which keys can differ */
    eddy_dtype dtype;
} eddy_sort_order;

eddy_sort_order eddy_sort_order_of(eddy_dtype dtype, int64_t count, bool is_descending);

static inline size_t eddy_sort_record_bytes(const eddy_sort_order *order) {
    return order->is_narrow ? sizeof(uint64_t) : sizeof(eddy_sort_wide);
}

/* Makes the records of the strided elements `first` .. first + count - 1, with indices from `first` on, in `records` from
 * records[first] on. */
void eddy_sort_load(const eddy_sort_order *order, void *records, const void *elements,
                    int64_t stride, int64_t first, int64_t count);

/* Makes only the keys of narrow records. */
void eddy_sort_load_keys(const eddy_sort_order *order, uint32_t *keys, const void *elements,
                         int64_t stride, int64_t count);

/* Sorts in place, stable; `spare` has space for as many records. O(count). */
void eddy_sort_records(const eddy_sort_order *order, void *records, void *spare, int64_t count);

/* Writes records begin .. end - 1 of the merge of two sorted runs to `to`. */
void eddy_sort_merge(const eddy_sort_order *order, void *to, const void *first, int64_t first_count,
                     const void *second, int64_t second_count, int64_t begin, int64_t end);

/* Writes the records of the `kept` (at least 1) smallest elements to `records`, in order. O(count log kept). */
void eddy_sort_least(const eddy_sort_order *order, void *records, int64_t kept,
                     const void *elements, int64_t stride, int64_t count);

static inline int64_t eddy_sort_index(const eddy_sort_order *order, const void *records,
                                      int64_t i) {
    return order->is_narrow ? (int64_t)(((const uint64_t *)records)[i] & UINT32_MAX)
                            : (int64_t)((const eddy_sort_wide *)records)[i].index;
}

static inline uint64_t eddy_sort_key(const eddy_sort_order *order, const void *records, int64_t i) {
    return order->is_narrow ? ((const uint64_t *)records)[i] >> 32
                            : ((const eddy_sort_wide *)records)[i].key;
}

/* Writes the element with this key to *element and returns true, if only one element has the key: zeros and NaN have
 * several bit patterns. */
bool eddy_sort_element(const eddy_sort_order *order, uint64_t key, void *element);

/* The key of every NaN. An integer may have the same key, so this is for floats only. */
uint64_t eddy_sort_nan_key(const eddy_sort_order *order);

#endif
