/* Identifies the process: counts forks, so that a child recognises objects of its parent. */
#ifndef EDDY_BASE_PROCESS_H
#define EDDY_BASE_PROCESS_H

#include <stdint.h>

/* 1 in the first process, one more after each fork on the way here. Written only in a child that has one thread;
 * constant otherwise, so a plain read suffices. */
extern uint64_t eddy_process_generation;

/* Calls `child` in every forked child, in the order of the calls. At most 16; before the first fork. */
void eddy_process_at_fork_child(void (*child)(void));

/* Has `handler` run when the process ends, ahead of what other libraries have registered so far. It is the same one at each call, and its first run does all the work. Any thread. */
void eddy_process_at_exit(void (*handler)(void));
/* Registers it again, ahead of what has been registered since: for code that does not know it. Does nothing before eddy_process_at_exit. Any thread. */
void eddy_process_exit_first(void);

#endif
