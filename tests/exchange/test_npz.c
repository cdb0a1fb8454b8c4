/* .npz files: as numpy writes them, as Eddy does, and damaged. tests/exchange has numpy itself read and write them. */
#include "files.h"

#include <signal.h>
#include <sys/resource.h>

#define CASE(name) FILE_TEST(npz, name, "a.npz")

#define SAVE(list, ...) eddy_npz_save(list, (const char *const[]){__VA_ARGS__}, path, NULL)

/* numpy.savez_compressed(file, w=numpy.zeros(40, 'f4')) */
#define DEFLATED                                                                                   \
    "\x50\x4b\x03\x04\x14\x00\x00\x00\x08\x00\x00\x00\x21\x00\x0e\x48\x9f\xc7\x48\x00\x00\x00\x20" \
    "\x01"                                                                                         \
    "\x00\x00\x05\x00\x14\x00\x77\x2e\x6e\x70\x79\x01\x00\x10\x00\x20\x01\x00\x00\x00\x00\x00\x00" \
    "\x48"                                                                                         \
    "\x00\x00\x00\x00\x00\x00\x00\x9b\xec\x17\xea\x1b\x10\xc9\xc8\x50\xc6\x50\xad\x9e\x92\x5a\x9c" \
    "\x5c"                                                                                         \
    "\xa4\x6e\xa5\xa0\x6e\x93\x66\xa2\xae\xa3\xa0\x9e\x96\x5f\x54\x52\x94\x98\x17\x9f\x5f\x94\x92" \
    "\x0a"                                                                                         \
    "\x12\x77\x4b\xcc\x29\x4e\x05\x8a\x17\x67\x24\x16\xa4\x02\xf9\x1a\x26\x06\x3a\x9a\x3a\x0a\xb5" \
    "\x0a"                                                                                         \
    "\xe4\x03\x2e\x86\x41\x0e\x00\x50\x4b\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00\x00\x00\x21\x00" \
    "\x0e"                                                                                         \
    "\x48\x9f\xc7\x48\x00\x00\x00\x20\x01\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" \
    "\x80"                                                                                         \
    "\x01\x00\x00\x00\x00\x77\x2e\x6e\x70\x79\x50\x4b\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\x33" \
    "\x00"                                                                                         \
    "\x00\x00\x7f\x00\x00\x00\x00\x00"
#define DEFLATED_BYTES (sizeof(DEFLATED) - 1)

/* Replaces every `from` by `to`, of one length; some are there. */
static void patch(char *bytes, size_t count, const void *from, const void *to, size_t length) {
    int found = 0;
    for (size_t i = 0; i + length <= count; i++)
        if (memcmp(bytes + i, from, length) == 0) {
            memcpy(bytes + i, to, length);
            found++;
        }
    cr_assert_gt(found, 0);
}

/* Loading what is at `path` fails so, wholly and by name. */
static void assert_refused(const char *name, eddy_status status, const char *sentence) {
    held before = held_now();
    cr_assert_null(eddy_npz_load(path), "%s", sentence);
    ASSERT_ERROR(status, sentence);
    cr_assert_null(eddy_npz_load_one(path, name), "%s", sentence);
    ASSERT_ERROR(status, sentence);
    ASSERT_HELD(before);
}

CASE(what_is_saved_comes_back) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_I8,  EDDY_U8,
                                 EDDY_I16, EDDY_I32, EDDY_I64, EDDY_BOOL};
    enum { COUNT = sizeof(dtypes) / sizeof(dtypes[0]) };
    char bytes[12 * 8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % 2);
    eddy_tensor *tensors[COUNT];
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) {
        eddy_tensor *t = eddy_from_data(bytes, EDDY_SHAPE(3, 4), dtypes[i], NULL);
        tensors[i] = i % 3 == 0 ? t : i % 3 == 1 ? eddy_t(t) : eddy_narrow(t, 0, 0, 0);
        names[i] = eddy_dtype_name(dtypes[i]);
    }
    cr_assert_eq(eddy_npz_save((eddy_list){tensors, COUNT}, names, path, NULL), EDDY_OK);
    eddy_archive *archive = eddy_npz_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_str_eq(archive->names[i], names[i]);
        eddy_tensor *both[] = {archive->tensors[i], eddy_npz_load_one(path, names[i])};
        for (int b = 0; b < 2; b++) {
            char want[sizeof(bytes)], got[sizeof(bytes)];
            size_t size = (size_t)eddy_count_of(tensors[i]) * eddy_dtype_bytes(dtypes[i]);
            cr_assert_eq(eddy_dtype_of(both[b]), dtypes[i]);
            cr_assert(has_shape(both[b], eddy_shape_of(tensors[i])));
            cr_assert_eq(eddy_read(tensors[i], want, size, NULL), EDDY_OK);
            cr_assert_eq(eddy_read(both[b], got, size, NULL), EDDY_OK);
            cr_assert_arr_eq(want, got, size);
        }
    }
    eddy_archive_release(&archive);
    /* The same tensors give the same bytes. */
    char first[8192], second[8192];
    size_t count = read_bytes(first, sizeof(first));
    cr_assert_eq(eddy_npz_save((eddy_list){tensors, COUNT}, names, path, NULL), EDDY_OK);
    cr_assert_eq(read_bytes(second, sizeof(second)), count);
    cr_assert_arr_eq(first, second, count);
}

CASE(nothing_and_names_of_any_kind) {
    cr_assert_eq(eddy_npz_save((eddy_list){NULL, 0}, NULL, path, NULL), EDDY_OK);
    eddy_archive *archive = eddy_npz_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, 0);
    eddy_archive_release(&archive);
    cr_assert_null(eddy_npz_load_one(path, "a"));
    ASSERT_ERROR(EDDY_NOT_FOUND, "a.npz: there is no 'a'");
    char name[1001];
    memset(name, 'n', 1000);
    name[1000] = 0;
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_eq(SAVE(EDDY_LIST(t, t, t), name, "layer/../w.npy", "\xc3\xa4"), EDDY_OK);
    ASSERT_F32(eddy_npz_load_one(path, name), 0, 1);
    ASSERT_F32(eddy_npz_load_one(path, "layer/../w.npy"), 0, 1);
    ASSERT_F32(eddy_npz_load_one(path, "\xc3\xa4"), 0, 1);
}

CASE(what_is_deflated_is_read) {
    write_bytes(DEFLATED, DEFLATED_BYTES);
    eddy_archive *archive = eddy_npz_load(path);
    cr_assert_not_null(archive);
    cr_assert_eq(archive->count, 1);
    cr_assert(has_shape(eddy_archive_tensor(archive, "w"), EDDY_SHAPE(40)));
    cr_assert_eq(eddy_item_f64(eddy_select(archive->tensors[0], 0, 39), NULL), 0);
    eddy_archive_release(&archive);
}

CASE(what_cannot_be_saved_leaves_the_old_file) {
    eddy_tensor *a = counting(EDDY_SHAPE(2)), *b = counting(EDDY_SHAPE(3));
    cr_assert_eq(SAVE(EDDY_LIST(a), "old"), EDDY_OK);
    cr_assert_eq(SAVE(EDDY_LIST(a, b), "a", "a"), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "npz_save: the name 'a' is given twice");
    cr_assert_eq(SAVE(EDDY_LIST(a), ""), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "a name of 0 bytes");
    eddy_tensor *poisoned = index_select(a, I64(EDDY_SHAPE(1), 5));
    cr_assert_eq(SAVE(EDDY_LIST(a, poisoned), "a", "p"), EDDY_OUT_OF_RANGE);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
    cr_assert_eq(SAVE(EDDY_LIST(a, eddy_from_data((uint16_t[]){0}, EDDY_SHAPE(1), EDDY_BF16, NULL)),
                      "a", "h"),
                 EDDY_UNSUPPORTED);
    ASSERT_ERROR(EDDY_UNSUPPORTED, "a.npz: 'h': the format has no bf16");
    cr_assert_eq(eddy_npz_save(EDDY_LIST(a), (const char *const[]){"a"}, "/nowhere/a", NULL),
                 EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "/nowhere/a: No such file or directory");
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(SAVE(EDDY_LIST(a, counting(EDDY_SHAPE(5000))), "a", "b"), EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "File too large");
    ASSERT_F32(eddy_npz_load_one(path, "old"), 0, 1);
}

/* Each damage is one sentence that names the file. */
CASE(what_is_damaged_is_refused) {
    char bytes[4096];
    cr_assert_null(eddy_npz_load("/nowhere/a"));
    ASSERT_ERROR(EDDY_IO, "/nowhere/a: No such file or directory");
    write_bytes("", 0);
    assert_refused("w", EDDY_IO, "a.npz: no zip archive");
    write_bytes(DEFLATED, DEFLATED_BYTES - 60);
    assert_refused("w", EDDY_IO, "no zip archive");

    static const struct {
        const void *from, *to;
        size_t length;
        const char *sentence;
        eddy_status status;
    } damages[] = {
        {"\x0e\x48\x9f\xc7", "\x0e\x48\x9f\xc8", 4, "'w': the checksum is wrong", EDDY_IO},
        {"\x9b\xec\x17\xea", "\xff\xec\x17\xea", 4, "'w.npy': the archive is damaged", EDDY_IO},
        {"\x14\x00\x00\x00\x08", "\x14\x00\x01\x00\x08", 5, "encrypted, or packed in another way",
         EDDY_UNSUPPORTED},
        {"\x14\x00\x00\x00\x08", "\x14\x00\x00\x00\x0c", 5, "encrypted, or packed in another way",
         EDDY_UNSUPPORTED},
        {"PK\1\2", "PK\1\3", 4, "the archive is damaged", EDDY_IO},
        {"PK\3\4", "PK\3\5", 4, "the archive is damaged", EDDY_IO},
        {"\x48\x00\x00\x00\x20\x01\x00\x00\x05\x00\x00\x00",
         "\x48\x00\x00\x00\x10\x01\x00\x00\x05\x00\x00\x00", 12, "'w'", EDDY_IO},
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        memcpy(bytes, DEFLATED, DEFLATED_BYTES);
        patch(bytes, DEFLATED_BYTES, damages[i].from, damages[i].to, damages[i].length);
        write_bytes(bytes, DEFLATED_BYTES);
        eddy_archive *archive = eddy_npz_load(path);
        cr_assert_null(archive, "damage %zu", i);
        eddy_error error;
        eddy_status status = eddy_error_take(&error);
        cr_assert_eq(status, damages[i].status, "%zu: %s", i, error.message);
        assert_refused("w", damages[i].status, "a.npz");
    }
    memcpy(bytes, DEFLATED, DEFLATED_BYTES);
    patch(bytes, DEFLATED_BYTES, "w.npy", "w.txt", 5);
    write_bytes(bytes, DEFLATED_BYTES);
    cr_assert_null(eddy_npz_load(path));
    ASSERT_ERROR(EDDY_UNSUPPORTED, "'w.txt': no array");
    patch(bytes, DEFLATED_BYTES, "w.txt", "w\0npy", 5);
    write_bytes(bytes, DEFLATED_BYTES);
    assert_refused("w", EDDY_IO, "the archive is damaged");
    /* An element less than there are bytes for. */
    cr_assert_eq(SAVE(EDDY_LIST(counting(EDDY_SHAPE(4))), "a"), EDDY_OK);
    size_t saved = read_bytes(bytes, sizeof(bytes));
    patch(bytes, saved, "(4,)", "(3,)", 4);
    write_bytes(bytes, saved);
    assert_refused("a", EDDY_IO, "'a': 4 bytes more than the array has");
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_eq(SAVE(EDDY_LIST(t, t), "a", "b"), EDDY_OK);
    size_t count = read_bytes(bytes, sizeof(bytes));
    patch(bytes, count, "b.npy", "a.npy", 5);
    write_bytes(bytes, count);
    cr_assert_null(eddy_npz_load(path));
    ASSERT_ERROR(EDDY_IO, "a.npz: 'a': there are two arrays of this name");
}

CASE(flipped_bits_never_do_harm) {
    char good[4096];
    cr_assert_eq(
        SAVE(EDDY_LIST(counting(EDDY_SHAPE(2, 3)), counting(EDDY_SHAPE())), "weight", "bias"),
        EDDY_OK);
    load_damaged(eddy_npz_load, good, read_bytes(good, sizeof(good)), 3000);
    load_damaged(eddy_npz_load, DEFLATED, DEFLATED_BYTES, 3000);
}
