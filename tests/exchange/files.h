/* A folder for one file, its bytes, and what must hold after loading a damaged one. */
#ifndef EDDY_TESTS_FILES_H
#define EDDY_TESTS_FILES_H

#include "../interpreter/calls.h"

#include <dirent.h>
#include <eddy/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

static char folder[] = "/tmp/eddy-files-XXXXXX";
static char path[64];

static inline void folder_begin(const char *name) {
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
}

static inline void folder_end(void) {
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "nothing is left beside");
#ifdef __SANITIZE_ADDRESS__
    /* What the libraries took; that leaks at exit fail nothing under Criterion. */
    cr_assert_eq(__lsan_do_recoverable_leak_check(), 0);
#endif
}

static inline void write_bytes(const void *bytes, size_t count) {
    unlink(path); /* ext4 brings a file that is cut and written anew to the disk at once */
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, count, file), count);
    cr_assert_eq(fclose(file), 0);
}

static inline size_t read_bytes(char *bytes, size_t room) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    size_t count = fread(bytes, 1, room, file);
    fclose(file);
    return count;
}

/* A test with its folder. What must hold at its end is asserted within it: Criterion passes over a failed .fini. */
#define FILE_TEST(suite, name, file)                                                               \
    static void name##_body(void);                                                                 \
    Test(suite, name, .timeout = 120) {                                                            \
        folder_begin(file);                                                                        \
        name##_body();                                                                             \
        folder_end();                                                                              \
    }                                                                                              \
    static void name##_body(void)

/* ---- what is held ---- */

typedef struct held {
    int64_t tensors, bytes, descriptors;
} held;

static inline held held_now(void) {
    held now = {.tensors = eddy_live_count()};
    /* First what is issued, releases too, then the deleters that are due by then. */
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    /* How many blocks are kept for copies depends on when they were due. */
    eddy_trim();
    now.bytes =
        eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes + eddy_memory_counted(EDDY_MEMORY_TEXT).bytes;
    /* Those of the folder alone: the library's threads may have others open for a moment. */
    DIR *open = opendir("/proc/self/fd");
    for (struct dirent *entry; open && (entry = readdir(open));) {
        char target[256] = "";
        now.descriptors += readlinkat(dirfd(open), entry->d_name, target, sizeof(target) - 1) > 0 &&
                           strncmp(target, folder, strlen(folder)) == 0;
    }
    if (open)
        closedir(open);
    return now;
}

#define ASSERT_HELD(before)                                                                        \
    do {                                                                                           \
        held now_ = held_now();                                                                    \
        cr_assert_eq(now_.tensors, (before).tensors, "%lld tensors leak",                          \
                     (long long)(now_.tensors - (before).tensors));                                \
        cr_assert_eq(now_.bytes, (before).bytes, "%lld bytes leak",                                \
                     (long long)(now_.bytes - (before).bytes));                                    \
        cr_assert_eq(now_.descriptors, (before).descriptors, "a descriptor leaks");                \
    } while (0)

/* ---- damaging ---- */

/* Loads what is at `path` and gives it up again; false where it was refused, which is one error. */
static inline bool is_accepted(eddy_archive *(*load)(const char *path)) {
    eddy_archive *archive = load(path);
    bool is_loaded = archive != NULL;
    eddy_archive_release(&archive);
    eddy_error error;
    eddy_status status = eddy_error_take(&error);
    cr_assert_eq(status == EDDY_OK, is_loaded);
    cr_assert(is_loaded || (strstr(error.message, "_load: ") != NULL && error.more == 0),
              "%s (and %llu more)", error.message, (unsigned long long)error.more);
    return is_loaded;
}

/* Flips bits of the `count` good bytes, cuts them, and loads what came of it, `rounds` times. */
static inline void load_damaged(eddy_archive *(*load)(const char *path), const char *good,
                                size_t count, int rounds) {
    const char *given = getenv("EDDY_TEST_SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    fprintf(stderr, "EDDY_TEST_SEED=%u\n", seed);
    char *bytes = malloc(count);
    held before = held_now();
    int refused = 0;
    for (int round = 0; round < rounds; round++) {
        memcpy(bytes, good, count);
        for (int flips = 1 + rand_r(&seed) % 4; flips > 0; flips--)
            bytes[(size_t)rand_r(&seed) % count] ^= (char)(1 << rand_r(&seed) % 8);
        write_bytes(bytes, rand_r(&seed) % 8 == 0 ? (size_t)rand_r(&seed) % count : count);
        refused += !is_accepted(load);
    }
    ASSERT_HELD(before);
    cr_assert_gt(refused, 0);
    free(bytes);
}

#endif
