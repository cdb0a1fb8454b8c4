#include <base/hash.h>

/* For the size of its state. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(eddy_hash_stream), "a state fits into a stream");

uint64_t eddy_hash_64(const void *data, size_t bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(data, bytes, seed);
}

eddy_digest eddy_hash_128(const void *data, size_t bytes) {
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (eddy_digest){.low = hash.low64, .high = hash.high64};
}

static XXH3_state_t *state_of(const eddy_hash_stream *stream) {
    return (XXH3_state_t *)(void *)(uintptr_t)stream->state;
}

void eddy_hash_begin(eddy_hash_stream *stream) {
    XXH3_INITSTATE(state_of(stream));
    (void)XXH3_128bits_reset(state_of(stream));
}

void eddy_hash_add(eddy_hash_stream *stream, const void *data, size_t bytes) {
    (void)XXH3_128bits_update(state_of(stream), data, bytes);
}

eddy_digest eddy_hash_end(const eddy_hash_stream *stream) {
    XXH128_hash_t hash = XXH3_128bits_digest(state_of(stream));
    return (eddy_digest){.low = hash.low64, .high = hash.high64};
}
