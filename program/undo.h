/* What a run puts back that stops at a mark where the recorded function has read (path.h): all that was there before the run, and that it may have written by then.
 *
 * The run keeps a copy in its workspace. Storages are whole, since which parts of them are written is not known for views. */
#ifndef EDDY_PROGRAM_UNDO_H
#define EDDY_PROGRAM_UNDO_H

#include <program/executable.h>

/* Finds what is written before the last such mark. False without memory. */
EDDY_MUST_USE bool eddy_undo_find(eddy_executable *executable, const eddy_code *code);
/* Room for the copies. */
size_t eddy_undo_bytes(const eddy_executable *executable);
void eddy_undo_fini(eddy_executable *executable);

/* Copies to `room` what is written, and back from there. */
void eddy_undo_keep(const eddy_executable *executable, char *const *bases, void *room);
void eddy_undo_put_back(const eddy_executable *executable, char *const *bases, const void *room);

#endif
