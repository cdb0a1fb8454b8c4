/* Snapshots of a device's memory: what they say of blocks agrees with the books. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)
#define TEXT_MOST (1 << 20)

static char path[64];

static void name_file(void) {
    snprintf(path, sizeof(path), "/tmp/eddy-snapshot-%ld.json", (long)getpid());
}

static char *taken_of(eddy_device device) {
    static char text[TEXT_MOST];
    name_file();
    cr_assert_eq(eddy_device_memory_snapshot(device, path), EDDY_OK);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    unlink(path);
    text[length] = '\0';
    return text;
}

static int64_t number_of(const char *text, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
    const char *at = strstr(text, quoted);
    cr_assert_not_null(at, "%s: %s", key, text);
    return strtoll(at + strlen(quoted), NULL, 10);
}

/* The bytes of all blocks of a state, and how many rows say so. */
static int64_t bytes_in(const char *text, const char *state, int *rows) {
    char quoted[32];
    int64_t bytes = 0;
    *rows = 0;
    snprintf(quoted, sizeof(quoted), "\"state\": \"%s\"", state);
    for (const char *line = strstr(text, "\"blocks\""); line; line = strchr(line + 1, '\n')) {
        const char *end = strchr(line + 1, '\n');
        const char *at = strstr(line, quoted);
        if (!at || (end && at > end))
            continue;
        bytes += number_of(line, "bytes") * number_of(line, "count");
        ++*rows;
    }
    return bytes;
}

static eddy_tensor *zeros_on(eddy_device device, int64_t bytes) {
    return eddy_zeros(EDDY_SHAPE(bytes / 4), EDDY_F32, EDDY_OPTIONS(zeros, .device = device));
}

Test(memory_snapshot, blocks_of_a_device_are_its_books) {
    eddy_tensor *tensors[20];
    int rows;
    for (int i = 0; i < 20; i++)
        tensors[i] = zeros_on(EDDY_FAR(0), (i + 1) * 4096);
    for (int i = 0; i < 20; i += 2)
        eddy_release(&tensors[i]);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    const char *text = taken_of(EDDY_FAR(0));
    cr_assert_not_null(strstr(text, "\"device\": \"far:0\""), "%s", text);
    cr_assert_eq(number_of(text, "version"), 1);
    int64_t live = bytes_in(text, "live", &rows);
    cr_assert_eq(live, number_of(text, "live_bytes"), "%s", text);
    cr_assert_geq(rows, 10);
    int64_t kept = bytes_in(text, "free", &rows) + bytes_in(text, "pending", &rows);
    cr_assert_eq(kept, number_of(text, "cached_bytes"));
    cr_assert_eq(number_of(text, "limit_bytes"), 1024 * MB);
    cr_assert_geq(number_of(text, "peak_bytes"), live);
    cr_assert_not_null(strstr(text, "\"address\": \"0x"));
    for (int i = 1; i < 20; i += 2)
        eddy_release(&tensors[i]);
}

Test(memory_snapshot, a_device_that_was_not_used_has_no_blocks) {
    int rows;
    const char *text = taken_of(EDDY_FAR(2));
    cr_assert_eq(number_of(text, "live_bytes"), 0);
    cr_assert_eq(bytes_in(text, "live", &rows) + bytes_in(text, "free", &rows), 0);
    cr_assert_not_null(strstr(text, "\"blocks\": []\n}\n"), "%s", text);
}

Test(memory_snapshot, of_the_cpu_what_is_kept_is_listed) {
    eddy_tensor *large = zeros_on(EDDY_CPU, 8 * MB), *small[100];
    int rows;
    for (int i = 0; i < 100; i++)
        small[i] = zeros_on(EDDY_CPU, 40960);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_release(&large);
    for (int i = 0; i < 100; i++)
        eddy_release(&small[i]);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    const char *text = taken_of(EDDY_CPU);
    cr_assert_not_null(strstr(text, "\"device\": \"cpu\""));
    cr_assert_eq(bytes_in(text, "free", &rows), number_of(text, "cached_bytes"), "%s", text);
    cr_assert_eq(bytes_in(text, "live", &rows), 0);
}

/* The file that was there stays where the new one cannot be made. */
Test(memory_snapshot, a_failure_leaves_the_old_file) {
    name_file();
    FILE *file = fopen(path, "w");
    fputs("old", file);
    fclose(file);
    eddy_tensor *x = zeros_on(EDDY_FAR(0), 4096);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    bool has_failed = true;
    for (int64_t at = 0; has_failed; at++) {
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, at, 1);
        eddy_status status = eddy_device_memory_snapshot(EDDY_FAR(0), path);
        has_failed = eddy_memory_failures_injected() > 0;
        eddy_memory_fail_at(EDDY_MEMORY_RUNTIME, 0, 0);
        cr_assert_eq(status, has_failed ? EDDY_OUT_OF_MEMORY : EDDY_OK);
        cr_assert_eq(eddy_error_take(NULL), status);
        char text[4] = "";
        file = fopen(path, "r");
        cr_assert_eq(fread(text, 1, 3, file), 3);
        fclose(file);
        cr_assert_eq(strcmp(text, "old") == 0, has_failed);
    }
    unlink(path);
    eddy_release(&x);
}
