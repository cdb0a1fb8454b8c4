/* The ops of the op rows: name, bytes it must move per element of its first operand, Eddy's call, libtorch's.
 *
 * A row is op_<name>_<size>_<threads>t with a size of 1e2, 1e4, 1e6 or 1e7 elements n, or cost_<name>_<size> with any power
 * of ten from 1e2 to 1e7. The operands, by the same names in both programs, are f32 unless said otherwise:
 *
 *   x, y, z, w  [n], in (0.1, 0.9); w is written s           [n], in (-1, 1)
 *   same        [n], as x                        numbers     i64 [n], in [0, 1000)
 *   i, j        i32 [n], in [1, 1000]            b, c        bool [n]
 *   m, o        [rows, columns] in (-1, 1); transposed: of m, a view
 *   near        [rows, columns] in (0.9, 1.1)    places      i64 [rows, columns], below columns
 *   square      [columns, columns] in (-1, 1)    tall        [rows], in (0.1, 0.9)
 *   row, column [columns], [rows, 1], in (0.1, 0.9)
 *   labels      i64 [rows], below columns        picks       i64 [rows], below rows
 *   table       [1000, columns]                  words       i64 [rows], below 1000
 *   weight, bias [columns]
 *   q, k, v     [heads, tokens, 32]; tokens at most 1024; turned_q: of q, a view [heads, 32, tokens]
 *   positions   i64 [tokens], 0 on
 *   images      [batch, 16, side, side]          filters     [16, 16, 3, 3]
 *   signals     [batch, 16, side * side]         filters_1d  [16, 16, 3]
 *   means, variances, gain, shift [16], in (0.1, 0.9)
 *   first, second: where Eddy's calls put two results
 *   Steps change the parameters by the gradients and the state, all [n]; the rates are so small that neither grows.
 *   Clipping finds nothing to clip: it must read the gradients, and write none (libtorch multiplies them by 1).
 *
 * There are 100 columns, from 1e6 elements on 1000. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include <bench/sample.h>
#include <stdbool.h>

/* clang-format off */
#define BENCH_OP_LIST(op)                                                                                              \
    op(exp,          8, eddy_exp(x),                   torch::exp(x))                                                  \
    op(expm1,        8, eddy_expm1(x),                 torch::expm1(x))                                                \
    op(log,          8, eddy_log(x),                   torch::log(x))                                                  \
    op(log1p,        8, eddy_log1p(x),                 torch::log1p(x))                                                \
    op(log2,         8, eddy_log2(x),                  torch::log2(x))                                                 \
    op(sqrt,         8, eddy_sqrt(x),                  torch::sqrt(x))                                                 \
    op(rsqrt,        8, eddy_rsqrt(x),                 torch::rsqrt(x))                                                \
    op(reciprocal,   8, eddy_reciprocal(x),            torch::reciprocal(x))                                           \
    op(sin,          8, eddy_sin(s),                   torch::sin(s))                                                  \
    op(cos,          8, eddy_cos(s),                   torch::cos(s))                                                  \
    op(tan,          8, eddy_tan(s),                   torch::tan(s))                                                  \
    op(erf,          8, eddy_erf(s),                   torch::erf(s))                                                  \
    op(neg,          8, eddy_neg(s),                   torch::neg(s))                                                  \
    op(abs,          8, eddy_abs(s),                   torch::abs(s))                                                  \
    op(square,       8, eddy_square(s),                torch::square(s))                                               \
    op(sign,         8, eddy_sign(s),                  torch::sign(s))                                                 \
    op(round,        8, eddy_round(s),                 torch::round(s))                                                \
    op(floor,        8, eddy_floor(s),                 torch::floor(s))                                                \
    op(ceil,         8, eddy_ceil(s),                  torch::ceil(s))                                                 \
    op(bitwise_not,  8, eddy_bitwise_not(i),           torch::bitwise_not(i))                                          \
    op(relu,         8, eddy_relu(s),                  torch::relu(s))                                                 \
    op(sigmoid,      8, eddy_sigmoid(s),               torch::sigmoid(s))                                              \
    op(tanh,         8, eddy_tanh(s),                  torch::tanh(s))                                                 \
    op(relu6,        8, eddy_relu6(s),                 torch::relu6(s))                                                \
    op(leaky_relu,   8, eddy_leaky_relu(s, NULL),      torch::leaky_relu(s))                                           \
    op(elu,          8, eddy_elu(s, NULL),             torch::elu(s))                                                  \
    op(softplus,     8, eddy_softplus(s, NULL),        torch::softplus(s))                                             \
    op(silu,         8, eddy_silu(s),                  torch::silu(s))                                                 \
    op(gelu,         8, eddy_gelu(s, NULL),            torch::gelu(s))                                                 \
    op(hardswish,    8, eddy_hardswish(s),             torch::hardswish(s))                                            \
    op(isnan,        5, eddy_isnan(s),                 torch::isnan(s))                                                \
    op(isinf,        5, eddy_isinf(s),                 torch::isinf(s))                                                \
    op(isfinite,     5, eddy_isfinite(s),              torch::isfinite(s))                                             \
    op(logical_not,  2, eddy_logical_not(b),           torch::logical_not(b))                                          \
    op(add,         12, eddy_add(x, y),                torch::add(x, y))                                               \
    op(sub,         12, eddy_sub(x, y),                torch::sub(x, y))                                               \
    op(mul,         12, eddy_mul(x, y),                torch::mul(x, y))                                               \
    op(div,         12, eddy_div(x, y),                torch::div(x, y))                                               \
    op(floordiv,    12, eddy_floordiv(x, y),           torch::floor_divide(x, y))                                      \
    op(remainder,   12, eddy_remainder(x, y),          torch::remainder(x, y))                                         \
    op(pow,         12, eddy_pow(x, y),                torch::pow(x, y))                                               \
    op(maximum,     12, eddy_maximum(x, y),            torch::maximum(x, y))                                           \
    op(minimum,     12, eddy_minimum(x, y),            torch::minimum(x, y))                                           \
    op(atan2,       12, eddy_atan2(x, s),              torch::atan2(x, s))                                             \
    op(add_s,        8, eddy_add_s(x, EDDY_S(2.0)),    torch::add(x, 2.0))                                             \
    op(mul_s,        8, eddy_mul_s(x, EDDY_S(2.0)),    torch::mul(x, 2.0))                                             \
    op(pow_s,        8, eddy_pow_s(x, EDDY_S(2.0)),    torch::pow(x, 2.0))                                             \
    op(add_row,      8, eddy_add(m, row),              torch::add(m, row))                                             \
    op(add_column,   8, eddy_add(m, column),           torch::add(m, column))                                          \
    op(add_i32,     12, eddy_add(i, j),                torch::add(i, j))                                               \
    op(bitwise_and, 12, eddy_bitwise_and(i, j),        torch::bitwise_and(i, j))                                       \
    op(bitwise_or,  12, eddy_bitwise_or(i, j),         torch::bitwise_or(i, j))                                        \
    op(bitwise_xor, 12, eddy_bitwise_xor(i, j),        torch::bitwise_xor(i, j))                                       \
    op(eq,           9, eddy_eq(x, y),                 torch::eq(x, y))                                                \
    op(ne,           9, eddy_ne(x, y),                 torch::ne(x, y))                                                \
    op(lt,           9, eddy_lt(x, y),                 torch::lt(x, y))                                                \
    op(le,           9, eddy_le(x, y),                 torch::le(x, y))                                                \
    op(gt,           9, eddy_gt(x, y),                 torch::gt(x, y))                                                \
    op(ge,           9, eddy_ge(x, y),                 torch::ge(x, y))                                                \
    op(logical_and,  3, eddy_logical_and(b, c),        torch::logical_and(b, c))                                       \
    op(logical_or,   3, eddy_logical_or(b, c),         torch::logical_or(b, c))                                        \
    op(logical_xor,  3, eddy_logical_xor(b, c),        torch::logical_xor(b, c))                                       \
    op(where,       13, eddy_where(b, x, y),           torch::where(b, x, y))                                          \
    op(clamp,        8, eddy_clamp(s, EDDY_S(-0.5), EDDY_S(0.5)), torch::clamp(s, -0.5, 0.5))                                     \
    op(lerp,        12, eddy_lerp_s(x, y, EDDY_S(0.3)),torch::lerp(x, y, 0.3))                                         \
    op(addcmul,     16, eddy_addcmul(x, y, z, NULL),   torch::addcmul(x, y, z))                                        \
    op(addcdiv,     16, eddy_addcdiv(x, y, z, NULL),   torch::addcdiv(x, y, z))                                        \
    op(sum,          4, eddy_sum(x, EDDY_ALL_AXES, NULL),       torch::sum(x))                                                  \
    op(mean,         4, eddy_mean(x, EDDY_ALL_AXES, NULL),      torch::mean(x))                                                 \
    op(prod,         4, eddy_prod(x, EDDY_ALL_AXES, NULL),      torch::prod(x))                                                 \
    op(max,          4, eddy_max(x, EDDY_ALL_AXES, NULL),       torch::max(x))                                                  \
    op(min,          4, eddy_min(x, EDDY_ALL_AXES, NULL),       torch::min(x))                                                  \
    op(argmax,       4, eddy_argmax(x, EDDY_ALL_AXES, NULL),    torch::argmax(x))                                               \
    op(argmin,       4, eddy_argmin(x, EDDY_ALL_AXES, NULL),    torch::argmin(x))                                               \
    op(var,          4, eddy_var(x, EDDY_ALL_AXES, NULL),       torch::var(x))                                                  \
    op(std,          4, eddy_std(x, EDDY_ALL_AXES, NULL),       torch::std(x))                                                  \
    op(norm,         4, eddy_norm(x, EDDY_ALL_AXES, NULL),      torch::norm(x))                                                 \
    op(any,          1, eddy_any(b, EDDY_ALL_AXES, NULL),       torch::any(b))                                                  \
    op(all,          1, eddy_all(b, EDDY_ALL_AXES, NULL),       torch::all(b))                                                  \
    op(sum_rows,     4, eddy_sum(m, EDDY_AXES(1), NULL),       torch::sum(m, 1))                                       \
    op(sum_columns,  4, eddy_sum(m, EDDY_AXES(0), NULL),       torch::sum(m, 0))                                       \
    op(max_rows,     4, eddy_max(m, EDDY_AXES(1), NULL),       torch::amax(m, 1))                                      \
    op(argmax_rows,  4, eddy_argmax(m, EDDY_AXES(1), NULL),    torch::argmax(m, 1))                                    \
    op(logsumexp,    4, eddy_logsumexp(m, EDDY_AXES(1), NULL), torch::logsumexp(m, 1))                                 \
    op(cumsum,       8, eddy_cumsum(m, 1),             torch::cumsum(m, 1))                                            \
    op(softmax,      8, eddy_softmax(m, 1),            torch::softmax(m, 1))                                           \
    op(log_softmax,  8, eddy_log_softmax(m, 1),        torch::log_softmax(m, 1))                                       \
    op(layer_norm,   8, eddy_layer_norm(m, weight, bias, 1, NULL), torch::layer_norm(m, {columns}, weight, bias))      \
    op(cross_entropy,4, eddy_cross_entropy(m, labels, NULL),   torch::cross_entropy_loss(m, labels))                   \
    op(mse_loss,     8, eddy_mse_loss(x, y, NULL),     torch::mse_loss(x, y))                                          \
    op(bce_with_logits, 8, eddy_bce_with_logits(s, x, EDDY_NONE, EDDY_NONE, NULL),                                     \
                                                       torch::binary_cross_entropy_with_logits(s, x))                  \
    op(embedding,    8, eddy_embedding(words, table, NULL),    torch::embedding(table, words))                        \
    op(index_select, 8, eddy_index_select(m, picks, 0),torch::index_select(m, 0, picks))                               \
    op(masked_fill,  9, eddy_masked_fill(x, b, EDDY_S(0.0)),   torch::masked_fill(x, b, 0.0))                          \
    op(tril,         8, eddy_tril(m, 0),               torch::tril(m))                                                 \
    op(cat,         16, eddy_cat(EDDY_LIST(m, o), 1),  torch::cat({m, o}, 1))                                          \
    op(transpose_copy, 8, eddy_contiguous(transposed), transposed.contiguous())                                        \
    op(clone,        8, eddy_clone(x),                 x.clone())                                                      \
    op(sort,        16, first_of(eddy_sort(m, 1, NULL, &first, &second)), torch::sort(m, 1))                           \
    op(topk,         4, first_of(eddy_topk(m, 10, 1, NULL, &first, &second)), torch::topk(m, 10, 1))                   \
    op(sdpa,        16, eddy_sdpa(q, k, v, EDDY_NONE, NULL),   attention(q, k, v))                                     \
    op(conv2d,       8, eddy_conv2d(images, filters, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1})),              \
                                                       torch::conv2d(images, filters, {}, 1, 1))                       \
    op(max_pool2d,   5, eddy_max_pool2d(images, EDDY_PAIR(2, 2), NULL), torch::max_pool2d(images, 2))                  \
    op(avg_pool2d,   5, eddy_avg_pool2d(images, EDDY_PAIR(2, 2), NULL), torch::avg_pool2d(images, 2))                  \
    op(linear, 8, eddy_linear(m, square, bias), torch::linear(m, square, bias))                                        \
    op(mm, 8, eddy_mm(m, square), torch::mm(m, square))                                                                \
    op(matmul, 4, eddy_matmul(m, weight), torch::matmul(m, weight))                                                    \
    op(bmm, 8, eddy_bmm(turned_q, k), torch::bmm(turned_q, k[0]))                                                      \
    op(addmm, 8, eddy_addmm(bias, m, square, NULL), torch::addmm(bias, m, square))                                     \
    op(einsum, 8, eddy_einsum("ij,ij->i", EDDY_LIST(m, o)), torch::einsum("ij,ij->i", {m, o}))                         \
    op(outer, 4, eddy_outer(tall, row), torch::outer(tall, row))                                                       \
    op(prod_rows, 4, eddy_prod(near, EDDY_AXES(1), NULL), torch::prod(near, 1))                                        \
    op(max_dim, 4, first_of(eddy_max_dim(m, 1, NULL, &first, &second)), torch::max(m, 1))                              \
    op(min_dim, 4, first_of(eddy_min_dim(m, 1, NULL, &first, &second)), torch::min(m, 1))                              \
    op(cumprod, 8, eddy_cumprod(near, 1), torch::cumprod(near, 1))                                                     \
    op(prelu, 8, eddy_prelu(m, weight), torch::prelu(m, weight))                                                       \
    op(l1_loss, 8, eddy_l1_loss(x, y, NULL), torch::l1_loss(x, y))                                                     \
    op(smooth_l1_loss, 8, eddy_smooth_l1_loss(x, y, NULL), torch::smooth_l1_loss(x, y))                                \
    op(kl_div, 8, eddy_kl_div(s, x, NULL), torch::kl_div(s, x))                                                        \
    op(nll_loss, 4, eddy_nll_loss(m, labels, EDDY_NONE, NULL), torch::nll_loss(m, labels))                             \
    op(batch_norm, 8, eddy_batch_norm(images, means, variances, gain, shift, NULL),                                    \
        torch::batch_norm(images, gain, shift, means, variances, false, 0.1, 1e-5, false))                             \
    op(batch_norm_training, 8, eddy_batch_norm_training(images, means, variances, gain, shift, NULL),                  \
        torch::batch_norm(images, gain, shift, means, variances, true, 0.1, 1e-5, false))                              \
    op(group_norm, 8, eddy_group_norm(images, gain, shift, 4, NULL), torch::group_norm(images, 4, gain, shift))        \
    op(rms_norm, 8, eddy_rms_norm(m, weight, 1, NULL), root_mean_square_norm(m, weight))                               \
    op(rope, 8, eddy_rope(q, positions, NULL), rotated(q))                                                             \
    op(conv1d, 8, eddy_conv1d(signals, filters_1d, EDDY_NONE, EDDY_OPTIONS(conv1d, .padding = 1)),                     \
        torch::conv1d(signals, filters_1d, {}, 1, 1))                                                                  \
    op(conv_transpose2d, 8, eddy_conv_transpose2d(images, filters, EDDY_NONE, EDDY_OPTIONS(conv_transpose2d, .padding = {1, 1})),\
        torch::conv_transpose2d(images, filters, {}, 1, 1))                                                            \
    op(max_pool2d_with_indices, 7,                                                                                     \
        first_of(eddy_max_pool2d_with_indices(images, EDDY_PAIR(2, 2), NULL, &first, &second)),                        \
        torch::max_pool2d_with_indices(images, 2))                                                                     \
    op(adaptive_avg_pool2d, 4, eddy_adaptive_avg_pool2d(images, EDDY_PAIR(1, 1)),                                      \
        torch::adaptive_avg_pool2d(images, {1, 1}))                                                                    \
    op(interpolate, 20, eddy_interpolate(images, EDDY_OPTIONS(interpolate, .scale = 2)),                               \
        torch::upsample_nearest2d(images, {2 * shape.side, 2 * shape.side}))                                           \
    op(gather, 16, eddy_gather(m, places, 1), torch::gather(m, 1, places))                                             \
    op(scatter, 20, eddy_scatter(m, places, o, 1), torch::scatter(m, 1, places, o))                                    \
    op(scatter_add, 20, eddy_scatter_add(m, places, o, 1), torch::scatter_add(m, 1, places, o))                        \
    op(index, 8, eddy_index(m, EDDY_LIST(picks)), torch::index(m, {picks}))                                            \
    op(index_put, 12, eddy_index_put(m, EDDY_LIST(picks), o, NULL), torch::index_put(m, {picks}, o))                   \
    op(index_add, 12, eddy_index_add(m, picks, o, 0), torch::index_add(m, 0, picks, o))                                \
    op(one_hot, 8, eddy_one_hot(labels, shape.columns), torch::one_hot(labels, columns))                               \
    op(masked_select, 7, eddy_masked_select(x, b), torch::masked_select(x, b))                                         \
    op(masked_scatter, 11, eddy_masked_scatter(x, b, y), torch::masked_scatter(x, b, y))                               \
    op(nonzero, 5, eddy_nonzero(b), torch::nonzero(b))                                                                 \
    op(bincount, 8, eddy_bincount(numbers, EDDY_NONE, NULL), torch::bincount(numbers))                                 \
    op(unique, 8, eddy_unique(numbers), torch::_unique(numbers))                                                       \
    op(argsort, 12, eddy_argsort(m, 1, NULL), torch::argsort(m, 1, false))                                                    \
    op(triu, 8, eddy_triu(m, 0), torch::triu(m))                                                                       \
    op(diag, 0, eddy_diag(m, 0), torch::diag(m))                                                                       \
    op(stack, 16, eddy_stack(EDDY_LIST(m, o), 0), torch::stack({m, o}, 0))                                             \
    op(pad, 8, eddy_pad(m, EDDY_SHAPE(1, 1), EDDY_SHAPE(1, 1), EDDY_S(0.0)), torch::constant_pad_nd(m, {1, 1, 1, 1}))  \
    op(flip, 8, eddy_flip(m, EDDY_AXES(1)), torch::flip(m, {1}))                                                       \
    op(roll, 8, eddy_roll(m, EDDY_SHAPE(1), EDDY_AXES(1)), torch::roll(m, 1, 1))                                       \
    op(repeat, 12, eddy_repeat(m, EDDY_SHAPE(2, 1)), m.repeat({2, 1}))                                                 \
    op(repeat_interleave, 12, eddy_repeat_interleave(m, 2, 0), torch::repeat_interleave(m, 2, 0))                      \
    op(cast, 6, eddy_cast(x, EDDY_BF16), x.to(torch::kBFloat16))                                                       \
    op(copy_into, 8, copied(x, w), w.copy_(x))                                                                         \
    op(equal, 8, eddy_equal(x, same), torch::equal(x, same))                                                           \
    op(allclose, 8, eddy_allclose(x, same, NULL), torch::allclose(x, same))                                            \
    op(full, 4, eddy_full(EDDY_SHAPE(shape.n), EDDY_S(0.5), EDDY_F32, NULL), torch::full({shape.n}, 0.5))              \
    op(zeros, 4, eddy_zeros(EDDY_SHAPE(shape.n), EDDY_F32, NULL), torch::zeros({shape.n}))                             \
    op(ones_like, 4, eddy_ones_like(x, NULL), torch::ones_like(x))                                                     \
    op(eye, 4, eddy_eye(shape.rows, shape.columns, EDDY_F32, NULL), torch::eye(shape.rows, shape.columns))             \
    op(arange, 8, eddy_arange(EDDY_S(0), EDDY_S(shape.n), EDDY_S(1), EDDY_I64, NULL), torch::arange(shape.n))          \
    op(linspace, 4, eddy_linspace(EDDY_S(0), EDDY_S(1), shape.n, EDDY_F32, NULL), torch::linspace(0, 1, shape.n))                      \
    op(rand, 4, eddy_rand(EDDY_SHAPE(shape.n), EDDY_F32, NULL), torch::rand({shape.n}))                                \
    op(randn, 4, eddy_randn(EDDY_SHAPE(shape.n), EDDY_F32, NULL), torch::randn({shape.n}))                             \
    op(randint, 8, eddy_randint(0, 1000, EDDY_SHAPE(shape.n), EDDY_I64, NULL), torch::randint(0, 1000, {shape.n}))     \
    op(randperm, 8, eddy_randperm(shape.n, EDDY_I64, NULL), torch::randperm(shape.n))                                  \
    op(bernoulli, 8, eddy_bernoulli(x, NULL), torch::bernoulli(x))                                                     \
    op(multinomial, 4, eddy_multinomial(near, 10, EDDY_OPTIONS(multinomial, .has_replacement = true)),                     \
        torch::multinomial(near, 10, true))                                                                            \
    op(dropout, 8, eddy_dropout(x, EDDY_S(0.5), NULL), torch::dropout(x, 0.5, true))                                           \
    op(sgd_step, 12, stepped_sgd(), stepped_sgd())                                                                     \
    op(sgd_momentum_step, 20, stepped_momentum(), stepped_momentum())                                                  \
    op(adam_step, 28, stepped_adam(), stepped_adam(false))                                                             \
    op(adamw_step, 28, stepped_adamw(), stepped_adam(true))                                                            \
    op(clip_grad_norm, 4, clipped(), clipped())
/* clang-format on */

/* The shapes that follow from the number of elements. */
typedef struct bench_op_shape {
    long n, rows, columns;
    long heads, tokens;         /* of q, k and v, each head 32 wide */
    long batch, channels, side; /* of images */
} bench_op_shape;

static inline bench_op_shape bench_op_shape_of(long n) {
    bench_op_shape shape = {.n = n, .columns = n < 1000000 ? 100 : 1000, .channels = 16};
    shape.rows = n / shape.columns;
    /* 1e2: no head is smaller than one of three tokens. */
    long per_head = n / 32;
    shape.tokens = per_head < 4 ? per_head : per_head / 4 < 1024 ? per_head / 4 : 1024;
    shape.heads = per_head / shape.tokens;
    /* Of 1e2, 1e3, 1e4 and 1e5, 1e6 and 1e7 elements. */
    shape.side = n < 1000 ? 2 : n < 10000 ? 7 : n < 1000000 ? 25 : 56;
    shape.batch = n / (shape.channels * shape.side * shape.side);
    return shape;
}

/* ---- rows ---- */

typedef struct bench_op_row {
    char row[64], op[48];
    long n;
} bench_op_row;

/* Takes the next row off a list with commas; false at its end. n is 0 where the name is none. */
static inline bool bench_op_row_next(const char **list, bench_op_row *row) {
    memset(row, 0, sizeof(*row));
    if (!**list)
        return false;
    size_t length = strcspn(*list, ",");
    snprintf(row->row, sizeof(row->row), "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    /* op_<name>_1e4_1t, cost_<name>_1e4: the name may have more of the lines. */
    const char *name = row->row + strcspn(row->row, "_"), *size = strstr(row->row, "_1e");
    if (size && size > name) {
        snprintf(row->op, sizeof(row->op), "%.*s", (int)(size - name - 1), name + 1);
        row->n = (long)strtod(size + 1, NULL);
    }
    return true;
}

/* bytes: what a call must move. path: NULL for peers. */
static inline void bench_print_op(const char *row, const char *version, const char *path,
                                  double bytes, const bench_samples *samples) {
    printf("{\"row\": \"%s\", \"unit\": \"us\", \"version\": \"%s\", \"bytes\": %.0f", row, version,
           bytes);
    if (path)
        printf(", \"path\": \"%s\"", path);
    bench_print_samples(samples);
}

#endif
