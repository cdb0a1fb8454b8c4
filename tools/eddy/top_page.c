#include "top_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "eddytop1"
#define NUMBER_AT 8
#define LENGTH_AT 12
#define TEXT_AT 64
#define TRIES 10000

/* ---- finding it ---- */

static bool is_page(const char *folder, const char *name) {
    char path[320], target[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    return strcmp(target, "/memfd:eddy-top (deleted)") == 0;
}

/* The descriptor of the process's page; -1: why[] says it. */
static int find(long process, char why[200]) {
    char folder[64], path[320] = "";
    snprintf(folder, sizeof(folder), "/proc/%ld/fd", process);
    DIR *files = opendir(folder);
    if (!files) {
        snprintf(why, 200,
                 errno == ENOENT ? "there is no process %ld" : "process %ld is another user's",
                 process);
        return -1;
    }
    for (const struct dirent *file; (file = readdir(files));)
        if (is_page(folder, file->d_name))
            snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
    closedir(files);
    int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        snprintf(
            why, 200,
            *path ? "the page of process %ld cannot be opened"
                  : "process %ld has no page: it runs without EDDY_TOP=1, or has not used Eddy yet",
            process);
    return fd;
}

bool top_page_open(top_page *page, long process, char why[200]) {
    struct stat about;
    int fd = find(process, why);
    *page = (top_page){0};
    if (fd < 0)
        return false;
    void *memory = MAP_FAILED;
    if (fstat(fd, &about) == 0 && about.st_size > TEXT_AT && about.st_size <= 1 << 20)
        memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED || memcmp(memory, MAGIC, strlen(MAGIC)) != 0) {
        snprintf(why, 200, "the page of process %ld is of another version of Eddy", process);
        if (memory != MAP_FAILED)
            munmap(memory, (size_t)about.st_size);
        return false;
    }
    *page = (top_page){memory, (size_t)about.st_size};
    return true;
}

void top_page_close(top_page *page) {
    if (page->memory)
        munmap((void *)(uintptr_t)page->memory, page->bytes);
    page->memory = NULL;
}

/* ---- reading it ---- */

/* Copies the text between two looks at its number. */
static bool copy(const top_page *page, char text[TOP_TEXT_BYTES]) {
    const _Atomic uint32_t *number =
        (const _Atomic uint32_t *)(const void *)(page->memory + NUMBER_AT);
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load(number), length;
        memcpy(&length, page->memory + LENGTH_AT, sizeof(length));
        if (before % 2 != 0 || before == 0 || length > page->bytes - TEXT_AT ||
            length >= TOP_TEXT_BYTES) {
            usleep(100);
            continue;
        }
        memcpy(text, page->memory + TEXT_AT, length);
        text[length] = '\0';
        if (atomic_load(number) == before)
            return true;
    }
    return false;
}

/* "group TAB name TAB value"; false: it is none. */
static bool parse(const char *line, size_t length, top_value *to) {
    const char *first = memchr(line, '\t', length);
    const char *second =
        first ? memchr(first + 1, '\t', length - (size_t)(first + 1 - line)) : NULL;
    if (!second)
        return false;
    snprintf(to->group, sizeof(to->group), "%.*s", (int)(first - line), line);
    snprintf(to->name, sizeof(to->name), "%.*s", (int)(second - first - 1), first + 1);
    to->value = strtoll(second + 1, NULL, 10);
    return true;
}

bool top_page_read(const top_page *page, top_snapshot *snapshot) {
    static char text[TOP_TEXT_BYTES];
    snapshot->count = 0;
    if (!copy(page, text))
        return false;
    for (const char *line = text; *line && snapshot->count < TOP_VALUES_MOST;) {
        size_t length = strcspn(line, "\n");
        snapshot->count += parse(line, length, &snapshot->values[snapshot->count]);
        line += length + (line[length] == '\n');
    }
    return true;
}

int64_t top_sum(const top_snapshot *snapshot, const char *group, const char *name) {
    int64_t sum = 0;
    for (int i = 0; i < snapshot->count; i++)
        if (strncmp(snapshot->values[i].group, group, strlen(group)) == 0 &&
            strcmp(snapshot->values[i].name, name) == 0)
            sum += snapshot->values[i].value;
    return sum;
}
