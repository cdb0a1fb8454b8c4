/* Records of two words. */
#include <kernels/cpu/sort/sort_width.h>

typedef uint64_t key;
typedef eddy_sort_wide record;

static inline bool is_less(const record *a, const record *b) {
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

static inline key key_of(const record *of) {
    return of->key;
}

static inline record record_of(key of, int64_t index) {
    return (record){of, (uint64_t)index};
}

static inline void load_keys(const eddy_sort_order *order, key *keys, const void *elements,
                             int64_t stride, int64_t count) {
    eddy_sort_keys_wide(order, keys, elements, stride, count);
}

#include <kernels/cpu/sort/sort_typed.h>

const eddy_sort_width eddy_sort_width_wide = {load, sort, merge, least};
