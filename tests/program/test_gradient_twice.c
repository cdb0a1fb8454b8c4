/* Gradients of gradients through runs: what eager calls give, also beside hooks, kept gradients and other passes; what is refused, and what is
 * left behind. That each op and random functions have the bits of calls: test_gradient_twice_ops.c, test_gradient_random.c. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define ROWS 2
#define COLUMNS 3
#define COUNT (ROWS * COLUMNS)

static void expect_part(eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

/* Elements that differ. */
static eddy_tensor *numbers(double first) {
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(first + 0.17 * i);
    return eddy_from_data(values, EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    float x[COUNT], y[COUNT];
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(*x);
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    must(eddy_read(a, x, bytes, NULL));
    must(eddy_read(b, y, bytes, NULL));
    cr_assert_arr_eq(x, y, bytes);
}

/* y = tanh(x w) w + x x, of a captured w. */
static eddy_tensor *compute(eddy_tensor *x, eddy_tensor *w) {
    return eddy_add(eddy_mul(eddy_tanh(eddy_mul(x, w)), w), eddy_square(x));
}

static eddy_program *record(eddy_tensor *w) {
    eddy_tensor *x = leaf(numbers(0));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = compute(x, w);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    return program;
}

/* By the program, or by calls where there is none. */
static eddy_tensor *result_of(eddy_program *program, eddy_tensor *x, eddy_tensor *w) {
    eddy_tensor *y = NULL;
    if (!program)
        return compute(x, w);
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    return y;
}

static eddy_status go_back(eddy_tensor *y, eddy_tensor *x, bool creates, eddy_tensor **gradient) {
    return eddy_backward_to(EDDY_LIST(all(eddy_square(y))), EDDY_LIST(x), (eddy_list){0},
                            EDDY_OPTIONS(backward, .creates_graph = creates), gradient);
}

static eddy_tensor *gradient_of(eddy_tensor *y, eddy_tensor *x) {
    eddy_tensor *gradient = NULL;
    must(go_back(y, x, true, &gradient));
    return gradient;
}

/* Two worlds: w is captured by the program of the first, and the second has calls. */
typedef struct pair {
    eddy_scope *scope;
    eddy_program *program;
    eddy_tensor *w[2], *x[2], *y[2];
} pair;

static pair begin(void) {
    pair p = {.scope = eddy_scope_begin()};
    for (int i = 0; i < 2; i++) {
        p.w[i] = leaf(numbers(0.5));
        p.x[i] = leaf(numbers(-0.3));
    }
    p.program = record(p.w[0]);
    for (int i = 0; i < 2; i++)
        p.y[i] = result_of(i == 0 ? p.program : NULL, p.x[i], p.w[i]);
    return p;
}

static void expect_same_grads(const pair *p) {
    expect_same(eddy_grad_of(p->w[0]), eddy_grad_of(p->w[1]));
    expect_same(eddy_grad_of(p->x[0]), eddy_grad_of(p->x[1]));
}

static void end(pair *p) {
    eddy_program_release(&p->program);
    expect_nothing_left(p->scope);
}

/* ---- the same as calls ---- */

Test(gradient_twice, a_gradient_penalty) {
    pair p = begin();
    for (int i = 0; i < 2; i++) {
        eddy_tensor *norm = eddy_sqrt(all(eddy_square(gradient_of(p.y[i], p.x[i]))));
        must(eddy_backward(eddy_add(eddy_square(eddy_sub_s(norm, EDDY_S(1))), all(p.y[i]))));
    }
    expect_same_grads(&p);
    end(&p);
}

Test(gradient_twice, passes_that_are_not_recorded_before_and_behind) {
    pair p = begin();
    for (int i = 0; i < 2; i++) {
        must(eddy_backward_from(EDDY_LIST(all(p.y[i])), (eddy_list){0},
                                EDDY_OPTIONS(backward, .keeps_graph = true)));
        eddy_tensor *gradient = gradient_of(p.y[i], p.x[i]);
        must(eddy_backward_from(EDDY_LIST(all(eddy_square(gradient))), (eddy_list){0},
                                EDDY_OPTIONS(backward, .keeps_graph = true)));
        must(eddy_backward(all(p.y[i])));
        cr_assert_eq(eddy_backward(all(eddy_square(gradient))), EDDY_INVALID_ARGUMENT);
        expect_part(EDDY_INVALID_ARGUMENT, "given up");
        cr_assert_eq(eddy_backward(all(p.y[i])), EDDY_INVALID_ARGUMENT);
        expect_part(EDDY_INVALID_ARGUMENT, "given up");
    }
    expect_same_grads(&p);
    end(&p);
}

Test(gradient_twice, a_run_that_was_gone_back_through) {
    pair p = begin();
    must(eddy_backward(all(p.y[0])));
    eddy_tensor *gradient = NULL;
    cr_assert_eq(go_back(p.y[0], p.x[0], true, &gradient), EDDY_INVALID_ARGUMENT);
    expect_part(EDDY_INVALID_ARGUMENT, "what program had saved was given up");
    cr_assert_null(gradient);
    end(&p);
}

/* The runs share w, and the second reads what the first gives. */
Test(gradient_twice, several_runs_before_one_pass) {
    pair p = begin();
    for (int i = 0; i < 2; i++) {
        eddy_program *program = i == 0 ? p.program : NULL;
        eddy_tensor *z = result_of(program, eddy_mul(p.y[i], p.x[i]), p.w[i]),
                    *other = result_of(program, p.x[i], p.w[i]);
        eddy_tensor *gradient = gradient_of(eddy_add(z, eddy_mul(other, p.y[i])), p.x[i]);
        must(eddy_backward(all(eddy_square(gradient))));
    }
    expect_same_grads(&p);
    end(&p);
}

static eddy_tensor *double_it(void *context, eddy_tensor *gradient) {
    ++*(int *)context;
    return eddy_mul_s(gradient, EDDY_S(2));
}

static void count_destroyed(void *context) {
    *(int *)context += 100;
}

/* A hook from before the pass that goes through the calls, and one from behind it. */
Test(gradient_twice, hooks_and_kept_gradients_of_an_output) {
    int counts[2][2] = {{0}};
    pair p = begin();
    for (int i = 0; i < 2; i++) {
        must(eddy_grad_keep(p.y[i]));
        must(eddy_grad_hook_add(p.y[i], double_it, &counts[i][0], count_destroyed));
        must(eddy_backward_from(EDDY_LIST(all(p.y[i])), (eddy_list){0},
                                EDDY_OPTIONS(backward, .keeps_graph = true)));
        cr_assert(eddy_has_grad(p.y[i]));
        eddy_tensor *gradient = gradient_of(p.y[i], p.x[i]);
        must(eddy_grad_hook_add(p.y[i], double_it, &counts[i][1], NULL));
        must(eddy_backward_from(EDDY_LIST(eddy_add(all(eddy_square(gradient)), all(p.y[i]))),
                                (eddy_list){0}, EDDY_OPTIONS(backward, .creates_graph = true)));
        cr_assert_eq(counts[i][0], 3, "%d", counts[i][0]);
        cr_assert_eq(counts[i][1], 1, "%d", counts[i][1]);
    }
    expect_same(eddy_grad_of(p.y[0]), eddy_grad_of(p.y[1]));
    expect_same_grads(&p);
    for (int i = 0; i < 2; i++) {
        must(eddy_grads_zero(EDDY_LIST(p.y[i])));
        cr_assert(!eddy_has_grad(p.y[i]));
        /* Or they hold themselves: gradients that are kept with their tape. */
        must(eddy_grads_zero(EDDY_LIST(p.x[i], p.w[i])));
    }
    end(&p);
    cr_assert_eq(counts[0][0], 103, "destroyed once");
    cr_assert_eq(counts[1][0], 103);
}

/* Of tanh: the gradients of the pass depend on the result that its node has saved, and on nothing else of the run's node. */
Test(gradient_twice, an_output_that_gradients_depend_on) {
    pair p = begin();
    eddy_tensor *x = leaf(numbers(0)), *y = NULL, *second[2];
    must(eddy_record_begin(NULL));
    eddy_program *program = NULL;
    y = eddy_tanh(x);
    program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(p.x[0]), &y));
        else
            y = eddy_tanh(p.x[1]);
        eddy_tensor *gradient = NULL;
        must(eddy_backward_to(EDDY_LIST(all(y)), EDDY_LIST(p.x[i]), (eddy_list){0},
                              EDDY_OPTIONS(backward, .creates_graph = true), &gradient));
        must(eddy_backward_to(EDDY_LIST(all(eddy_square(gradient))), EDDY_LIST(y), (eddy_list){0},
                              NULL, &second[i]));
        cr_assert_neq(second[i], EDDY_NONE);
    }
    expect_same(second[0], second[1]);
    eddy_program_release(&program);
    end(&p);
}

/* A pass gives up what the run has saved, though it goes through the calls. */
Test(gradient_twice, nothing_is_saved_behind_the_last_pass) {
    pair p = begin();
    int64_t counts[3];
    for (int i = 0; i < 3; i++) {
        eddy_tensor *y = result_of(p.program, p.x[0], p.w[0]);
        eddy_scope *scope = eddy_scope_begin();
        if (i == 1)
            must(eddy_backward(all(eddy_add(eddy_square(gradient_of(y, p.x[0])), y))));
        else
            must(eddy_backward(all(y)));
        eddy_scope_end(scope);
        counts[i] = eddy_live_count();
    }
    cr_assert_eq(counts[1] - counts[0], counts[2] - counts[1]);
    end(&p);
}

/* Two outputs, of which the second comes of the first. */
static eddy_program *record_two(eddy_tensor *w) {
    eddy_tensor *x = leaf(numbers(0));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = compute(x, w), *z = eddy_exp(eddy_mul(y, w));
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    return program;
}

Test(gradient_twice, outputs_that_lead_to_each_other) {
    pair p = begin();
    eddy_program *program = record_two(p.w[0]);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *yz[2] = {NULL}, *gradients[2];
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(p.x[0]), yz));
        else
            yz[1] = eddy_exp(eddy_mul(yz[0] = compute(p.x[1], p.w[1]), p.w[1]));
        /* The gradient of the inner output, too: all of it shows in a pass through the calls. */
        must(eddy_backward_to(EDDY_LIST(all(yz[1])), EDDY_LIST(yz[0], p.x[i]), (eddy_list){0},
                              EDDY_OPTIONS(backward, .creates_graph = true), gradients));
        must(eddy_backward(eddy_add(all(eddy_mul(gradients[0], yz[0])),
                                    all(eddy_square(eddy_add(gradients[1], yz[1]))))));
    }
    expect_same_grads(&p);
    eddy_program_release(&program);
    end(&p);
}

/* It goes back through the calls as soon as the hook is there. */
Test(gradient_twice, a_hook_of_an_output_that_leads_to_another) {
    int counts[2] = {0};
    pair p = begin();
    eddy_program *program = record_two(p.w[0]);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *yz[2] = {NULL};
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(p.x[0]), yz));
        else
            yz[1] = eddy_exp(eddy_mul(yz[0] = compute(p.x[1], p.w[1]), p.w[1]));
        must(eddy_grad_hook_add(yz[1], double_it, &counts[i], NULL));
        must(eddy_grad_hook_add(yz[0], double_it, &counts[i], NULL));
        must(eddy_grad_keep(yz[0]));
        must(eddy_backward(eddy_add(all(yz[1]), all(eddy_square(yz[0])))));
        cr_assert_eq(counts[i], 2);
        p.y[i] = yz[0];
    }
    expect_same(eddy_grad_of(p.y[0]), eddy_grad_of(p.y[1]));
    expect_same_grads(&p);
    eddy_program_release(&program);
    end(&p);
}

/* A view with an offset takes the place of the recorded input. */
Test(gradient_twice, inputs_that_are_views) {
    pair p = begin();
    for (int i = 0; i < 2; i++) {
        eddy_tensor *wide = eddy_cat(EDDY_LIST(numbers(7), eddy_mul_s(p.x[i], EDDY_S(2))), 0);
        eddy_tensor *x = eddy_narrow(wide, 0, ROWS, ROWS);
        eddy_tensor *y = result_of(i == 0 ? p.program : NULL, x, p.w[i]);
        must(eddy_backward(all(eddy_square(gradient_of(y, p.x[i])))));
    }
    expect_same_grads(&p);
    end(&p);
}

/* ---- branches ---- */

static eddy_status twice_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_mul_s(inputs.items[0], EDDY_S(2));
    return EDDY_OK;
}

static eddy_status square_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_square(inputs.items[0]);
    return EDDY_OK;
}

/* A branch on x, and in its first way one on w; h comes from outside, and goes into both ways. */
typedef struct world {
    eddy_tensor *w;
} world;

static eddy_status within(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const world *m = context;
    eddy_tensor *x = inputs.items[0], *y = NULL;
    eddy_status status = eddy_cond(eddy_gt_s(all(m->w), EDDY_S(0)), square_of, twice_of, NULL,
                                   EDDY_LIST(eddy_mul(x, m->w)), 1, NULL, &y);
    outputs[0] = status == EDDY_OK ? eddy_mul(eddy_tanh(y), x) : NULL;
    outputs[1] = eddy_exp(x);
    return status;
}

/* The second output has no gradient here. */
static eddy_status outside(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const world *m = context;
    outputs[0] = eddy_sigmoid(eddy_mul(inputs.items[0], eddy_square(m->w)));
    outputs[1] = eddy_detach(m->w);
    return EDDY_OK;
}

static eddy_tensor *branched(eddy_tensor *x, eddy_tensor *w) {
    world m = {w};
    eddy_tensor *h = eddy_mul(x, w), *y[2];
    must(eddy_cond(eddy_gt_s(all(x), EDDY_S(0)), within, outside, &m, EDDY_LIST(h), 2, NULL, y));
    return eddy_add(eddy_mul(y[0], h), y[1]);
}

/* Each run takes its way. */
Test(gradient_twice, branches) {
    pair p = begin();
    eddy_tensor *x = leaf(numbers(0));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = branched(x, p.w[0]);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 2; i++) {
            eddy_no_grad_begin();
            must(eddy_neg_inplace(p.w[i]));
            eddy_no_grad_end();
            p.x[i] = leaf(numbers(round < 2 ? 0.3 : -1.5));
            y = NULL;
            if (i == 0)
                must(eddy_program_run(program, EDDY_LIST(p.x[0]), &y));
            else
                y = branched(p.x[1], p.w[1]);
            must(eddy_backward(all(eddy_square(gradient_of(y, p.x[i])))));
        }
        expect_same_grads(&p);
    }
    eddy_program_release(&program);
    end(&p);
}

/* Nobody can say which way a run has taken whose predicate has an error. */
Test(gradient_twice, a_branch_whose_predicate_has_an_error) {
    pair p = begin();
    eddy_tensor *x = leaf(numbers(0)), *gradient = NULL;
    must(eddy_record_begin(NULL));
    eddy_tensor *y = branched(x, p.w[0]);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    eddy_tensor *bad =
        eddy_index_select(numbers(1), eddy_full(EDDY_SHAPE(ROWS), EDDY_S(9), EDDY_I64, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(eddy_mul(bad, p.x[0])), &y));
    cr_assert_eq(go_back(y, p.x[0], true, &gradient), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "program: creates_graph cannot go back through this run: the "
                                   "predicate of a branch, or the number of a loop's steps, "
                                   "cannot be read");
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    end(&p);
}

/* ---- recorded functions ---- */

/* exp(a b x x x x), of numbers that the run gives, and of elements that it draws. */
static eddy_tensor *scaled(eddy_tensor *x, eddy_scalar a, eddy_scalar b) {
    const eddy_scalar both[2] = {a, b};
    eddy_tensor *y = eddy_square(x);
    for (int i = 0; i < 2; i++) /* one place in the code, two numbers */
        y = eddy_mul(eddy_mul_s(y, both[i]), x);
    return eddy_dropout(eddy_exp(y), EDDY_S(0.5), NULL);
}

static eddy_status scales(void *context, eddy_recorded_call *call) {
    ++*(int *)context;
    call->outputs[0] = scaled(call->inputs.items[0], call->scalars[0], call->scalars[1]);
    return EDDY_OK;
}

Test(gradient_twice, given_and_drawn_numbers_are_those_of_the_run) {
    eddy_scope *scope = eddy_scope_begin();
    int calls = 0;
    eddy_recorded *recorded = eddy_recorded_create(scales, &calls, 1, NULL);
    for (int round = 0; round < 5; round++) {
        eddy_tensor *second[2];
        for (int i = 0; i < 2; i++) {
            eddy_tensor *x = leaf(numbers(0.4)), *y = NULL, *gradient;
            eddy_scalar numbers_given[2] = {EDDY_S(0.3 * (1 + round)), EDDY_S(2 + round)};
            must(eddy_seed(40 + (uint64_t)round));
            for (int k = 0; k < round; k++) /* the counter differs, too */
                eddy_rand(EDDY_SHAPE(2), EDDY_F32, NULL);
            if (i == 0)
                must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){numbers_given, 2},
                                       &y));
            else
                y = scaled(x, numbers_given[0], numbers_given[1]);
            gradient = gradient_of(y, x);
            must(eddy_backward_to(EDDY_LIST(all(eddy_square(gradient))), EDDY_LIST(x),
                                  (eddy_list){0}, NULL, &second[i]));
        }
        expect_same(second[0], second[1]);
    }
    cr_assert_eq(calls, 2, "%d: it was replayed", calls);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* The recorded calls are a pass with creates_graph themselves; runs are gone back through once, and twice. */
Test(gradient_twice, a_recording_that_takes_gradients_itself) {
    for (int records_only = 0; records_only < 2; records_only++) {
        pair p = begin();
        eddy_tensor *x = leaf(numbers(0));
        must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only == 1)));
        eddy_tensor *g = gradient_of(compute(x, p.w[0]), x);
        eddy_program *program = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"g", g, EDDY_ROLE_OUTPUT}));
        must(EDDY_OK);
        for (int i = 0; i < 2; i++) {
            g = NULL;
            if (i == 0)
                must(eddy_program_run(program, EDDY_LIST(p.x[0]), &g));
            else
                g = gradient_of(compute(p.x[1], p.w[1]), p.x[1]);
            must(eddy_backward_from(EDDY_LIST(all(g)), (eddy_list){0},
                                    EDDY_OPTIONS(backward, .keeps_graph = true)));
            must(eddy_backward(all(eddy_square(gradient_of(g, p.x[i])))));
        }
        expect_same_grads(&p);
        eddy_program_release(&program);
        end(&p);
    }
}

/* A pass through an earlier run belongs to a recording: its calls become instructions. */
Test(gradient_twice, a_pass_that_is_recorded_after_the_run) {
    pair p = begin();
    eddy_tensor *g[2], *again = NULL;
    must(eddy_record_begin(NULL));
    g[0] = eddy_mul(gradient_of(p.y[0], p.x[0]), p.w[0]);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"g", g[0], EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    g[1] = eddy_mul(gradient_of(p.y[1], p.x[1]), p.w[1]);
    expect_same(g[0], g[1]);
    must(eddy_program_run(program, (eddy_list){0}, &again));
    expect_same(again, g[1]);
    for (int i = 0; i < 2; i++)
        must(eddy_backward(all(eddy_square(g[i]))));
    expect_same_grads(&p);
    eddy_program_release(&program);
    end(&p);
}

/* ---- what fails ---- */

/* w is saved by the run. */
Test(gradient_twice, saved_tensors_that_are_overwritten) {
    for (int is_behind = 0; is_behind < 2; is_behind++) {
        pair p = begin();
        for (int i = 0; i < 2; i++) {
            eddy_tensor *gradient = is_behind ? gradient_of(p.y[i], p.x[i]) : NULL;
            eddy_no_grad_begin();
            must(eddy_mul_s_inplace(p.w[i], EDDY_S(2)));
            eddy_no_grad_end();
            eddy_status status = is_behind ? eddy_backward(all(eddy_square(gradient)))
                                           : go_back(p.y[i], p.x[i], true, &gradient);
            cr_assert_eq(status, EDDY_INVALID_ARGUMENT);
            expect_part(EDDY_INVALID_ARGUMENT, "was written to in place since");
        }
        end(&p);
    }
}

/* A recorded call writes in place to what the run has saved, and depends on the run: neither its node nor those of the calls hold
 * themselves. */
Test(gradient_twice, an_input_that_is_overwritten_by_what_depends_on_the_run) {
    for (int is_behind = 0; is_behind < 2; is_behind++) {
        pair p = begin();
        for (int i = 0; i < 4; i++) {
            bool is_made = i / 2; /* or it is the first handle of its memory */
            eddy_tensor *x = is_made ? eddy_clone(p.w[i % 2]) : numbers(0.1), *gradient = NULL;
            eddy_tensor *y = result_of(i % 2 == 0 ? p.program : NULL, x, p.w[i % 2]);
            if (is_behind)
                gradient = gradient_of(y, p.w[i % 2]);
            must(eddy_add_inplace(x, y));
            cr_assert_eq(is_behind ? eddy_backward(all(gradient))
                                   : go_back(y, p.w[i % 2], true, &gradient),
                         EDDY_INVALID_ARGUMENT);
            expect_part(EDDY_INVALID_ARGUMENT, "was written to in place since");
        }
        end(&p);
    }
}

static eddy_status cubed(eddy_tensor *x, eddy_tensor **y) {
    return eddy_function_call(&cube_function, NULL, EDDY_LIST(x), y);
}

/* What was recorded as one call. Passes that are not recorded go through the run, others as far as they do not lead there. */
static void expect_refused(eddy_status (*function)(eddy_tensor *x, eddy_tensor **y),
                           const char *reason) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = leaf(numbers(0.2)), *y = NULL, *gradient = NULL;
    must(eddy_record_begin(NULL));
    must(function(x, &y));
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    cr_assert_eq(go_back(y, x, true, &gradient), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, reason);
    cr_assert_null(gradient);
    eddy_tensor *other = leaf(numbers(1));
    must(eddy_backward_to(EDDY_LIST(all(eddy_add(y, eddy_square(other)))), EDDY_LIST(other),
                          (eddy_list){0}, EDDY_OPTIONS(backward, .creates_graph = true),
                          &gradient));
    must(go_back(y, x, false, &gradient));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_twice, calls_whose_gradient_has_none) {
    expect_refused(cubed, "program: creates_graph cannot go back through this run: user.cube was "
                          "recorded as one call, whose gradient has none");
}

/* An input with an error: gradients of gradients have it, as those of calls. */
Test(gradient_twice, errors_of_the_data) {
    pair p = begin();
    eddy_tensor *bad =
        eddy_index_select(numbers(1), eddy_full(EDDY_SHAPE(ROWS), EDDY_S(9), EDDY_I64, NULL), 0);
    eddy_error errors[2];
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = eddy_mul(bad, p.x[i]);
        eddy_tensor *y = result_of(i == 0 ? p.program : NULL, x, p.w[i]);
        must(eddy_backward(all(eddy_square(gradient_of(y, p.x[i])))));
        float values[COUNT];
        cr_assert_eq(eddy_read(eddy_grad_of(p.w[i]), values, sizeof(values), NULL),
                     EDDY_OUT_OF_RANGE);
        eddy_error_take(&errors[i]);
    }
    cr_assert_str_eq(errors[0].op, errors[1].op);
    cr_assert_str_eq(errors[0].message, errors[1].message);
    cr_assert_eq(errors[0].sequence, errors[1].sequence);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    end(&p);
}

/* ---- threads ---- */

typedef struct passing {
    eddy_tensor *y, *x;
    bool creates;
    double sum;
} passing;

static void *pass(void *context) {
    passing *p = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *gradient = NULL;
    must(eddy_backward_to(EDDY_LIST(all(p->y)), EDDY_LIST(p->x), (eddy_list){0},
                          EDDY_OPTIONS(backward, .keeps_graph = true, .creates_graph = p->creates),
                          &gradient));
    p->sum = sum_of(gradient);
    eddy_scope_end(scope);
    return NULL;
}

/* Of several passes through a run, one makes the nodes of its calls. */
Test(gradient_twice, threads_go_back_at_once) {
    pair p = begin();
    for (int round = 0; round < 200; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *y = result_of(p.program, p.x[0], p.w[0]);
        passing passings[4];
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            passings[i] = (passing){.y = y, .x = p.x[0], .creates = i % 2 == 0};
            cr_assert_eq(pthread_create(&threads[i], NULL, pass, &passings[i]), 0);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        for (int i = 1; i < 4; i++)
            cr_assert_eq(passings[i].sum, passings[0].sum);
        eddy_scope_end(scope);
    }
    end(&p);
}
