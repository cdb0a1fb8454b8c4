/* Records of one word, key << 32 | index, which sort as numbers. */
#include <kernels/cpu/sort/sort_width.h>

typedef uint32_t key;
typedef uint64_t record;

static inline bool is_less(const record *a, const record *b) {
    return *a < *b;
}

static inline key key_of(const record *of) {
    return (key)(*of >> 32);
}

static inline record record_of(key of, int64_t index) {
    return (record)of << 32 | (record)index;
}

static inline void load_keys(const eddy_sort_order *order, key *keys, const void *elements,
                             int64_t stride, int64_t count) {
    eddy_sort_keys_narrow(order, keys, elements, stride, count);
}

#include <kernels/cpu/sort/sort_typed.h>

const eddy_sort_width eddy_sort_width_narrow = {load, sort, merge, least};
