/* Attention against the whole matrix of scores in long double, and its gradients; in f64 also against finite differences. What
 * dropout keeps, against the Philox word of the weight.
 *
 * Bounds: a score errs by u times the size of its products; a probability by twice that relatively, and by u for its own sum.
 * Each result gets that times the size of what it adds up, and one unit of the dtype. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/cpu/kernels.h>
#include <kernels/philox.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum mask_kind { NO_MASK, BOOL_MASK, ADDED_MASK, MASKS } mask_kind;

/* q [2, 3, L, D], k [3, S, D], v [2, 1, S, E], mask [3, 1 or L, S] */
typedef struct problem {
    eddy_dtype dtype;
    int64_t rows, columns, width, value_width;
    mask_kind mask;
    bool is_causal;
    layout in;
    eddy_kernel_team *team;
    double dropout;
} problem;

enum { BATCHES = 6 };

typedef struct setting {
    tensor q, k, v, mask, out, grad, dq, dk, dv;
    eddy_attributes_sdpa attributes;
    eddy_attributes_sdpa_backward backward;
    double scale;
    int64_t mask_rows;
} setting;

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static double least_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-1074
           : dtype == EDDY_F32 ? 0x1p-149
           : dtype == EDDY_F16 ? 0x1p-24
                               : 0x1p-133;
}

/* Each operand its own: some are packed where others are taken as they lie. */
static layout output_layout(void) {
    return (layout)test_below(OUTPUT_LAYOUTS);
}

static setting make(const problem *p) {
    int64_t L = p->rows, S = p->columns, D = p->width, E = p->value_width;
    setting s = {.mask_rows = test_below(2) ? L : 1};
    const int64_t q[] = {2, 3, L, D}, k[] = {3, S, D}, v[] = {2, 1, S, E},
                  mask[] = {3, s.mask_rows, S};
    const int64_t out[] = {2, 3, L, E}, dk[] = {2, 3, S, D}, dv[] = {2, 3, S, E};
    layout in = p->in;
    s.q = tensor_make(p->dtype, 4, q, in);
    s.k = tensor_make(p->dtype, 3, k, test_below(2) ? in : CONTIGUOUS);
    s.v = tensor_make(p->dtype, 4, v, test_below(2) ? in : CONTIGUOUS);
    s.mask = tensor_make(p->mask == BOOL_MASK ? EDDY_BOOL : p->dtype, 3, mask, in);
    s.out = tensor_make(p->dtype, 4, out, output_layout());
    s.grad = tensor_make(p->dtype, 4, out, test_below(2) ? in : CONTIGUOUS);
    s.dq = tensor_make(p->dtype, 4, q, output_layout());
    s.dk = tensor_make(p->dtype, 4, dk, output_layout());
    s.dv = tensor_make(p->dtype, 4, dv, output_layout());
    tensor_fill(&s.q, 2), tensor_fill(&s.k, 2), tensor_fill(&s.v, 1), tensor_fill(&s.mask, 1),
        tensor_fill(&s.grad, 1);
    for (int64_t i = 0; i < s.mask.count && p->mask == ADDED_MASK; i++)
        if (test_below(4) == 0)
            tensor_set(&s.mask, i, -INFINITY);
    s.attributes = (eddy_attributes_sdpa){.seed = UINT64_C(0xfedcba9876543210),
                                          .counter = 7,
                                          .dropout = p->dropout,
                                          .is_causal = p->is_causal,
                                          .scale = test_below(2) ? 0 : 0.25};
    s.backward = (eddy_attributes_sdpa_backward){.seed = (int64_t)s.attributes.seed,
                                                 .counter = 7,
                                                 .dropout = p->dropout,
                                                 .is_causal = p->is_causal,
                                                 .scale = s.attributes.scale};
    s.scale = s.attributes.scale != 0 ? s.attributes.scale : 1 / sqrt((double)(D > 0 ? D : 1));
    return s;
}

static void drop(setting *s) {
    tensor *all[] = {&s->q, &s->k, &s->v, &s->mask, &s->out, &s->grad, &s->dq, &s->dk, &s->dv};
    for (int i = 0; i < 9; i++)
        tensor_free(all[i]);
}

static double q_at(const setting *s, const problem *p, int64_t batch, int64_t i, int64_t d) {
    return tensor_get(&s->q, (batch * p->rows + i) * p->width + d);
}

static double k_at(const setting *s, const problem *p, int64_t batch, int64_t j, int64_t d) {
    return tensor_get(&s->k, (batch % 3 * p->columns + j) * p->width + d);
}

static double v_at(const setting *s, const problem *p, int64_t batch, int64_t j, int64_t e) {
    return tensor_get(&s->v, (batch / 3 * p->columns + j) * p->value_width + e);
}

/* Probabilities of a row, and the largest size of a score's products. */
static long double row_of(const setting *s, const problem *p, int64_t batch, int64_t i,
                          long double *probabilities) {
    long double largest = -INFINITY, sum = 0, size = 0;
    for (int64_t j = 0; j < p->columns; j++) {
        long double score = 0, products = 0, added = 0;
        for (int64_t d = 0; d < p->width; d++) {
            long double product =
                (long double)q_at(s, p, batch, i, d) * k_at(s, p, batch, j, d) * s->scale;
            score += product;
            products += fabsl(product);
        }
        int64_t at = (batch % 3 * s->mask_rows + (s->mask_rows == 1 ? 0 : i)) * p->columns + j;
        if (p->mask == ADDED_MASK)
            added = tensor_get(&s->mask, at);
        if ((p->mask == BOOL_MASK && tensor_get(&s->mask, at) == 0) || (p->is_causal && j > i))
            added = -INFINITY;
        probabilities[j] = score + added;
        size = fmaxl(size, products + 1);
        largest = fmaxl(largest, probabilities[j]);
    }
    for (int64_t j = 0; j < p->columns; j++) {
        probabilities[j] = largest == -INFINITY ? 0 : expl(probabilities[j] - largest);
        sum += probabilities[j];
    }
    for (int64_t j = 0; j < p->columns && sum > 0; j++)
        probabilities[j] /= sum;
    return size;
}

/* What dropout multiplies a weight by. */
static double kept(const setting *s, const problem *p, int64_t batch, int64_t i, int64_t j) {
    int64_t number = (batch * p->rows + i) * p->columns + j;
    uint32_t w[4];
    eddy_philox(s->attributes.seed, s->attributes.counter, (uint64_t)number / 4, w);
    return (double)(w[number % 4] >> 8) * 0x1p-24 >= p->dropout ? 1 / (1 - p->dropout) : 0;
}

static void run_forward(setting *s, const problem *p, tensor *out, eddy_kernel_team *team) {
    tensor *mask = p->mask == NO_MASK ? NULL : &s->mask;
    cr_assert_eq(run_kernel(&eddy_cpu_sdpa, (tensor *[]){&s->q, &s->k, &s->v, mask, out}, 5,
                            &s->attributes, team, NULL),
                 0);
}

static void run_backward(setting *s, const problem *p, eddy_kernel_team *team) {
    tensor *mask = p->mask == NO_MASK ? NULL : &s->mask;
    cr_assert_eq(run_kernel(&eddy_cpu_sdpa_backward,
                            (tensor *[]){&s->grad, &s->out, &s->q, &s->k, &s->v, mask, &s->dq,
                                         &s->dk, &s->dv},
                            9, &s->backward, team, NULL),
                 0);
}

/* What is to come, and how far off it may be. */
typedef struct answer {
    long double *value, *size;
    int64_t count;
} answer;

static answer answer_make(const tensor *t) {
    long double *memory = calloc((size_t)t->count * 2 + 1, sizeof(*memory));
    return (answer){memory, memory + t->count, t->count};
}

static void answer_add(answer *a, int64_t at, long double value, long double size) {
    a->value[at] += value;
    a->size[at] += size;
}

static void answer_check(answer *a, const char *name, const problem *p, const tensor *got) {
    double unit = unit_of(p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
    for (int64_t i = 0; i < a->count; i++) {
        long double bound =
            unit * a->size[i] + 2 * unit_of(p->dtype) * fabsl(a->value[i]) + least_of(p->dtype);
        cr_assert(fabsl(tensor_get(got, i) - a->value[i]) <= bound,
                  "%s mask %d causal %d element %lld: %g, not %g (bound %g)",
                  describe(name, got, p->in), p->mask, p->is_causal, (long long)i,
                  tensor_get(got, i), (double)a->value[i], (double)bound);
    }
    cr_assert(tensor_guards_hold(got), "%s", describe(name, got, p->in));
    free(a->value);
}

static void check(const problem *p) {
    setting s = make(p);
    int64_t L = p->rows, S = p->columns, D = p->width, E = p->value_width;
    run_forward(&s, p, &s.out, p->team);
    run_backward(&s, p, p->team);
    answer out = answer_make(&s.out), dq = answer_make(&s.dq), dk = answer_make(&s.dk),
           dv = answer_make(&s.dv);
    long double *probabilities = calloc((size_t)S + 1, sizeof(*probabilities));
    for (int64_t b = 0; b < BATCHES; b++)
        for (int64_t i = 0; i < L; i++) {
            long double off = 4 * row_of(&s, p, b, i, probabilities) + 16 + (long double)S / 64,
                        product = 0, slopes = 0;
            for (int64_t j = 0; j < S; j++) {
                long double weight = probabilities[j] * kept(&s, p, b, i, j);
                for (int64_t e = 0; e < E; e++) {
                    long double pv = weight * v_at(&s, p, b, j, e),
                                g = tensor_get(&s.grad, (b * L + i) * E + e);
                    answer_add(&out, (b * L + i) * E + e, pv, off * fabsl(pv));
                    answer_add(&dv, (b * S + j) * E + e, weight * g, off * fabsl(weight * g));
                    product += g * pv;
                    slopes += fabsl(g * pv);
                }
            }
            /* The gradient takes the output as it was rounded. */
            long double rounding =
                1 + unit_of(p->dtype) / unit_of(p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
            for (int64_t j = 0; j < S; j++) {
                long double to_score = 0, size = 0, scaled = kept(&s, p, b, i, j);
                for (int64_t e = 0; e < E; e++) {
                    long double gv =
                        tensor_get(&s.grad, (b * L + i) * E + e) * scaled * v_at(&s, p, b, j, e);
                    to_score += gv;
                    size += fabsl(gv);
                }
                to_score = probabilities[j] * (to_score - product) * s.scale;
                size = off * probabilities[j] * (size + slopes * rounding) * s.scale;
                for (int64_t d = 0; d < D; d++) {
                    long double k = k_at(&s, p, b, j, d), q = q_at(&s, p, b, i, d);
                    answer_add(&dq, (b * L + i) * D + d, to_score * k, size * fabsl(k));
                    answer_add(&dk, (b * S + j) * D + d, to_score * q, size * fabsl(q));
                }
            }
        }
    free(probabilities);
    answer_check(&out, "sdpa", p, &s.out);
    answer_check(&dq, "sdpa dq", p, &s.dq);
    answer_check(&dk, "sdpa dk", p, &s.dk);
    answer_check(&dv, "sdpa dv", p, &s.dv);
    const int64_t shape[] = {2, 3, L, E};
    tensor again = tensor_make(p->dtype, 4, shape, CONTIGUOUS);
    run_forward(&s, p, &again, &shuffling_team);
    cr_assert(tensor_same(&s.out, &again), "%s: slices or layout show",
              describe("sdpa", &s.out, p->in));
    tensor_free(&again);
    drop(&s);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(sdpa, every_dtype_layout_and_mask) {
    const int64_t sizes[][4] = {{1, 1, 1, 1},  {5, 7, 3, 2}, {3, 0, 2, 3}, {0, 3, 2, 3},
                                {7, 5, 8, 16}, {2, 3, 0, 2}, {2, 3, 2, 0}};
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 7; n++)
            for (int a = 0; a < OUTPUT_LAYOUTS; a++)
                for (int m = 0; m < MASKS; m++)
                    for (int i = 0; i < 4; i++) {
                        bool causal = i % 2, drops = i / 2;
                        problem p = {floats[d],    sizes[n][0],    sizes[n][1], sizes[n][2],
                                     sizes[n][3],  (mask_kind)m,   causal,      (layout)a,
                                     &serial_team, drops ? 0.4 : 0};
                        check(&p);
                    }
}

Test(sdpa, blocks_and_their_edges) {
    const int64_t sizes[][4] = {{64, 128, 16, 16}, {65, 129, 8, 8},  {127, 511, 8, 8},
                                {130, 520, 3, 3},  {1, 600, 64, 64}, {530, 530, 2, 2}};
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < 6; n++)
            for (int causal = 0; causal < 2; causal++) {
                problem p = {floats[d],      sizes[n][0],
                             sizes[n][1],    sizes[n][2],
                             sizes[n][3],    (mask_kind)(n % MASKS),
                             causal,         n % 2 ? CONTIGUOUS : TURNED,
                             &threaded_team, 0};
                check(&p);
            }
}

Test(sdpa, dropout_in_blocks) {
    const int64_t sizes[][4] = {{7, 1027, 5, 3}, {130, 9, 8, 8}, {3, 2, 2, 2}, {64, 512, 2, 2}};
    const double probabilities[] = {0.25, 0x1p-24, 1};
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < 4; n++)
            for (int causal = 0; causal < 2; causal++) {
                problem p = {floats[d],      sizes[n][0],
                             sizes[n][1],    sizes[n][2],
                             sizes[n][3],    (mask_kind)((n + d) % MASKS),
                             causal,         n % 2 ? CONTIGUOUS : TURNED,
                             &threaded_team, probabilities[(n + causal) % 3]};
                check(&p);
            }
}

Test(sdpa, a_row_that_looks_at_nothing_is_zero) {
    const int64_t shape[] = {2, 3}, square[] = {2, 2};
    tensor q = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           k = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor v = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           mask = tensor_make(EDDY_BOOL, 2, square, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           dq = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor dk = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           dv = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    tensor_fill(&q, 1), tensor_fill(&k, 1), tensor_fill(&v, 1);
    tensor_set(&mask, 2, 1);
    eddy_attributes_sdpa attributes = {0};
    eddy_attributes_sdpa_backward backward = {0};
    run_kernel(&eddy_cpu_sdpa, (tensor *[]){&q, &k, &v, &mask, &out}, 5, &attributes, &serial_team,
               NULL);
    run_kernel(&eddy_cpu_sdpa_backward, (tensor *[]){&q, &out, &q, &k, &v, &mask, &dq, &dk, &dv}, 9,
               &backward, &serial_team, NULL);
    for (int64_t i = 0; i < 3; i++) {
        cr_assert_eq(tensor_get(&out, i), 0);
        cr_assert_eq(tensor_get(&out, 3 + i), tensor_get(&v, i));
        cr_assert(tensor_get(&dq, i) == 0 && tensor_get(&dk, 3 + i) == 0 &&
                  tensor_get(&dv, 3 + i) == 0);
        cr_assert_eq(tensor_get(&dv, i), tensor_get(&q, 3 + i));
    }
    tensor_free(&q), tensor_free(&k), tensor_free(&v), tensor_free(&mask), tensor_free(&out);
    tensor_free(&dq), tensor_free(&dk), tensor_free(&dv);
}

Test(sdpa, nan_and_huge_scores) {
    const int64_t shape[] = {2, 1}, columns[] = {3, 1};
    tensor q = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           k = tensor_make(EDDY_F32, 2, columns, CONTIGUOUS);
    tensor v = tensor_make(EDDY_F32, 2, columns, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    const double ks[] = {1e19, -1e19, 0}, vs[] = {3, 5, 7};
    tensor_set(&q, 0, 1e19), tensor_set(&q, 1, NAN);
    for (int64_t i = 0; i < 3; i++)
        tensor_set(&k, i, ks[i]), tensor_set(&v, i, vs[i]);
    eddy_attributes_sdpa attributes = {.scale = 1};
    run_kernel(&eddy_cpu_sdpa, (tensor *[]){&q, &k, &v, NULL, &out}, 5, &attributes, &serial_team,
               NULL);
    cr_assert_eq(tensor_get(&out, 0), 3);
    cr_assert(isnan(tensor_get(&out, 1)));
    tensor_free(&q), tensor_free(&k), tensor_free(&v), tensor_free(&out);
}

Test(sdpa, gradients_are_those_of_finite_differences) {
    const double step = 0x1p-17;
    problem p = {EDDY_F64, 4, 5, 3, 2, BOOL_MASK, true, CONTIGUOUS, &serial_team, 0.3};
    setting s = make(&p);
    run_forward(&s, &p, &s.out, p.team);
    run_backward(&s, &p, p.team);
    tensor *into[] = {&s.q, &s.k, &s.v}, *gradients[] = {&s.dq, &s.dk, &s.dv};
    for (int o = 0; o < 3; o++)
        for (int64_t i = 0; i < into[o]->count; i++) {
            double at = tensor_get(into[o], i), sums[2] = {0}, got = 0;
            for (int side = 0; side < 2; side++) {
                tensor_set(into[o], i, at + (side ? step : -step));
                run_forward(&s, &p, &s.out, p.team);
                for (int64_t k = 0; k < s.out.count; k++)
                    sums[side] += tensor_get(&s.out, k) * tensor_get(&s.grad, k);
            }
            tensor_set(into[o], i, at);
            int64_t each = gradients[o]->count / BATCHES; /* of a batch; k and v serve several */
            for (int64_t b = 0; b < BATCHES; b++) {
                int64_t own = o == 0 ? b : o == 1 ? b % 3 : b / 3;
                if (i / each == own)
                    got += tensor_get(gradients[o], b * each + i % each);
            }
            double want = (sums[1] - sums[0]) / (2 * step);
            cr_assert(fabs(got - want) <= 1e-7, "operand %d element %lld: %g, not %g seed %llu", o,
                      (long long)i, got, want, (unsigned long long)test_seed);
        }
    drop(&s);
}

Test(sdpa, buffers_take_no_more_than_the_output) {
    int64_t shape[] = {128, 128, 32}, strides[] = {128 * 32, 32, 1};
    eddy_op_view view = {.shape = shape, .strides = strides, .dtype = EDDY_F32, .rank = 3},
                 none = {.rank = -1};
    eddy_attributes_sdpa attributes = {0};
    eddy_op_view views[] = {view, view, view, none, view};
    eddy_kernel_call call = {
        .kernel = &eddy_cpu_sdpa, .views = views, .view_count = 5, .attributes = &attributes};
    cr_assert_leq(planned_only(&call).workspace_bytes, (size_t)(128 * 128 * 32) * sizeof(float));
}

Test(sdpa, nan_among_scores_that_are_hidden_is_found) {
    float scores[20];
    for (int i = 0; i < 20; i++)
        scores[i] = -INFINITY;
    const eddy_sdpa_ops *ops = eddy_cpu_sdpa_f32();
    cr_assert(ops->max(scores, 20) == (double)-INFINITY);
    scores[7] = NAN;
    cr_assert(isnan(ops->max(scores, 20)));
}

Test(sdpa, memory_grows_with_the_sequence_alone) {
    size_t bytes[2];
    for (int n = 0; n < 2; n++) {
        int64_t length = n == 0 ? 4096 : 8192, shape[] = {2, length, 64},
                strides[] = {length * 64, 64, 1};
        eddy_op_view view = {.shape = shape, .strides = strides, .dtype = EDDY_F32, .rank = 3},
                     none = {.rank = -1};
        eddy_attributes_sdpa attributes = {0};
        eddy_op_view views[] = {view, view, view, view, view, none, view, view, view};
        eddy_kernel_call call = {.kernel = &eddy_cpu_sdpa_backward,
                                 .views = views,
                                 .view_count = 9,
                                 .attributes = &attributes};
        bytes[n] = planned_only(&call).workspace_bytes;
        eddy_op_view forward[] = {view, view, view, none, view};
        call = (eddy_kernel_call){
            .kernel = &eddy_cpu_sdpa, .views = forward, .view_count = 5, .attributes = &attributes};
        cr_assert_lt(planned_only(&call).workspace_bytes, 64u << 20);
    }
    cr_assert_leq(bytes[1], 2 * bytes[0]);
}
