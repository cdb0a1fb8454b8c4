/* Programs on CUDA devices whose launches are graphs (EDDY_CUDA_GRAPHS), on the fake driver (tests/fake_cuda): runs have the bits and the errors of calls, whether a graph launches them or not. */
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/needed.h>
#include <tests/program/blocks.h>
#include <tests/program/driver_calls.h>
#include <tests/program/outcome.h>

#define THERE EDDY_CUDA(0)
#define BLOCK 512 /* of the memory of a device */

static eddy_scope *begin(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .captures_graphs = true));
    must(runtime ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
    eddy_device_scope_begin(THERE);
    return eddy_scope_begin();
}

static void finish(eddy_scope *scope, eddy_program **program) {
    eddy_program_release(program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    eddy_device_scope_end();
    end_of_counts();
}

/* ---- what is computed: two outputs of x (f32[3]) and a state (f32[3]) that is written in place ---- */

typedef eddy_status computation(eddy_tensor *x, eddy_tensor *state, eddy_tensor **outputs);

/* A row of kernels, with a product among them. */
static eddy_status row(eddy_tensor *x, eddy_tensor *state, eddy_tensor **outputs) {
    eddy_tensor *outer =
        eddy_matmul(eddy_reshape(x, EDDY_SHAPE(3, 1)), eddy_reshape(state, EDDY_SHAPE(1, 3)));
    outputs[0] = eddy_sum(eddy_tanh(outer), EDDY_ALL_AXES, NULL);
    outputs[1] = eddy_softmax(eddy_mul(x, eddy_sin(x)), 0);
    return eddy_add_into(state, outputs[1], state);
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds,
                eddy_lt_s(eddy_sum(eddy_abs(inputs.items[0]), EDDY_ALL_AXES, NULL), EDDY_S(40)));
}

static eddy_status grow(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *h = eddy_add_s(eddy_mul_s(inputs.items[0], EDDY_S(1.5)), EDDY_S(0.25));
    return done(outputs, eddy_add(h, eddy_mul(eddy_sin(h), eddy_cos(h))));
}

/* A loop, whose steps are a row each, in other memory by turns. */
static eddy_status loop(eddy_tensor *x, eddy_tensor *state, eddy_tensor **outputs) {
    eddy_status status = eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &outputs[0]);
    outputs[1] = eddy_neg(eddy_mul(outputs[0], state));
    return status;
}

/* More calls than a round has. */
static eddy_status many(eddy_tensor *x, eddy_tensor *state, eddy_tensor **outputs) {
    outputs[0] = x;
    for (int i = 0; i < 150; i++)
        outputs[0] = eddy_sin(eddy_add(outputs[0], state));
    outputs[1] = eddy_neg(outputs[0]);
    return eddy_add_into(state, outputs[1], state);
}

/* Rows on both sides of what takes numbers of the run. */
static eddy_status noisy(eddy_tensor *x, eddy_tensor *state, eddy_tensor **outputs) {
    eddy_tensor *h = eddy_cos(eddy_tanh(eddy_sin(eddy_exp(x))));
    h = eddy_dropout(h, EDDY_S(0.5), NULL);
    h = eddy_cos(eddy_tanh(eddy_sin(eddy_exp(h))));
    outputs[0] = eddy_add(h, state);
    outputs[1] = eddy_sin(outputs[0]);
    return EDDY_OK;
}

static computation *const computations[] = {row, loop, many, noisy};

typedef struct twins {
    eddy_tensor *x, *state, *same; /* the program's state, and that of calls */
    eddy_program *program;
} twins;

static twins record(computation *compute, const char *passes) {
    twins t = {.x = of(0.5), .state = of(1.25), .same = of(1.25)};
    eddy_tensor *outputs[2], *first[2];
    must(eddy_seed(5));
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    must(compute(t.x, t.state, outputs));
    t.program = end(EDDY_BINDINGS({"x", t.x, EDDY_ROLE_INPUT}, {"state", t.state, EDDY_ROLE_STATE},
                                  {"y", outputs[0], EDDY_ROLE_OUTPUT},
                                  {"z", outputs[1], EDDY_ROLE_OUTPUT}));
    must(compute(t.x, t.same, first));
    return t;
}

/* What was released is given back, so that the next run has its memory. */
static void end_inner(eddy_scope *scope) {
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
}

/* With the same numbers drawn. */
static void run(const twins *t, computation *compute, eddy_tensor *x, int seed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *expected[2], *results[2];
    must(eddy_seed((uint64_t)seed));
    must(compute(x, t->same, expected));
    must(eddy_seed((uint64_t)seed));
    must(eddy_program_run(t->program, EDDY_LIST(x), results));
    must_have_same_bits(expected[0], results[0], "y");
    must_have_same_bits(expected[1], results[1], "z");
    must_have_same_bits(t->same, t->state, "state");
    end_inner(scope);
}

static void matches(computation *compute, const char *passes) {
    eddy_scope *scope = begin();
    twins t = record(compute, passes);
    long captured = calls_of("cuStreamEndCapture"), launched = calls_of("cuGraphLaunch");
    for (int i = 0; i < 6; i++)
        run(&t, compute, t.x, i);
    must_count(calls_of("cuStreamEndCapture") > captured);
    must_count(calls_of("cuGraphLaunch") > launched + calls_of("cuStreamEndCapture") - captured);
    /* In other memory. */
    for (int i = 0; i < 6; i++)
        run(&t, compute, of(0.125 * i), i);
    eddy_tensor *moved = of(0.75);
    for (int i = 0; i < 4; i++)
        run(&t, compute, moved, i);
    finish(scope, &t.program);
}

Test(cuda_graph, runs_have_the_bits_of_calls) {
    for (size_t i = 0; i < sizeof(computations) / sizeof(computations[0]); i++)
        matches(computations[i], NULL);
}

Test(cuda_graph, passes_change_no_bit) {
    for (size_t i = 0; i < sizeof(computations) / sizeof(computations[0]); i++) {
        matches(computations[i], "none");
        matches(computations[i], "all,subbatch");
    }
}

/* ---- graphs ---- */

/* Its results go before the next run, which has their memory. */
static eddy_status run_alone(eddy_program *program, eddy_tensor *x) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *results[2];
    must(eddy_program_run(program, EDDY_LIST(x), results));
    eddy_status status = eddy_error_of(results[0], EDDY_FOREVER, NULL);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    return status;
}

/* Once it is known, a run takes three calls of the driver, however many kernels it has: tickets, the graph, the mark. */
Test(cuda_graph, a_row_is_one_launch) {
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    for (int i = 0; i < 3; i++)
        (void)run_alone(t.program, t.x);
    long kernels = calls_of("cuLaunchKernel"), graphs = calls_of("cuGraphLaunch"),
         writes = calls_of("cuStreamWriteValue64");
    must(run_alone(t.program, t.x));
    must_count(calls_of("cuLaunchKernel") == kernels);
    must_count(calls_of("cuGraphLaunch") == graphs + 1);
    must_count(calls_of("cuStreamWriteValue64") == writes + 2);
    finish(scope, &t.program);
}

static _Atomic int heard_graphs;

static void count_graph(void *context, const eddy_trace_event *event) {
    (void)context;
    heard_graphs += event->kind == EDDY_TRACE_HAPPENS && strcmp(event->op, "graph") == 0;
}

/* As a moment, since its kernels are launched by none of the host's calls. */
Test(cuda_graph, a_graph_is_heard) {
    const eddy_trace_listener listener = {count_graph, NULL, 1u << EDDY_TRACE_KERNEL};
    uint32_t place;
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    for (int i = 0; i < 3; i++)
        (void)run_alone(t.program, t.x);
    long graphs = calls_of("cuGraphLaunch");
    must(eddy_trace_add(&listener, &place));
    must(run_alone(t.program, t.x));
    eddy_trace_remove(place);
    must_count(calls_of("cuGraphLaunch") == graphs + 1);
    must_count(heard_graphs == 1);
    finish(scope, &t.program);
}

/* What is left for other memory is changed to that, and not made anew. */
Test(cuda_graph, a_graph_moves_with_the_memory) {
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    for (int i = 0; i < 3; i++)
        run(&t, row, t.x, i);
    long made = calls_of("cuGraphInstantiateWithFlags"), changed = calls_of("cuGraphExecUpdate");
    eddy_tensor *other = of(0.375);
    for (int i = 0; i < 3; i++)
        run(&t, row, other, i);
    must_count(calls_of("cuGraphInstantiateWithFlags") == made);
    must_count(calls_of("cuGraphExecUpdate") == changed + 1);
    finish(scope, &t.program);
}

/* Addresses that never come again cost no capture. */
Test(cuda_graph, what_moves_at_each_run_is_launched) {
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    long captured = calls_of("cuStreamEndCapture");
    eddy_tensor *all[8];
    for (int i = 0; i < 8; i++)
        run(&t, row, all[i] = of(0.125 * i), i);
    must_count(calls_of("cuStreamEndCapture") == captured);
    finish(scope, &t.program);
}

/* More programs than graphs are kept of, in turns; some end in between. */
Test(cuda_graph, graphs_of_many_programs_come_and_go) {
    eddy_scope *scope = begin();
    twins all[12];
    for (int i = 0; i < 12; i++)
        all[i] = record(i % 2 ? row : loop, i % 3 ? NULL : "none");
    for (int i = 0; i < 60; i++) {
        twins *t = &all[i * 7 % 12];
        run(t, i * 7 % 12 % 2 ? row : loop, t->x, i);
        if (i % 20 == 19) {
            eddy_program_release(&t->program);
            *t = record(i * 7 % 12 % 2 ? row : loop, NULL);
        }
    }
    for (int i = 0; i < 12; i++)
        eddy_program_release(&all[i].program);
    eddy_program *none = NULL;
    finish(scope, &none);
}

/* Of a program that nobody keeps, the cache neither, no graph is left once as many rows have come as there are sets of them. */
Test(cuda_graph, a_graph_goes_with_its_program) {
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    must(eddy_program_prepare(
        t.program, NULL, 0)); /* a kernel that comes between runs would make two graphs of it */
    for (int i = 0; i < 3; i++)
        (void)run_alone(t.program, t.x);
    eddy_program_release(&t.program);
    (void)eddy_trim();
    twins other = record(row, NULL);
    must(eddy_program_prepare(other.program, NULL, 0));
    long ended = calls_of("cuGraphExecDestroy");
    for (int i = 0; i < 64; i++)
        (void)run_alone(other.program, other.x);
    must_count(calls_of("cuGraphExecDestroy") == ended + 1);
    finish(scope, &other.program);
}

/* ---- failures ---- */

/* A row that fails by what it is given, and what depends on it: twice the number that it finds in a table. */
static eddy_program *record_pick(eddy_tensor *table, eddy_tensor *state) {
    eddy_tensor *i = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_I64, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_tensor *picked = eddy_index_select(table, i, 0);
    eddy_tensor *twice_it = eddy_sin(eddy_exp(eddy_add(picked, picked))),
                *beside = eddy_neg(eddy_sin(table));
    must(eddy_add_into(state, eddy_sum(twice_it, EDDY_ALL_AXES, NULL), state));
    return end(EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                             {"y", twice_it, EDDY_ROLE_OUTPUT},
                             {"beside", beside, EDDY_ROLE_OUTPUT}));
}

Test(cuda_graph, failures_are_those_of_calls) {
    eddy_scope *scope = begin();
    eddy_tensor *table = of(2), *state = of(1), *results[2];
    eddy_program *program = record_pick(table, state);
    eddy_tensor *i = eddy_full(EDDY_SHAPE(2), EDDY_S(2), EDDY_I64, NULL);
    long launched = calls_of("cuGraphLaunch");
    for (int run = 0; run < 12; run++) {
        bool is_bad = run % 3 == 2;
        eddy_scope *inner = eddy_scope_begin();
        must(eddy_copy_into(of(1), state));
        must(eddy_copy_into(eddy_full(EDDY_SHAPE(2), EDDY_S(is_bad ? 3 : 2), EDDY_I64, NULL), i));
        must(eddy_program_run(program, EDDY_LIST(i), results));
        eddy_error error = {0};
        cr_assert_eq(eddy_error_of(results[0], EDDY_FOREVER, &error),
                     is_bad ? EDDY_OUT_OF_RANGE : EDDY_OK);
        if (is_bad) {
            cr_assert_str_eq(error.op, "index_select");
            cr_assert_eq(eddy_error_of(state, EDDY_FOREVER, NULL), EDDY_SKIPPED);
            must(eddy_recover(EDDY_LIST(state)));
            cr_assert_eq(sum_of(state), 3);
            (void)eddy_sync(EDDY_FOREVER);
            (void)eddy_error_take(NULL);
        }
        must_have_same_bits(eddy_neg(eddy_sin(table)), results[1], "beside");
        end_inner(inner);
    }
    must_count(calls_of("cuGraphLaunch") > launched + 8);
    finish(scope, &program);
}

/* What is given is poisoned: the run launches what does not depend on it. */
Test(cuda_graph, poison_goes_through_it) {
    eddy_scope *scope = begin();
    eddy_tensor *table = of(2), *state = of(1), *results[2];
    eddy_program *program = record_pick(table, state);
    eddy_tensor *i = eddy_full(EDDY_SHAPE(2), EDDY_S(2), EDDY_I64, NULL);
    for (int run = 0; run < 3; run++)
        must(eddy_program_run(program, EDDY_LIST(i), results));
    eddy_tensor *bad = eddy_index_select(i, eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(bad), results));
    cr_assert_eq(eddy_error_of(results[0], EDDY_FOREVER, NULL), EDDY_OUT_OF_RANGE);
    must(eddy_error_of(results[1], EDDY_FOREVER, NULL));
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    must(eddy_recover(EDDY_LIST(state)));
    finish(scope, &program);
}

/* Runs with an index that is fine, by turns with one that is not: then the state, which is written in place, has the elements of before. */
static void must_keep_state(eddy_program *program, eddy_tensor *state) {
    eddy_tensor *i = eddy_full(EDDY_SHAPE(2), EDDY_S(2), EDDY_I64, NULL);
    for (int run = 0; run < 9; run++) {
        bool is_bad = run % 3 == 2;
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *result;
        must(eddy_copy_into(eddy_full(EDDY_SHAPE(2), EDDY_S(is_bad ? 3 : 2), EDDY_I64, NULL), i));
        double before = sum_of(state);
        must(eddy_program_run(program, EDDY_LIST(i), &result));
        eddy_status status = eddy_error_of(state, EDDY_FOREVER, NULL);
        cr_assert_eq(status, is_bad ? EDDY_SKIPPED : EDDY_OK);
        (void)eddy_sync(EDDY_FOREVER);
        (void)eddy_error_take(NULL);
        must(is_bad ? eddy_recover(EDDY_LIST(state)) : EDDY_OK);
        cr_assert(is_bad ? sum_of(state) == before : sum_of(state) != before);
        end_inner(inner);
    }
}

/* A row is as long as one may be, and calls behind it look at what it has written. */
Test(cuda_graph, a_call_behind_a_row_looks_at_it) {
    eddy_scope *scope = begin();
    eddy_tensor *table = of(2), *state = of(1),
                *i = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_I64, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_tensor *h = eddy_index_select(table, i, 0);
    for (int k = 1; k < 192; k++)
        h = k % 2 ? eddy_sin(h) : eddy_exp(h);
    h = eddy_sum(eddy_neg(h), EDDY_ALL_AXES, NULL);
    must(eddy_add_into(state, h, state));
    eddy_program *program = end(EDDY_BINDINGS(
        {"i", i, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}, {"h", h, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(program->executable->step_rows.items.count, 1);
    must_keep_state(program, state);
    must_count(calls_of("cuGraphLaunch") > 4);
    finish(scope, &program);
}

static eddy_status pick_first(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *table = inputs.items[1];
    (void)context;
    outputs[0] = eddy_index_select(table, inputs.items[0], 0);
    outputs[1] = eddy_exp(eddy_sin(eddy_exp(table)));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status pick_last(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *table = inputs.items[1];
    (void)context;
    outputs[1] = eddy_exp(eddy_sin(eddy_exp(table)));
    outputs[0] = eddy_index_select(table, inputs.items[0], 0);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* What a row reads is written by calls that are further behind on the one way than on the other, in the same memory. */
Test(cuda_graph, a_row_behind_a_branch_looks_at_either_way) {
    eddy_scope *scope = begin();
    eddy_tensor *table = of(2), *state = of(1), *p = truth(true), *ways[2], *result,
                *i = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_I64, NULL);
    p = eddy_to_device(p, THERE);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    must(eddy_cond(p, pick_first, pick_last, NULL, EDDY_LIST(i, table), 2, NULL, ways));
    eddy_tensor *h = eddy_sin(eddy_exp(eddy_sin(eddy_exp(ways[0]))));
    must(eddy_add_into(state, eddy_sum(h, EDDY_ALL_AXES, NULL), state));
    eddy_program *program =
        end(EDDY_BINDINGS({"p", p, EDDY_ROLE_INPUT}, {"i", i, EDDY_ROLE_INPUT},
                          {"state", state, EDDY_ROLE_STATE}, {"h", h, EDDY_ROLE_OUTPUT}));
    eddy_tensor *fine = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_I64, NULL),
                *wrong = eddy_full(EDDY_SHAPE(2), EDDY_S(3), EDDY_I64, NULL),
                *ps[] = {eddy_to_device(truth(false), THERE), eddy_to_device(truth(true), THERE)};
    long launched = calls_of("cuGraphLaunch");
    for (int run = 0; run < 24; run++) {
        bool is_bad = run % 6 >= 4;
        eddy_scope *inner = eddy_scope_begin();
        must(eddy_copy_into(is_bad ? wrong : fine, i));
        must(eddy_copy_into(ps[run % 2], p));
        double before = sum_of(state);
        must(eddy_program_run(program, EDDY_LIST(p, i), &result));
        (void)eddy_wait(result, EDDY_FOREVER);
        (void)eddy_sync(EDDY_FOREVER);
        (void)eddy_error_take(NULL);
        must(is_bad ? eddy_recover(EDDY_LIST(state)) : EDDY_OK);
        cr_assert(is_bad ? sum_of(state) == before : sum_of(state) != before);
        end_inner(inner);
    }
    must_count(calls_of("cuGraphLaunch") > launched + 16);
    finish(scope, &program);
}

/* Which leaves no tensor, so that runs have the memory of those before. */
static double passing_sum_of(eddy_tensor *x) {
    eddy_scope *scope = eddy_scope_begin();
    double sum = sum_of(x);
    end_inner(scope);
    return sum;
}

/* Poisoned, with elements that would do. */
Test(cuda_graph, what_is_poisoned_is_used_by_no_kernel) {
    eddy_scope *scope = begin();
    eddy_tensor *table = of(2), *state = of(1);
    eddy_program *program = record_pick(table, state);
    eddy_tensor *i = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_I64, NULL),
                *bad = eddy_index_select(i, eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL), 0);
    for (int run = 0; run < 4; run++)
        (void)run_alone(program, i);
    double before = passing_sum_of(state);
    must(eddy_add_into(i, bad, i));
    cr_assert_eq(run_alone(program, i), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_of(state, EDDY_FOREVER, NULL), EDDY_SKIPPED);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    must(eddy_recover(EDDY_LIST(state, i)));
    cr_assert_eq(passing_sum_of(state), before);
    long launched = calls_of("cuGraphLaunch");
    must(run_alone(program, i));
    must_count(calls_of("cuGraphLaunch") == launched + 1, ": it was in the same memory");
    finish(scope, &program);
}

/* Products of several sizes, some of which have a workspace where a library makes them. */
static eddy_program *record_products(eddy_tensor *x) {
    eddy_tensor *y = x;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    for (int64_t k = 1; k < 24; k++)
        y = eddy_matmul(eddy_slice(y, 1, 0, k, 1), eddy_slice(x, 0, 0, k, 1));
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}

/* Another stream takes all memory that there is meanwhile. */
Test(cuda_graph, a_graph_keeps_its_workspace) {
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(24, 24), EDDY_F32, NULL);
    eddy_program *program = record_products(x);
    for (int run = 0; run < 3; run++)
        must(run_alone(program, x));
    (void)eddy_device_memory_trim(THERE);
    eddy_stream *other = eddy_stream_create(THERE, NULL);
    for (int run = 0; run < 20; run++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *result;
        must(eddy_program_run(program, EDDY_LIST(x), &result));
        must(eddy_stream_scope_begin(other));
        for (int64_t k = 0; k < 12; k++)
            (void)eddy_ones(EDDY_SHAPE(128 << k), EDDY_F32, NULL);
        eddy_stream_scope_end();
        eddy_scope_end(inner);
    }
    must(eddy_sync(EDDY_FOREVER));
    eddy_stream_release(&other);
    finish(scope, &program);
}

static eddy_device_memory memory_now(void) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    must(eddy_device_memory_read(THERE, &memory));
    return memory;
}

/* Takes blocks until there is no more; returns their bytes. */
static int64_t take_all(void) {
    int64_t taken = 0;
    for (;;) {
        eddy_tensor *block = eddy_ones(EDDY_SHAPE(BLOCK / 4), EDDY_F32, NULL);
        eddy_status status = eddy_error_of(block, EDDY_FOREVER, NULL);
        if (status != EDDY_OK) {
            cr_assert_eq(status, EDDY_OUT_OF_MEMORY);
            (void)eddy_sync(EDDY_FOREVER);
            (void)eddy_error_take(NULL);
            return taken;
        }
        taken += BLOCK;
    }
}

/* Their memory is there for others before a call fails for lack of it; then they are made again. */
Test(cuda_graph, they_go_where_memory_is_short) {
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(24, 24), EDDY_F32, NULL);
    eddy_program *program = record_products(x);
    must(run_alone(program, x));
    int64_t without = memory_now().live_bytes;
    for (int run = 0; run < 2; run++)
        must(run_alone(program, x));
    long ended = calls_of("cuGraphExecDestroy"), launched = calls_of("cuGraphLaunch");
    (void)eddy_device_memory_trim(THERE);
    eddy_device_memory with = memory_now();
    int64_t most = with.live_bytes + with.cached_bytes;
    must(eddy_device_memory_limit_set(THERE, most));
    eddy_scope *full = eddy_scope_begin();
    cr_assert_eq(take_all(), most - without);
    must_count(calls_of("cuGraphExecDestroy") == ended + 1);
    end_inner(full);
    for (int run = 0; run < 3; run++)
        must(run_alone(program, x));
    must_count(calls_of("cuGraphLaunch") == launched + 2);
    finish(scope, &program);
}

/* Two picked numbers are added to x, whose elements are lost then: all of the input is written behind. */
static eddy_program *record_refill(eddy_tensor *table, eddy_tensor *i) {
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                *fresh = eddy_full(EDDY_SHAPE(2), EDDY_S(0.5), EDDY_F32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    must(eddy_add_into(x, eddy_index_select(table, i, 0), x));
    must(eddy_copy_into(eddy_exp(fresh), x));
    eddy_tensor *y = eddy_neg(eddy_sin(table));
    return end(EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"x", x, EDDY_ROLE_INPUT},
                             {"y", y, EDDY_ROLE_OUTPUT}));
}

/* With such indices, in the same memory; whether x has an error. */
static bool refill_fails(eddy_program *program, eddy_tensor *i, int64_t index, eddy_tensor *x) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *result;
    must(eddy_copy_into(eddy_full(EDDY_SHAPE(2), EDDY_S(index), EDDY_I64, NULL), i));
    must(eddy_program_run(program, EDDY_LIST(i, x), &result));
    must(eddy_error_of(result, EDDY_FOREVER, NULL));
    eddy_status status = eddy_error_of(x, EDDY_FOREVER, NULL);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    return status != EDDY_OK;
}

static void *address_of(eddy_tensor *x) {
    eddy_lend lend = {.size = sizeof(lend)};
    must(eddy_lend_begin(x, EDDY_READ, EDDY_FOREVER, &lend));
    must(eddy_lend_end(x));
    return lend.data;
}

/* An input that is all of its storage is healed by what writes all of it; one that is a part, at the same address, is not, and is left as it was. */
Test(cuda_graph, a_part_of_a_larger_storage_is_another_input) {
    eddy_scope *scope = begin();
    eddy_tensor *table = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                *i = eddy_full(EDDY_SHAPE(2), EDDY_S(0), EDDY_I64, NULL);
    eddy_program *program = record_refill(table, i);
    eddy_tensor *whole = eddy_full(EDDY_SHAPE(2), EDDY_S(7), EDDY_F32, NULL);
    void *address = address_of(whole);
    for (int run = 0; run < 3; run++)
        cr_assert_not(refill_fails(program, i, 1, whole));
    must_count(calls_of("cuGraphLaunch") > 0);
    cr_assert_not(refill_fails(program, i, 9, whole));
    eddy_release(&whole);
    must(eddy_sync(EDDY_FOREVER));
    eddy_tensor *larger = eddy_full(EDDY_SHAPE(4), EDDY_S(7), EDDY_F32, NULL),
                *part = eddy_slice(larger, 0, 0, 2, 1);
    cr_assert_eq(address_of(part), address);
    cr_assert(refill_fails(program, i, 9, part));
    must(eddy_recover(EDDY_LIST(part)));
    cr_assert_eq(sum_of(part), 14);
    finish(scope, &program);
}

/* What the driver refuses of a graph is launched call by call. */
static void refuse(const char *entry) {
    fake_cuda_fails(entry);
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    for (int i = 0; i < 6; i++)
        run(&t, row, t.x, i);
    eddy_tensor *other = of(0.375);
    for (int i = 0; i < 4; i++)
        run(&t, row, other, i);
    finish(scope, &t.program);
}

Test(cuda_graph, no_capture_may_begin) {
    refuse("cuStreamBeginCapture:1:801");
}

Test(cuda_graph, a_capture_may_be_lost) {
    refuse("cuStreamEndCapture:1:901");
}

Test(cuda_graph, a_lost_capture_keeps_no_workspace) {
    fake_cuda_fails("cuStreamEndCapture:1:901");
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(24, 24), EDDY_F32, NULL);
    eddy_program *program = record_products(x);
    must(run_alone(program, x));
    int64_t without = memory_now().live_bytes;
    for (int run = 0; run < 2; run++)
        must(run_alone(program, x));
    must_count(calls_of("cuStreamEndCapture") == 1);
    cr_assert_eq(memory_now().live_bytes, without);
    finish(scope, &program);
}

Test(cuda_graph, a_graph_may_lack_memory) {
    refuse("cuGraphInstantiateWithFlags:1:2");
}

Test(cuda_graph, a_change_may_be_refused) {
    refuse("cuGraphExecUpdate:1:910");
}

/* Where there is one: the sixth product is that of the capture. Ahead of it, it would be the device's failure. */
Test(cuda_graph, a_library_may_fail_in_a_capture) {
    refuse("cublasLtMatmul:6");
}

/* Then, too, it is asked again. */
Test(cuda_graph, a_library_may_refuse_a_capture) {
    refuse("cublasLtMatmul:6:15");
}

Test(cuda_graph, a_launch_may_lack_memory) {
    refuse("cuGraphLaunch:2:2");
}

/* While it is captured, or launched. */
static void lose(const char *entry) {
    fake_cuda_fails(entry);
    eddy_scope *scope = begin();
    twins t = record(row, NULL);
    eddy_status status = EDDY_OK;
    for (int i = 0; i < 6 && status == EDDY_OK; i++)
        status = run_alone(t.program, t.x);
    cr_assert_eq(status, EDDY_DEVICE_LOST);
    eddy_program_release(&t.program);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(cuda_graph, a_device_is_lost_at_its_launch) {
    lose("cuGraphLaunch:2");
}

Test(cuda_graph, a_device_is_lost_while_it_is_captured) {
    lose("cuStreamEndCapture:1");
}

Test(cuda_graph, a_device_is_lost_as_it_is_made) {
    lose("cuGraphInstantiateWithFlags:1");
}

/* Checks look at each call. */
Test(cuda_graph, checks_leave_none) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .captures_graphs = true, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
    eddy_device_scope_begin(THERE);
    eddy_scope *scope = eddy_scope_begin();
    twins t = record(row, NULL);
    for (int i = 0; i < 4; i++)
        run(&t, row, t.x, i);
    must_count(calls_of("cuGraphLaunch") == 0);
    finish(scope, &t.program);
}
