/* Until other threads sleep, as the system sees it: one that only ever looks again keeps a processor busy. */
#ifndef EDDY_TESTS_ASLEEP_H
#define EDDY_TESTS_ASLEEP_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of this process, by the system's number; one that has ended sleeps. */
static inline bool is_asleep(pid_t thread) {
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    bool is_read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    fclose(file);
    return !is_read || state == 'S';
}

static inline void await_asleep(pid_t thread) {
    while (!is_asleep(thread))
        sched_yield();
}

/* All but the calling one. */
static inline void await_others_asleep(void) {
    DIR *threads = opendir("/proc/self/task");
    cr_assert_not_null(threads);
    for (const struct dirent *entry; (entry = readdir(threads));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != (int)gettid())
            await_asleep((pid_t)atoi(entry->d_name));
    closedir(threads);
}

/* Where a thread allocates at the moment of a fork, AddressSanitizer's allocator stays locked in the child; the C library's does not, so that other builds fork at any moment. */
static inline void await_safe_fork(void) {
#ifdef __SANITIZE_ADDRESS__
    await_others_asleep();
#endif
}

#endif
