/* Executables that programs of one runtime share, and those that may come again: a cache by content.
 *
 *   build --key--> find: a hit is compared in full     --> the program holds a reference, and a copy of the code with its own call sites
 *               '-> miss: passes, kernels, arena --keep-->  the cache holds a reference, too, until it needs the room
 *
 * The cache is bounded by bytes (runtime option `program_cache_bytes`); what was used least recently goes first. A handle looks nothing up.
 *
 * Any thread. Lock: the cache's, a leaf: under it nothing is made, compared or freed. eddy_trim and the runtime's shutdown give all up. In a
 * forked child nobody builds programs of the parent's runtimes, so that the lock, which another thread may have held, is not taken. */
#ifndef EDDY_PROGRAM_BUILD_CACHE_H
#define EDDY_PROGRAM_BUILD_CACHE_H

#include <program/build_key.h>
#include <program/executable.h>

/* An executable with the code that it was made of. Const but for the count, and what the cache needs to find it. */
typedef struct eddy_built {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_executable executable;
    /* Of what was kept: */
    eddy_build_key key;
    eddy_code
        code; /* after the passes; `source` of its instructions says which of the key's each was */
    bool *covered; /* per external: whether an instruction writes all of it */
    uint32_t external_count;
    int64_t bytes;
    struct eddy_built *next;          /* lock: the cache's; in its bucket */
    struct eddy_built *newer, *older; /* lock: the cache's; by their last use */
} eddy_built;

/* One without an executable, of one reference; NULL without memory. */
eddy_built *eddy_built_create(void);
/* Gives up a reference; NULL is allowed. */
void eddy_built_release(eddy_built *built);

/* What was kept under an equal key, a reference; NULL if there is none. */
eddy_built *eddy_build_cache_find(eddy_runtime *runtime, const eddy_build_key *key);
/* Keeps what the program was built to, with its key, which is taken. Without memory, or where it is larger than the cache may be, nothing is kept. */
void eddy_build_cache_keep(const eddy_program *program, eddy_build_key *key);

#endif
