/* Attention on a CUDA device by cuDNN, on its fake (tests/fake_cuda/dnn), which computes what the graph says: when it is asked, what it gives, what happens without memory and where calls fail. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/generator.h>
#include <eddy/program.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <tests/functional/failing_call.h>
#include <tests/functional/fake_dnn.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

static void begin_with(bool allows) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = allows));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_runtime_release(&runtime);
}

static void begin(void) {
    begin_with(true);
}

typedef struct problem {
    eddy_dtype dtype;
    int64_t rows, columns, width, value_width;
    bool is_causal;
    double scale; /* 0: the op's own */
} problem;

static problem any_problem(void) {
    return (problem){.dtype = random_below(2) ? EDDY_F16 : EDDY_BF16,
                     .rows = 1 + random_below(40),
                     .columns = 1 + random_below(40),
                     .width = 8 * (1 + random_below(4)),
                     .value_width = 8 * (1 + random_below(4)),
                     .is_causal = random_below(2),
                     .scale = random_below(2) ? 0.25 : 0};
}

typedef struct operands {
    twin q, k, v;
} operands;

/* Contiguous, at most 2 in size. */
static twin numbers(eddy_dtype dtype, eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    float *elements = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)(random_below(401) - 200) / 100;
    twin made = twin_of(elements, shape, EDDY_F32);
    free(elements);
    return (twin){eddy_cast(made.here, dtype), eddy_cast(made.there, dtype)};
}

/* q [2, 3, L, D], k and v of as many batches and heads. */
static operands make(const problem *p) {
    return (operands){numbers(p->dtype, EDDY_SHAPE(2, 3, p->rows, p->width)),
                      numbers(p->dtype, EDDY_SHAPE(2, 3, p->columns, p->width)),
                      numbers(p->dtype, EDDY_SHAPE(2, 3, p->columns, p->value_width))};
}

static eddy_tensor *attend(const problem *p, eddy_tensor *q, eddy_tensor *k, eddy_tensor *v) {
    eddy_tensor *out = eddy_sdpa(q, k, v, EDDY_NONE,
                                 EDDY_OPTIONS(sdpa, .is_causal = p->is_causal, .scale = p->scale));
    cr_assert_not_null(out);
    return out;
}

static double *read_f64(eddy_tensor *tensor) {
    size_t bytes = (size_t)eddy_count_of(tensor) * sizeof(double);
    double *all = malloc(bytes);
    cr_assert_eq(eddy_read(eddy_cast(tensor, EDDY_F64), all, bytes, NULL), EDDY_OK);
    return all;
}

/* Each weight is rounded to the dtype (half a unit of it), and so is the result; what is summed in f32 on the way is below a quarter of that. */
static void expect_near(const problem *p, const operands *o, eddy_tensor *there) {
    eddy_tensor *q = eddy_cast(o->q.here, EDDY_F64), *k = eddy_cast(o->k.here, EDDY_F64),
                *v = eddy_cast(o->v.here, EDDY_F64);
    const double unit = p->dtype == EDDY_F16 ? 0x1p-10 : 0x1p-7;
    double *want = read_f64(attend(p, q, k, v)), *sizes = read_f64(attend(p, q, k, eddy_abs(v))),
           *got = read_f64(there);
    for (int64_t i = 0; i < eddy_count_of(there); i++) {
        double bound = 0.75 * unit * sizes[i] + 0.75 * unit * fabs(want[i]) + 0x1p-24;
        cr_assert(fabs(got[i] - want[i]) <= bound,
                  "%s, %d x %d, widths %d, %d, causal %d, seed %llu: element %d is %g, not %g",
                  eddy_dtype_name(p->dtype), (int)p->rows, (int)p->columns, (int)p->width,
                  (int)p->value_width, p->is_causal, (unsigned long long)random_seed(), (int)i,
                  got[i], want[i]);
    }
    free(want), free(sizes), free(got);
}

static void expect_attention(const problem *p, const operands *o) {
    expect_near(p, o, attend(p, o->q.there, o->k.there, o->v.there));
}

static void check(const problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    operands o = make(p);
    expect_attention(p, &o);
    eddy_scope_end(scope);
}

/* One that the library takes; it refuses some, by the seed. */
static problem problem_that_is_taken(void) {
    for (;;) {
        problem p = any_problem();
        long before = executions();
        check(&p);
        if (executions() > before)
            return p;
    }
}

/* ---- */

Test(dnn_attention, most_attention_is_the_librarys, .init = begin, .timeout = 300) {
    for (int round = 0; round < 40; round++) {
        problem p = any_problem();
        check(&p);
    }
    cr_assert_gt(executions(), 25, "%ld of 40", executions());
    twin_expect_no_findings();
}

/* Nor is the library even opened. */
Test(dnn_attention, without_the_option_it_is_not_asked) {
    begin_with(false);
    for (int round = 0; round < 5; round++) {
        problem p = any_problem();
        check(&p);
    }
    cr_assert_eq(calls_of("cudnnGetVersion"), 0);
    twin_expect_no_findings();
}

/* Nor by a runtime beside one that asks. */
Test(dnn_attention, the_option_is_the_runtimes, .init = begin) {
    problem p = problem_that_is_taken();
    begin_with(false);
    long before = descriptors();
    check(&p);
    cr_assert_eq(descriptors(), before);
    twin_expect_no_findings();
}

/* Of versions before 9.10 the hidden scores are another number, which is as low. */
static void expect_hidden_scores_of(const char *version) {
    setenv("FAKE_CUDA_DNN_VERSION", version, 1);
    begin();
    for (int round = 0; round < 10; round++) {
        problem p = any_problem();
        p.is_causal = true;
        check(&p);
    }
    cr_assert_gt(executions(), 5);
    twin_expect_no_findings();
}

Test(dnn_attention, versions_without_an_infinity, .timeout = 300) {
    expect_hidden_scores_of("90999");
}

Test(dnn_attention, versions_with_an_infinity, .timeout = 300) {
    expect_hidden_scores_of("91000");
}

static void expect_not_asked(const char *what, long before) {
    cr_assert_eq(descriptors(), before, "%s", what);
}

/* It would compute something else, or cannot. */
Test(dnn_attention, what_it_does_not_take_is_not_asked, .init = begin) {
    problem p = problem_that_is_taken();
    eddy_scope *scope = eddy_scope_begin();
    long before = descriptors();
    for (int k = 0; k < 2; k++) {
        problem wide = p;
        wide.dtype = k ? EDDY_F32 : EDDY_F64;
        check(&wide);
    }
    expect_not_asked("f32 and f64", before);
    operands o = make(&p);
    twin shown = twin_indices(EDDY_BOOL, EDDY_SHAPE(p.rows, p.columns), 0, 1);
    cr_assert_eq(
        eddy_wait(eddy_sdpa(o.q.there, o.k.there, o.v.there, shown.there, NULL), EDDY_FOREVER),
        EDDY_OK);
    expect_not_asked("a mask", before);
    cr_assert_eq(eddy_wait(eddy_sdpa(o.q.there, o.k.there, o.v.there, EDDY_NONE,
                                     EDDY_OPTIONS(sdpa, .dropout = 0.5)),
                           EDDY_FOREVER),
                 EDDY_OK);
    expect_not_asked("dropout", before);
    problem turned = p;
    turned.scale = -0.5;
    expect_attention(&turned, &o);
    expect_not_asked("a scale below 0", before);
    problem narrow = p;
    narrow.width = 12;
    check(&narrow);
    narrow.width = p.width, narrow.value_width = 7;
    check(&narrow);
    expect_not_asked("rows that begin anywhere", before);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static twin part_of(twin all, int32_t axis, int64_t begin, int64_t end, int64_t step) {
    return (twin){eddy_slice(all.here, axis, begin, end, step),
                  eddy_slice(all.there, axis, begin, end, step)};
}

static twin turned(twin x) {
    return (twin){eddy_transpose(x.here, 1, 2), eddy_transpose(x.there, 1, 2)};
}

/* Of elements that are apart, turned, or beside an address that it takes; and what all batches share. */
Test(dnn_attention, operands_that_lie_otherwise_are_not_asked_about, .init = begin) {
    problem p = problem_that_is_taken();
    eddy_scope *scope = eddy_scope_begin();
    operands o = make(&p);
    long before = descriptors();
    twin apart = numbers(p.dtype, EDDY_SHAPE(2, 3, p.rows, 2 * p.width)),
         beside = numbers(p.dtype, EDDY_SHAPE(2, 3, p.columns, p.width + 8)),
         columns = numbers(p.dtype, EDDY_SHAPE(2, 3, p.value_width, p.columns)),
         shared = numbers(p.dtype, EDDY_SHAPE(1, 3, p.columns, p.width));
    const operands given[] = {
        {part_of(apart, 3, 0, 2 * p.width, 2), o.k, o.v},
        {o.q, part_of(beside, 3, 1, p.width + 1, 1), o.v},
        {o.q, o.k, (twin){eddy_transpose(columns.here, 2, 3), eddy_transpose(columns.there, 2, 3)}},
        {o.q, shared, o.v},
    };
    for (size_t k = 0; k < sizeof(given) / sizeof(*given); k++) {
        expect_attention(&p, &given[k]);
        /* A vector of one element lies as any. */
        if (p.columns > 1)
            expect_not_asked("operands", before);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Heads within rows, as a projection leaves them; rows with gaps; one head for all, of k and v; fewer batch dims, or more that are as one. */
Test(dnn_attention, layouts_that_it_takes, .init = begin, .timeout = 300) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        problem p = any_problem();
        int64_t L = p.rows, S = p.columns, D = p.width, E = p.value_width;
        const operands given[] = {
            {turned(numbers(p.dtype, EDDY_SHAPE(2, L, 3, D))),
             turned(numbers(p.dtype, EDDY_SHAPE(2, S, 3, D))),
             turned(numbers(p.dtype, EDDY_SHAPE(2, S, 3, E)))},
            {part_of(numbers(p.dtype, EDDY_SHAPE(2, 3, L, D + 16)), 3, 8, D + 8, 1),
             part_of(numbers(p.dtype, EDDY_SHAPE(2, 3, S, D + 8)), 3, 0, D, 1),
             part_of(numbers(p.dtype, EDDY_SHAPE(2, 5, S, E)), 1, 0, 5, 2)},
            {numbers(p.dtype, EDDY_SHAPE(2, 3, L, D)), numbers(p.dtype, EDDY_SHAPE(2, 1, S, D)),
             numbers(p.dtype, EDDY_SHAPE(2, 1, S, E))},
            {numbers(p.dtype, EDDY_SHAPE(3, L, D)), numbers(p.dtype, EDDY_SHAPE(3, S, D)),
             numbers(p.dtype, EDDY_SHAPE(3, S, E))},
            {numbers(p.dtype, EDDY_SHAPE(3, L, D)), numbers(p.dtype, EDDY_SHAPE(S, D)),
             numbers(p.dtype, EDDY_SHAPE(S, E))},
            {numbers(p.dtype, EDDY_SHAPE(L, D)), numbers(p.dtype, EDDY_SHAPE(S, D)),
             numbers(p.dtype, EDDY_SHAPE(S, E))},
            {numbers(p.dtype, EDDY_SHAPE(2, 2, 2, L, D)),
             numbers(p.dtype, EDDY_SHAPE(2, 2, 2, S, D)),
             numbers(p.dtype, EDDY_SHAPE(2, 2, 2, S, E))},
        };
        for (size_t k = 0; k < sizeof(given) / sizeof(*given); k++) {
            long before = descriptors();
            expect_attention(&p, &given[k]);
            cr_assert_gt(descriptors(), before, "layout %d is not asked about", (int)k);
        }
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(dnn_attention, it_is_asked_once_for_a_geometry, .init = begin) {
    problem p = problem_that_is_taken();
    long before = executions(), made = descriptors();
    for (int i = 0; i < 3; i++)
        check(&p);
    cr_assert_eq(executions(), before + 3);
    cr_assert_eq(descriptors(), made + 3);
    p.scale = 0.75; /* which it is given with the addresses */
    check(&p);
    cr_assert_eq(descriptors(), made + 4);
    twin_expect_no_findings();
}

Test(dnn_attention, gradients_go_through_what_it_gives, .init = begin) {
    problem p = problem_that_is_taken();
    eddy_scope *scope = eddy_scope_begin();
    operands o = make(&p);
    eddy_tensor *q = eddy_detach(o.q.there);
    cr_assert_eq(eddy_requires_grad_set(q, true), EDDY_OK);
    long before = executions();
    eddy_tensor *out = attend(&p, q, o.k.there, o.v.there);
    expect_near(&p, &o, eddy_detach(out));
    cr_assert_eq(eddy_backward(eddy_sum(out, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert_eq(eddy_wait(eddy_grad_of(q), EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(executions(), before + 1);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* A run has the bits of the calls. */
Test(dnn_attention, programs_have_it_too, .init = begin) {
    problem p = problem_that_is_taken();
    eddy_scope *scope = eddy_scope_begin();
    operands o = make(&p);
    eddy_tensor *called = attend(&p, o.q.there, o.k.there, o.v.there);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *recorded = attend(&p, o.q.there, o.k.there, o.v.there);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"q", o.q.there, EDDY_ROLE_INPUT}, {"k", o.k.there, EDDY_ROLE_INPUT},
                      {"v", o.v.there, EDDY_ROLE_INPUT}, {"out", recorded, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    long before = executions();
    for (int run = 0; run < 3; run++) {
        eddy_tensor *out = NULL;
        cr_assert_eq(eddy_program_run(program, EDDY_LIST(o.q.there, o.k.there, o.v.there), &out),
                     EDDY_OK);
        twin_expect_equal("a run", eddy_to_device(called, EDDY_CPU), out);
    }
    cr_assert_eq(executions(), before + 3);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Attention of so many geometries, of 1, 2, ... rows, with so many columns. */
static eddy_program *program_of(int64_t geometries, int64_t columns, eddy_tensor **x) {
    *x = numbers(EDDY_F16, EDDY_SHAPE(columns > geometries ? columns : geometries, 8)).there;
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *k = eddy_slice(*x, 0, 0, columns, 1), *all = NULL;
    for (int64_t rows = 1; rows <= geometries; rows++) {
        eddy_tensor *y = eddy_sdpa(eddy_slice(*x, 0, 0, rows, 1), k, k, EDDY_NONE, NULL);
        all = all ? eddy_cat(EDDY_LIST(all, y), 0) : y;
    }
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", *x, EDDY_ROLE_INPUT}, {"y", all, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

static void run_often(eddy_program *program, eddy_tensor *x, int runs) {
    for (int run = 0; run < runs; run++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *out;
        cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &out), EDDY_OK);
        cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
        eddy_scope_end(scope);
    }
}

/* Graphs hold more plans than are remembered; when they have gone, others may have the places. */
Test(dnn_attention, plans_go_when_their_graphs_have_gone, .timeout = 300) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = true,
                                         .captures_graphs = true, .program_cache_bytes = 1));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_runtime_release(&runtime);
    eddy_program *programs[40];
    eddy_scope *all = eddy_scope_begin();
    for (int64_t p = 0; p < 40; p++) {
        eddy_tensor *x;
        programs[p] = program_of(24, 1 + p, &x);
        run_often(programs[p], x, 3);
    }
    int taken[2] = {0, 0};
    for (int is_over = 0; is_over < 2; is_over++) {
        for (int64_t rows = 1; rows <= 20; rows++) {
            problem p = {.dtype = EDDY_BF16,
                         .rows = rows,
                         .columns = 50 + is_over,
                         .width = 16,
                         .value_width = 8};
            long before = executions();
            check(&p);
            taken[is_over] += executions() > before;
        }
        for (int p = 0; p < 40 && !is_over; p++)
            eddy_program_release(&programs[p]);
        /* With each row some of those that are over go. */
        eddy_tensor *x;
        eddy_program *other = program_of(3, 60, &x);
        run_often(other, x, 80);
        eddy_program_release(&other);
    }
    eddy_scope_end(all);
    cr_assert_lt(taken[0], 12, "%d of 20", taken[0]);
    cr_assert_gt(taken[1], 14, "%d of 20", taken[1]);
    twin_expect_no_findings();
}

static eddy_device_memory memory_of_device(void) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(TWIN_THERE, &memory), EDDY_OK);
    return memory;
}

/* Room for the result, and none for what is beside: our own kernel needs none. */
Test(dnn_attention, without_memory_it_is_our_own, .init = begin) {
    problem p = problem_that_is_taken();
    cr_assert_eq(eddy_device_memory_limit_set(TWIN_THERE, 2 << 20), EDDY_OK);
    eddy_scope *scope = eddy_scope_begin();
    operands o = make(&p);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    int64_t left = memory_of_device().cached_bytes,
            result = (2 * 3 * p.rows * p.value_width * 2 + 511) / 512 * 512;
    eddy_scope *others = eddy_scope_begin();
    eddy_tensor *rest =
        eddy_empty(EDDY_SHAPE(left - result), EDDY_U8, EDDY_OPTIONS(empty, .device = TWIN_THERE));
    cr_assert_eq(eddy_wait(rest, EDDY_FOREVER), EDDY_OK);
    long before = executions();
    eddy_tensor *out = eddy_retain(attend(&p, o.q.there, o.k.there, o.v.there));
    cr_assert_eq(eddy_wait(out, EDDY_FOREVER), EDDY_OK);
    cr_assert_eq(executions(), before);
    eddy_scope_end(others);
    expect_near(&p, &o, out);
    eddy_release(&out);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

Test(dnn_attention, everything_goes_with_the_runtime) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_rounded_weights = true));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    for (int round = 0; round < 10; round++) {
        problem p = any_problem();
        check(&p);
    }
    cr_assert_gt(objects(), 0);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
    cr_assert_eq(objects(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- each call of the library fails once ---- */

/* Of several geometries. What is read is a number of the right size, or an error says why there is nothing. */
static bool is_attention_well(void) {
    bool is_well = true;
    for (int64_t rows = 2; rows < 6; rows++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = {
            eddy_ones(EDDY_SHAPE(rows, 8), EDDY_F16, NULL),
            eddy_ones(EDDY_SHAPE(rows, 8), EDDY_F16, EDDY_OPTIONS(ones, .device = TWIN_THERE))};
        float all[6 * 8];
        eddy_tensor *y = eddy_cast(eddy_sdpa(x.there, x.there, x.there, EDDY_NONE,
                                             EDDY_OPTIONS(sdpa, .is_causal = rows % 2)),
                                   EDDY_F32);
        if (y && eddy_read(y, all, (size_t)(rows * 8) * sizeof(float), NULL) == EDDY_OK)
            for (int64_t i = 0; i < rows * 8; i++)
                is_well &= fabsf(all[i] - 1) < 0x1p-9f;
        else
            is_well &= eddy_error_take(NULL) != EDDY_OK;
        eddy_scope_end(scope);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    return is_well;
}

static const failing_run run = {
    .options = {.allows_rounded_weights = true, .size = sizeof(eddy_runtime_options)},
    .is_well = is_attention_well,
    .calls_of = calls_of,
    .objects = objects};

Test(dnn_attention, each_call_of_the_library_may_fail, .timeout = 300) {
    static const char *const entries[] = {
#define SYMBOL(symbol, name, result, parameters) #symbol,
        EDDY_DNN_LIST(SYMBOL)
#undef SYMBOL
    };
    static const int statuses[] = {EDDY_DNN_HOST_ALLOC_FAILED, EDDY_DNN_NOT_SUPPORTED};
    for (size_t e = 1; e < sizeof(entries) / sizeof(*entries); e++) { /* the first has no status */
        for (size_t s = 0; s < sizeof(statuses) / sizeof(*statuses); s++)
            cr_assert(fails_well(&run, entries[e], 1, statuses[s]), "%s is not called", entries[e]);
        for (int number = 5; number <= 50; number += 5)
            (void)fails_well(&run, entries[e], number, 0);
    }
}

/* The library's own launches and the loading of its kernels, Eddy's looks ahead of it, memory for a workspace. */
Test(dnn_attention, calls_of_the_driver_behind_it_may_fail, .timeout = 300) {
    static const int results[] = {EDDY_CU_OUT_OF_MEMORY, EDDY_CU_LAUNCH_FAILED};
    for (int r = 0; r < 2; r++) {
        for (int number = 1; number <= 19; number += 3)
            (void)fails_well(&run, "cuLaunchKernel", number, results[r]);
        for (int number = 1; number <= 4; number++) {
            (void)fails_well(&run, "cuModuleLoadData", number, results[r]);
            /* The first is the device's start. */
            (void)fails_well(&run, "cuMemAlloc_v2", number + 1, results[r]);
        }
    }
}
