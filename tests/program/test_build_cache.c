/* Programs of the same content share what they are built to; whatever differs is built. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/call_sites.h>
#include <eddy/eddy.h>
#include <interpreter/handle/runtime.h>
#include <program/build_cache.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <tests/program/outcome.h>
#include <unistd.h>

static eddy_counters counters(void) {
    eddy_counters read = {.size = sizeof(read)};
    must(eddy_counters_read(&read));
    return read;
}

/* How many programs were built and shared since. */
static void expect_since(const eddy_counters *before, int64_t built, int64_t shared) {
    eddy_counters now = counters();
    cr_assert_eq(now.programs_built - before->programs_built, built, "%lld built",
                 (long long)(now.programs_built - before->programs_built));
    cr_assert_eq(now.programs_shared - before->programs_shared, shared, "%lld shared",
                 (long long)(now.programs_shared - before->programs_shared));
}

static eddy_tensor *filled(int64_t count, double value) {
    return eddy_full(EDDY_SHAPE(count), EDDY_S(value), EDDY_F32, NULL);
}

/* total += relu(x w); y = sum(x w) exp(x w): a captured tensor, state, and a value that passes keep within a group. */
typedef struct fixture {
    eddy_program *program;
    eddy_tensor *total;
} fixture;

static fixture record(int64_t count, double weight, const char *passes) {
    eddy_tensor *x = filled(count, 1), *w = filled(count, weight), *total = filled(count, 0);
    must(eddy_record_begin(passes ? EDDY_OPTIONS(record, .passes = passes) : NULL));
    eddy_tensor *product = eddy_mul(x, w);
    must(eddy_add_into(total, eddy_relu(product), total));
    eddy_tensor *y = eddy_mul(eddy_sum(product, EDDY_ALL_AXES, NULL), eddy_exp(product));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"total", total, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return (fixture){program, total};
}

static void expect_run(fixture *f, double weight, int64_t count) {
    eddy_tensor *x = filled(count, 2), *y, *wanted;
    double before = sum_of(f->total);
    must(eddy_program_run(f->program, EDDY_LIST(x), &y));
    wanted = eddy_mul_s(eddy_exp(filled(count, 2 * weight)), EDDY_S(2 * weight * (double)count));
    cr_assert_eq(sum_of(y), sum_of(wanted));
    cr_assert_eq(sum_of(f->total), before + 2 * weight * (double)count);
}

Test(build_cache, equal_programs_share_and_hold_their_own_tensors) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_counters before = counters();
    fixture a = record(8, 1, NULL), b = record(8, 3, NULL);
    expect_since(&before, 1, 1);
    cr_assert_eq(a.program->executable, b.program->executable);
    expect_run(&a, 1, 8);
    expect_run(&b, 3, 8);
    expect_run(&a, 1, 8);
    cr_assert_eq(sum_of(a.total), 8 + 2 * 16);
    cr_assert_eq(sum_of(b.total), 3 * 8 + 3 * 16);
    eddy_program_release(&a.program);
    expect_run(&b, 3, 8);
    eddy_program_release(&b.program);
    /* What nobody holds any more is found again. */
    fixture c = record(8, 2, NULL);
    expect_since(&before, 1, 2);
    expect_run(&c, 2, 8);
    eddy_program_release(&c.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(build_cache, names_do_not_matter) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_counters before = counters();
    static const char *const names[][2] = {{"x", "y"}, {"in", "out"}};
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = filled(4, 1), *y;
        must(eddy_record_begin(NULL));
        y = eddy_exp(x);
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({names[i][0], x, EDDY_ROLE_INPUT}, {names[i][1], y, EDDY_ROLE_OUTPUT}));
        cr_assert_eq(eddy_program_input(program, names[i][0]), 0);
        cr_assert_eq(eddy_program_output(program, names[i][1]), 0);
        eddy_program_release(&program);
    }
    expect_since(&before, 1, 1);
    eddy_scope_end(scope);
}

/* ---- what differs ---- */

/* One program of each kind, which differs from that of kind 0 in one thing. */
static eddy_program *record_kind(int kind) {
    eddy_dtype dtype = kind == 1 ? EDDY_F64 : EDDY_F32;
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(kind == 2 ? 3 : 4, 4), dtype, NULL);
    eddy_tensor *held = eddy_ones(EDDY_SHAPE(4), dtype, NULL);
    if (kind == 3)
        x = eddy_t(x);
    must(eddy_record_begin(kind == 4 ? EDDY_OPTIONS(record, .passes = "dead") : NULL));
    eddy_tensor *y = kind == 5 ? eddy_sub(x, held) : eddy_add(x, held);
    y = kind == 13 ? eddy_dropout(y, EDDY_S(0.5), NULL) : y;
    y = eddy_leaky_relu(y, EDDY_OPTIONS(leaky_relu, .negative_slope = kind == 6 ? 0.5 : 0.25));
    eddy_tensor *z = kind == 7 ? eddy_mul(y, x) : eddy_mul(x, y);
    eddy_tensor *last = kind == 8 ? eddy_abs(z) : eddy_neg(z);
    if (kind == 9)
        must(eddy_add_into(held, held, held));
    if (kind == 14)
        eddy_exp(z); /* dead, but it has a number */
    eddy_binding bindings[] = {
        {"x", x, kind == 10 ? EDDY_ROLE_STATE : EDDY_ROLE_INPUT},
        {"y", kind == 11 ? z : last, EDDY_ROLE_OUTPUT},
        {"held", held, kind == 15 ? EDDY_ROLE_CONSTANT : EDDY_ROLE_STATE},
        {"also", kind == 12 ? y : z, EDDY_ROLE_OUTPUT},
    };
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, kind == 16 ? 3 : 4});
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

Test(build_cache, what_differs_is_built) {
    enum { KINDS = 17 };
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *programs[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        eddy_counters before = counters();
        programs[kind] = record_kind(kind);
        cr_assert_eq(counters().programs_shared, before.programs_shared, "kind %d", kind);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        eddy_counters before = counters();
        eddy_program *again = record_kind(kind);
        cr_assert_eq(counters().programs_built, before.programs_built, "kind %d", kind);
        cr_assert_eq(again->executable, programs[kind]->executable, "kind %d", kind);
        eddy_program_release(&again);
        eddy_program_release(&programs[kind]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Of tensors that were there before and that no instruction uses, a program keeps those that it gives out. */
Test(build_cache, outputs_that_were_there_before_are_each_programs_own) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *programs[2];
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = filled(4, 1), *first = filled(4, 5), *second = filled(4, 7);
        must(eddy_record_begin(NULL));
        eddy_add(first, second); /* dead */
        eddy_tensor *y = eddy_exp(x);
        programs[i] = eddy_record_end(EDDY_BINDINGS(
            {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"one", first, EDDY_ROLE_OUTPUT},
            {"other", i ? second : first, EDDY_ROLE_OUTPUT}));
        must(programs[i] ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    }
    cr_assert_neq(programs[0]->executable, programs[1]->executable);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *outputs[3];
        must(eddy_program_run(programs[i], EDDY_LIST(filled(4, 0)), outputs));
        cr_assert_eq(sum_of(outputs[0]), 4);
        cr_assert_eq(sum_of(outputs[1]), 20);
        cr_assert_eq(sum_of(outputs[2]), i ? 28 : 20);
        eddy_program_release(&programs[i]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* An error's sequence number tells the call, of all that were recorded. */
Test(build_cache, the_numbers_of_calls_are_each_programs_own) {
    eddy_scope *scope = eddy_scope_begin();
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-build-cache-%ld", (long)getpid());
    eddy_program *loaded[2];
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = filled(4, 1);
        must(eddy_record_begin(NULL));
        if (i == 0)
            eddy_abs(x); /* dead: the file has the calls that are left, with their numbers */
        eddy_tensor *y = eddy_exp(x);
        if (i == 1)
            eddy_abs(x);
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_neg(y), EDDY_ROLE_OUTPUT}));
        must(eddy_program_save(program, path));
        loaded[i] = eddy_program_load(path);
        must(loaded[i] ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        eddy_program_release(&program);
    }
    unlink(path);
    cr_assert_neq(loaded[0]->executable, loaded[1]->executable);
    cr_assert_eq(eddy_code_instruction_at(&loaded[0]->code, 0)->ordinal, 1);
    cr_assert_eq(eddy_code_instruction_at(&loaded[1]->code, 0)->ordinal, 0);
    eddy_program_release(&loaded[0]);
    eddy_program_release(&loaded[1]);
    eddy_scope_end(scope);
}

/* State that a program writes whole heals. */
Test(build_cache, what_is_written_whole_heals) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *rows = eddy_ones(EDDY_SHAPE(3, 4), EDDY_F32, NULL),
                *bad = eddy_full(EDDY_SHAPE(1), EDDY_S(9), EDDY_I64, NULL);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(1, 4), EDDY_F32, NULL),
                    *set = eddy_zeros_like(x, NULL), *kept = eddy_zeros_like(x, NULL);
        must(eddy_record_begin(NULL));
        must(eddy_copy_into(eddy_exp(x), set));
        must(eddy_add_into(kept, x, kept));
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"set", set, EDDY_ROLE_STATE},
                                          {"kept", kept, EDDY_ROLE_STATE}));
        must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        cr_assert_eq(counters().programs_shared, i);
        set = eddy_exp(eddy_index_select(rows, bad, 0)); /* skipped, and without memory */
        kept = eddy_index_select(rows, bad, 0);
        must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}, {"set", set}, {"kept", kept}),
                                    (eddy_fetches){0}, NULL));
        eddy_error error = {0};
        cr_assert_eq(eddy_error_of(set, EDDY_FOREVER, &error), EDDY_OK);
        cr_assert_eq(sum_of(set), sum_of(eddy_exp(x)));
        cr_assert_eq(eddy_error_of(kept, EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
        eddy_program_release(&program);
    }
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

/* A digest says where to look, and no more. */
Test(build_cache, a_digest_is_no_proof) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record(8, 1, NULL);
    eddy_build_key other = f.program->built->key;
    uint64_t *words = malloc(eddy_build_key_bytes(&other));
    memcpy(words, other.words, eddy_build_key_bytes(&other));
    other.words = words;
    eddy_built *found = eddy_build_cache_find(f.program->runtime, &other);
    cr_assert_eq(found, f.program->built);
    eddy_built_release(found);
    words[other.count - 1] ^= 1;
    cr_assert_null(eddy_build_cache_find(f.program->runtime, &other));
    words[other.count - 1] ^= 1;
    other.count--;
    cr_assert_null(eddy_build_cache_find(f.program->runtime, &other));
    free(words);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
}

/* ---- where programs come from ---- */

static eddy_status twice(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = eddy_exp(eddy_mul_s(call->inputs.items[0], call->scalars[0]));
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(build_cache, recorded_functions_share) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_counters before = counters();
    for (int i = 0; i < 2; i++) {
        eddy_recorded *recorded = eddy_recorded_create(twice, NULL, 1, NULL);
        for (int k = 0; k < 4; k++) {
            eddy_tensor *y;
            must(eddy_recorded_run(recorded, EDDY_LIST(filled(5, 1)), EDDY_SCALARS(EDDY_S(k)), &y));
            cr_assert_eq(sum_of(y), sum_of(eddy_exp(filled(5, k))));
        }
        eddy_recorded_release(&recorded);
    }
    expect_since(&before, 1, 1);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(build_cache, a_program_that_is_loaded_again_shares) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record(8, 3, NULL);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-build-cache-%ld", (long)getpid());
    must(eddy_program_save(f.program, path));
    eddy_program *first = eddy_program_load(path);
    eddy_counters before = counters();
    eddy_program *second = eddy_program_load(path);
    unlink(path);
    must(first && second ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    expect_since(&before, 0, 1);
    cr_assert_eq(first->executable, second->executable);
    for (int i = 0; i < 2; i++) {
        fixture loaded = {i ? second : first, NULL};
        loaded.total = eddy_program_state(loaded.program, "total");
        expect_run(&loaded, 3, 8);
    }
    eddy_program_release(&first);
    eddy_program_release(&second);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The startup program has run with each program's own constants. */
Test(build_cache, folded_constants_are_each_programs_own) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *programs[3];
    eddy_counters before = {0};
    for (int i = 0; i < 3; i++) {
        eddy_tensor *x = filled(4, 1), *scale = filled(4, i + 1);
        must(eddy_record_begin(NULL));
        eddy_tensor *y = eddy_add(eddy_mul(x, eddy_mul_s(scale, EDDY_S(10))),
                                  eddy_neg(eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL)));
        programs[i] = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT},
                                                    {"scale", scale, EDDY_ROLE_CONSTANT},
                                                    {"y", y, EDDY_ROLE_OUTPUT}));
        must(programs[i] ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        eddy_program_info info = {.size = sizeof(info)};
        must(eddy_program_describe(programs[i], &info));
        cr_assert_eq(info.instruction_count, 2, "what depends on the constant is folded");
        if (i == 0)
            before = counters();
    }
    expect_since(&before, 0, 4);
    for (int i = 0; i < 3; i++) {
        eddy_tensor *y;
        must(eddy_program_run(programs[i], EDDY_LIST(filled(4, 2)), &y));
        cr_assert_eq(sum_of(y), 4 * (20 * (i + 1) - 1));
        eddy_program_release(&programs[i]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(build_cache, gradients_and_variants_share) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *layers[2];
    eddy_tensor *w[2], *x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_counters before = {0};
    for (int i = 0; i < 2; i++) {
        w[i] = eddy_full(EDDY_SHAPE(3, 3), EDDY_S(i + 1), EDDY_F32, NULL);
        must(eddy_requires_grad_set(w[i], true));
        must(eddy_record_begin(NULL));
        eddy_tensor *y = eddy_tanh(eddy_linear(x, w[i], EDDY_NONE));
        layers[i] = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                          {"z", eddy_detach(eddy_exp(y)), EDDY_ROLE_OUTPUT}));
        must(layers[i] ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        must(eddy_program_prepare(layers[i], (const char *const[]){"z"}, 1));
        if (i == 0)
            before = counters();
    }
    eddy_counters now = counters();
    cr_assert_eq(now.programs_built, before.programs_built);
    cr_assert_eq(now.programs_shared - before.programs_shared, before.programs_built);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *outputs[2];
        must(eddy_program_run(layers[i], EDDY_LIST(x), outputs));
        must(eddy_backward(eddy_sum(outputs[0], EDDY_ALL_AXES, NULL)));
        double replayed = sum_of(eddy_grad_of(w[i]));
        eddy_grads_zero(EDDY_LIST(w[i]));
        must(eddy_backward(
            eddy_sum(eddy_tanh(eddy_linear(x, w[i], EDDY_NONE)), EDDY_ALL_AXES, NULL)));
        cr_assert_eq(replayed, sum_of(eddy_grad_of(w[i])));
        eddy_program_release(&layers[i]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- errors name each recording's own lines ---- */

static eddy_program *record_look_up(eddy_tensor *rows, eddy_tensor *index, const char *place) {
    must(eddy_record_begin(NULL));
    const char *before = eddy_call_site_set(place);
    eddy_tensor *y = eddy_exp(eddy_index_select(rows, index, 0));
    eddy_call_site_set(before);
    return eddy_record_end(
        EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
}

Test(build_cache, errors_name_each_recordings_own_lines) {
    static const char *const places[] = {"one.c:10", "two.c:20"};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *rows = eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL), *y;
    eddy_tensor *good = eddy_full(EDDY_SHAPE(2), EDDY_S(3), EDDY_I64, NULL),
                *bad = eddy_full(EDDY_SHAPE(2), EDDY_S(7), EDDY_I64, NULL);
    eddy_program *programs[2];
    for (int i = 0; i < 2; i++)
        programs[i] = record_look_up(rows, good, places[i]);
    cr_assert_eq(programs[0]->executable, programs[1]->executable);
    for (int i = 0; i < 2; i++) {
        eddy_error error = {0};
        must(eddy_program_run(programs[i], EDDY_LIST(bad), &y));
        cr_assert_eq(eddy_error_of(y, EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
        cr_assert_str_eq(error.place, places[i]);
        eddy_program_release(&programs[i]);
    }
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

/* ---- bounds ---- */

/* A runtime that keeps so many bytes, as the calling thread's. */
static eddy_runtime *use_runtime(int64_t bytes) {
    eddy_runtime *runtime = eddy_runtime_create(
        EDDY_OPTIONS(runtime, .uses_one_thread = true, .program_cache_bytes = bytes));
    must(eddy_runtime_use(runtime));
    return runtime;
}

static void end_runtime(eddy_runtime *runtime) {
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

static void make(int64_t count, bool is_shared) {
    eddy_counters before = counters();
    fixture f = record(count, 1, NULL);
    expect_since(&before, !is_shared, is_shared);
    eddy_program_release(&f.program);
}

Test(build_cache, what_was_used_least_recently_goes_first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *runtime = use_runtime(INT64_C(1) << 30);
    make(8, false);
    int64_t one = counters().program_cache_bytes;
    cr_assert_gt(one, 0);
    make(9, false);
    cr_assert_eq(counters().program_cache_bytes, 2 * one);
    cr_assert_geq(eddy_trim(), 2 * one);
    cr_assert_eq(counters().program_cache_bytes, 0);
    make(8, false);
    eddy_scope_end(scope);
    end_runtime(runtime);

    scope = eddy_scope_begin();
    runtime = use_runtime(3 * one);
    for (int count = 8; count < 11; count++)
        make(count, false);
    make(8, true);
    make(11, false); /* 9 goes */
    cr_assert_eq(counters().program_cache_bytes, 3 * one);
    make(8, true);
    make(10, true);
    make(11, true);
    make(9, false); /* 8 goes */
    make(8, false);
    eddy_scope_end(scope);
    end_runtime(runtime);

    scope = eddy_scope_begin();
    runtime = use_runtime(one - 1);
    make(8, false);
    make(8, false);
    cr_assert_eq(counters().program_cache_bytes, 0);
    eddy_scope_end(scope);
    end_runtime(runtime);

    /* What is too large takes the place of nothing. */
    scope = eddy_scope_begin();
    runtime = use_runtime(2 * one);
    make(8, false);
    eddy_tensor *x = filled(8, 1), *y = x;
    must(eddy_record_begin(NULL));
    for (int i = 0; i < 200; i++)
        y = eddy_matmul(eddy_reshape(y, EDDY_SHAPE(1, 8)),
                        eddy_ones(EDDY_SHAPE(8, 8), EDDY_F32, NULL));
    eddy_program *large =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(large ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(counters().program_cache_bytes, one);
    make(8, true);
    eddy_program_release(&large);
    eddy_scope_end(scope);
    end_runtime(runtime);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
}

/* With what was built before, and without: what is not kept for want of memory is built all the same. */
Test(build_cache, each_allocation_of_a_build_may_fail) {
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        int at = 0;
        for (bool has_failed = true; has_failed; at++) {
            eddy_scope *scope = eddy_scope_begin();
            fixture first = {0}, f = {.total = filled(8, 0)};
            eddy_trim();
            if (is_kept)
                first = record(8, 1, NULL);
            eddy_tensor *x = filled(8, 1), *w = filled(8, 3);
            must(eddy_record_begin(NULL));
            eddy_tensor *product = eddy_mul(x, w);
            must(eddy_add_into(f.total, eddy_relu(product), f.total));
            eddy_tensor *y = eddy_mul(eddy_sum(product, EDDY_ALL_AXES, NULL), eddy_exp(product));
            const eddy_bindings *bindings =
                EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"total", f.total, EDDY_ROLE_STATE},
                              {"y", y, EDDY_ROLE_OUTPUT});
            eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, at, 1);
            f.program = eddy_record_end(bindings);
            has_failed = eddy_memory_failures_injected() > 0;
            eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
            cr_assert_eq(eddy_error_take(NULL), f.program ? EDDY_OK : EDDY_OUT_OF_MEMORY);
            if (f.program)
                expect_run(&f, 3, 8);
            fixture after = record(8, 2, NULL);
            expect_run(&after, 2, 8);
            eddy_program_release(&first.program);
            eddy_program_release(&f.program);
            eddy_program_release(&after.program);
            eddy_scope_end(scope);
            must(eddy_sync(EDDY_FOREVER)); /* runs hold their programs until the end */
            eddy_trim();
            cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0, "%d", at);
        }
        cr_assert_gt(at, is_kept ? 10 : 30, "%d", at);
    }
}

/* A runtime keeps what it was given for itself. */
Test(build_cache, runtimes_do_not_share) {
    eddy_scope *scope = eddy_scope_begin();
    make(8, false);
    eddy_runtime *runtime = use_runtime(0);
    make(8, false);
    make(8, true);
    eddy_scope_end(scope);
    end_runtime(runtime);
    make(8, true);
}

Test(build_cache, a_program_outlives_its_runtime_and_the_cache) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *runtime = use_runtime(0);
    fixture a = record(8, 1, NULL), b = record(8, 2, NULL);
    cr_assert_gt(eddy_trim(), 0);
    expect_run(&b, 2, 8);
    must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
    eddy_tensor *y = NULL;
    cr_assert_eq(eddy_program_run(a.program, EDDY_LIST(a.total), &y), EDDY_SHUT_DOWN);
    eddy_error_take(NULL);
    eddy_program_release(&a.program);
    eddy_program_release(&b.program);
    eddy_scope_end(scope);
    end_runtime(runtime);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
}

/* ---- threads, fork ---- */

enum { THREADS = 4, ROUNDS = 60 };

/* One kind in every second round, which threads find, and others for which the cache has too little room. */
static void *build_and_run(void *runtime) {
    must(eddy_runtime_use(runtime));
    for (int i = 0; i < ROUNDS; i++) {
        eddy_scope *scope = eddy_scope_begin();
        int64_t count = 8 + i % 2 * (i % 5);
        fixture f = record(count, i % 3, NULL);
        expect_run(&f, i % 3, count);
        eddy_program_release(&f.program);
        if (i % 16 == 0)
            eddy_trim();
        eddy_scope_end(scope);
    }
    must(eddy_runtime_use(NULL));
    return NULL;
}

Test(build_cache, threads_build_the_same_at_once) {
    eddy_scope *scope = eddy_scope_begin();
    make(8, false);
    int64_t most = 3 * counters().program_cache_bytes;
    eddy_scope_end(scope);
    eddy_trim();
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2, .program_cache_bytes = most));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, build_and_run, runtime), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    must(eddy_runtime_use(runtime));
    eddy_counters now = counters();
    cr_assert_eq(now.programs_built + now.programs_shared, THREADS * ROUNDS);
    cr_assert_gt(now.programs_shared, 0);
    cr_assert_leq(now.program_cache_bytes, most);
    end_runtime(runtime);
    cr_assert_eq(eddy_live_count(), 0);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
}

static void *build_until_it_is_shut_down(void *runtime) {
    must(eddy_runtime_use(runtime));
    for (bool has_made = true; has_made;) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = filled(8, 1), *result;
        (void)eddy_record_begin(NULL); /* it may fail here, or on any line below */
        eddy_tensor *y = eddy_exp(eddy_mul(x, x));
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        has_made = program && eddy_program_run(program, EDDY_LIST(x), &result) == EDDY_OK;
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHUT_DOWN, "%s", error.message);
    must(eddy_runtime_use(NULL));
    return NULL;
}

Test(build_cache, a_runtime_shuts_down_while_threads_build) {
    for (int round = 0; round < 20; round++) {
        eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, build_until_it_is_shut_down, runtime),
                         0);
        must(eddy_runtime_use(runtime));
        while (counters().programs_shared < 10 * round)
            ;
        must(eddy_runtime_use(NULL));
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
        eddy_runtime_release(&runtime);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

Test(build_cache, a_child_gives_programs_back_and_builds_its_own) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = record(8, 1, NULL);
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        eddy_program_release(&f.program);
#ifdef __SANITIZE_THREAD__
        /* ThreadSanitizer lets no forked child start threads. */
        eddy_runtime_use(eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true)));
#endif
        eddy_scope *own = eddy_scope_begin();
        fixture again = record(8, 2, NULL);
        eddy_counters now = counters();
        bool is_right = now.programs_built == 1 && now.programs_shared == 0;
        expect_run(&again, 2, 8);
        eddy_program_release(&again.program);
        eddy_scope_end(own);
        _exit(is_right ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    expect_run(&f, 1, 8);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
}
