/* Functions for records of one width, narrow or wide (sort_key.h); sort_key.c selects the width. */
#ifndef EDDY_KERNELS_CPU_SORT_WIDTH_H
#define EDDY_KERNELS_CPU_SORT_WIDTH_H

#include <kernels/cpu/sort/sort_key.h>

/* Elements converted to keys at a time. */
#define EDDY_SORT_PIECE 512

/* Like the functions of the same names in sort_key.h. */
typedef struct eddy_sort_width {
    void (*load)(const eddy_sort_order *order, void *records, const void *elements, int64_t stride,
                 int64_t first, int64_t count);
    void (*sort)(void *records, void *spare, int64_t count, int32_t key_bytes);
    void (*merge)(void *to, const void *first, int64_t first_count, const void *second,
                  int64_t second_count, int64_t begin, int64_t end);
    /* The first `kept` records have been loaded already. */
    void (*least)(const eddy_sort_order *order, void *records, int64_t kept, const void *elements,
                  int64_t stride, int64_t count);
} eddy_sort_width;

extern const eddy_sort_width eddy_sort_width_narrow, eddy_sort_width_wide;

/* Keys of at most EDDY_SORT_PIECE strided elements, ascending or descending as `order` says. */
void eddy_sort_keys_narrow(const eddy_sort_order *order, uint32_t *keys, const void *elements,
                           int64_t stride, int64_t count);
void eddy_sort_keys_wide(const eddy_sort_order *order, uint64_t *keys, const void *elements,
                         int64_t stride, int64_t count);

#endif
