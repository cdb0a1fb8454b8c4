/* Attention on a CUDA device, on the fake driver (tests/fake_cuda). Sums come in another order than on the CPU, whose result in f64 is what is to come; how far off a result may be follows from what
 * it sums up (tests/kernels/test_sdpa.c). */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/generator.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

static bool by_chance(int64_t one_in) {
    return random_below(one_in) == 0;
}

typedef enum mask_kind { NO_MASK, BOOL_MASK, ADDED_MASK, MASKS } mask_kind;

typedef struct problem {
    eddy_dtype dtype;
    int64_t rows, columns, width, value_width;
    mask_kind mask;
    bool is_causal;
    double dropout, scale;
} problem;

/* The operands, here and there; f64 ones of the same numbers; and with all of v and grad positive, what results sum up. */
enum { Q, K, V, MASK, GRAD, OUT, OPERANDS };
typedef struct operands {
    eddy_tensor *of[OPERANDS];
} operands;

/* ---- operands ---- */

/* Below 2 in size: exponentials of many sizes, none of which overflows. */
static twin numbers(eddy_dtype dtype, eddy_shape shape) {
    if (by_chance(2))
        return twin_indices(dtype, shape, -2, 2);
    twin made = twin_numbers(dtype, shape, false);
    return (twin){eddy_mul_s(made.here, EDDY_S(0.02)), eddy_mul_s(made.there, EDDY_S(0.02))};
}

/* Rarely a row that sees nothing; -infinity here and there in one that is added. */
static twin mask_of(const problem *p, eddy_shape shape) {
    twin shown = twin_indices(EDDY_BOOL, shape, 0, 1);
    if (p->mask == NO_MASK)
        return (twin){EDDY_NONE, EDDY_NONE};
    if (p->mask == BOOL_MASK)
        return shown;
    twin added = numbers(p->dtype, shape);
    eddy_scalar hidden = EDDY_S(-INFINITY);
    return (twin){eddy_masked_fill(added.here, eddy_logical_not(shown.here), hidden),
                  eddy_masked_fill(added.there, eddy_logical_not(shown.there), hidden)};
}

/* q [2, 3, L, D], k [3, S, D], v [2, 1, S, E], mask [3, 1 or L, S], with all batch dims or fewer */
static void make(const problem *p, operands *here, operands *there) {
    int64_t L = p->rows, S = p->columns, D = p->width, E = p->value_width;
    twin all[OPERANDS] = {
        [Q] = numbers(p->dtype, EDDY_SHAPE(2, 3, L, D)),
        [K] = numbers(p->dtype, EDDY_SHAPE(3, S, D)),
        [V] = numbers(p->dtype, EDDY_SHAPE(2, 1, S, E)),
        [MASK] = mask_of(p, EDDY_SHAPE(3, by_chance(2) ? 1 : L, S)),
        [GRAD] = numbers(p->dtype, EDDY_SHAPE(2, 3, L, E)),
    };
    for (int o = 0; o < OPERANDS; o++) {
        here->of[o] = all[o].here;
        there->of[o] = all[o].there;
    }
}

static eddy_tensor *as_f64(eddy_tensor *tensor) {
    return tensor == EDDY_NONE || eddy_dtype_of(tensor) == EDDY_BOOL ? tensor
                                                                     : eddy_cast(tensor, EDDY_F64);
}

static operands widened(const operands *o, bool is_size) {
    operands wide;
    for (int i = 0; i < OPERANDS; i++) {
        wide.of[i] = o->of[i] ? as_f64(o->of[i]) : NULL;
        if (is_size && (i == V || i == GRAD) && wide.of[i])
            wide.of[i] = eddy_abs(wide.of[i]);
    }
    return wide;
}

static double largest_of(eddy_tensor *tensor) {
    return eddy_count_of(tensor) == 0
               ? 0
               : eddy_item_f64(eddy_max(eddy_abs(as_f64(tensor)), EDDY_ALL_AXES, NULL), NULL);
}

/* ---- running ---- */

#define SEED 0x123456789abcdef
#define COUNTER 5

static eddy_tensor *forward(const problem *p, const operands *o) {
    eddy_generator *generator = eddy_generator_create(1);
    cr_assert_eq(eddy_generator_restore(generator, SEED, COUNTER), EDDY_OK);
    eddy_tensor *out = eddy_sdpa(o->of[Q], o->of[K], o->of[V], o->of[MASK],
                                 EDDY_OPTIONS(sdpa, .is_causal = p->is_causal, .scale = p->scale,
                                              .dropout = p->dropout, .generator = generator));
    eddy_generator_release(&generator);
    cr_assert_not_null(out);
    return out;
}

typedef struct gradients {
    eddy_tensor *dq, *dk, *dv;
} gradients;

static gradients backward(const problem *p, const operands *o) {
    gradients made;
    cr_assert_eq(
        eddy_sdpa_backward(o->of[GRAD], o->of[OUT], o->of[Q], o->of[K], o->of[V], o->of[MASK],
                           EDDY_OPTIONS(sdpa_backward, .is_causal = p->is_causal, .scale = p->scale,
                                        .dropout = p->dropout, .seed = SEED, .counter = COUNTER),
                           &made.dq, &made.dk, &made.dv),
        EDDY_OK);
    return made;
}

/* ---- comparing ---- */

static double *read_f64(eddy_tensor *tensor) {
    size_t bytes = (size_t)eddy_count_of(tensor) * sizeof(double);
    double *all = malloc(bytes + 1);
    cr_assert_eq(eddy_read(eddy_cast(tensor, EDDY_F64), all, bytes, NULL), EDDY_OK);
    return all;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static double compute_unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64 ? 0x1p-52 : 0x1p-23;
}

/* What a weight is off by, of its size, where the runtime lets a library round it to the dtype. */
static double rounding_of(const problem *p) {
    bool is_wide = p->dtype == EDDY_F32 || p->dtype == EDDY_F64;
    const char *allows = getenv("EDDY_ALLOW_ROUNDED_WEIGHTS");
    return allows && strcmp(allows, "1") == 0 && !is_wide ? unit_of(p->dtype) / 2 : 0;
}

/* `off`: units of what each element sums up, which is in `sizes` or, without, `size` for all. */
static void expect_near(const char *what, const problem *p, eddy_tensor *wanted, eddy_tensor *there,
                        eddy_tensor *sizes, double size, double off, double rounding) {
    int64_t count = eddy_count_of(wanted);
    cr_assert_eq(eddy_count_of(there), count);
    cr_assert_eq(eddy_dtype_of(there), p->dtype);
    double *want = read_f64(wanted), *got = read_f64(there), *each = sizes ? read_f64(sizes) : NULL;
    for (int64_t i = 0; i < count; i++) {
        double bound = (compute_unit_of(p->dtype) * off + rounding) * (each ? each[i] : size) +
                       2 * unit_of(p->dtype) * fabs(want[i]) +
                       (p->dtype == EDDY_F16 ? 0x1p-23 : 0x1p-120);
        cr_assert(
            fabs(got[i] - want[i]) <= bound,
            "%s of %s, %lld rows, %lld columns, width %lld, %lld, mask %d, causal %d, dropout "
            "%g, seed %llu: element %lld of %lld is %g, not %g (bound %g)",
            what, eddy_dtype_name(p->dtype), (long long)p->rows, (long long)p->columns,
            (long long)p->width, (long long)p->value_width, p->mask, p->is_causal, p->dropout,
            (unsigned long long)random_seed(), (long long)i, (long long)count, got[i], want[i],
            bound);
    }
    free(want), free(got), free(each);
}

static void check(const problem *p) {
    eddy_scope *scope = eddy_scope_begin();
    operands here = {{0}}, there = {{0}};
    make(p, &here, &there);
    double q = largest_of(here.of[Q]), k = largest_of(here.of[K]);
    double scale = p->scale != 0 ? p->scale : 1 / sqrt((double)(p->width > 0 ? p->width : 1));
    double off = 4 * ((double)p->width * q * k * scale + 1) + 16 + (double)p->columns / 64;
    operands wide = widened(&here, false), sizes = widened(&here, true);
    expect_near("sdpa", p, forward(p, &wide), forward(p, &there), forward(p, &sizes), 0, off,
                rounding_of(p));
    here.of[OUT] = forward(p, &here);
    there.of[OUT] = eddy_to_device(here.of[OUT], TWIN_THERE);
    wide = widened(&here, false), sizes = widened(&here, true);
    gradients want = backward(p, &wide), got = backward(p, &there), size = backward(p, &sizes);
    /* Of a score's gradient, for each row: what the weights' gradients sum up, twice. */
    double kept = p->dropout < 1 ? 1 / (1 - p->dropout) : 0;
    double slope = 2 * scale * kept * (double)p->value_width * largest_of(here.of[GRAD]) *
                   largest_of(here.of[V]);
    expect_near("dq", p, want.dq, got.dq, NULL, slope * k, off, 0);
    expect_near("dk", p, want.dk, got.dk, NULL, slope * q * (double)p->rows, off, 0);
    expect_near("dv", p, want.dv, got.dv, size.dv, 0, off, 0);
    eddy_scope_end(scope);
}

/* ---- cases ---- */

static problem any_problem(eddy_dtype dtype, int64_t rows, int64_t columns, int64_t width,
                           int64_t value_width) {
    return (problem){.dtype = dtype,
                     .rows = rows,
                     .columns = columns,
                     .width = width,
                     .value_width = value_width,
                     .mask = (mask_kind)random_below(MASKS),
                     .is_causal = by_chance(2),
                     .dropout = by_chance(3) ? 0.3 : 0,
                     .scale = by_chance(2) ? 0.25 : 0};
}

Test(cuda_attention, every_dtype_and_mask_of_few_rows, .timeout = 300) {
    const int64_t sizes[][4] = {{1, 1, 1, 1},  {5, 7, 3, 2}, {3, 0, 2, 3}, {0, 3, 2, 3},
                                {7, 5, 8, 16}, {2, 3, 0, 2}, {2, 3, 2, 0}, {9, 20, 17, 18}};
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 8; n++)
            for (int mask = 0; mask < MASKS; mask++) {
                problem p =
                    any_problem(floats[d], sizes[n][0], sizes[n][1], sizes[n][2], sizes[n][3]);
                p.mask = (mask_kind)mask;
                check(&p);
            }
    twin_expect_no_findings();
}

/* Round a tile of rows and columns, and of widths. */
Test(cuda_attention, tiles_and_their_edges, .timeout = 300) {
    const int64_t around[] = {31, 32, 33, 63, 64, 65, 70, 129};
    for (int round = 0; round < 8; round++) {
        problem p = any_problem(floats[round % 4], around[random_below(8)], around[random_below(8)],
                                by_chance(4) ? 70 : 1 + random_below(20),
                                by_chance(4) ? 70 : 1 + random_below(20));
        check(&p);
    }
    twin_expect_no_findings();
}

Test(cuda_attention, dropout_keeps_what_the_cpu_keeps, .timeout = 300) {
    for (int round = 0; round < 6; round++) {
        problem p =
            any_problem(floats[round % 2], 1 + random_below(40), 1 + random_below(40), 4, 3);
        p.dropout = (double[]){0.5, 0.9, 1}[round % 3];
        check(&p);
    }
    twin_expect_no_findings();
}

static eddy_tensor *contiguous(eddy_dtype dtype, eddy_shape shape, bool is_there) {
    eddy_tensor *counted =
        eddy_arange(EDDY_S(0), EDDY_S(4096), EDDY_S(1), EDDY_F32,
                    EDDY_OPTIONS(arange, .device = is_there ? TWIN_THERE : EDDY_CPU));
    eddy_tensor *numbers = eddy_mul_s(eddy_sin(counted), EDDY_S(1.5));
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return eddy_cast(eddy_reshape(eddy_slice(numbers, 0, 0, count, 1), shape), dtype);
}

/* As networks have them: one after another, of 16 or 32 elements, which a library may compute, where the runtime allows it. */
Test(cuda_attention, heads_in_a_row, .timeout = 300) {
    for (int form = 0; form < 8; form++) {
        eddy_scope *scope = eddy_scope_begin();
        problem p = {.dtype = form & 1 ? EDDY_F16 : EDDY_BF16,
                     .rows = 21,
                     .columns = form & 4 ? 21 : 18,
                     .width = 16,
                     .value_width = 32,
                     .is_causal = form & 2};
        operands here = {.of = {[MASK] = EDDY_NONE}}, there = here;
        for (int is_there = 0; is_there < 2; is_there++) {
            operands *to = is_there ? &there : &here;
            to->of[Q] = contiguous(p.dtype, EDDY_SHAPE(2, 3, p.rows, p.width), is_there);
            to->of[K] = contiguous(p.dtype, EDDY_SHAPE(2, 3, p.columns, p.width), is_there);
            to->of[V] = contiguous(p.dtype, EDDY_SHAPE(2, 3, p.columns, p.value_width), is_there);
        }
        operands wide = widened(&here, false), sizes = widened(&here, true);
        expect_near("sdpa", &p, forward(&p, &wide), forward(&p, &there), forward(&p, &sizes), 0, 64,
                    rounding_of(&p));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* A row that sees nothing is 0; a NaN stays in its row; infinite scores make one. */
Test(cuda_attention, special_numbers) {
    eddy_scope *scope = eddy_scope_begin();
    float q[5 * 2] = {1, 2, NAN, 1, INFINITY, 1, 3, 4, -1, 2}, k[4 * 2] = {1, 0, 1, 1, 0, 1, 2, 2},
                v[4 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
    bool shown[5 * 4] = {1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1};
    twin all[] = {twin_of(q, EDDY_SHAPE(5, 2), EDDY_F32), twin_of(k, EDDY_SHAPE(4, 2), EDDY_F32),
                  twin_of(v, EDDY_SHAPE(4, 3), EDDY_F32),
                  twin_of(shown, EDDY_SHAPE(5, 4), EDDY_BOOL)};
    eddy_tensor *here = eddy_sdpa(all[0].here, all[1].here, all[2].here, all[3].here, NULL),
                *there = eddy_sdpa(all[0].there, all[1].there, all[2].there, all[3].there, NULL);
    twin_expect_equal("NaNs", eddy_isnan(here), eddy_isnan(there));
    twin_expect_equal("a row that sees nothing", eddy_select(here, 0, 3), eddy_select(there, 0, 3));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static eddy_tensor *gradient_of(const operands *o, int of) {
    operands all = *o;
    all.of[of] = eddy_detach(o->of[of]);
    cr_assert_eq(eddy_requires_grad_set(all.of[of], true), EDDY_OK);
    problem p = {.is_causal = true};
    eddy_tensor *y = forward(&p, &all);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(all.of[of]);
}

Test(cuda_attention, gradients_go_through) {
    problem p = {.dtype = EDDY_F64, .rows = 6, .columns = 7, .width = 5, .value_width = 4};
    for (int of = Q; of <= V; of++) {
        eddy_scope *scope = eddy_scope_begin();
        operands here = {{0}}, there = {{0}};
        make(&p, &here, &there);
        expect_near("gradient", &p, gradient_of(&here, of), gradient_of(&there, of), NULL, 1e4, 64,
                    0);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_attention, targets_of_any_layout_are_written) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        problem p = {
            .dtype = floats[round % 4], .rows = 5, .columns = 4, .width = 3, .value_width = 2};
        operands here = {{0}}, there = {{0}};
        make(&p, &here, &there);
        twin to = twin_numbers(p.dtype, EDDY_SHAPE(2, 3, 5, 2), true);
        cr_assert_eq(
            eddy_sdpa_into(there.of[Q], there.of[K], there.of[V], EDDY_NONE, to.there, NULL),
            EDDY_OK);
        twin_expect_equal("sdpa_into", eddy_to_device(forward(&p, &there), EDDY_CPU), to.there);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
