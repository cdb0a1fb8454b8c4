#include <base/thread.h>

#include <base/atomic.h>
#include <base/nvtx.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Numbers of the creations that fail, counted from the last eddy_thread_fail_at. */
static _Atomic int64_t fault_first, fault_end; /* atomic: relaxed; tests write, creators read */
static _Atomic int64_t fault_number;           /* atomic: relaxed; creations since */

static bool fault_is_due(void) {
    if (EDDY_LIKELY(eddy_load_relaxed(&fault_end) == 0))
        return false;
    int64_t number = eddy_add_relaxed(&fault_number, 1);
    return number >= eddy_load_relaxed(&fault_first) && number < eddy_load_relaxed(&fault_end);
}

void eddy_thread_fail_at(int64_t first, int64_t count) {
    eddy_store_relaxed(&fault_number, 0);
    eddy_store_relaxed(&fault_first, first);
    eddy_store_relaxed(&fault_end, count > 0 ? first + count : 0);
}

static void *thread_main(void *argument) {
    eddy_thread *thread = argument;
    pthread_setname_np(pthread_self(), thread->name);
    eddy_nvtx_name_thread(thread->name);
    /* The creator's flush-to-zero and rounding mode are inherited. */
    fesetenv(FE_DFL_ENV);
    thread->run(thread->context);
    return NULL;
}

eddy_status eddy_thread_create(eddy_thread *thread, const char *name, void (*run)(void *context),
                               void *context) {
    if (fault_is_due())
        return EDDY_INTERNAL;
    thread->run = run;
    thread->context = context;
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return EDDY_INTERNAL;
    int error = pthread_create(&thread->id, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? EDDY_OK : EDDY_INTERNAL;
}

void eddy_thread_join(eddy_thread *thread) {
    int error = pthread_join(thread->id, NULL);
    EDDY_ASSERT(error == 0);
    (void)error;
}

void eddy_thread_detach(eddy_thread *thread) {
    int error = pthread_detach(thread->id);
    EDDY_ASSERT(error == 0);
    (void)error;
}

_Noreturn void eddy_thread_park(void) {
    for (;;)
        pause();
}
