#include <base/assert.h>
#include <base/fork_gate.h>
#include <base/process.h>
#include <base/sleep.h>
#include <pthread.h>
#include <stdlib.h>

#define HOOK_MAX 16

uint64_t eddy_process_generation = 1;

static void (*hooks[HOOK_MAX])(void);
static int hook_count; /* lock: lock */
static eddy_lock lock;

typedef void exit_fn(void);
static _Atomic(exit_fn *) exit_handler; /* atomic: release, acquire; NULL before there is one */

static void in_child(void) {
    eddy_process_generation++;
    eddy_fork_gate_open_in_child();
    /* Another thread of the parent may have held it. */
    lock = (eddy_lock){0};
    for (int i = 0; i < hook_count; i++)
        hooks[i]();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(eddy_fork_gate_close, eddy_fork_gate_open, in_child);
}

void eddy_process_at_fork_child(void (*child)(void)) {
    eddy_lock_acquire(&lock);
    EDDY_ASSERT(hook_count < HOOK_MAX);
    hooks[hook_count++] = child;
    eddy_lock_release(&lock);
}

void eddy_process_at_exit(void (*handler)(void)) {
    eddy_store_release(&exit_handler, handler);
    (void)atexit(handler);
}

void eddy_process_exit_first(void) {
    exit_fn *handler = eddy_load_acquire(&exit_handler);
    if (handler)
        (void)atexit(handler);
}
