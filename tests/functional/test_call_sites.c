/* What a program compiled with EDDY_CALL_SITES learns: every error, early or late, names the line of the call. */
#define EDDY_CALL_SITES
#include <eddy/eddy.h>

#include <base/call_site.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static eddy_error taken;

/* The error in the slot carries this file and a line. */
static void expect_line(int line, const char *what) {
    char end[64];
    (void)eddy_error_take(&taken);
    snprintf(end, sizeof(end), "test_call_sites.c:%d", line);
    cr_expect_neq(taken.status, EDDY_OK, "%s", what);
    const char *at = strstr(taken.place, end);
    cr_expect(at && strcmp(at, end) == 0, "%s: \"%s\" at \"%s\" instead of %s", what, taken.message,
              taken.place, end);
}

#define EXPECT_HERE(call)                                                                          \
    do {                                                                                           \
        (void)(call);                                                                              \
        expect_line(__LINE__, #call);                                                              \
    } while (0)

static eddy_tensor *ones(eddy_shape shape) {
    return eddy_ones(shape, EDDY_F32, NULL);
}

Test(call_sites, errors_of_calls_name_their_line) {
    double value;
    eddy_tensor *x = ones(EDDY_SHAPE(2, 3)), *result = NULL;
    EXPECT_HERE(eddy_matmul(x, x));
    EXPECT_HERE(eddy_add_inplace(x, ones(EDDY_SHAPE(7))));
    EXPECT_HERE(eddy_einsum("ij,k", EDDY_LIST(x)));
    EXPECT_HERE(eddy_from_data(NULL, EDDY_SHAPE(2), EDDY_F32, NULL));
    EXPECT_HERE(eddy_read(x, &value, sizeof(value), NULL));
    EXPECT_HERE(eddy_item_f64(x, NULL));
    EXPECT_HERE(eddy_read_f64(NULL, &value, NULL));
    EXPECT_HERE(eddy_print(NULL, NULL));
    EXPECT_HERE(eddy_map(x, 0, EDDY_FOREVER));
    EXPECT_HERE(eddy_unmap(x));
    EXPECT_HERE(eddy_npy_load("/nonexistent/a.npy"));
    EXPECT_HERE(eddy_safetensors_load("/nonexistent/a.safetensors"));
    EXPECT_HERE(eddy_npz_save(EDDY_LIST(x), (const char *[]){"a"}, "/nonexistent/a.npz", NULL));
    EXPECT_HERE(eddy_backward(x));
    EXPECT_HERE(eddy_grad_of(x));
    EXPECT_HERE(eddy_backward_to(EDDY_LIST(x), EDDY_LIST(x), (eddy_list){0}, NULL, &result));
    EXPECT_HERE(eddy_select(x, 0, 9));
    EXPECT_HERE(eddy_view(x, EDDY_SHAPE(5)));
    EXPECT_HERE(eddy_split(x, 0, 0, &result, 1, NULL));
    EXPECT_HERE(eddy_dim_of(x, 4));
    EXPECT_HERE(eddy_call("no.such", EDDY_LIST(x), NULL, &result));
    EXPECT_HERE(eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = -1)));
    EXPECT_HERE(eddy_generator_restore(NULL, 0, 0));
    eddy_no_grad_end(); /* without a value */
    expect_line(__LINE__ - 1, "no_grad_end");
}

/* A label out of range; on another line than its reads. */
static eddy_tensor *doomed(int *line) {
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(1), EDDY_S(99), EDDY_I64, NULL);
    *line = __LINE__ + 1;
    return eddy_index_select(ones(EDDY_SHAPE(3)), beyond, 0);
}

static void expect_late(void) {
    int line, other_line;
    eddy_tensor *first = doomed(&line);
    eddy_tensor *sum = eddy_add(first, ones(EDDY_SHAPE(1)));
    float value;
    (void)eddy_read(sum, &value, sizeof(value), NULL);
    expect_line(line, "a read of what an op with a bad operand should have made");
    cr_expect_neq(taken.sequence, 0u, "that of the op");
    (void)eddy_wait(first, EDDY_FOREVER);
    expect_line(line, "a wait");
    doomed(&other_line);
    (void)eddy_sync(EDDY_FOREVER);
    expect_line(other_line, "sync");
    eddy_error error;
    cr_expect_neq(eddy_error_of(first, EDDY_FOREVER, &error), EDDY_OK);
    cr_expect_eq(strcmp(error.place, taken.place), 0);
}

Test(call_sites, late_errors_name_the_line_of_their_op) {
    static const eddy_runtime_options ways[] = {
        {.size = sizeof(ways[0])},
        {.size = sizeof(ways[0]), .uses_one_thread = true},
        {.size = sizeof(ways[0]), .uses_full_path = true},
        {.size = sizeof(ways[0]), .uses_worker_path = true}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        eddy_runtime *runtime = eddy_runtime_create(&ways[i]);
        cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
        eddy_scope *scope = eddy_scope_begin();
        expect_late();
        eddy_scope_end(scope);
        cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
        eddy_runtime_release(&runtime);
    }
}

Test(call_sites, what_backward_issues_names_its_line) {
    eddy_tensor *x = ones(EDDY_SHAPE(3)),
                *beyond = eddy_full(EDDY_SHAPE(1), EDDY_S(99), EDDY_I64, NULL);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *loss = eddy_sum(eddy_index_select(x, beyond, 0), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    const int line = __LINE__ - 1;
    (void)eddy_read(eddy_grad_of(x), (float[3]){0}, 3 * sizeof(float), NULL);
    expect_line(line, "the gradient adds at the same index");
}

Test(call_sites, a_gradient_in_one_loop_names_the_line_that_went_back) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *loss = eddy_sum(eddy_sqrt(x), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    const int line = __LINE__ - 1;
    (void)eddy_read(eddy_grad_of(x), (float[3]){0}, 3 * sizeof(float), NULL);
    expect_line(line, "the slope of the root is infinite at 0");
    cr_expect_not_null(strstr(taken.message, "sqrt_gradient_x"), "%s", taken.message);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_runtime_use(NULL), EDDY_OK);
    eddy_runtime_release(&runtime);
}

/* One line that calls: many threads at once, each with a note of its own. */
static void *fail_often(void *context) {
    for (int i = 0; i < 2000; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_error error;
        char place[32];
        snprintf(place, sizeof(place), "thread.c:%d", *(int *)context);
        static const char *const places[] = {"thread.c:0", "thread.c:1", "thread.c:2",
                                             "thread.c:3"};
        eddy_call_site_set(places[*(int *)context]);
        const void *word = eddy_call_site_intern(&places);
        cr_assert_eq(eddy_call_site_address(word), (const void *)&places);
        cr_assert_str_eq(eddy_call_site_place(word), place);
        eddy_call_site_set(NULL);
        (void)eddy_dim_of(NULL, i);
        cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(call_sites, threads_do_not_mix_their_places) {
    pthread_t threads[4];
    int numbers[4];
    for (int i = 0; i < 4; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, fail_often, &numbers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

Test(call_sites, a_full_table_leaves_the_address) {
    static const char many[20000];
    int known = 0;
    for (size_t i = 0; i < sizeof(many); i++) {
        eddy_call_site_set("many.c:1");
        const void *word = eddy_call_site_intern(&many[i]);
        eddy_call_site_set(NULL);
        cr_assert_eq(eddy_call_site_address(word), (const void *)&many[i]);
        known += eddy_call_site_place(word) != NULL;
    }
    cr_assert(known > 1000 && known < (int)sizeof(many));
}

static char last_line[512];

static void keep(void *context, const char *line) {
    (void)context;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

Test(call_sites, leaks_name_the_line_that_made_them) {
    char wanted[64];
    eddy_log_set(keep, NULL);
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL);
    snprintf(wanted, sizeof(wanted), "test_call_sites.c:%d)", __LINE__ - 1);
    cr_assert_eq(eddy_leaks_report(), 1);
    cr_assert_not_null(strstr(last_line, wanted), "%s", last_line);
    eddy_release(&x);
}
