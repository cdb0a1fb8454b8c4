/* A memory control group of a test's own, v1 or v2, whichever is mounted and may be written. */
#ifndef EDDY_TESTS_GROUP_H
#define EDDY_TESTS_GROUP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct memory_group {
    char folder[4096];
} memory_group;

/* Makes one that may hold `bytes`. False where none can be made. */
bool memory_group_make(memory_group *group, int64_t bytes);
/* Moves the calling process in; what it had touched before stays with its old group. */
bool memory_group_enter(const memory_group *group);
/* The most that was held at once, -1 where the kernel does not say. */
int64_t memory_group_peak(const memory_group *group);
/* All processes have left. */
void memory_group_remove(const memory_group *group);

#endif
