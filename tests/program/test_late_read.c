/* Reads for a callback in recordings: each run makes them again, with its own elements. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/program.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/heard.h>
#include <tests/program/outcome.h>
#include <tests/program/runtimes.h>

#define ROWS 3
#define COLUMNS 4
#define ROUNDS 6

/* ---- tensors ---- */

static eddy_tensor *ramp(double first) {
    return eddy_reshape(
        eddy_arange(EDDY_S(first), EDDY_S(first + ROWS * COLUMNS), EDDY_S(1), EDDY_F32, NULL),
        EDDY_SHAPE(ROWS, COLUMNS));
}

/* With elements before and behind it. */
static eddy_tensor *part(double first) {
    return eddy_narrow(eddy_cat(EDDY_LIST(ramp(100), ramp(first), ramp(200)), 0), 0, ROWS, ROWS);
}

static eddy_tensor *poisoned(void) {
    return eddy_index_select(ramp(1), eddy_full(EDDY_SHAPE(ROWS), EDDY_S(ROWS), EDDY_I64, NULL), 0);
}

static char *text_of(const eddy_program *program) {
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    must(eddy_program_print(program, file, NULL));
    fclose(file);
    return text;
}

static int count_in(const char *text, const char *what) {
    int count = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        count++;
    return count;
}

/* ---- the same as calls ---- */

/* Of an input, of what is made and overwritten, of views, of state before and after writes, of what was there before and stays. */
static eddy_tensor *compute(eddy_tensor *x, eddy_tensor *state, eddy_tensor *fixed) {
    listen_to(x, 0);
    eddy_tensor *h = eddy_relu(x);
    listen_to(eddy_t(eddy_slice(h, 1, 1, COLUMNS, 2)), 1);
    listen_to(state, 2);
    must(eddy_add_into(state, x, state));
    must(eddy_mul_s_inplace(h, EDDY_S(2)));
    listen_to(eddy_narrow(state, 0, 1, 1), 3);
    eddy_tensor *sum = eddy_sum(eddy_mul(h, fixed), EDDY_ALL_AXES, NULL);
    listen_to(sum, 4);
    must(eddy_mul_s_inplace(eddy_narrow(h, 0, 0, 1), EDDY_S(3)));
    listen_to(h, 5);
    listen_to(sum, 6);
    listen_to(eddy_expand(eddy_narrow(fixed, 0, 0, 1), EDDY_SHAPE(2, COLUMNS)), 7);
    return eddy_sqrt(sum);
}

static eddy_program *record(eddy_tensor *x, eddy_tensor *state, eddy_tensor *fixed,
                            const char *passes) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    eddy_tensor *y = compute(x, state, fixed);
    return end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                             {"y", y, EDDY_ROLE_OUTPUT}));
}

static void compare_runs(void) {
    static const char *const passes[] = {"all", "none"};
    for (int p = 0; p < 2; p++) {
        eddy_tensor *state = ramp(-4), *own = eddy_clone(state), *fixed = ramp(3), *y;
        eddy_program *program = record(part(1), state, fixed, passes[p]);
        heard wanted = *settle();
        compute(part(1), own, fixed);
        expect_heard(&wanted, "the recording calls back once");
        cr_assert_eq(wanted.count, 8);
        for (int i = 0; i < ROUNDS; i++) {
            eddy_tensor *x = part(-5 + 3 * i);
            compute(x, own, fixed);
            wanted = *settle();
            must(eddy_program_run(program, EDDY_LIST(x), &y));
            expect_heard(&wanted, passes[p]);
            must_have_same_bits(state, own, "state");
        }
        eddy_program_release(&program);
    }
}

Test(late_read, gives_the_elements_that_calls_give) {
    in_runtimes(compare_runs);
}

static void fail_runs(void) {
    eddy_tensor *state = ramp(-4), *own = eddy_clone(state), *fixed = ramp(3), *y;
    eddy_program *program = record(ramp(1), state, fixed, NULL);
    compute(ramp(1), own, fixed);
    settle();
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = i == 0 ? poisoned() : ramp(2);
        compute(x, own, fixed);
        heard wanted = by_tag(settle());
        cr_assert_eq(wanted.entries[0].status, i == 0 ? EDDY_OUT_OF_RANGE : EDDY_OK);
        cr_assert_eq(wanted.entries[3].status, EDDY_OUT_OF_RANGE, "state stays poisoned");
        cr_assert_eq(wanted.entries[7].status, EDDY_OK);
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        expect_heard(&wanted, "poison");
    }
    eddy_program_release(&program);
}

Test(late_read, of_what_has_failed_hands_out_its_error) {
    in_runtimes(fail_runs);
}

/* ---- random recordings ---- */

#define POOL 6
#define STEPS 24

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int below(uint64_t *state, int limit) {
    return (int)(next_random(state) % (uint64_t)limit);
}

static eddy_tensor *random_view(eddy_tensor *tensor, uint64_t *state) {
    switch (below(state, 4)) {
    case 0:
        return eddy_t(tensor);
    case 1:
        return eddy_slice(tensor, 1, 0, COLUMNS, 2);
    case 2:
        return eddy_select(tensor, 0, below(state, ROWS));
    default:
        return tensor;
    }
}

static eddy_tensor *random_calls(eddy_tensor *x, eddy_tensor *other, eddy_tensor *held,
                                 uint64_t seed) {
    eddy_tensor *pool[POOL] = {x, other, held, eddy_neg(x), eddy_abs(held), eddy_clone(other)};
    uint64_t state = seed;
    int tag = 0;
    for (int i = 0; i < STEPS; i++) {
        int a = below(&state, POOL), b = below(&state, POOL), to = below(&state, POOL);
        switch (below(&state, 5)) {
        case 0:
            pool[to] = eddy_maximum(eddy_sub(pool[a], pool[b]), pool[to]);
            break;
        case 1: /* the inputs stay */
            must(eddy_mul_s_inplace(to < 2 ? held : pool[to], EDDY_S(0.5)));
            break;
        case 2:
            must(eddy_add_into(pool[a], pool[b], pool[2 + to % 4] == x ? held : pool[2 + to % 4]));
            break;
        default:
            listen_to(random_view(pool[a], &state), tag++);
        }
    }
    return eddy_add(pool[3], pool[4]);
}

static void compare_random(uint64_t seed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *held = ramp(-2), *own = eddy_clone(held), *y;
    eddy_tensor *x = ramp(1), *other = part(-3);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = seed % 4 ? "all" : "none")));
    y = random_calls(x, other, held, seed);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"other", other, EDDY_ROLE_INPUT},
                          {"held", held, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    random_calls(x, other, own, seed);
    settle();
    for (int i = 0; i < 3; i++) {
        char what[40];
        snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
        x = ramp(i - 4), other = part(2 - i);
        random_calls(x, other, own, seed);
        heard wanted = *settle();
        must(eddy_program_run(program, EDDY_LIST(x, other), &y));
        expect_heard(&wanted, what);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(late_read, of_random_calls_gives_what_they_give) {
    for (uint64_t seed = 1; seed <= 300; seed++)
        compare_random(seed);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- copies ---- */

/* A tensor that is there beside the run needs one, since others may write it in between, and so does what is written later. */
Test(late_read, is_copied_where_something_may_write_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1), *state = ramp(2), *fixed = ramp(3), *y;
    eddy_program *program = record(x, state, fixed, "none");
    char *text = text_of(program);
    cr_assert_eq(count_in(text, " = clone("), 5, "%s", text);
    cr_assert_eq(count_in(text, "read_async("), 8, "%s", text);
    cr_assert_not_null(strstr(text, " f32[2, 3] = clone(%2 f32[2, 3] strides [2, 4] at 1)\n"), "%s",
                       text);
    cr_assert_null(strstr(text, "callback"), "%s", text);
    free(text);
    eddy_program_release(&program);
    must(eddy_record_begin(NULL));
    y = eddy_relu(x);
    listen_to(y, 0);
    program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    text = text_of(program);
    cr_assert_str_eq(text, "eddy program, version 1, 2 instructions\n"
                           "input x f32[3, 4]\n"
                           "output y f32[3, 4] of %0\n"
                           "%0 f32[3, 4] = relu(x f32[3, 4])\n"
                           "read_async(%0 f32[3, 4])\n");
    free(text);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

typedef struct counting {
    eddy_program *program;
    eddy_tensor *one;
} counting;

#define RUNS 60

static void *count_up(void *context) {
    const counting *c = context;
    for (int i = 0; i < RUNS; i++)
        must(eddy_program_run(c->program, EDDY_LIST(c->one), NULL));
    return NULL;
}

/* Each run hands out its own number, whatever another thread's has written since. */
Test(late_read, of_state_is_that_of_its_run) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *state = eddy_zeros(EDDY_SHAPE(1), EDDY_F32, NULL),
                *one = eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    must(eddy_add_into(state, one, state));
    listen_to(state, 0);
    counting c = {.one = one};
    c.program =
        end(EDDY_BINDINGS({"one", one, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}));
    cr_assert_eq(count_heard(), 0, "what is only recorded does not happen");
    pthread_t other;
    cr_assert_eq(pthread_create(&other, NULL, count_up, &c), 0);
    count_up(&c);
    pthread_join(other, NULL);
    const heard *got = settle();
    bool is_seen[2 * RUNS] = {false};
    cr_assert_eq(got->count, 2 * RUNS);
    for (int i = 0; i < got->count; i++) {
        int number = (int)value_heard(got, i) - 1;
        cr_assert(number >= 0 && number < 2 * RUNS && !is_seen[number], "%d", number);
        is_seen[number] = true;
    }
    eddy_program_release(&c.program);
    eddy_scope_end(scope);
}

/* Those of one tensor come one after the other. */
Test(late_read, of_one_tensor_comes_in_order) {
    static const int order[] = {3, 0, 2, 1, 0};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1), *y;
    must(eddy_record_begin(NULL));
    y = eddy_neg(x);
    for (int i = 0; i < 5; i++)
        listen_to(y, order[i]);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    settle();
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    const heard *got = settle();
    cr_assert_eq(got->count, 5);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(got->entries[i].tag, order[i]);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- kinds of runs ---- */

Test(late_read, is_made_whatever_a_run_is_asked_for) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1), *h, *a, *b, *target = ramp(0);
    must(eddy_record_begin(NULL));
    h = eddy_neg(x);
    listen_to(eddy_sum(h, EDDY_ALL_AXES, NULL), 0);
    a = eddy_exp(h);
    b = eddy_relu(x);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT},
                                              {"b", b, EDDY_ROLE_OUTPUT}));
    must(eddy_program_prepare(program, (const char *const[]){"b"}, 1));
    cr_assert_eq(count_heard(), 1);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"b", &b}), NULL));
    cr_assert_eq(value_heard(settle(), 0), -78);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0}, NULL));
    cr_assert_eq(value_heard(settle(), 0), -78);
    must(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(EDDY_NONE, target)));
    cr_assert_eq(value_heard(settle(), 0), -78);
    eddy_tensor *outputs[2];
    must(eddy_program_run_batches(program, EDDY_LIST(eddy_cat(EDDY_LIST(x, ramp(0)), 0)), outputs));
    const heard *got = settle();
    cr_assert_eq(got->count, 2);
    cr_assert_eq(value_heard(got, 0) + value_heard(got, 1), -78 - 66);
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.instruction_count, 5);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Of what a target is written with, of a constant and what is folded of it, and of nothing else. */
Test(late_read, may_be_all_that_a_program_does) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1), *constant = eddy_full(EDDY_SHAPE(1), EDDY_S(4), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    listen_to(eddy_narrow(eddy_flatten(x, 0, 1), 0, 2, 1), 0);
    listen_to(eddy_sqrt(constant), 1);
    listen_to(constant, 2);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"c", constant, EDDY_ROLE_CONSTANT}));
    settle();
    for (int i = 0; i < ROUNDS; i++) {
        must(eddy_program_run(program, EDDY_LIST(ramp(i)), NULL));
        heard got = by_tag(settle());
        cr_assert(value_heard(&got, 0) == i + 2 && value_heard(&got, 1) == 2 &&
                  value_heard(&got, 2) == 4);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Programs of one content share what they are built to. These do not have one. */
Test(late_read, is_each_programs_own) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1);
    eddy_program *programs[3];
    for (int i = 0; i < 3; i++) {
        must(eddy_record_begin(NULL));
        listen_to(eddy_neg(x), i % 2);
        programs[i] = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    }
    cr_assert_neq(programs[0]->built, programs[1]->built);
    cr_assert_eq(programs[0]->built, programs[2]->built);
    settle();
    for (int i = 0; i < 3; i++)
        must(eddy_program_run(programs[i], EDDY_LIST(x), NULL));
    heard got = by_tag(settle());
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(got.entries[i].tag, i / 2);
        eddy_program_release(&programs[i]);
    }
    eddy_scope_end(scope);
}

/* A call behind a run has the place of the recorded one, and so has its copy. */
Test(late_read, has_the_place_of_its_call) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_neg(x);
    listen_to(y, 0);
    must(eddy_add_into(y, y, y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    const eddy_code *code = &program->code;
    cr_assert(code->instructions.count == 3 && code->late_calls.count == 1);
    const eddy_code_instruction *neg = eddy_code_call_at(code, 0),
                                *copy = eddy_code_call_at(code, 1),
                                *read = eddy_code_call_at(code, 3);
    cr_assert_str_eq(copy->op->name, "clone");
    cr_assert_str_eq(read->op->name, "read_async");
    cr_assert(read->address != NULL && read->address != neg->address);
    cr_assert_eq(copy->address, read->address);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* Large enough for groups that run tile by tile: what is read is no value of a tile. */
Test(late_read, of_what_is_fused_finds_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(64, 128), EDDY_S(0.5), EDDY_F32, NULL), *h, *y;
    must(eddy_record_begin(NULL));
    h = eddy_exp(eddy_neg(x));
    listen_to(eddy_narrow(eddy_select(h, 0, 63), 0, 120, 8), 0);
    y = eddy_sqrt(eddy_add(h, x));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    settle();
    for (int i = 0; i < ROUNDS; i++) {
        x = eddy_full(EDDY_SHAPE(64, 128), EDDY_S(0.25 * i), EDDY_F32, NULL);
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        heard got = *settle();
        h = eddy_exp(eddy_neg(x));
        listen_to(eddy_narrow(eddy_select(h, 0, 63), 0, 120, 8), 0);
        expect_heard(&got, "fused");
        must_have_same_bits(y, eddy_sqrt(eddy_add(h, x)), "y");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

static void release_tensor(void *context, const void *data, int64_t bytes,
                           const eddy_error *error) {
    eddy_tensor **tensor = context;
    (void)data, (void)bytes, (void)error;
    eddy_release(tensor);
}

/* It is recorded all the same. */
static void release_in_callback(void) {
    static eddy_tensor *tensor;
    eddy_tensor *x = ramp(1);
    must(eddy_record_begin(NULL));
    eddy_scope *scope = eddy_scope_begin();
    tensor = eddy_retain(eddy_neg(x));
    eddy_scope_end(scope);
    must(eddy_read_async(tensor, release_tensor, &tensor));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}));
    settle();
    cr_assert_null(tensor);
    must(eddy_program_run(program, EDDY_LIST(x), NULL));
    settle();
    eddy_program_release(&program);
}

Test(late_read, of_a_tensor_that_its_callback_releases_is_recorded) {
    in_runtimes(release_in_callback);
}
