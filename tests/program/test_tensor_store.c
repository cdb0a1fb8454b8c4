/* Stores: names, parents, references, threads; and programs that run on what is in one. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(2, 3), EDDY_S(value), EDDY_F32, NULL);
}

static double first_of(eddy_tensor *x) {
    double value =
        eddy_item_f64(eddy_select(eddy_reshape(eddy_detach(x), EDDY_SHAPE(-1)), 0, 0), NULL);
    must(EDDY_OK);
    return value;
}

static double value_of(eddy_tensor_store *store, const char *name) {
    return first_of(eddy_tensor_store_get(store, name));
}

/* ---- names ---- */

Test(tensor_store, holds_tensors_by_name) {
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    eddy_scope *scope = eddy_scope_begin();
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "t%02d", i * 37 % 100);
        must(eddy_tensor_store_set(store, name, filled(i * 37 % 100)));
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 100, "what it holds outlives the scope");
    scope = eddy_scope_begin();
    cr_assert_eq(eddy_tensor_store_count(store), 100);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "t%02d", i);
        cr_assert_str_eq(eddy_tensor_store_name(store, i), name);
        cr_assert_eq(value_of(store, name), i);
    }
    const char *known = eddy_tensor_store_name(store, 7);
    must(eddy_tensor_store_set(store, "t07", filled(-7)));
    cr_assert_eq(eddy_tensor_store_count(store), 100);
    cr_assert_eq(value_of(store, known), -7);
    cr_assert_eq(eddy_tensor_store_name(store, 7), known, "a name stays where it is");
    for (int i = 0; i < 100; i += 2) {
        snprintf(name, sizeof(name), "t%02d", i);
        must(eddy_tensor_store_remove(store, name));
    }
    cr_assert_eq(eddy_tensor_store_count(store), 50);
    cr_assert_str_eq(eddy_tensor_store_name(store, 3), "t07");
    cr_assert_eq(value_of(store, "t99"), 99);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 50);
    eddy_tensor_store_release(&store);
    cr_assert_null(store);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(tensor_store, looks_names_up_in_its_parents) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_store *root = eddy_tensor_store_create(NULL),
                      *child = eddy_tensor_store_create(root),
                      *leaf = eddy_tensor_store_create(child);
    must(eddy_tensor_store_set(root, "w", filled(1)));
    must(eddy_tensor_store_set(root, "b", filled(2)));
    must(eddy_tensor_store_set(child, "b", filled(3)));
    must(eddy_tensor_store_set(leaf, "cache", filled(4)));
    cr_assert(value_of(leaf, "w") == 1 && value_of(leaf, "b") == 3 && value_of(leaf, "cache") == 4);
    cr_assert_eq(value_of(root, "b"), 2);
    cr_assert_eq(eddy_tensor_store_count(leaf), 1, "its own");
    cr_assert_null(eddy_tensor_store_get(root, "cache"));
    expect_error(EDDY_INVALID_ARGUMENT,
                 "tensor_store_get: neither the store nor a parent of it has cache");
    cr_assert_eq(eddy_tensor_store_remove(leaf, "w"), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "tensor_store_remove: the store itself has no w");
    must(eddy_tensor_store_remove(child, "b"));
    cr_assert_eq(value_of(leaf, "b"), 2);
    /* A child holds its parents. */
    eddy_tensor_store_release(&root);
    eddy_tensor_store_release(&child);
    cr_assert_eq(value_of(leaf, "w"), 1);
    eddy_tensor_store *again = eddy_tensor_store_retain(leaf);
    eddy_tensor_store_release(&leaf);
    cr_assert_eq(value_of(again, "cache"), 4);
    eddy_tensor_store_release(&again);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Ends without recursion. */
Test(tensor_store, chains_may_be_long) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    must(eddy_tensor_store_set(store, "w", filled(1)));
    for (int i = 0; i < 300000; i++) {
        eddy_tensor_store *child = eddy_tensor_store_create(store);
        eddy_tensor_store_release(&store);
        store = child;
    }
    cr_assert_eq(value_of(store, "w"), 1);
    eddy_tensor_store_release(&store);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(tensor_store, gradients_go_to_what_it_holds) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    eddy_tensor *w = filled(2);
    must(eddy_tensor_store_set(store, "w", w));
    must(eddy_requires_grad_set(w, true));
    eddy_tensor *got = eddy_tensor_store_get(store, "w");
    cr_assert_neq(got, w);
    cr_assert(eddy_requires_grad(got));
    must(eddy_backward(eddy_sum(eddy_square(got), EDDY_ALL_AXES, NULL)));
    cr_assert_eq(first_of(eddy_grad_of(w)), 4);
    eddy_no_grad_begin();
    must(eddy_copy_into(filled(5), got));
    eddy_no_grad_end();
    cr_assert_eq(first_of(w), 5);
    eddy_tensor_store_release(&store);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(tensor_store, bad_input_is_told) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_store *store = eddy_tensor_store_create(NULL), *none = NULL;
    eddy_tensor *x = filled(1);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    cr_assert_eq(eddy_tensor_store_set(NULL, "x", x), bad);
    expect_error(bad, "tensor_store_set: the store is NULL");
    cr_assert_eq(eddy_tensor_store_set(store, "", x), bad);
    expect_error(bad, "tensor_store_set: there is no name");
    cr_assert_eq(eddy_tensor_store_set(store, NULL, x), bad);
    expect_error(bad, "tensor_store_set: there is no name");
    cr_assert_eq(eddy_tensor_store_set(store, "x", NULL), bad);
    expect_error(bad, "tensor_store_set: x is NULL");
    cr_assert_eq(eddy_tensor_store_set(store, "x", EDDY_NONE), bad);
    eddy_error_take(NULL);
    cr_assert_null(eddy_tensor_store_get(NULL, "x"));
    expect_error(bad, "tensor_store_get: the store is NULL");
    cr_assert_eq(eddy_tensor_store_remove(store, "x"), bad);
    expect_error(bad, "tensor_store_remove: the store itself has no x");
    cr_assert_eq(eddy_tensor_store_count(NULL), -1);
    expect_error(bad, "tensor_store_count: the store is NULL");
    cr_assert_null(eddy_tensor_store_name(store, 0));
    expect_error(EDDY_OUT_OF_RANGE, "tensor_store_name: there is no name 0: there are 0");
    cr_assert_null(eddy_tensor_store_name(store, -1));
    eddy_error_take(NULL);
    cr_assert_null(eddy_tensor_store_name(NULL, 0));
    eddy_error_take(NULL);
    cr_assert_null(eddy_tensor_store_retain(NULL));
    eddy_tensor_store_release(&none);
    eddy_tensor_store_release(NULL);
    must(EDDY_OK);
    cr_assert_eq(eddy_tensor_store_count(store), 0);
    eddy_tensor_store_release(&store);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- programs ---- */

/* y = x w; total += x */
static eddy_program *make(void) {
    eddy_tensor *x = filled(1), *w = filled(2), *total = filled(0);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(x, w);
    must(eddy_add_into(total, x, total));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                      {"w", w, EDDY_ROLE_STATE}, {"total", total, EDDY_ROLE_STATE}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static eddy_status run_on(eddy_program *program, eddy_tensor_store *store, eddy_feeds feeds,
                          eddy_tensor **y) {
    return eddy_program_run_named(program, feeds, EDDY_FETCHES({"y", y}),
                                  EDDY_OPTIONS(program_run_named, .store = store));
}

Test(tensor_store, programs_run_on_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make();
    eddy_tensor_store *model = eddy_tensor_store_create(NULL), *users[2];
    must(eddy_tensor_store_set(model, "w", filled(3)));
    for (int i = 0; i < 2; i++) {
        users[i] = eddy_tensor_store_create(model);
        must(eddy_tensor_store_set(users[i], "total", filled(100 * i)));
    }
    must(eddy_tensor_store_set(users[1], "x", filled(7)));
    eddy_tensor *y = NULL;
    for (int i = 0; i < 3; i++) {
        must(run_on(program, users[0], EDDY_FEEDS({"x", filled(5)}), &y));
        cr_assert_eq(first_of(y), 15);
        must(run_on(program, users[1], (eddy_feeds){0}, &y));
        cr_assert_eq(first_of(y), 21);
    }
    cr_assert_eq(value_of(users[0], "total"), 15);
    cr_assert_eq(value_of(users[1], "total"), 121);
    /* What is fed goes before the store. */
    must(run_on(program, users[1], EDDY_FEEDS({"x", filled(1)}, {"w", filled(50)}), &y));
    cr_assert_eq(first_of(y), 50);
    for (int i = 0; i < 2; i++)
        eddy_tensor_store_release(&users[i]);
    eddy_tensor_store_release(&model);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(tensor_store, what_it_lacks_or_holds_wrongly_is_told) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make();
    eddy_tensor_store *store = eddy_tensor_store_create(NULL);
    eddy_tensor *y = NULL, *total = filled(0), *x = filled(1);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    must(eddy_tensor_store_set(store, "total", total));
    cr_assert_eq(run_on(program, store, (eddy_feeds){0}, &y), bad);
    expect_error(bad,
                 "program_run_named: input x is not given, nor in the store or a parent of it");
    cr_assert_eq(run_on(program, store, EDDY_FEEDS({"x", x}), &y), bad);
    expect_error(bad,
                 "program_run_named: state w is not given, nor in the store or a parent of it");
    must(eddy_tensor_store_set(store, "w", eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL)));
    cr_assert_eq(run_on(program, store, EDDY_FEEDS({"x", x}), &y), EDDY_SHAPE_MISMATCH);
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_named: state w is f32[4], the program was recorded with f32[2, 3]");
    must(eddy_tensor_store_set(store, "w", total));
    cr_assert_eq(run_on(program, store, EDDY_FEEDS({"x", x}), &y), bad);
    expect_error(bad, "program_run_named: state w shares its memory with total, and the program "
                      "writes it");
    cr_assert_null(y);
    cr_assert_eq(first_of(total), 0, "nothing has changed");
    eddy_tensor_store_release(&store);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- threads ---- */

#define ROUNDS 400

typedef struct shared {
    eddy_program *program;
    eddy_tensor_store *model;
} shared;

/* Replaces the weights again and again. */
static void *swap(void *context) {
    shared *s = context;
    for (int i = 0; i < ROUNDS; i++) {
        eddy_scope *scope = eddy_scope_begin();
        must(eddy_tensor_store_set(s->model, "w", filled(i % 2 ? 3 : 2)));
        char name[16];
        snprintf(name, sizeof(name), "a%d", i % 7);
        must(eddy_tensor_store_set(s->model, name, filled(i)));
        must(eddy_tensor_store_remove(s->model, name));
        eddy_scope_end(scope);
    }
    return NULL;
}

/* Runs on a store of its own below. */
static void *use(void *context) {
    shared *s = context;
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor_store *own = eddy_tensor_store_create(s->model);
    must(eddy_tensor_store_set(own, "total", filled(0)));
    eddy_tensor *x = filled(5);
    for (int i = 0; i < ROUNDS; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *y = NULL;
        must(run_on(s->program, own, EDDY_FEEDS({"x", x}), &y));
        double value = first_of(y);
        cr_assert(value == 10 || value == 15);
        eddy_scope_end(inner);
    }
    cr_assert_eq(value_of(own, "total"), 5 * ROUNDS);
    eddy_tensor_store_release(&own);
    eddy_scope_end(scope);
    return NULL;
}

/* ---- startup and main programs ---- */

static eddy_program *record_startup(void) {
    must(eddy_record_begin(NULL));
    eddy_tensor *w = eddy_mul_s(eddy_randn(EDDY_SHAPE(2, 3), EDDY_F32, NULL), EDDY_S(0.5));
    eddy_tensor *seen = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"w", w, EDDY_ROLE_OUTPUT}, {"seen", seen, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

/* w -= x, seen += the sum of w. */
static eddy_program *record_main(eddy_tensor *x) {
    eddy_tensor *w = filled(1), *seen = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    must(eddy_add_inplace(seen, eddy_sum(w, EDDY_ALL_AXES, NULL)));
    must(eddy_sub_inplace(w, x));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"seen", seen, EDDY_ROLE_STATE}));
    cr_assert_not_null(program);
    return program;
}

static void start(eddy_program *startup, eddy_tensor_store *model, eddy_fetches fetches) {
    must(eddy_program_run_named(startup, (eddy_feeds){0}, fetches,
                                EDDY_OPTIONS(program_run_named, .output_store = model)));
}

/* What one program makes another one runs on, as often as there are models. */
Test(tensor_store, a_startup_program_fills_it) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(0.25), *fetched;
    eddy_program *startup = record_startup(), *step = record_main(x);
    for (int model_number = 0; model_number < 2; model_number++) {
        eddy_tensor_store *model = eddy_tensor_store_create(NULL);
        eddy_seed((uint64_t)model_number);
        start(startup, model, EDDY_FETCHES({"w", &fetched}));
        cr_assert_eq(eddy_tensor_store_count(model), 2);
        eddy_seed((uint64_t)model_number);
        eddy_tensor *w = eddy_mul_s(eddy_randn(EDDY_SHAPE(2, 3), EDDY_F32, NULL), EDDY_S(0.5));
        cr_assert_eq(first_of(fetched), first_of(w));
        eddy_tensor *next = eddy_sub(w, x), *last = eddy_sub(next, x);
        eddy_tensor *sum =
            eddy_add(eddy_sum(w, EDDY_ALL_AXES, NULL), eddy_sum(next, EDDY_ALL_AXES, NULL));
        for (int i = 0; i < 2; i++)
            must(eddy_program_run_named(step, EDDY_FEEDS({"x", x}), (eddy_fetches){0},
                                        EDDY_OPTIONS(program_run_named, .store = model)));
        cr_assert_eq(value_of(model, "w"), first_of(last));
        cr_assert_eq(value_of(model, "seen"), first_of(sum));
        /* Once more: it begins anew. */
        start(startup, model, (eddy_fetches){0});
        cr_assert_eq(value_of(model, "seen"), 0);
        eddy_tensor_store_release(&model);
    }
    eddy_program_release(&startup);
    eddy_program_release(&step);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Without a scope nothing else owns what went there. */
Test(tensor_store, it_alone_keeps_what_a_program_put_there) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *startup = record_startup();
    eddy_scope_end(scope);
    eddy_tensor_store *model = eddy_tensor_store_create(NULL);
    start(startup, model, (eddy_fetches){0});
    cr_assert_eq(eddy_live_count(), 2);
    eddy_tensor_store_release(&model);
    eddy_program_release(&startup);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(tensor_store, threads_share_a_model) {
    eddy_scope *scope = eddy_scope_begin();
    shared s = {make(), eddy_tensor_store_create(NULL)};
    must(eddy_tensor_store_set(s.model, "w", filled(2)));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, i == 0 ? swap : use, &s), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    eddy_tensor_store_release(&s.model);
    eddy_program_release(&s.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
