/* What an executable is made of, word for word: programs with equal keys have equal executables, whatever tensors they hold, and whatever their
 * bindings are called. It holds what the text of the code says, without the places of its calls, and which values have memory that is there
 * before or after a run. */
#ifndef EDDY_PROGRAM_BUILD_KEY_H
#define EDDY_PROGRAM_BUILD_KEY_H

#include <base/hash.h>
#include <program/program.h>

typedef struct eddy_build_key {
    uint64_t *words; /* owned, acquired with EDDY_MEMORY_PROGRAM */
    size_t count;
    eddy_digest digest;
} eddy_build_key;

/* passes: those that are still to be run. bases: of eddy_executable_make. False where there is no memory, or no key: a program with ops that were
 * registered, which may have other kernels tomorrow. */
EDDY_MUST_USE bool eddy_build_key_make(eddy_build_key *key, const eddy_program *program,
                                       const uint32_t *bases, uint32_t passes);
bool eddy_build_key_is_equal(const eddy_build_key *a, const eddy_build_key *b);
static inline size_t eddy_build_key_bytes(const eddy_build_key *key) {
    return key->count * sizeof(*key->words);
}
/* Zeroed keys are allowed. */
void eddy_build_key_fini(eddy_build_key *key);

#endif
