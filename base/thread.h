/* Threads of the library: every signal blocked, named, under the default floating-point environment. */
#ifndef EDDY_BASE_THREAD_H
#define EDDY_BASE_THREAD_H

#include <base/assert.h>
#include <eddy/status.h>
#include <pthread.h>
#include <stdint.h>

/* A thread between create and join. Must not move while the thread runs. */
typedef struct eddy_thread {
    pthread_t id;
    void (*run)(void *context); /* const after create */
    void *context;              /* const after create */
    char name[16];              /* const after create */
} eddy_thread;

/* Starts run(context) on a new thread. `name` is copied and cut to 15 bytes. Returns INTERNAL, with nothing recorded in
 * the error slot, when the system gives no thread: callers then fall back to one-thread mode. */
EDDY_MUST_USE eddy_status eddy_thread_create(eddy_thread *thread, const char *name,
                                             void (*run)(void *context), void *context);

/* Waits for the thread to end. */
void eddy_thread_join(eddy_thread *thread);

/* Instead of a join: nobody waits for its end. Nothing of *thread is looked at any more once `run` has begun. */
void eddy_thread_detach(eddy_thread *thread);

/* Parks the calling thread until the process ends. */
_Noreturn void eddy_thread_park(void);

/* Fault injection, process-wide, for tests: creations numbered first .. first + count - 1 from now on (0 is the next
 * one) fail. count 0 ends it. */
void eddy_thread_fail_at(int64_t first, int64_t count);

#endif
