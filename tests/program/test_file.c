/* Programs in files: what is loaded runs as what was saved, and what is damaged is refused. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/file_head.h>
#include <program/print.h>
#include <program/program.h>
#include <string.h>
#include <tests/exchange/files.h>

#define FILE_BYTES_MOST 65536

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(bindings);
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    return program;
}

static eddy_program *save_and_load(const eddy_program *program) {
    eddy_error error = {0};
    cr_assert_eq(eddy_program_save(program, path), EDDY_OK, "%s",
                 (eddy_error_take(&error), error.message));
    eddy_program *loaded = eddy_program_load(path);
    cr_assert_not_null(loaded, "%s", (eddy_error_take(&error), error.message));
    return loaded;
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    char first[4096], second[4096];
    size_t bytes = (size_t)eddy_count_of(a) * eddy_dtype_bytes(eddy_dtype_of(a));
    cr_assert(a && b && bytes <= sizeof(first));
    cr_assert_eq(eddy_read(a, first, bytes, NULL), EDDY_OK);
    cr_assert_eq(eddy_read(b, second, bytes, NULL), EDDY_OK);
    cr_assert_arr_eq(first, second, bytes);
}

static void expect_same_runs(eddy_program *program, eddy_program *loaded, eddy_list inputs) {
    for (uint64_t round = 0; round < 3; round++) {
        eddy_tensor *a, *b;
        eddy_seed(round);
        cr_assert_eq(eddy_program_run(program, inputs, &a), EDDY_OK);
        eddy_seed(round);
        cr_assert_eq(eddy_program_run(loaded, inputs, &b), EDDY_OK);
        expect_same(a, b);
    }
}

/* Weights that a step changes, a part of a larger state, a transposed captured tensor, numbers, draws. */
static eddy_program *record_step(eddy_tensor *x, eddy_tensor *w, eddy_tensor *all) {
    eddy_tensor *part = eddy_narrow(all, 0, 1, 2);
    eddy_tensor *turned = eddy_contiguous(eddy_t(eddy_rand(EDDY_SHAPE(3, 3), EDDY_F32, NULL)));
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_grads_zero(EDDY_LIST(w));
    eddy_tensor *h = eddy_gelu(eddy_linear(eddy_matmul(x, eddy_t(turned)), w, EDDY_NONE), NULL);
    h = eddy_dropout(h, EDDY_S(0.25), NULL);
    eddy_tensor *loss = eddy_mean(eddy_square(h), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    eddy_no_grad_begin();
    cr_assert_eq(eddy_sgd_step(EDDY_LIST(w), EDDY_LIST(eddy_grad_of(w)), EDDY_S(0.1), NULL),
                 EDDY_OK);
    cr_assert_eq(eddy_add_into(part, eddy_sum(eddy_detach(h), EDDY_AXES(0), NULL), part), EDDY_OK);
    eddy_no_grad_end();
    return end(EDDY_BINDINGS({"w", w, EDDY_ROLE_STATE}, {"x", x, EDDY_ROLE_INPUT},
                             {"the sums", part, EDDY_ROLE_STATE},
                             {"loss", loss, EDDY_ROLE_OUTPUT}));
}

FILE_TEST(file, a_step_of_training_goes_on_in_what_is_loaded, "step.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_rand(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    eddy_tensor *w = eddy_randn(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_tensor *all = eddy_zeros(EDDY_SHAPE(4, 2), EDDY_F32, NULL);
    eddy_requires_grad_set(w, true);
    eddy_program *program = record_step(x, w, all), *loaded = save_and_load(program);
    expect_same_runs(program, loaded, EDDY_LIST(x));
    expect_same(w, eddy_program_state(loaded, "w"));
    expect_same(eddy_narrow(all, 0, 1, 2), eddy_program_state(loaded, "the sums"));
    cr_assert_null(eddy_program_state(loaded, "x"));
    cr_assert_eq(eddy_error_take(NULL), EDDY_NOT_FOUND);
    /* Another save begins where the runs have ended. */
    eddy_program *again = save_and_load(loaded);
    expect_same_runs(loaded, again, EDDY_LIST(x));
    /* The state of a program that was recorded is the tensor itself. */
    eddy_tensor *state = eddy_program_state(program, "w");
    cr_assert_eq(eddy_copy_into(eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F32, NULL), state), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(eddy_detach(w), EDDY_ALL_AXES, NULL), NULL), 0);
    eddy_program_release(&again);
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
}

FILE_TEST(file, programs_without_tensors_or_instructions_have_files, "empty.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(0, 3), EDDY_BOOL, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", x, EDDY_ROLE_OUTPUT}));
    eddy_program *loaded = save_and_load(program);
    expect_same_runs(program, loaded, EDDY_LIST(x));
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
}

/* ---- what has no file ---- */

static void expect_no_save(const eddy_program *program, eddy_status status, const char *part) {
    eddy_error error;
    cr_assert_eq(eddy_program_save(program, path), status);
    cr_assert_eq(eddy_error_take(&error), status);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

FILE_TEST(file, what_a_file_cannot_hold_is_refused, "none.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_generator *own = eddy_generator_create(3);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_dropout(x, EDDY_S(0.25), EDDY_OPTIONS(dropout, .generator = own));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    expect_no_save(program, EDDY_UNSUPPORTED, "generator");
    eddy_program_release(&program);
    eddy_generator_release(&own);
    expect_no_save(NULL, EDDY_INVALID_ARGUMENT, "NULL");
    /* A captured tensor that holds an error: the old file stays. */
    eddy_tensor *doomed =
        eddy_index_select(x, eddy_full(EDDY_SHAPE(2), EDDY_S(7), EDDY_I64, NULL), 0);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    y = eddy_add(x, doomed);
    program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    write_bytes("old", 3);
    expect_no_save(program, EDDY_OUT_OF_RANGE, "index_select");
    char bytes[4];
    cr_assert_eq(read_bytes(bytes, sizeof(bytes)), 3);
    cr_assert_eq(eddy_program_save(program, "/nowhere/at/all"), EDDY_IO);
    eddy_error_take(NULL);
    cr_assert_null(eddy_program_load("/nowhere/at/all"));
    cr_assert_eq(eddy_error_take(NULL), EDDY_IO);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    (void)!eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* ---- damage ---- */

static size_t save_small(char *bytes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_tensor *w = eddy_full(EDDY_SHAPE(2), EDDY_S(3), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_mul(x, w);
    (void)eddy_add_into(w, y, w);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_program_save(program, path), EDDY_OK);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return read_bytes(bytes, FILE_BYTES_MOST);
}

static bool is_loaded(const void *bytes, size_t count) {
    int64_t tensors = eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions;
    write_bytes(bytes, count);
    eddy_program *program = eddy_program_load(path);
    bool is_one = program != NULL;
    if (!is_one) {
        eddy_status status = eddy_error_take(NULL);
        cr_assert(status == EDDY_IO || status == EDDY_INVALID_ARGUMENT ||
                  status == EDDY_UNSUPPORTED);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TENSOR).acquisitions, tensors);
    }
    eddy_program_release(&program);
    return is_one;
}

FILE_TEST(file, each_truncation_and_each_flipped_bit_is_refused, "damaged.program") {
    static char bytes[FILE_BYTES_MOST];
    size_t count = save_small(bytes);
    cr_assert(is_loaded(bytes, count));
    for (size_t i = 0; i < count; i++)
        cr_assert_not(is_loaded(bytes, i), "%zu of %zu bytes", i, count);
    for (size_t i = 0; i < 8 * count; i++) {
        bytes[i / 8] ^= (char)(1 << i % 8);
        cr_assert_not(is_loaded(bytes, count), "bit %zu", i);
        bytes[i / 8] ^= (char)(1 << i % 8);
    }
    bytes[count] = 0;
    cr_assert_not(is_loaded(bytes, count + 1));
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
}

/* A file whose digests are right, of this text and so many bytes of tensors. */
static size_t forge(char *bytes, const char *text, size_t data_bytes, uint64_t tensors) {
    eddy_file_head head = {.text_bytes = strlen(text), .tensor_count = tensors};
    head.data_at = eddy_file_head_aligned(EDDY_FILE_HEAD_BYTES + strlen(text));
    head.file_bytes = head.data_at + data_bytes;
    memset(bytes, 0, head.file_bytes);
    memcpy(bytes + EDDY_FILE_HEAD_BYTES, text, strlen(text));
    head.text_digest =
        eddy_hash_128(bytes + EDDY_FILE_HEAD_BYTES, head.data_at - EDDY_FILE_HEAD_BYTES);
    head.data_digest = eddy_hash_128(bytes + head.data_at, data_bytes);
    eddy_file_head_write(&head, (unsigned char *)bytes);
    return head.file_bytes;
}

FILE_TEST(file, sizes_that_do_not_fit_the_text_are_refused, "forged.program") {
    static char bytes[FILE_BYTES_MOST];
    static const char text[] = "eddy program, version 1, 1 instructions\n"
                               "input x f32[2]\noutput y f32[2] of %1\ncaptured %0 68 bytes\n"
                               "%1 f32[2] = add(x f32[2], %0 f32[2] at 15)\n";
    static const char odd[] = "eddy program, version 1, 1 instructions\n"
                              "input x f32[2]\noutput y f32[2] of %1\ncaptured %0 70 bytes\n"
                              "%1 f32[2] = add(x f32[2], %0 f32[2] at 15)\n";
    static const char large[] = "eddy program, version 1, 1 instructions\n"
                                "input x f32[2]\noutput y f32[2] of %1\n"
                                "captured %0 4000000000000 bytes\n"
                                "%1 f32[2] = add(x f32[2], %0 f32[2] at 15)\n";
    static const char kept[] = "eddy program, version 1, 0 instructions\n"
                               "input x f32[2]\ngradient f32[2] of x\n";
    cr_assert(is_loaded(bytes, forge(bytes, text, 128, 1)));
    cr_assert_not(is_loaded(bytes, forge(bytes, text, 64, 1)));
    cr_assert_not(is_loaded(bytes, forge(bytes, text, 192, 1)));
    cr_assert_not(is_loaded(bytes, forge(bytes, text, 128, 2)));
    cr_assert_not(is_loaded(bytes, forge(bytes, text, 0, 0)));
    cr_assert_not(is_loaded(bytes, forge(bytes, odd, 128, 1)));
    cr_assert_not(is_loaded(bytes, forge(bytes, large, 128, 1)));
    cr_assert_not(is_loaded(bytes, forge(bytes, kept, 0, 0)));
    cr_assert_not(is_loaded(bytes, forge(bytes, text + 1, 128, 1)));
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
}

/* ---- memory ---- */

FILE_TEST(file, each_allocation_of_a_load_may_fail, "faults.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_rand(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    eddy_tensor *w = eddy_randn(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_tensor *all = eddy_zeros(EDDY_SHAPE(4, 2), EDDY_F32, NULL);
    eddy_requires_grad_set(w, true);
    eddy_program *program = record_step(x, w, all), *loaded = NULL;
    cr_assert_eq(eddy_program_save(program, path), EDDY_OK);
    int at = 0;
    for (; !loaded; at++) {
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, at, 1);
        loaded = eddy_program_load(path);
        cr_assert(loaded || eddy_memory_failures_injected() == 1, "allocation %d", at);
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        cr_assert_eq(eddy_error_take(NULL), loaded ? EDDY_OK : EDDY_OUT_OF_MEMORY, "%d", at);
    }
    cr_assert_gt(at, 30);
    expect_same_runs(program, loaded, EDDY_LIST(x));
    eddy_status status = EDDY_OUT_OF_MEMORY;
    for (at = 0; status != EDDY_OK; at++) {
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, at, 1);
        status = eddy_program_save(program, path);
        eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
        cr_assert_eq(eddy_error_take(NULL), status);
        cr_assert(status == EDDY_OK || status == EDDY_OUT_OF_MEMORY);
    }
    cr_assert_gt(at, 3);
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(eddy_sync_deleters(EDDY_FOREVER), EDDY_OK);
    eddy_trim(); /* what is kept for programs to come */
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
}

/* Who loads a program finds groups anew; constants are held, and compared with what they were when they were loaded. */
FILE_TEST(file, groups_and_constants_are_there_again, "groups.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(80, 64), EDDY_F32, NULL),
                *c = eddy_randn(EDDY_SHAPE(80, 64), EDDY_F32, NULL), *a, *b;
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_relu(eddy_mul(eddy_add_s(x, EDDY_S(0.5)), c));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"c", c, EDDY_ROLE_CONSTANT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_printed shown, saved;
    cr_assert(eddy_printed_make(&shown, program, EDDY_PRINT_READING) &&
              eddy_printed_make(&saved, program, EDDY_PRINT_CODE));
    cr_assert_not_null(strstr(shown.text, "\nfused {\n%0 f32[80, 64] = add_s("), "%s", shown.text);
    cr_assert_null(strstr(saved.text, "fused"));
    eddy_printed_fini(&shown);
    eddy_printed_fini(&saved);
    eddy_program *loaded = save_and_load(program);
    eddy_program_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_program_describe(loaded, &info), EDDY_OK);
    cr_assert(info.group_count == 1 && info.constant_count == 1 && info.instruction_count == 3);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &a), EDDY_OK);
    cr_assert_eq(eddy_program_run(loaded, EDDY_LIST(x), &b), EDDY_OK);
    cr_assert_eq(eddy_item_i64(eddy_equal(a, b), NULL), 1);
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* What was folded of it is no longer what the file would say. */
FILE_TEST(file, a_constant_that_was_written_is_not_saved, "written.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_error error;
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                *k = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_mul(x, k);
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"k", k, EDDY_ROLE_CONSTANT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_add_s_inplace(k, EDDY_S(1)), EDDY_OK);
    cr_assert_eq(eddy_program_save(program, path), EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message,
                     "program_save: constant k was written after the program was recorded");
    cr_assert_null(eddy_program_load(path)); /* nothing was written */
    eddy_error_take(NULL);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* What passes find to be unused when a program is loaded takes no memory. */
FILE_TEST(file, what_is_not_used_is_not_loaded, "unused.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL),
                *a = eddy_randn(EDDY_SHAPE(5), EDDY_F32, NULL),
                *b = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")), EDDY_OK);
    (void)eddy_exp(a);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_add(x, b), EDDY_ROLE_OUTPUT}));
    int64_t live = eddy_live_count();
    eddy_program *loaded = save_and_load(program);
    cr_assert_eq(eddy_live_count(), live + 1); /* b */
    expect_same_runs(program, loaded, EDDY_LIST(x));
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Views of an input without elements are the input's. */
FILE_TEST(file, an_input_without_elements_has_views, "empty.program") {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(5, 0), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_neg(eddy_transpose(x, 0, 1));
    cr_assert_eq(eddy_square_inplace(x), EDDY_OK);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_program_describe(program, &info), EDDY_OK);
    cr_assert_eq(info.captured_count, 0);
    eddy_program *loaded = save_and_load(program);
    expect_same_runs(program, loaded, EDDY_LIST(eddy_ones(EDDY_SHAPE(5, 0), EDDY_F32, NULL)));
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
