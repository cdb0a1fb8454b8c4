/* A recorded function: its programs, one for each signature.
 *
 * Any thread. No lock is held while the function or a program runs. */
#ifndef EDDY_PROGRAM_RECORDED_FUNCTION_H
#define EDDY_PROGRAM_RECORDED_FUNCTION_H

#include <base/sleep.h>
#include <eddy/recorded.h>
#include <program/shape_class.h>

struct eddy_recorded {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_recorded_body *body;
    void *context;
    int64_t output_count, most_bytes;
    bool is_strict;
    eddy_lock lock;
    bool foretells;            /* programs for shapes that were not recorded */
    eddy_signature *first;     /* lock: lock */
    eddy_shape_class *classes; /* lock: lock */
};

/* ---- recorded_shapes.c; `lock` is held ---- */

/* The class that a call's key belongs to; NULL if there is none. *size: the key's. */
eddy_shape_class *eddy_recorded_find_class(eddy_recorded *recorded, const void *key,
                                           size_t key_bytes, int64_t *size);
/* That class, whose reference becomes the caller's, if the tape is another than when it was learnt; else NULL. */
eddy_shape_class *eddy_recorded_take_stale_class(eddy_recorded *recorded, const void *key,
                                                 size_t key_bytes);
/* The signature is replayed from now on, and has a source: a class is learnt from it and another one, if there is one that it goes with. */
void eddy_recorded_learn_class(eddy_recorded *recorded, eddy_signature *signature);

#endif
