/* .npy files: as numpy writes them, as Eddy does, and damaged. */
#include "files.h"

#define CASE(name) FILE_TEST(npy, name, "a.npy")

/* A file of version 1 with the given dict and elements. */
static void write_npy(const char *dict, const void *elements, size_t bytes) {
    char file[512] = "\x93NUMPY\x01";
    size_t length = strlen(dict);
    file[7] = 0;
    file[8] = (char)length;
    file[9] = (char)(length >> 8);
    memcpy(file + 10, dict, length);
    memcpy(file + 10 + length, elements, bytes);
    write_bytes(file, 10 + length + bytes);
}

/* Byte for byte what numpy.save writes for numpy.arange(6, dtype='f4').reshape(2, 3). */
CASE(the_bytes_are_numpys) {
    char want[128 + 24], got[256];
    memset(want, ' ', sizeof(want));
    memcpy(want, "\x93NUMPY\x01\x00v\x00", 10);
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    memcpy(want + 10, dict, strlen(dict));
    want[127] = '\n';
    memcpy(want + 128, (float[]){0, 1, 2, 3, 4, 5}, 24);
    cr_assert_eq(eddy_npy_save(counting(EDDY_SHAPE(2, 3)), path, NULL), EDDY_OK);
    cr_assert_eq(read_bytes(got, sizeof(got)), sizeof(want));
    cr_assert_arr_eq(got, want, sizeof(want));
}

CASE(every_dtype_and_layout_comes_back) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_I8,  EDDY_U8,
                                 EDDY_I16, EDDY_I32, EDDY_I64, EDDY_BOOL};
    char bytes[12 * 8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % 2);
    for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        eddy_tensor *t = eddy_from_data(bytes, EDDY_SHAPE(3, 4), dtypes[k], NULL);
        eddy_tensor *views[] = {t, eddy_t(t), eddy_narrow(t, 0, 1, 2),
                                eddy_select(eddy_select(t, 0, 1), 0, 2), eddy_narrow(t, 0, 0, 0)};
        for (int v = 0; v < 5; v++) {
            cr_assert_eq(eddy_npy_save(views[v], path, NULL), EDDY_OK);
            eddy_tensor *back = eddy_npy_load(path);
            cr_assert_not_null(back);
            cr_assert_eq(eddy_dtype_of(back), dtypes[k]);
            cr_assert(has_shape(back, eddy_shape_of(views[v])));
            char want[sizeof(bytes)], got[sizeof(bytes)];
            size_t size = (size_t)eddy_count_of(back) * eddy_dtype_bytes(dtypes[k]);
            cr_assert_eq(eddy_read(views[v], want, size, NULL), EDDY_OK);
            cr_assert_eq(eddy_read(back, got, size, NULL), EDDY_OK);
            cr_assert_arr_eq(want, got, size);
        }
    }
}

CASE(other_orders_are_turned_round) {
    write_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
              (float[]){0, 3, 1, 4, 2, 5}, 24);
    eddy_tensor *t = eddy_npy_load(path);
    cr_assert(has_shape(t, EDDY_SHAPE(2, 3)));
    ASSERT_F32(t, 0, 1, 2, 3, 4, 5);
    write_npy("{'shape': (2,), \"x\": 1, 'fortran_order': False, 'descr': '>f4'}",
              "\x3f\x80\0\0\x40\0\0\0", 8);
    ASSERT_F32(eddy_npy_load(path), 1, 2);
    write_npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\7", 3);
    bool values[3];
    cr_assert_eq(eddy_read(eddy_npy_load(path), values, 3, NULL), EDDY_OK);
    cr_assert(!values[0] && values[1] && values[2]);
}

/* Each damage is one sentence that names the file. */
CASE(what_is_damaged_is_refused) {
    static const struct {
        const char *dict, *sentence;
        eddy_status status;
    } damages[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "the file ends too early",
         EDDY_IO},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
         "its elements are complex numbers; save real and imaginary parts as two arrays ('<c8')",
         EDDY_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
         "records of several fields; save each field as an array of its own", EDDY_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
         "pickled Python objects, which are never read: they may hold code ('|O')",
         EDDY_UNSUPPORTED},
        {"{'descr': '<U12', 'fortran_order': False, 'shape': (1,), }",
         "its elements are texts ('<U12')", EDDY_UNSUPPORTED},
        {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }", "dates; save them as i64",
         EDDY_UNSUPPORTED},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }",
         "unsigned integers of more than 8 bits", EDDY_UNSUPPORTED},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }",
         "of a type that Eddy does not have ('<f16')", EDDY_UNSUPPORTED},
        {"{'descr': '", "its elements are of a type that Eddy does not have", EDDY_UNSUPPORTED},
        {"{'fortran_order': False, 'shape': (1,), }", "does not say the type of the elements",
         EDDY_IO},
        {"{'descr': '<f4', 'shape': (1,), }", "order of the elements", EDDY_IO},
        {"{'descr': '<f4', 'fortran_order': False}", "a shape that is damaged", EDDY_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2)}", "a shape that is damaged",
         EDDY_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2", "a shape that is damaged",
         EDDY_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         "rank above 16", EDDY_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
         "more elements", EDDY_SIZE_OVERFLOW},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (288230376151711744,)}",
         "the file ends too early", EDDY_IO},
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        write_npy(damages[i].dict, "abcd", 4);
        cr_assert_null(eddy_npy_load(path), "%s", damages[i].dict);
        ASSERT_ERROR(damages[i].status, damages[i].sentence);
    }
    write_bytes("\x93NUMPX\1\0\0\0", 10);
    cr_assert_null(eddy_npy_load(path));
    ASSERT_ERROR(EDDY_IO, "a.npy: no .npy file of version 1 to 3");
    write_bytes("\x93NUMPY\4\0\2\0{}", 12); /* a version to come */
    cr_assert_null(eddy_npy_load(path));
    ASSERT_ERROR(EDDY_IO, "a.npy: no .npy file of version 1 to 3");
    write_bytes("\x93NUM", 4);
    cr_assert_null(eddy_npy_load(path));
    ASSERT_ERROR(EDDY_IO, "a.npy: the file ends too early");
    write_bytes("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    cr_assert_null(eddy_npy_load(path));
    ASSERT_ERROR(EDDY_IO, "a header of 4294967295 bytes");
}

CASE(files_that_cannot_be_are_one_sentence) {
    eddy_tensor *t = counting(EDDY_SHAPE(2));
    cr_assert_null(eddy_npy_load("/nowhere/a.npy"));
    ASSERT_ERROR(EDDY_IO, "npy_load: /nowhere/a.npy: No such file or directory");
    cr_assert_eq(eddy_npy_save(t, "/nowhere/a.npy", NULL), EDDY_IO);
    ASSERT_ERROR(EDDY_IO, "npy_save: /nowhere/a.npy: No such file or directory");
    cr_assert_eq(eddy_npy_save(t, NULL, NULL), EDDY_INVALID_ARGUMENT);
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "npy_save: no path");
    cr_assert_eq(
        eddy_npy_save(eddy_from_data((uint16_t[]){0}, EDDY_SHAPE(1), EDDY_BF16, NULL), path, NULL),
        EDDY_UNSUPPORTED);
    ASSERT_ERROR(EDDY_UNSUPPORTED, "the format has no bf16");
    cr_assert_neq(access(path, F_OK), 0, "nothing is written");
}
