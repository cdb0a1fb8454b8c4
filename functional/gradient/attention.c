/* Gradients of attention: one op gives all three.
 *
 * Of those gradients, with P = softmax(S), S = scale q k^T + mask and g the gradient of the output o:
 *   dq = scale dS k, dk = scale dS^T q, dv = P^T g, where dS = P (g v^T - d) element by element, d the row sums of g o.
 * If a, b and c are the gradients of these, dS has the gradient R = scale (a k^T + q b^T), and P gets g c^T. So
 *   P has the gradient T = (g v^T - d) R + g c^T, S has U = P (T - the row sums of P T), and d has minus the row sums of P R.
 * With dropout, m being 0 where a weight is dropped and 1 / (1 - p) elsewhere, m P replaces P beside v and g, and m g v^T and
 * m g c^T replace g v^T and g c^T. A mask that is added has the gradient of the
 * scores, dS for the first gradient and U for the second. Unlike the op itself this holds whole matrices of
 * scores. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>
#include <math.h>

/* The options of the sdpa. */
typedef struct attention {
    eddy_tensor *mask;
    eddy_shape
        scores; /* [.., L, S] with all batch dims: elements that are dropped are numbered over them */
    bool is_causal;
    eddy_scalar scale;
    double dropout;
    int64_t seed, counter;
    eddy_device device;
} attention;

static void set_shapes(attention *a, const eddy_shape *output, const eddy_spec *q,
                       const eddy_spec *k, double scale) {
    double width = fmax(1, (double)q->shape.dims[q->shape.rank - 1]);
    a->scale = EDDY_S(scale != 0 ? scale : 1 / sqrt(width));
    a->scores = *output;
    a->scores.dims[a->scores.rank - 1] = k->shape.dims[k->shape.rank - 2];
}

static eddy_tensor *transposed(eddy_tensor *matrix) {
    return eddy_transpose(matrix, -2, -1);
}

static eddy_tensor *row_sums(eddy_tensor *matrix) {
    return eddy_sum(matrix, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true));
}

/* Of [L, S]: whether the column is beyond the row. */
static eddy_tensor *beyond(eddy_shape scores, eddy_device device) {
    eddy_arange_options options = {.size = sizeof(options), .device = device};
    int64_t rows = scores.dims[scores.rank - 2], columns = scores.dims[scores.rank - 1];
    eddy_tensor *row = eddy_arange(EDDY_S(0), EDDY_S(rows), EDDY_S(1), EDDY_I64, &options);
    eddy_tensor *column = eddy_arange(EDDY_S(0), EDDY_S(columns), EDDY_S(1), EDDY_I64, &options);
    return eddy_gt(column, eddy_unsqueeze(row, 1));
}

/* softmax of the scores; 0 in rows without any score. */
static eddy_tensor *probabilities(const attention *a, eddy_tensor *q, eddy_tensor *k) {
    eddy_tensor *mask = a->mask, *scores = eddy_mul_s(eddy_matmul(q, transposed(k)), a->scale);
    if (!scores)
        return NULL;
    if (a->is_causal)
        scores =
            eddy_masked_fill(scores, beyond(eddy_shape_of(scores), a->device), EDDY_S(-INFINITY));
    if (mask == EDDY_NONE)
        return eddy_softmax(scores, -1);
    scores = eddy_dtype_of(mask) == EDDY_BOOL
                 ? eddy_masked_fill(scores, eddy_logical_not(mask), EDDY_S(-INFINITY))
                 : eddy_add(scores, eddy_gradient_widen(mask));
    eddy_tensor *absent = eddy_eq_s(scores, EDDY_S(-INFINITY));
    eddy_tensor *empty = eddy_all(absent, EDDY_AXES(-1), EDDY_OPTIONS(all, .keeps_dims = true));
    return eddy_masked_fill(eddy_softmax(eddy_masked_fill(scores, empty, EDDY_S(0)), -1), absent,
                            EDDY_S(0));
}

/* x [.., L, S] with the sdpa's dropout: scaled up where it kept the weight, else 0; *x itself without dropout. */
static eddy_tensor *kept(const attention *a, eddy_tensor *x) {
    if (a->dropout == 0 || !x)
        return x;
    return eddy_dropout_backward(eddy_expand(x, a->scores), EDDY_S(a->dropout), a->seed,
                                 a->counter);
}

/* g v^T - d: the gradient of a weight, less that of the others of its row. */
static eddy_tensor *rest_of(const attention *a, eddy_tensor *g, eddy_tensor *o, eddy_tensor *v) {
    return eddy_sub(kept(a, eddy_matmul(g, transposed(v))), row_sums(eddy_mul(g, o)));
}

/* ---- first gradient ---- */

static eddy_status to_operands(const eddy_gradient_call *call) {
    const eddy_arguments_sdpa *arguments = call->attributes;
    eddy_sdpa_backward_options options = {.size = sizeof(options),
                                          .is_causal = arguments->is_causal,
                                          .scale = arguments->scale,
                                          .dropout = arguments->dropout,
                                          .seed = (int64_t)arguments->seed,
                                          .counter = (int64_t)arguments->counter};
    return eddy_sdpa_backward(call->grads[0], call->outputs[0], call->inputs[0], call->inputs[1],
                              call->inputs[2], call->inputs[3], &options, &call->results[0],
                              &call->results[1], &call->results[2]);
}

/* dS: the engine sums over axes along which the mask was repeated. */
static eddy_tensor *to_mask(const eddy_gradient_call *call) {
    const eddy_arguments_sdpa *arguments = call->attributes;
    attention a = {.mask = call->inputs[3],
                   .is_causal = arguments->is_causal,
                   .dropout = arguments->dropout,
                   .seed = (int64_t)arguments->seed,
                   .counter = (int64_t)arguments->counter,
                   .device = call->device};
    eddy_shape output = eddy_shape_of(call->grads[0]);
    set_shapes(&a, &output, &call->input_specs[0], &call->input_specs[1], arguments->scale);
    eddy_tensor *g = eddy_gradient_widen(call->grads[0]),
                *o = eddy_gradient_widen(call->outputs[0]);
    eddy_tensor *q = eddy_gradient_widen(call->inputs[0]),
                *k = eddy_gradient_widen(call->inputs[1]);
    return eddy_mul(probabilities(&a, q, k),
                    rest_of(&a, g, o, eddy_gradient_widen(call->inputs[2])));
}

eddy_status eddy_gradient_sdpa(const eddy_gradient_call *call) {
    eddy_status status = EDDY_OK;
    if (call->is_wanted[0] || call->is_wanted[1] || call->is_wanted[2])
        status = to_operands(call);
    if (status == EDDY_OK && call->is_wanted[3] && !(call->results[3] = to_mask(call)))
        return eddy_outcome_why(call->outcome);
    return status;
}

/* ---- second gradient ---- */

enum { GRAD, OUTPUT, Q, K, V, MASK };

eddy_status eddy_gradient_sdpa_backward(const eddy_gradient_call *call) {
    const eddy_arguments_sdpa_backward *arguments = call->attributes;
    eddy_tensor *g = eddy_gradient_widen(call->inputs[GRAD]),
                *o = eddy_gradient_widen(call->inputs[OUTPUT]);
    eddy_tensor *q = eddy_gradient_widen(call->inputs[Q]),
                *k = eddy_gradient_widen(call->inputs[K]);
    eddy_tensor *v = eddy_gradient_widen(call->inputs[V]);
    eddy_tensor *a = eddy_gradient_widen(call->grads[0]), *b = eddy_gradient_widen(call->grads[1]);
    eddy_tensor *c = eddy_gradient_widen(call->grads[2]);
    attention at = {.mask = call->inputs[MASK],
                    .is_causal = arguments->is_causal,
                    .dropout = arguments->dropout,
                    .seed = arguments->seed,
                    .counter = arguments->counter,
                    .device = call->device};
    set_shapes(&at, &call->input_specs[GRAD].shape, &call->input_specs[Q], &call->input_specs[K],
               arguments->scale);

    eddy_tensor *p = probabilities(&at, q, k);
    eddy_tensor *r = eddy_mul_s(
        eddy_add(eddy_matmul(a, transposed(k)), eddy_matmul(q, transposed(b))), at.scale);
    eddy_tensor *pr = eddy_mul(p, r), *to_d = eddy_neg(row_sums(pr)), *kept_pr = kept(&at, pr);
    eddy_tensor *rest = rest_of(&at, g, o, v), *ds = eddy_mul_s(eddy_mul(p, rest), at.scale);
    eddy_tensor *to_p = eddy_add(eddy_mul(rest, r), kept(&at, eddy_matmul(g, transposed(c))));
    eddy_tensor *to_s = eddy_mul(p, eddy_sub(to_p, row_sums(eddy_mul(p, to_p))));
    eddy_tensor *to_products = eddy_mul_s(to_s, at.scale);

    eddy_tensor *results[] = {
        [GRAD] = eddy_add(eddy_add(eddy_matmul(kept_pr, v), eddy_matmul(kept(&at, p), c)),
                          eddy_mul(to_d, o)),
        [OUTPUT] = eddy_mul(to_d, g),
        [Q] = eddy_add(eddy_matmul(to_products, k), eddy_matmul(ds, b)),
        [K] = eddy_add(eddy_matmul(transposed(to_products), q), eddy_matmul(transposed(ds), a)),
        [V] = eddy_matmul(transposed(kept_pr), g),
        [MASK] = to_s,
    };
    for (int i = GRAD; i <= (call->is_wanted[MASK] ? MASK : V); i++) {
        if (!results[i])
            return eddy_outcome_why(call->outcome);
        call->results[i] = results[i];
    }
    return EDDY_OK;
}
