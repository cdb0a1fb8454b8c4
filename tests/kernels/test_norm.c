/* Normalisations and their gradients against plain loops in long double, and the gradients against finite differences.
 *
 * Bounds: with u the unit of the compute type and s the size of what is added up, (8 + n / 64) u s, and one unit of the
 * dtype for the result's rounding. */
#include "planned.h"
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum family { LAYER, RMS, GROUP, BATCH, TRAINING } family;

static const struct {
    const eddy_kernel *forward, *backward, *backward_weight;
} kernels[] = {
    {&eddy_cpu_layer_norm, &eddy_cpu_layer_norm_backward, &eddy_cpu_layer_norm_backward_weight},
    {&eddy_cpu_rms_norm, &eddy_cpu_rms_norm_backward, &eddy_cpu_rms_norm_backward_weight},
    {&eddy_cpu_group_norm, &eddy_cpu_group_norm_backward, &eddy_cpu_group_norm_backward_weight},
    {&eddy_cpu_batch_norm, NULL, NULL},
    {&eddy_cpu_batch_norm_training, &eddy_cpu_batch_norm_backward,
     &eddy_cpu_batch_norm_backward_weight},
};

static const double eps = 1e-5, momentum = 0.25;

typedef struct problem {
    family family;
    eddy_dtype dtype;
    int32_t rank;
    int64_t shape[4];
    int64_t parameter; /* axis_count, groups */
    layout in, out;
    bool has_weight, has_bias;
    eddy_kernel_team *team;
} problem;

/* The place of an element, and its weight. */
static int64_t place_of(const problem *p, int64_t flat) {
    int64_t inner = 1;
    if (p->family == LAYER || p->family == RMS) {
        for (int64_t d = p->rank - p->parameter; d < p->rank; d++)
            inner *= p->shape[d];
        return flat / inner;
    }
    for (int32_t d = 2; d < p->rank; d++)
        inner *= p->shape[d];
    int64_t c = flat / inner % p->shape[1], n = flat / inner / p->shape[1];
    return p->family == GROUP ? n * p->parameter + c / (p->shape[1] / p->parameter) : c;
}

static int64_t weight_of(const problem *p, int64_t flat) {
    int64_t inner = 1;
    if (p->family == LAYER || p->family == RMS) {
        for (int64_t d = p->rank - p->parameter; d < p->rank; d++)
            inner *= p->shape[d];
        return flat % inner;
    }
    for (int32_t d = 2; d < p->rank; d++)
        inner *= p->shape[d];
    return flat / inner % p->shape[1];
}

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

typedef struct place {
    int64_t count;
    long double mean, variance, scale, magnitude; /* magnitude: of the largest element */
    long double sum, product, product_size;       /* of the gradient */
} place;

typedef struct setting {
    tensor x, grad, weight, bias, mean, variance, out;
    place *places;
    int64_t place_count;
    char attributes[16];
} setting;

static tensor weight_like(const problem *p, eddy_dtype dtype, layout l) {
    if (p->family == LAYER || p->family == RMS)
        return tensor_make(dtype, (int32_t)p->parameter, p->shape + p->rank - p->parameter, l);
    return tensor_make(dtype, 1, p->shape + 1, l);
}

static long double weight_at(const setting *s, const problem *p, int64_t flat) {
    return p->has_weight ? tensor_get(&s->weight, weight_of(p, flat)) : 1;
}

static void set_attributes(setting *s, const problem *p) {
    if (p->family == LAYER || p->family == RMS)
        memcpy(s->attributes, &(eddy_attributes_layer_norm){.axis_count = p->parameter, .eps = eps},
               16);
    else if (p->family == GROUP)
        memcpy(s->attributes, &(eddy_attributes_group_norm){.groups = p->parameter, .eps = eps},
               16);
    else
        memcpy(s->attributes, &(eddy_attributes_batch_norm){.momentum = momentum, .eps = eps}, 16);
}

static void take_statistics(setting *s, const problem *p) {
    s->place_count = p->family >= BATCH ? p->shape[1] : 1;
    for (int64_t i = 0; i < s->x.count; i++)
        if (place_of(p, i) >= s->place_count)
            s->place_count = place_of(p, i) + 1;
    s->places = calloc((size_t)s->place_count + 1, sizeof(place));
    for (int64_t i = 0; i < s->x.count; i++) {
        place *at = &s->places[place_of(p, i)];
        at->count++;
        at->mean += p->family == RMS ? 0 : tensor_get(&s->x, i);
        at->magnitude = fmaxl(at->magnitude, fabs(tensor_get(&s->x, i)));
    }
    for (int64_t i = 0; i < s->place_count; i++)
        s->places[i].mean /= s->places[i].count;
    for (int64_t i = 0; i < s->x.count; i++) {
        place *at = &s->places[place_of(p, i)];
        long double distance = tensor_get(&s->x, i) - at->mean;
        at->variance += distance * distance / at->count;
    }
    for (int64_t i = 0; i < s->place_count; i++) {
        place *at = &s->places[i];
        if (p->family == BATCH) {
            at->mean = tensor_get(&s->mean, i);
            at->variance = tensor_get(&s->variance, i);
        }
        at->scale = 1 / sqrtl(at->variance + eps);
    }
    for (int64_t i = 0; i < s->x.count; i++) {
        place *at = &s->places[place_of(p, i)];
        long double g = tensor_get(&s->grad, i) * weight_at(s, p, i);
        long double normal = (tensor_get(&s->x, i) - at->mean) * at->scale;
        at->sum += g / at->count;
        at->product += g * normal / at->count;
        at->product_size += (fabsl(g) + fabsl(g * normal)) / at->count;
    }
}

/* Of the operand's dtype, or f32 where that has 16 bits. */
static tensor parameter_like(const problem *p) {
    eddy_dtype dtype = eddy_dtype_bytes(p->dtype) == 2 && test_below(2) ? EDDY_F32 : p->dtype;
    return weight_like(p, dtype, (layout)test_below(LAYOUT_COUNT));
}

static setting make(const problem *p) {
    setting s = {.x = tensor_make(p->dtype, p->rank, p->shape, p->in),
                 .grad = tensor_make(p->dtype, p->rank, p->shape, (layout)test_below(LAYOUT_COUNT)),
                 .weight = parameter_like(p),
                 .bias = parameter_like(p),
                 .out = tensor_make(p->dtype, p->rank, p->shape, p->out)};
    if (p->family >= BATCH) {
        eddy_dtype dtype = p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32;
        layout parameter = (layout)test_below(OUTPUT_LAYOUTS);
        s.mean = tensor_make(dtype, 1, p->shape + 1, parameter);
        s.variance = tensor_make(dtype, 1, p->shape + 1, parameter);
        tensor_fill(&s.mean, 1);
        for (int64_t i = 0; i < s.variance.count; i++)
            tensor_set(&s.variance, i, 0.5 + test_unit());
    }
    tensor_fill(&s.x, 3);
    for (int64_t i = 0; i < s.x.count && p->in != BROADCAST; i++)
        tensor_set(&s.x, i, tensor_get(&s.x, i) + 1);
    tensor_fill(&s.grad, 1);
    tensor_fill(&s.weight, 2);
    tensor_fill(&s.bias, 1);
    set_attributes(&s, p);
    take_statistics(&s, p);
    return s;
}

static void drop(setting *s) {
    tensor_free(&s->x), tensor_free(&s->grad), tensor_free(&s->weight), tensor_free(&s->bias),
        tensor_free(&s->out);
    tensor_free(&s->mean), tensor_free(&s->variance);
    free(s->places);
}

static void run_forward(setting *s, const problem *p, tensor *out, eddy_kernel_team *team) {
    tensor *weight = p->has_weight ? &s->weight : NULL, *bias = p->has_bias ? &s->bias : NULL;
    const eddy_kernel *kernel = kernels[p->family].forward;
    if (p->family == RMS)
        run_kernel(kernel, (tensor *[]){&s->x, weight, out}, 3, s->attributes, team, NULL);
    else if (p->family == LAYER || p->family == GROUP)
        run_kernel(kernel, (tensor *[]){&s->x, weight, bias, out}, 4, s->attributes, team, NULL);
    else
        run_kernel(kernel, (tensor *[]){&s->x, &s->mean, &s->variance, weight, bias, out}, 6,
                   s->attributes, team, NULL);
}

static double compute_unit(const problem *p) {
    return unit_of(p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
}

static void check_forward(const problem *p) {
    setting s = make(p);
    double *old = calloc(2 * (size_t)s.place_count + 1, sizeof(double));
    for (int64_t i = 0; i < s.mean.count; i++) {
        old[2 * i] = tensor_get(&s.mean, i);
        old[2 * i + 1] = tensor_get(&s.variance, i);
    }
    run_forward(&s, p, &s.out, p->team);
    const char *name = kernels[p->family].forward->name;
    for (int64_t i = 0; i < s.x.count; i++) {
        const place *at = &s.places[place_of(p, i)];
        long double w = weight_at(&s, p, i), x = tensor_get(&s.x, i);
        long double b = p->has_bias && p->family != RMS ? tensor_get(&s.bias, weight_of(p, i)) : 0;
        long double want = (x - at->mean) * at->scale * w + b;
        long double size = (at->magnitude + fabsl(at->mean)) * at->scale * fabsl(w) + fabsl(b);
        long double bound = (8 + (long double)at->count / 64) * compute_unit(p) * size +
                            unit_of(p->dtype) * fabsl(want);
        double got = tensor_get(&s.out, i);
        cr_assert(fabsl(got - want) <= bound + least_of(p->dtype), "%s element %lld: %a, not %a",
                  describe(name, &s.x, p->in), (long long)i, got, (double)want);
    }
    for (int64_t i = 0; i < s.mean.count && s.x.count > 0; i++) {
        const place *at = &s.places[i];
        double rest = p->family == TRAINING ? momentum : 0;
        double mean = (1 - rest) * old[2 * i] + rest * (double)at->mean;
        double unbiased = (double)at->variance * (double)at->count / (double)(at->count - 1);
        double variance = (1 - rest) * old[2 * i + 1] + (rest > 0 ? rest * unbiased : 0);
        double bound = (8 + (double)at->count / 64) * compute_unit(p) *
                       (1 + (double)(at->magnitude * at->magnitude));
        cr_assert(fabs(tensor_get(&s.mean, i) - mean) <= bound, "%s mean %lld",
                  describe(name, &s.x, p->in), (long long)i);
        cr_assert(fabs(tensor_get(&s.variance, i) - variance) <= bound,
                  "%s variance %lld: %g, not %g", describe(name, &s.x, p->in), (long long)i,
                  tensor_get(&s.variance, i), variance);
    }
    cr_assert(tensor_guards_hold(&s.out) && (s.mean.memory == NULL || tensor_guards_hold(&s.mean)));
    tensor again = tensor_make(p->dtype, p->rank, p->shape, CONTIGUOUS);
    for (int64_t i = 0; i < s.mean.count; i++) {
        tensor_set(&s.mean, i, old[2 * i]);
        tensor_set(&s.variance, i, old[2 * i + 1]);
    }
    run_forward(&s, p, &again, &shuffling_team);
    cr_assert(tensor_same(&s.out, &again), "%s: slices or layout show",
              describe(name, &s.x, p->in));
    tensor_free(&again);
    free(old);
    drop(&s);
}

static void check_backward(const problem *p) {
    setting s = make(p);
    const eddy_kernel *kernel = kernels[p->family].backward;
    tensor *operands[] = {&s.grad, &s.x, p->has_weight ? &s.weight : NULL, &s.out};
    run_kernel(kernel, operands, 4, s.attributes, p->team, NULL);
    for (int64_t i = 0; i < s.x.count; i++) {
        const place *at = &s.places[place_of(p, i)];
        long double g = tensor_get(&s.grad, i) * weight_at(&s, p, i);
        long double normal = (tensor_get(&s.x, i) - at->mean) * at->scale;
        long double want =
            at->scale * (g - (p->family == RMS ? 0 : at->sum) - normal * at->product);
        long double size =
            at->scale * (fabsl(g) + at->product_size) * (1 + at->magnitude * at->scale);
        size *= 1 + at->magnitude * at->scale;
        long double bound = (16 + (long double)at->count / 64) * compute_unit(p) * size +
                            unit_of(p->dtype) * fabsl(want);
        double got = tensor_get(&s.out, i);
        cr_assert(fabsl(got - want) <= bound + least_of(p->dtype), "%s element %lld: %a, not %a",
                  describe(kernel->name, &s.x, p->in), (long long)i, got, (double)want);
    }
    cr_assert(tensor_guards_hold(&s.out));
    drop(&s);
}

static void check_backward_weight(const problem *p) {
    setting s = make(p);
    const eddy_kernel *kernel = kernels[p->family].backward_weight;
    tensor dweight = weight_like(p, p->dtype, p->out), again = weight_like(p, p->dtype, CONTIGUOUS);
    run_kernel(kernel, (tensor *[]){&s.grad, &s.x, &dweight}, 3, s.attributes, p->team, NULL);
    run_kernel(kernel, (tensor *[]){&s.grad, &s.x, &again}, 3, s.attributes, &shuffling_team, NULL);
    cr_assert(tensor_same(&dweight, &again), "%s: slices or layout show",
              describe(kernel->name, &s.x, p->in));
    long double *want = calloc(2 * (size_t)dweight.count + 1, sizeof(*want)),
                *size = want + dweight.count;
    int64_t largest = 1;
    for (int64_t i = 0; i < s.x.count; i++) {
        const place *at = &s.places[place_of(p, i)];
        long double g = tensor_get(&s.grad, i);
        want[weight_of(p, i)] += g * (tensor_get(&s.x, i) - at->mean) * at->scale;
        size[weight_of(p, i)] += fabsl(g) * (1 + at->magnitude + fabsl(at->mean)) * at->scale;
        largest = at->count > largest ? at->count : largest;
    }
    for (int64_t i = 0; i < dweight.count; i++) {
        long double bound = (8 + (long double)largest / 64) * compute_unit(p) * size[i];
        double got = tensor_get(&dweight, i);
        cr_assert(fabsl(got - want[i]) <=
                      bound + unit_of(p->dtype) * fabsl(want[i]) + least_of(p->dtype),
                  "%s weight %lld: %a, not %a", describe(kernel->name, &s.x, p->in), (long long)i,
                  got, (double)want[i]);
    }
    cr_assert(tensor_guards_hold(&dweight));
    free(want);
    tensor_free(&dweight), tensor_free(&again);
    drop(&s);
}

static void check(const problem *p) {
    check_forward(p);
    if (p->family == BATCH)
        return;
    check_backward(p);
    check_backward_weight(p);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(norm, every_dtype_and_layout) {
    const int64_t shapes[][4] = {{3, 4, 5, 7}, {1, 2, 1, 1},  {2, 0, 3, 2},
                                 {0, 4, 3, 1}, {5, 6, 17, 1}, {2, 4, 33, 2}};
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 6; n++)
            for (int a = 0; a < LAYOUT_COUNT; a++)
                for (int f = LAYER; f <= TRAINING; f++)
                    for (int64_t parameter = 1; parameter <= (f <= RMS     ? 4
                                                              : f == GROUP ? 2
                                                                           : 1);
                         parameter++) {
                        problem p = {.family = (family)f,
                                     .dtype = floats[d],
                                     .rank = 4,
                                     .parameter = parameter};
                        memcpy(p.shape, shapes[n], sizeof(p.shape));
                        p.in = (layout)a;
                        p.out = (layout)test_below(OUTPUT_LAYOUTS);
                        p.has_weight = test_below(2);
                        p.has_bias = test_below(2);
                        p.team = &serial_team;
                        if (f == TRAINING && n == 1)
                            continue; /* one value */
                        check(&p);
                    }
}

Test(norm, ranks_below_four) {
    problem p = {.family = LAYER,
                 .dtype = EDDY_F32,
                 .rank = 1,
                 .shape = {37},
                 .parameter = 1,
                 .team = &serial_team};
    check(&p);
    p = (problem){
        .family = TRAINING, .dtype = EDDY_F32, .rank = 2, .shape = {19, 5}, .team = &serial_team};
    p.has_weight = p.has_bias = true;
    check(&p);
    p.family = GROUP;
    p.parameter = 5;
    check(&p);
}

Test(norm, places_longer_than_a_chunk_and_many_slices) {
    const problem problems[] = {
        {.family = LAYER, .rank = 2, .shape = {5, 2047}, .parameter = 1},
        {.family = LAYER, .rank = 2, .shape = {5, 2048}, .parameter = 1},
        {.family = LAYER, .rank = 2, .shape = {5, 2049}, .parameter = 1},
        {.family = LAYER, .rank = 3, .shape = {2, 97, 211}, .parameter = 2},
        {.family = LAYER, .rank = 2, .shape = {9001, 33}, .parameter = 1},
        {.family = RMS, .rank = 2, .shape = {7, 5000}, .parameter = 1},
        {.family = RMS, .rank = 2, .shape = {4001, 64}, .parameter = 1},
        {.family = GROUP, .rank = 4, .shape = {7, 12, 31, 33}, .parameter = 3},
        {.family = GROUP, .rank = 4, .shape = {1, 8, 64, 65}, .parameter = 8},
        {.family = GROUP, .rank = 4, .shape = {2, 6, 60, 50}, .parameter = 2},
        {.family = BATCH, .rank = 4, .shape = {9, 13, 31, 33}},
        {.family = TRAINING, .rank = 4, .shape = {9, 13, 31, 33}},
        {.family = TRAINING, .rank = 2, .shape = {6001, 31}},
    };
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
            problem p = problems[i];
            p.dtype = floats[d];
            p.team = &threaded_team;
            p.has_weight = p.has_bias = true;
            p.in = UNALIGNED;
            check(&p);
            p.in = TURNED;
            check(&p);
        }
}

Test(norm, the_layout_of_operands_does_not_show) {
    const int64_t shapes[][3] = {{40, 33, 1}, {3, 40, 2500}, {2500, 9, 2}};
    for (int f = LAYER; f <= TRAINING; f++)
        for (int n = 0; n < 3; n++) {
            problem p = {.family = (family)f,
                         .dtype = EDDY_F32,
                         .rank = 3,
                         .parameter = 1,
                         .team = &serial_team};
            memcpy(p.shape, shapes[n], sizeof(shapes[n]));
            p.has_weight = p.has_bias = true;
            setting s = make(&p);
            tensor x = tensor_make(EDDY_F32, 3, p.shape, TURNED),
                   grad = tensor_make(EDDY_F32, 3, p.shape, STRIDED);
            tensor out = tensor_make(EDDY_F32, 3, p.shape, TURNED), straight = s.x;
            for (int64_t i = 0; i < x.count; i++)
                tensor_set(&x, i, tensor_get(&s.x, i)),
                    tensor_set(&grad, i, tensor_get(&s.grad, i));
            run_forward(&s, &p, &s.out, p.team);
            s.x = x;
            run_forward(&s, &p, &out, p.team);
            s.x = straight;
            cr_assert(tensor_same(&s.out, &out), "%s",
                      describe(kernels[f].forward->name, &x, TURNED));
            for (int k = 0; k < 2 && f != BATCH; k++) {
                const eddy_kernel *kernel = k ? kernels[f].backward_weight : kernels[f].backward;
                tensor a = k ? weight_like(&p, EDDY_F32, CONTIGUOUS)
                             : tensor_make(EDDY_F32, 3, p.shape, CONTIGUOUS);
                tensor b = k ? weight_like(&p, EDDY_F32, TURNED)
                             : tensor_make(EDDY_F32, 3, p.shape, TURNED);
                tensor *first[] = {&s.grad, &s.x, k ? &a : &s.weight, &a},
                       *second[] = {&grad, &x, k ? &b : &s.weight, &b};
                run_kernel(kernel, first, k ? 3 : 4, s.attributes, p.team, NULL);
                run_kernel(kernel, second, k ? 3 : 4, s.attributes, &shuffling_team, NULL);
                cr_assert(tensor_same(&a, &b), "%s", describe(kernel->name, &x, TURNED));
                tensor_free(&a), tensor_free(&b);
            }
            tensor_free(&x), tensor_free(&grad), tensor_free(&out);
            drop(&s);
        }
}

/* F = sum(grad * norm(x)) has the gradient that the kernel says, to the accuracy of a central difference. */
Test(norm, gradients_are_those_of_finite_differences) {
    const double step = 0x1p-17;
    for (int f = LAYER; f <= TRAINING; f++) {
        if (f == BATCH)
            continue;
        problem p = {
            .family = (family)f, .dtype = EDDY_F64, .rank = 3, .shape = {3, 4, 5}, .parameter = 2};
        p.has_weight = p.has_bias = true;
        p.team = &serial_team;
        setting s = make(&p);
        tensor dx = tensor_make(EDDY_F64, 3, p.shape, CONTIGUOUS),
               dweight = weight_like(&p, EDDY_F64, CONTIGUOUS);
        run_kernel(kernels[f].backward, (tensor *[]){&s.grad, &s.x, &s.weight, &dx}, 4,
                   s.attributes, p.team, NULL);
        run_kernel(kernels[f].backward_weight, (tensor *[]){&s.grad, &s.x, &dweight}, 3,
                   s.attributes, p.team, NULL);
        tensor *into[] = {&s.x, &s.weight}, *gradients[] = {&dx, &dweight};
        for (int o = 0; o < 2; o++)
            for (int64_t i = 0; i < into[o]->count; i++) {
                double at = tensor_get(into[o], i), sums[2] = {0};
                for (int side = 0; side < 2; side++) {
                    tensor_set(into[o], i, at + (side ? step : -step));
                    run_forward(&s, &p, &s.out, p.team);
                    for (int64_t k = 0; k < s.out.count; k++)
                        sums[side] += tensor_get(&s.out, k) * tensor_get(&s.grad, k);
                }
                tensor_set(into[o], i, at);
                double want = (sums[1] - sums[0]) / (2 * step), got = tensor_get(gradients[o], i);
                cr_assert(fabs(got - want) <= 1e-7,
                          "%s operand %d element %lld: %g, not %g seed %llu",
                          kernels[f].backward->name, o, (long long)i, got, want,
                          (unsigned long long)test_seed);
            }
        tensor_free(&dx), tensor_free(&dweight);
        drop(&s);
    }
}

/* Dims that never merge: places lie side by side, or elements do. */
static eddy_op_view many_dims(int64_t shape[EDDY_RANK_MAX], int64_t strides[EDDY_RANK_MAX],
                              bool is_turned) {
    for (int d = 0; d < EDDY_RANK_MAX; d++) {
        shape[d] = d == 0 ? 8 : 2;
        strides[d] = (int64_t)1 << (is_turned ? (d ? 2 * d + 2 : 0) : 2 * (EDDY_RANK_MAX - 1 - d));
    }
    return (eddy_op_view){
        .shape = shape, .strides = strides, .dtype = EDDY_F32, .rank = EDDY_RANK_MAX};
}

Test(norm, plans_of_many_dims_have_room) {
    int64_t shape[EDDY_RANK_MAX], strides[2][EDDY_RANK_MAX];
    const eddy_attributes_layer_norm attributes = {.axis_count = EDDY_RANK_MAX - 1, .eps = eps};
    const eddy_op_view lies[] = {many_dims(shape, strides[0], false),
                                 many_dims(shape, strides[1], true)};
    /* Gathered, as it does not lie side by side. */
    eddy_op_view weight = {
        .shape = shape + 1, .strides = strides[1] + 1, .rank = EDDY_RANK_MAX - 1};
    weight.dtype = EDDY_F32;
    for (int turned = 0; turned < 8; turned++) {
        const eddy_op_view first = lies[turned & 1], second = lies[turned >> 1 & 1],
                           third = lies[turned >> 2];
        const eddy_kernel_call calls[] = {{.kernel = &eddy_cpu_layer_norm,
                                           .views = (eddy_op_view[]){first, weight, weight, second},
                                           .view_count = 4},
                                          {.kernel = &eddy_cpu_layer_norm_backward,
                                           .views = (eddy_op_view[]){first, second, weight, third},
                                           .view_count = 4},
                                          {.kernel = &eddy_cpu_layer_norm_backward_weight,
                                           .views = (eddy_op_view[]){first, second, weight},
                                           .view_count = 3}};
        for (int c = 0; c < 3; c++) {
            eddy_kernel_call call = calls[c];
            call.attributes = &attributes;
            cr_expect_leq(planned_only(&call).bytes, (size_t)EDDY_KERNEL_PLAN_BYTES, "%s",
                          call.kernel->name);
        }
    }
}

Test(norm, nan_and_infinity_stay_in_their_place) {
    const int64_t shape[] = {3, 4};
    const double rows[3][4] = {{NAN, 1, 2, 3}, {INFINITY, 1, 2, 3}, {1, 1, 1, 1}};
    for (int d = 0; d < 4; d++) {
        tensor x = tensor_make(floats[d], 2, shape, CONTIGUOUS),
               out = tensor_make(floats[d], 2, shape, CONTIGUOUS);
        for (int64_t i = 0; i < 12; i++)
            tensor_set(&x, i, rows[i / 4][i % 4]);
        eddy_attributes_layer_norm attributes = {.axis_count = 1, .eps = eps};
        run_kernel(&eddy_cpu_layer_norm, (tensor *[]){&x, NULL, NULL, &out}, 4, &attributes,
                   &serial_team, NULL);
        for (int64_t i = 0; i < 8; i++)
            cr_assert(isnan(tensor_get(&out, i)));
        for (int64_t i = 8; i < 12; i++)
            cr_assert_eq(tensor_get(&out, i), 0);
        tensor_free(&x), tensor_free(&out);
    }
}

/* The square of the mean does, which nothing needs. */
Test(norm, elements_whose_squares_overflow_are_normalised_in_every_layout) {
    const int64_t shape[] = {3, 40};
    for (int l = 0; l < OUTPUT_LAYOUTS; l++) {
        tensor x = tensor_make(EDDY_F64, 2, shape, (layout)l),
               out = tensor_make(EDDY_F64, 2, shape, CONTIGUOUS);
        for (int64_t i = 0; i < x.count; i++)
            tensor_set(&x, i, 0x1p600);
        eddy_attributes_layer_norm attributes = {.axis_count = 1, .eps = eps};
        run_kernel(&eddy_cpu_layer_norm, (tensor *[]){&x, NULL, NULL, &out}, 4, &attributes,
                   &serial_team, NULL);
        for (int64_t i = 0; i < out.count; i++)
            cr_assert_eq(tensor_get(&out, i), 0, "%s", describe("layer_norm", &x, (layout)l));
        tensor_free(&x), tensor_free(&out);
    }
}

Test(norm, a_mean_far_from_zero_does_not_cancel) {
    const int64_t shape[] = {1, 5000};
    tensor x = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS),
           out = tensor_make(EDDY_F32, 2, shape, CONTIGUOUS);
    for (int64_t i = 0; i < x.count; i++)
        tensor_set(&x, i, 65536 + (double)(i % 2));
    eddy_attributes_layer_norm attributes = {.axis_count = 1};
    run_kernel(&eddy_cpu_layer_norm, (tensor *[]){&x, NULL, NULL, &out}, 4, &attributes,
               &serial_team, NULL);
    for (int64_t i = 0; i < x.count; i++)
        cr_assert_float_eq(tensor_get(&out, i), i % 2 ? 1 : -1, 0.02, "element %lld is %g",
                           (long long)i, tensor_get(&out, i));
    tensor_free(&x), tensor_free(&out);
}
