/* Inputs whose memory a run takes. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/runtime.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/heard.h>
#include <tests/program/outcome.h>
#include <tests/program/runtimes.h>
#include <unistd.h>

#define ROWS 8
#define COLUMNS 32
#define COUNT (ROWS * COLUMNS)

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(ROWS, COLUMNS), EDDY_S(value), EDDY_F32, NULL);
}

/* h = x^2, gone within the run; y = h w, sum = that of h */
static eddy_program *make_with(eddy_role role, const char *passes) {
    eddy_tensor *x = filled(1), *w = eddy_ones(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_F32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *h = eddy_square(x), *y = eddy_matmul(h, w);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, role}, {"y", y, EDDY_ROLE_OUTPUT},
                                      {"sum", eddy_sum(h, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static eddy_program *make(void) {
    return make_with(EDDY_ROLE_DONATED, NULL);
}

static void must_be_donated(eddy_tensor *tensor) {
    cr_assert_eq(eddy_wait(tensor, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "the tensor was donated to a run of a program, as its input x");
}

static int64_t arena_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.arena_bytes;
}

/* ---- what becomes of it ---- */

static void donate(void) {
    eddy_program *program = make();
    for (int i = 1; i < 4; i++) {
        eddy_tensor *x = filled(i), *view = eddy_t(x), *before = eddy_neg(x), *outputs[2];
        must(eddy_program_run(program, EDDY_LIST(x), outputs));
        eddy_tensor *after = eddy_neg(view);
        cr_assert_eq(sum_of(outputs[0]), (double)COUNT * COLUMNS * i * i);
        cr_assert_eq(eddy_item_f64(outputs[1], NULL), COUNT * i * i);
        must_be_donated(x);
        must_be_donated(view);
        must_be_donated(after);
        cr_assert_eq(sum_of(before), -COUNT * i, "what was issued before has the elements");
        must(eddy_copy_into(filled(7), x));
        cr_assert_eq(sum_of(view), 7 * COUNT, "a write of all of it takes memory anew");
        must(eddy_program_run(program, EDDY_LIST(x), outputs));
        cr_assert_eq(sum_of(outputs[1]), 49 * COUNT);
        must_be_donated(x);
    }
    must(eddy_sync(EDDY_FOREVER));
    eddy_program_release(&program);
}

Test(donated, the_tensor_is_gone_once_the_run_is_over) {
    in_runtimes(donate);
}

static void wait_for_lend(void) {
    eddy_program *program = make();
    eddy_tensor *x = filled(2), *outputs[2];
    const float *mapped = eddy_map(x, EDDY_READ, EDDY_FOREVER);
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    cr_assert_eq(eddy_wait(outputs[0], 0), EDDY_TIMED_OUT);
    eddy_error_take(NULL);
    cr_assert_eq(mapped[COUNT - 1], 2);
    must(eddy_unmap(x));
    cr_assert_eq(eddy_item_f64(outputs[1], NULL), 4 * COUNT);
    must_be_donated(x);
    eddy_program_release(&program);
}

Test(donated, a_run_waits_for_a_lend) {
    in_runtimes(wait_for_lend);
}

static int64_t bytes_live(void) {
    must(eddy_sync(EDDY_FOREVER));
    return eddy_vm_counters_read(eddy_runtime_current()->vm).bytes_live;
}

static void give_back(void) {
    enum { BIG = 1 << 18 };
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(BIG), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *sum = eddy_sum(x, EDDY_ALL_AXES, NULL);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", sum, EDDY_ROLE_OUTPUT}));
    eddy_tensor *given = eddy_ones(EDDY_SHAPE(BIG), EDDY_F32, NULL), *y;
    int64_t before = bytes_live();
    must(eddy_program_run(program, EDDY_LIST(given), &y));
    cr_assert_leq(bytes_live(), before - BIG * (int64_t)sizeof(float) / 2);
    cr_assert_eq(eddy_item_f64(y, NULL), BIG);
    must_be_donated(given);
    eddy_program_release(&program);
}

Test(donated, its_memory_goes_back_though_it_is_held) {
    in_runtimes(give_back);
}

/* ---- passes ---- */

Test(donated, a_run_computes_in_its_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *kept = make_with(EDDY_ROLE_INPUT, "place"),
                 *donated = make_with(EDDY_ROLE_DONATED, "place"),
                 *apart = make_with(EDDY_ROLE_DONATED, "none");
    int64_t bytes = COUNT * (int64_t)sizeof(float);
    cr_assert_geq(arena_of(kept), bytes);
    cr_assert_eq(arena_of(donated), arena_of(kept) - bytes);
    cr_assert_eq(arena_of(apart), arena_of(kept));
    eddy_program *const programs[] = {kept, donated, apart};
    for (int i = 0; i < 3; i++) {
        eddy_tensor *x = filled(3), *outputs[2];
        must(eddy_program_run(programs[i], EDDY_LIST(x), outputs));
        cr_assert_eq(sum_of(outputs[0]), 9.0 * COUNT * COLUMNS);
        cr_assert_eq(sum_of(outputs[1]), 9.0 * COUNT);
        if (i == 0)
            cr_assert_eq(sum_of(x), 3 * COUNT, "an input stays what it is");
        else
            must_be_donated(x);
        eddy_program_release(&(eddy_program *){programs[i]});
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_gt_s(inputs.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* (count, a) -> (count - 1, a + x^2): the last use of x in the text is the first of many. */
static eddy_status add_square(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *const *x = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add(inputs.items[1], eddy_square(*x));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

Test(donated, steps_of_a_loop_find_it_as_it_was) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(3), *count = eddy_full(EDDY_SHAPE(), EDDY_S(4), EDDY_I64, NULL),
                *outputs[2], *y;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "place")));
    must(eddy_while(is_left, add_square, &x, EDDY_LIST(count, filled(0)), NULL, outputs));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", outputs[1], EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_tensor *given = filled(2);
    must(eddy_program_run(program, EDDY_LIST(given), &y));
    cr_assert_eq(sum_of(y), 4 * 4 * COUNT);
    must_be_donated(given);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- refusals ---- */

static void refuse(void) {
    eddy_tensor *x = filled(1), *other = filled(2), *held = filled(3);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add(eddy_mul(x, other), held);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED},
                                                          {"other", other, EDDY_ROLE_INPUT},
                                                          {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_tensor *given = filled(5),
                *large = eddy_zeros(EDDY_SHAPE(2 * ROWS, COLUMNS), EDDY_F32, NULL), *out = NULL;
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(given, given), &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: input x shares its memory with other, and is donated");
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(held, other), &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: input x shares its memory with a captured tensor, and is donated");
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(given, other), EDDY_LIST(given)),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "program_run_into: input x shares its memory with the "
                                        "target of output y, and is donated");
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(eddy_narrow(large, 0, 0, ROWS), other), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: input x is donated, and is given a part of a larger tensor");
    static float memory[COUNT];
    eddy_tensor *borrowed =
        eddy_from_buffer(memory, EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL, NULL, NULL);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(borrowed, other), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: input x is donated, and is given memory that Eddy has borrowed");
    eddy_tensor *leaf = filled(1);
    must(eddy_requires_grad_set(leaf, true));
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(leaf, other), &out), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: input x requires a gradient, which cannot follow into it; between "
                 "no_grad_begin and _end that is allowed");
    cr_assert_eq(sum_of(leaf), COUNT, "nothing has changed");
    cr_assert_eq(sum_of(given), 5 * COUNT);
    cr_assert_eq(sum_of(held), 3 * COUNT);
    cr_assert_null(out);
    eddy_no_grad_begin();
    must(eddy_program_run(program, EDDY_LIST(leaf, other), &out));
    eddy_no_grad_end();
    must_be_donated(leaf);
    cr_assert_eq(sum_of(out), 5 * COUNT);
    cr_assert_eq(eddy_program_run_batches(
                     program, EDDY_LIST(filled(1), eddy_cat(EDDY_LIST(other, other), 0)), &out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "program_run_batches: input x is donated, and can be given "
                                        "to one run alone, not to 2");
    eddy_tensor *alone = filled(2);
    must(eddy_program_run_batches(program, EDDY_LIST(alone, other), &out));
    cr_assert_eq(sum_of(out), 7 * COUNT);
    must_be_donated(alone);
    eddy_program_release(&program);
}

Test(donated, what_cannot_be_given_is_refused_and_left_as_it_is) {
    in_runtimes(refuse);
}

Test(donated, a_recording_that_needs_it_later_becomes_no_program) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_neg(x);
    cr_assert_null(eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", eddy_t(x), EDDY_ROLE_OUTPUT})));
    expect_error(EDDY_INVALID_ARGUMENT, "record_end: y is a donated input, or a part of one, which "
                                        "is gone behind a run");
    must(eddy_record_begin(NULL));
    eddy_tensor *late = eddy_nonzero(x);
    cr_assert_null(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", late, EDDY_ROLE_OUTPUT})));
    expect_error(
        EDDY_UNSUPPORTED,
        "record_end: nonzero is called behind each run, and reads a donated input, which is "
        "gone then");
    must(eddy_requires_grad_set(x, true));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_square(x);
    cr_assert_null(eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT})));
    expect_error(EDDY_UNSUPPORTED, "record_end_with_grad: x is donated, and a program whose "
                                   "outputs carry gradients keeps its inputs for them");
    eddy_scope_end(scope);
}

/* ---- failures ---- */

static void fail_late(void) {
    eddy_program *program = make();
    eddy_tensor *i = eddy_full(EDDY_SHAPE(ROWS), EDDY_S(99), EDDY_I64, NULL);
    eddy_tensor *bad = eddy_index_select(filled(1), i, 0), *outputs[2];
    must(eddy_program_run(program, EDDY_LIST(bad), outputs));
    cr_assert_eq(eddy_wait(outputs[0], EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    must_be_donated(bad);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_tensor *x = filled(2);
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    cr_assert_eq(sum_of(outputs[1]), 4 * COUNT);
    eddy_tensor *gone = x;
    must(eddy_program_run(program, EDDY_LIST(gone), outputs));
    cr_assert_eq(eddy_wait(outputs[1], EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "the tensor was donated to a run of a program, as its input x");
    eddy_program_release(&program);
}

Test(donated, errors_go_on_to_the_outputs_and_it_is_gone_all_the_same) {
    in_runtimes(fail_late);
}

/* What the tape has saved of it is no longer there. */
static void go_back(void) {
    eddy_program *program = make();
    eddy_tensor *w = filled(2), *x = filled(3), *outputs[2];
    must(eddy_requires_grad_set(w, true));
    eddy_tensor *loss = eddy_sum(eddy_mul(w, x), EDDY_ALL_AXES, NULL);
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    cr_assert_neq(eddy_backward(loss), EDDY_OK);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "was written to in place since"), "%s", error.message);
    must_be_donated(x);
    eddy_program_release(&program);
}

Test(donated, a_backward_pass_that_saved_it_fails) {
    in_runtimes(go_back);
}

/* ---- by name, as text, from a file ---- */

static void name(void) {
    eddy_program *program = make();
    eddy_tensor *x = filled(2), *sum = NULL;
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"sum", &sum}), NULL));
    cr_assert_eq(sum_of(sum), 4 * COUNT);
    must_be_donated(x);
    x = filled(3);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES(), NULL));
    must_be_donated(x);
    float elements[COUNT];
    for (int i = 0; i < COUNT; i++)
        elements[i] = 5;
    must(eddy_program_run_named(
        program, EDDY_FEEDS(), EDDY_FETCHES({"sum", &sum}),
        EDDY_OPTIONS(
            program_run_named,
            .data = EDDY_DATA_FEEDS({"x", elements, EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL}))));
    cr_assert_eq(sum_of(sum), 25 * COUNT);
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    must(eddy_tensor_store_set(store, "x", filled(1)));
    cr_assert_eq(eddy_program_run_named(program, EDDY_FEEDS(), EDDY_FETCHES(),
                                        EDDY_OPTIONS(program_run_named, .store = store)),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run_named: input x is not given: it is donated, and comes from no store");
    cr_assert_eq(sum_of(eddy_tensor_store_get(store, "x")), COUNT);
    eddy_tensor_store_release(&store);
    eddy_program_release(&program);
}

Test(donated, by_name) {
    in_runtimes(name);
}

static void print_to(const eddy_program *program, char *text, size_t size, bool shows_plan) {
    FILE *file = fmemopen(text, size, "w");
    must(eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = shows_plan)));
    fclose(file);
}

Test(donated, it_stands_in_text_and_files) {
    eddy_scope *scope = eddy_scope_begin();
    char path[64], text[8192] = "", again[8192] = "";
    snprintf(path, sizeof(path), "/tmp/eddy-donated-%ld.program", (long)getpid());
    eddy_program *program = make_with(EDDY_ROLE_DONATED, "place");
    print_to(program, text, sizeof(text), false);
    cr_assert_not_null(strstr(text, "donated x f32[8, 32]\n"), "%s", text);
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    must(loaded ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    print_to(loaded, again, sizeof(again), false);
    cr_assert_str_eq(text, again);
    cr_assert_eq(arena_of(loaded), arena_of(program));
    print_to(program, again, sizeof(again), true);
    cr_assert_not_null(strstr(again, "; x + 0, x + 0;"), "%s", again);
    eddy_program_binding_info info = {.size = sizeof(info)};
    must(eddy_program_binding_describe(loaded, 0, &info));
    cr_assert_eq(info.role, EDDY_ROLE_DONATED);
    cr_assert_eq(info.number, 0);
    cr_assert_eq(eddy_program_input(loaded, "x"), 0);
    eddy_tensor *x = filled(2), *outputs[2];
    must(eddy_program_run(loaded, EDDY_LIST(x), outputs));
    cr_assert_eq(sum_of(outputs[1]), 4 * COUNT);
    must_be_donated(x);
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    unlink(path);
}

/* Programs that differ in nothing else share no executable. */
Test(donated, an_input_that_stays_is_not_written_by_a_program_that_is_like_a_donated_one) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *donated = make_with(EDDY_ROLE_DONATED, "place"),
                 *kept = make_with(EDDY_ROLE_INPUT, "place");
    eddy_tensor *x = filled(3), *outputs[2];
    must(eddy_program_run(kept, EDDY_LIST(x), outputs));
    cr_assert_eq(sum_of(x), 3 * COUNT);
    eddy_program_release(&donated);
    eddy_program_release(&kept);
    eddy_scope_end(scope);
}

/* A ring gives back what a donated input had. */
static void rotate(void) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_output_ring *ring = eddy_output_ring_create(program, 1);
    x = filled(1);
    for (int i = 0; i < 6; i++) {
        eddy_tensor *given = x;
        must(eddy_output_ring_run(ring, EDDY_LIST(given), &x));
        cr_assert_eq(eddy_wait(given, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
        eddy_error_take(NULL);
    }
    cr_assert_eq(sum_of(x), 64 * COUNT);
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
}

Test(donated, to_the_run_of_a_ring_that_makes_it_old) {
    in_runtimes(rotate);
}

/* ---- callbacks ---- */

static void read_by_callback(void) {
    eddy_tensor *x = filled(1), *given = filled(3);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *y = eddy_sum(eddy_square(x), EDDY_ALL_AXES, NULL);
    listen_to(eddy_narrow(eddy_select(x, 1, 0), 0, 0, 1), 7);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_program_run(program, EDDY_LIST(given), &y));
    cr_assert_eq(value_heard(settle(), 0), 3);
    must_be_donated(given);
    eddy_program_release(&program);
}

/* The run copies what a callback reads, while it is there. */
Test(donated, callbacks_get_a_copy) {
    in_runtimes(read_by_callback);
}
