/* Calls that are recorded and do not run: the same program, and nothing else has happened. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/print.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>

#define LOST "it is the result of a call that was recorded and did not run"

static const eddy_record_options only = {.size = sizeof(only), .records_only = true};

static void expect_same_text(const eddy_program *a, const eddy_program *b) {
    eddy_printed first, second;
    cr_assert(eddy_printed_make(&first, a, EDDY_PRINT_READING) &&
              eddy_printed_make(&second, b, EDDY_PRINT_READING));
    cr_assert_str_eq(second.text, first.text);
    eddy_printed_fini(&first);
    eddy_printed_fini(&second);
}

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(bindings);
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    return program;
}

typedef struct model {
    eddy_tensor *w, *momentum, *x;
} model;

static void make_model(model *m) {
    eddy_seed(5);
    m->w = eddy_randn(EDDY_SHAPE(8, 8), EDDY_F32, NULL);
    m->momentum = eddy_zeros(EDDY_SHAPE(8, 8), EDDY_F32, NULL);
    m->x = eddy_randn(EDDY_SHAPE(4, 8), EDDY_F32, NULL);
    eddy_requires_grad_set(m->w, true);
}

/* A step of training, with draws, gradients that are kept, and writes in place. */
static eddy_tensor *step(const model *m) {
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    eddy_tensor *y = eddy_dropout(eddy_relu(eddy_matmul(m->x, m->w)), EDDY_S(0.5), NULL);
    eddy_tensor *loss = eddy_mean(eddy_square(y), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    must(eddy_add_into(m->momentum, eddy_grad_of(m->w), m->momentum));
    must(eddy_sub_into(m->w, eddy_mul_s(m->momentum, EDDY_S(0.1)), m->w));
    eddy_no_grad_end();
    return eddy_detach(loss);
}

static eddy_program *record_step(const model *m, const eddy_record_options *options,
                                 eddy_tensor **loss) {
    must(eddy_record_begin(options));
    *loss = step(m);
    return end(EDDY_BINDINGS({"w", m->w, EDDY_ROLE_STATE}, {"x", m->x, EDDY_ROLE_INPUT},
                             {"momentum", m->momentum, EDDY_ROLE_STATE},
                             {"loss", *loss, EDDY_ROLE_OUTPUT}));
}

Test(records_only, a_step_of_training_is_the_same_program_and_has_not_happened) {
    eddy_scope *scope = eddy_scope_begin();
    model ran, noted;
    eddy_tensor *loss, *lost;
    make_model(&ran);
    make_model(&noted);
    /* A gradient that is there, and a pass that still needs w as it is. */
    must(eddy_backward(eddy_sum(noted.w, EDDY_ALL_AXES, NULL)));
    eddy_tensor *kept = eddy_grad_of(noted.w);
    eddy_tensor *later = eddy_sum(eddy_square(noted.w), EDDY_ALL_AXES, NULL);
    double sum = sum_of(noted.w);
    uint64_t seeds[2], counters[2];
    eddy_generator_state(eddy_generator_default(), &seeds[0], &counters[0]);
    eddy_program *second = record_step(&noted, &only, &lost);
    eddy_generator_state(eddy_generator_default(), &seeds[1], &counters[1]);
    cr_assert(seeds[0] == seeds[1] && counters[0] == counters[1]);
    cr_assert_eq(sum_of(noted.w), sum);
    cr_assert_eq(sum_of(noted.momentum), 0);
    cr_assert_eq(sum_of(eddy_grad_of(noted.w)), 64);
    cr_assert_eq(sum_of(kept), 64);
    must(eddy_grads_zero(EDDY_LIST(noted.w)));
    must(eddy_backward(later)); /* finds w unwritten */
    must(eddy_sync(EDDY_FOREVER));
    eddy_program *first = record_step(&ran, NULL, &loss);
    expect_same_text(first, second);
    /* Both go on from the same state. */
    eddy_seed(9);
    must(eddy_program_run(first, EDDY_LIST(ran.x), &loss));
    make_model(&ran);
    eddy_seed(9);
    must(eddy_program_run(second, EDDY_LIST(noted.x), &lost));
    eddy_seed(9);
    loss = step(&ran);
    cr_assert_eq(sum_of(lost), sum_of(loss));
    cr_assert_eq(sum_of(noted.w), sum_of(ran.w));
    cr_assert_eq(sum_of(eddy_grad_of(noted.w)), sum_of(eddy_grad_of(ran.w)));
    eddy_program_release(&first);
    eddy_program_release(&second);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(records_only, no_memory_is_taken) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_counters before = {.size = sizeof(before)}, after = before;
    must(eddy_counters_read(&before));
    must(eddy_record_begin(&only));
    /* Each fits into memory, all together do not. */
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(INT64_C(1) << 31), EDDY_F32, NULL), *y = x;
    for (int i = 0; i < 64; i++)
        y = eddy_add_s(eddy_mul(y, x), EDDY_S(1));
    must(eddy_add_into(y, x, y));
    eddy_program *program = end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_counters_read(&after));
    cr_assert_eq(after.bytes_peak, before.bytes_peak);
    cr_assert_eq(after.submitted, before.submitted + 1, "the record of the error alone");
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.recorded_count, 130);
    cr_assert_geq(info.arena_bytes, INT64_C(1) << 33);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(records_only, what_did_not_run_has_no_elements) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
    float values[3];
    must(eddy_record_begin(&only));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2)), *view = eddy_narrow(y, 0, 1, 2);
    cr_assert_eq(eddy_read(y, values, sizeof(values), NULL), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, LOST);
    cr_assert_eq(eddy_read(x, values, sizeof(values), NULL), EDDY_OK);
    cr_assert_null(eddy_nonzero(x));
    expect_error(EDDY_UNSUPPORTED, "nonzero: the shape of its result depends on its data, and the "
                                   "recording does not run its calls (f32[3])");
    eddy_record_cancel();
    cr_assert_eq(eddy_read(view, values, 2 * sizeof(*values), NULL), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, LOST);
    cr_assert_null(eddy_map(y, EDDY_READ, EDDY_FOREVER));
    expect_error(EDDY_UNSUPPORTED, LOST);
    /* It goes on to what uses it, and is seen already. */
    eddy_tensor *z = eddy_add(y, x);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_read(z, values, sizeof(values), NULL), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, LOST);
    /* What is written whole has elements. */
    must(eddy_copy_into(x, y));
    cr_assert_eq(sum_of(y), 3);
    cr_assert_eq(sum_of(view), 2);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(records_only, a_tensor_that_was_there_belongs_to_its_own_tape_again) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
    eddy_requires_grad_set(w, true);
    eddy_tensor *h = eddy_mul_s(w, EDDY_S(2));
    must(eddy_record_begin(&only));
    must(eddy_mul_s_inplace(h, EDDY_S(7)));
    eddy_record_cancel();
    must(eddy_backward(eddy_sum(h, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(eddy_grad_of(w)), 6, "2 for each element, and no 7");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(records_only, a_backward_program_is_the_same) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *programs[2];
    for (int i = 0; i < 2; i++) {
        model m;
        make_model(&m);
        must(eddy_record_begin(i ? &only : NULL));
        eddy_tensor *y = eddy_gelu(eddy_matmul(m.x, m.w), NULL);
        programs[i] = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(programs[i]);
        eddy_tensor *result;
        must(eddy_program_run(programs[i], EDDY_LIST(m.x), &result));
        must(eddy_backward(eddy_sum(result, EDDY_ALL_AXES, NULL)));
        eddy_tensor *replayed = eddy_grad_of(m.w);
        eddy_requires_grad_set(m.w, true);
        must(eddy_grads_zero(EDDY_LIST(m.w)));
        must(eddy_backward(eddy_sum(eddy_gelu(eddy_matmul(m.x, m.w), NULL), EDDY_ALL_AXES, NULL)));
        cr_assert_eq(sum_of(replayed), sum_of(eddy_grad_of(m.w)));
    }
    expect_same_text(programs[0], programs[1]);
    eddy_program_release(&programs[0]);
    eddy_program_release(&programs[1]);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(records_only, eddy_call_appends) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *y, *z, *result;
    must(eddy_record_begin(&only));
    must(eddy_call("mul", EDDY_LIST(x, x), NULL, &y));
    must(eddy_call("add", EDDY_LIST(y, x), NULL, &z));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(eddy_full(EDDY_SHAPE(3), EDDY_S(2.0), EDDY_F32, NULL)),
                          &result));
    cr_assert_eq(sum_of(result), 18);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void write_fortran(const char *path) {
    const char head[] = "\x93NUMPY\x01\x00\x36\x00"
                        "{'descr':'<f4','fortran_order':True,'shape':(2, 2),}";
    const float elements[] = {1, 2, 3, 4};
    char whole[10 + 54];
    memset(whole, ' ', sizeof(whole));
    memcpy(whole, head, sizeof(head) - 1);
    whole[sizeof(whole) - 1] = '\n';
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(whole, sizeof(whole), 1, file), 1);
    cr_assert_eq(fwrite(elements, sizeof(elements), 1, file), 1);
    cr_assert_eq(fclose(file), 0);
}

/* Reads that convert, and files of tensors whose elements are not in a row, take ops of the library's own. */
Test(records_only, reads_and_files_leave_nothing_in_the_program) {
    static const float values[] = {1, 2, 3, 4};
    for (int k = 0; k < 2; k++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(2, 2), EDDY_F32, NULL);
        eddy_tensor *turned = eddy_transpose(x, 0, 1);
        double read[4];
        write_fortran("fortran.npy");
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none", .records_only = k == 1)));
        must(eddy_read_as(turned, EDDY_F64, read, sizeof(read), NULL));
        cr_assert_eq(read[1], 3);
        must(eddy_npy_save(turned, "turned.npy", NULL));
        eddy_tensor *loaded = eddy_npy_load("turned.npy"), *fortran = eddy_npy_load("fortran.npy");
        must_have_same_bits(loaded, eddy_npy_load("fortran.npy"), "what was saved turned");
        eddy_tensor *y = eddy_mul(x, eddy_add(loaded, fortran)), *result;
        eddy_program *program =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"loaded", loaded, EDDY_ROLE_INPUT},
                              {"fortran", fortran, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(program, &info));
        cr_assert_eq(info.recorded_count, 2);
        must(eddy_program_run(program, EDDY_LIST(x, x, x), &result));
        cr_assert_eq(sum_of(result), 2 * (1 + 4 + 9 + 16));
        cr_assert_eq(remove("turned.npy") + remove("fortran.npy"), 0);
        eddy_program_release(&program);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_live_count(), 0);
    }
}
