/* Errors of calls that the program has not taken from the slots of its threads: counted for the process, to be reported at exit. */
#ifndef EDDY_BASE_UNSEEN_H
#define EDDY_BASE_UNSEEN_H

#include <eddy/status.h>
#include <stdint.h>

/* Counts an error of `slot`; `error` is the record that the slot keeps, NULL if it was only counted there. Any thread;
 * never blocks. */
void eddy_unseen_add(const void *slot, const eddy_error *error);
/* `count` errors of a slot have been taken. */
void eddy_unseen_remove(const void *slot, uint64_t count);
/* The errors counted for a slot cannot be taken any more: they stay counted, whatever is taken from the slot later. */
void eddy_unseen_keep(const void *slot);

/* The number of unseen errors; *first gets one whose record is known (status OK: none), the oldest unless it was taken meanwhile. */
uint64_t eddy_unseen_count(eddy_error *first);

/* Writes the line on stderr: `count` errors, the first with this message (NULL: not known). Writes nothing if there is no error, or
 * if EDDY_SILENT_EXIT is set. */
void eddy_unseen_tell(uint64_t count, const char *first);
/* The caller will report at exit. Without this call the first error of the process arranges for that itself. */
void eddy_unseen_leave(void);

/* In a forked child, which starts with no errors. */
void eddy_unseen_fork_child(void);

#endif
