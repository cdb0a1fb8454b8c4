/* Compares what two ways of computing the same have made. */
#ifndef BENCH_OURS_BITS_H
#define BENCH_OURS_BITS_H

#include <bench/ours/must.h>
#include <eddy/dtype.h>
#include <eddy/host.h>
#include <stdbool.h>
#include <string.h>

/* The caller frees them. Waits for the tensor; ends the program on failure. */
static inline void *bits_of(eddy_tensor *tensor, size_t *bytes) {
    *bytes = (size_t)eddy_count_of(tensor) * eddy_dtype_bytes(eddy_dtype_of(tensor));
    void *data = malloc(*bytes + 1);
    if (!data)
        exit(1);
    must(eddy_read(tensor, data, *bytes, NULL));
    return data;
}

static inline bool bits_are_equal(eddy_tensor *a, eddy_tensor *b) {
    size_t bytes_a, bytes_b;
    void *data_a = bits_of(a, &bytes_a), *data_b = bits_of(b, &bytes_b);
    bool are_equal = bytes_a == bytes_b && !memcmp(data_a, data_b, bytes_a);
    free(data_a);
    free(data_b);
    return are_equal;
}

#endif
