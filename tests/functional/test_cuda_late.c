/* Ops whose shape depends on data, on a CUDA device: the CPU's shapes, bits and errors, and what becomes of them when memory or the device fails between the count and the rest.
 * On the fake driver (tests/fake_cuda). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/fake_cuda/needed.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>
#include <unistd.h>

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* ---- what holds ---- */

/* Many zeros, or many special ones. Of any layout. */
static twin some_elements(eddy_dtype dtype, eddy_shape shape) {
    return random_below(2) ? twin_random(dtype, shape, false)
                           : twin_indices(dtype, shape, 0, random_below(4));
}

static twin some_mask(eddy_shape shape) {
    return twin_indices(EDDY_BOOL, shape, 0, random_below(8) > 0);
}

Test(cuda_late, nonzero_of_any_shape_and_layout) {
    TWIN_EACH_DTYPE(dtype) {
        twin x = some_elements(dtype, twin_shape(5, 7));
        twin_expect_equal("nonzero", eddy_nonzero(x.here), eddy_nonzero(x.there));
    }
    twin_expect_no_findings();
}

/* A shape that broadcasts with the other: some dims are 1, some are left out. */
static eddy_shape smaller(eddy_shape shape) {
    int32_t out = (int32_t)random_below(shape.rank + 1);
    eddy_shape part = {.rank = shape.rank - out};
    for (int32_t d = 0; d < part.rank; d++)
        part.dims[d] = random_below(4) == 0 ? 1 : shape.dims[d + out];
    return part;
}

Test(cuda_late, masked_select_of_what_broadcasts) {
    TWIN_EACH_DTYPE(dtype) {
        eddy_shape shape = twin_shape(4, 7), other = smaller(shape);
        bool is_mask = random_below(2);
        twin x = twin_random(dtype, is_mask ? shape : other, false),
             mask = some_mask(is_mask ? other : shape);
        twin_expect_equal("masked_select", eddy_masked_select(x.here, mask.here),
                          eddy_masked_select(x.there, mask.there));
    }
    twin_expect_no_findings();
}

/* Round the chunks, and more of them than one block of threads adds up at once. */
static const int64_t lengths[] = {1, 2, 2047, 2048, 2049, 4096, 6145, 10000};

Test(cuda_late, lengths_round_every_limit) {
    for (int n = 0; n < COUNT(lengths); n++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = some_elements((eddy_dtype)random_below(EDDY_DTYPE_COUNT), EDDY_SHAPE(lengths[n])),
             mask = some_mask(EDDY_SHAPE(lengths[n]));
        twin_expect_equal("nonzero", eddy_nonzero(x.here), eddy_nonzero(x.there));
        twin_expect_equal("masked_select", eddy_masked_select(x.here, mask.here),
                          eddy_masked_select(x.there, mask.there));
        eddy_scope_end(scope);
    }
    eddy_scope *scope = eddy_scope_begin();
    twin mask = twin_indices(EDDY_BOOL, EDDY_SHAPE(300, 2048), 0, 1);
    twin_expect_equal("nonzero", eddy_nonzero(mask.here), eddy_nonzero(mask.there));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_late, what_holds_everywhere_and_nowhere) {
    eddy_scope *scope = eddy_scope_begin();
    for (int64_t value = 0; value < 2; value++) {
        twin x = twin_indices(EDDY_F32, EDDY_SHAPE(3, 1000), value, value),
             mask = twin_indices(EDDY_BOOL, EDDY_SHAPE(3, 1000), value, value);
        twin_expect_equal("nonzero", eddy_nonzero(x.here), eddy_nonzero(x.there));
        twin_expect_equal("masked_select", eddy_masked_select(x.here, mask.here),
                          eddy_masked_select(x.there, mask.there));
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* ---- unique ---- */

static void expect_distinct(twin x) {
    eddy_tensor *here[3], *there[3];
    twin_expect_equal("unique", eddy_unique(x.here), eddy_unique(x.there));
    cr_assert_eq(eddy_unique_counts(x.here, &here[0], &here[1], &here[2]), EDDY_OK);
    cr_assert_eq(eddy_unique_counts(x.there, &there[0], &there[1], &there[2]), EDDY_OK);
    twin_expect_equal("values", here[0], there[0]);
    twin_expect_equal("inverse", here[1], there[1]);
    twin_expect_equal("counts", here[2], there[2]);
}

Test(cuda_late, unique_of_any_shape_and_layout) {
    TWIN_EACH_DTYPE(dtype) {
        expect_distinct(some_elements(dtype, twin_shape(5, 5)));
    }
    twin_expect_no_findings();
}

Test(cuda_late, unique_of_lengths_round_every_limit) {
    for (int n = 0; n < COUNT(lengths); n++)
        for (int round = 0; round < 2; round++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_dtype dtype = (eddy_dtype)random_below(EDDY_DTYPE_COUNT);
            expect_distinct(round ? twin_random(dtype, EDDY_SHAPE(lengths[n]), false)
                                  : twin_indices(dtype, EDDY_SHAPE(lengths[n]), 0, 90));
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* Of floats with many zeros of both signs and many NaNs, in lines that are merged; of integers with the greatest, whose key is a NaN's. */
Test(cuda_late, unique_of_equals_that_differ_in_bits) {
    static const double numbers[] = {0.0, -0.0, 1, -1, NAN, INFINITY};
    static double reals[5000];
    static int64_t integers[5000];
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < COUNT(reals); i++) {
        reals[i] = numbers[random_below(COUNT(numbers))];
        integers[i] = random_below(2) ? INT64_MAX : INT64_MIN;
    }
    twin x = twin_of(reals, EDDY_SHAPE(50, 100), EDDY_F64),
         y = twin_of(integers, EDDY_SHAPE(COUNT(integers)), EDDY_I64);
    expect_distinct(x);
    expect_distinct(y);
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
        twin cast = {eddy_cast(x.here, (eddy_dtype)dtype), eddy_cast(x.there, (eddy_dtype)dtype)};
        if (dtype == EDDY_F16 || dtype == EDDY_BF16 || dtype == EDDY_F32)
            expect_distinct(cast);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* ---- bincount ---- */

static const eddy_dtype integer_dtypes[] = {EDDY_I8, EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};

static eddy_dtype some_integer(void) {
    return integer_dtypes[random_below(COUNT(integer_dtypes))];
}

static void expect_bins(twin x, twin weights, int64_t minlength) {
    const eddy_bincount_options *options = EDDY_OPTIONS(bincount, .minlength = minlength);
    twin_expect_equal("bincount", eddy_bincount(x.here, EDDY_NONE, options),
                      eddy_bincount(x.there, EDDY_NONE, options));
    twin_expect_equal("bincount of weights", eddy_bincount(x.here, weights.here, options),
                      eddy_bincount(x.there, weights.there, options));
}

/* Weights of any dtype, whose sums depend on their order. */
Test(cuda_late, bincount_of_any_dtype) {
    TWIN_EACH_DTYPE(dtype) {
        int64_t count = random_below(8) == 0 ? 0 : 1 + random_below(300), most = random_below(120);
        twin x = twin_indices(some_integer(), EDDY_SHAPE(count), 0, most),
             weights = twin_numbers(dtype, EDDY_SHAPE(count), false);
        expect_bins(x, weights, random_below(3) == 0 ? random_below(200) : 0);
    }
    twin_expect_no_findings();
}

/* Round the chunks, with as many bins as a block of threads has in its memory, and one more. */
Test(cuda_late, bincount_of_lengths_round_every_limit) {
    for (int n = 0; n < COUNT(lengths); n++)
        for (int64_t most = 2046; most <= 2048; most++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_dtype dtype = n % 2 ? EDDY_I64 : EDDY_I16;
            twin x = twin_indices(dtype, EDDY_SHAPE(lengths[n]), 0, most),
                 weights =
                     twin_numbers(most % 2 ? EDDY_F32 : EDDY_F64, EDDY_SHAPE(lengths[n]), false);
            expect_bins(x, weights, most + 1);
            eddy_scope_end(scope);
        }
    twin_expect_no_findings();
}

/* Zeros of a sign, and infinities of both: what is added to nothing is added to 0. */
Test(cuda_late, bincount_of_special_weights) {
    for (int round = 0; round < 10; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = twin_indices(EDDY_I32, EDDY_SHAPE(200), 0, 60),
             weights = twin_random(round % 2 ? EDDY_F32 : EDDY_F64, EDDY_SHAPE(200), false);
        expect_bins(x, weights, 0);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

static int fail_alike(int64_t *numbers, int64_t count) {
    twin x = twin_of(numbers, EDDY_SHAPE(count), EDDY_I64),
         weights = twin_numbers(EDDY_F32, EDDY_SHAPE(count), false);
    return twin_fail_alike(eddy_bincount(x.here, EDDY_NONE, NULL),
                           eddy_bincount(x.there, EDDY_NONE, NULL)) +
           twin_fail_alike(eddy_bincount(x.here, weights.here, NULL),
                           eddy_bincount(x.there, weights.there, NULL));
}

/* Negative ones among many others, and lengths that no memory has, or no number of bytes. */
Test(cuda_late, bincount_fails_as_on_the_cpu) {
    static int64_t numbers[5000];
    static const int64_t large[] = {INT64_MAX,          INT64_MAX - 1,      INT64_C(1) << 62,
                                    INT64_C(1) << 61,   INT64_C(1) << 60,   (INT64_C(1) << 60) - 1,
                                    (INT64_C(1) << 59), (INT64_C(1) << 50), INT64_MIN};
    int failed = 0;
    for (int round = 0; round < 20; round++) {
        eddy_scope *scope = eddy_scope_begin();
        for (int i = 0; i < COUNT(numbers); i++)
            numbers[i] = random_below(700) == 0 ? -1 - random_below(9) : random_below(9);
        failed += fail_alike(numbers, COUNT(numbers));
        eddy_scope_end(scope);
    }
    for (int i = 0; i < COUNT(large); i++) {
        eddy_scope *scope = eddy_scope_begin();
        numbers[0] = large[i];
        failed += fail_alike(numbers, 1);
        eddy_scope_end(scope);
    }
    cr_assert_geq(failed, 50);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- among other ops ---- */

/* What is written after the call is not what it sees, whenever its second launch comes; what is made of its result is made behind it. */
Test(cuda_late, comes_at_its_place_among_the_others) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = twin_numbers(EDDY_F32, EDDY_SHAPE(40, 50), true);
    eddy_tensor *results[2][12];
    eddy_stream *stream = eddy_stream_create(TWIN_THERE, NULL);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < COUNT(results[0]); i++) {
            eddy_tensor *of = side ? x.there : x.here;
            if (side && i % 3 == 1)
                cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
            eddy_tensor *chosen = eddy_masked_select(of, eddy_gt_s(of, EDDY_S(0)));
            results[side][i] = eddy_mul(chosen, chosen);
            cr_assert_eq(eddy_sub_inplace(of, eddy_mul_s(of, EDDY_S(0.3))), EDDY_OK);
            cr_assert_eq(eddy_add_s_inplace(eddy_narrow(of, 0, i, 9), EDDY_S(-1)), EDDY_OK);
            if (side && i % 3 == 1)
                eddy_stream_scope_end();
        }
    for (int i = 0; i < COUNT(results[0]); i++)
        twin_expect_equal("chosen", results[0][i], results[1][i]);
    twin_expect_equal("what was written meanwhile", x.here, x.there);
    eddy_stream_release(&stream);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static eddy_tensor *gradient(eddy_tensor *leaf, eddy_tensor *mask, eddy_tensor *bins) {
    eddy_tensor *x = eddy_detach(leaf);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *chosen = eddy_masked_select(x, mask), *sums = eddy_bincount(bins, x, NULL),
                *put = eddy_masked_scatter(eddy_zeros_like(x, NULL), mask, x);
    eddy_tensor *loss = eddy_add(eddy_sum(eddy_mul(chosen, chosen), EDDY_ALL_AXES, NULL),
                                 eddy_sum(eddy_mul(sums, sums), EDDY_ALL_AXES, NULL));
    loss = eddy_add(loss, eddy_sum(eddy_mul(put, put), EDDY_ALL_AXES, NULL));
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_late, gradients_have_the_bits_of_the_cpu) {
    for (int round = 0; round < 6; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = twin_numbers(round % 2 ? EDDY_F32 : EDDY_F64, EDDY_SHAPE(90), true),
             mask = twin_indices(EDDY_BOOL, EDDY_SHAPE(90), 0, 1),
             bins = twin_indices(EDDY_I32, EDDY_SHAPE(90), 0, 20);
        twin_expect_equal("gradient", gradient(x.here, mask.here, bins.here),
                          gradient(x.there, mask.there, bins.there));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* ---- failures ---- */

static eddy_tensor *bins_on(eddy_device device, int64_t number) {
    return eddy_from_data(&number, EDDY_SHAPE(1), EDDY_I64,
                          EDDY_OPTIONS(from_data, .device = device));
}

/* Its shape is an error, too, and so ops that need it are refused. */
Test(cuda_late, a_failed_count_fails_the_shape) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *bad = eddy_bincount(bins_on(TWIN_THERE, -5), EDDY_NONE, NULL);
    cr_assert_null(eddy_sum(bad, EDDY_ALL_AXES, NULL));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_OUT_OF_RANGE);
    cr_assert_not_null(strstr(error.message, "input[0] is -5"), "%s", error.message);
    cr_assert_eq(eddy_wait(bad, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* What fails ahead of the count: it is not launched, all its outputs are lost, and what is written in place with one of them stays as it is. */
Test(cuda_late, a_failed_input_is_not_counted) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = twin_numbers(EDDY_F32, EDDY_SHAPE(6), true),
         index = twin_indices(EDDY_I64, EDDY_SHAPE(6), 6, 9);
    eddy_tensor *results[2][4];
    for (int side = 0; side < 2; side++) {
        eddy_tensor *picked =
            eddy_index_select(side ? x.there : x.here, side ? index.there : index.here, 0);
        cr_assert_eq(
            eddy_unique_counts(picked, &results[side][0], &results[side][1], &results[side][2]),
            EDDY_OK);
        results[side][3] = eddy_masked_select(picked, eddy_gt_s(picked, EDDY_S(0)));
    }
    for (int i = 0; i < COUNT(results[0]); i++)
        twin_expect_error(results[0][i], results[1][i]);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

#define MANY (1 << 18)

static eddy_tensor *many(eddy_dtype dtype) {
    return eddy_ones(EDDY_SHAPE(MANY), dtype, EDDY_OPTIONS(ones, .device = TWIN_THERE));
}

/* Ops on another stream read what was released. */
static void read_and_release(eddy_stream *stream) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *held =
        eddy_ones(EDDY_SHAPE(3 * MANY), EDDY_F64, EDDY_OPTIONS(ones, .device = TWIN_THERE));
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    for (int i = 0; i < 4; i++)
        cr_assert_not_null(eddy_sum(eddy_narrow(held, 0, i, 1000), EDDY_ALL_AXES, NULL));
    eddy_stream_scope_end();
    eddy_scope_end(scope);
}

/* The mask fits, and what it chooses does not as long as they do: beside it 3 MB are left, and the pool takes 2 MB at once. */
Test(cuda_late, what_is_counted_waits_for_memory) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_stream *stream = eddy_stream_create(TWIN_THERE, NULL);
    cr_assert_eq(eddy_device_memory_limit_set(TWIN_THERE, INT64_C(36) * MANY), EDDY_OK);
    eddy_tensor *one = eddy_expand(
                    eddy_to_device(eddy_ones(EDDY_SHAPE(1), EDDY_F64, NULL), TWIN_THERE),
                    EDDY_SHAPE(MANY)),
                *mask = many(EDDY_BOOL);
    for (int round = 0; round < 3; round++) {
        eddy_scope *inner = eddy_scope_begin();
        read_and_release(stream);
        eddy_tensor *chosen = eddy_masked_select(one, mask);
        cr_assert_eq(eddy_wait(chosen, EDDY_FOREVER), EDDY_OK);
        cr_assert_eq(eddy_count_of(chosen), MANY);
        eddy_scope_end(inner);
    }
    eddy_stream_release(&stream);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(cuda_late, what_is_counted_and_never_fits_fails) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_device_memory_limit_set(TWIN_THERE, INT64_C(4) * MANY), EDDY_OK);
    eddy_tensor *one = eddy_expand(
                    eddy_to_device(eddy_ones(EDDY_SHAPE(1), EDDY_F64, NULL), TWIN_THERE),
                    EDDY_SHAPE(MANY)),
                *mask = many(EDDY_BOOL);
    eddy_tensor *chosen = eddy_masked_select(one, mask),
                *other = eddy_sum(mask, EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_wait(chosen, EDDY_FOREVER), EDDY_OUT_OF_MEMORY);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "masked_select"), "%s", error.message);
    cr_assert_eq(eddy_item_f64(other, NULL), MANY);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* ---- each call of the driver fails once ---- */

/* What is read of a chain of late ops; NAN where a read has failed. */
static double run_late_ops(eddy_device device) {
    static const float numbers[] = {3, -1, 2, 3, 0, -0.0f, 2, 5, -1, 7};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_from_data(numbers, EDDY_SHAPE(2, 5), EDDY_F32,
                                    EDDY_OPTIONS(from_data, .device = device)),
                *values, *inverse, *counts;
    eddy_tensor *chosen = eddy_masked_select(x, eddy_gt_s(x, EDDY_S(-1)));
    (void)eddy_unique_counts(chosen, &values, &inverse, &counts);
    eddy_tensor *sums = eddy_bincount(inverse, chosen, NULL);
    eddy_tensor *places = eddy_nonzero(eddy_mul(sums, eddy_add(values, counts)));
    double found = eddy_item_f64(eddy_sum(places, EDDY_ALL_AXES, NULL), NULL);
    if (eddy_error_take(NULL) != EDDY_OK)
        found = NAN;
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    return found;
}

/* What is read is right, and the runtime ends. */
static bool are_late_ops_well(void) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    bool is_well = eddy_runtime_use(runtime) == EDDY_OK;
    double expected = run_late_ops(EDDY_CPU), found = run_late_ops(TWIN_THERE);
    is_well &= found == expected || isnan(found);
    is_well &= eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK;
    eddy_runtime_release(&runtime);
    return is_well;
}

/* In a process of its own, which uses the driver first: 1: it is not well, 2: there is no such call. */
static int run_failing(long number, int result) {
    pid_t child = fork();
    if (child == 0) {
        char text[64];
        snprintf(text, sizeof(text), "%ld:%d", number, result);
        setenv("FAKE_CUDA_FAIL", text, 1);
        alarm(60);
        bool is_well = are_late_ops_well();
        long (*calls)(void);
        *(void **)&calls = fake_cuda_ask("fake_cuda_calls");
        _exit(!is_well ? 1 : calls() < number ? 2 : 0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "call %ld fails with %d: signal %d", number, result,
              WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* With a sanitizer, which makes a process slow to begin, one call of eight. */
#define CALLS_AT_ONCE (8 / ROUNDS_OF(8) > 1 ? 8 : 1)

/* Every other one for good. */
Test(cuda_late, each_call_of_the_driver_may_fail) {
    long number = 1;
    (void)fake_cuda_ask("fake_cuda_calls");
    for (int status = 0; status != 2; number += CALLS_AT_ONCE) {
        int result = number / CALLS_AT_ONCE % 2 ? 719 : 2; /* lost; no memory */
        status = run_failing(number, result);
        cr_assert_neq(status, 1, "call %ld fails with %d", number, result);
    }
    cr_assert_gt(number, 100);
}

/* ---- ends ---- */

Test(cuda_late, one_thread_is_enough) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    cr_assert_eq(run_late_ops(TWIN_THERE), run_late_ops(EDDY_CPU));
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void issue_many(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = many(EDDY_F32);
    for (int i = 0; i < 10; i++) {
        eddy_tensor *part = eddy_narrow(x, 0, i, 3000);
        (void)eddy_unique(eddy_masked_select(part, eddy_gt_s(part, EDDY_S(0))));
    }
    eddy_scope_end(scope);
}

Test(cuda_late, a_shutdown_ends_what_is_under_way) {
    for (int round = 0; round < 5; round++) {
        eddy_runtime *runtime = eddy_runtime_create(NULL);
        cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
        issue_many();
        cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
        eddy_runtime_release(&runtime);
    }
}

/* In the child nothing of the device is touched; the parent's counts and fills go on. A process may exit between the two. */
Test(cuda_late, a_fork_and_an_exit_among_the_launches) {
    eddy_scope *scope = eddy_scope_begin();
    for (int round = 0; round < 5; round++) {
        twin x = twin_numbers(EDDY_F32, EDDY_SHAPE(3000), false);
        eddy_tensor *distinct = eddy_unique(x.there);
        pid_t child = fork();
        if (child == 0) {
            bool is_refused = eddy_wait(distinct, EDDY_FOREVER) == EDDY_FORKED;
            eddy_error_take(NULL);
            _exit(is_refused ? 0 : 1);
        }
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert_eq(status, 0);
        twin_expect_equal("unique", eddy_unique(x.here), distinct);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
    issue_many();
}
