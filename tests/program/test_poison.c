/* Errors inside a run: each value has what it would have had after single calls, and the record names the recorded call. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>
#include <tests/program/outcome.h>

/* A lookup that fails for an index beyond 3, beside things that do and do not depend on it. */
typedef struct world {
    eddy_tensor *table, *touched,
        *apart; /* there before: read; written after the lookup; written beside it */
    eddy_tensor *found, *doubled, *healthy, *covered;
} world;

static void world_init(world *w) {
    w->table = eddy_ones(EDDY_SHAPE(4, 2), EDDY_F32, NULL);
    w->touched = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    w->apart = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    w->covered = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL);
}

static void compute(world *w, eddy_tensor *places) {
    w->found = eddy_index_select(w->table, places, 0);
    w->doubled = eddy_mul_s(w->found, EDDY_S(2));
    must(eddy_add_into(w->touched, eddy_sum(w->found, EDDY_AXES(0), NULL), w->touched));
    must(eddy_add_into(w->apart, w->apart, w->apart));
    must(eddy_mul_into(w->found, w->found, w->covered));
    w->healthy = eddy_neg(w->apart);
}

#define VALUES 6

static void list(const world *w, eddy_tensor **values) {
    eddy_tensor *all[VALUES] = {w->found, w->doubled, w->touched, w->apart, w->covered, w->healthy};
    memcpy(values, all, sizeof(all));
}

typedef struct seen {
    eddy_status status[VALUES];
    char message[VALUES][512], op[VALUES][48];
    uint64_t sequence[VALUES];
    const void *address[VALUES];
    double sums[VALUES];
} seen;

static void look(eddy_tensor *const *values, seen *s) {
    for (int i = 0; i < VALUES; i++) {
        eddy_error error = {0};
        s->status[i] = eddy_error_of(values[i], EDDY_FOREVER, &error);
        memcpy(s->message[i], error.message, sizeof(error.message));
        memcpy(s->op[i], error.op, sizeof(error.op));
        s->sequence[i] = error.sequence;
        s->address[i] = error.address;
        eddy_error_take(NULL);
        s->sums[i] = s->status[i] == EDDY_OK
                         ? eddy_item_f64(eddy_sum(values[i], EDDY_ALL_AXES, NULL), NULL)
                         : 0;
    }
}

static eddy_tensor *places(int64_t second) {
    int64_t at[2] = {1, second};
    return eddy_from_data(at, EDDY_SHAPE(2), EDDY_I64, NULL);
}

static eddy_program *record(world *w) {
    eddy_tensor *good = places(2);
    must(eddy_record_begin(NULL));
    compute(w, good);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"places", good, EDDY_ROLE_INPUT}, {"found", w->found, EDDY_ROLE_OUTPUT},
        {"doubled", w->doubled, EDDY_ROLE_OUTPUT}, {"healthy", w->healthy, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    cr_assert_not_null(program);
    return program;
}

static void expect_alike(const seen *eager, const seen *replayed) {
    uint64_t root = 0, replayed_root = 0;
    for (int i = 0; i < VALUES; i++) {
        cr_assert_eq(eager->status[i], replayed->status[i], "value %d: %s", i,
                     replayed->message[i]);
        cr_assert_str_eq(eager->message[i], replayed->message[i]);
        cr_assert_str_eq(eager->op[i], replayed->op[i]);
        cr_assert_eq(eager->sums[i], replayed->sums[i], "value %d", i);
        if (eager->status[i] == EDDY_OK)
            continue;
        /* All blame one root. */
        cr_assert(root == 0 || eager->sequence[i] == root);
        cr_assert(replayed_root == 0 || replayed->sequence[i] == replayed_root, "value %d", i);
        root = eager->sequence[i];
        replayed_root = replayed->sequence[i];
    }
    cr_assert_neq(root, 0);
}

Test(poison, goes_from_value_to_value_as_from_call_to_call) {
    eddy_scope *scope = eddy_scope_begin();
    world eager, recorded;
    eddy_tensor *values[VALUES];
    seen wanted, got;
    world_init(&eager);
    world_init(&recorded);
    eddy_program *program = record(&recorded);
    compute(&eager, places(2)); /* as the recorded calls did */
    compute(&eager, places(9));
    list(&eager, values);
    look(values, &wanted);
    cr_assert_eq(wanted.status[0], EDDY_OUT_OF_RANGE);
    cr_assert_eq(wanted.status[2], EDDY_SKIPPED);
    cr_assert_eq(wanted.status[3], EDDY_OK);
    eddy_tensor *outputs[3];
    must(eddy_program_run(program, EDDY_LIST(places(9)), outputs));
    recorded.found = outputs[0];
    recorded.doubled = outputs[1];
    recorded.healthy = outputs[2];
    list(&recorded, values);
    look(values, &got);
    expect_alike(&wanted, &got);
    /* The error is counted once, and the record names the call that was recorded. */
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    /* Recovered, the state goes on as it was; what is written whole is healed by the next run. */
    must(eddy_recover(EDDY_LIST(recorded.touched)));
    must(eddy_recover(EDDY_LIST(eager.touched)));
    compute(&eager, places(0));
    list(&eager, values);
    look(values, &wanted);
    must(eddy_program_run(program, EDDY_LIST(places(0)), outputs));
    recorded.found = outputs[0];
    recorded.doubled = outputs[1];
    recorded.healthy = outputs[2];
    list(&recorded, values);
    look(values, &got);
    for (int i = 0; i < VALUES; i++) {
        cr_assert_eq(got.status[i], EDDY_OK, "value %d: %s", i, got.message[i]);
        cr_assert_eq(got.sums[i], wanted.sums[i], "value %d", i);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(poison, of_an_input_blames_the_call_that_failed_before) {
    eddy_scope *scope = eddy_scope_begin();
    world recorded;
    world_init(&recorded);
    eddy_program *program = record(&recorded);
    eddy_tensor *doomed = eddy_index_select(places(1), places(7), 0);
    eddy_error root = {0}, error = {0};
    cr_assert_eq(eddy_error_of(doomed, EDDY_FOREVER, &root), EDDY_OUT_OF_RANGE);
    eddy_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    must(eddy_counters_read(&before));
    eddy_tensor *outputs[3];
    must(eddy_program_run(program, EDDY_LIST(doomed), outputs));
    cr_assert_eq(eddy_error_of(outputs[1], EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    cr_assert_eq(error.sequence, root.sequence);
    cr_assert_eq(eddy_error_of(recorded.touched, EDDY_FOREVER, &error), EDDY_SKIPPED);
    cr_assert_eq(error.sequence, root.sequence);
    must(eddy_error_of(outputs[2], EDDY_FOREVER, NULL));
    must(eddy_error_of(recorded.apart, EDDY_FOREVER, NULL));
    eddy_error_take(NULL);
    /* The lookup, its double, its sum, the sum's addition and its square. */
    must(eddy_counters_read(&after));
    cr_assert_eq(after.skipped - before.skipped, 5);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(poison, two_failures_in_one_run_have_two_records) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *table = eddy_ones(EDDY_SHAPE(4, 2), EDDY_F32, NULL), *a = places(0),
                *b = places(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *first = eddy_index_select(table, a, 0), *second = eddy_index_select(table, b, 0),
                *both = eddy_add(second, first);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"a", a, EDDY_ROLE_INPUT}, {"b", b, EDDY_ROLE_INPUT}, {"first", first, EDDY_ROLE_OUTPUT},
        {"second", second, EDDY_ROLE_OUTPUT}, {"both", both, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    /* Calls before and after the run have numbers before and after those of its calls. */
    eddy_tensor *outputs[3], *earlier = eddy_index_select(table, places(8), 0), *later;
    must(eddy_program_run(program, EDDY_LIST(places(5), places(6)), outputs));
    later = eddy_index_select(table, places(7), 0);
    eddy_error of_earlier = {0}, of_later = {0};
    cr_assert_eq(eddy_error_of(earlier, EDDY_FOREVER, &of_earlier), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_of(later, EDDY_FOREVER, &of_later), EDDY_OUT_OF_RANGE);
    eddy_error of_first = {0}, of_second = {0}, of_both = {0};
    cr_assert_eq(eddy_error_of(outputs[0], EDDY_FOREVER, &of_first), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_of(outputs[1], EDDY_FOREVER, &of_second), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_error_of(outputs[2], EDDY_FOREVER, &of_both), EDDY_OUT_OF_RANGE);
    cr_assert_lt(of_earlier.sequence, of_first.sequence);
    cr_assert_lt(of_first.sequence, of_second.sequence);
    cr_assert_lt(of_second.sequence, of_later.sequence);
    cr_assert_eq(of_both.sequence, of_first.sequence, "the lowest root is to blame");
    cr_assert_not_null(strstr(of_first.message, "5"));
    cr_assert_not_null(strstr(of_second.message, "6"));
    eddy_error_take(NULL);
    must(eddy_sync(EDDY_FOREVER));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(poison, infinities_are_found_inside_a_run) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_exp(x), *z = eddy_neg(y);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *large = eddy_full(EDDY_SHAPE(3), EDDY_S(1000), EDDY_F32, NULL), *output;
    eddy_error error = {0};
    must(eddy_program_run(program, EDDY_LIST(large), &output));
    cr_assert_eq(eddy_error_of(output, EDDY_FOREVER, &error), EDDY_NOT_FINITE);
    cr_assert_str_eq(error.op, "exp");
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x), &output));
    must(eddy_error_of(output, EDDY_FOREVER, NULL));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

/* A run for which there is no memory is tried again, and fails as a whole if it never gets any. */
Test(poison, a_run_without_memory_fails_as_a_whole) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .memory_limit = INT64_C(64) << 20));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_sum(eddy_neg(x), EDDY_ALL_AXES, NULL);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *filling[11], *output = NULL;
    for (int i = 0; i < 11; i++)
        filling[i] = eddy_ones(EDDY_SHAPE(1 << 20), EDDY_F32, NULL);
    must(eddy_sync(EDDY_FOREVER));
    eddy_trim();
    must(eddy_program_run(program, EDDY_LIST(x), &output));
    eddy_error error = {0};
    eddy_status status = eddy_error_of(output, EDDY_FOREVER, &error);
    cr_assert(status == EDDY_OUT_OF_MEMORY || status == EDDY_OK, "%s", error.message);
    eddy_error_take(NULL);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    for (int i = 0; i < 11; i++)
        eddy_release(&filling[i]);
    must(eddy_program_run(program, EDDY_LIST(x), &output));
    cr_assert_eq(eddy_item_f64(output, NULL), -(1 << 20));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

/* ---- what is written whole ---- */

/* As eager calls do: an input that is all of its storage is healed, and a part of one is not. */
Test(poison, an_input_that_is_written_whole_is_healed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL),
                *source = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(2), EDDY_F32, NULL), *result;
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    cr_assert_eq(eddy_copy_into(source, x), EDDY_OK);
    eddy_tensor *y = eddy_neg(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(2), EDDY_S(9), EDDY_I64, NULL);
    eddy_tensor *lost = eddy_index_select(source, beyond, 0); /* it has no memory either */
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(lost), &result), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(result, EDDY_ALL_AXES, NULL), NULL), -12);
    cr_assert_eq(eddy_item_f64(eddy_sum(lost, EDDY_ALL_AXES, NULL), NULL), 12);
    eddy_tensor *rows = eddy_full(EDDY_SHAPE(4), EDDY_S(9), EDDY_I64, NULL);
    eddy_tensor *part = eddy_narrow(
        eddy_index_select(eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL), rows, 0), 0, 0, 2);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(part), &result), EDDY_OK);
    float value[6];
    cr_assert_eq(eddy_read(result, value, sizeof(value), NULL), EDDY_OUT_OF_RANGE);
    eddy_program_release(&program);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    eddy_scope_end(scope);
}

/* Infinities are passed in by the run, not by the recording. */
Test(poison, what_is_finite_is_found_in_each_run) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_runtime_release(&runtime);
    eddy_scope *scope = eddy_scope_begin();
    const float finite[] = {1, 2}, infinite[] = {1, INFINITY};
    eddy_tensor *x = eddy_from_data(finite, EDDY_SHAPE(2), EDDY_F32, NULL), *result;
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    x = eddy_from_data(infinite, EDDY_SHAPE(2), EDDY_F32, NULL);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &result), EDDY_OK);
    float values[2];
    cr_assert_eq(eddy_read(result, values, sizeof(values), NULL), EDDY_OK);
    cr_assert(values[0] == 2 && isinf(values[1]));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
