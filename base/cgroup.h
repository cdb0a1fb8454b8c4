/* What the control groups (v1 and v2) allow this process. Reads files without allocating: for start-up. */
#ifndef EDDY_BASE_CGROUP_H
#define EDDY_BASE_CGROUP_H

#include <stdint.h>

/* `root` stands in front of /proc and /sys: "" outside tests. Each walks from the process's own group to the top and
 * returns the least on the way; -1 where no limit is set or nothing can be read. */

/* Bytes of memory that are left: the limit (memory.max, memory.limit_in_bytes) less what the group holds, its page cache
 * aside. 0 where it holds more than it may. */
int64_t eddy_cgroup_memory_available(const char *root);
/* CPU quota in thousandths of a processor (cpu.max, cpu.cfs_quota_us over cpu.cfs_period_us). */
int64_t eddy_cgroup_cpu_quota(const char *root);
/* MemAvailable of /proc/meminfo in bytes: the machine's, whatever the group. */
int64_t eddy_cgroup_machine_memory(const char *root);

#endif
