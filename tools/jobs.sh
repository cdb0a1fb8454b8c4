#!/bin/sh
# Prints how many compilers may run at once: one per CPU, as long as they fit into the free memory (400 MB each; the largest
# takes 320), and at least one.
set -eu
case "${1:-}" in
--help | -h)
    sed -n '2,3s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

job_mb=400
jobs=$(nproc)
# The lesser of the machine's free memory and the container's.
free_mb=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' "${EDDY_MEMINFO:-/proc/meminfo}")
most=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || echo 0)
if [ "$most" != max ]; then
    left_mb=$(((most - used) / 1048576))
    [ "$left_mb" -ge "$free_mb" ] || free_mb=$left_mb
fi
[ $((free_mb / job_mb)) -ge "$jobs" ] || jobs=$((free_mb / job_mb))
[ "$jobs" -ge 1 ] || jobs=1
echo "$jobs"
