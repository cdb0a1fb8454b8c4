/* Errors of calls that nobody has taken from the slots of threads: counted for the process, so that they can be told at exit. */
#ifndef EDDY_BASE_UNSEEN_H
#define EDDY_BASE_UNSEEN_H

#include <eddy/status.h>
#include <stdint.h>

/* One more. `slot` is whose error it is; `error`, the record that the slot keeps, NULL where it was only counted there. Any thread;
 * never blocks. */
void eddy_unseen_add(const void *slot, const eddy_error *error);
/* So many of a slot have been taken. */
void eddy_unseen_remove(const void *slot, uint64_t count);
/* What was added for a slot will be taken by nobody: it stays, whatever is taken from there later. */
void eddy_unseen_keep(const void *slot);

/* How many there are; *first gets one whose record is known (status OK: none), the oldest unless that was taken meanwhile. */
uint64_t eddy_unseen_count(eddy_error *first);

/* The one line on stderr: so many errors, the first with this sentence (NULL: not known). Nothing where there is none, or where
 * EDDY_SILENT_EXIT is set. */
void eddy_unseen_tell(uint64_t count, const char *first);
/* Somebody else will tell at exit: without it the first error of the process sees to that itself. */
void eddy_unseen_leave(void);

/* In a forked child, which starts with none. */
void eddy_unseen_fork_child(void);

#endif
