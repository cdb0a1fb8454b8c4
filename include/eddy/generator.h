/* Generators of random numbers: a seed and a counter.
 *
 * A call of a random op takes the generator's state and advances the counter, on the calling thread: the
 * numbers depend on the order of calls, never on when or where the op runs. Without a generator an op takes
 * the calling thread's own, whose seed derives from the runtime's seed and the thread's number in the runtime
 * (numbers are given at the first random op of a thread, from 0). The numbers come from Philox-4x32-10 (Salmon et
 * al., 2011), keyed by seed, counter and element index. Nothing here blocks. */
#ifndef EDDY_GENERATOR_H
#define EDDY_GENERATOR_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_generator eddy_generator;

/* A new generator with counter 0, one reference, the caller's; NULL with OUT_OF_MEMORY in the error slot. */
EDDY_API eddy_generator *eddy_generator_create(uint64_t seed);
/* The generator that ops take by default. The handle stands for the own generator of the thread that uses it, in its current runtime. A
 * program that is to resume later saves its state and needs no generator of its own. Releasing it does nothing. Never fails. */
EDDY_API eddy_generator *eddy_generator_default(void);
/* One more reference; returns its argument, which may be NULL. Any thread. */
EDDY_API eddy_generator *eddy_generator_retain(eddy_generator *generator);
/* Gives up one reference and clears the pointer; NULL and pointers to NULL do nothing. Any thread. A generator that was released
 * before is INVALID_ARGUMENT here and in every use, until its memory is reused for another one. */
EDDY_API void eddy_generator_release(eddy_generator **generator);

/* The state, from which eddy_generator_restore resumes exactly here. Any thread; while other threads draw, the
 * counter is that of some moment during the call. INVALID_ARGUMENT for NULL. Restoring is UNSUPPORTED while the thread records: no run would do it again. */
EDDY_API eddy_status eddy_generator_state(const eddy_generator *generator, uint64_t *seed,
                                          uint64_t *counter);
EDDY_API eddy_status eddy_generator_restore(eddy_generator *generator, uint64_t seed,
                                            uint64_t counter);

/* Gives the current runtime a new seed and restarts its threads' own generators with their counters and numbers: two
 * runs in one process agree. Generators made by eddy_generator_create keep their state. Threads that draw at the same
 * moment take the old or the new seed. */
EDDY_API eddy_status eddy_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_generator_create(...) EDDY_AT_CALL_SITE(eddy_generator_create(__VA_ARGS__))
#define eddy_generator_retain(...) EDDY_AT_CALL_SITE(eddy_generator_retain(__VA_ARGS__))
#define eddy_generator_release(...) EDDY_AT_CALL_SITE_VOID(eddy_generator_release(__VA_ARGS__))
#define eddy_generator_state(...) EDDY_AT_CALL_SITE(eddy_generator_state(__VA_ARGS__))
#define eddy_generator_restore(...) EDDY_AT_CALL_SITE(eddy_generator_restore(__VA_ARGS__))
#define eddy_seed(...) EDDY_AT_CALL_SITE(eddy_seed(__VA_ARGS__))
#endif
#endif
