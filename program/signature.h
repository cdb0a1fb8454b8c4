/* The kind of a recorded function's arguments: what a program is made for. Two calls of one signature may be replayed by one program.
 *
 *   SEEN 0 --recorded--> SEEN 1 --recorded again, equal--> REPLAYED
 *                          \--recorded again, different--> SEEN 1 (the newer one), some times; then GIVEN UP
 *   any --something that cannot be replayed--> GIVEN UP
 *
 * lock: the recorded function's, for all fields but the key, which is const. */
#ifndef EDDY_PROGRAM_SIGNATURE_H
#define EDDY_PROGRAM_SIGNATURE_H

#include <base/hash.h>
#include <program/program.h>

typedef struct eddy_signature {
    struct eddy_signature *next; /* the most recently used first */
    void *key;                   /* owned: what calls are compared by, in full */
    size_t key_bytes;
    eddy_digest digest;
    char *text;            /* owned: the inputs, for explain */
    eddy_program *program; /* a reference: of the last recording, or the one that is replayed */
    bool is_replayed, is_given_up;
    uint64_t ran, replayed, differed;
    uint64_t
        missed; /* of those that ran: replayed before, but with inputs that share memory which the program writes */
    char reason[320]; /* why it is not replayed; empty: nothing speaks against it */
} eddy_signature;

/* The key of a call's arguments, in `memory`, which has room for eddy_signature_key_bytes(count, scalars). All inputs are tensors
 * whose shapes are known. Returns its bytes. */
size_t eddy_signature_key_room(int64_t input_count, int64_t scalar_count);
size_t eddy_signature_key_make(void *memory, eddy_list inputs, eddy_scalars scalars);

/* NULL without memory. */
eddy_signature *eddy_signature_create(const void *key, size_t key_bytes, eddy_list inputs);
void eddy_signature_destroy(eddy_signature *signature);

#endif
