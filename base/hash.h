/* Hashing: XXH3 of the xxhash library. */
#ifndef EDDY_BASE_HASH_H
#define EDDY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct eddy_digest {
    uint64_t low, high;
} eddy_digest;

uint64_t eddy_hash_64(const void *data, size_t bytes, uint64_t seed);
/* XXH3 128: for keys that are compared in full on a hit. */
eddy_digest eddy_hash_128(const void *data, size_t bytes);

#endif
