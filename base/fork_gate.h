/* A gate that keeps a fork from copying other libraries' locks while they are held. The child has none of the parent's other threads, so that a lock which one of them
 * holds stays locked in it for good. A thread is inside the gate while it calls such a library. fork(2) waits until no other thread is inside, or for
 * EDDY_FORK_GATE_WAIT_NS; threads that want to enter meanwhile wait for the fork, and so no longer than that. */
#ifndef EDDY_BASE_FORK_GATE_H
#define EDDY_BASE_FORK_GATE_H

#include <stdint.h>

/* No call of a kernel takes as long. After that time the fork goes on, and the child may find a library locked. */
#define EDDY_FORK_GATE_WAIT_NS INT64_C(10000000000)

/* Any thread; nested calls count. Between them no code of the program's user may run. Two atomic additions of a word that few
 * threads share. */
void eddy_fork_gate_enter(void);
void eddy_fork_gate_leave(void);

/* For base/process.c alone: before a fork, and after it in the parent and in the child. */
void eddy_fork_gate_close(void);
void eddy_fork_gate_open(void);
void eddy_fork_gate_open_in_child(void);

#endif
