/* The sizes of a shape class from one to another, whose programs have in common what is made once (lower.h).
 *
 *   --a size of it is recorded, and is as foretold--> CHECKED --the first size that is derived--> LOWERED: at its least and its largest size
 *                                                        \--these have nothing in common--> its sizes are foretold and built in full
 *
 * Sizes are those that differ from the recorded ones by multiples of the class's step. Once that changes, the bucket is lowered anew.
 *
 * lock: the recorded function's. */
#ifndef EDDY_PROGRAM_SHAPE_BUCKET_H
#define EDDY_PROGRAM_SHAPE_BUCKET_H

#include <base/sleep.h>
#include <program/affine.h>
#include <program/program.h>

struct eddy_shape_class;

typedef struct eddy_shape_bucket {
    int64_t least, most;               /* const */
    bool is_checked;                   /* lock: as are all below. A size was recorded as foretold */
    bool is_given_up;                  /* one was not */
    int64_t step;                      /* of the class, when it was lowered; 0: it was not yet */
    eddy_program *lowered[2];          /* a reference each, NULL: nothing is in common */
    int64_t sizes[2];                  /* theirs: the largest, then the least */
    uint64_t derived, exact, replayed; /* programs, but for `replayed`: calls */
    int64_t seen_least, seen_most;     /* of the sizes that were foretold; 0: none so far */
    char reason[200];                  /* why the newest that is exact is; "": none is */
} eddy_shape_bucket;

/* Zeroed buckets are allowed. The lock is not held. */
void eddy_shape_bucket_fini(eddy_shape_bucket *bucket);
/* Lock. Of its programs. */
int64_t eddy_shape_bucket_bytes(const eddy_shape_bucket *bucket);

/* A program of the sizes, built: derived from what its bucket has in common, or else foretold in full. One reference. As eddy_program_foretell and eddy_program_build,
 * but that nothing is recorded. `lock` is not held. */
EDDY_MUST_USE eddy_status eddy_shape_class_make(struct eddy_shape_class *class, eddy_lock *lock,
                                                eddy_sizes sizes, eddy_origin origin,
                                                eddy_program **program);

#endif
