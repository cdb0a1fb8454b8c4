/* The pass `move`: copies whose source is written where they would put it, with the bits and the errors of the copies. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/print.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

static const eddy_record_options moves = {.size = sizeof(moves), .passes = "move"};

static void expect_code(const eddy_program *program, const char *code) {
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    const char *at = strstr(printed.text, "\n%");
    cr_assert_not_null(at);
    cr_assert_str_eq(at + 1, code);
    eddy_printed_fini(&printed);
}

Test(move, a_step_of_a_loop_is_computed_in_place) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(16), *y, *out;
    must(eddy_record_begin(&moves));
    must(eddy_while(is_large, half, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    expect_code(program, "%0 f32[3] = clone(x f32[3])\n"
                         "loop(most_steps = 0)\n"
                         "%1 f32[] = sum(%0 f32[3], axes = [0], keeps_dims = false)\n"
                         "%2 bool[] = gt_s(%1 f32[], b = 4.0)\n"
                         "loop_while(%2 bool[])\n"
                         "put %0 f32[3] = mul_s(%0 f32[3], b = 0.5)\n"
                         "7: end_loop()\n");
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-move-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(loaded);
    must(eddy_program_run(program, EDDY_LIST(of(100)), &out));
    cr_assert_eq(sum_of(out), 300.0 / 128);
    must(eddy_program_run(loaded, EDDY_LIST(of(100)), &out));
    cr_assert_eq(sum_of(out), 300.0 / 128);
    eddy_program_release(&loaded);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(move, both_ways_of_a_branch_write_what_it_gives) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(16), *p = truth(true), *y, *out;
    must(eddy_record_begin(&moves));
    must(eddy_cond(p, half, twice, NULL, EDDY_LIST(x), 1, NULL, &y));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"p", p, EDDY_ROLE_INPUT},
                                              {"y", y, EDDY_ROLE_OUTPUT}));
    expect_code(program, "%0 f32[3] = mul_s(x f32[3], b = 0.5)\n"
                         "3: else()\n"
                         "set %0 f32[3] = mul_s(x f32[3], b = 2.0)\n"
                         "6: end_if()\n");
    must(eddy_program_run(program, EDDY_LIST(x, truth(false)), &out));
    cr_assert_eq(sum_of(out), 96);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What stands in the way of each: the copies stay. */
Test(move, what_is_used_otherwise_is_copied) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(2), *state = of(1), *state2 = of(1),
                *state3 = eddy_ones(EDDY_SHAPE(3, 3), EDDY_F32, NULL);
    eddy_tensor *square = eddy_ones(EDDY_SHAPE(3, 3), EDDY_F32, NULL);
    must(eddy_record_begin(&moves));
    eddy_tensor *used_twice = eddy_mul_s(x, EDDY_S(3));
    must(eddy_copy_into(used_twice, state));
    eddy_tensor *y = eddy_neg(used_twice);
    eddy_tensor *between = eddy_mul_s(x, EDDY_S(5));
    eddy_tensor *z = eddy_add(state2, x); /* reads the target between the two */
    must(eddy_copy_into(between, state2));
    must(eddy_copy_into(eddy_matmul(state3, state3), state3)); /* its maker reads the target */
    must(eddy_copy_into(eddy_t(eddy_mul_s(square, EDDY_S(2))), square)); /* other strides */
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                          {"state2", state2, EDDY_ROLE_STATE}, {"state3", state3, EDDY_ROLE_STATE},
                          {"square", square, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT},
                          {"z", z, EDDY_ROLE_OUTPUT}));
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.instruction_count, info.recorded_count);
    eddy_tensor *out[2];
    must(eddy_program_run(program, EDDY_LIST(of(4)), out));
    cr_assert_eq(sum_of(out[0]), -36);
    cr_assert_eq(sum_of(out[1]), 3 * (10 + 4));
    cr_assert_eq(sum_of(state), 36);
    cr_assert_eq(sum_of(state2), 60);
    cr_assert_eq(sum_of(state3), 9 * 27);
    cr_assert_eq(sum_of(square), 36);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A target that its maker reads is lost with an error, as the copy would leave it, and healed by none. */
Test(move, errors_are_those_of_the_copy) {
    for (int is_moved = 0; is_moved < 2; is_moved++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *index = eddy_full(EDDY_SHAPE(3), EDDY_S(0), EDDY_I64, NULL), *x = of(1), *out;
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = is_moved ? "move" : "none")));
        eddy_tensor *made = eddy_mul_s(x, EDDY_S(2));
        must(eddy_copy_into(eddy_mul(made, eddy_index_select(x, index, 0)), made));
        eddy_program *program =
            end(EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"made", made, EDDY_ROLE_OUTPUT}));
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(program, &info));
        cr_assert_eq(info.instruction_count, is_moved ? 3 : 4);
        must(eddy_program_run(program, EDDY_LIST(index), &out));
        cr_assert_eq(sum_of(out), 6);
        must(eddy_program_run(
            program, EDDY_LIST(eddy_full(EDDY_SHAPE(3), EDDY_S(9), EDDY_I64, NULL)), &out));
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OUT_OF_RANGE, "lost, and not skipped");
        eddy_error_take(NULL);
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}
