/* Recorded functions of many sizes within a larger model: replays that follow from those of two sizes, and gradients that go back through them. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define WIDE 4
#define OUTPUTS_MOST 6

/* ---- functions ---- */

typedef struct model {
    eddy_tensor *w, *row; /* leaves */
    int calls;
} model;

/* A layer, with a number and a draw. */
static eddy_status layer(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *y = eddy_tanh(eddy_linear(call->inputs.items[0], m->w, m->row));
    call->outputs[0] = eddy_dropout(eddy_mul_s(y, call->scalars[0]), EDDY_S(0.25), NULL);
    return EDDY_OK;
}

/* The second output is computed from the first, which is divided by the count. */
static eddy_status two(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_sub(x, eddy_mean(eddy_mul(x, m->row), EDDY_AXES(0), NULL));
    call->outputs[1] = eddy_softmax(eddy_linear(call->outputs[0], m->w, EDDY_NONE), 0);
    return EDDY_OK;
}

/* Parts from behind, rows in turn, a row for all of them. */
static eddy_status moves(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0];
    int64_t count = eddy_dim_of(x, 0);
    eddy_tensor *y =
        eddy_cat(EDDY_LIST(eddy_narrow(x, 0, 2, count - 2), eddy_narrow(x, 0, 0, 2)), 0);
    y = eddy_mul(y,
                 eddy_expand(eddy_reshape(m->row, EDDY_SHAPE(1, WIDE)), EDDY_SHAPE(count, WIDE)));
    y = eddy_matmul(eddy_transpose(y, 0, 1), eddy_exp(x));
    x = eddy_flip(eddy_select(eddy_square(x), 0, count - 1), EDDY_AXES(0));
    call->outputs[0] = eddy_add(eddy_mul(y, m->w), x);
    return EDDY_OK;
}

/* Weights of all rows for all rows: as many as the size squared. */
static eddy_status attends(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0], *q = eddy_linear(x, m->w, EDDY_NONE);
    eddy_tensor *weights = eddy_softmax(eddy_matmul(q, eddy_transpose(x, 0, 1)), 1);
    call->outputs[0] = eddy_matmul(weights, eddy_mul(x, m->row));
    return EDDY_OK;
}

/* More outputs than there are backward programs for. */
static eddy_status many(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0];
    for (int64_t k = 0; k < call->output_count; k++) {
        x = eddy_tanh(eddy_add(eddy_linear(x, m->w, EDDY_NONE), eddy_mul_s(x, call->scalars[0])));
        x = k % 2 ? eddy_dropout(eddy_mul(x, m->row), EDDY_S(0.5), NULL) : x;
        call->outputs[k] = eddy_narrow(x, 0, k, eddy_dim_of(x, 0) - k - 1);
    }
    return EDDY_OK;
}

static eddy_status steep(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    outputs[0] = eddy_exp(eddy_mul(inputs.items[0], m->row));
    return EDDY_OK;
}

static eddy_status flat(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    outputs[0] = eddy_tanh(eddy_sub(m->row, inputs.items[0]));
    return EDDY_OK;
}

static eddy_status branches(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_linear(call->inputs.items[0], m->w, EDDY_NONE);
    return eddy_cond(eddy_gt_s(all(x), EDDY_S(0)), steep, flat, m, EDDY_LIST(x), 1, NULL,
                     call->outputs);
}

/* ---- the same bits ---- */

typedef struct task {
    eddy_recorded_body *body;
    int output_count;
    bool is_twice;            /* back through the gradients, too */
    int frozen_at, hooked_at; /* calls before which that happens to `row`; 0: never */
} task;

typedef struct world {
    model m;
    eddy_tensor *x, *outputs[OUTPUTS_MOST];
} world;

static void world_init(world *w) {
    must(eddy_seed(21));
    *w = (world){.m = {.w = leaf(eddy_randn(EDDY_SHAPE(WIDE, WIDE), EDDY_F32, NULL)),
                       .row = leaf(eddy_randn(EDDY_SHAPE(WIDE), EDDY_F32, NULL))}};
}

/* recorded: NULL for the function itself. */
static void run(world *w, const task *t, eddy_recorded *recorded, int64_t count, int seed) {
    eddy_scalar number = EDDY_S(0.25 * (1 + seed % 3));
    must(eddy_seed((uint64_t)seed));
    w->x = leaf(eddy_randn(EDDY_SHAPE(count, WIDE), EDDY_F32, NULL));
    must(eddy_grads_zero(EDDY_LIST(w->m.w)));
    if (eddy_requires_grad(w->m.row))
        must(eddy_grads_zero(EDDY_LIST(w->m.row)));
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(w->x),
                               .scalars = &number,
                               .scalar_count = 1,
                               .outputs = w->outputs,
                               .output_count = t->output_count};
    if (recorded)
        must(eddy_recorded_run(recorded, EDDY_LIST(w->x), EDDY_SCALARS(number), w->outputs));
    else
        must(t->body(&w->m, &call));
}

/* Of one output, of all but that, or of all. */
static void go_back(const world *w, const task *t, int seed) {
    eddy_tensor *loss = NULL, *gradient;
    for (int k = 0; k < t->output_count; k++) {
        if (t->output_count > 1 && seed % 3 < 2 && (k == 1) != (seed % 3 == 0))
            continue;
        eddy_tensor *part = all(eddy_square(w->outputs[k]));
        loss = loss ? eddy_add(loss, part) : part;
    }
    if (t->is_twice) {
        must(eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(w->x), (eddy_list){0},
                              EDDY_OPTIONS(backward, .creates_graph = true), &gradient));
        loss = all(eddy_square(gradient));
    }
    must(eddy_backward(loss));
}

static void expect_same_grad(eddy_tensor *a, eddy_tensor *b, const char *what) {
    cr_assert_eq(eddy_has_grad(a), eddy_has_grad(b), "%s", what);
    if (eddy_has_grad(a))
        must_have_same_bits(eddy_grad_of(a), eddy_grad_of(b), what);
}

#define CALLS_MOST 40

/* Calls of a function, of these sizes. */
typedef struct calls {
    int64_t most; /* of a bucket; 0: there is none */
    int count;
    int64_t sizes[CALLS_MOST];
} calls;

static const calls few = {0, 13, {8, 8, 16, 16, 12, 9, 14, 8, 10, 11, 15, 13, 9}};

static eddy_tensor *twofold(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_retain(eddy_mul_s(gradient, EDDY_S(2)));
}

/* Returns how often the function ran. */
static int try_calls(const task *t, const calls *of, const char *explained) {
    eddy_scope *scope = eddy_scope_begin();
    world worlds[2];
    for (int i = 0; i < 2; i++)
        world_init(&worlds[i]);
    eddy_recorded *recorded = eddy_recorded_create(
        t->body, &worlds[0].m, t->output_count,
        EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = of->most));
    for (int k = 0; k < of->count; k++) {
        for (int i = 0; i < 2; i++) {
            if (k > 0 && k == t->frozen_at)
                must(eddy_requires_grad_set(worlds[i].m.row, false));
            if (k > 0 && k == t->hooked_at)
                must(eddy_grad_hook_add(worlds[i].m.row, twofold, NULL, NULL));
            run(&worlds[i], t, i == 0 ? recorded : NULL, of->sizes[k], k);
            go_back(&worlds[i], t, k);
        }
        for (int o = 0; o < t->output_count; o++)
            must_have_same_bits(worlds[0].outputs[o], worlds[1].outputs[o], "an output");
        expect_same_grad(worlds[0].m.w, worlds[1].m.w, "w");
        if (eddy_requires_grad(worlds[0].m.row))
            expect_same_grad(worlds[0].m.row, worlds[1].m.row, "row");
        expect_same_grad(worlds[0].x, worlds[1].x, "x");
    }
    char text[4096];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_not_null(strstr(text, explained), "%s", text);
    int ran = worlds[0].m.calls;
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
    return ran;
}

static int try_sizes(const task *t, const char *explained) {
    return try_calls(t, &few, explained);
}

/* Sizes in steps of four and of one: 12 is recorded once, and so is one more that is odd. */
static void expect_foretold(task t) {
    const char *explained =
        "(f32[11, 4]): ran 0 times, replayed 1 times; as programs of other sizes "
        "foretell";
    cr_assert_eq(try_sizes(&t, explained), 6);
    explained =
        "(f32[n, 4]), n from 2 to 20: sizes 10 to 15, 5 derived, 5 kept, replayed 5 times; arena ";
    calls bucket = few;
    bucket.most = 20;
    cr_assert_eq(try_calls(&t, &bucket, explained), 6);
}

Test(shapes_gradient, a_layer) {
    expect_foretold((task){.body = layer, .output_count = 1});
}

Test(shapes_gradient, any_of_two_outputs) {
    expect_foretold((task){.body = two, .output_count = 2});
}

Test(shapes_gradient, views_and_joined_rows) {
    expect_foretold((task){.body = moves, .output_count = 1});
}

Test(shapes_gradient, products_of_sizes) {
    expect_foretold((task){.body = attends, .output_count = 1});
}

Test(shapes_gradient, any_of_many_outputs) {
    expect_foretold((task){.body = many, .output_count = OUTPUTS_MOST});
}

Test(shapes_gradient, gradients_of_gradients) {
    expect_foretold((task){.body = layer, .output_count = 1, .is_twice = true});
    expect_foretold((task){.body = two, .output_count = 2, .is_twice = true});
    expect_foretold((task){.body = moves, .output_count = 1, .is_twice = true});
    expect_foretold((task){.body = attends, .output_count = 1, .is_twice = true});
    expect_foretold((task){.body = many, .output_count = OUTPUTS_MOST, .is_twice = true});
}

Test(shapes_gradient, branches_go_their_way) {
    expect_foretold((task){.body = branches, .output_count = 1});
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(eddy_mean(eddy_square(inputs.items[0]), EDDY_ALL_AXES, NULL), EDDY_S(8));
    return EDDY_OK;
}

static eddy_status grows(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_mul_s(eddy_add(inputs.items[0], eddy_tanh(inputs.items[0])), EDDY_S(1.5));
    return EDDY_OK;
}

/* What each step has saved lies in lists of rows. */
static eddy_status loops(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_mul(call->inputs.items[0], m->row);
    return eddy_while(is_small, grows, m, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 8),
                      call->outputs);
}

static eddy_status fold(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    eddy_tensor *h = eddy_tanh(eddy_add(eddy_mul(inputs.items[0], m->row), inputs.items[1]));
    outputs[0] = eddy_dropout(h, EDDY_S(0.25), NULL);
    outputs[1] = eddy_square(outputs[0]);
    return EDDY_OK;
}

/* As many steps as the size, from the last row to the first. */
static eddy_status scans(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    return eddy_scan(fold, m, EDDY_LIST(eddy_exp(m->row)), EDDY_LIST(call->inputs.items[0]), 2,
                     EDDY_OPTIONS(scan, .is_rolled = true, .is_reversed = true), call->outputs);
}

static eddy_status folds_rows(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *given[2], *x = inputs.items[0];
    eddy_status status = eddy_scan(fold, context, EDDY_LIST(eddy_mean(x, EDDY_AXES(0), NULL)),
                                   EDDY_LIST(x), 2, EDDY_OPTIONS(scan, .is_rolled = true), given);
    if (status == EDDY_OK)
        outputs[0] = eddy_mul_s(eddy_add(x, eddy_mul(given[1], eddy_cos(given[0]))), EDDY_S(2));
    return status;
}

/* Lists of lists. Only gradients of gradients are summed up in the order of calls here. */
static eddy_status nested_loops(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_mul(call->inputs.items[0], m->row);
    return eddy_while(is_small, folds_rows, m, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 8),
                      call->outputs);
}

Test(shapes_gradient, loops_take_their_steps) {
    expect_foretold((task){.body = loops, .output_count = 1});
    expect_foretold((task){.body = scans, .output_count = 2});
}

Test(shapes_gradient, gradients_of_gradients_of_control_flow) {
    expect_foretold((task){.body = branches, .output_count = 1, .is_twice = true});
    expect_foretold((task){.body = loops, .output_count = 1, .is_twice = true});
    expect_foretold((task){.body = scans, .output_count = 2, .is_twice = true});
    expect_foretold((task){.body = nested_loops, .output_count = 1, .is_twice = true});
}

/* ---- what is not as foretold ---- */

/* Nothing that was foretold is used any more where another tensor wants a gradient; a hook of a leaf is none of the replays'. */
Test(shapes_gradient, leaves_that_change) {
    task frozen = {.body = layer, .output_count = 1, .frozen_at = 8},
         hooked = {.body = layer, .output_count = 1, .hooked_at = 8};
    cr_assert_gt(try_sizes(&frozen, "(f32[11, 4]): ran 1 times, replayed 0 times"), 6);
    cr_assert_eq(try_sizes(&hooked, "(f32[11, 4]): ran 0 times, replayed 1 times"), 6);
}

/* The same code at all sizes; at one no gradient goes back to w. */
static eddy_status stops(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_mul(x, eddy_dim_of(x, 0) == 12 ? eddy_detach(m->row) : m->row);
    return EDDY_OK;
}

Test(shapes_gradient, a_tape_that_is_not_as_foretold) {
    cr_assert_gt(try_sizes(&(task){.body = stops, .output_count = 1},
                           "(f32[11, 4]): ran 1 times, replayed 0 times"),
                 10);
}

static eddy_status cube(eddy_forward_call *call) {
    eddy_tensor *x = call->inputs[0];
    call->outputs[0] = eddy_mul(eddy_square(x), x);
    return eddy_forward_save(call, EDDY_LIST(x));
}

static eddy_status cube_backward(eddy_backward_call *call) {
    call->results[0] = eddy_mul_s(eddy_mul(call->grads[0], eddy_square(call->saved[0])), EDDY_S(3));
    return EDDY_OK;
}

static const eddy_function cubed = {.size = sizeof(cubed),
                                    .name = "cubed",
                                    .output_count = 1,
                                    .forward = cube,
                                    .backward = cube_backward,
                                    .is_pure = true};

static eddy_status cubes(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_mul(call->inputs.items[0], m->row);
    return eddy_function_call(&cubed, NULL, EDDY_LIST(x), call->outputs);
}

/* Nobody knows what their contexts say about the size. */
Test(shapes_gradient, custom_functions_are_recorded) {
    const char *explained = "(f32[11, 4]): ran 1 times, replayed 0 times";
    cr_assert_gt(try_sizes(&(task){.body = cubes, .output_count = 1}, explained), 6);
    cr_assert_gt(try_sizes(&(task){.body = cubes, .output_count = 1, .is_twice = true}, explained),
                 6);
}

/* ---- all sizes of a bucket ---- */

/* Gradients of two halves of each row, side by side: rows are as long as twice the size, and written in place where that is 16 or more. */
static eddy_status gates(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_clone(eddy_transpose(call->inputs.items[0], 0, 1));
    int64_t n = eddy_dim_of(x, 1);
    eddy_tensor *both = eddy_cat(EDDY_LIST(x, eddy_matmul(m->w, x)), 1);
    call->outputs[0] =
        eddy_mul(eddy_tanh(eddy_narrow(both, 1, 0, n)), eddy_exp(eddy_narrow(both, 1, n, n)));
    return EDDY_OK;
}

#define ALL_MOST 32

static void try_all(eddy_recorded_body *body, int output_count) {
    calls all = {ALL_MOST, 5, {2, 2, 5, 5, 3}};
    for (int64_t size = 2; size <= ALL_MOST; size++)
        all.sizes[all.count++] = size;
    for (int is_twice = 0; is_twice < 2; is_twice++) {
        task t = {.body = body, .output_count = output_count, .is_twice = is_twice};
        cr_assert_eq(try_calls(&t, &all, "(f32[n, 4]), n from 2 to 32: sizes 4 to 32, 28 derived"),
                     5);
    }
}

Test(shapes_gradient, all_sizes_of_a_bucket_by_one_thread_and_two) {
    for (int threads = 1; threads <= 2; threads++) {
        eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = threads));
        cr_assert_not_null(runtime);
        must(eddy_runtime_use(runtime));
        try_all(layer, 1);
        try_all(two, 2);
        try_all(attends, 1);
        try_all(gates, 1);
        try_all(branches, 1);
        try_all(loops, 1);
        try_all(scans, 2);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
}
