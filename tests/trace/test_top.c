/* The page that `eddy top` shows. */
#include <base/atomic.h>
#include <base/thread.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <eddy/eddy.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <trace/top.h>
#include <unistd.h>

/* The descriptor of the page; -1: there is none. As the tool finds it. */
static int find(void) {
    char path[300], target[100];
    int found = -1;
    DIR *files = opendir("/proc/self/fd");
    for (const struct dirent *file; (file = readdir(files));) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", file->d_name);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strcmp(target, "/memfd:" EDDY_TOP_NAME " (deleted)") == 0)
            found = open(path, O_RDONLY);
    }
    closedir(files);
    return found;
}

static eddy_runtime *begin(void) {
    eddy_runtime *runtime = eddy_runtime_create(
        EDDY_OPTIONS(runtime, .threads = 2, .takes_times = true, .shows_top = true));
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    return runtime;
}

#ifndef __SANITIZE_THREAD__ /* which takes a reader of the same process for a racing thread */
/* A whole text, later than the one before. */
static void read_text(const char *page, uint32_t *number, char *text) {
    const _Atomic uint32_t *at = (const _Atomic uint32_t *)(const void *)(page + 8);
    for (uint32_t before, length;; sched_yield()) {
        before = eddy_load_seq_cst(at);
        memcpy(&length, page + 12, sizeof(length));
        if (before % 2 != 0 || before <= *number || length > EDDY_TOP_BYTES - EDDY_TOP_TEXT_AT)
            continue;
        memcpy(text, page + EDDY_TOP_TEXT_AT, length);
        text[length] = '\0';
        if (eddy_load_seq_cst(at) != before)
            continue;
        *number = before;
        return;
    }
}

static long value_of(const char *text, const char *line) {
    const char *at = strstr(text, line);
    return at ? strtol(at + strlen(line), NULL, 10) : -1;
}

Test(top, the_page_says_what_is_counted) {
    static char text[EDDY_TOP_BYTES + 1];
    eddy_runtime *runtime = begin();
    int fd = find();
    struct stat about;
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &about), 0);
    cr_assert_eq(about.st_mode & 0777, 0600);
    cr_assert_eq(about.st_size, EDDY_TOP_BYTES);
    const char *page = mmap(NULL, EDDY_TOP_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert_neq(page, MAP_FAILED);
    cr_assert_eq(memcmp(page, EDDY_TOP_MAGIC, 8), 0);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64, 64), EDDY_F32, NULL);
    for (int i = 0; i < 50; i++)
        cr_assert_eq(eddy_wait(eddy_matmul(x, x), EDDY_FOREVER), EDDY_OK);
    uint32_t number = 0;
    /* One that was begun before may lack the last calls. */
    read_text(page, &number, text);
    read_text(page, &number, text);
    cr_assert_eq(value_of(text, "op count\tmatmul\t"), 50, "%s", text);
    cr_assert_gt(value_of(text, "op ns\tmatmul\t"), 0);
    cr_assert_geq(value_of(text, "\tsubmitted\t"), 51);
    cr_assert_geq(value_of(text, "memory of cpu\tlive\t"), 64 * 64 * 4);
    cr_assert_eq(value_of(text, "\tthreads\t"), 2);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_runtime_release(&runtime);
    read_text(page, &number, text);
    read_text(page, &number, text);
    cr_assert_null(strstr(text, "runtime"), "%s", text);
}

Test(top, a_forked_child_has_one_of_its_own_or_none) {
    begin();
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        bool is_gone = find() < 0;
        begin();
        _exit(is_gone && find() >= 0 ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_geq(find(), 0);
}
#endif

Test(top, without_a_thread_there_is_none_and_the_next_one_tries_again) {
    eddy_error error;
    eddy_thread_fail_at(0, 1);
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .shows_top = true)));
    cr_assert_eq(eddy_error_take(&error), EDDY_INTERNAL);
    cr_assert_not_null(strstr(error.message, "eddy top"), "%s", error.message);
    begin();
    cr_assert_geq(find(), 0);
}

Test(top, nobody_has_one_who_has_not_asked) {
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
    cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_OK);
    cr_assert_lt(find(), 0);
    eddy_release(&x);
}
