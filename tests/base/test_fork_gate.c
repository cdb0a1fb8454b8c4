#include <base/atomic.h>
#include <base/clock.h>
#include <base/fork_gate.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static _Atomic int stage;

static void await(int wanted) {
    while (eddy_load_acquire(&stage) < wanted)
        usleep(50);
}

static void must_exit(pid_t child, int code) {
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == code, "%x", (unsigned)status);
}

/* Inside twice, so that leaving once is not enough. It ends behind the fork: a sanitizer counts threads that have ended and were not joined. */
static void *stay_inside(void *unused) {
    eddy_fork_gate_enter();
    eddy_fork_gate_enter();
    eddy_store_release(&stage, 1);
    await(2);
    eddy_fork_gate_leave();
    usleep(20000);
    eddy_store_release(&stage, 3);
    eddy_fork_gate_leave();
    await(4);
    return unused;
}

static void *allow(void *unused) {
    usleep(20000);
    eddy_store_release(&stage, 2);
    await(4);
    return unused;
}

Test(fork_gate, a_fork_waits_until_nobody_is_inside) {
    pthread_t inside, other;
    cr_assert_eq(pthread_create(&inside, NULL, stay_inside, NULL), 0);
    await(1);
    cr_assert_eq(pthread_create(&other, NULL, allow, NULL), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(eddy_load_acquire(&stage));
    must_exit(child, 3);
    eddy_store_release(&stage, 4);
    pthread_join(inside, NULL);
    pthread_join(other, NULL);
}

static void *enter_and_leave(void *unused) {
    while (eddy_load_acquire(&stage) == 0) {
        eddy_fork_gate_enter();
        eddy_fork_gate_leave();
    }
    return unused;
}

/* A lock of a library that knows nothing of forks: in the child it would stay as it is. */
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static void *call_library(void *unused) {
    while (eddy_load_acquire(&stage) == 0) {
        eddy_fork_gate_enter();
        pthread_mutex_lock(&library);
        pthread_mutex_unlock(&library);
        eddy_fork_gate_leave();
    }
    return unused;
}

Test(fork_gate, no_child_finds_a_library_locked) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i % 2 ? call_library : enter_and_leave, NULL);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            eddy_fork_gate_enter();
            int is_free = pthread_mutex_trylock(&library) == 0;
            eddy_fork_gate_leave();
            _exit(is_free ? 7 : 1);
        }
        must_exit(child, 7);
    }
    eddy_store_release(&stage, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void *fork_often(void *unused) {
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            eddy_fork_gate_enter();
            eddy_fork_gate_leave();
            _exit(fork() == 0 ? 0 : 7); /* nothing of another fork is left */
        }
        must_exit(child, 7);
    }
    return unused;
}

Test(fork_gate, threads_may_fork_at_once) {
    pthread_t forks[2], other;
    pthread_create(&other, NULL, call_library, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&forks[i], NULL, fork_often, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(forks[i], NULL);
    eddy_store_release(&stage, 1);
    pthread_join(other, NULL);
}

static int64_t stopped_clock(void) {
    return 0;
}

/* As a signal handler may. A wait would have no end. */
Test(fork_gate, a_thread_that_is_inside_does_not_wait_for_itself) {
    eddy_clock_replace(stopped_clock);
    eddy_fork_gate_enter();
    pid_t child = fork();
    if (child == 0) {
        eddy_fork_gate_leave();
        _exit(fork() == 0 ? 0 : 7);
    }
    eddy_fork_gate_leave();
    eddy_clock_replace(NULL);
    must_exit(child, 7);
}

static void *never_leave(void *unused) {
    eddy_fork_gate_enter();
    eddy_store_release(&stage, 1);
    await(2);
    eddy_fork_gate_leave();
    return unused;
}

static int64_t far_ns;

static int64_t rushing_clock(void) {
    return far_ns += EDDY_FORK_GATE_WAIT_NS;
}

Test(fork_gate, a_fork_does_not_wait_for_good) {
    pthread_t inside;
    pthread_create(&inside, NULL, never_leave, NULL);
    await(1);
    eddy_clock_replace(rushing_clock);
    pid_t child = fork();
    if (child == 0) {
        eddy_fork_gate_enter();
        eddy_fork_gate_leave();
        _exit(7);
    }
    eddy_clock_replace(NULL);
    must_exit(child, 7);
    eddy_store_release(&stage, 2);
    pthread_join(inside, NULL);
}
