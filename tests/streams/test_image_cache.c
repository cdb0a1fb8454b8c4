#include <base/memory.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/image_cache.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[64], folder[96];
static const eddy_digest key = {0x1234, 0xabcd};
static const char image[] = "an image of some kernel, which is longer than nothing";

static void begin(void) {
    strcpy(root, "/tmp/eddy_imagesXXXXXX");
    cr_assert_not_null(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/a/b", root);
}

static void end(void) {
    char command[256];
    snprintf(command, sizeof(command), "chmod -R u+rwx %s && rm -rf %s", root, root);
    cr_assert_eq(system(command), 0);
}

static bool is_found(eddy_digest of) {
    size_t bytes = 0;
    char *found = eddy_image_cache_find(folder, of, &bytes);
    if (!found)
        return false;
    cr_assert_eq(bytes, sizeof(image));
    cr_assert_eq(memcmp(found, image, sizeof(image)), 0);
    eddy_memory_release(found, bytes, EDDY_MEMORY_CACHE);
    return true;
}

static void keep(eddy_digest of) {
    eddy_image_cache_keep(folder, of, image, sizeof(image));
}

/* The one file's path; its number of files. */
static int find_file(char path[400]) {
    DIR *files = opendir(folder);
    int count = 0;
    for (struct dirent *entry = files ? readdir(files) : NULL; entry; entry = readdir(files))
        if (entry->d_name[0] != '.') {
            snprintf(path, 400, "%s/%s", folder, entry->d_name);
            count++;
        }
    if (files)
        closedir(files);
    return count;
}

Test(image_cache, keeps_what_it_is_given, .init = begin, .fini = end) {
    char path[400];
    struct stat status;
    cr_assert_not(is_found(key));
    keep(key);
    cr_assert(is_found(key));
    cr_assert_not(is_found((eddy_digest){0x1234, 0xabce}));
    cr_assert_not(is_found((eddy_digest){0x1235, 0xabcd}));
    cr_assert_eq(find_file(path), 1);
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0600);
    cr_assert_eq(stat(folder, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0700);
}

/* ---- what is not taken is removed, and may be kept anew ---- */

static void expect_refusal(const char *what) {
    char path[400];
    cr_assert_not(is_found(key), "%s", what);
    cr_assert_eq(find_file(path), 0, "%s", what);
    keep(key);
    cr_assert(is_found(key), "%s", what);
}

Test(image_cache, refuses_what_is_torn, .init = begin, .fini = end) {
    char path[400];
    struct stat status;
    keep(key);
    cr_assert_eq(find_file(path), 1);
    cr_assert_eq(stat(path, &status), 0);
    for (off_t size = 0; size < status.st_size; size += 7) {
        cr_assert_eq(truncate(path, size), 0);
        expect_refusal("cut off");
    }
    cr_assert_eq(truncate(path, status.st_size + 1), 0);
    expect_refusal("longer");
    for (off_t at = 0; at < status.st_size; at++) {
        char byte;
        int file = open(path, O_RDWR);
        cr_assert_eq(pread(file, &byte, 1, at), 1);
        byte ^= 0x10;
        cr_assert_eq(pwrite(file, &byte, 1, at), 1);
        close(file);
        expect_refusal("another byte");
    }
}

/* What others may write, or is elsewhere. */
Test(image_cache, refuses_what_others_may_have_written, .init = begin, .fini = end) {
    char path[400], other[420];
    keep(key);
    cr_assert_eq(find_file(path), 1);
    cr_assert_eq(chmod(path, 0660), 0);
    expect_refusal("of the group's");
    cr_assert_eq(chmod(path, 0602), 0);
    expect_refusal("of all");
    snprintf(other, sizeof(other), "%s/elsewhere", root);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(symlink(other, path), 0);
    expect_refusal("a link");
    cr_assert_eq(access(other, F_OK), 0, "only the link goes");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refusal("a pipe");
}

/* A name of one key with the file of another. */
Test(image_cache, refuses_another_key, .init = begin, .fini = end) {
    static const eddy_digest other = {0x1234, 0xabce};
    char path[400], moved[420];
    keep(other);
    cr_assert_eq(find_file(path), 1);
    snprintf(moved, sizeof(moved), "%s/000000000000abcd0000000000001234.image", folder);
    cr_assert_eq(rename(path, moved), 0);
    expect_refusal("of another key");
}

/* ---- where there is no folder ---- */

Test(image_cache, needs_no_folder, .init = begin, .fini = end) {
    char file[96];
    snprintf(file, sizeof(file), "%s/file", root);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    snprintf(folder, sizeof(folder), "%s/file/below", root);
    keep(key);
    cr_assert_not(is_found(key));
    eddy_image_cache_trim(folder, 0);
}

Test(image_cache, may_be_read_only, .init = begin, .fini = end) {
    if (geteuid() == 0) {
        end(); /* which a skipped test does not come to */
        cr_skip_test("root may write anywhere");
    }
    keep(key);
    cr_assert_eq(chmod(folder, 0500), 0);
    cr_assert(is_found(key));
    keep((eddy_digest){1, 2});
    cr_assert_not(is_found((eddy_digest){1, 2}));
}

static bool is_folder(const char *option, const char *expected) {
    char found[200];
    bool is_there = eddy_image_cache_folder(option, found, sizeof(found));
    return expected ? is_there && strcmp(found, expected) == 0 : !is_there;
}

Test(image_cache, is_where_the_environment_says) {
    setenv("XDG_CACHE_HOME", "/x/cache", 1);
    setenv("HOME", "/home/somebody", 1);
    cr_assert(is_folder("", "/x/cache/eddy"));
    cr_assert(is_folder("/mine", "/mine"));
    cr_assert(is_folder("none", NULL));
    setenv("XDG_CACHE_HOME", "relative", 1);
    cr_assert(is_folder("", "/home/somebody/.cache/eddy"));
    unsetenv("XDG_CACHE_HOME");
    cr_assert(is_folder("", "/home/somebody/.cache/eddy"));
    unsetenv("HOME");
    cr_assert(is_folder("", NULL));
}

/* ---- its size ---- */

static void age(eddy_digest of, int seconds) {
    char path[200];
    struct timespec times[2];
    snprintf(path, sizeof(path), "%s/%016llx%016llx.image", folder, (unsigned long long)of.high,
             (unsigned long long)of.low);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

Test(image_cache, drops_what_was_used_least_recently, .init = begin, .fini = end) {
    struct stat status;
    char path[400];
    keep(key);
    cr_assert_eq(find_file(path), 1);
    cr_assert_eq(stat(path, &status), 0);
    for (uint64_t i = 0; i < 6; i++) {
        keep((eddy_digest){i, 1});
        age((eddy_digest){i, 1}, 100 + (int)i);
    }
    age(key, 1000);
    cr_assert(is_found(key)); /* used now */
    eddy_image_cache_trim(folder, 3 * status.st_size);
    cr_assert(is_found(key));
    for (uint64_t i = 0; i < 6; i++)
        cr_assert_eq(is_found((eddy_digest){i, 1}), i < 2, "%d", (int)i);
}

static void make_file(const char *path, bool is_old) {
    const struct timespec times[2] = {{1000, 0}, {1000, 0}};
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(write(file, image, sizeof(image)), (ssize_t)sizeof(image));
    close(file);
    cr_assert(!is_old || utimensat(AT_FDCWD, path, times, 0) == 0);
}

Test(image_cache, drops_what_was_left_half_written, .init = begin, .fini = end) {
    char fresh[500], old[500], path[400];
    keep(key);
    cr_assert_eq(find_file(path), 1);
    snprintf(fresh, sizeof(fresh), "%s.71.1.part", path);
    snprintf(old, sizeof(old), "%s.71.2.part", path);
    make_file(fresh, false);
    make_file(old, true);
    eddy_image_cache_trim(folder, EDDY_IMAGE_CACHE_BYTES);
    cr_assert_eq(access(fresh, F_OK), 0);
    cr_assert_neq(access(old, F_OK), 0);
    cr_assert(is_found(key));
}

/* The folder is named by the user, who may have other things there. */
Test(image_cache, leaves_files_of_others_alone, .init = begin, .fini = end) {
    static const char *const names[] = {"holiday.image",
                                        "photographs_of_thirty-two_letter.image",
                                        "film.part",
                                        "0123456789abcdef0123456789abcdef.images",
                                        "0123456789abcdef0123456789abcde.image",
                                        "0123456789abcdef0123456789abcdef.film.part"};
    char path[500];
    keep(key);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        make_file(path, true);
    }
    eddy_image_cache_trim(folder, 0);
    cr_assert_not(is_found(key));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        cr_assert_eq(access(path, F_OK), 0, "%s", names[i]);
    }
}

/* ---- several processes ---- */

static bool write_and_read(int number) {
    bool is_fine = true;
    for (uint64_t i = 0; i < 200; i++) {
        eddy_digest of = {i % 5, 7};
        size_t bytes = 0;
        eddy_image_cache_keep(folder, of, image, sizeof(image));
        char *found = eddy_image_cache_find(folder, of, &bytes);
        is_fine &= !found || (bytes == sizeof(image) && memcmp(found, image, bytes) == 0);
        if (found)
            eddy_memory_release(found, bytes, EDDY_MEMORY_CACHE);
        if (i % 50 == (uint64_t)number)
            eddy_image_cache_trim(folder, 200);
    }
    return is_fine;
}

Test(image_cache, is_shared_by_processes, .init = begin, .fini = end) {
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(write_and_read(i) ? 0 : 1);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
