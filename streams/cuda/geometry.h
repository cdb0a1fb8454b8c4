/* Geometries of calls, by which answers of a library are remembered: structs without padding, compared by their bytes. */
#ifndef EDDY_STREAMS_CUDA_GEOMETRY_H
#define EDDY_STREAMS_CUDA_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of whole words. */
static inline uint64_t eddy_cuda_geometry_hash(const void *geometry, size_t bytes) {
    uint64_t sum = 0, word;
    for (size_t at = 0; at < bytes; at += sizeof(word)) {
        memcpy(&word, (const char *)geometry + at, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

#endif
