/* The front of a program whose function reads on the host what it has computed (path.h): its steps up to the last mark where that was read.
 *
 * A run on a path is two instructions of the VM, which share the arena:
 *
 *   front   waited for; leaves the path, or passes the last mark      operands: what its steps use, and the arena, which it makes
 *   back    submitted once the path was not left, as any run is       operands: all of the program's, and the arena
 *
 * So nobody waits for what is behind the last read, and a run that leaves its path has done nothing but what the front puts back: copies of all storages that were there
 * before the run and that the front may write lie in its workspace. They are whole, since which parts of them are written is not known for views. */
#ifndef EDDY_PROGRAM_FRONT_H
#define EDDY_PROGRAM_FRONT_H

#include <program/executable.h>

/* Finds the front of an executable that is made but for it; it has none where there is no such mark. False without memory. */
EDDY_MUST_USE bool eddy_front_find(eddy_executable *executable, const eddy_code *code);
void eddy_front_fini(eddy_executable *executable);

static inline bool eddy_front_exists(const eddy_executable *executable) {
    return executable->front.read_count > 0;
}

/* Room for the copies. */
size_t eddy_front_kept_bytes(const eddy_executable *executable);
/* Copies to `room` what may be written, and back from there. */
void eddy_front_keep(const eddy_executable *executable, char *const *bases, void *room);
void eddy_front_put_back(const eddy_executable *executable, char *const *bases, const void *room);

#endif
