/* The ops of the op rows: name, bytes it must move per element of its first operand, Eddy's call, libtorch's.
 *
 * A row is op_<name>_<size>_<threads>t with a size of 1e2, 1e4, 1e6 or 1e7 elements n. The operands, by the same names in
 * both programs, are f32 unless said otherwise:
 *
 *   x, y, z     [n], in (0.1, 0.9)               s           [n], in (-1, 1)
 *   i, j        i32 [n], in [1, 1000]            b, c        bool [n]
 *   m, o        [rows, columns] in (-1, 1); transposed: of m, a view
 *   row, column [columns], [rows, 1], in (0.1, 0.9)
 *   labels      i64 [rows], below columns        picks       i64 [rows], below rows
 *   table       [1000, columns]                  words       i64 [rows], below 1000
 *   weight, bias [columns]
 *   q, k, v     [heads, tokens, 32]; tokens at most 1024
 *   images      [batch, 16, side, side]          filters     [16, 16, 3, 3]
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
    op(sum,          4, eddy_sum(x, NULL, NULL),       torch::sum(x))                                                  \
    op(mean,         4, eddy_mean(x, NULL, NULL),      torch::mean(x))                                                 \
    op(prod,         4, eddy_prod(x, NULL, NULL),      torch::prod(x))                                                 \
    op(max,          4, eddy_max(x, NULL, NULL),       torch::max(x))                                                  \
    op(min,          4, eddy_min(x, NULL, NULL),       torch::min(x))                                                  \
    op(argmax,       4, eddy_argmax(x, NULL, NULL),    torch::argmax(x))                                               \
    op(argmin,       4, eddy_argmin(x, NULL, NULL),    torch::argmin(x))                                               \
    op(var,          4, eddy_var(x, NULL, NULL),       torch::var(x))                                                  \
    op(std,          4, eddy_std(x, NULL, NULL),       torch::std(x))                                                  \
    op(norm,         4, eddy_norm(x, NULL, NULL),      torch::norm(x))                                                 \
    op(any,          1, eddy_any(b, NULL, NULL),       torch::any(b))                                                  \
    op(all,          1, eddy_all(b, NULL, NULL),       torch::all(b))                                                  \
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
    op(sort,        16, sorted(m),             torch::sort(m, 1))                                              \
    op(topk,         4, ten_largest(m),             torch::topk(m, 10, 1))                                          \
    op(sdpa,        16, eddy_sdpa(q, k, v, EDDY_NONE, NULL),   attention(q, k, v))                                     \
    op(conv2d,       8, eddy_conv2d(images, filters, EDDY_NONE, EDDY_OPTIONS(conv2d, .padding = {1, 1})),              \
                                                       torch::conv2d(images, filters, {}, 1, 1))                       \
    op(max_pool2d,   5, eddy_max_pool2d(images, EDDY_PAIR(2, 2), NULL), torch::max_pool2d(images, 2))                  \
    op(avg_pool2d,   5, eddy_avg_pool2d(images, EDDY_PAIR(2, 2), NULL), torch::avg_pool2d(images, 2))
/* clang-format on */

/* The shapes that follow from the number of elements. */
typedef struct bench_op_shape {
    long n, rows, columns;
    long heads, tokens;       /* of q, k and v, each head 32 wide */
    long batch, channels, side; /* of images */
} bench_op_shape;

static inline bench_op_shape bench_op_shape_of(long n) {
    bench_op_shape shape = {.n = n, .columns = n < 1000000 ? 100 : 1000, .channels = 16};
    shape.rows = n / shape.columns;
    /* 1e2: no head is smaller than one of three tokens. */
    long per_head = n / 32;
    shape.tokens = per_head < 4 ? per_head : per_head / 4 < 1024 ? per_head / 4 : 1024;
    shape.heads = per_head / shape.tokens;
    /* Sides of 2, 25, 56 and 56 pixels. */
    shape.side = n < 1000 ? 2 : n < 100000 ? 25 : 56;
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
    /* op_<name>_1e4_1t: the name may have more of the lines. */
    char *size = strstr(row->row, "_1e");
    if (!strncmp(row->row, "op_", 3) && size) {
        snprintf(row->op, sizeof(row->op), "%.*s", (int)(size - row->row - 3), row->row + 3);
        row->n = (long)strtod(size + 1, NULL);
    }
    return true;
}

/* bytes: what a call must move. path: NULL for peers. */
static inline void bench_print_op(const char *row, const char *version, const char *path, double bytes,
                                  const bench_samples *samples) {
    printf("{\"row\": \"%s\", \"unit\": \"us\", \"version\": \"%s\", \"bytes\": %.0f", row, version, bytes);
    if (path)
        printf(", \"path\": \"%s\"", path);
    bench_print_samples(samples);
}

#endif
