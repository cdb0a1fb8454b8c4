/* What the control groups (v1 and v2) allow this process. Reads files without allocating: for start-up. */
#ifndef EDDY_BASE_CGROUP_H
#define EDDY_BASE_CGROUP_H

#include <stdint.h>

/* `root` stands in front of /proc and /sys: "" outside tests. Each walks from the process's own group to the top and
 * returns the least limit on the way; -1 where none is set or nothing can be read. */

/* Bytes of memory (memory.max, memory.limit_in_bytes). */
int64_t eddy_cgroup_memory_limit(const char *root);
/* CPU quota in thousandths of a processor (cpu.max, cpu.cfs_quota_us over cpu.cfs_period_us). */
int64_t eddy_cgroup_cpu_quota(const char *root);
/* MemAvailable of /proc/meminfo in bytes: the machine's, whatever the group. */
int64_t eddy_memory_available(const char *root);

#endif
