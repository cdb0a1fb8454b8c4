/* Signatures that differ in one size, and whose programs two of them foretell.
 *
 *   two signatures are replayed --> LEARNT --a third is recorded, and is as foretold--> CHECKED
 *                                     \--it is not--> GIVEN UP
 *
 * A checked class foretells sizes between the smallest and the largest that was recorded, as far as they differ from those by multiples of what those
 * differ by: three even sizes say nothing of how a function rounds half of an odd one. Another size that is recorded and is as foretold widens that.
 * Where there are buckets (shape_bucket.h), it foretells all sizes of those in which one was recorded and was as foretold.
 * Nothing is foretold once the tape is another than when the class was learnt.
 *
 * Everything is const but the references and the fields tagged `lock`, which is the recorded function's. */
#ifndef EDDY_PROGRAM_SHAPE_CLASS_H
#define EDDY_PROGRAM_SHAPE_CLASS_H

#include <base/atomic.h>
#include <program/foretell.h>
#include <program/shape_bucket.h>
#include <program/signature.h>

/* So many of a function; beyond these the least recently learnt is dropped. */
#define EDDY_SHAPE_CLASSES_MOST 8

typedef struct eddy_shape_class {
    _Atomic uint32_t references;   /* atomic: acq_rel when given up */
    struct eddy_shape_class *next; /* lock */
    void *keys[2];                 /* owned */
    size_t key_bytes;
    eddy_program *programs[2]; /* a reference each: as recorded, not built */
    int64_t sizes[2];
    eddy_signature_input *inputs; /* owned: those that are fixed in both */
    int64_t input_count;
    uint64_t tape_changes;        /* when it was learnt */
    int64_t least, most;          /* lock: of the sizes that were recorded */
    int64_t step;                 /* lock: the greatest of whose multiples they all differ */
    bool is_checked, is_given_up; /* lock */
    eddy_shape_bucket *buckets;   /* owned; in the order of sizes */
    int64_t bucket_count;
    uint64_t beyond; /* lock: calls with a size above that of the last bucket */
    int64_t untold;  /* lock: the last size of which the programs foretold none; 0: none was */
} eddy_shape_class;

/* Of two signatures that are replayed, one reference. edges: the largest sizes of its buckets. NULL where they do not differ in one size, or without memory. */
eddy_shape_class *eddy_shape_class_create(const eddy_signature *first, const eddy_signature *second,
                                          const int64_t *edges, int64_t edge_count);
eddy_shape_class *eddy_shape_class_retain(eddy_shape_class *class); /* NULL is allowed */
void eddy_shape_class_release(eddy_shape_class *class);             /* NULL is allowed */
int64_t eddy_shape_class_bytes(const eddy_shape_class *class);

/* Whether a call's key differs from those of the class in its size alone, which is *size. */
bool eddy_shape_class_has(const eddy_shape_class *class, const void *key, size_t key_bytes,
                          int64_t *size);
/* The bucket of a size; NULL if there is none. */
eddy_shape_bucket *eddy_shape_class_bucket(const eddy_shape_class *class, int64_t size);
/* Lock. Whether the size follows from those that were recorded and checked. */
bool eddy_shape_class_knows(const eddy_shape_class *class, int64_t size);
/* Lock. A recording of that size is as foretold, or is not. */
void eddy_shape_class_check(eddy_shape_class *class, int64_t size, bool is_as_foretold);

/* As eddy_program_foretell. */
EDDY_MUST_USE eddy_status eddy_shape_class_foretell(const eddy_shape_class *class, int64_t size,
                                                    eddy_program **program);

#endif
