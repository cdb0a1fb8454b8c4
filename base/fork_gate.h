/* A gate that keeps a fork out of other libraries' locks. Their locks are copied into the child as they are, and whose owner
 * is a thread that the child does not have stays locked for good. So a thread is inside the gate while it calls such a
 * library, and fork(2) waits until no other thread is inside, or for EDDY_FORK_GATE_WAIT_NS. Threads that come meanwhile wait for the fork. */
#ifndef EDDY_BASE_FORK_GATE_H
#define EDDY_BASE_FORK_GATE_H

#include <stdint.h>

/* Longer than any call of a kernel. Behind it the child may find a library locked; without it the fork may never return. */
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
