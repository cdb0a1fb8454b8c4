/* Records of late errors: one per root failure, from a fixed pool, so that reporting never allocates.
 *
 * made = seen + unseen, always. When the pool is full a seen record is replaced; if all are unseen, the oldest but the first
 * is, and is only counted from then on. What the program has brought about itself (storages that were given up) has a pool of its own, of which the
 * oldest is replaced: it may be much. Any thread; lock: errors->lock. */
#ifndef EDDY_VM_ERRORS_H
#define EDDY_VM_ERRORS_H

#include <base/sleep.h>
#include <base/status.h>
#include <eddy/status.h>
#include <stdbool.h>

#define EDDY_ERRORS_MAX 128
#define EDDY_ERRORS_KNOWN_MAX 128

typedef struct eddy_errors {
    eddy_lock lock;
    eddy_error records[EDDY_ERRORS_MAX]; /* lock: lock; sequence 0 is empty */
    bool is_seen[EDDY_ERRORS_MAX];
    eddy_error known[EDDY_ERRORS_KNOWN_MAX]; /* lock: lock; likewise, and seen */
    uint32_t next;                           /* where the search for a free place begins */
    uint32_t next_known;                     /* the oldest of those */
    uint64_t made, seen;
    uint64_t dropped_unseen; /* counted only, unseen */
} eddy_errors;

/* What is wrong. Of a device that is lost, which one, as there may be several (NULL: the host); all else has the CPU's words. */
void eddy_errors_format(eddy_status status, const char *device, char *buffer, size_t size);
/* The calling thread's error, in these words. */
eddy_status eddy_errors_fail(eddy_status status, const char *device, eddy_origin origin);
/* Records the root failure of an instruction. */
void eddy_errors_add(eddy_errors *errors, const eddy_error *error);
/* The same for a failure that the program knows of: it counts as seen. */
void eddy_errors_add_seen(eddy_errors *errors, const eddy_error *error);
/* The same for what the program has brought about itself, and knows of. */
void eddy_errors_add_known(eddy_errors *errors, const eddy_error *error);
/* The record of the root `sequence`, which counts as seen from now on. If only its number is known, the record says so. */
void eddy_errors_find(eddy_errors *errors, uint64_t sequence, eddy_error *error);
/* The lowest unseen record with `more` = the count of the other unseen ones; all count as seen afterwards. False if
 * there is none. */
bool eddy_errors_take_unseen(eddy_errors *errors, eddy_error *error);
/* Whether there is a record of the root. */
bool eddy_errors_has(eddy_errors *errors, uint64_t sequence);
/* Whether the program has seen the record of a root. */
bool eddy_errors_is_seen(eddy_errors *errors, uint64_t sequence);

#endif
