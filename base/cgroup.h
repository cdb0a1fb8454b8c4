/* What the control groups (v1 and v2) allow this process. Reads files without allocating: for start-up. */
#ifndef EDDY_BASE_CGROUP_H
#define EDDY_BASE_CGROUP_H

#include <stdint.h>

/* `root` is a prefix of /proc and /sys: "" outside tests. Each function walks from the process's own group to the root and
 * returns the least value; -1 if no limit is set or nothing can be read. */

/* Bytes of memory that are left: the limit (memory.max, memory.limit_in_bytes) less the group's memory without its page
 * cache. 0 if the group is over its limit. */
int64_t eddy_cgroup_memory_available(const char *root);
/* CPU quota in thousandths of a processor (cpu.max, cpu.cfs_quota_us over cpu.cfs_period_us). */
int64_t eddy_cgroup_cpu_quota(const char *root);
/* MemAvailable of /proc/meminfo in bytes: the machine's, whatever the group. */
int64_t eddy_cgroup_machine_memory(const char *root);

#endif
