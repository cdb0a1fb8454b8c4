/* Elementwise calls in a row that are one launch of a round on a CUDA device, on the fake driver and the fake compiler (tests/fake_cuda): the bits, and the errors, of calls one by one. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/fusions.h>
#include <program/program.h>
#include <stdlib.h>
#include <streams/cuda/nvrtc.h>
#include <string.h>
#include <tests/fake_cuda/needed.h>
#include <tests/program/blocks.h>
#include <tests/program/driver_calls.h>
#include <tests/program/outcome.h>

#define THERE EDDY_CUDA(0)
#define WITHOUT_FUSE "cast,transfer,dead,same,richer,fold,move,place"

static void begin(void) {
    if (!dlopen(EDDY_CUDA_NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL))
        cr_skip_test("there is no " EDDY_CUDA_NVRTC_LIBRARY);
    setenv("EDDY_CACHE_DIR", "none", 1);
}

static void begin_with_graphs(void) {
    begin();
    setenv("EDDY_CUDA_GRAPHS", "1", 1);
}

static void finish(eddy_scope *scope) {
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    eddy_device_scope_end();
    end_of_counts();
}

static eddy_scope *scope_there(eddy_device device) {
    eddy_device_scope_begin(device);
    return eddy_scope_begin();
}

/* So many calls that are in fusions, whose kernels are there. */
static uint32_t fused_calls(eddy_program *program) {
    const eddy_fusions *fusions = &program->executable->fusions;
    uint32_t count = 0;
    must(eddy_program_prepare(program, NULL, 0));
    for (uint32_t i = 0; i < fusions->count; i++) {
        cr_assert_not_null(eddy_made_kernel_ready(fusions->items[i].kernel));
        count += fusions->items[i].count;
    }
    return count;
}

/* ---- what is one launch ---- */

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds, eddy_gt_s(inputs.items[1], EDDY_S(0)));
}

/* (h, n) -> (sin(1.5 h + 0.25) + h, n - 1) */
static eddy_status step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *h = inputs.items[0];
    outputs[0] = eddy_add(eddy_sin(eddy_add_s(eddy_mul_s(h, EDDY_S(1.5)), EDDY_S(0.25))), h);
    outputs[1] = eddy_sub_s(inputs.items[1], EDDY_S(1));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

#define STEPS 4

static eddy_program *record_loop(eddy_tensor *x, const char *passes) {
    eddy_tensor *outputs[2];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    must(eddy_while(is_left, step, NULL, EDDY_LIST(x, eddy_to_device(scalar(STEPS), THERE)), NULL,
                    outputs));
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", outputs[0], EDDY_ROLE_OUTPUT}));
}

static long launches_of_run(eddy_program *program, eddy_tensor *x, eddy_tensor **y) {
    long before = calls_of("cuLaunchKernel");
    must(eddy_program_run(program, EDDY_LIST(x), y));
    must(eddy_wait(*y, EDDY_FOREVER));
    return calls_of("cuLaunchKernel") - before;
}

/* Four calls of a body, in each of its steps. */
Test(cuda_round_fusion, a_body_is_one_launch, .init = begin) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = of(0.5), *y, *z;
    eddy_program *fused = record_loop(x, NULL), *plain = record_loop(x, WITHOUT_FUSE);
    cr_assert_eq(fused_calls(fused), 4);
    cr_assert_eq(fused_calls(plain), 0);
    long of_fused = launches_of_run(fused, x, &y), of_plain = launches_of_run(plain, x, &z);
    must_count(of_plain - of_fused == STEPS * 3);
    must_have_same_bits(y, z, "a loop");
    eddy_program_release(&fused);
    eddy_program_release(&plain);
    finish(scope);
}

/* Of each kind of step in a row: within a fusion the round ends, and the calls behind that are launched one by one. */
Test(cuda_round_fusion, a_round_may_end_within_one, .init = begin) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = of(0.5), *all = x, *same = x, *outputs[2], *results[2];
    must(eddy_record_begin(NULL));
    for (int i = 0; i < 300; i++)
        all = eddy_add_s(eddy_mul_s(all, EDDY_S(0.5)), EDDY_S(i));
    must(eddy_while(is_left, step, NULL, EDDY_LIST(x, eddy_to_device(scalar(2), THERE)), NULL,
                    outputs));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"all", all, EDDY_ROLE_OUTPUT},
                          {"y", outputs[0], EDDY_ROLE_OUTPUT}));
    cr_assert_geq(fused_calls(program), 600);
    must(eddy_program_run(program, EDDY_LIST(x), results));
    for (int i = 0; i < 300; i++)
        same = eddy_add_s(eddy_mul_s(same, EDDY_S(0.5)), EDDY_S(i));
    must_have_same_bits(same, results[0], "a long chain");
    eddy_program_release(&program);
    finish(scope);
}

/* ---- where it is none ---- */

/* A scope of what is used in a branch, so that there are rounds. */
static eddy_program *end_with_branch(eddy_tensor *x, const char *input, eddy_tensor *y) {
    eddy_tensor *way;
    must(eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0)), twice, half, NULL,
                   EDDY_LIST(x), 1, NULL, &way));
    return end(EDDY_BINDINGS({input, x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                             {"way", way, EDDY_ROLE_OUTPUT}));
}

#define MANY 10

/* More than a launch can look at, all written in the same round. */
static eddy_tensor *sum_of_many(eddy_tensor *x) {
    eddy_tensor *parts[MANY];
    for (int k = 0; k < MANY; k++)
        parts[k] = eddy_softmax(eddy_mul_s(x, EDDY_S(k + 1)), 0);
    eddy_tensor *all = parts[0];
    for (int k = 1; k < MANY; k++)
        all = eddy_add(all, parts[k]);
    return all;
}

Test(cuda_round_fusion, of_too_many_writers_is_launched_call_by_call, .init = begin) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = of(0.5), *results[2];
    must(eddy_record_begin(NULL));
    eddy_program *program = end_with_branch(x, "x", sum_of_many(x));
    cr_assert_geq(fused_calls(program), MANY - 1);
    must(eddy_program_run(program, EDDY_LIST(x), results));
    must_have_same_bits(sum_of_many(x), results[0], "a sum of many");
    eddy_program_release(&program);
    finish(scope);
}

/* What is read across is used up there, and what comes of it is smaller: it lies in the same memory, where threads may not have read yet what others write. */
static eddy_tensor *across(eddy_tensor *x) {
    eddy_tensor *read = eddy_transpose(eddy_softmax(x, 0), 0, 1);
    eddy_tensor *all = eddy_add(x, read), *of_half = eddy_softmax(eddy_cast(all, EDDY_F16), 0);
    return eddy_add(eddy_softmax(all, 0), of_half);
}

Test(cuda_round_fusion, does_not_write_what_it_still_reads, .init = begin) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = eddy_reshape(
                    eddy_sin(eddy_arange(EDDY_S(0), EDDY_S(64), EDDY_S(1), EDDY_F32, NULL)),
                    EDDY_SHAPE(8, 8)),
                *results[2];
    must(eddy_record_begin(NULL));
    eddy_program *program = end_with_branch(x, "x", across(x));
    cr_assert_eq(fused_calls(program), 4);
    must(eddy_program_run(program, EDDY_LIST(x), results));
    must_have_same_bits(across(x), results[0], "across");
    eddy_program_release(&program);
    finish(scope);
}

/* ---- errors ---- */

typedef struct outcome {
    eddy_error errors[4];
    double kept;
} outcome;

typedef struct picking {
    eddy_tensor *table, *other, *state, *larger;
} picking;

static picking before_picking(void) {
    return (picking){eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL),
                     eddy_full(EDDY_SHAPE(1, 2), EDDY_S(2), EDDY_F32, NULL),
                     eddy_full(EDDY_SHAPE(1, 2), EDDY_S(5), EDDY_F32, NULL),
                     eddy_full(EDDY_SHAPE(3, 2), EDDY_S(7), EDDY_F32, NULL)};
}

/* What is picked may be out of range: a chain that has it behind its first call; what reads the chain in the same round, and what writes in place with it; and a state that another chain writes in place. */
static eddy_program *record_picking(const picking *p) {
    eddy_tensor *i = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL), *way;
    must(eddy_record_begin(NULL));
    eddy_tensor *row = eddy_index_select(p->table, i, 0);
    eddy_tensor *y = eddy_sin(eddy_add(eddy_mul_s(p->other, EDDY_S(0.75)), row));
    eddy_tensor *total = eddy_sum(eddy_softmax(y, 1), EDDY_ALL_AXES, NULL);
    must(eddy_add_into(p->larger, y, p->larger));
    must(eddy_add_into(p->state, eddy_relu(eddy_cos(row)), p->state));
    must(eddy_cond(eddy_gt_s(eddy_sum(p->table, EDDY_ALL_AXES, NULL), EDDY_S(0)), twice, half, NULL,
                   EDDY_LIST(p->table), 1, NULL, &way));
    return end(EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"state", p->state, EDDY_ROLE_STATE},
                             {"larger", p->larger, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT},
                             {"total", total, EDDY_ROLE_OUTPUT}, {"way", way, EDDY_ROLE_OUTPUT}));
}

static void pick(eddy_program *program, int64_t index, eddy_tensor **results) {
    must(eddy_program_run(
        program, EDDY_LIST(eddy_full(EDDY_SHAPE(1), EDDY_S(index), EDDY_I64, NULL)), results));
}

static bool is_poisoned(eddy_tensor *tensor, eddy_error *error) {
    return eddy_error_of(tensor, EDDY_FOREVER, error) != EDDY_OK;
}

static outcome picks_on(eddy_device device, int64_t index) {
    eddy_scope *scope = scope_there(device);
    outcome made = {0};
    picking p = before_picking(), fresh = before_picking();
    eddy_tensor *results[3];
    eddy_program *program = record_picking(&p);
    if (device.kind == EDDY_DEVICE_CUDA)
        cr_assert_eq(fused_calls(program), 6);
    must(eddy_copy_into(fresh.state, p.state));
    must(eddy_copy_into(fresh.larger, p.larger));
    pick(program, index, results);
    for (int k = 0; k < 3; k++)
        (void)is_poisoned(results[k], &made.errors[k]);
    bool is_bad = is_poisoned(p.state, &made.errors[3]);
    cr_assert_eq(is_poisoned(p.larger, NULL), is_bad);
    /* What was poisoned before is not written either. */
    pick(program, 2, results);
    must(eddy_error_of(results[0], EDDY_FOREVER, NULL));
    cr_assert_eq(is_poisoned(p.state, NULL), is_bad);
    if (is_bad)
        must(eddy_recover(EDDY_LIST(p.state, p.larger)));
    made.kept = sum_of(p.state) + sum_of(p.larger);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    eddy_device_scope_end();
    return made;
}

static void fails_alike(int64_t index) {
    outcome here = picks_on(EDDY_CPU, index), there = picks_on(THERE, index);
    cr_assert_eq(here.errors[0].status == EDDY_OK, index < 3);
    cr_assert_eq(here.errors[2].status, EDDY_OK, "%s", here.errors[2].message);
    cr_assert_eq(here.kept, there.kept);
    for (int k = 0; k < 4; k++) {
        cr_assert_eq(here.errors[k].status, there.errors[k].status, "%d: %s", k,
                     there.errors[k].message);
        cr_assert_str_eq(here.errors[k].message, there.errors[k].message);
        if (here.errors[k].status != EDDY_OK)
            cr_assert_str_eq(here.errors[k].op, there.errors[k].op);
    }
}

Test(cuda_round_fusion, passes_errors_on_as_calls_do, .init = begin) {
    fails_alike(1);
    fails_alike(9);
}

/* The launch of the chain, of all of this process. */
#define FUSED_LAUNCH "9"

static void begin_without_memory(void) {
    begin();
    fake_cuda_fails("cuLaunchKernel:" FUSED_LAUNCH ":2");
}

/* Two results, neither of which depends on the other, and one that is read in the same round: the driver has no memory for the launch of both. */
Test(cuda_round_fusion, of_no_memory_fails_all_of_its_calls, .init = begin_without_memory) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = of(0.5), *results[4], *way;
    eddy_error error;
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_mul_s(x, EDDY_S(2)), *b = eddy_add_s(x, EDDY_S(10)),
                *c = eddy_softmax(b, 0);
    must(eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0)), twice, half, NULL,
                   EDDY_LIST(x), 1, NULL, &way));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT},
        {"c", c, EDDY_ROLE_OUTPUT}, {"way", way, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(fused_calls(program), 2);
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_program_run(program, EDDY_LIST(x), results));
    const char *const ops[] = {"mul_s", "add_s", "add_s"};
    for (int k = 0; k < 3; k++) {
        cr_assert_eq(eddy_error_of(results[k], EDDY_FOREVER, &error), EDDY_OUT_OF_MEMORY);
        cr_assert_str_eq(error.op, ops[k]);
    }
    must(eddy_error_of(results[3], EDDY_FOREVER, NULL));
    (void)eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x), results));
    must_have_same_bits(eddy_add_s(x, EDDY_S(10)), results[1], "with memory");
    eddy_program_release(&program);
    finish(scope);
}

/* ---- graphs ---- */

/* The first kernel of a process is there at once; later ones are not. */
static void compile_first(eddy_tensor *x) {
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_neg(eddy_abs(x));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program_release(&program);
}

/* A row, whose fusion has a kernel after some of its runs: its graph is then another one. */
Test(cuda_round_fusion, a_kernel_that_comes_later_is_in_another_graph, .init = begin_with_graphs) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *x = of(0.5), *z;
    compile_first(x);
    must(eddy_record_begin(NULL));
    eddy_tensor *y =
        eddy_softmax(eddy_sin(eddy_mul_s(eddy_exp(eddy_softmax(x, 0)), EDDY_S(0.37))), 0);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    bool was_ready = false;
    long captures = 0;
    for (int run = 0; run < 20 || !was_ready; run++) {
        was_ready = eddy_made_kernel_ready(program->executable->fusions.items[0].kernel) != NULL;
        captures = was_ready ? captures : calls_of("cuStreamEndCapture");
        eddy_scope *inner = eddy_scope_begin();
        must(eddy_program_run(program, EDDY_LIST(x), &z));
        must_have_same_bits(y, z, "a row");
        eddy_scope_end(inner);
    }
    cr_assert_eq(fused_calls(program), 3);
    for (int run = 0; run < 4; run++) {
        eddy_scope *inner = eddy_scope_begin();
        long now = launches_of_run(program, x, &z);
        must_have_same_bits(y, z, "a row with a kernel");
        eddy_scope_end(inner);
        must_count(run < 3 || now == 0);
    }
    must_count(calls_of("cuStreamEndCapture") > captures);
    eddy_program_release(&program);
    finish(scope);
}

/* Two rows on both sides of what is in none. The second, whose memory is always the same, reads what the first one's fusion gives, and writes in place. */
static eddy_program *record_rows(eddy_tensor *table, eddy_tensor *i, eddy_tensor **states) {
    must(eddy_record_begin(NULL));
    eddy_tensor *row = eddy_index_select(table, i, 0);
    eddy_tensor *soft = eddy_softmax(row, 1);
    eddy_tensor *a = eddy_mul_s(row, EDDY_S(2)), *b = eddy_add_s(row, EDDY_S(10));
    eddy_tensor *drawn = eddy_softmax(eddy_rand(EDDY_SHAPE(1, 2), EDDY_F32, NULL), 1);
    must(eddy_add_into(states[0], b, states[0]));
    drawn = eddy_softmax(eddy_softmax(eddy_softmax(drawn, 1), 1), 1);
    must(eddy_add_into(states[1], drawn, states[1]));
    return end(EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"state", states[0], EDDY_ROLE_STATE},
                             {"other", states[1], EDDY_ROLE_STATE}, {"a", a, EDDY_ROLE_OUTPUT},
                             {"soft", soft, EDDY_ROLE_OUTPUT}));
}

static void run_rows(eddy_program *program, eddy_tensor *i, eddy_tensor *state) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *results[2];
    must(eddy_program_run(program, EDDY_LIST(i), results));
    (void)eddy_error_of(state, EDDY_FOREVER, NULL);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
}

/* Whether calls ahead of a row are one launch says whose word the row looks at: also where it is a graph. */
Test(cuda_round_fusion, a_graph_looks_at_the_kernel_ahead_of_it, .init = begin_with_graphs) {
    eddy_scope *scope = scope_there(THERE);
    eddy_tensor *table = eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL),
                *i = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL),
                *bad = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL),
                *states[] = {eddy_full(EDDY_SHAPE(1, 2), EDDY_S(5), EDDY_F32, NULL),
                             eddy_full(EDDY_SHAPE(1, 2), EDDY_S(0), EDDY_F32, NULL)},
                *state = states[0];
    compile_first(table);
    eddy_program *program = record_rows(table, i, states);
    for (int run = 0; run < 3; run++)
        run_rows(program, i, state);
    cr_assert_eq(fused_calls(program), 2);
    for (int run = 0; run < 3; run++)
        run_rows(program, i, state);
    must_count(calls_of("cuGraphLaunch") > 0);
    must(eddy_copy_into(
        bad, i)); /* no memory is taken meanwhile, so that the run has that of the graph */
    run_rows(program, i, state);
    cr_assert(is_poisoned(state, NULL));
    must(eddy_recover(EDDY_LIST(state)));
    cr_assert_eq(sum_of(state), 2 * (5 + 7 * 11)); /* recorded, and run six times */
    eddy_program_release(&program);
    finish(scope);
}
