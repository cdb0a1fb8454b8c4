#include "../interpreter/calls.h"
#include <base/memory.h>
#include <eddy/eddy.h>
#include <eddy/log.h>
#include <eddy/print.h>

static const char *formatted(eddy_tensor *tensor, const eddy_format_options *options) {
    static char text[16384];
    int64_t length = eddy_format(tensor, text, sizeof(text), options);
    cr_assert_eq(length, (int64_t)strlen(text));
    cr_assert_eq(eddy_format(tensor, NULL, 0, options), length, "the length needs no buffer");
    return text;
}

Test(print, numpys_style) {
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(2, 2), 1, 2.5f, 3, 4), NULL),
                     "[[1. , 2.5],\n [3. , 4. ]]  f32[2, 2]");
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(), 0.5f), NULL), "0.5  f32[]");
    cr_assert_str_eq(formatted(I64(EDDY_SHAPE(3), 1, -20, 300), NULL), "[  1, -20, 300]  i64[3]");
    cr_assert_str_eq(
        formatted(eddy_from_data((bool[]){true, false}, EDDY_SHAPE(2), EDDY_BOOL, NULL), NULL),
        "[ True, False]  bool[2]");
    cr_assert_str_eq(formatted(counting(EDDY_SHAPE(0, 3)), NULL), "[]  f32[0, 3]");
    cr_assert_str_eq(formatted(counting(EDDY_SHAPE(2, 1, 2)), NULL),
                     "[[[0., 1.]],\n\n [[2., 3.]]]  f32[2, 1, 2]");
    cr_assert_str_eq(formatted(eddy_t(counting(EDDY_SHAPE(2, 2))), NULL),
                     "[[0., 2.],\n [1., 3.]]  f32[2, 2]");
}

Test(print, special_numbers_and_exponents) {
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(3), NAN, -INFINITY, 1.25f), NULL),
                     "[ nan, -inf, 1.25]  f32[3]");
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(2), 1e10f, 1), NULL), "[1.e+10, 1.e+00]  f32[2]");
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(2), 0, -0.5f), NULL), "[ 0. , -0.5]  f32[2]");
    cr_assert_str_eq(formatted(F32(EDDY_SHAPE(1), NAN), NULL), "[nan]  f32[1]");
}

Test(print, precision_and_tail) {
    eddy_tensor *t = F32(EDDY_SHAPE(1), 0.123456f);
    cr_assert_str_eq(formatted(t, EDDY_OPTIONS(format, .omits_tail = true)), "[0.1235]");
    cr_assert_str_eq(formatted(t, EDDY_OPTIONS(format, .has_precision = true, .precision = 2,
                                               .omits_tail = true)),
                     "[0.12]");
    cr_assert_str_eq(formatted(t, EDDY_OPTIONS(format, .has_precision = true, .omits_tail = true)),
                     "[0.]");
    cr_assert_lt(eddy_format(t, NULL, 0, EDDY_OPTIONS(format, .precision = 18)), 0);
    eddy_error_take(NULL);
}

Test(print, long_tensors_are_cut) {
    cr_assert_str_eq(
        formatted(counting(EDDY_SHAPE(2000)), EDDY_OPTIONS(format, .omits_tail = true)),
        "[0.000e+00, 1.000e+00, 2.000e+00, ..., 1.997e+03, 1.998e+03, 1.999e+03]");
    const char *text = formatted(I64(EDDY_SHAPE(2, 3), 1, 2, 3, 4, 5, 6),
                                 EDDY_OPTIONS(format, .threshold = 1, .edge_items = 1));
    cr_assert_str_eq(text, "[[1, ..., 3],\n [4, ..., 6]]  i64[2, 3]");
    cr_assert_str_eq(formatted(eddy_expand(I64(EDDY_SHAPE(1), 7), EDDY_SHAPE(1 << 30)),
                               EDDY_OPTIONS(format, .omits_tail = true)),
                     "[7, 7, 7, ..., 7, 7, 7]");
}

Test(print, long_lines_are_wrapped) {
    const char *text =
        formatted(counting(EDDY_SHAPE(40)), EDDY_OPTIONS(format, .omits_tail = true));
    for (const char *line = text; line; line = strchr(line + 1, '\n'))
        cr_assert_leq(strcspn(line + 1, "\n"), 80);
    cr_assert_not_null(strchr(text, '\n'));
}

Test(print, a_short_buffer_is_cut_and_ended) {
    char text[6] = "xxxxx";
    cr_assert_eq(
        eddy_format(I64(EDDY_SHAPE(3), 1, 2, 3), text, 5, EDDY_OPTIONS(format, .omits_tail = true)),
        9);
    cr_assert_str_eq(text, "[1, ");
}

static char logged[256];

static void sink(void *context, const char *line) {
    (void)context;
    strcat(logged, line);
    strcat(logged, "|");
}

Test(print, goes_to_a_file_or_the_sink) {
    eddy_log_set(sink, NULL);
    cr_assert_eq(eddy_print(counting(EDDY_SHAPE(2, 1)), NULL), EDDY_OK);
    cr_assert_str_eq(logged, "[[0.],| [1.]]  f32[2, 1]|");
    FILE *file = tmpfile();
    cr_assert_eq(eddy_print(counting(EDDY_SHAPE(2)), file), EDDY_OK);
    rewind(file);
    char line[64];
    cr_assert_not_null(fgets(line, sizeof(line), file));
    cr_assert_str_eq(line, "[0., 1.]  f32[2]\n");
    fclose(file);
    cr_assert_neq(eddy_print(NULL, NULL), EDDY_OK);
}

static void printed(eddy_tensor *tensor, eddy_status wanted, char *text, size_t size) {
    FILE *file = tmpfile();
    cr_assert_eq(eddy_print(tensor, file), wanted);
    rewind(file);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
}

Test(print, a_tensor_that_failed_prints_its_error) {
    char text[1024];
    printed(call("add", OF(counting(EDDY_SHAPE(3)), counting(EDDY_SHAPE(4)))),
            EDDY_INVALID_ARGUMENT, text, sizeof(text));
    cr_assert_eq(strncmp(text, "error: add: ", 12), 0, "%s", text);
    cr_assert_str_eq(strchr(text, '\n'), "\n");
    /* An older error stays in the slot, and does not pass for that of the tensor. */
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5));
    printed(bad, EDDY_OUT_OF_RANGE, text, sizeof(text));
    cr_assert_eq(strncmp(text, "error: index_select: ", 21), 0, "%s", text);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(error.more, 1u);
    printed(NULL, EDDY_INVALID_ARGUMENT, text, sizeof(text));
    cr_assert_str_eq(text, "error: print: tensor is NULL\n");
    ASSERT_ERROR(EDDY_INVALID_ARGUMENT, "tensor is NULL");
}

Test(print, late_errors_are_returned) {
    eddy_tensor *bad = index_select(counting(EDDY_SHAPE(3)), I64(EDDY_SHAPE(1), 5));
    cr_assert_eq(eddy_format(bad, NULL, 0, NULL), -1);
    ASSERT_ERROR(EDDY_OUT_OF_RANGE, "index_select");
}

/* ---- on a device ---- */

enum { ROWS = 700, COLUMNS = 3000 };

static eddy_tensor *view_of(eddy_tensor *base, int i) {
    switch (i) {
    case 0:
        return base;
    case 1:
        return eddy_t(base);
    case 2:
        return eddy_select(base, 0, 5);
    case 3:
        return eddy_select(base, 1, 7);
    case 4:
        return eddy_select(eddy_select(base, 0, ROWS - 1), 0, COLUMNS - 1);
    case 5:
        return eddy_narrow(eddy_narrow(base, 0, 3, 2), 1, 10, 20);
    case 6:
        return eddy_reshape(base, EDDY_SHAPE(7, 100, 30, 100));
    case 7:
        return eddy_slice(base, 1, COLUMNS - 9, COLUMNS, 2);
    case 8:
        return eddy_expand(eddy_narrow(base, 1, 4, 1), EDDY_SHAPE(ROWS, 50));
    default:
        return NULL;
    }
}

/* What is shown of a large storage comes alone: the whole of it has no room on the host. */
Test(print, of_a_devices_tensor_what_is_shown_is_copied) {
    eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_I8};
    for (int d = 0; d < 3; d++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *base = eddy_cast(
            eddy_reshape(
                eddy_remainder_s(eddy_arange(EDDY_S(0), EDDY_S(ROWS * COLUMNS), EDDY_S(1), EDDY_I64,
                                             EDDY_OPTIONS(arange, .device = EDDY_CPU)),
                                 EDDY_S(101)),
                EDDY_SHAPE(ROWS, COLUMNS)),
            dtypes[d]);
        eddy_tensor *there = eddy_to_device(base, EDDY_FAR(0)), *shown;
        cr_assert_not_null(there);
        for (int i = 0; (shown = view_of(base, i)); i++) {
            char here[16384];
            snprintf(here, sizeof(here), "%s", formatted(shown, NULL));
            cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
            eddy_tensor *view = view_of(there, i);
            /* Of these two so much is shown that the whole storage is copied. */
            if (i != 3 && i != 6)
                eddy_memory_limit_set(eddy_memory_counted(EDDY_MEMORY_TENSOR).bytes +
                                      eddy_memory_counted(EDDY_MEMORY_WORKSPACE).bytes + (1 << 20));
            int64_t length = eddy_format(view, NULL, 0, NULL);
            eddy_memory_limit_set(0);
            cr_assert_eq(length, (int64_t)strlen(here), "view %d", i);
            cr_assert_str_eq(formatted(view, NULL), here, "view %d", i);
        }
        eddy_scope_end(scope);
    }
}

Test(print, a_devices_tensor_that_failed_prints_its_error) {
    eddy_tensor *x = eddy_to_device(counting(EDDY_SHAPE(ROWS, COLUMNS)), EDDY_FAR(0));
    eddy_tensor *bad =
        eddy_index_select(x, eddy_to_device(I64(EDDY_SHAPE(1), ROWS), EDDY_FAR(0)), 0);
    cr_assert_not_null(bad);
    cr_assert_eq(eddy_format(bad, NULL, 0, NULL), -1);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_OUT_OF_RANGE);
}
