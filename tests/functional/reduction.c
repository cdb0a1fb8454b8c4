#include <tests/functional/reduction.h>

#include <base/dtype.h>
#include <interpreter/call/op.h>
#include <math.h>
#include <string.h>

typedef reduction_elements elements;

static long double number(const elements *e, int64_t i) {
    return eddy_dtype_is_float(e->dtype) ? e->at[i].real : e->at[i].whole;
}

static long double total(const elements *e) {
    long double sum = 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += number(e, i);
    return sum;
}

static long double magnitude(const elements *e) {
    long double sum = 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += fabsl(number(e, i));
    return sum;
}

static long double product(const elements *e) {
    long double product = 1;
    for (int64_t i = 0; i < e->count; i++)
        product *= number(e, i);
    return product;
}

/* Modulo 2^64. */
static int64_t whole_total(const elements *e) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += (uint64_t)e->at[i].whole;
    return (int64_t)sum;
}

static int64_t whole_product(const elements *e) {
    uint64_t product = 1;
    for (int64_t i = 0; i < e->count; i++)
        product *= (uint64_t)e->at[i].whole;
    return (int64_t)product;
}

static int64_t nonzeros(const elements *e) {
    int64_t count = 0;
    for (int64_t i = 0; i < e->count; i++)
        count += number(e, i) != 0;
    return count;
}

/* Of the largest, or smallest, element the first; NaN wins. -1: there is none. */
static int64_t place(const elements *e, bool is_min) {
    int64_t best = -1;
    for (int64_t i = 0; i < e->count; i++) {
        long double value = number(e, i), found = best < 0 ? 0 : number(e, best);
        bool is_better = is_min ? value < found : value > found;
        if (best < 0 || is_better || (isnan(value) && !isnan(found)))
            best = i;
    }
    return best;
}

static long double divisor(const elements *e) {
    return fmaxl(0, (long double)e->count - e->parameter);
}

static long double variance(const elements *e) {
    long double mean = total(e) / e->count, squares = 0;
    for (int64_t i = 0; i < e->count; i++)
        squares += (number(e, i) - mean) * (number(e, i) - mean);
    return squares / divisor(e);
}

static long double powers(const elements *e, double p) {
    long double sum = 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += p == 0 ? number(e, i) != 0 : powl(fabsl(number(e, i)), p);
    return sum;
}

/* The largest magnitude, or the smallest one. */
static long double extreme(const elements *e, bool is_min) {
    long double found = is_min ? INFINITY : 0;
    for (int64_t i = 0; i < e->count; i++) {
        long double value = fabsl(number(e, i));
        if (isnan(value) || (is_min ? value < found : value > found))
            found = value;
        if (isnan(value))
            break;
    }
    return found;
}

static long double norm(const elements *e) {
    if (isinf(e->parameter))
        return extreme(e, e->parameter < 0);
    long double sum = powers(e, e->parameter);
    return e->parameter == 0 ? sum : powl(sum, 1 / (long double)e->parameter);
}

static long double log_sum_exp(const elements *e) {
    int64_t at = place(e, false);
    long double largest = at < 0 ? 0 : number(e, at), sum = 0;
    long double shift = isfinite(largest) ? largest : 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += expl(number(e, i) - shift);
    return shift + logl(sum);
}

/* ---- bounds ---- */

static double half_ulp(eddy_dtype dtype, double value) {
    double unit = dtype == EDDY_F64   ? 0x1p-53
                  : dtype == EDDY_F32 ? 0x1p-24
                  : dtype == EDDY_F16 ? 0x1p-11
                                      : 0x1p-8;
    double least = dtype == EDDY_F64   ? 0
                   : dtype == EDDY_F32 ? 0x1p-150
                   : dtype == EDDY_F16 ? 0x1p-25
                                       : 0x1p-134;
    return fmax(unit * fabs(value), least);
}

static bool is_short(eddy_dtype dtype) {
    return dtype == EDDY_F16 || dtype == EDDY_BF16;
}

/* Of what is computed in: f64, and f32 for the others. */
static double unit(const elements *e) {
    return e->dtype == EDDY_F64 ? 0x1p-53 : 0x1p-24;
}

static double levels(const elements *e) {
    return log2((double)e->count + 1);
}

/* A sum by a tree: 2 + log2 n ulp of the sum of magnitudes. */
static double tree_error(const elements *e) {
    return (4 + 2 * levels(e)) * unit(e) * (double)magnitude(e) + 0x1p-149;
}

/* n ulp of f64, and half of the dtype where that is shorter. */
static double product_error(const elements *e, long double value) {
    double size = fabs((double)value);
    return (double)e->count * 0x1p-52 * size +
           (e->dtype == EDDY_F64 ? 0x1p-1074 : 0x1p-24 * size + 0x1p-150);
}

/* What is rounded once, from f64, of which it is off by `error`. */
static double once(const elements *e, long double value, double error) {
    return error + (is_short(e->dtype) ? 0 : half_ulp(e->dtype, fabs((double)value) + error));
}

/* Of the f64 trees, relative to what is summed up. */
static double wide_tree(const elements *e) {
    return (levels(e) + 40) * 0x1p-53;
}

/* The mean is off by an ulp of the largest element at most, which adds its square to each. */
static double variance_error(const elements *e) {
    double off = 0x1p-52 * (double)extreme(e, false);
    return 4 * wide_tree(e) * (double)variance(e) + off * off * (double)(e->count / divisor(e));
}

static double deviation_error(const elements *e) {
    double value = (double)variance(e), error = variance_error(e);
    return value > error ? error / (2 * sqrt(value)) : sqrt(error);
}

static double norm_error(const elements *e, long double value) {
    double p = e->parameter;
    return p == 0 || isinf(p) ? 0 : 2 * wide_tree(e) * fabs((double)value) * (1 + fabs(1 / p));
}

/* The exponentials are within 2 ulp, their arguments within half an ulp of the distance to the largest element, where the weight
 * is e^-distance. */
static double log_sum_exp_error(const elements *e) {
    return (levels(e) + 40) * unit(e);
}

/* ---- a line for each reduction ---- */

/* Of floats the value and how far off it may be, of integers and bool the value. */
#define NUMBER(op, value_, bound_, whole_)                                                         \
    static bool reduction_of_##op(const elements *e, reduction_value *want) {                      \
        if (eddy_dtype_is_float(e->dtype)) {                                                       \
            const long double value = value_;                                                      \
            *want = (reduction_value){.real = value, .bound = bound_};                             \
        } else {                                                                                   \
            *want = (reduction_value){.whole = whole_};                                            \
        }                                                                                          \
        return true;                                                                               \
    }
#define REAL(op, value_, bound_) NUMBER(op, value_, bound_, 0)
/* Of all, an integer or 0 and 1. */
#define WHOLE(op, whole_)                                                                          \
    static bool reduction_of_##op(const elements *e, reduction_value *want) {                      \
        *want = (reduction_value){.whole = whole_};                                                \
        return true;                                                                               \
    }
/* What is chosen; of nothing there is none. */
#define CHOSEN(op, is_min, whole_)                                                                 \
    static bool reduction_of_##op(const elements *e, reduction_value *want) {                      \
        const int64_t at = place(e, is_min);                                                       \
        if (at >= 0)                                                                               \
            *want = (reduction_value){.real = number(e, at), .whole = whole_};                     \
        return at >= 0;                                                                            \
    }

/* clang-format off */
NUMBER(sum, total(e), tree_error(e), whole_total(e))
REAL(mean, total(e) / e->count, tree_error(e) / (double)e->count)
NUMBER(prod, product(e), product_error(e, value), whole_product(e))
CHOSEN(max, false, e->at[at].whole)
CHOSEN(min, true, e->at[at].whole)
CHOSEN(argmax, false, at)
CHOSEN(argmin, true, at)
WHOLE(any, nonzeros(e) > 0)
WHOLE(all, nonzeros(e) == e->count)
REAL(var, variance(e), once(e, value, variance_error(e)))
REAL(std, sqrtl(variance(e)), once(e, value, deviation_error(e)))
REAL(logsumexp, log_sum_exp(e), once(e, value, log_sum_exp_error(e)))
/* clang-format on */

/* Infinite and negative orders choose an element. */
static bool reduction_of_norm(const elements *e, reduction_value *want) {
    if (e->count == 0 && (isinf(e->parameter) || e->parameter < 0))
        return false;
    want->real = norm(e);
    want->bound = once(e, want->real, norm_error(e, want->real));
    return true;
}

/* What entries name. */
const char *const reduction_names[] = {
#define REDUCTION(op, oracle) #op,
#include <functional/op_reductions.h>
#undef REDUCTION
};
const size_t reduction_count = sizeof(reduction_names) / sizeof(reduction_names[0]);

static bool (*const oracles[])(const elements *e, reduction_value *want) = {
#define REDUCTION(op, oracle) reduction_of_##oracle,
#include <functional/op_reductions.h>
#undef REDUCTION
};

double reduction_parameter(const char *name) {
    const eddy_op *op = eddy_op_find(name);
    for (int32_t i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].type == EDDY_ATTRIBUTE_FLOAT)
            return op->attributes[i].default_value.value.floating;
    return 0;
}

bool reduction_apply(const char *op, const reduction_elements *e, reduction_value *want) {
    *want = (reduction_value){0};
    for (size_t i = 0; i < reduction_count; i++)
        if (strcmp(reduction_names[i], op) == 0)
            return oracles[i](e, want);
    return false;
}

bool reduction_is_near(eddy_dtype dtype, reduction_value want, double got) {
    if (isnan(want.real) || isnan(got) || got == want.real)
        return got == want.real || (isnan(want.real) && isnan(got));
    double largest = dtype == EDDY_F16   ? 65504
                     : dtype == EDDY_F64 ? 0x1.fffffffffffffp1023
                                         : 0x1.fffffep127;
    if (isinf(got))
        return fabsl(want.real) > largest && (got > 0) == (want.real > 0);
    double rounding = is_short(dtype) ? half_ulp(dtype, fabs((double)want.real) + want.bound) : 0;
    return fabsl(got - want.real) <= want.bound + rounding;
}
