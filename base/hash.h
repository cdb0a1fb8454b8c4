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

/* The same of data that comes in parts. */
typedef struct eddy_hash_stream {
    _Alignas(64) unsigned char state[576];
} eddy_hash_stream;
void eddy_hash_begin(eddy_hash_stream *stream);
void eddy_hash_add(eddy_hash_stream *stream, const void *data, size_t bytes);
eddy_digest eddy_hash_end(const eddy_hash_stream *stream);

#endif
