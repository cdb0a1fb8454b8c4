/* Runs by name that fetch some outputs compute what these need. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/variant.h>
#include <pthread.h>
#include <stdio.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <unistd.h>

typedef struct net {
    eddy_tensor *x, *count, *noise, *cheap, *dear, *looked_up, *index;
    eddy_program *program;
} net;

/* Three outputs: a cheap one, a dear one, and one that may fail; a state that counts the runs, and a draw. */
static void make(net *n) {
    n->x = of(1);
    n->count = scalar(0);
    n->index = eddy_full(EDDY_SHAPE(1), EDDY_S(1), EDDY_I64, NULL);
    eddy_seed(7);
    must(eddy_record_begin(NULL));
    must(eddy_add_s_inplace(n->count, EDDY_S(1)));
    n->cheap = eddy_mul_s(n->x, EDDY_S(2));
    n->dear = eddy_mul(n->cheap, eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL));
    for (int i = 0; i < 10; i++)
        n->dear = eddy_tanh(n->dear);
    n->looked_up = eddy_index_select(n->x, n->index, 0);
    n->program = end(EDDY_BINDINGS(
        {"cheap", n->cheap, EDDY_ROLE_OUTPUT}, {"x", n->x, EDDY_ROLE_INPUT},
        {"dear", n->dear, EDDY_ROLE_OUTPUT}, {"count", n->count, EDDY_ROLE_STATE},
        {"index", n->index, EDDY_ROLE_INPUT}, {"looked_up", n->looked_up, EDDY_ROLE_OUTPUT}));
}

static uint32_t instructions(const net *n, uint32_t variant) {
    const eddy_program *program = n->program->variants->items[variant].program;
    return (program ? program : n->program)->code.instructions.count;
}

Test(variants, what_is_not_fetched_is_not_computed) {
    eddy_scope *scope = eddy_scope_begin();
    net n;
    eddy_tensor *cheap, *dear, *looked_up;
    make(&n);
    eddy_feeds feeds = EDDY_FEEDS({"x", of(3)}, {"index", n.index});
    cr_assert_eq(n.program->code.instructions.count, 15);
    must(eddy_program_run_named(n.program, feeds, EDDY_FETCHES({"cheap", &cheap}), NULL));
    cr_assert_eq(sum_of(cheap), 18);
    cr_assert_eq(n.program->variants->count, 1);
    cr_assert_eq(instructions(&n, 0), 3, "the count, the product, and the look-up, which may fail");
    must(eddy_program_run_named(n.program, feeds,
                                EDDY_FETCHES({"looked_up", &looked_up}, {"cheap", &cheap}), NULL));
    cr_assert_eq(sum_of(looked_up), 3);
    cr_assert_eq(sum_of(cheap), 18);
    must(eddy_program_run_named(n.program, feeds, EDDY_FETCHES({"dear", &dear}), NULL));
    must(eddy_program_run_named(n.program, feeds, (eddy_fetches){0}, NULL));
    must(eddy_program_run_named(n.program, feeds, EDDY_FETCHES({"cheap", &cheap}), NULL));
    cr_assert_eq(n.program->variants->count, 4);
    cr_assert_null(n.program->variants->items[2].program, "dear needs as much as all");
    cr_assert_eq(instructions(&n, 3), 2);
    cr_assert_eq(sum_of(n.count), 6, "effects are those of the program");
    eddy_program_release(&n.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, draws_errors_and_numbers_are_those_of_the_program) {
    eddy_scope *scope = eddy_scope_begin();
    net n;
    eddy_tensor *cheap, *all[3];
    eddy_error errors[2];
    uint64_t seeds[2], counters[2];
    make(&n);
    eddy_tensor *wrong = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL);
    for (int i = 0; i < 2; i++) {
        eddy_counters before = {.size = sizeof(before)}, after = before;
        eddy_seed(11);
        must(eddy_counters_read(&before));
        if (i == 0)
            must(eddy_program_run(n.program, EDDY_LIST(n.x, wrong), all));
        else
            must(eddy_program_run_named(n.program, EDDY_FEEDS({"x", n.x}, {"index", wrong}),
                                        EDDY_FETCHES({"cheap", &cheap}), NULL));
        must(eddy_counters_read(&after));
        eddy_generator_state(eddy_generator_default(), &seeds[i], &counters[i]);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE);
        eddy_error_take(&errors[i]);
        errors[i].sequence -= before.submitted;
        cr_assert_eq(after.submitted - before.submitted, 16);
    }
    cr_assert(seeds[0] == seeds[1] && counters[0] == counters[1]);
    cr_assert_str_eq(errors[0].message, errors[1].message);
    cr_assert_eq(errors[0].sequence, errors[1].sequence);
    eddy_program_release(&n.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, outputs_go_into_targets) {
    eddy_scope *scope = eddy_scope_begin();
    net n;
    make(&n);
    eddy_tensor *target = of(0), *looked_up;
    must(eddy_program_run_named(
        n.program, EDDY_FEEDS({"x", of(4)}, {"index", n.index}),
        EDDY_FETCHES({"looked_up", &looked_up}),
        EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"cheap", target}))));
    cr_assert_eq(sum_of(target), 24);
    cr_assert_eq(sum_of(looked_up), 4);
    cr_assert_eq(instructions(&n, 0), 3);
    eddy_program_release(&n.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, gradients_are_kept_as_by_all) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = of(2), *x = of(3), *y, *loss, *out;
    eddy_requires_grad_set(w, true);
    must(eddy_record_begin(NULL));
    must(eddy_grads_zero(EDDY_LIST(w)));
    y = eddy_detach(eddy_exp(x));
    loss = eddy_sum(eddy_mul(w, x), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_program *program = end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}, {"x", x, EDDY_ROLE_INPUT},
                                              {"w", w, EDDY_ROLE_STATE},
                                              {"loss", eddy_detach(loss), EDDY_ROLE_OUTPUT}));
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", of(5)}), EDDY_FETCHES({"loss", &out}),
                                NULL));
    cr_assert_eq(sum_of(out), 30);
    cr_assert_eq(sum_of(eddy_grad_of(w)), 15);
    cr_assert_not_null(program->variants->items[0].program);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* More sets than are kept, on several threads at once. */
#define MANY 6

typedef struct many {
    eddy_program *program;
    eddy_tensor *x;
    int thread;
} many;

static void *fetch_sets(void *argument) {
    const many *m = argument;
    static const char *const names[MANY] = {"o0", "o1", "o2", "o3", "o4", "o5"};
    eddy_scope *scope = eddy_scope_begin();
    for (unsigned round = 0; round < 200; round++) {
        unsigned set = (round * 7 + (unsigned)m->thread * 13) % (1u << MANY);
        eddy_tensor *outputs[MANY];
        eddy_fetch items[MANY];
        eddy_fetches fetches = {items, 0};
        for (int i = 0; i < MANY; i++)
            if (set >> i & 1)
                items[fetches.count++] = (eddy_fetch){names[i], &outputs[i]};
        must(eddy_program_run_named(m->program, EDDY_FEEDS({"x", m->x}), fetches, NULL));
        for (int i = 0; i < MANY; i++)
            if (set >> i & 1)
                cr_assert_eq(sum_of(outputs[i]), 3.0 * (i + 2));
    }
    eddy_scope_end(scope);
    return NULL;
}

Test(variants, threads_ask_for_many_sets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *outputs[MANY];
    must(eddy_record_begin(NULL));
    for (int i = 0; i < MANY; i++)
        outputs[i] = eddy_mul_s(x, EDDY_S(i + 2));
    eddy_program *program = end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"o0", outputs[0], EDDY_ROLE_OUTPUT},
                      {"o1", outputs[1], EDDY_ROLE_OUTPUT}, {"o2", outputs[2], EDDY_ROLE_OUTPUT},
                      {"o3", outputs[3], EDDY_ROLE_OUTPUT}, {"o4", outputs[4], EDDY_ROLE_OUTPUT},
                      {"o5", outputs[5], EDDY_ROLE_OUTPUT}));
    pthread_t threads[3];
    many m[3];
    for (int t = 0; t < 3; t++) {
        m[t] = (many){program, x, t};
        cr_assert_eq(pthread_create(&threads[t], NULL, fetch_sets, &m[t]), 0);
    }
    for (int t = 0; t < 3; t++)
        pthread_join(threads[t], NULL);
    cr_assert_eq(program->variants->count, EDDY_VARIANTS_MOST);
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_gt(info.program_bytes, 0);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, loaded_programs_have_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *scale = of(2), *offset = of(5), *out;
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(x, scale), *z = eddy_exp(eddy_add(x, offset));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"scale", scale, EDDY_ROLE_CONSTANT},
                          {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-variants-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(program);
    for (int i = 0; i < 2; i++) {
        must(eddy_program_run_named(program, EDDY_FEEDS({"x", of(4)}), EDDY_FETCHES({"y", &out}),
                                    NULL));
        cr_assert_eq(sum_of(out), 24);
        must(eddy_program_run_named(program, EDDY_FEEDS({"x", of(-5)}), EDDY_FETCHES({"z", &out}),
                                    NULL));
        cr_assert_eq(sum_of(out), 3);
    }
    cr_assert_eq(program->variants->items[0].program->code.instructions.count, 1);
    cr_assert_eq(program->variants->items[1].program->code.instructions.count, 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- before the first run ---- */

static int64_t bytes_of(eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.program_bytes;
}

static int64_t cached(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_counters_read(&counters));
    return counters.bytes_cached;
}

Test(variants, what_a_first_run_takes_is_prepared) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1000, 100), EDDY_F32, NULL), *y, *mean;
    must(eddy_record_begin(NULL));
    eddy_tensor *h = eddy_cumsum(eddy_exp(x), 0);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_cumsum(h, 1), EDDY_ROLE_OUTPUT},
                      {"mean", eddy_mean(x, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_gt(info.arena_bytes, 400000);
    must(eddy_sync(
        EDDY_FOREVER)); /* the recorded calls have taken their memory: none of what is prepared */
    (void)eddy_trim();
    must(eddy_program_prepare(program, NULL, 0));
    must(eddy_sync(EDDY_FOREVER)); /* what it has released is in the cache */
    cr_assert_geq(cached(), info.arena_bytes);
    int64_t before = bytes_of(program);
    must(eddy_program_prepare(program, (const char *const[]){"mean"}, 1));
    int64_t after = bytes_of(program);
    cr_assert_gt(after, before, "the program for that output");
    must(
        eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"mean", &mean}), NULL));
    cr_assert_eq(bytes_of(program), after);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &y}), NULL));
    cr_assert_eq(sum_of(mean), 1);
    cr_assert_eq(eddy_program_prepare(program, (const char *const[]){"mean", "mean"}, 2),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "program_prepare: output mean is given twice");
    cr_assert_eq(eddy_program_prepare(program, (const char *const[]){"z"}, 1),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_prepare: the program has no output z: there are y, mean");
    must(eddy_sync(EDDY_FOREVER)); /* a run under way holds its program */
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, a_recording_sees_nothing_of_what_is_prepared) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64, 64), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_matmul(eddy_matmul(x, x), x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int records_only = 0; records_only < 2; records_only++) {
        must(eddy_record_begin(
            EDDY_OPTIONS(record, .passes = "none", .records_only = records_only)));
        must(eddy_program_prepare(program, NULL, 0));
        eddy_program *other = eddy_record_end(
            EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_exp(x), EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(other);
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(other, &info));
        cr_assert_eq(info.recorded_count, 1);
        eddy_program_release(&other);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(variants, a_run_for_which_there_is_no_memory_is_not_prepared) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .memory_limit = INT64_C(64) << 20));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1024), EDDY_F32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *rows = eddy_cumsum(eddy_repeat(x, EDDY_SHAPE(INT64_C(1) << 15)), 0);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"sum", eddy_sum(rows, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    char sentence[200];
    snprintf(sentence, sizeof(sentence),
             "program_prepare: a run takes %lld bytes beside its outputs: out of memory",
             (long long)info.arena_bytes);
    cr_assert_eq(eddy_program_prepare(program, NULL, 0), EDDY_OUT_OF_MEMORY);
    expect_error(EDDY_OUT_OF_MEMORY, sentence);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}
