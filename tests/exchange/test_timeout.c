/* Whoever waits for elements gives up after its time, and nothing has happened then. */
#include "files.h"
#include <eddy/dlpack.h>
#include <eddy/print.h>
#include <pthread.h>

/* A tensor that another thread has mapped, so that nothing of it can be read until let_go. */
typedef struct occupied {
    eddy_tensor *tensor;
    pthread_barrier_t turn;
    pthread_t thread;
} occupied;

static void *occupy(void *context) {
    occupied *o = context;
    cr_assert_not_null(eddy_map(o->tensor, EDDY_WRITE, EDDY_FOREVER));
    pthread_barrier_wait(&o->turn); /* mapped */
    pthread_barrier_wait(&o->turn); /* let go */
    return (void *)(intptr_t)eddy_unmap(o->tensor);
}

static void hold(occupied *o) {
    o->tensor = counting(EDDY_SHAPE(2, 3));
    pthread_barrier_init(&o->turn, NULL, 2);
    cr_assert_eq(pthread_create(&o->thread, NULL, occupy, o), 0);
    pthread_barrier_wait(&o->turn);
}

static void let_go(occupied *o) {
    void *status;
    pthread_barrier_wait(&o->turn);
    pthread_join(o->thread, &status);
    cr_assert_eq((eddy_status)(intptr_t)status, EDDY_OK);
    pthread_barrier_destroy(&o->turn);
}

#define FILE_CASE(name) FILE_TEST(timeout, name, "a.file")
#define SOON 1000000
#define LATE INT64_C(60000000000)

/* What stood in the file before stands there still, and nothing beside it: folder_end looks. */
static void assert_old_file(void) {
    char bytes[8] = "";
    cr_assert_eq(read_bytes(bytes, sizeof(bytes)), 3);
    cr_assert_str_eq(bytes, "old");
}

FILE_CASE(of_npy) {
    occupied o;
    hold(&o);
    write_bytes("old", 3);
    cr_assert_eq(eddy_npy_save(o.tensor, path, EDDY_OPTIONS(npy_save, .timeout = SOON)),
                 EDDY_TIMED_OUT);
    ASSERT_ERROR(EDDY_TIMED_OUT, "npy_save: ");
    assert_old_file();
    let_go(&o);
    cr_assert_eq(eddy_npy_save(o.tensor, path, EDDY_OPTIONS(npy_save, .timeout = LATE)), EDDY_OK);
}

FILE_CASE(of_npz) {
    occupied o;
    hold(&o);
    write_bytes("old", 3);
    const char *names[] = {"a"};
    eddy_status status =
        eddy_npz_save(EDDY_LIST(o.tensor), names, path, EDDY_OPTIONS(npz_save, .timeout = SOON));
    bool is_built = status != EDDY_UNSUPPORTED;
    cr_assert_eq(status, is_built ? EDDY_TIMED_OUT : EDDY_UNSUPPORTED);
    eddy_error_take(NULL);
    assert_old_file();
    let_go(&o);
    if (is_built)
        cr_assert_eq(eddy_npz_save(EDDY_LIST(o.tensor), names, path,
                                   EDDY_OPTIONS(npz_save, .timeout = LATE)),
                     EDDY_OK);
}

FILE_CASE(of_safetensors) {
    occupied o;
    hold(&o);
    write_bytes("old", 3);
    const char *names[] = {"a"};
    eddy_status status = eddy_safetensors_save(EDDY_LIST(o.tensor), names, path,
                                               EDDY_OPTIONS(safetensors_save, .timeout = SOON));
    bool is_built = status != EDDY_UNSUPPORTED;
    cr_assert_eq(status, is_built ? EDDY_TIMED_OUT : EDDY_UNSUPPORTED);
    eddy_error_take(NULL);
    assert_old_file();
    let_go(&o);
    if (is_built)
        cr_assert_eq(eddy_safetensors_save(EDDY_LIST(o.tensor), names, path,
                                           EDDY_OPTIONS(safetensors_save, .timeout = LATE)),
                     EDDY_OK);
}

Test(timeout, of_text, .timeout = 120) {
    occupied o;
    hold(&o);
    char text[64] = "old";
    cr_assert_lt(eddy_format(o.tensor, text, sizeof(text), EDDY_OPTIONS(format, .timeout = SOON)),
                 0);
    ASSERT_ERROR(EDDY_TIMED_OUT, "format");
    cr_assert_str_eq(text, "old");
    let_go(&o);
    cr_assert_gt(eddy_format(o.tensor, text, sizeof(text), EDDY_OPTIONS(format, .timeout = LATE)),
                 0);
}

Test(timeout, of_dlpack, .timeout = 120) {
    occupied o;
    hold(&o);
    cr_assert_null(eddy_to_dlpack(o.tensor, EDDY_OPTIONS(to_dlpack, .timeout = SOON)));
    ASSERT_ERROR(EDDY_TIMED_OUT, "to_dlpack");
    cr_assert_null(eddy_to_dlpack_unversioned(o.tensor, EDDY_OPTIONS(to_dlpack, .timeout = SOON)));
    ASSERT_ERROR(EDDY_TIMED_OUT, "to_dlpack_unversioned");
    let_go(&o);
    eddy_tensor *back = eddy_from_dlpack_unversioned(
        eddy_to_dlpack_unversioned(o.tensor, EDDY_OPTIONS(to_dlpack, .timeout = LATE)), NULL);
    cr_assert_not_null(back);
    cr_assert_eq(eddy_count_of(back), 6);
}

Test(timeout, the_unversioned_struct_cannot_be_read_only) {
    cr_assert_null(eddy_to_dlpack_unversioned(counting(EDDY_SHAPE(2)),
                                              EDDY_OPTIONS(to_dlpack, .is_read_only = true)));
    ASSERT_ERROR(EDDY_UNSUPPORTED, "to_dlpack_unversioned");
}
