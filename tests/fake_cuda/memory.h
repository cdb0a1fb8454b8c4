/* The memory of a device: addresses without pages for the host, and a second mapping of the same pages for the fake's own use.
 *
 * Blocks are taken first-fit. Behind each lie guard bytes that nobody may write; what is free or was never written has a pattern. Lock: the fake's, but for
 * translation. */
#ifndef EDDY_TESTS_FAKE_CUDA_MEMORY_H
#define EDDY_TESTS_FAKE_CUDA_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_block {
    struct fake_block *next;
    int64_t offset, bytes; /* the guard included */
    int64_t asked_bytes;   /* 0: a gap */
} fake_block;

typedef struct fake_memory {
    char *addresses, *mapping; /* const after init */
    int64_t bytes;             /* const after init */
    fake_block *blocks;        /* all of it, in the order of addresses */
    int64_t fresh;             /* from here on nothing was ever taken */
    int64_t taken_bytes;       /* as asked for */
} fake_memory;

/* `place`: devices of one process have different ones. False: no memory. */
bool fake_memory_init(fake_memory *memory, int64_t bytes, int place);
/* Checks the guards, and gives everything back. */
void fake_memory_fini(fake_memory *memory);

/* 0: nothing fits. */
uintptr_t fake_memory_take(fake_memory *memory, int64_t bytes);
/* The block that begins at `address`, or NULL. */
const fake_block *fake_memory_block(const fake_memory *memory, uintptr_t address);
void fake_memory_give(fake_memory *memory, uintptr_t address);

/* Whether the device has this address, the one behind its last included. */
bool fake_memory_has(const fake_memory *memory, uintptr_t address);
/* Where the fake finds it; others stay. */
uintptr_t fake_memory_translate(const fake_memory *memory, uintptr_t address);
/* Whether the bytes lie in one block that is taken; an empty range may lie at its end. `block_end`: the block's, or NULL. */
bool fake_memory_covers(const fake_memory *memory, uintptr_t begin, uintptr_t end,
                        uintptr_t *block_end);

/* Ends the process, with a line that names `who`, if bytes behind the block round `address` were written. */
void fake_memory_check(const fake_memory *memory, uintptr_t address, const char *who);
void fake_memory_check_all(const fake_memory *memory);

#endif
