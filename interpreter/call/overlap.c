#include <interpreter/call/overlap.h>

#include <base/number.h>

/* Elements at offset_a + sum i_k * s_k and offset_b + sum j_k * t_k are the same where
 *     sum x_k * c_k = target,  0 <= x_k <= most_k
 * has a solution: b's indices are counted from their ends, so that all coefficients are positive. A bounded
 * depth-first search over the coefficients from the largest down, pruned by the sum that the other terms can reach and by their
 * common divisor: the problem and the idea of bounding it are numpy's (numpy/core/src/common/mem_overlap.c). */
#define TERMS_MAX (2 * EDDY_RANK_MAX)
#define STEPS_MAX 20000

typedef struct term {
    int64_t coefficient;
    int64_t most;
} term;

typedef struct search {
    term terms[TERMS_MAX]; /* coefficients falling, all different */
    int count;
    __int128 reach[TERMS_MAX + 1];  /* the largest sum of terms k.. */
    int64_t divisor[TERMS_MAX + 1]; /* of all coefficients k.. */
    int steps;
} search;

/* Adds a term in order; equal coefficients become one term. */
static void add_term(search *s, int64_t coefficient, int64_t most) {
    if (coefficient == 0 || most == 0)
        return;
    int at = 0;
    while (at < s->count && s->terms[at].coefficient > coefficient)
        at++;
    if (at < s->count && s->terms[at].coefficient == coefficient) {
        s->terms[at].most += most;
        return;
    }
    for (int k = s->count++; k > at; k--)
        s->terms[k] = s->terms[k - 1];
    s->terms[at] = (term){coefficient, most};
}

static bool is_reached(search *s, int k, __int128 target) {
    if (target == 0)
        return true;
    if (k == s->count || target < 0 || target > s->reach[k] || target % s->divisor[k] != 0 ||
        ++s->steps > STEPS_MAX)
        return false;
    int64_t coefficient = s->terms[k].coefficient;
    __int128 high = target / coefficient;
    if (high > s->terms[k].most)
        high = s->terms[k].most;
    __int128 short_of = target - s->reach[k + 1];
    __int128 low = short_of > 0 ? (short_of + coefficient - 1) / coefficient : 0;
    for (__int128 x = high; x >= low; x--)
        if (is_reached(s, k + 1, target - x * coefficient))
            return true;
    return false;
}

static bool is_empty(const eddy_layout *layout) {
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->dims[d] == 0)
            return true;
    return false;
}

bool eddy_overlap_layouts(const eddy_layout *a, const eddy_layout *b) {
    if (is_empty(a) || is_empty(b))
        return false;
    search s = {.count = 0};
    __int128 target = (__int128)b->offset - a->offset;
    for (int32_t d = 0; d < a->rank; d++)
        add_term(&s, a->strides[d], a->dims[d] - 1);
    for (int32_t d = 0; d < b->rank; d++) {
        add_term(&s, b->strides[d], b->dims[d] - 1);
        target += (__int128)b->strides[d] * (b->dims[d] - 1);
    }
    s.reach[s.count] = 0;
    s.divisor[s.count] = 0;
    for (int k = s.count - 1; k >= 0; k--) {
        s.reach[k] = s.reach[k + 1] + (__int128)s.terms[k].coefficient * s.terms[k].most;
        s.divisor[k] = eddy_gcd_i64(s.terms[k].coefficient, s.divisor[k + 1]);
    }
    return is_reached(&s, 0, target);
}

bool eddy_overlap_is_same_layout(const eddy_layout *a, const eddy_layout *b) {
    if (a->offset != b->offset || a->rank != b->rank)
        return false;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d] || (a->dims[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}
