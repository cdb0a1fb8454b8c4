/* .safetensors files: what is written comes back, the bytes are the format's, and whatever is wrong in one is refused. */
#include "files.h"
#include <eddy/grad.h>

#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CASE(name) FILE_TEST(safetensors, name, "a.safetensors")

/* A file with this header and so many bytes of data: 0, 1, 2, ... */
static size_t make_file(char *file, const char *header, size_t data) {
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        file[i] = (char)(length >> 8 * i);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data; i++)
        file[8 + length + i] = (char)i;
    return 8 + length + data;
}

static void write_file(const char *header, size_t data) {
    char file[4096];
    write_bytes(file, make_file(file, header, data));
}

#define SAVE(list, ...) eddy_safetensors_save(list, (const char *const[]){__VA_ARGS__}, path, NULL)

/* ---- out ---- */

CASE(the_bytes_are_the_formats) {
    eddy_tensor *byte = eddy_from_data("\7", EDDY_SHAPE(), EDDY_U8, NULL);
    char got[512];
    cr_assert_eq(SAVE(EDDY_LIST(byte, counting(EDDY_SHAPE(2, 1))), "b", "w"), EDDY_OK);
    cr_assert_eq(read_bytes(got, sizeof(got)), 128 + 9);
    const char *header = "{\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]},"
                         "\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}";
    cr_assert_arr_eq(got, "\x78\0\0\0\0\0\0\0", 8,
                     "spaces fill the header, so that the elements are aligned");
    cr_assert_arr_eq(got + 8, header, strlen(header));
    for (size_t i = 8 + strlen(header); i < 128; i++)
        cr_assert_eq(got[i], ' ');
    cr_assert_arr_eq(got + 128, ((float[]){0, 1}), 8, "wide elements first");
    cr_assert_eq(got[136], 7);
}

CASE(every_dtype_and_layout_comes_back) {
    char bytes[12 * 8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % 2);
    eddy_tensor *tensors[5 * EDDY_DTYPE_COUNT];
    const char *names[5 * EDDY_DTYPE_COUNT];
    char texts[5 * EDDY_DTYPE_COUNT][16];
    for (int k = 0; k < EDDY_DTYPE_COUNT; k++) {
        eddy_tensor *t = eddy_from_data(bytes, EDDY_SHAPE(3, 4), (eddy_dtype)k, NULL);
        eddy_tensor *views[] = {t, eddy_t(t), eddy_narrow(t, 0, 1, 2),
                                eddy_select(eddy_select(t, 0, 1), 0, 2), eddy_narrow(t, 0, 0, 0)};
        for (int v = 0; v < 5; v++) {
            tensors[5 * k + v] = views[v];
            snprintf(texts[5 * k + v], sizeof(texts[0]), "%s.%d", eddy_dtype_name((eddy_dtype)k),
                     v);
            names[5 * k + v] = texts[5 * k + v];
        }
    }
    cr_assert_eq(
        eddy_safetensors_save((eddy_list){tensors, 5 * EDDY_DTYPE_COUNT}, names, path, NULL),
        EDDY_OK);
    eddy_archive *archive = eddy_safetensors_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, 5 * EDDY_DTYPE_COUNT);
    cr_assert_eq(archive->metadata_count, 0);
    for (int i = 0; i < 5 * EDDY_DTYPE_COUNT; i++) {
        cr_assert_str_eq(archive->names[i], names[i], "the order is the caller's");
        eddy_tensor *both[] = {archive->tensors[i], eddy_safetensors_load_one(path, names[i])};
        for (int b = 0; b < 2; b++) {
            cr_assert_eq(eddy_dtype_of(both[b]), eddy_dtype_of(tensors[i]));
            cr_assert(has_shape(both[b], eddy_shape_of(tensors[i])), "%s", names[i]);
            char want[sizeof(bytes)], got[sizeof(bytes)];
            size_t size =
                (size_t)eddy_count_of(tensors[i]) * eddy_dtype_bytes(eddy_dtype_of(tensors[i]));
            cr_assert_eq(eddy_read(tensors[i], want, size, NULL), EDDY_OK);
            cr_assert_eq(eddy_read(both[b], got, size, NULL), EDDY_OK);
            cr_assert_arr_eq(want, got, size, "%s", names[i]);
        }
    }
    eddy_archive_release(&archive);
    cr_assert_null(archive);
}

CASE(metadata_comes_back) {
    const eddy_metadata pairs[] = {{"format", "eddy"}, {"empty", ""}, {"\xc3\xa4", "\"\n"}};
    cr_assert_eq(eddy_safetensors_save(
                     (eddy_list){NULL, 0}, NULL, path,
                     EDDY_OPTIONS(safetensors_save, .metadata = pairs, .metadata_count = 3)),
                 EDDY_OK);
    eddy_archive *archive = eddy_safetensors_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, 0);
    cr_assert_eq(archive->metadata_count, 3);
    for (int i = 0; i < 3; i++) {
        cr_assert_str_eq(archive->metadata[i].key, pairs[i].key);
        cr_assert_str_eq(eddy_archive_value(archive, pairs[i].key), pairs[i].value);
    }
    cr_assert_null(eddy_archive_value(archive, "other"));
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    eddy_archive_release(&archive);
}

/* ---- into tensors of the program's ---- */

CASE(a_checkpoint_goes_into_tensors_of_the_same_form) {
    cr_assert_eq(
        SAVE(EDDY_LIST(counting(EDDY_SHAPE(3)), counting(EDDY_SHAPE(2, 2)), I64(EDDY_SHAPE(), 7)),
             "a", "b", "step"),
        EDDY_OK);
    eddy_archive *archive = eddy_safetensors_load(path);
    eddy_tensor *a = F32(EDDY_SHAPE(3), 9, 9, 9), *b = F32(EDDY_SHAPE(2, 2), 9, 9, 9, 9),
                *one = F32(EDDY_SHAPE(1), 9);
    eddy_tensor *step = I64(EDDY_SHAPE(), 0), *f64 = empty_of(EDDY_F64, EDDY_SHAPE(3));
    const char *const names[] = {"b", "a", "step"}, *const missing[] = {"a", "c"},
                      *const unnamed[] = {"a", NULL};
    cr_assert_eq(eddy_requires_grad_set(b, true), EDDY_OK);
    cr_assert_eq(eddy_archive_copy_into(archive, names, EDDY_LIST(b, a, step)), EDDY_OK,
                 "a leaf, too");
    ASSERT_F32(a, 0, 1, 2);
    ASSERT_F32(b, 0, 1, 2, 3);
    cr_assert_eq(eddy_item_i64(step, NULL), 7);
    cr_assert(eddy_requires_grad(b), "it is still one");
    /* What does not fit is found before anything is written. */
    eddy_tensor *untouched = F32(EDDY_SHAPE(3), 5, 5, 5);
    cr_assert_eq(eddy_archive_copy_into(archive, missing, EDDY_LIST(untouched, one)),
                 EDDY_NOT_FOUND);
    ASSERT_ERROR(EDDY_NOT_FOUND, "there is no 'c' among 3 tensors");
    const char *const twice[] = {"a", "a"};
    cr_assert_eq(eddy_archive_copy_into(archive, twice, EDDY_LIST(untouched, one)),
                 EDDY_SHAPE_MISMATCH);
    ASSERT_ERROR(EDDY_SHAPE_MISMATCH, "'a' is f32[3], targets[1] is f32[1]");
    cr_assert_eq(eddy_archive_copy_into(archive, twice, EDDY_LIST(untouched, f64)),
                 EDDY_DTYPE_MISMATCH);
    ASSERT_ERROR(EDDY_DTYPE_MISMATCH, "'a' is f32[3], targets[1] is f64[3]");
    cr_assert_eq(eddy_archive_copy_into(archive, twice, EDDY_LIST(untouched, NULL)),
                 EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "targets[1] is NULL");
    cr_assert_eq(eddy_archive_copy_into(archive, unnamed, EDDY_LIST(untouched, a)),
                 EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "names[1] is NULL");
    cr_assert_eq(eddy_archive_copy_into(NULL, names, EDDY_LIST(a)), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no archive");
    ASSERT_F32(untouched, 5, 5, 5);
    cr_assert_eq(eddy_archive_copy_into(archive, NULL, (eddy_list){NULL, 0}), EDDY_OK);
    eddy_archive_release(&archive);
    ASSERT_F32(a, 0, 1, 2);
}

/* ---- ownership ---- */

CASE(tensors_belong_to_the_archive_and_to_no_scope) {
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(3)), counting(EDDY_SHAPE(2))), "a", "b"),
                 EDDY_OK);
    held before = held_now();
    eddy_scope *scope = eddy_scope_begin();
    eddy_archive *archive = eddy_safetensors_load(path);
    eddy_scope_end(scope);
    ASSERT_F32(eddy_archive_tensor(archive, "a"), 0, 1, 2);
    eddy_tensor *kept = eddy_retain(eddy_archive_tensor(archive, "b"));
    cr_assert_null(eddy_archive_tensor(archive, "c"));
    ASSERT_ERROR(EDDY_NOT_FOUND, "no 'c' among 2 tensors");
    cr_assert_null(eddy_archive_tensor(NULL, "c"));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no archive");
    eddy_archive_release(&archive);
    eddy_archive_release(&archive);
    ASSERT_F32(kept, 0, 1);
    eddy_release(&kept);
    scope = eddy_scope_begin();
    ASSERT_F32(eddy_safetensors_load_one(path, "b"), 0, 1);
    cr_assert_null(eddy_safetensors_load_one(path, "c"));
    ASSERT_ERROR(EDDY_NOT_FOUND, "a.safetensors: there is no 'c' among 2 tensors");
    cr_assert_null(eddy_safetensors_load_one(path, NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no name");
    eddy_scope_end(scope);
    ASSERT_HELD(before);
}

/* ---- refused when saving ---- */

CASE(what_cannot_be_saved_leaves_the_old_file) {
    eddy_tensor *a = counting(EDDY_SHAPE(2)), *b = counting(EDDY_SHAPE(3));
    cr_assert_eq(SAVE(EDDY_LIST(a), "old"), EDDY_OK);
    cr_assert_eq(SAVE(EDDY_LIST(a, b), "a", NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "tensor 1 has no name");
    cr_assert_eq(SAVE(EDDY_LIST(a, b), "a", "a"), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "'a' is given twice");
    cr_assert_eq(SAVE(EDDY_LIST(a, b), "a", "\xff"), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "the name of tensor 1 is not UTF-8");
    cr_assert_eq(SAVE(EDDY_LIST(a), "__metadata__"), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "cannot be named __metadata__");
    cr_assert_eq(SAVE(EDDY_LIST(a, NULL), "a", "b"), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "safetensors_save");
    cr_assert_eq(eddy_safetensors_save(EDDY_LIST(a), NULL, path, NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no names");
    const eddy_metadata twice[] = {{"k", "1"}, {"k", "2"}};
    cr_assert_eq(eddy_safetensors_save(
                     EDDY_LIST(a), (const char *const[]){"a"}, path,
                     EDDY_OPTIONS(safetensors_save, .metadata = twice, .metadata_count = 2)),
                 EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "pair 1 of the metadata");
    cr_assert_eq(
        eddy_safetensors_save(EDDY_LIST(a), (const char *const[]){"a"}, "/nowhere/a", NULL),
        EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "/nowhere/a: No such file or directory");
    cr_assert_eq(eddy_safetensors_save(EDDY_LIST(a), (const char *const[]){"a"}, folder, NULL),
                 EDDY_IO);
    ASSERT_ERROR(EDDY_IO, ": a folder stands there, which is not replaced");
    /* A pipe of the test's own: a device would be lost where the check is. */
    char pipe[sizeof(path) + 5];
    snprintf(pipe, sizeof(pipe), "%s.pipe", path);
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    cr_assert_eq(eddy_safetensors_save(EDDY_LIST(a), (const char *const[]){"a"}, pipe, NULL),
                 EDDY_IO);
    ASSERT_ERROR(EDDY_IO, ".pipe: a device, a pipe or the like stands there");
    cr_assert_eq(unlink(pipe), 0);
    /* A tensor that holds an error: the header is written by then. */
    eddy_tensor *poisoned = index_select(a, I64(EDDY_SHAPE(1), 5));
    cr_assert_eq(SAVE(EDDY_LIST(a, poisoned), "a", "p"), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    cr_assert_eq(SAVE(EDDY_LIST(a, eddy_t(eddy_reshape(poisoned, EDDY_SHAPE(1, 1)))), "a", "p"),
                 EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    /* And one whose shape is not known before it has run. */
    cr_assert_eq(SAVE(EDDY_LIST(call("nonzero", OF(poisoned))), "n"), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    ASSERT_F32(eddy_safetensors_load_one(path, "old"), 0, 1);
}

CASE(a_full_disk_leaves_the_old_file) {
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(2))), "old"), EDDY_OK);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(5000))), "a"), EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "a.safetensors: File too large");
    ASSERT_F32(eddy_safetensors_load_one(path, "old"), 0, 1);
}

/* A name may be as long as the file system has it: that of the file beside it is no longer. */
CASE(a_long_name_is_saved_to) {
    char whole[sizeof(path) + 256];
    int length = (int)(strrchr(path, '/') + 1 - path);
    snprintf(whole, sizeof(whole), "%.*s%0255d", length, path, 7);
    cr_assert_eq(eddy_safetensors_save(EDDY_LIST(counting(EDDY_SHAPE(2))),
                                       (const char *const[]){"a"}, whole, NULL),
                 EDDY_OK);
    ASSERT_F32(eddy_safetensors_load_one(whole, "a"), 0, 1);
    cr_assert_eq(unlink(whole), 0);
}

/* The reason has room behind any path: of a long one its end is shown. */
CASE(a_long_path_leaves_room_for_the_reason) {
    char whole[600];
    snprintf(whole, sizeof(whole), "/%0500d/absent.safetensors", 0);
    cr_assert_null(eddy_safetensors_load_one(whole, "a"));
    ASSERT_ERROR(EDDY_IO, "0/absent.safetensors: File name too long");
    snprintf(whole, sizeof(whole), "/%0200d/%0200d/absent.safetensors", 0, 0);
    cr_assert_null(eddy_safetensors_load_one(whole, "a"));
    ASSERT_ERROR(EDDY_IO, "0/absent.safetensors: No such file or directory");
}

CASE(a_file_keeps_its_permissions) {
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(2))), "old"), EDDY_OK);
    cr_assert_eq(chmod(path, 0640), 0);
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(2))), "new"), EDDY_OK);
    struct stat about;
    cr_assert_eq(stat(path, &about), 0);
    cr_assert_eq(about.st_mode & 0777, 0640);
}

/* The process is ended by the system in the midst of writing. What it left beside is removed here. */
CASE(a_crash_leaves_the_old_file) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY}, no_core = {0, 0};
        bool is_fine = SAVE(EDDY_LIST(counting(EDDY_SHAPE(2))), "old") == EDDY_OK;
        signal(SIGXFSZ, SIG_DFL);
        if (is_fine && setrlimit(RLIMIT_CORE, &no_core) == 0 &&
            setrlimit(RLIMIT_FSIZE, &limit) == 0)
            SAVE(EDDY_LIST(counting(EDDY_SHAPE(5000))), "new");
        _exit(1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    ASSERT_F32(eddy_safetensors_load_one(path, "old"), 0, 1);
    char beside[128];
    snprintf(beside, sizeof(beside), "%s.%ld-1.part", path, (long)child);
    cr_assert_eq(unlink(beside), 0);
}

/* ---- refused when loading ---- */

#define TENSOR(name, dtype, shape, begin, end)                                                     \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end   \
    "]}"

/* Each damage is one sentence that names the file. */
CASE(what_is_damaged_is_refused) {
    static const struct {
        const char *header;
        size_t data;
        const char *sentence;
        eddy_status status;
    } damages[] = {
        {"", 0, "no JSON object", EDDY_IO},
        {" {}", 0, "no JSON object", EDDY_IO},
        {"[]", 0, "no JSON object", EDDY_IO},
        {"{", 0, "the header is damaged", EDDY_IO},
        {"{}x", 0, "the header is damaged", EDDY_IO},
        {"{\"a\":\"\xff\"}", 0, "the header is damaged", EDDY_IO},
        {"{\"a\\u0000\":{}}", 0, "the header is damaged", EDDY_IO},
        {"{\"a\":[9223372036854775808]}", 0, "the header is damaged: too big", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1]", "0", "1") "," TENSOR("a", "U8", "[1]", "1", "2") "}", 2,
         "duplicate", EDDY_IO},
        {"{\"a\":1}", 0, "'a': no dtype", EDDY_IO},
        {"{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1, "'a': no dtype", EDDY_IO},
        {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", 1, "no dtype", EDDY_IO},
        {"{" TENSOR("a", "F8_E4M3", "[1]", "0", "1") "}", 1,
         "type that Eddy does not have: F8_E4M3", EDDY_UNSUPPORTED},
        {"{" TENSOR("a", "U64", "[1]", "0", "8") "}", 8, "type that Eddy does not have: U64",
         EDDY_UNSUPPORTED},
        {"{" TENSOR("a", "f32", "[1]", "0", "4") "}", 4, "type that Eddy does not have: f32",
         EDDY_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "no shape", EDDY_IO},
        {"{" TENSOR("a", "U8", "{}", "0", "1") "}", 1, "no shape", EDDY_IO},
        {"{" TENSOR("a", "U8", "[-1]", "0", "1") "}", 1, "a shape that is none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1.0]", "0", "1") "}", 1, "a shape that is none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[\"1\"]", "0", "1") "}", 1, "a shape that is none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "rank 17",
         EDDY_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 1, "data_offsets that are none", EDDY_IO},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0]}}", 1,
         "data_offsets that are none", EDDY_IO},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1,2]}}", 2,
         "data_offsets that are none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1]", "-1", "0") "}", 1, "data_offsets that are none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1]", "1", "0") "}", 1, "data_offsets that are none", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1]", "0.0", "1") "}", 1, "data_offsets that are none", EDDY_IO},
        {"{" TENSOR("a", "F32", "[2]", "0", "4") "}", 4, "takes 8 bytes, data_offsets name 4",
         EDDY_IO},
        {"{" TENSOR("a", "U8", "[]", "0", "2") "}", 2, "takes 1 bytes, data_offsets name 2",
         EDDY_IO},
        {"{" TENSOR("a", "U8", "[0]", "0", "1") "}", 1, "takes 0 bytes, data_offsets name 1",
         EDDY_IO},
        {"{" TENSOR("a", "F32", "[4611686018427387904,4]", "0", "4") "}", 4, "more elements",
         EDDY_SIZE_OVERFLOW},
        {"{" TENSOR("a", "F64", "[2305843009213693952]", "0", "4") "}", 4, "more elements",
         EDDY_SIZE_OVERFLOW},
        {"{" TENSOR("a", "U8", "[2]", "0", "2") "," TENSOR("b", "U8", "[2]", "1", "3") "}", 3,
         "'b': its elements begin within another", EDDY_IO},
        {"{" TENSOR("a", "U8", "[2]", "0", "2") "," TENSOR("b", "U8", "[2]", "0", "2") "}", 2,
         "within another", EDDY_IO},
        {"{" TENSOR("a", "U8", "[2]", "0", "2") "," TENSOR("b", "U8", "[2]", "3", "5") "}", 5,
         "'b': a gap", EDDY_IO},
        {"{" TENSOR("a", "U8", "[1]", "1", "2") "}", 2, "'a': a gap", EDDY_IO},
        {"{" TENSOR("a", "U8", "[2]", "0", "2") "}", 1, "'a': the file ends too early", EDDY_IO},
        {"{" TENSOR("a", "U8", "[4611686018427387904]", "0", "4611686018427387904") "}", 1,
         "ends too early", EDDY_IO},
        {"{" TENSOR("a", "U8", "[2]", "0", "2") "}", 3, "1 bytes at the end belong to no tensor",
         EDDY_IO},
        {"{}", 3, "3 bytes at the end belong to no tensor", EDDY_IO},
        {"{\"__metadata__\":[]}", 0, "__metadata__ is not pairs of texts", EDDY_IO},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ is not pairs of texts", EDDY_IO},
    };
    held before = held_now();
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        write_file(damages[i].header, damages[i].data);
        cr_assert_null(eddy_safetensors_load(path), "%s", damages[i].header);
        eddy_error error;
        cr_assert_eq(eddy_error_take(&error), damages[i].status, "%s: %s", damages[i].header,
                     error.message);
        cr_assert_not_null(strstr(error.message, damages[i].sentence), "%s: %s", damages[i].header,
                           error.message);
        cr_assert_not_null(strstr(error.message, path));
        cr_assert_eq(error.more, 0);
        cr_assert_null(eddy_safetensors_load_one(path, "a"));
        cr_assert_eq(eddy_error_take(NULL), damages[i].status);
    }
    ASSERT_HELD(before);
}

CASE(lengths_that_cannot_be_are_refused) {
    write_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    cr_assert_null(eddy_safetensors_load(path));
    ASSERT_ERROR(EDDY_IO, "a header of 18446744073709551615 bytes");
    write_bytes("\x01\xe1\xf5\x05\0\0\0\0{}", 10);
    cr_assert_null(eddy_safetensors_load(path));
    ASSERT_ERROR(EDDY_IO, "a header of 100000001 bytes");
    write_bytes("\3\0\0\0\0\0\0\0{}", 10);
    eddy_memory_fail_at(EDDY_MEMORY_TEXT, 0, 1);
    cr_assert_null(eddy_safetensors_load(path));
    ASSERT_ERROR(EDDY_IO, "the file ends too early");
    cr_assert_eq(eddy_memory_failures_injected(), 0, "refused before anything is taken for it");
    eddy_memory_fail_at(EDDY_MEMORY_TEXT, 0, 0);
    for (size_t count = 0; count < 8; count++) {
        write_bytes("\2\0\0\0\0\0\0", count);
        cr_assert_null(eddy_safetensors_load(path));
        ASSERT_ERROR(EDDY_IO, "the file ends too early");
    }
    char deep[8 + 100000];
    memset(deep, '[', sizeof(deep));
    memcpy(deep, "\xa0\x86\1\0\0\0\0\0{\"a\":", 13);
    write_bytes(deep, sizeof(deep));
    cr_assert_null(eddy_safetensors_load(path));
    ASSERT_ERROR(EDDY_IO, "the header is damaged: maximum parsing depth");
    cr_assert_null(eddy_safetensors_load(folder));
    ASSERT_ERROR(EDDY_IO, "no regular file");
    cr_assert_null(eddy_safetensors_load("/nowhere/a"));
    ASSERT_ERROR(EDDY_IO, "/nowhere/a: No such file or directory");
    cr_assert_null(eddy_safetensors_load(NULL));
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "no path");
}

CASE(what_is_unusual_is_read) {
    write_file("{\"b\":{\"shape\":[2],\"other\":null,\"data_offsets\":[1,3],\"dtype\":\"BOOL\"},"
               "\"__metadata__\":{}," TENSOR("", "U8", "[]", "0",
                                             "1") "," TENSOR("z", "F64", "[3,0]", "1", "1") "}  \n",
               3);
    eddy_archive *archive = eddy_safetensors_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, 3);
    bool values[2];
    cr_assert_eq(eddy_read(eddy_archive_tensor(archive, "b"), values, 2, NULL), EDDY_OK);
    cr_assert(values[0] && values[1], "a bool is 0 or 1, whatever the byte");
    cr_assert_eq(eddy_item_i64(eddy_archive_tensor(archive, ""), NULL), 0);
    cr_assert(has_shape(eddy_archive_tensor(archive, "z"), EDDY_SHAPE(3, 0)));
    eddy_archive_release(&archive);
}

CASE(flipped_bits_never_do_harm) {
    const eddy_metadata pair = {"key", "value"};
    cr_assert_eq(eddy_safetensors_save(
                     EDDY_LIST(counting(EDDY_SHAPE(2, 3)),
                               eddy_from_data("\1", EDDY_SHAPE(1), EDDY_BOOL, NULL)),
                     (const char *const[]){"weight", "mask"}, path,
                     EDDY_OPTIONS(safetensors_save, .metadata = &pair, .metadata_count = 1)),
                 EDDY_OK);
    char good[1024];
    load_damaged(eddy_safetensors_load, good, read_bytes(good, sizeof(good)), 3000);
}

/* Each allocation of a load and of a save fails once. */
CASE(memory_that_is_not_there_is_an_error) {
    const eddy_metadata pair = {"key", "value"};
    eddy_list list = EDDY_LIST(counting(EDDY_SHAPE(2, 3)), counting(EDDY_SHAPE(4)));
    for (int is_load = 0; is_load < 2; is_load++) {
        bool was_injected = true;
        for (int64_t at = 0; was_injected; at++) {
            cr_assert_lt(at, 1000);
            held before = held_now();
            eddy_memory_fail_at(EDDY_MEMORY_TEXT, at, 1);
            eddy_status status = EDDY_OK;
            eddy_archive *archive = NULL;
            if (is_load)
                archive = eddy_safetensors_load(path);
            else
                status = eddy_safetensors_save(
                    list, (const char *const[]){"a", "b"}, path,
                    EDDY_OPTIONS(safetensors_save, .metadata = &pair, .metadata_count = 1));
            was_injected = eddy_memory_failures_injected() > 0;
            eddy_memory_fail_at(EDDY_MEMORY_TEXT, 0, 0);
            cr_assert_eq(is_load ? !archive : status == EDDY_OUT_OF_MEMORY, was_injected);
            cr_assert_eq(eddy_error_take(NULL), was_injected ? EDDY_OUT_OF_MEMORY : EDDY_OK);
            eddy_archive_release(&archive);
            ASSERT_HELD(before);
        }
    }
}
