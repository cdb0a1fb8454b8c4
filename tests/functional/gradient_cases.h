/* A call of each op that has a gradient: what test_gradients.c goes back through. */
#ifndef EDDY_TESTS_FUNCTIONAL_GRADIENT_CASES_H
#define EDDY_TESTS_FUNCTIONAL_GRADIENT_CASES_H

#include <eddy/eddy.h>
#include <math.h>

#define TENSOR_MAX 6

typedef struct gradient_case {
    const char *op; /* the entry whose gradient it shows; "" for what is no op of the list */
    eddy_tensor *(*run)(eddy_tensor *const *x);
    double least, most; /* of the elements */
    int tensors;
    eddy_shape shapes[TENSOR_MAX];
} gradient_case;

#define SHAPE(...) EDDY_SHAPE(__VA_ARGS__)
#define CASE(op, expression)                                                                                           \
    static eddy_tensor *run_##op(eddy_tensor *const *x) {                                                              \
        return expression;                                                                                             \
    }
#define A x[0]
#define B x[1]
#define C x[2]
#define D x[3]
#define E x[4]
#define F x[5]

static eddy_tensor *labels(int64_t count, int64_t classes) {
    int64_t values[16];
    for (int64_t i = 0; i < count; i++)
        values[i] = i * 7 % classes;
    return eddy_from_data(values, EDDY_SHAPE(count), EDDY_I64, NULL);
}

static eddy_tensor *mask(void) {
    return eddy_from_data((bool[]){true, false, true}, EDDY_SHAPE(3), EDDY_BOOL, NULL);
}

CASE(add, eddy_add(A, B))
CASE(add_s, eddy_add_s(A, EDDY_S(2)))
CASE(sub, eddy_sub(A, B))
CASE(sub_s, eddy_sub_s(A, EDDY_S(2)))
CASE(mul, eddy_mul(A, B))
CASE(mul_s, eddy_mul_s(A, EDDY_S(-1.5)))
CASE(div, eddy_div(A, B))
CASE(div_s, eddy_div_s(A, EDDY_S(3)))
CASE(exp, eddy_exp(A))
CASE(log, eddy_log(A))
CASE(sqrt, eddy_sqrt(A))
CASE(neg, eddy_neg(A))
CASE(relu, eddy_relu(A))
CASE(sigmoid, eddy_sigmoid(A))
CASE(tanh, eddy_tanh(A))
CASE(where, eddy_where(mask(), A, B))
CASE(sum, eddy_sum(A, EDDY_AXES(0, 2), NULL))
CASE(sum_all, eddy_sum(A, EDDY_ALL_AXES, NULL))
CASE(sum_kept, eddy_sum(A, EDDY_AXES(-1), EDDY_OPTIONS(sum, .keeps_dims = true)))
CASE(mean, eddy_mean(A, EDDY_AXES(1), NULL))
CASE(max, eddy_max(A, EDDY_AXES(1), NULL))
CASE(max_all, eddy_max(A, EDDY_ALL_AXES, NULL))
CASE(matmul, eddy_matmul(A, B))
CASE(mm, eddy_mm(A, B))
CASE(linear, eddy_linear(A, B, C))
CASE(linear_bare, eddy_linear(A, B, EDDY_NONE))
CASE(softmax, eddy_softmax(A, 1))
CASE(log_softmax, eddy_log_softmax(A, -1))
CASE(cross_entropy, eddy_cross_entropy(A, labels(4, 5), NULL))
CASE(cross_entropy_none,
     eddy_cross_entropy(A, labels(4, 5), EDDY_OPTIONS(cross_entropy, .reduction = EDDY_REDUCTION_NONE)))
CASE(cross_entropy_ignored, eddy_cross_entropy(A, labels(4, 5), EDDY_OPTIONS(cross_entropy, .ignore_index = 2)))
CASE(cat, eddy_cat(EDDY_LIST(A, B, A), 1))
CASE(clone, eddy_clone(A))
CASE(cast, eddy_cast(eddy_cast(A, EDDY_F64), EDDY_F64))
CASE(relu_backward, eddy_relu_backward(A, eddy_detach(B)))
CASE(reshape, eddy_reshape(eddy_t(A), EDDY_SHAPE(2, -1)))
CASE(permute, eddy_permute(A, EDDY_AXES(2, 0, 1)))
CASE(expand, eddy_expand(A, EDDY_SHAPE(2, 3, 4)))
CASE(slice, eddy_slice(A, 1, 1, 6, 2))
CASE(select, eddy_select(A, -1, 2))
CASE(narrow, eddy_narrow(A, 0, 1, 2))
/* Overlapping windows; every second element of a transposed one; of what repeats; what lies beside the operand. */
CASE(as_strided, eddy_as_strided(A, EDDY_SHAPE(3, 3), (int64_t[]){2, 1}, 1))
CASE(as_strided_of_transposed, eddy_as_strided(eddy_t(A), EDDY_SHAPE(2, 2), (int64_t[]){4, 2}, 0))
CASE(as_strided_of_expanded, eddy_as_strided(eddy_expand(A, EDDY_SHAPE(2, 3)), EDDY_SHAPE(4), (int64_t[]){0}, 1))
CASE(as_strided_of_part,
     eddy_add(eddy_as_strided(eddy_narrow(eddy_contiguous(eddy_exp(A)), 0, 1, 2), EDDY_SHAPE(2), (int64_t[]){1}, 1),
              eddy_narrow(A, 0, 0, 2)))
CASE(squeeze, eddy_squeeze(eddy_unsqueeze(A, 1), EDDY_ALL_AXES))
CASE(flatten, eddy_flatten(eddy_transpose(A, 0, 2), 0, -1))
CASE(contiguous, eddy_contiguous(eddy_t(A)))
CASE(twice, eddy_mul(eddy_exp(A), eddy_add(A, eddy_exp(A))))

static eddy_tensor *i64(eddy_shape shape, const int64_t *values) {
    return eddy_from_data(values, shape, EDDY_I64, NULL);
}
#define I64(shape, ...) i64(shape, (int64_t[]){__VA_ARGS__})

static eddy_tensor *row_mask(void) {
    return eddy_from_data((bool[]){true, false, true, true, false, true}, EDDY_SHAPE(2, 3), EDDY_BOOL, NULL);
}

/* The same numbers at every call. */
static eddy_tensor *run_dropout(eddy_tensor *const *x) {
    return eddy_seed(5) == EDDY_OK ? eddy_dropout(x[0], EDDY_S(0.4), NULL) : NULL;
}

static eddy_tensor *run_max_dim(eddy_tensor *const *x) {
    eddy_tensor *values, *indices;
    return eddy_max_dim(x[0], 1, NULL, &values, &indices) == EDDY_OK ? values : NULL;
}

static eddy_tensor *run_min_dim(eddy_tensor *const *x) {
    eddy_tensor *values, *indices;
    eddy_status status = eddy_min_dim(x[0], -1, EDDY_OPTIONS(min_dim, .keeps_dims = true), &values, &indices);
    return status == EDDY_OK ? values : NULL;
}

static eddy_tensor *run_batch_norm_training(eddy_tensor *const *x) {
    eddy_tensor *mean = eddy_zeros(EDDY_SHAPE(3), EDDY_F64, NULL), *variance = eddy_ones(EDDY_SHAPE(3), EDDY_F64, NULL);
    return eddy_batch_norm_training(x[0], mean, variance, x[1], x[2], NULL);
}

static eddy_tensor *run_batch_norm(eddy_tensor *const *x) {
    eddy_tensor *mean = eddy_full(EDDY_SHAPE(3), EDDY_S(0.25), EDDY_F64, NULL);
    return eddy_batch_norm(x[0], mean, eddy_full(EDDY_SHAPE(3), EDDY_S(1.5), EDDY_F64, NULL), x[1], x[2], NULL);
}

CASE(index_select, eddy_index_select(A, I64(SHAPE(4), 2, 0, 2, 1), 1))
CASE(gather, eddy_gather(A, I64(SHAPE(2, 3), 2, 0, 2, 1, 1, 0), 1))
CASE(scatter, eddy_scatter(A, I64(SHAPE(2, 2), 2, 0, 1, 2), B, 1))
CASE(scatter_add, eddy_scatter_add(A, I64(SHAPE(2, 2), 2, 2, 1, 0), B, 1))
CASE(index_add, eddy_index_add(A, I64(SHAPE(3), 1, 0, 1), B, 0))
CASE(index, eddy_index(A, EDDY_LIST(I64(SHAPE(3), 1, 0, 1), I64(SHAPE(2, 1), 2, 0))))
CASE(index_put, eddy_index_put(A, EDDY_LIST(I64(SHAPE(2), 1, 0)), B, NULL))
CASE(index_put_added,
     eddy_index_put(A, EDDY_LIST(I64(SHAPE(3), 1, 0, 1)), B, EDDY_OPTIONS(index_put, .accumulates = true)))
CASE(embedding, eddy_embedding(I64(SHAPE(2, 2), 3, 0, 3, 1), A, EDDY_OPTIONS(embedding, .padding_index = -5)))
CASE(embedding_backward,
     eddy_embedding_backward(A, I64(SHAPE(3), 3, 0, 3), eddy_zeros(SHAPE(4, 2), EDDY_F64, NULL),
                             EDDY_OPTIONS(embedding_backward, .padding_index = 0, .padding_index_is_zero = true)))
CASE(masked_fill, eddy_masked_fill(A, row_mask(), EDDY_S(2)))
CASE(masked_select, eddy_masked_select(A, row_mask()))
CASE(masked_scatter, eddy_masked_scatter(A, row_mask(), B))
CASE(tril, eddy_tril(A, 0))
CASE(triu, eddy_triu(A, 1))
CASE(diag, eddy_diag(A, 1))
CASE(diag_of_matrix, eddy_diag(A, -1))
CASE(diag_backward, eddy_diag_backward(A, eddy_zeros(SHAPE(3, 4), EDDY_F64, NULL), 1))
CASE(stack, eddy_stack(EDDY_LIST(A, B, A), 1))
CASE(pad, eddy_pad(A, SHAPE(1, -1), SHAPE(0, 2), EDDY_S(3)))
CASE(repeat, eddy_repeat(A, SHAPE(2, 1, 3)))
CASE(repeat_interleave, eddy_repeat_interleave(A, 3, 0))
CASE(flip, eddy_flip(A, EDDY_AXES(1)))
CASE(roll, eddy_roll(A, SHAPE(1, -2), EDDY_AXES(0, 1)))
CASE(roll_flat, eddy_roll(A, SHAPE(2), EDDY_ALL_AXES))
CASE(mse_loss, eddy_mse_loss(A, B, NULL))
CASE(mse_loss_none, eddy_mse_loss(A, B, EDDY_OPTIONS(mse_loss, .reduction = EDDY_REDUCTION_NONE)))
CASE(l1_loss, eddy_l1_loss(A, B, NULL))
CASE(smooth_l1_loss, eddy_smooth_l1_loss(A, B, EDDY_OPTIONS(smooth_l1_loss, .beta = 0.5)))
CASE(bce_with_logits, eddy_bce_with_logits(A, B, EDDY_NONE, EDDY_NONE, NULL))
CASE(kl_div, eddy_kl_div(A, B, NULL))
CASE(kl_div_log, eddy_kl_div(A, B, EDDY_OPTIONS(kl_div, .target_is_log = true)))
CASE(nll_loss, eddy_nll_loss(A, labels(4, 5), EDDY_NONE, NULL))
CASE(bmm, eddy_bmm(A, B))
CASE(addmm, eddy_addmm(A, B, C, EDDY_OPTIONS(addmm, .beta = 0.5, .alpha = 2)))
CASE(layer_norm, eddy_layer_norm(A, B, C, 1, NULL))
CASE(rms_norm, eddy_rms_norm(A, B, 1, NULL))
CASE(group_norm, eddy_group_norm(A, B, C, 2, NULL))
CASE(prod, eddy_prod(A, EDDY_AXES(1), NULL))
CASE(min, eddy_min(A, EDDY_AXES(0), NULL))
CASE(var, eddy_var(A, EDDY_AXES(1), NULL))
CASE(std, eddy_std(A, EDDY_ALL_AXES, NULL))
CASE(norm, eddy_norm(A, EDDY_AXES(1), NULL))
CASE(logsumexp, eddy_logsumexp(A, EDDY_AXES(1), NULL))
CASE(cumsum, eddy_cumsum(A, 1))
CASE(cumprod, eddy_cumprod(A, 0))

/* Elements of which some are 0, from one that is 0. */
static eddy_tensor *with_zeros(eddy_tensor *zero) {
    static const double values[] = {2, 0, 3, -1, 0, 0, 1.5, 0.5};
    return eddy_add(eddy_from_data(values, EDDY_SHAPE(2, 4), EDDY_F64, NULL), zero);
}

CASE(cumprod_of_zeros, eddy_cumprod(with_zeros(A), 1))
CASE(cumprod_backward, eddy_cumprod_backward(A, B, 1))
CASE(cumprod_backward_of_zeros, eddy_cumprod_backward(eddy_add_s(A, EDDY_S(1.5)), with_zeros(B), -1))

CASE(sdpa, eddy_sdpa(A, B, C, EDDY_NONE, NULL))
CASE(sdpa_causal, eddy_sdpa(A, B, C, EDDY_NONE, EDDY_OPTIONS(sdpa, .is_causal = true)))

/* The second row sees nothing. */
static eddy_tensor *holes(void) {
    return eddy_from_data((bool[]){true, false, true, false, false, false, true, true, true}, EDDY_SHAPE(3, 3),
                          EDDY_BOOL, NULL);
}

static eddy_tensor *bias(void) {
    const double none = -INFINITY;
    return eddy_from_data((double[]){0.5, none, -1, none, none, none, 0, 0.25, 2}, EDDY_SHAPE(3, 3), EDDY_F64, NULL);
}

CASE(sdpa_masked, eddy_sdpa(A, B, C, holes(), EDDY_OPTIONS(sdpa, .scale = 0.7)))
CASE(sdpa_biased, eddy_sdpa(A, B, C, bias(), NULL))
CASE(sdpa_mask, eddy_sdpa(A, B, C, D, EDDY_OPTIONS(sdpa, .is_causal = true, .scale = 0.7)))

/* All three gradients in a row; grad and output are operands like the others. */
static eddy_tensor *sdpa_gradients(eddy_tensor *const *x, eddy_tensor *seen,
                                   const eddy_sdpa_backward_options *options) {
    eddy_tensor *each[3];
    if (eddy_sdpa_backward(A, B, C, D, E, seen, options, &each[0], &each[1], &each[2]) != EDDY_OK)
        return NULL;
    for (int i = 0; i < 3; i++)
        each[i] = eddy_reshape(each[i], EDDY_SHAPE(-1));
    return eddy_cat(EDDY_LIST(each[0], each[1], each[2]), 0);
}

CASE(sdpa_backward, sdpa_gradients(x, EDDY_NONE, NULL))
CASE(sdpa_backward_causal, sdpa_gradients(x, EDDY_NONE, EDDY_OPTIONS(sdpa_backward, .is_causal = true)))
CASE(sdpa_backward_masked, sdpa_gradients(x, holes(), EDDY_OPTIONS(sdpa_backward, .is_causal = true, .scale = 0.7)))
CASE(sdpa_backward_biased, sdpa_gradients(x, bias(), NULL))
CASE(sdpa_backward_mask, sdpa_gradients(x, F, EDDY_OPTIONS(sdpa_backward, .scale = 0.7)))

/* The same numbers at every call. */
static eddy_tensor *dropped(eddy_tensor *const *x, eddy_tensor *seen, const eddy_sdpa_options *options) {
    return eddy_seed(5) == EDDY_OK ? eddy_sdpa(A, B, C, seen, options) : NULL;
}

CASE(sdpa_dropped, dropped(x, EDDY_NONE, EDDY_OPTIONS(sdpa, .dropout = 0.4)))
CASE(sdpa_dropped_mask, dropped(x, D, EDDY_OPTIONS(sdpa, .dropout = 0.4)))
CASE(sdpa_dropped_masked, dropped(x, holes(), EDDY_OPTIONS(sdpa, .is_causal = true, .dropout = 0.4)))
CASE(sdpa_backward_dropped,
     sdpa_gradients(x, EDDY_NONE, EDDY_OPTIONS(sdpa_backward, .dropout = 0.4, .seed = 3, .counter = 4)))
CASE(sdpa_backward_dropped_biased,
     sdpa_gradients(x, bias(), EDDY_OPTIONS(sdpa_backward, .dropout = 0.4, .seed = -3, .counter = 4)))

CASE(rope, eddy_rope(A, I64(SHAPE(3), 0, 5, 2), NULL))
CASE(rope_interleaved, eddy_rope(A, I64(SHAPE(3), 0, 5, 2), EDDY_OPTIONS(rope, .is_interleaved = true)))

CASE(max_pool2d, eddy_max_pool2d(A, EDDY_PAIR(2, 3), EDDY_OPTIONS(max_pool2d, .stride = {1, 2}, .padding = {1, 1})))
CASE(max_pool2d_dilated, eddy_max_pool2d(A, EDDY_PAIR(2, 2), EDDY_OPTIONS(max_pool2d, .dilation = {2, 1})))
CASE(max_pool2d_backward, eddy_max_pool2d_backward(A, I64(SHAPE(2, 2, 2), 0, 4, 4, 8, 5, 2, 7, 7), SHAPE(2, 3, 3)))

/* The same at every call, and far enough apart. */
static eddy_tensor *image_of(eddy_shape shape) {
    return eddy_seed(9) == EDDY_OK ? eddy_rand(shape, EDDY_F64, NULL) : NULL;
}

CASE(max_pool2d_apart, eddy_max_pool2d(A, EDDY_PAIR(2, 2), NULL))
CASE(max_pool2d_backward_from_x, eddy_max_pool2d_backward_from_x(A, image_of(SHAPE(2, 5, 6)), EDDY_PAIR(2, 3), NULL))
CASE(max_pool2d_backward_from_x_shared,
     eddy_max_pool2d_backward_from_x(A, image_of(SHAPE(2, 3, 4)), EDDY_PAIR(2, 3),
                                     EDDY_OPTIONS(max_pool2d_backward_from_x, .stride = {1, 1})))

CASE(avg_pool2d, eddy_avg_pool2d(A, EDDY_PAIR(2, 3), EDDY_OPTIONS(avg_pool2d, .stride = {1, 2}, .padding = {1, 1})))
CASE(avg_pool2d_within,
     eddy_avg_pool2d(A, EDDY_PAIR(2, 2),
                     EDDY_OPTIONS(avg_pool2d, .padding = {1, 1}, .excludes_padding = true, .is_ceil_mode = true)))
CASE(avg_pool2d_divided, eddy_avg_pool2d(A, EDDY_PAIR(2, 2), EDDY_OPTIONS(avg_pool2d, .divisor_override = 3)))
CASE(avg_pool2d_backward,
     eddy_avg_pool2d_backward(A, SHAPE(2, 3, 4), EDDY_PAIR(2, 2), EDDY_OPTIONS(avg_pool2d_backward, .stride = {1, 1})))
CASE(adaptive_avg_pool2d, eddy_adaptive_avg_pool2d(A, EDDY_PAIR(2, 3)))
CASE(adaptive_avg_pool2d_backward, eddy_adaptive_avg_pool2d_backward(A, SHAPE(2, 5, 4)))

CASE(interpolate, eddy_interpolate(A, EDDY_OPTIONS(interpolate, .output_size = {5, 3})))
CASE(interpolate_bilinear, eddy_interpolate(A, EDDY_OPTIONS(interpolate, .mode = EDDY_MODE_BILINEAR, .scale = 1.6)))
CASE(interpolate_corners, eddy_interpolate(A, EDDY_OPTIONS(interpolate, .output_size = {2, 7},
                                                           .mode = EDDY_MODE_BILINEAR, .aligns_corners = true)))
CASE(interpolate_backward,
     eddy_interpolate_backward(A, SHAPE(1, 2, 3), EDDY_OPTIONS(interpolate_backward, .mode = EDDY_MODE_BILINEAR)))
CASE(interpolate_backward_scaled,
     eddy_interpolate_backward(A, SHAPE(1, 2, 3), EDDY_OPTIONS(interpolate_backward, .scale = 2)))
CASE(prelu, eddy_prelu(A, B))
CASE(to_device, eddy_to_device(A, EDDY_CPU))

static eddy_tensor *run_max_pool2d_with_indices(eddy_tensor *const *x) {
    eddy_tensor *values, *indices;
    eddy_status status = eddy_max_pool2d_with_indices(
        x[0], EDDY_PAIR(2, 2), EDDY_OPTIONS(max_pool2d_with_indices, .is_ceil_mode = true), &values, &indices);
    return status == EDDY_OK ? values : NULL;
}

static eddy_tensor *run_sort(eddy_tensor *const *x) {
    eddy_tensor *values, *indices;
    return eddy_sort(x[0], 1, NULL, &values, &indices) == EDDY_OK ? values : NULL;
}

static eddy_tensor *run_topk(eddy_tensor *const *x) {
    eddy_tensor *values, *indices;
    return eddy_topk(x[0], 2, 0, NULL, &values, &indices) == EDDY_OK ? values : NULL;
}

CASE(relu6, eddy_relu6(A))
CASE(leaky_relu, eddy_leaky_relu(A, NULL))
CASE(elu, eddy_elu(A, EDDY_OPTIONS(elu, .alpha = 1.5)))
CASE(softplus, eddy_softplus(A, NULL))
CASE(silu, eddy_silu(A))
CASE(gelu, eddy_gelu(A, NULL))
CASE(gelu_tanh, eddy_gelu(A, EDDY_OPTIONS(gelu, .approximate = EDDY_APPROXIMATE_TANH)))
CASE(hardswish, eddy_hardswish(A))
CASE(remainder, eddy_remainder(A, eddy_add_s(B, EDDY_S(0.05))))
CASE(remainder_s, eddy_remainder_s(A, EDDY_S(0.7)))
CASE(pow, eddy_pow(A, B))
CASE(pow_s, eddy_pow_s(A, EDDY_S(2.5)))
CASE(pow_s_whole, eddy_pow_s(A, EDDY_S(3)))
CASE(maximum, eddy_maximum(A, B))
CASE(maximum_s, eddy_maximum_s(A, EDDY_S(0.1)))
CASE(minimum, eddy_minimum(A, B))
CASE(minimum_s, eddy_minimum_s(A, EDDY_S(0.1)))
CASE(atan2, eddy_atan2(A, B))
CASE(clamp, eddy_clamp(A, EDDY_S(-0.5), EDDY_S(1)))
CASE(lerp, eddy_lerp(A, B, C))
CASE(lerp_s, eddy_lerp_s(A, B, EDDY_S(0.3)))
CASE(addcmul, eddy_addcmul(A, B, C, EDDY_OPTIONS(addcmul, .value = 0.5)))
CASE(addcdiv, eddy_addcdiv(A, B, C, NULL))
CASE(expm1, eddy_expm1(A))
CASE(log1p, eddy_log1p(A))
CASE(log2, eddy_log2(A))
CASE(rsqrt, eddy_rsqrt(A))
CASE(reciprocal, eddy_reciprocal(A))
CASE(sin, eddy_sin(A))
CASE(cos, eddy_cos(A))
CASE(tan, eddy_tan(A))
CASE(erf, eddy_erf(A))
CASE(abs, eddy_abs(A))
CASE(square, eddy_square(A))
CASE(sign, eddy_sign(A))
CASE(round, eddy_round(A))
CASE(floor, eddy_floor(A))
CASE(ceil, eddy_ceil(A))
CASE(bincount, eddy_bincount(I64(SHAPE(4), 1, 0, 2, 1), A, NULL))

CASE(norm_1, eddy_norm(A, EDDY_AXES(1), EDDY_OPTIONS(norm, .p = 1)))
CASE(norm_3, eddy_norm(A, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = 3)))
CASE(norm_half, eddy_norm(A, EDDY_AXES(1), EDDY_OPTIONS(norm, .p = 0.5, .keeps_dims = true)))
CASE(norm_below_0, eddy_norm(A, EDDY_AXES(0), EDDY_OPTIONS(norm, .p = -1.5)))
CASE(norm_inf, eddy_norm(A, EDDY_AXES(1), EDDY_OPTIONS(norm, .p = INFINITY)))
CASE(norm_minus_inf, eddy_norm(A, EDDY_AXES(1), EDDY_OPTIONS(norm, .p = -INFINITY)))
CASE(norm_0, eddy_norm(A, EDDY_AXES(1), EDDY_OPTIONS(norm, .p_is_zero = true)))

/* ---- gradients of gradients ---- */

static eddy_tensor *some_labels(void) {
    return eddy_from_data((int64_t[]){0, 2, -7, 4}, EDDY_SHAPE(4), EDDY_I64, NULL);
}

#define NONE .reduction = EDDY_REDUCTION_NONE
CASE(sigmoid_backward, eddy_sigmoid_backward(A, B))
CASE(tanh_backward, eddy_tanh_backward(A, B))
CASE(silu_backward, eddy_silu_backward(A, B))
CASE(gelu_backward, eddy_gelu_backward(A, B, NULL))
CASE(gelu_tanh_backward, eddy_gelu_backward(A, B, EDDY_OPTIONS(gelu_backward, .approximate = EDDY_APPROXIMATE_TANH)))
CASE(softmax_backward, eddy_softmax_backward(A, B, 1))
CASE(log_softmax_backward, eddy_log_softmax_backward(A, B, 1))
CASE(cross_entropy_backward, eddy_cross_entropy_backward(A, B, labels(4, 5), NULL))
CASE(cross_entropy_backward_ignored,
     eddy_cross_entropy_backward(A, B, some_labels(), EDDY_OPTIONS(cross_entropy_backward, .ignore_index = -7)))
CASE(cross_entropy_backward_none,
     eddy_cross_entropy_backward(A, B, some_labels(), EDDY_OPTIONS(cross_entropy_backward, NONE, .ignore_index = -7)))
CASE(nll_loss_backward,
     eddy_nll_loss_backward(A, eddy_zeros(SHAPE(4, 5), EDDY_F64, NULL), labels(4, 5), EDDY_NONE, NULL))
CASE(nll_loss_backward_none,
     eddy_nll_loss_backward(A, eddy_zeros(SHAPE(4, 5), EDDY_F64, NULL), labels(4, 5),
                            eddy_full(SHAPE(5), EDDY_S(3), EDDY_F64, NULL), EDDY_OPTIONS(nll_loss_backward, NONE)))
CASE(mse_loss_backward, eddy_mse_loss_backward(A, B, C, NULL))
CASE(mse_loss_backward_none, eddy_mse_loss_backward(A, B, C, EDDY_OPTIONS(mse_loss_backward, NONE)))
/* Kinks are away from operands of which one is double. */
CASE(l1_loss_backward, eddy_l1_loss_backward(A, eddy_add(B, B), C, NULL))
CASE(smooth_l1_loss_backward,
     eddy_smooth_l1_loss_backward(A, eddy_add(B, B), C, EDDY_OPTIONS(smooth_l1_loss_backward, NONE, .beta = 0.5)))
CASE(smooth_l1_loss_backward_mean, eddy_smooth_l1_loss_backward(A, eddy_add(B, B), C, NULL))
CASE(bce_with_logits_backward, eddy_bce_with_logits_backward(A, B, C, EDDY_NONE, EDDY_NONE, NULL))
CASE(bce_with_logits_backward_weighted,
     eddy_bce_with_logits_backward(A, B, C, eddy_full(SHAPE(3), EDDY_S(3), EDDY_F64, NULL),
                                   eddy_full(SHAPE(3), EDDY_S(0.25), EDDY_F64, NULL),
                                   EDDY_OPTIONS(bce_with_logits_backward, NONE)))
CASE(bce_with_logits_backward_target,
     eddy_bce_with_logits_backward_target(A, B, eddy_detach(C), EDDY_NONE, EDDY_NONE, NULL))
CASE(bce_with_logits_backward_target_weighted,
     eddy_bce_with_logits_backward_target(A, B, C, eddy_full(SHAPE(3), EDDY_S(3), EDDY_F64, NULL),
                                          eddy_full(SHAPE(3), EDDY_S(0.25), EDDY_F64, NULL),
                                          EDDY_OPTIONS(bce_with_logits_backward_target, NONE)))
CASE(kl_div_backward, eddy_kl_div_backward(A, B, C, NULL))
CASE(kl_div_backward_log, eddy_kl_div_backward(A, B, C, EDDY_OPTIONS(kl_div_backward, NONE, .target_is_log = true)))
CASE(kl_div_backward_target, eddy_kl_div_backward_target(A, B, C, NULL))
CASE(kl_div_backward_target_log,
     eddy_kl_div_backward_target(A, B, C, EDDY_OPTIONS(kl_div_backward_target, NONE, .target_is_log = true)))
CASE(layer_norm_backward, eddy_layer_norm_backward(A, B, C, 2, NULL))
CASE(layer_norm_backward_bare,
     eddy_layer_norm_backward(A, B, EDDY_NONE, 1, EDDY_OPTIONS(layer_norm_backward, .eps = 0.5)))
CASE(layer_norm_backward_weight, eddy_layer_norm_backward_weight(A, B, 1, NULL))
CASE(rms_norm_backward, eddy_rms_norm_backward(A, B, C, 1, EDDY_OPTIONS(rms_norm_backward, .eps = 0.5)))
CASE(rms_norm_backward_weight, eddy_rms_norm_backward_weight(A, B, 1, NULL))
CASE(group_norm_backward, eddy_group_norm_backward(A, B, C, 2, NULL))
CASE(group_norm_backward_weight, eddy_group_norm_backward_weight(A, B, 2, NULL))
CASE(batch_norm_backward, eddy_batch_norm_backward(A, B, C, NULL))
CASE(batch_norm_backward_weight, eddy_batch_norm_backward_weight(A, B, NULL))
CASE(channel_sum, eddy_channel_sum(A))
CASE(dropout_backward, eddy_dropout_backward(A, EDDY_S(0.4), 7, 3))
static eddy_tensor *ones(eddy_shape shape) {
    return eddy_ones(shape, EDDY_F64, NULL);
}

CASE(conv2d, eddy_conv2d(A, B, C, EDDY_OPTIONS(conv2d, .padding = {1, 0}, .stride = {2, 1})))
CASE(conv2d_grouped, eddy_conv2d(A, B, C, EDDY_OPTIONS(conv2d, .dilation = {2, 1}, .groups = 2)))
CASE(conv2d_plain, eddy_conv2d(A, B, EDDY_NONE, NULL))
CASE(conv_transpose2d, eddy_conv_transpose2d(A, B, C,
                                             EDDY_OPTIONS(conv_transpose2d, .stride = {2, 1}, .padding = {1, 0},
                                                          .output_padding = {1, 0})))
CASE(conv_transpose2d_grouped, eddy_conv_transpose2d(A, B, C, EDDY_OPTIONS(conv_transpose2d, .groups = 2)))
/* More rows than any window reaches. */
CASE(conv_transpose2d_wide, eddy_conv_transpose2d(A, B, EDDY_NONE,
                                                  EDDY_OPTIONS(conv_transpose2d, .dilation = {3, 1},
                                                               .output_padding = {2, 0}, .padding = {1, 0})))
CASE(conv2d_backward_weight,
     eddy_conv2d_backward_weight(A, B, (eddy_pair){2, 2},
                                 EDDY_OPTIONS(conv2d_backward_weight, .stride = {2, 1}, .padding = {1, 0})))
/* Gradients that meet gradients. */
CASE(conv2d_twice,
     eddy_conv2d(eddy_conv_transpose2d(A,
                                       eddy_conv2d_backward_weight(ones(SHAPE(1, 2, 2, 2)), A, (eddy_pair){2, 2}, NULL),
                                       EDDY_NONE, EDDY_OPTIONS(conv_transpose2d, .stride = {2, 1})),
                 B, EDDY_NONE, NULL))
CASE(conv1d, eddy_conv1d(A, B, C, EDDY_OPTIONS(conv1d, .stride = 2, .padding = 1)))

static eddy_tensor *run_inplace(eddy_tensor *const *x) {
    eddy_tensor *y = eddy_mul(x[0], x[1]);
    return eddy_sigmoid_inplace(y) == EDDY_OK ? eddy_mul(y, x[0]) : NULL;
}

#define ROW(op, run, least, most, count, ...)                                                                          \
    {                                                                                                                  \
#op, run_##run, least, most, count, {                                                                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
static const gradient_case cases[] = {
    ROW(add, add, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(add, add, -2, 2, 2, SHAPE(2, 1, 3), SHAPE(4, 1)),
    ROW(add_s, add_s, -2, 2, 1, SHAPE(3)),
    ROW(sub, sub, -2, 2, 2, SHAPE(3), SHAPE(2, 3)),
    ROW(sub_s, sub_s, -2, 2, 1, SHAPE(3)),
    ROW(mul, mul, -2, 2, 2, SHAPE(2, 3), SHAPE()),
    ROW(mul_s, mul_s, -2, 2, 1, SHAPE(2, 3)),
    ROW(div, div, 0.5, 2, 2, SHAPE(2, 3), SHAPE(1, 3)),
    ROW(div_s, div_s, 0.5, 2, 1, SHAPE(2, 3)),
    ROW(exp, exp, -2, 2, 1, SHAPE(5)),
    ROW(log, log, 0.5, 2, 1, SHAPE(5)),
    ROW(sqrt, sqrt, 0.5, 2, 1, SHAPE(5)),
    ROW(neg, neg, -2, 2, 1, SHAPE(5)),
    ROW(relu, relu, -2, 2, 1, SHAPE(7)),
    ROW(sigmoid, sigmoid, -2, 2, 1, SHAPE(5)),
    ROW(tanh, tanh, -2, 2, 1, SHAPE(5)),
    ROW(where, where, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(sum, sum, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(sum, sum_all, -2, 2, 1, SHAPE(2, 3)),
    ROW(sum, sum_kept, -2, 2, 1, SHAPE(2, 3)),
    ROW(mean, mean, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(max, max, -2, 2, 1, SHAPE(2, 5, 3)),
    ROW(max, max_all, -2, 2, 1, SHAPE(2, 5)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(3), SHAPE(3)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(3), SHAPE(2, 3, 4)),
    ROW(matmul, matmul, -2, 2, 2, SHAPE(2, 1, 3, 4), SHAPE(5, 4, 2)),
    ROW(mm, mm, -2, 2, 2, SHAPE(2, 3), SHAPE(3, 4)),
    ROW(linear, linear, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(5, 4), SHAPE(5)),
    ROW(linear, linear_bare, -2, 2, 2, SHAPE(3, 4), SHAPE(5, 4)),
    ROW(softmax, softmax, -2, 2, 1, SHAPE(2, 4, 3)),
    ROW(log_softmax, log_softmax, -2, 2, 1, SHAPE(3, 4)),
    ROW(cross_entropy, cross_entropy, -2, 2, 1, SHAPE(4, 5)),
    ROW(cross_entropy, cross_entropy_none, -2, 2, 1, SHAPE(4, 5)),
    ROW(cross_entropy, cross_entropy_ignored, -2, 2, 1, SHAPE(4, 5)),
    ROW(cat, cat, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(clone, clone, -2, 2, 1, SHAPE(2, 3)),
    ROW(cast, cast, -2, 2, 1, SHAPE(2, 3)),
    ROW(relu_backward, relu_backward, -2, 2, 2, SHAPE(5), SHAPE(5)),
    ROW(index_select, index_select, -2, 2, 1, SHAPE(2, 3)),
    ROW(gather, gather, -2, 2, 1, SHAPE(2, 3)),
    ROW(scatter, scatter, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(scatter_add, scatter_add, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 2)),
    ROW(index_add, index_add, -2, 2, 2, SHAPE(2, 3), SHAPE(3, 3)),
    ROW(index, index, -2, 2, 1, SHAPE(2, 3, 2)),
    ROW(index_put, index_put, -2, 2, 2, SHAPE(3, 2), SHAPE(2)),
    ROW(index_put, index_put_added, -2, 2, 2, SHAPE(3, 2), SHAPE(3, 2)),
    ROW(embedding, embedding, -2, 2, 1, SHAPE(4, 3)),
    ROW(embedding_backward, embedding_backward, -2, 2, 1, SHAPE(3, 2)),
    ROW(masked_fill, masked_fill, -2, 2, 1, SHAPE(2, 3)),
    ROW(masked_select, masked_select, -2, 2, 1, SHAPE(2, 3)),
    ROW(masked_scatter, masked_scatter, -2, 2, 2, SHAPE(2, 3), SHAPE(5)),
    ROW(tril, tril, -2, 2, 1, SHAPE(2, 3, 3)),
    ROW(triu, triu, -2, 2, 1, SHAPE(3, 4)),
    ROW(diag, diag, -2, 2, 1, SHAPE(3)),
    ROW(diag, diag_of_matrix, -2, 2, 1, SHAPE(3, 4)),
    ROW(diag_backward, diag_backward, -2, 2, 1, SHAPE(3)),
    ROW(stack, stack, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(pad, pad, -2, 2, 1, SHAPE(2, 3)),
    ROW(repeat, repeat, -2, 2, 1, SHAPE(2, 3)),
    ROW(repeat_interleave, repeat_interleave, -2, 2, 1, SHAPE(2, 3)),
    ROW(flip, flip, -2, 2, 1, SHAPE(2, 3)),
    ROW(roll, roll, -2, 2, 1, SHAPE(2, 3)),
    ROW(roll, roll_flat, -2, 2, 1, SHAPE(2, 3)),
    ROW(mse_loss, mse_loss, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(mse_loss, mse_loss_none, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(l1_loss, l1_loss, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(smooth_l1_loss, smooth_l1_loss, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(bce_with_logits, bce_with_logits, 0.1, 0.9, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div, kl_div, 0.1, 0.9, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div, kl_div_log, -2, -0.1, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(nll_loss, nll_loss, -2, 2, 1, SHAPE(4, 5)),
    ROW(bmm, bmm, -2, 2, 2, SHAPE(2, 3, 4), SHAPE(2, 4, 2)),
    ROW(addmm, addmm, -2, 2, 3, SHAPE(2), SHAPE(3, 4), SHAPE(4, 2)),
    ROW(layer_norm, layer_norm, -2, 2, 3, SHAPE(3, 5), SHAPE(5), SHAPE(5)),
    ROW(rms_norm, rms_norm, -2, 2, 2, SHAPE(3, 5), SHAPE(5)),
    ROW(group_norm, group_norm, -2, 2, 3, SHAPE(2, 4, 3), SHAPE(4), SHAPE(4)),
    ROW(batch_norm, batch_norm, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(3), SHAPE(3)),
    ROW(batch_norm_training, batch_norm_training, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(3), SHAPE(3)),
    ROW(prod, prod, -2, 2, 1, SHAPE(2, 4)),
    ROW(min, min, -2, 2, 1, SHAPE(2, 4)),
    ROW(var, var, -2, 2, 1, SHAPE(2, 4)),
    ROW(std, std, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm, -2, 2, 1, SHAPE(2, 4)),
    ROW(logsumexp, logsumexp, -2, 2, 1, SHAPE(2, 4)),
    ROW(max_dim, max_dim, -2, 2, 1, SHAPE(2, 4)),
    ROW(min_dim, min_dim, -2, 2, 1, SHAPE(2, 4)),
    ROW(dropout, dropout, -2, 2, 1, SHAPE(4, 4)),
    ROW(cumsum, cumsum, -2, 2, 1, SHAPE(2, 4)),
    ROW(cumprod, cumprod, 0.5, 2, 1, SHAPE(3, 2)),
    ROW(cumprod, cumprod, 0.5, 2, 1, SHAPE()),
    ROW(cumprod, cumprod_of_zeros, 0, 0, 1, SHAPE(2, 4)),
    ROW(cumprod_backward, cumprod_backward, -2, 2, 2, SHAPE(2, 3, 2), SHAPE(2, 3, 2)),
    ROW(cumprod_backward, cumprod_backward_of_zeros, 0, 0, 2, SHAPE(2, 4), SHAPE(2, 4)),
    ROW(max_pool2d, max_pool2d, -2, 2, 1, SHAPE(2, 1, 4, 5)),
    ROW(max_pool2d, max_pool2d_dilated, -2, 2, 1, SHAPE(2, 5, 4)),
    ROW(max_pool2d, max_pool2d_apart, -2, 2, 1, SHAPE(2, 1, 5, 6)),
    ROW(max_pool2d_backward_from_x, max_pool2d_backward_from_x, -2, 2, 1, SHAPE(2, 2, 2)),
    ROW(max_pool2d_backward_from_x, max_pool2d_backward_from_x_shared, -2, 2, 1, SHAPE(2, 2, 2)),
    ROW(avg_pool2d, avg_pool2d, -2, 2, 1, SHAPE(2, 1, 4, 5)),
    ROW(avg_pool2d, avg_pool2d_within, -2, 2, 1, SHAPE(2, 4, 5)),
    ROW(avg_pool2d, avg_pool2d_divided, -2, 2, 1, SHAPE(2, 4, 5)),
    ROW(avg_pool2d_backward, avg_pool2d_backward, -2, 2, 1, SHAPE(2, 2, 3)),
    ROW(adaptive_avg_pool2d, adaptive_avg_pool2d, -2, 2, 1, SHAPE(2, 5, 4)),
    ROW(adaptive_avg_pool2d_backward, adaptive_avg_pool2d_backward, -2, 2, 1, SHAPE(2, 2, 3)),
    ROW(interpolate, interpolate, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(interpolate, interpolate_bilinear, -2, 2, 1, SHAPE(2, 1, 3, 4)),
    ROW(interpolate, interpolate_corners, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(interpolate_backward, interpolate_backward, -2, 2, 1, SHAPE(1, 4, 4)),
    ROW(interpolate_backward, interpolate_backward_scaled, -2, 2, 1, SHAPE(1, 4, 6)),
    ROW(prelu_broadcast, prelu, -2, 2, 2, SHAPE(2, 3, 2), SHAPE(3)),
    ROW(prelu_broadcast, prelu, -2, 2, 2, SHAPE(2, 3), SHAPE(1)),
    ROW(, to_device, -2, 2, 1, SHAPE(2, 3)),
    ROW(max_pool2d_with_indices, max_pool2d_with_indices, -2, 2, 1, SHAPE(1, 2, 3, 5)),
    ROW(max_pool2d_backward, max_pool2d_backward, -2, 2, 1, SHAPE(2, 2, 2)),
    ROW(sdpa, sdpa, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(2, 5, 4), SHAPE(2, 5, 2)),
    ROW(sdpa, sdpa_causal, -2, 2, 3, SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 2)),
    ROW(sdpa, sdpa_masked, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(3, 4), SHAPE(2, 3, 2)),
    ROW(sdpa, sdpa_biased, -2, 2, 3, SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 2)),
    ROW(sdpa, sdpa_mask, -2, 2, 4, SHAPE(2, 3, 4), SHAPE(5, 4), SHAPE(2, 5, 2), SHAPE(3, 5)),
    ROW(sdpa, sdpa_mask, -2, 2, 4, SHAPE(3, 4), SHAPE(2, 1, 5, 4), SHAPE(5, 2), SHAPE(3, 1, 5)),
    ROW(sdpa, sdpa_dropped_mask, -2, 2, 4, SHAPE(2, 3, 4), SHAPE(5, 4), SHAPE(2, 5, 2), SHAPE(3, 5)),
    ROW(sdpa, sdpa_dropped, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(5, 4), SHAPE(2, 1, 5, 2)),
    ROW(sdpa, sdpa_dropped_masked, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(3, 4), SHAPE(2, 3, 2)),
    ROW(sdpa_backward, sdpa_backward, -2, 2, 5, SHAPE(2, 3, 2), SHAPE(2, 3, 2), SHAPE(3, 2), SHAPE(2, 4, 2),
        SHAPE(4, 2)),
    ROW(sdpa_backward, sdpa_backward_causal, -2, 2, 5, SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 1), SHAPE(3, 1), SHAPE(3, 2)),
    ROW(sdpa_backward, sdpa_backward_masked, -2, 2, 5, SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2)),
    ROW(sdpa_backward, sdpa_backward_mask, -2, 2, 6, SHAPE(2, 3, 2), SHAPE(2, 3, 2), SHAPE(3, 2), SHAPE(2, 4, 2),
        SHAPE(4, 2), SHAPE(3, 4)),
    ROW(sdpa_backward, sdpa_backward_dropped, -2, 2, 5, SHAPE(2, 2, 3, 2), SHAPE(2, 2, 3, 2), SHAPE(2, 3, 2),
        SHAPE(4, 2), SHAPE(2, 1, 4, 2)),
    ROW(sdpa_backward, sdpa_backward_dropped_biased, -2, 2, 5, SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2),
        SHAPE(3, 2)),
    ROW(sdpa_backward, sdpa_backward_biased, -2, 2, 5, SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2), SHAPE(3, 2)),
    ROW(rope, rope, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(rope, rope_interleaved, -2, 2, 1, SHAPE(3, 4)),
    ROW(leaky_relu, leaky_relu, -2, 2, 1, SHAPE(7)),
    ROW(elu, elu, -2, 2, 1, SHAPE(7)),
    ROW(softplus, softplus, -2, 2, 1, SHAPE(7)),
    ROW(silu, silu, -2, 2, 1, SHAPE(7)),
    ROW(gelu, gelu, -2, 2, 1, SHAPE(7)),
    ROW(hardswish, hardswish, -2, 2, 1, SHAPE(7)),
    ROW(expm1, expm1, -2, 2, 1, SHAPE(7)),
    ROW(sin, sin, -2, 2, 1, SHAPE(7)),
    ROW(cos, cos, -2, 2, 1, SHAPE(7)),
    ROW(erf, erf, -2, 2, 1, SHAPE(7)),
    ROW(abs, abs, -2, 2, 1, SHAPE(7)),
    ROW(square, square, -2, 2, 1, SHAPE(7)),
    ROW(sign, sign, -2, 2, 1, SHAPE(7)),
    ROW(round, round, -2, 2, 1, SHAPE(7)),
    ROW(floor, floor, -2, 2, 1, SHAPE(7)),
    ROW(ceil, ceil, -2, 2, 1, SHAPE(7)),
    ROW(clamp, clamp, -2, 2, 1, SHAPE(7)),
    ROW(maximum_s, maximum_s, -2, 2, 1, SHAPE(7)),
    ROW(minimum_s, minimum_s, -2, 2, 1, SHAPE(7)),
    ROW(remainder_s, remainder_s, -2, 2, 1, SHAPE(7)),
    ROW(relu6, relu6, -2, 8, 1, SHAPE(7)),
    ROW(gelu, gelu_tanh, -2, 2, 1, SHAPE(7)),
    ROW(tan, tan, -1, 1, 1, SHAPE(7)),
    ROW(log1p, log1p, 0.5, 2, 1, SHAPE(7)),
    ROW(log2, log2, 0.5, 2, 1, SHAPE(7)),
    ROW(rsqrt, rsqrt, 0.5, 2, 1, SHAPE(7)),
    ROW(reciprocal, reciprocal, 0.5, 2, 1, SHAPE(7)),
    ROW(pow_s, pow_s, 0.5, 2, 1, SHAPE(7)),
    ROW(pow_s, pow_s_whole, -2, 2, 1, SHAPE(7)),
    ROW(pow, pow, 0.5, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(remainder, remainder, 0.5, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(maximum, maximum, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(minimum, minimum, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(atan2, atan2, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 1)),
    ROW(lerp, lerp, 0.1, 2, 3, SHAPE(2, 3), SHAPE(3), SHAPE(2, 1)),
    ROW(lerp_s, lerp_s, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(addcmul, addcmul, -2, 2, 3, SHAPE(2, 3), SHAPE(3), SHAPE(2, 1)),
    ROW(addcdiv, addcdiv, 0.5, 2, 3, SHAPE(2, 3), SHAPE(3), SHAPE(2, 1)),
    ROW(sort, sort, -2, 2, 1, SHAPE(2, 4)),
    ROW(topk, topk, -2, 2, 1, SHAPE(4, 2)),
    ROW(bincount, bincount, -2, 2, 1, SHAPE(4)),
    ROW(norm, norm_1, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_3, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_inf, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_minus_inf, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_0, -2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_half, 0.2, 2, 1, SHAPE(2, 4)),
    ROW(norm, norm_below_0, 0.2, 2, 1, SHAPE(2, 4)),
    ROW(sigmoid_backward, sigmoid_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(tanh_backward, tanh_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(silu_backward, silu_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(gelu_backward, gelu_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(sigmoid_backward, sigmoid_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
    ROW(gelu_backward, gelu_tanh_backward, -2, 2, 2, SHAPE(2, 3), SHAPE(2, 3)),
    ROW(softmax_backward, softmax_backward, -2, 2, 2, SHAPE(2, 4, 3), SHAPE(2, 4, 3)),
    ROW(log_softmax_backward, log_softmax_backward, -2, 2, 2, SHAPE(2, 4, 3), SHAPE(2, 4, 3)),
    ROW(cross_entropy_backward, cross_entropy_backward, -2, 2, 2, SHAPE(), SHAPE(4, 5)),
    ROW(cross_entropy_backward, cross_entropy_backward_ignored, -2, 2, 2, SHAPE(), SHAPE(4, 5)),
    ROW(cross_entropy_backward, cross_entropy_backward_none, -2, 2, 2, SHAPE(4), SHAPE(4, 5)),
    ROW(nll_loss_backward, nll_loss_backward, -2, 2, 1, SHAPE()),
    ROW(nll_loss_backward, nll_loss_backward_none, -2, 2, 1, SHAPE(4)),
    ROW(mse_loss_backward, mse_loss_backward, -2, 2, 3, SHAPE(), SHAPE(2, 3), SHAPE(3)),
    ROW(mse_loss_backward, mse_loss_backward_none, -2, 2, 3, SHAPE(2, 3), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(l1_loss_backward, l1_loss_backward, -2, 2, 3, SHAPE(), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(smooth_l1_loss_backward, smooth_l1_loss_backward, -2, 2, 3, SHAPE(2, 3), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(smooth_l1_loss_backward, smooth_l1_loss_backward_mean, -2, 2, 3, SHAPE(), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(bce_with_logits_backward, bce_with_logits_backward, 0.1, 0.9, 3, SHAPE(), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(bce_with_logits_backward, bce_with_logits_backward_weighted, 0.1, 0.9, 3, SHAPE(2, 3), SHAPE(2, 3),
        SHAPE(2, 3)),
    ROW(bce_with_logits_backward_target, bce_with_logits_backward_target, 0.1, 0.9, 3, SHAPE(), SHAPE(2, 3),
        SHAPE(2, 3)),
    ROW(bce_with_logits_backward_target, bce_with_logits_backward_target_weighted, 0.1, 0.9, 3, SHAPE(2, 3),
        SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div_backward, kl_div_backward, 0.1, 0.9, 3, SHAPE(), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div_backward, kl_div_backward_log, -2, -0.1, 3, SHAPE(2, 3), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div_backward_target, kl_div_backward_target, 0.1, 0.9, 3, SHAPE(), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(kl_div_backward_target, kl_div_backward_target_log, -2, -0.1, 3, SHAPE(2, 3), SHAPE(2, 3), SHAPE(2, 3)),
    ROW(layer_norm_backward, layer_norm_backward, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(2, 3, 4), SHAPE(3, 4)),
    ROW(layer_norm_backward, layer_norm_backward_bare, -2, 2, 2, SHAPE(2, 3, 4), SHAPE(2, 3, 4)),
    ROW(layer_norm_backward_weight, layer_norm_backward_weight, -2, 2, 2, SHAPE(2, 3, 4), SHAPE(2, 3, 4)),
    ROW(rms_norm_backward, rms_norm_backward, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(2, 3, 4), SHAPE(4)),
    ROW(rms_norm_backward_weight, rms_norm_backward_weight, -2, 2, 2, SHAPE(2, 3, 4), SHAPE(2, 3, 4)),
    ROW(group_norm_backward, group_norm_backward, -2, 2, 3, SHAPE(2, 4, 3), SHAPE(2, 4, 3), SHAPE(4)),
    ROW(group_norm_backward_weight, group_norm_backward_weight, -2, 2, 2, SHAPE(2, 4, 3), SHAPE(2, 4, 3)),
    ROW(batch_norm_backward, batch_norm_backward, -2, 2, 3, SHAPE(2, 3, 4), SHAPE(2, 3, 4), SHAPE(3)),
    ROW(batch_norm_backward_weight, batch_norm_backward_weight, -2, 2, 2, SHAPE(2, 3, 4), SHAPE(2, 3, 4)),
    ROW(channel_sum, channel_sum, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(dropout_backward, dropout_backward, -2, 2, 1, SHAPE(4, 4)),
    ROW(conv2d, conv2d, -2, 2, 3, SHAPE(2, 2, 4, 3), SHAPE(3, 2, 3, 2), SHAPE(3)),
    ROW(conv2d, conv2d_grouped, -2, 2, 3, SHAPE(4, 4, 3), SHAPE(2, 2, 2, 2), SHAPE(2)),
    ROW(conv2d, conv2d_plain, -2, 2, 2, SHAPE(2, 3, 3), SHAPE(2, 2, 1, 1)),
    ROW(conv_transpose2d, conv_transpose2d, -2, 2, 3, SHAPE(2, 2, 2, 3), SHAPE(2, 2, 3, 2), SHAPE(2)),
    ROW(conv_transpose2d, conv_transpose2d_grouped, -2, 2, 3, SHAPE(4, 2, 2), SHAPE(4, 1, 2, 2), SHAPE(2)),
    ROW(conv_transpose2d, conv_transpose2d_wide, -2, 2, 2, SHAPE(2, 3, 3), SHAPE(2, 1, 2, 1)),
    ROW(conv2d_backward_weight, conv2d_backward_weight, -2, 2, 2, SHAPE(2, 2, 2, 2), SHAPE(2, 2, 3, 3)),
    ROW(conv2d_backward_weight, conv2d_twice, -2, 2, 2, SHAPE(1, 2, 3, 3), SHAPE(1, 2, 2, 2)),
    ROW(, conv1d, -2, 2, 3, SHAPE(2, 2, 5), SHAPE(3, 2, 3), SHAPE(3)),
    ROW(, reshape, -2, 2, 1, SHAPE(3, 4)),
    ROW(, permute, -2, 2, 1, SHAPE(2, 3, 4)),
    ROW(, expand, -2, 2, 1, SHAPE(3, 1)),
    ROW(, slice, -2, 2, 1, SHAPE(2, 7)),
    ROW(, select, -2, 2, 1, SHAPE(2, 3)),
    ROW(, narrow, -2, 2, 1, SHAPE(4, 3)),
    ROW(, as_strided, -2, 2, 1, SHAPE(2, 4)),
    ROW(, as_strided_of_transposed, -2, 2, 1, SHAPE(2, 4)),
    ROW(, as_strided_of_expanded, -2, 2, 1, SHAPE(3)),
    ROW(, as_strided_of_part, -2, 2, 1, SHAPE(4)),
    ROW(, squeeze, -2, 2, 1, SHAPE(2, 3)),
    ROW(, flatten, -2, 2, 1, SHAPE(2, 3, 2)),
    ROW(, contiguous, -2, 2, 1, SHAPE(2, 3)),
    ROW(, twice, -2, 2, 1, SHAPE(2, 3)),
    ROW(, inplace, -2, 2, 2, SHAPE(2, 3), SHAPE(3)),
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

#endif
