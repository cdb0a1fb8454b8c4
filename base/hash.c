#include <base/hash.h>

#include <xxhash.h>

uint64_t eddy_hash_64(const void *data, size_t bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(data, bytes, seed);
}

eddy_digest eddy_hash_128(const void *data, size_t bytes) {
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (eddy_digest){.low = hash.low64, .high = hash.high64};
}
