#include <base/cgroup.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* A whole small file as text, cut to size - 1 bytes. */
static bool read_file(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = read(file, text + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return length > 0;
}

/* Reads one limit from the folder of a group; -1 if none is set. */
typedef int64_t limit_reader(const char *folder);

static bool read_limit_file(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_SIZE];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof(path) && read_file(path, text, size);
}

/* The value of a line "name 123"; 0 if it is missing. */
static int64_t read_count(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += length)
        if ((at == text || at[-1] == '\n') && at[length] == ' ')
            return strtoll(at + length, NULL, 10);
    return 0;
}

/* The rest of a limit. The kernel frees file pages before it kills a process. */
static int64_t left_of(int64_t limit, const char *folder, const char *usage, const char *active,
                       const char *inactive) {
    char text[64], counts[PATH_SIZE];
    if (!read_limit_file(folder, usage, text, sizeof(text)))
        return limit;
    int64_t used = strtoll(text, NULL, 10);
    if (read_limit_file(folder, "memory.stat", counts, sizeof(counts)))
        used -= read_count(counts, active) + read_count(counts, inactive);
    return used <= 0 ? limit : used < limit ? limit - used : 0;
}

static int64_t memory_v2(const char *folder) {
    char text[64];
    if (!read_limit_file(folder, "memory.max", text, sizeof(text)) || strncmp(text, "max", 3) == 0)
        return -1;
    return left_of(strtoll(text, NULL, 10), folder, "memory.current", "active_file",
                   "inactive_file");
}

static int64_t memory_v1(const char *folder) {
    char text[64];
    if (!read_limit_file(folder, "memory.limit_in_bytes", text, sizeof(text)))
        return -1;
    int64_t bytes = strtoll(text, NULL, 10);
    /* v1 says "none" with the largest multiple of the page size. */
    if (bytes >= INT64_MAX - (1 << 20))
        return -1;
    return left_of(bytes, folder, "memory.usage_in_bytes", "total_active_file",
                   "total_inactive_file");
}

static int64_t quota_in_thousandths(int64_t quota_us, int64_t period_us) {
    return quota_us <= 0 || period_us <= 0 || quota_us > INT64_MAX / 1000
               ? -1
               : quota_us * 1000 / period_us;
}

static int64_t cpu_v2(const char *folder) {
    char text[64];
    long long quota, period;
    if (!read_limit_file(folder, "cpu.max", text, sizeof(text)) ||
        sscanf(text, "%lld %lld", &quota, &period) != 2)
        return -1;
    return quota_in_thousandths(quota, period);
}

static int64_t cpu_v1(const char *folder) {
    char quota[64], period[64];
    if (!read_limit_file(folder, "cpu.cfs_quota_us", quota, sizeof(quota)) ||
        !read_limit_file(folder, "cpu.cfs_period_us", period, sizeof(period)))
        return -1;
    return quota_in_thousandths(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static int64_t least(int64_t a, int64_t b) {
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

/* From mount + group up to mount itself. A group that is not below the mount (no cgroup namespace inside a container)
 * has no value until the walk reaches folders that exist. */
static int64_t walk_up(const char *mount, const char *group, limit_reader *reader) {
    char folder[PATH_SIZE];
    size_t mount_length = strlen(mount);
    int length = snprintf(folder, sizeof(folder), "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof(folder))
        return reader(mount);
    int64_t limit = -1;
    for (;;) {
        limit = least(limit, reader(folder));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < mount_length)
            return limit;
        *slash = '\0';
    }
}

/* Whether `controllers` ("cpu,cpuacct") names the controller. */
static bool has_controller(const char *controllers, const char *controller) {
    size_t length = strlen(controller);
    for (const char *at = controllers; (at = strstr(at, controller)); at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* Lines of /proc/self/cgroup are "number:controllers:group"; v2's has number 0 and no controllers. */
static int64_t least_limit(const char *root, const char *controller, limit_reader *v1,
                           limit_reader *v2) {
    char path[PATH_SIZE], text[PATH_SIZE], mount[PATH_SIZE];
    int64_t limit = -1;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (!read_file(path, text, sizeof(text)))
        return -1;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        strsep(&line, ":");
        const char *controllers = strsep(&line, ":");
        const char *group = line;
        if (!controllers || !group)
            continue;
        if (*controllers == '\0') {
            snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
            limit = least(limit, walk_up(mount, group, v2));
            snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/unified", root);
            limit = least(limit, walk_up(mount, group, v2));
        } else if (has_controller(controllers, controller)) {
            snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers);
            limit = least(limit, walk_up(mount, group, v1));
            snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controller);
            limit = least(limit, walk_up(mount, group, v1));
        }
    }
    return limit;
}

int64_t eddy_cgroup_memory_available(const char *root) {
    return least_limit(root, "memory", memory_v1, memory_v2);
}

int64_t eddy_cgroup_cpu_quota(const char *root) {
    return least_limit(root, "cpu", cpu_v1, cpu_v2);
}

int64_t eddy_cgroup_machine_memory(const char *root) {
    char path[PATH_SIZE], text[2048];
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (!read_file(path, text, sizeof(text)))
        return -1;
    const char *line = strstr(text, "MemAvailable:");
    long long kib;
    if (!line || sscanf(line, "MemAvailable: %lld kB", &kib) != 1 || kib > INT64_MAX / 1024)
        return -1;
    return kib * 1024;
}
