/* The kind of a recorded function's arguments: what a program is made for. Two calls of one signature may be replayed by one program.
 *
 *   SEEN 0 --recorded--> SEEN 1 --recorded again, equal--> REPLAYED
 *                          \--recorded again, different--> SEEN 1 (the newer one), some times; then GIVEN UP
 *   any --something that cannot be replayed--> GIVEN UP
 *
 *   none --a class of shapes foretells its program (shape_class.h)--> REPLAYED, for as long as there is room
 *   any --it reads what no guard has so far--> GUARDED: its values have signatures of their own
 *   any --it reads what it has computed (path.h)--> FORKED: its paths have signatures of their own
 *
 * lock: the recorded function's, for all fields but the key, which is const. */
#ifndef EDDY_PROGRAM_SIGNATURE_H
#define EDDY_PROGRAM_SIGNATURE_H

#include <base/hash.h>
#include <program/affine.h>
#include <program/guard.h>
#include <program/kept_before.h>
#include <program/program.h>
#include <program/tape_seen.h>

/* Where an input began in the newest recording. is_fixed: in the one before too, so that it may be one of the function's own tensors, which the
 * code could not tell from it: other inputs are recorded first. */
typedef struct eddy_signature_input {
    eddy_storage_number storage;
    uint32_t generation;
    uint32_t view_leaves; /* of its root: the function may have a view of it */
    int64_t offset;
    bool is_fixed;
} eddy_signature_input;

/* What came of the newest call that ran the function in a recording. */
typedef enum eddy_signature_outcome {
    EDDY_SIGNATURE_RECORDED,
    EDDY_SIGNATURE_FAILED,  /* it returned a failure, or left no outputs */
    EDDY_SIGNATURE_WENT_ON, /* after a failed call */
} eddy_signature_outcome;

typedef struct eddy_signature {
    struct eddy_signature *next; /* the most recently used first */
    void *key;                   /* owned: what calls are compared by, in full */
    size_t key_bytes;
    eddy_digest digest;
    char *text;            /* owned: the inputs, for explain */
    eddy_program *program; /* a reference: of the last recording, or the one that is replayed */
    /* A reference, or NULL: the recording that the replayed program was equal to, not built, until a class is learnt from it. */
    eddy_program *source;
    bool is_replayed, is_given_up;
    eddy_signature_outcome outcome;
    eddy_signature_input *inputs; /* owned, input_count */
    int64_t input_count;
    uint64_t tape_changes; /* eddy_autograd_changes after the newest call that was recorded */
    uint64_t ran, replayed;
    bool is_foretold; /* its program was not recorded, or once */
    /* NULL, or the bucket whose size it is: a reference of its class. */
    struct eddy_shape_class *class;
    struct eddy_shape_bucket *bucket;
    int64_t program_bytes; /* of the bucket's */
    uint64_t
        worth; /* how often it was replayed, and the worth of what was dropped before: rare ones are dropped first, and of these those of long ago */
    uint64_t differed; /* recordings that were not as the one before, since the last that was */
    uint64_t missed;   /* of those that ran: a program was there, but not for such arguments */
    const char *
        miss; /* what the last of these arguments were, static; NULL: the tape, or where inputs lie */
    char reason[320]; /* why it is not replayed; empty: nothing speaks against it */
    /* What the function reads of its inputs (eddy_guard): each value of that has a signature of its own, and this one has no program. */
    eddy_code_array guards;
    uint32_t
        values_left; /* so many new values, or paths, are still recorded; a replay of one earns another */
    /* What the function reads of what it has computed, as a sentence: each path has a signature of its own, and this one has no program. "": nothing. */
    char forks[192];
    uint32_t trust, untried; /* whether paths are tried (recorded.c) */
    uint32_t path_bytes;     /* of a path: the key's last */
    /* Of a path: why the last call that might have taken it would not have been served; static, or NULL. */
    const char *doubt;
} eddy_signature;

/* The key of a call's arguments, in `memory`, which has room for eddy_signature_key_bytes(count, scalars). All inputs are tensors
 * whose shapes are known. Returns its bytes. */
size_t eddy_signature_key_room(int64_t input_count, int64_t scalar_count);
size_t eddy_signature_key_make(void *memory, eddy_list inputs, eddy_scalars scalars);

/* Whether two keys of as many bytes differ in dims and strides alone, if at all. */
bool eddy_signature_key_is_like(const void *a, const void *b, size_t key_bytes);

/* Where keys that foretell others have their sizes. */
typedef struct eddy_key_sizes {
    int32_t count;
    size_t words[EDDY_SIZES_MOST];
} eddy_key_sizes;

/* Whether two keys foretell others of another size, or four keys others of two other sizes (affine.h): they differ in dims and strides alone. The first dim in which they do is the first size; the second one is
 * the first dim behind it that does not follow from that one. What guards have read is the same in all. */
bool eddy_signature_keys_have_sizes(const void *const *keys, int32_t size_count, size_t key_bytes,
                                    eddy_key_sizes *at);
/* Whether a key is what these foretell; it may be one of them. *sizes: its own. */
bool eddy_signature_key_is_foretold(const void *const *keys, const eddy_key_sizes *at,
                                    const void *key, size_t key_bytes, eddy_sizes *sizes);

/* "f32[n, 4], i64[2n + 1]", "f32[m, n]": the inputs of keys that foretell others, whose sizes are n, or m and n. */
void eddy_signature_key_describe(const void *const *keys, const eddy_key_sizes *at, char *buffer,
                                 size_t size);

/* with: what the values of guards are, for explain, or "". NULL without memory. */
eddy_signature *eddy_signature_create(const void *key, size_t key_bytes, eddy_list inputs,
                                      const char *with);
/* "; a gradient goes back to input0": what tells it from others with the same text, in a list of all that begins with `first`; "" where no other has it. */
void eddy_signature_tell_apart(const eddy_signature *signature, const eddy_signature *first,
                               char *text, size_t size);
void eddy_signature_destroy(eddy_signature *signature);

/* Notes where the inputs of a recording begin. has_program: they are compared with those of the recording before. */
void eddy_signature_note(eddy_signature *signature, eddy_list inputs, bool has_program);
/* Whether the inputs that are fixed are those that were noted. */
bool eddy_signature_has_inputs(const eddy_signature_input *noted, eddy_list inputs);

/* Whether the tape is to the program as it was when it was recorded: the same tensors want a gradient, it keeps the same gradients, and nobody new sees
 * them. changes: eddy_autograd_changes, then. */
bool eddy_signature_fits_tape(const eddy_program *program, uint64_t changes);

#endif
