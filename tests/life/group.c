#include "group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_number(const char *folder, const char *name, int64_t number) {
    char path[4160], text[32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    int length = snprintf(text, sizeof(text), "%lld", (long long)number);
    bool is_written = write(file, text, (size_t)length) == length;
    close(file);
    return is_written;
}

static int64_t read_number(const char *folder, const char *name) {
    char path[4160];
    long long number = -1;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    if (fscanf(file, "%lld", &number) != 1)
        number = -1;
    fclose(file);
    return number;
}

/* A child of `parent`. Swap is forbidden where the kernel counts it. */
static bool make_below(const char *parent, memory_group *group, int64_t bytes) {
    int length = snprintf(group->folder, sizeof(group->folder), "%s/eddy-memory-%ld", parent,
                          (long)getpid());
    if (length < 0 || (size_t)length >= sizeof(group->folder) || mkdir(group->folder, 0755) != 0)
        return false;
    if (write_number(group->folder, "memory.max", bytes)) {
        write_number(group->folder, "memory.swap.max", 0);
        return true;
    }
    if (write_number(group->folder, "memory.limit_in_bytes", bytes)) {
        write_number(group->folder, "memory.memsw.limit_in_bytes", bytes);
        return true;
    }
    rmdir(group->folder);
    return false;
}

/* Below the process's own group, else below one of those above it: v2 lets no group have both processes and children
 * with a limit. */
static bool make_on_the_way_up(const char *mount, const char *own, memory_group *group,
                               int64_t bytes) {
    char folder[3072];
    snprintf(folder, sizeof(folder), "%s%s", mount, own);
    for (;;) {
        if (make_below(folder, group, bytes))
            return true;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < strlen(mount))
            return false;
        *slash = '\0';
    }
}

bool memory_group_make(memory_group *group, int64_t bytes) {
    char line[1024];
    bool is_made = false;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && !is_made && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *own = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!own)
            continue;
        *own++ = '\0';
        if (strcmp(controllers, ":memory") == 0)
            is_made = make_on_the_way_up("/sys/fs/cgroup/memory", own, group, bytes);
        else if (strcmp(controllers, ":") == 0)
            is_made = make_on_the_way_up("/sys/fs/cgroup", own, group, bytes) ||
                      make_on_the_way_up("/sys/fs/cgroup/unified", own, group, bytes);
    }
    if (file)
        fclose(file);
    return is_made;
}

bool memory_group_enter(const memory_group *group) {
    return write_number(group->folder, "cgroup.procs", getpid());
}

int64_t memory_group_peak(const memory_group *group) {
    int64_t peak = read_number(group->folder, "memory.peak");
    return peak >= 0 ? peak : read_number(group->folder, "memory.max_usage_in_bytes");
}

void memory_group_remove(const memory_group *group) {
    if (rmdir(group->folder) != 0)
        perror(group->folder);
}
