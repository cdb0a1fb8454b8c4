#include <streams/image_cache.h>

#include <base/environment.h>
#include <base/memory.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".image"
#define PART ".part" /* of one that is being written */
#define NAME_BYTES 80
#define IMAGE_BYTES_MOST (INT64_C(64) << 20)
/* Nobody writes one file for so long. */
#define PART_SECONDS 600

static const char magic[8] = "eddyimg1";

typedef struct head {
    char magic[8];
    eddy_digest key;
    uint64_t bytes;       /* of the image */
    eddy_digest checksum; /* of the image */
} head;

/* ---- the folder ---- */

static bool join(char *to, size_t size, const char *folder, const char *name) {
    return (size_t)snprintf(to, size, "%s/%s", folder, name) < size;
}

bool eddy_image_cache_folder(const char *option, char *folder, size_t size) {
    if (strcmp(option, EDDY_IMAGE_CACHE_NONE) == 0)
        return false;
    if (option[0])
        return (size_t)snprintf(folder, size, "%s", option) < size;
    /* As the XDG Base Directory Specification has it, relative paths do not count. */
    const char *base = eddy_environment_string("XDG_CACHE_HOME");
    if (base && base[0] == '/')
        return join(folder, size, base, "eddy");
    base = eddy_environment_string("HOME");
    return base && base[0] == '/' && join(folder, size, base, ".cache/eddy");
}

/* With the folders above it. */
static void make_folder(const char *folder) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof(path), "%s", folder) >= sizeof(path))
        return;
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0700);
            *at = '/';
        }
    (void)mkdir(path, 0700);
}

/* -1: there is none. */
static int open_folder(const char *folder) {
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void name_of(eddy_digest key, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%016llx%016llx" SUFFIX, (unsigned long long)key.high,
             (unsigned long long)key.low);
}

/* ---- reading ---- */

static bool is_same(eddy_digest a, eddy_digest b) {
    return a.low == b.low && a.high == b.high;
}

static bool read_all(int file, void *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t count = read(file, (char *)to + done, bytes - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

/* Whether nobody else can have written it. */
static bool is_own(const struct stat *status) {
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static void *read_image(int file, eddy_digest key, size_t *bytes) {
    struct stat status;
    head first;
    if (fstat(file, &status) != 0 || !is_own(&status) ||
        status.st_size > IMAGE_BYTES_MOST + (off_t)sizeof(first) ||
        !read_all(file, &first, sizeof(first)) || memcmp(first.magic, magic, sizeof(magic)) != 0 ||
        !is_same(first.key, key) || first.bytes != (uint64_t)status.st_size - sizeof(first))
        return NULL;
    void *image = eddy_memory_acquire(first.bytes, EDDY_MEMORY_CACHE);
    if (!image)
        return NULL;
    if (read_all(file, image, first.bytes) &&
        is_same(eddy_hash_128(image, first.bytes), first.checksum)) {
        *bytes = first.bytes;
        return image;
    }
    eddy_memory_release(image, first.bytes, EDDY_MEMORY_CACHE);
    return NULL;
}

void *eddy_image_cache_find(const char *folder, eddy_digest key, size_t *bytes) {
    char name[NAME_BYTES];
    int where = open_folder(folder);
    if (where < 0)
        return NULL;
    name_of(key, name);
    /* Not to wait where somebody has put a pipe. */
    int file = openat(where, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    void *image = file >= 0 ? read_image(file, key, bytes) : NULL;
    if (image)
        (void)futimens(file, NULL);
    else if (file >= 0 || errno == ELOOP)
        (void)unlinkat(where, name, 0);
    if (file >= 0)
        (void)close(file);
    (void)close(where);
    return image;
}

/* ---- writing ---- */

static bool write_all(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t count = write(file, (const char *)from + done, bytes - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static void write_image(int where, eddy_digest key, const void *image, size_t bytes) {
    char name[NAME_BYTES], part[NAME_BYTES + 48];
    struct timespec now;
    head first = {.key = key, .bytes = bytes, .checksum = eddy_hash_128(image, bytes)};
    memcpy(first.magic, magic, sizeof(magic));
    name_of(key, name);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    snprintf(part, sizeof(part), "%s.%ld.%ld" PART, name, (long)getpid(), now.tv_nsec);
    int file = openat(where, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    bool is_whole = write_all(file, &first, sizeof(first)) && write_all(file, image, bytes);
    is_whole &= close(file) == 0;
    if (!is_whole || renameat(where, part, where, name) != 0)
        (void)unlinkat(where, part, 0);
}

void eddy_image_cache_keep(const char *folder, eddy_digest key, const void *image, size_t bytes) {
    if (bytes == 0 || (int64_t)bytes > IMAGE_BYTES_MOST)
        return;
    int where = open_folder(folder);
    if (where < 0) {
        make_folder(folder);
        where = open_folder(folder);
    }
    if (where < 0)
        return;
    write_image(where, key, image, bytes);
    (void)close(where);
    eddy_image_cache_trim(folder, EDDY_IMAGE_CACHE_BYTES);
}

/* ---- trimming ---- */

#define KEY_DIGITS 32

/* What follows the key and the suffix of an image's name, as name_of writes it; NULL: it is no such name. The folder may hold files of others. */
static const char *behind_name(const char *name) {
    if (strspn(name, "0123456789abcdef") != KEY_DIGITS ||
        strncmp(name + KEY_DIGITS, SUFFIX, strlen(SUFFIX)) != 0)
        return NULL;
    return name + KEY_DIGITS + strlen(SUFFIX);
}

static bool is_part(const char *behind) {
    size_t length = strlen(behind), end_length = strlen(PART);
    return length > end_length && strcmp(behind + length - end_length, PART) == 0;
}

static bool is_older(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* The bytes of all images, and which was used least recently. */
static int64_t look(DIR *files, char *oldest, size_t size) {
    int64_t bytes = 0;
    struct timespec least = {0};
    time_t now = time(NULL);
    oldest[0] = '\0';
    rewinddir(files);
    for (struct dirent *entry = readdir(files); entry; entry = readdir(files)) {
        struct stat status;
        const char *behind = behind_name(entry->d_name);
        if (!behind || fstatat(dirfd(files), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_part(behind) && now - status.st_mtim.tv_sec > PART_SECONDS)
            (void)unlinkat(dirfd(files), entry->d_name, 0);
        if (behind[0])
            continue;
        bytes += status.st_size;
        if (oldest[0] == '\0' || is_older(&status.st_mtim, &least)) {
            least = status.st_mtim;
            snprintf(oldest, size, "%s", entry->d_name);
        }
    }
    return bytes;
}

void eddy_image_cache_trim(const char *folder, int64_t most) {
    char oldest[256];
    DIR *files = opendir(folder);
    if (!files)
        return;
    while (look(files, oldest, sizeof(oldest)) > most)
        if (unlinkat(dirfd(files), oldest, 0) != 0)
            break;
    (void)closedir(files);
}
