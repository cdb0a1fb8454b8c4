/* A recorded function: its programs, one for each signature.
 *
 * Any thread. No lock is held while the function or a program runs. */
#ifndef EDDY_PROGRAM_RECORDED_FUNCTION_H
#define EDDY_PROGRAM_RECORDED_FUNCTION_H

#include <base/sleep.h>
#include <eddy/recorded.h>
#include <program/shape_class.h>

/* Of a call: inputs, numbers and outputs. */
#define EDDY_RECORDED_INPUTS_MOST 4096

struct eddy_recorded {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_recorded_body *body;
    void *context;
    int64_t output_count, most_bytes;
    int64_t *edges; /* owned: the largest sizes of buckets; the last is the largest of all */
    int64_t edge_count;
    int64_t most_derived_bytes;
    bool is_strict;
    eddy_lock lock;
    bool foretells;            /* programs for shapes that were not recorded */
    eddy_signature *first;     /* lock: lock */
    eddy_shape_class *classes; /* lock: lock */
    uint64_t age; /* lock: the worth of the signature of a bucket that was dropped last */
};

/* What is dropped under the lock, and released without it: lists. */
typedef struct eddy_recorded_dropped {
    eddy_signature *signatures;
    eddy_shape_class *classes;
} eddy_recorded_dropped;

/* ---- recorded_signatures.c; `lock` is held ---- */

/* The signature with that key, the last bytes of which are a path, which becomes the first; NULL if there is none. */
eddy_signature *eddy_recorded_find_signature(eddy_recorded *recorded, const void *key,
                                             size_t key_bytes, uint32_t path_bytes);
/* A new one, the first; NULL without memory. with: what the values of guards are, or "". */
eddy_signature *eddy_recorded_add_signature(eddy_recorded *recorded, const void *key,
                                            size_t key_bytes, eddy_list inputs, const char *with);
/* The most recently used path of what a key names that begins with what is known, and that is replayed, or given up, from `first` on; NULL: there is none. */
eddy_signature *eddy_recorded_find_path(eddy_signature *first, const void *key, size_t key_bytes,
                                        const void *known, uint32_t known_bytes, bool is_given_up);
/* A program of the signature is replayed. */
void eddy_recorded_note_replay(eddy_recorded *recorded, eddy_signature *signature);
/* The program that was noted did not serve the call, and the function runs. why: static. */
void eddy_recorded_note_miss(eddy_signature *signature, const char *why);
/* Drops the classes that were learnt least recently, if there are too many; the signatures beyond the limit that were used least recently; and those of
 * buckets beyond theirs that are worth the least. The first signature stays. */
void eddy_recorded_trim(eddy_recorded *recorded, eddy_recorded_dropped *dropped);
/* Drops the values of a kind and their paths, beyond `most`, that were used least recently. key: of a call of that kind. */
void eddy_recorded_trim_values(eddy_recorded *recorded, const void *key, size_t kind_bytes,
                               uint32_t most, eddy_recorded_dropped *dropped);
/* `lock` is not held. */
void eddy_recorded_drop(eddy_recorded_dropped *dropped);

/* ---- recorded_shapes.c; `lock` is held ---- */

/* The newest class that a call's key and inputs belong to, and that is not given up; NULL if there is none. is_known: and that knows its sizes. *sizes: the key's. */
eddy_shape_class *eddy_recorded_find_class(eddy_recorded *recorded, const void *key,
                                           size_t key_bytes, eddy_list inputs, bool is_known,
                                           eddy_sizes *sizes);
/* The key's classes that were learnt when the tape was another, as a list; the caller releases them. */
eddy_shape_class *eddy_recorded_take_stale_classes(eddy_recorded *recorded, const void *key,
                                                   size_t key_bytes);
/* Whether the key is of a class of one size, which is above the largest of all; that is counted then. */
bool eddy_recorded_is_beyond(eddy_recorded *recorded, const void *key, size_t key_bytes,
                             int64_t *size);
/* The signature is replayed from now on, and has a source: a class is learnt from it and three others (two sizes), or another one (one size), if there are any that it goes with. */
void eddy_recorded_learn_class(eddy_recorded *recorded, eddy_signature *signature);
/* The classes beyond EDDY_SHAPE_CLASSES_MOST, or beyond most_bytes, as a list; adds to *bytes what the others take. The newest stays. */
eddy_shape_class *eddy_recorded_trim_classes(eddy_recorded *recorded, int64_t *bytes);

#endif
