/* Losses of pairs and their gradients against plain formulas in long double, and gradients against finite differences.
 *
 * Bounds: per element 6 units of the compute type times the size of its terms, and one unit of the dtype; for a sum those of
 * its elements together. */
#include "serial_team.h"
#include "tensor.h"
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { MSE, L1, SMOOTH, BCE, KL, KL_LOG, KINDS } kind;

static const struct {
    const eddy_kernel *forward, *by_input, *by_target;
} kernels[] = {
    {&eddy_cpu_mse_loss, &eddy_cpu_mse_loss_backward, NULL},
    {&eddy_cpu_l1_loss, &eddy_cpu_l1_loss_backward, NULL},
    {&eddy_cpu_smooth_l1_loss, &eddy_cpu_smooth_l1_loss_backward, NULL},
    {&eddy_cpu_bce_with_logits, &eddy_cpu_bce_with_logits_backward,
     &eddy_cpu_bce_with_logits_backward_target},
    {&eddy_cpu_kl_div, &eddy_cpu_kl_div_backward, &eddy_cpu_kl_div_backward_target},
    {&eddy_cpu_kl_div, &eddy_cpu_kl_div_backward, &eddy_cpu_kl_div_backward_target},
};

static const double beta = 0.75;

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

/* The loss of x and t, its derivatives, and the size of the terms that these are made of. */
typedef struct answer {
    long double loss, by_input, by_target, size;
} answer;

static answer ask(kind k, long double x, long double t, long double p) {
    long double d = x - t, z = fabsl(d), sign = d > 0 ? 1 : d < 0 ? -1 : 0;
    answer a = {.size = 1 + fabsl(x) + fabsl(t)};
    if (k == MSE) {
        a = (answer){.loss = d * d,
                     .by_input = 2 * d,
                     .size = (fabsl(x) + fabsl(t)) * (1 + fabsl(x) + fabsl(t))};
    } else if (k == L1) {
        a.loss = z, a.by_input = sign;
    } else if (k == SMOOTH) {
        a.loss = z < beta ? z * z / (2 * beta) : z - beta / 2;
        a.by_input = z < beta ? d / beta : sign;
        a.size *= 1 / beta + 1;
    } else if (k == BCE) {
        long double softplus = log1pl(expl(-fabsl(x))) + fmaxl(-x, 0);
        a.loss = (1 - t) * x + (1 + (p - 1) * t) * softplus;
        a.by_input = (1 + (p - 1) * t) / (1 + expl(-x)) - p * t;
        a.by_target = (p - 1) * softplus - x;
        a.size *= (2 + fabsl(p)) * (1 + fabsl(t));
    } else if (k == KL) {
        a.loss = t == 0 ? 0 : t * (logl(t) - x);
        a.by_input = -t;
        a.by_target = logl(t) + 1 - x;
        a.size += t > 0 ? fabsl(logl(t)) : 0;
    } else {
        a.loss = expl(t) * (t - x);
        a.by_input = -expl(t);
        a.by_target = expl(t) * (1 + t - x);
        a.size *= expl(t) * (1 + fabsl(t));
    }
    if (k <= SMOOTH)
        a.by_target = -a.by_input;
    return a;
}

typedef struct problem {
    kind kind;
    eddy_dtype dtype;
    int64_t shape[3];
    layout in, other, out;
    int32_t reduction;
    bool weighted;
    eddy_kernel_team *team;
} problem;

typedef struct setting {
    tensor input, target, weight, positive, grad, out, gradient;
    eddy_attributes_pair_loss attributes;
    bool is_whole, is_weighted;
} setting;

static setting make(const problem *p) {
    bool is_whole = p->reduction == EDDY_REDUCTION_NONE;
    setting s = {.is_whole = is_whole, .is_weighted = p->weighted && p->kind == BCE};
    s.input = tensor_make(p->dtype, 3, p->shape, p->in);
    s.target = tensor_make(p->dtype, 3, p->shape, p->other);
    s.weight =
        tensor_make(p->dtype, 2, p->shape + 1, CONTIGUOUS); /* broadcast over the first dim */
    s.positive = tensor_make(p->dtype, 1, p->shape + 2, CONTIGUOUS);
    s.grad = tensor_make(p->dtype, is_whole ? 3 : 0, p->shape, p->other);
    s.out = tensor_make(p->dtype, is_whole ? 3 : 0, p->shape, is_whole ? p->out : CONTIGUOUS);
    s.gradient = tensor_make(p->dtype, 3, p->shape, p->out);
    s.attributes = (eddy_attributes_pair_loss){.reduction = p->reduction,
                                               .beta = p->kind == SMOOTH ? beta : 0,
                                               .target_is_log = p->kind == KL_LOG};
    tensor_fill(&s.input, 4), tensor_fill(&s.target, 2), tensor_fill(&s.weight, 2),
        tensor_fill(&s.positive, 3);
    tensor_fill(&s.grad, 1);
    for (int64_t i = 0; i < s.target.count && (p->kind == BCE || p->kind == KL); i++)
        tensor_set(&s.target, i, fabs(tensor_get(&s.target, i)) / 2);
    return s;
}

static void drop(setting *s) {
    tensor_free(&s->input), tensor_free(&s->target), tensor_free(&s->weight),
        tensor_free(&s->positive);
    tensor_free(&s->grad), tensor_free(&s->out), tensor_free(&s->gradient);
}

static void run_forward(setting *s, const problem *p, eddy_kernel_team *team) {
    tensor *weight = s->is_weighted ? &s->weight : NULL,
           *positive = s->is_weighted ? &s->positive : NULL;
    if (p->kind == BCE)
        run_kernel(kernels[BCE].forward,
                   (tensor *[]){&s->input, &s->target, weight, positive, &s->out}, 5,
                   &s->attributes, team, NULL);
    else
        run_kernel(kernels[p->kind].forward, (tensor *[]){&s->input, &s->target, &s->out}, 3,
                   &s->attributes, team, NULL);
}

static void run_backward(setting *s, const problem *p, const eddy_kernel *kernel) {
    tensor *weight = s->is_weighted ? &s->weight : NULL,
           *positive = s->is_weighted ? &s->positive : NULL;
    if (p->kind == BCE)
        run_kernel(kernel,
                   (tensor *[]){&s->grad, &s->input, &s->target, weight, positive, &s->gradient}, 6,
                   &s->attributes, p->team, NULL);
    else
        run_kernel(kernel, (tensor *[]){&s->grad, &s->input, &s->target, &s->gradient}, 4,
                   &s->attributes, p->team, NULL);
}

static void check_gradient(setting *s, const problem *p, const eddy_kernel *kernel,
                           bool by_target) {
    run_backward(s, p, kernel);
    for (int64_t i = 0; i < s->input.count; i++) {
        int64_t last = p->shape[2], inner = p->shape[1] * last;
        long double positive = s->is_weighted ? tensor_get(&s->positive, i % last) : 1;
        long double w = s->is_weighted ? tensor_get(&s->weight, i % inner) : 1;
        answer a = ask(p->kind, tensor_get(&s->input, i), tensor_get(&s->target, i), positive);
        long double g = tensor_get(&s->grad, s->is_whole ? i : 0);
        if (p->reduction == EDDY_REDUCTION_MEAN)
            g /= s->input.count;
        long double want = g * w * (by_target ? a.by_target : a.by_input);
        double unit = unit_of(p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32),
               got = tensor_get(&s->gradient, i);
        long double bound =
            6 * unit * fabsl(g * w) * a.size + unit_of(p->dtype) * fabsl(want) + least_of(p->dtype);
        cr_assert(fabsl(got - want) <= bound, "%s element %lld: %a, not %a",
                  describe(kernel->name, &s->input, p->in), (long long)i, got, (double)want);
    }
    cr_assert(tensor_guards_hold(&s->gradient));
}

static void check(const problem *p) {
    setting s = make(p);
    run_forward(&s, p, p->team);
    long double sum = 0, size = 0;
    double unit = unit_of(p->dtype == EDDY_F64 ? EDDY_F64 : EDDY_F32);
    const char *name = kernels[p->kind].forward->name;
    for (int64_t i = 0; i < s.input.count; i++) {
        int64_t last = p->shape[2], inner = p->shape[1] * last;
        long double positive = s.is_weighted ? tensor_get(&s.positive, i % last) : 1;
        long double w = s.is_weighted ? tensor_get(&s.weight, i % inner) : 1;
        answer a = ask(p->kind, tensor_get(&s.input, i), tensor_get(&s.target, i), positive);
        sum += a.loss * w;
        size += a.size * fabsl(w);
        if (!s.is_whole)
            continue;
        double got = tensor_get(&s.out, i);
        long double want = a.loss * w,
                    bound = 6 * unit * a.size * fabsl(w) + unit_of(p->dtype) * fabsl(want);
        cr_assert(fabsl(got - want) <= bound + least_of(p->dtype), "%s element %lld: %a, not %a",
                  describe(name, &s.input, p->in), (long long)i, got, (double)want);
    }
    if (p->reduction == EDDY_REDUCTION_MEAN)
        sum /= s.input.count, size /= s.input.count;
    if (!s.is_whole && s.input.count == 0 && p->reduction == EDDY_REDUCTION_MEAN)
        cr_assert(isnan(tensor_get(&s.out, 0)));
    else if (!s.is_whole && fabsl(sum) < 60000)
        cr_assert(
            fabsl(tensor_get(&s.out, 0) - sum) <= 8 * unit * size + unit_of(p->dtype) * fabsl(sum),
            "%s: %a, not %a", describe(name, &s.input, p->in), tensor_get(&s.out, 0), (double)sum);
    cr_assert(tensor_guards_hold(&s.out));
    setting again = s;
    again.out = tensor_make(p->dtype, s.out.view.rank, p->shape, CONTIGUOUS);
    run_forward(&again, p, &shuffling_team);
    cr_assert(tensor_same(&s.out, &again.out), "%s: slices or layout show",
              describe(name, &s.input, p->in));
    tensor_free(&again.out);
    check_gradient(&s, p, kernels[p->kind].by_input, false);
    if (kernels[p->kind].by_target)
        check_gradient(&s, p, kernels[p->kind].by_target, true);
    drop(&s);
}

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

Test(pair_loss, every_kind_dtype_layout_and_reduction) {
    const int64_t shapes[][3] = {{1, 1, 1}, {3, 0, 2}, {3, 5, 7}, {2, 31, 33}};
    for (int k = 0; k < KINDS; k++)
        for (int d = 0; d < 4; d++)
            for (int n = 0; n < 4; n++)
                for (int a = 0; a < LAYOUT_COUNT; a++)
                    for (int32_t reduction = 0; reduction < 3; reduction++) {
                        problem p = {.kind = (kind)k,
                                     .dtype = floats[d],
                                     .in = (layout)a,
                                     .reduction = reduction};
                        memcpy(p.shape, shapes[n], sizeof(p.shape));
                        p.other = (layout)test_below(LAYOUT_COUNT);
                        p.out = (layout)test_below(OUTPUT_LAYOUTS);
                        p.weighted = test_below(2);
                        p.team = &serial_team;
                        check(&p);
                    }
}

Test(pair_loss, many_slices) {
    for (int k = 0; k < KINDS; k++)
        for (int32_t reduction = 0; reduction < 3; reduction++) {
            problem p = {
                .kind = (kind)k, .dtype = EDDY_F32, .shape = {5, 101, 97}, .reduction = reduction};
            p.in = TURNED;
            p.weighted = true;
            p.team = &threaded_team;
            check(&p);
        }
}

Test(pair_loss, shapes_broadcast) {
    const int64_t left[] = {3, 1}, right[] = {4}, joint[] = {3, 4};
    tensor x = tensor_make(EDDY_F32, 2, left, CONTIGUOUS),
           t = tensor_make(EDDY_F32, 1, right, CONTIGUOUS);
    tensor out = tensor_make(EDDY_F32, 2, joint, CONTIGUOUS),
           sum = tensor_make(EDDY_F32, 0, NULL, CONTIGUOUS);
    double want = 0;
    for (int64_t i = 0; i < 3; i++)
        tensor_set(&x, i, (double)(10 * i));
    for (int64_t i = 0; i < 4; i++)
        tensor_set(&t, i, (double)i);
    eddy_attributes_pair_loss attributes = {.reduction = EDDY_REDUCTION_NONE};
    run_kernel(&eddy_cpu_mse_loss, (tensor *[]){&x, &t, &out}, 3, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 12; i++) {
        double d = (double)(10 * (i / 4) - i % 4);
        cr_assert_eq(tensor_get(&out, i), d * d);
        want += d * d;
    }
    attributes.reduction = EDDY_REDUCTION_SUM;
    run_kernel(&eddy_cpu_mse_loss, (tensor *[]){&x, &t, &sum}, 3, &attributes, &serial_team, NULL);
    cr_assert_eq(tensor_get(&sum, 0), want);
    tensor_free(&x), tensor_free(&t), tensor_free(&out), tensor_free(&sum);
}

/* Each weight without the other, and one that is wider than input and target. */
Test(pair_loss, weights_stand_alone) {
    const int64_t narrow[] = {4}, wide[] = {3, 4};
    tensor x = tensor_make(EDDY_F64, 1, narrow, CONTIGUOUS),
           t = tensor_make(EDDY_F64, 1, narrow, CONTIGUOUS);
    tensor w = tensor_make(EDDY_F64, 2, wide, TURNED),
           ones = tensor_make(EDDY_F64, 1, narrow, CONTIGUOUS);
    tensor plain = tensor_make(EDDY_F64, 1, narrow, CONTIGUOUS),
           out = tensor_make(EDDY_F64, 2, wide, CONTIGUOUS);
    tensor_fill(&x, 3), tensor_fill(&w, 2);
    for (int64_t i = 0; i < 4; i++)
        tensor_set(&t, i, (double)i / 4), tensor_set(&ones, i, 1);
    eddy_attributes_pair_loss attributes = {.reduction = EDDY_REDUCTION_NONE};
    const eddy_kernel *kernel = &eddy_cpu_bce_with_logits;
    run_kernel(kernel, (tensor *[]){&x, &t, NULL, NULL, &plain}, 5, &attributes, &serial_team,
               NULL);
    run_kernel(kernel, (tensor *[]){&x, &t, &w, NULL, &out}, 5, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 12; i++)
        cr_assert_eq(tensor_get(&out, i), tensor_get(&plain, i % 4) * tensor_get(&w, i));
    run_kernel(kernel, (tensor *[]){&x, &t, &w, &ones, &out}, 5, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 12; i++)
        cr_assert_eq(tensor_get(&out, i), tensor_get(&plain, i % 4) * tensor_get(&w, i));
    run_kernel(kernel, (tensor *[]){&x, &t, NULL, &w, &out}, 5, &attributes, &serial_team, NULL);
    for (int64_t i = 0; i < 12; i++) {
        long double at = tensor_get(&x, i % 4), target = tensor_get(&t, i % 4);
        answer a = ask(BCE, at, target, tensor_get(&w, i));
        cr_assert(fabsl(tensor_get(&out, i) - a.loss) <= 6 * unit_of(EDDY_F64) * a.size);
    }
    tensor_free(&x), tensor_free(&t), tensor_free(&w), tensor_free(&ones), tensor_free(&plain),
        tensor_free(&out);
}

Test(pair_loss, gradients_are_those_of_finite_differences) {
    const double step = 0x1p-17;
    for (int k = 0; k < KINDS; k++)
        for (int by_target = 0; by_target < 2; by_target++) {
            const eddy_kernel *kernel = by_target ? kernels[k].by_target : kernels[k].by_input;
            if (!kernel)
                continue;
            problem p = {.kind = (kind)k, .dtype = EDDY_F64, .shape = {2, 3, 4}, .weighted = true};
            p.team = &serial_team;
            setting s = make(&p);
            tensor_set(&s.grad, 0, 1);
            run_backward(&s, &p, kernel);
            tensor *x = by_target ? &s.target : &s.input;
            for (int64_t i = 0; i < x->count; i++) {
                double at = tensor_get(x, i),
                       d = fabs(tensor_get(&s.input, i) - tensor_get(&s.target, i));
                if (d < 2 * step || fabs(d - beta) < 2 * step || (k == KL && at < 0.01))
                    continue; /* a kink */
                double values[2];
                for (int side = 0; side < 2; side++) {
                    tensor_set(x, i, at + (side ? step : -step));
                    run_forward(&s, &p, p.team);
                    values[side] = tensor_get(&s.out, 0);
                }
                tensor_set(x, i, at);
                double want = (values[1] - values[0]) / (2 * step),
                       got = tensor_get(&s.gradient, i);
                cr_assert(fabs(got - want) <= 1e-7, "%s element %lld: %g, not %g seed %llu",
                          kernel->name, (long long)i, got, want, (unsigned long long)test_seed);
            }
            drop(&s);
        }
}

Test(pair_loss, extremes) {
    const int64_t n = 6;
    const double xs[] = {800, -800, INFINITY, NAN, 0, -INFINITY}, ts[] = {1, 0, 1, 0, 0.5, 0};
    const double want[] = {0, 0, 0, NAN, 0.6931471805599453, 0};
    for (int d = 0; d < 2; d++) {
        tensor x = tensor_make(floats[d], 1, &n, CONTIGUOUS),
               t = tensor_make(floats[d], 1, &n, CONTIGUOUS);
        tensor out = tensor_make(floats[d], 1, &n, CONTIGUOUS);
        for (int64_t i = 0; i < n; i++)
            tensor_set(&x, i, xs[i]), tensor_set(&t, i, ts[i]);
        eddy_attributes_pair_loss attributes = {.reduction = EDDY_REDUCTION_NONE};
        run_kernel(&eddy_cpu_bce_with_logits, (tensor *[]){&x, &t, NULL, NULL, &out}, 5,
                   &attributes, &serial_team, NULL);
        for (int64_t i = 0; i < 5; i++) {
            double got = tensor_get(&out, i);
            if (i == 2)
                continue; /* 0 * infinity: NaN, as PyTorch has it */
            cr_assert(isnan(want[i]) ? isnan(got) : fabs(got - want[i]) <= 1e-7,
                      "element %lld is %g", (long long)i, got);
        }
        tensor_set(&t, 4, 0);
        run_kernel(&eddy_cpu_kl_div, (tensor *[]){&x, &t, &out}, 3, &attributes, &serial_team,
                   NULL);
        cr_assert_eq(tensor_get(&out, 4), 0);
        tensor_free(&x), tensor_free(&t), tensor_free(&out);
    }
}
