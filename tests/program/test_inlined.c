/* Runs that are recorded: a program that has others as its parts does what their runs in a row do. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <eddy/recorded.h>
#include <program/program.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/inlined.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>
#include <unistd.h>

static int64_t instructions_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.instruction_count;
}

/* Its file: what is read is verified, each access too. */
static eddy_program *reload(const eddy_program *program) {
    char path[] = "/tmp/eddy-inlined-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    must(EDDY_OK);
    unlink(path);
    return loaded;
}

/* ---- what is read and written ---- */

/* One after the other, on each other's outputs and on those of calls, as one program: in the recording that runs, and in the one that only records. */
Test(inlined, programs_in_a_row_are_one) {
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *b = line(5, 3), *x = of(0.5), *given = line(-1, 3);
        eddy_program *affine = make_affine(b);
        begin(records_only);
        eddy_tensor *y = run(affine, EDDY_LIST(eddy_neg(run(affine, EDDY_LIST(eddy_exp(x))))));
        eddy_program *both =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        eddy_tensor *wanted =
            run(affine, EDDY_LIST(eddy_neg(run(affine, EDDY_LIST(eddy_exp(given))))));
        must_have_same_bits(run(both, EDDY_LIST(given)), wanted, "one program");
        /* What is captured stays a tensor that is read anew. */
        must(eddy_copy_into(line(-2, 3), b));
        wanted = run(affine, EDDY_LIST(eddy_neg(run(affine, EDDY_LIST(eddy_exp(given))))));
        eddy_program_release(&affine);
        must_have_same_bits(run(both, EDDY_LIST(given)), wanted, "captured");
        cr_assert_eq(instructions_of(both), 2 * 3 + 2);
        cr_assert_eq(recorded_of(both), 2 * (3 + 1) + 2, "a run has a number of its own");
        eddy_program_release(&both);
        expect_nothing_left(scope);
    }
}

/* Adds row 1 of a matrix, as an input, to the state, and gives a view of the state. */
static eddy_program *make_adder(eddy_tensor *state) {
    eddy_tensor *row = of(1);
    begin(false);
    must(eddy_add_into(state, row, state));
    return end(EDDY_BINDINGS({"row", row, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                             {"sum", state, EDDY_ROLE_OUTPUT}));
}

/* Parts of tensors that are there, state of its own and state that is given, and targets. */
Test(inlined, inputs_state_and_targets_are_what_was_given) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *matrix = eddy_reshape(line(0, 12), EDDY_SHAPE(4, 3));
    eddy_tensor *state = of(100), *other = of(1000), *target = of(7), *sum;
    eddy_program *adder = make_adder(state), *affine = make_affine(of(1));
    begin(false);
    (void)eddy_neg(target);
    must(eddy_program_run(adder, EDDY_LIST(eddy_select(matrix, 0, 2)), &sum));
    must(eddy_program_run_named(adder,
                                EDDY_FEEDS({"row", eddy_select(matrix, 0, 3)}, {"state", other}),
                                (eddy_fetches){0}, NULL));
    must(eddy_program_run_into(affine, EDDY_LIST(other), EDDY_LIST(target)));
    eddy_tensor *last = eddy_add(target, state);
    eddy_program *both =
        end(EDDY_BINDINGS({"matrix", matrix, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                          {"other", other, EDDY_ROLE_STATE}, {"target", target, EDDY_ROLE_STATE},
                          {"last", last, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(state), 303 + 6 + 7 + 8);
    cr_assert_eq(sum_of(other), 3000 + 9 + 10 + 11);
    cr_assert_eq(sum_of(target), 3 * 3);
    must(eddy_copy_into(of(0), target));
    eddy_tensor *tens = eddy_full(EDDY_SHAPE(4, 3), EDDY_S(10), EDDY_F32, NULL);
    cr_assert_eq(sum_of(run(both, EDDY_LIST(tens))), 9 + 303 + 21 + 30);
    cr_assert_eq(sum_of(state), 303 + 21 + 30);
    cr_assert_eq(sum_of(other), 3000 + 30 + 30);
    cr_assert_eq(sum_of(target), 9);
    eddy_program *loaded = reload(both);
    cr_assert_eq(sum_of(run(loaded, EDDY_LIST(tens))), 9 + 303 + 21 + 60);
    eddy_program_release(&loaded);
    eddy_program_release(&adder);
    eddy_program_release(&affine);
    eddy_program_release(&both);
    expect_nothing_left(scope);
}

/* What is written whole heals, as the run does: of an input that is all of its storage, and of a target. */
Test(inlined, errors_are_healed_where_a_run_heals_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *to = of(0), *target = of(0), *rows = of(0);
    begin(false);
    must(eddy_copy_into(x, to));
    eddy_program *copy = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"to", to, EDDY_ROLE_INPUT}));
    eddy_program *affine = make_affine(of(1));
    begin(false);
    must(eddy_program_run(copy, EDDY_LIST(x, rows), NULL));
    must(eddy_program_run_into(affine, EDDY_LIST(x), EDDY_LIST(target)));
    eddy_program *both =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_STATE},
                          {"target", target, EDDY_ROLE_STATE}));
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(3), EDDY_S(9), EDDY_I64, NULL);
    must(eddy_copy_into(eddy_index_select(of(0), beyond, 0), rows));
    must(eddy_copy_into(eddy_index_select(of(0), beyond, 0), target));
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    must(eddy_program_run(both, EDDY_LIST(of(2)), NULL));
    cr_assert_eq(sum_of(rows), 6);
    must(eddy_wait(target, EDDY_FOREVER));
    eddy_tensor *lost = eddy_index_select(of(0), beyond, 0); /* it has no memory either */
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    must(eddy_program_run_named(both, EDDY_FEEDS({"x", of(3)}, {"target", lost}), (eddy_fetches){0},
                                NULL));
    must_have_same_bits(lost, run(affine, EDDY_LIST(of(3))), "a target without memory");
    eddy_program_release(&copy);
    eddy_program_release(&affine);
    eddy_program_release(&both);
    expect_nothing_left(scope);
}

/* A row of a storage that has others: what was all of an input is a part of what it was given. */
Test(inlined, a_part_of_a_tensor_leaves_the_rest) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *to = of(0), *matrix = eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    begin(false);
    must(eddy_copy_into(x, to));
    eddy_program *copy = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"to", to, EDDY_ROLE_INPUT}));
    begin(true);
    eddy_tensor *made = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(5), EDDY_F32, NULL);
    must(eddy_program_run(copy, EDDY_LIST(x, eddy_select(made, 0, 1)), NULL));
    must(eddy_program_run(copy, EDDY_LIST(x, eddy_select(matrix, 0, 0)), NULL));
    eddy_program *both =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"matrix", matrix, EDDY_ROLE_STATE},
                          {"made", made, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(matrix), 0, "nothing has run");
    cr_assert_eq(sum_of(run(both, EDDY_LIST(of(2)))), 15 + 6);
    cr_assert_eq(sum_of(matrix), 6);
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL);
    must(eddy_copy_into(eddy_index_select(matrix, beyond, 0), matrix));
    must(eddy_program_run(both, EDDY_LIST(of(2)), &made));
    cr_assert_eq(eddy_wait(matrix, EDDY_FOREVER), EDDY_OUT_OF_RANGE, "the other row is lost");
    (void)eddy_error_take(NULL);
    eddy_program_release(&copy);
    eddy_program_release(&both);
    expect_nothing_left(scope);
}

/* A feed set of its own, micro-batches, a store: as runs do. */
Test(inlined, runs_by_name_and_in_batches_are_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *rows = eddy_reshape(line(0, 12), EDDY_SHAPE(4, 3)), *parts, *low;
    eddy_tensor *batch = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    begin(false);
    eddy_program *two =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"low", eddy_tanh(x), EDDY_ROLE_OUTPUT},
                          {"high", eddy_exp(x), EDDY_ROLE_OUTPUT}));
    begin(false);
    eddy_tensor *squares = eddy_square(batch);
    eddy_program *square = end(
        EDDY_BINDINGS({"batch", batch, EDDY_ROLE_INPUT}, {"squares", squares, EDDY_ROLE_OUTPUT}));
    begin(false);
    must(eddy_program_run_batches(square, EDDY_LIST(rows), &parts));
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    must(eddy_tensor_store_set(store, "x", x));
    must(eddy_program_run_named(two, (eddy_feeds){0}, EDDY_FETCHES({"low", &low}),
                                EDDY_OPTIONS(program_run_named, .store = store)));
    cr_assert_eq(eddy_program_run_named(two, EDDY_FEEDS({"x", x}), (eddy_fetches){0},
                                        EDDY_OPTIONS(program_run_named, .output_store = store)),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program_run_named: it cannot be recorded, since no run would "
                                   "set the store again: fetch the outputs");
    eddy_program *both =
        end(EDDY_BINDINGS({"rows", rows, EDDY_ROLE_INPUT}, {"x", x, EDDY_ROLE_INPUT},
                          {"parts", parts, EDDY_ROLE_OUTPUT}, {"low", low, EDDY_ROLE_OUTPUT}));
    eddy_tensor *given = eddy_reshape(line(3, 12), EDDY_SHAPE(4, 3)), *outputs[2];
    must(eddy_program_run(both, EDDY_LIST(given, of(0.25)), outputs));
    must_have_same_bits(outputs[0], eddy_square(given), "batches");
    must_have_same_bits(outputs[1], eddy_tanh(of(0.25)), "one output");
    eddy_tensor_store_release(&store);
    eddy_program_release(&two);
    eddy_program_release(&square);
    eddy_program_release(&both);
    expect_nothing_left(scope);
}

/* ---- constants ---- */

/* What depends on a constant was folded: the program around it looks at it at each run, too, through any number of programs. */
Test(inlined, constants_of_inner_programs_stay_constants) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *w = of(2);
    begin(false);
    eddy_tensor *y = eddy_mul(x, eddy_exp(w));
    eddy_program *inner = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_CONSTANT},
                                            {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(instructions_of(inner), 1);
    eddy_tensor *wanted = run(inner, EDDY_LIST(of(3)));
    for (int i = 0; i < 2; i++) {
        begin(i);
        y = run(inner, EDDY_LIST(x));
        eddy_program *outer =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                              {"z", eddy_neg(y), EDDY_ROLE_OUTPUT}));
        eddy_program_release(&inner);
        inner = outer;
        eddy_tensor *outputs[2];
        must(eddy_program_run_named(outer, EDDY_FEEDS({"x", of(3)}),
                                    EDDY_FETCHES({"y", &outputs[0]}), NULL));
        must_have_same_bits(outputs[0], wanted, "folded");
        begin(false);
        must(eddy_program_run_named(outer, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &y}), NULL));
        inner = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        eddy_program_release(&outer);
    }
    must_have_same_bits(run(inner, EDDY_LIST(of(3))), wanted, "folded");
    must(eddy_copy_into(of(1), w));
    cr_assert_eq(eddy_program_run(inner, EDDY_LIST(x), &y), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run: constant w was written after the program was recorded");
    eddy_program_release(&inner);
    expect_nothing_left(scope);
}

/* A program for some outputs is made while the recording is open: what it folds is no part of that. */
Test(inlined, folding_is_not_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *w = of(2), *y;
    begin(false);
    y = eddy_mul(x, eddy_exp(w));
    eddy_program *inner =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_CONSTANT},
                          {"y", y, EDDY_ROLE_OUTPUT}, {"z", eddy_tanh(x), EDDY_ROLE_OUTPUT}));
    eddy_tensor *wanted = eddy_mul(of(3), eddy_exp(w));
    begin(false);
    must(eddy_program_run_named(inner, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &y}), NULL));
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(recorded_of(outer), recorded_of(inner) + 1);
    cr_assert_eq(instructions_of(outer), 1);
    must_have_same_bits(run(outer, EDDY_LIST(of(3))), wanted, "folded");
    eddy_program_release(&inner);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* A program is held once, however often it is run. */
Test(inlined, a_program_that_is_run_again_and_again_is_held_once) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *w = of(2), *y = x;
    begin(true);
    eddy_program *inner = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_CONSTANT},
                                            {"y", eddy_minimum(x, eddy_exp(w)), EDDY_ROLE_OUTPUT}));
    begin(true);
    for (int i = 0; i < 3000; i++)
        y = run(inner, EDDY_LIST(y));
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(outer->inner.count, 1);
    cr_assert_eq(sum_of(run(outer, EDDY_LIST(of(-1)))), -3);
    eddy_program_release(&inner);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* What was folded is not there to be given, and whoever writes a constant makes each run fail: both are said when the recording ends. */
Test(inlined, constants_of_inner_programs_have_no_other_role) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *c = of(2), *y;
    begin(true);
    y = eddy_add(eddy_mul(x, c), eddy_mul_s(c, EDDY_S(100)));
    eddy_program *inner = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"c", c, EDDY_ROLE_CONSTANT},
                                            {"y", y, EDDY_ROLE_OUTPUT}));
    for (int role = 0; role < 2; role++) {
        begin(true);
        y = run(inner, EDDY_LIST(x));
        cr_assert_null(eddy_record_end(EDDY_BINDINGS(
            {"x", x, EDDY_ROLE_INPUT}, {"c", c, role ? EDDY_ROLE_STATE : EDDY_ROLE_INPUT},
            {"y", y, EDDY_ROLE_OUTPUT})));
        expect_error(EDDY_INVALID_ARGUMENT,
                     "record_end: c is constant c of a program that was run in "
                     "the recording: it is a constant here, too");
    }
    begin(true);
    y = run(inner, EDDY_LIST(x));
    must(eddy_add_into(c, x, c));
    cr_assert_null(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
    expect_error(EDDY_INVALID_ARGUMENT,
                 "record_end: a recorded call writes constant c of a program that was run in the "
                 "recording");
    begin(true);
    y = run(inner, EDDY_LIST(x));
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"c", c, EDDY_ROLE_CONSTANT},
                                            {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(run(outer, EDDY_LIST(of(3)))), 3 * (6 + 200));
    eddy_program_release(&inner);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* State that the inner program replaces in place is an input of the outer one: parts of larger tensors too, and from a file. */
Test(inlined, state_within_is_an_input_outside) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *s = of(3), *x = of(1);
    begin(true);
    must(eddy_copy_into(eddy_neg(s), s));
    eddy_program *inner = end(EDDY_BINDINGS({"s", s, EDDY_ROLE_STATE}));
    begin(true);
    must(eddy_program_run_named(inner, EDDY_FEEDS({"s", x}), (eddy_fetches){0}, NULL));
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    eddy_program *loaded = reload(outer);
    eddy_program *const both[] = {outer, loaded};
    for (int i = 0; i < 2; i++) {
        eddy_tensor *matrix = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(5), EDDY_F32, NULL),
                    *whole = of(5);
        must(eddy_program_run(both[i], EDDY_LIST(eddy_select(matrix, 0, 1)), NULL));
        must(eddy_program_run(both[i], EDDY_LIST(whole), NULL));
        cr_assert_eq(sum_of(matrix), 0);
        cr_assert_eq(sum_of(whole), -15);
        eddy_tensor *beyond = eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL);
        must(eddy_copy_into(eddy_index_select(matrix, beyond, 0), matrix));
        must(eddy_program_run(both[i], EDDY_LIST(eddy_select(matrix, 0, 1)), NULL));
        cr_assert_eq(eddy_wait(matrix, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
        (void)eddy_sync(EDDY_FOREVER);
        (void)eddy_error_take(NULL);
    }
    eddy_program_release(&inner);
    eddy_program_release(&outer);
    eddy_program_release(&loaded);
    expect_nothing_left(scope);
}

/* ---- random numbers ---- */

/* Draws come in the order of the calls; gradients in the program, and behind it, use those of their own. */
static eddy_tensor *draws(eddy_program *program, eddy_tensor *x) {
    eddy_tensor *before = eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL);
    eddy_tensor *within = program ? run(program, EDDY_LIST(x)) : eddy_dropout(x, EDDY_S(0.5), NULL);
    return eddy_add(eddy_add(before, within), eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL));
}

Test(inlined, draws_are_those_of_the_calls) {
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = of(1);
        begin(false);
        eddy_tensor *y = eddy_dropout(x, EDDY_S(0.5), NULL);
        eddy_program *program =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        begin(records_only);
        y = draws(program, x);
        eddy_program *outer =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        for (int i = 0; i < 8; i++) {
            must(eddy_seed(17 + (uint64_t)i));
            eddy_tensor *wanted = draws(NULL, of(i)),
                        *next = eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL);
            must(eddy_seed(17 + (uint64_t)i));
            must_have_same_bits(run(outer, EDDY_LIST(of(i))), wanted, "draws");
            must_have_same_bits(eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL), next, "generator");
        }
        eddy_program_release(&program);
        eddy_program_release(&outer);
        expect_nothing_left(scope);
    }
}

/* ---- branches and loops ---- */

static eddy_status halved(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs,
                eddy_add(eddy_mul_s(inputs.items[0], EDDY_S(0.5)),
                         eddy_mul_s(eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL), EDDY_S(0.01))));
}

static eddy_tensor *looped(eddy_tensor *x) {
    eddy_tensor *given;
    must(eddy_while(is_large, halved, NULL, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 9),
                    &given));
    return given;
}

static eddy_status by_program(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return eddy_program_run(context, inputs, outputs);
}

/* A loop in a program, that program in a way of a branch, and all that in a loop of another program. */
Test(inlined, marks_lie_within_marks) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y;
    begin(false);
    y = looped(x);
    eddy_program *loop = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    begin(false);
    eddy_tensor *first = run(loop, EDDY_LIST(x));
    must(eddy_cond(eddy_gt_s(eddy_max(x, EDDY_ALL_AXES, NULL), EDDY_S(10)), by_program, twice, loop,
                   EDDY_LIST(x), 1, NULL, &y));
    y = eddy_add(eddy_add(first, y), eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL));
    eddy_program *branch =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < 6; i++) {
        eddy_tensor *given = of(i * 7);
        must(eddy_seed(3));
        eddy_tensor *wanted = looped(given);
        wanted = eddy_add(wanted, i * 7 > 10 ? looped(given) : eddy_mul_s(given, EDDY_S(2)));
        wanted = eddy_add(wanted, eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL));
        must(eddy_seed(3));
        must_have_same_bits(run(branch, EDDY_LIST(given)), wanted, "way and steps");
    }
    eddy_program_release(&loop);
    eddy_program_release(&branch);
    expect_nothing_left(scope);
}

/* ---- gradients ---- */

/* tanh(x w), with dropout; w is captured and wants a gradient. */
static eddy_tensor *layer(eddy_tensor *x, eddy_tensor *w) {
    return eddy_dropout(eddy_tanh(eddy_mul(x, w)), EDDY_S(0.5), NULL);
}

static eddy_program *make_layer(eddy_tensor *w) {
    eddy_tensor *x = leaf(of(1));
    begin(false);
    eddy_tensor *y = layer(x, w);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    return program;
}

static eddy_tensor *train(eddy_program *program, eddy_tensor *x, eddy_tensor *w) {
    eddy_tensor *y = x;
    must(eddy_grads_zero(EDDY_LIST(w)));
    for (int i = 0; i < 2; i++)
        y = program ? run(program, EDDY_LIST(y)) : layer(y, w);
    eddy_tensor *loss = all(eddy_square(y));
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    must(eddy_sub_into(w, eddy_mul_s(eddy_grad_of(w), EDDY_S(0.5)), w));
    eddy_no_grad_end();
    return eddy_detach(loss);
}

/* A step of training around a program with gradients, twice in it: each gradient goes back with the numbers of its own run. */
Test(inlined, a_recorded_pass_goes_back_through_a_recorded_run) {
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *w = leaf(line(0.5, 3)), *own = leaf(line(0.5, 3)), *x = of(1);
        eddy_program *program = make_layer(w);
        must(eddy_seed(9));
        begin(records_only);
        eddy_tensor *loss = train(program, x, w);
        eddy_program *step = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE},
                                               {"loss", loss, EDDY_ROLE_OUTPUT}));
        eddy_program_release(&program);
        if (!records_only) {
            must(eddy_seed(9));
            must_have_same_bits(loss, train(NULL, x, own), "the recorded step");
        }
        for (int i = 0; i < 5; i++) {
            must(eddy_seed((uint64_t)i));
            eddy_tensor *wanted = train(NULL, of(i), own);
            must(eddy_seed((uint64_t)i));
            must_have_same_bits(run(step, EDDY_LIST(of(i))), wanted, "loss");
            must_have_same_bits(w, own, "weight");
            must_have_same_bits(eddy_grad_of(w), eddy_grad_of(own), "gradient");
        }
        eddy_program_release(&step);
        expect_nothing_left(scope);
    }
}

/* The program around it has gradients of its own, and of these again. */
Test(inlined, gradients_go_back_through_the_program_around_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(line(0.5, 3)), *own = leaf(line(0.5, 3)), *x = leaf(of(1));
    eddy_program *program = make_layer(w);
    begin(false);
    eddy_tensor *y = eddy_sin(run(program, EDDY_LIST(eddy_exp(x))));
    eddy_program *outer = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    eddy_program_release(&program);
    for (int twice = 0; twice < 2; twice++) {
        eddy_tensor *given = leaf(line(-0.25, 3)), *same = leaf(line(-0.25, 3)), *found[2],
                    *wanted[2];
        eddy_backward_options options = {.size = sizeof(options), .creates_graph = twice};
        for (int k = 0; k < 2; k++) {
            must(eddy_seed(4));
            eddy_tensor *from =
                k ? run(outer, EDDY_LIST(given)) : eddy_sin(layer(eddy_exp(same), own));
            eddy_list to = k ? EDDY_LIST(given, w) : EDDY_LIST(same, own);
            eddy_tensor **results = k ? found : wanted;
            must(eddy_backward_to(EDDY_LIST(all(from)), to, (eddy_list){0}, &options, results));
            if (twice)
                must(eddy_backward_to(EDDY_LIST(all(eddy_mul(results[0], results[1]))), to,
                                      (eddy_list){0}, NULL, results));
        }
        must_have_same_bits(found[0], wanted[0], "input");
        must_have_same_bits(found[1], wanted[1], "weight");
    }
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* A step that keeps gradients itself, within another program. */
Test(inlined, kept_gradients_are_left_as_a_run_leaves_them) {
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *w = leaf(line(0.5, 3)), *own = leaf(line(0.5, 3)), *x = of(1);
        begin(false);
        eddy_tensor *loss = train(NULL, x, w);
        eddy_program *step = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE},
                                               {"loss", loss, EDDY_ROLE_OUTPUT}));
        must(eddy_copy_into(eddy_detach(own), eddy_detach(w)));
        begin(records_only);
        must(eddy_program_run_named(step, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"loss", &loss}),
                                    NULL));
        eddy_tensor *norm = all(eddy_square(eddy_grad_of(w)));
        eddy_program *outer =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"norm", norm, EDDY_ROLE_OUTPUT}));
        must(eddy_copy_into(eddy_detach(own), eddy_detach(w)));
        for (int i = 0; i < 3; i++) {
            must(eddy_seed((uint64_t)i));
            (void)train(NULL, of(i), own);
            must(eddy_seed((uint64_t)i));
            must_have_same_bits(run(outer, EDDY_LIST(of(i))), all(eddy_square(eddy_grad_of(own))),
                                "norm");
            must_have_same_bits(eddy_grad_of(w), eddy_grad_of(own), "gradient");
            must_have_same_bits(eddy_detach(w), eddy_detach(own), "weight");
        }
        eddy_program_release(&step);
        eddy_program_release(&outer);
        expect_nothing_left(scope);
    }
}

static eddy_status by_layer(void *context, eddy_recorded_call *call) {
    call->outputs[0] = run(context, call->inputs);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* A recorded function with such a run is replayed as it was recorded: with gradients or without. */
Test(inlined, recorded_functions_know_whether_gradients_go_back) {
    for (int first = 0; first < 2; first++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *w = leaf(line(0.5, 3)), *y;
        eddy_program *program = make_layer(w);
        eddy_recorded *recorded = eddy_recorded_create(by_layer, program, 1, NULL);
        for (int i = 0; i < 10; i++) {
            bool has_gradient = i < 4 ? first : i % 2;
            if (!has_gradient)
                eddy_no_grad_begin();
            must(eddy_recorded_run(recorded, EDDY_LIST(of(i)), (eddy_scalars){0}, &y));
            if (!has_gradient)
                eddy_no_grad_end();
            cr_assert_eq(eddy_requires_grad(y), has_gradient, "call %d", i);
            if (!has_gradient)
                continue;
            must(eddy_grads_zero(EDDY_LIST(w)));
            must(eddy_backward(all(y)));
            cr_assert_not_null(eddy_grad_of(w));
        }
        eddy_recorded_release(&recorded);
        eddy_program_release(&program);
        expect_nothing_left(scope);
    }
}

typedef struct repeated {
    eddy_program *program; /* NULL: the calls */
    eddy_tensor *w;
} repeated;

static eddy_status counts_down(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status repeats(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const repeated *r = context;
    eddy_tensor *x = inputs.items[1];
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return done(outputs + 1, r->program ? run(r->program, EDDY_LIST(x)) : layer(x, r->w));
}

static eddy_tensor *repeat(repeated *r, eddy_tensor *x, int64_t steps) {
    eddy_tensor *given[2], *count = eddy_full((eddy_shape){0}, EDDY_S(steps), EDDY_I64, NULL);
    must(eddy_grads_zero(EDDY_LIST(r->w)));
    must(eddy_while(counts_down, repeats, r, EDDY_LIST(count, x),
                    EDDY_OPTIONS(while, .most_steps = 4), given));
    must(eddy_backward(all(eddy_square(given[1]))));
    return eddy_detach(eddy_grad_of(r->w));
}

/* In a loop whose gradient is recorded, too: each step keeps what its run has saved and drawn. */
Test(inlined, gradients_go_back_through_runs_in_a_loop) {
    for (int records_only = 0; records_only < 2; records_only++) {
        eddy_scope *scope = eddy_scope_begin();
        repeated r = {.w = leaf(line(0.5, 3))}, calls = {.w = leaf(line(0.5, 3))};
        eddy_tensor *x = of(1);
        r.program = make_layer(r.w);
        begin(records_only);
        eddy_tensor *gradient = repeat(&r, x, 3);
        eddy_program *outer =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"gradient", gradient, EDDY_ROLE_OUTPUT}));
        eddy_program_release(&r.program);
        for (int i = 0; i < 3; i++) {
            must(eddy_seed((uint64_t)i));
            eddy_tensor *wanted = repeat(&calls, of(i), 3);
            must(eddy_seed((uint64_t)i));
            must_have_same_bits(run(outer, EDDY_LIST(of(i))), wanted, "gradient");
        }
        eddy_program_release(&outer);
        expect_nothing_left(scope);
    }
}

static eddy_status shrink(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return done(outputs, eddy_mul(inputs.items[0], context));
}

/* Which way is taken each run decides: the calls that gradients go back through are not known. */
Test(inlined, gradients_do_not_go_back_through_ways) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(of(0.5)), *x = leaf(of(1)), *y;
    begin(false);
    must(eddy_cond(eddy_gt_s(all(eddy_detach(x)), EDDY_S(10)), shrink, twice, w, EDDY_LIST(x), 1,
                   NULL, &y));
    eddy_program *branch = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    begin(false);
    cr_assert_eq(eddy_program_run(branch, EDDY_LIST(x), &y), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "program_run: gradients cannot go back through its branches and loops in a "
                 "recording; run it between no_grad_begin and _end");
    eddy_no_grad_begin();
    y = run(branch, EDDY_LIST(x));
    eddy_no_grad_end();
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(sum_of(run(outer, EDDY_LIST(of(1)))), 6);
    cr_assert_eq(sum_of(run(outer, EDDY_LIST(of(4)))), 6);
    eddy_program_release(&branch);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

/* ---- what else may be part of it ---- */

/* Outputs of late shape: refused where nothing runs, with nothing done. */
Test(inlined, late_shapes_are_given_out) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *indices;
    begin(false);
    indices = eddy_nonzero(eddy_relu(x));
    eddy_program *find =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"indices", indices, EDDY_ROLE_OUTPUT}));
    begin(true);
    cr_assert_eq(eddy_program_run(find, EDDY_LIST(x), &indices), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program_run: the shape of an output depends on data, and the "
                                   "recording does not run its calls");
    eddy_record_cancel();
    begin(false);
    indices = run(find, EDDY_LIST(eddy_neg(x)));
    eddy_program *outer =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"indices", indices, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_count_of(run(outer, EDDY_LIST(line(-2, 3)))), 2);
    cr_assert_eq(eddy_count_of(run(outer, EDDY_LIST(line(1, 3)))), 0);
    eddy_program_release(&find);
    eddy_program_release(&outer);
    expect_nothing_left(scope);
}

static void count_sum(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    const float *values = data;
    double *sum = context;
    cr_assert(!error || error->status == EDDY_OK);
    cr_assert_eq(bytes, 3 * (int64_t)sizeof(*values));
    *sum += values[0] + values[1] + values[2];
}

static double settled(const double *sum) {
    must(eddy_sync(EDDY_FOREVER));
    return *sum;
}

/* Callbacks come with each run of the program around it, and in the recording where that runs. */
Test(inlined, callbacks_come_with_each_run) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y;
    double sum = 0;
    begin(true);
    y = eddy_square(x);
    must(eddy_read_async(y, count_sum, &sum));
    eddy_program *inner = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(settled(&sum), 0);
    for (int records_only = 0; records_only < 2; records_only++) {
        sum = 0;
        begin(records_only);
        y = run(inner, EDDY_LIST(eddy_neg(x)));
        eddy_program *outer =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_exp(y), EDDY_ROLE_OUTPUT}));
        cr_assert_eq(settled(&sum), records_only ? 0 : 3);
        (void)run(outer, EDDY_LIST(of(2)));
        (void)run(outer, EDDY_LIST(of(3)));
        cr_assert_eq(settled(&sum), (records_only ? 0 : 3) + 12 + 27);
        eddy_program_release(&outer);
    }
    begin(false);
    cr_assert_eq(eddy_cond(truth(true), by_program, twice, inner, EDDY_LIST(x), 1, NULL, &y),
                 EDDY_UNSUPPORTED);
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "program_run: it cannot be recorded"), "%s",
                       error.message);
    eddy_record_cancel();
    eddy_program_release(&inner);
    expect_nothing_left(scope);
}

static eddy_status by_two(void *context, eddy_recorded_call *call) {
    eddy_program *program = context;
    call->outputs[0] =
        eddy_mul_s(run(program, EDDY_LIST(eddy_neg(call->inputs.items[0]))), call->scalars[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* A recorded function that runs a program is replayed, and a file of what it is in holds all of it. */
Test(inlined, functions_and_files_have_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *b = line(5, 3), *x = of(1), *y;
    eddy_program *affine = make_affine(b);
    eddy_recorded *recorded = eddy_recorded_create(by_two, affine, 1, NULL);
    for (int i = 0; i < 5; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(of(i)), EDDY_SCALARS(EDDY_S(i)), &y));
        must_have_same_bits(y, eddy_mul_s(run(affine, EDDY_LIST(eddy_neg(of(i)))), EDDY_S(i)),
                            "recorded");
    }
    expect_explained(recorded, "ran 2 times, replayed 3 times");
    eddy_recorded_release(&recorded);
    begin(false);
    y = eddy_neg(run(affine, EDDY_LIST(x)));
    eddy_program *outer = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program *loaded = reload(outer);
    begin(true); /* and what was loaded is a part again */
    y = run(loaded, EDDY_LIST(x));
    eddy_program *last = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must_have_same_bits(run(last, EDDY_LIST(of(0.5))), run(outer, EDDY_LIST(of(0.5))), "loaded");
    eddy_program_release(&affine);
    eddy_program_release(&outer);
    eddy_program_release(&loaded);
    eddy_program_release(&last);
    expect_nothing_left(scope);
}
