/* A block of a pool, as a list of all of them tells it. */
#ifndef EDDY_STREAMS_MEMORY_BLOCK_H
#define EDDY_STREAMS_MEMORY_BLOCK_H

#include <stdint.h>

typedef enum eddy_memory_block_state {
    EDDY_MEMORY_BLOCK_LIVE, /* taken */
    EDDY_MEMORY_BLOCK_FREE, /* kept, for whoever asks */
    EDDY_MEMORY_BLOCK_PENDING, /* kept, and for others than its queue not free before something is over */
} eddy_memory_block_state;

typedef struct eddy_memory_block {
    const void *
        address; /* as a number: it may lead to no page; NULL: several of them, wherever they are */
    int64_t bytes; /* of each */
    int64_t count;
    uint32_t
        chunk; /* what the backend has given at once: blocks of one chunk come in a row, by address */
    uint8_t state; /* eddy_memory_block_state */
} eddy_memory_block;

#endif
