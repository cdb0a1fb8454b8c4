/* Signatures that differ in one size, and whose programs two of them foretell; or in two sizes that change independently, where four do.
 *
 *   two (four) signatures are replayed --> LEARNT --another is recorded, and is as foretold--> CHECKED
 *                                            \--it is not--> GIVEN UP
 *
 * A checked class foretells what lies between two recorded sizes, one not above it and one not below it (of two sizes both, so that what grows with them and is cut off somewhere is
 * cut off in neither), and follows from them whatever is rounded (size_lattice.h). Another size that is recorded and is as foretold widens that. Of a class of two sizes a recording checks
 * nothing in which one of the sizes is that of one of the four: numbers that are none of a + b m + c n + d mn may agree along all of that line.
 * Where there are buckets (shape_bucket.h), a class of one size foretells all sizes of those in which one was recorded and was as foretold.
 * Nothing is foretold once the tape is another than when the class was learnt.
 *
 * Everything is const but the references and the fields tagged `lock`, which is the recorded function's. */
#ifndef EDDY_PROGRAM_SHAPE_CLASS_H
#define EDDY_PROGRAM_SHAPE_CLASS_H

#include <base/atomic.h>
#include <program/foretell.h>
#include <program/shape_bucket.h>
#include <program/signature.h>
#include <program/size_lattice.h>

/* So many recorded sizes are kept that none is below, or above; others are recorded, too, and widen nothing. */
#define EDDY_SHAPE_CLASS_ENDS 16
/* So many of a function; beyond these the least recently learnt is dropped. */
#define EDDY_SHAPE_CLASSES_MOST 8

/* A signature that is replayed, as a class is learnt from it. Nothing is owned. */
typedef struct eddy_shape_point {
    const void *key;
    size_t key_bytes;
    eddy_program *program;              /* as recorded, not built */
    const eddy_signature_input *inputs; /* input_count */
    int64_t input_count;
} eddy_shape_point;

/* Recorded sizes, of which none is below (above) another one in both sizes. */
typedef struct eddy_shape_ends {
    eddy_sizes items[EDDY_SHAPE_CLASS_ENDS];
    int32_t count;
} eddy_shape_ends;

typedef struct eddy_shape_class {
    _Atomic uint32_t references;   /* atomic: acq_rel when given up */
    struct eddy_shape_class *next; /* lock */
    eddy_key_sizes at;             /* at.count sizes */
    int32_t known_count;           /* of the programs: twice as many */
    void *keys[EDDY_KNOWN_MOST];   /* owned */
    size_t key_bytes;
    eddy_program *programs[EDDY_KNOWN_MOST]; /* a reference each: as recorded, not built */
    eddy_sizes sizes[EDDY_KNOWN_MOST];
    eddy_signature_input *inputs; /* owned: those that are fixed in all */
    int64_t input_count;
    uint64_t tape_changes;        /* when it was learnt */
    eddy_shape_ends least, most;  /* lock: of the sizes that were recorded and are as foretold */
    eddy_size_lattice lattice;    /* lock: of the same */
    bool is_checked, is_given_up; /* lock */
    eddy_shape_bucket *buckets;   /* owned; in the order of sizes; of a class of one size alone */
    int64_t bucket_count;
    uint64_t beyond; /* lock: calls with a size above that of the last bucket */
    eddy_sizes
        untold; /* lock: the last sizes, of 2 and more, of which the programs foretold none; 0: none were */
} eddy_shape_class;

/* Of two points, or four; the last one's program is the newest, whose tape was changed `tape_changes` times: one reference. edges: the largest sizes of its buckets, where there are two. NULL
 * where they do not differ in one size, or two, or without memory. */
eddy_shape_class *eddy_shape_class_create(const eddy_shape_point *points, int32_t count,
                                          uint64_t tape_changes, const int64_t *edges,
                                          int64_t edge_count);
eddy_shape_class *eddy_shape_class_retain(eddy_shape_class *class); /* NULL is allowed */
void eddy_shape_class_release(eddy_shape_class *class);             /* NULL is allowed */
int64_t eddy_shape_class_bytes(const eddy_shape_class *class);

/* Whether a call's key differs from those of the class in its sizes alone, which are *sizes. */
bool eddy_shape_class_has(const eddy_shape_class *class, const void *key, size_t key_bytes,
                          eddy_sizes *sizes);
/* Whether the tape is as it was when the class was learnt. */
bool eddy_shape_class_fits_tape(const eddy_shape_class *class);
/* The bucket of a size; NULL if there is none. */
eddy_shape_bucket *eddy_shape_class_bucket(const eddy_shape_class *class, eddy_sizes sizes);
/* Lock. Of a class of one size: what its sizes differ by, and the smallest that was recorded. */
int64_t eddy_shape_class_step(const eddy_shape_class *class);
int64_t eddy_shape_class_least(const eddy_shape_class *class);
/* Lock. Whether the sizes follow from those that were recorded and checked. */
bool eddy_shape_class_knows(const eddy_shape_class *class, eddy_sizes sizes);
/* Lock. A recording of these sizes is as foretold, or is not. */
void eddy_shape_class_check(eddy_shape_class *class, eddy_sizes sizes, bool is_as_foretold);

/* Lock. The programs foretell none of these sizes. */
void eddy_shape_class_note_untold(eddy_shape_class *class, eddy_sizes sizes);

/* As eddy_program_foretell. */
EDDY_MUST_USE eddy_status eddy_shape_class_foretell(const eddy_shape_class *class, eddy_sizes sizes,
                                                    eddy_program **program);

#endif
