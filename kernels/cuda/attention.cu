/* sdpa and its gradient: softmax(q k^T * scale + mask) v in tiles of scores, none of which leaves shared memory. Of each row the largest score so far and the sum of exponentials
 * relative to it are kept; what has been summed up is scaled down when a larger one comes (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et
 * al., "FlashAttention", 2022). The gradient makes the scores again: once for each tile of rows, and once for each tile of columns, so that no two blocks add to one element. */
#include <kernels/cuda/attention.h>
#include <kernels/cuda/tile.cuh>
#include <kernels/philox.h>

namespace {

constexpr int SIDE = EDDY_CUDA_TILE_SIDE;

EDDY_SCALAR float exponential(float x) {
    return eddy_exp_f32(x);
}
EDDY_SCALAR double exponential(double x) {
    return eddy_exp_f64(x);
}

template <class computed> EDDY_CUDA_MEMBER computed lowest() {
    return -(computed)EDDY_INF_f32;
}

EDDY_SCALAR int64_t least_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- operands ---- */

/* A matrix of one batch. */
struct matrix {
    char *data;
    int64_t row, column;   /* strides in bytes */
    int64_t rows, columns; /* beyond, elements are 0 */
};

EDDY_SCALAR matrix matrix_of(const eddy_cuda_attention &p, int operand, int64_t batch, int64_t rows,
                             int64_t columns) {
    const eddy_cuda_attention_operand &of = p.operands[operand];
    char *data = (char *)of.data;
    EDDY_CUDA_ROLLED
    for (int d = p.rank - 1; d >= 0; d--) {
        data += batch % p.sizes[d] * of.batch[d];
        batch /= p.sizes[d];
    }
    return {data, of.row, of.column, rows, columns};
}

template <class element> struct accessor {
    typedef typename element::stored stored;
    typedef typename element::computed computed;

    static EDDY_CUDA_MEMBER computed load(const matrix &m, int64_t row, int64_t column) {
        return row < m.rows && column < m.columns
                   ? element::load(*(const stored *)(m.data + row * m.row + column * m.column))
                   : 0;
    }
    static EDDY_CUDA_MEMBER void store(const matrix &m, int64_t row, int64_t column,
                                       computed value) {
        if (row < m.rows && column < m.columns)
            *(stored *)(m.data + row * m.row + column * m.column) = element::store(value);
    }
};

/* ---- a block ---- */

template <class element> struct block {
    typedef typename element::computed computed;
    typedef accessor<element> access;
    static constexpr int tile = EDDY_CUDA_ATTENTION_TILE(sizeof(computed));
    static constexpr int each = tile / SIDE;
    typedef eddy_cuda_square<computed, tile> square;

    /* Threads of a row, each with neighbouring columns. */
    static constexpr int per_row = EDDY_CUDA_TILE_THREADS / tile, own = tile / per_row;

    struct memory {
        eddy_cuda_stage<computed, tile> stage;
        computed weights[tile][tile + 1];
        computed largest[tile], sums[tile], down[tile];
        bool kept[tile][tile]; /* with dropout */
    };

    const eddy_cuda_attention &p;
    memory &m;
    int64_t batch;

    EDDY_CUDA_MEMBER block(const eddy_cuda_attention &parameters, memory &shared, int64_t number)
        : p(parameters), m(shared), batch(number) {
    }

    EDDY_CUDA_MEMBER matrix of(int operand, int64_t rows, int64_t columns) const {
        return matrix_of(p, operand, batch, rows, columns);
    }

    /* Rows from `row` of one matrix, times rows from `column` of another. */
    EDDY_CUDA_MEMBER square product(const matrix &left, int64_t row, const matrix &right,
                                    int64_t column) const {
        square s;
        EDDY_CUDA_ROLLED
        for (int64_t k = 0; k < left.columns; k += SIDE) {
            __syncthreads();
            EDDY_CUDA_ROLLED
            for (int i = 0; i < each; i++) {
                const eddy_cuda_staged<tile> at(true, i);
                m.stage.left[at.term][at.line] = access::load(left, row + at.line, k + at.term);
                m.stage.right[at.term][at.line] =
                    access::load(right, column + at.line, k + at.term);
            }
            __syncthreads();
            s.add(m.stage);
        }
        return s;
    }

    /* Adds the tile of weights, or what it is if turned, times rows from `row` and columns from `column` of a matrix. */
    EDDY_CUDA_MEMBER void add_weighted(square &s, bool is_turned, const matrix &right, int64_t row,
                                       int64_t column) const {
        EDDY_CUDA_ROLLED
        for (int k = 0; k < tile; k += SIDE) {
            __syncthreads();
            EDDY_CUDA_ROLLED
            for (int i = 0; i < each; i++) {
                const eddy_cuda_staged<tile> at(false, i);
                m.stage.right[at.term][at.line] =
                    access::load(right, row + k + at.term, column + at.line);
            }
            __syncthreads();
            s.add(
                [&](int line, int term) {
                    return is_turned ? m.weights[k + term][line] : m.weights[line][k + term];
                },
                [&](int term, int line) { return m.stage.right[term][line]; });
        }
    }

    /* A score with its mask: -infinity if the row does not see the column. */
    EDDY_CUDA_MEMBER computed masked(const matrix &mask, int64_t row, int64_t column,
                                     computed score) const {
        if (row >= p.rows || column >= p.columns || (p.is_causal && column > row))
            return lowest<computed>();
        const char *at = mask.data + row * mask.row + column * mask.column;
        if (p.mask == EDDY_CUDA_ATTENTION_HIDES)
            return *(const uint8_t *)at ? score : lowest<computed>();
        return p.mask == EDDY_CUDA_ATTENTION_ADDS
                   ? score + element::load(*(const typename element::stored *)at)
                   : score;
    }

    /* The tile of weights becomes the scores of rows from `row` and columns from `column`. */
    EDDY_CUDA_MEMBER void take_scores(int64_t row, int64_t column) const {
        square s = product(of(EDDY_CUDA_ATTENTION_Q, p.rows, p.width), row,
                           of(EDDY_CUDA_ATTENTION_K, p.columns, p.width), column);
        const matrix mask = of(EDDY_CUDA_ATTENTION_MASK, p.rows, p.columns);
        __syncthreads();
        s.each_of([&](int i, int j, computed sum) {
            m.weights[i][j] = masked(mask, row + i, column + j, sum * (computed)p.scale);
        });
        __syncthreads();
    }

    /* ---- rows of the tile: per_row threads each ---- */

    static EDDY_CUDA_MEMBER int own_row() {
        return (int)threadIdx.x / per_row;
    }
    static EDDY_CUDA_MEMBER int own_column(int j) {
        return (int)threadIdx.x % per_row * own + j;
    }
    /* NaN counts only if all other numbers are -infinity: the sum of a row with NaN is NaN whatever was subtracted. */
    static EDDY_CUDA_MEMBER computed larger(computed a, computed b) {
        return a != a ? (b == lowest<computed>() ? a : b)
                      : (b > a || (b != b && a == lowest<computed>()) ? b : a);
    }
    template <class work>
    static EDDY_CUDA_MEMBER computed over_row(computed mine, const work &join) {
        for (unsigned apart = 1; apart < per_row; apart *= 2)
            mine = join(mine, __shfl_xor_sync(0xffffffffu, mine, apart));
        return mine;
    }

    /* Scores become exponentials relative to the largest score so far, and are joined to the sum of their row. */
    EDDY_CUDA_MEMBER void join_scores() const {
        computed *const weights = &m.weights[own_row()][own_column(0)];
        computed largest = lowest<computed>(), sum = 0, down = 1;
        for (int j = 0; j < own; j++)
            largest = larger(largest, weights[j]);
        largest = over_row(largest, [](computed a, computed b) { return larger(a, b); });
        const computed before = m.largest[own_row()];
        largest = before > largest || before != before ? before : largest;
        const bool sees_none = largest == lowest<computed>();
        for (int j = 0; j < own; j++) {
            weights[j] = sees_none ? 0 : exponential(weights[j] - largest);
            sum += weights[j];
        }
        sum = over_row(sum, [](computed a, computed b) { return a + b; });
        if (!sees_none && before != largest)
            down = exponential(before - largest);
        __syncwarp(); /* all threads of the row have read what it was before */
        if (own_column(0) == 0) {
            m.largest[own_row()] = largest;
            m.sums[own_row()] = m.sums[own_row()] * down + sum;
            m.down[own_row()] = down;
        }
    }

    EDDY_CUDA_MEMBER void begin_rows() const {
        if (threadIdx.x < tile) {
            m.largest[threadIdx.x] = lowest<computed>();
            m.sums[threadIdx.x] = 0;
        }
    }

    /* ---- dropout ---- */

    /* Which weights of the tile are kept: by the number of each among those of all batches, four of which are one block of the generator. */
    EDDY_CUDA_MEMBER void choose_kept(int64_t row, int64_t column) const {
        uint64_t number =
            (uint64_t)((batch * p.rows + row + own_row()) * p.columns + column + own_column(0));
        uint32_t words[4];
        EDDY_CUDA_ROLLED
        for (int j = 0; j < own && p.drops; j++, number++) {
            if (j == 0 || number % 4 == 0)
                eddy_philox(p.seed, p.counter, number / 4, words);
            const uint32_t low = number & 1 ? words[1] : words[0],
                           high = number & 1 ? words[3] : words[2];
            m.kept[own_row()][own_column(j)] =
                (float)(int32_t)((number & 2 ? high : low) >> 8) * 0x1p-24f >= p.least;
        }
    }
    /* An element of the tile. */
    EDDY_CUDA_MEMBER computed dropped(int i, int j, computed value) const {
        return !p.drops ? value : m.kept[i][j] ? value * (computed)p.kept : 0;
    }

    /* ---- forward ---- */

    /* Columns that any of the rows from `row` sees. */
    EDDY_CUDA_MEMBER int64_t seen(int64_t row) const {
        return p.is_causal ? least_of(p.columns, row + tile) : p.columns;
    }

    EDDY_CUDA_MEMBER void drop_weights(int64_t row, int64_t column) const {
        choose_kept(row, column);
        for (int j = 0; j < own; j++) {
            computed *weight = &m.weights[own_row()][own_column(j)];
            *weight = dropped(own_row(), own_column(j), *weight);
        }
    }

    /* Rows from `row` and columns from `value` of the output. */
    EDDY_CUDA_MEMBER void forward(int64_t row, int64_t value) const {
        square s;
        begin_rows();
        EDDY_CUDA_ROLLED
        for (int64_t column = 0; column < seen(row); column += tile) {
            take_scores(row, column);
            join_scores();
            drop_weights(row, column);
            __syncthreads();
            for (int i = 0; i < each; i++)
                for (int j = 0; j < each; j++)
                    s.sums[i][j] *= m.down[square::row(i)];
            add_weighted(s, false, of(EDDY_CUDA_ATTENTION_V, p.columns, p.value_width), column,
                         value);
        }
        __syncthreads();
        const matrix out = of(EDDY_CUDA_ATTENTION_OUT, p.rows, p.value_width);
        s.each_of([&](int i, int j, computed sum) {
            const computed all = m.sums[i]; /* a row that sees nothing is 0 */
            access::store(out, row + i, value + j, all != 0 ? sum * (1 / all) : sum);
        });
        __syncthreads();
    }

    /* ---- backward ---- */

    EDDY_CUDA_MEMBER computed *statistics_of(int64_t row) const {
        return (computed *)p.statistics + (batch * p.rows + row) * 3;
    }

    /* The statistics of rows from `row`. */
    EDDY_CUDA_MEMBER void measure(int64_t row) const {
        begin_rows();
        EDDY_CUDA_ROLLED
        for (int64_t column = 0; column < seen(row); column += tile) {
            take_scores(row, column);
            join_scores();
        }
        __syncthreads();
        const matrix grad = of(EDDY_CUDA_ATTENTION_GRAD, p.rows, p.value_width),
                     out = of(EDDY_CUDA_ATTENTION_OUT, p.rows, p.value_width);
        computed product = 0;
        EDDY_CUDA_ROLLED
        for (int64_t e = threadIdx.x % per_row; e < p.value_width; e += per_row)
            product = eddy_cuda_multiply_add(access::load(grad, row + own_row(), e),
                                             access::load(out, row + own_row(), e), product);
        product = over_row(product, [](computed a, computed b) { return a + b; });
        if (own_column(0) == 0 && row + own_row() < p.rows) {
            computed *to = statistics_of(row + own_row());
            to[0] = m.largest[own_row()];
            to[1] = to[0] == lowest<computed>() ? 1 : 1 / m.sums[own_row()];
            to[2] = product;
        }
        __syncthreads();
    }

    /* The tile becomes the weights of rows from `row` and columns from `column` or, with `is_slope`, the gradients of their scores. */
    EDDY_CUDA_MEMBER void take_weights(int64_t row, int64_t column, bool is_slope) const {
        choose_kept(row, column);
        take_scores(row, column);
        square s;
        if (is_slope)
            s = product(of(EDDY_CUDA_ATTENTION_GRAD, p.rows, p.value_width), row,
                        of(EDDY_CUDA_ATTENTION_V, p.columns, p.value_width), column);
        s.each_of([&](int i, int j, computed gradient) {
            computed *weight = &m.weights[i][j];
            if (row + i >= p.rows || column + j >= p.columns) {
                *weight = 0;
                return;
            }
            const computed *of_row = statistics_of(row + i);
            const bool sees_none = of_row[0] == lowest<computed>();
            const computed share = sees_none ? 0 : exponential(*weight - of_row[0]) * of_row[1];
            *weight =
                is_slope ? share * (dropped(i, j, gradient) - of_row[2]) : dropped(i, j, share);
        });
        __syncthreads();
    }

    EDDY_CUDA_MEMBER void store_gradient(square &s, int operand, int64_t rows, int64_t columns,
                                         int64_t row, int64_t column, computed scale) const {
        const matrix to = of(operand, rows, columns);
        s.each_of([&](int i, int j, computed sum) {
            access::store(to, row + i, column + j, sum * scale);
        });
        __syncthreads();
    }

    EDDY_CUDA_MEMBER void backward_q(int64_t row, int64_t at) const {
        square s;
        EDDY_CUDA_ROLLED
        for (int64_t column = 0; column < seen(row); column += tile) {
            take_weights(row, column, true);
            add_weighted(s, false, of(EDDY_CUDA_ATTENTION_K, p.columns, p.width), column, at);
        }
        store_gradient(s, EDDY_CUDA_ATTENTION_DQ, p.rows, p.width, row, at, (computed)p.scale);
    }

    /* Of k, columns from `at`; beyond its width, of v. */
    EDDY_CUDA_MEMBER void backward_kv(int64_t column, int64_t at, bool is_k) const {
        square s;
        const matrix right = is_k ? of(EDDY_CUDA_ATTENTION_Q, p.rows, p.width)
                                  : of(EDDY_CUDA_ATTENTION_GRAD, p.rows, p.value_width);
        const int64_t first = p.is_causal ? column / tile * tile : 0;
        EDDY_CUDA_ROLLED
        for (int64_t row = first; row < p.rows; row += tile) {
            take_weights(row, column, is_k);
            add_weighted(s, true, right, row, at);
        }
        if (is_k)
            store_gradient(s, EDDY_CUDA_ATTENTION_DK, p.columns, p.width, column, at,
                           (computed)p.scale);
        else
            store_gradient(s, EDDY_CUDA_ATTENTION_DV, p.columns, p.value_width, column, at, 1);
    }
};

EDDY_SCALAR int64_t tiles_of(int64_t count, int tile) {
    return (count + tile - 1) / tile;
}

/* Calls function(block, line, part) for each batch, tile of `lines` and part of `parts`. */
template <class element, class work>
EDDY_CUDA_MEMBER void each_task(const eddy_cuda_attention &p, int64_t lines, int64_t parts,
                                const work &function) {
    typedef block<element> own;
    EDDY_CUDA_SHARED(typename own::memory, shared, 1);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t tiles = tiles_of(lines, own::tile);
    EDDY_CUDA_ROLLED
    for (int64_t task = blockIdx.x; task < p.batches * tiles * parts; task += gridDim.x)
        function(own(p, shared[0], task / parts / tiles), task / parts % tiles * own::tile,
                 task % parts * own::tile);
}

template <class element> EDDY_CUDA_MEMBER void forward(const eddy_cuda_attention &p) {
    typedef block<element> own;
    each_task<element>(p, p.rows, tiles_of(p.value_width, own::tile),
                       [](const own &b, int64_t row, int64_t value) { b.forward(row, value); });
}

template <class element> EDDY_CUDA_MEMBER void measure(const eddy_cuda_attention &p) {
    each_task<element>(p, p.rows, 1,
                       [](const block<element> &b, int64_t row, int64_t) { b.measure(row); });
}

template <class element> EDDY_CUDA_MEMBER void backward_q(const eddy_cuda_attention &p) {
    typedef block<element> own;
    each_task<element>(p, p.rows, tiles_of(p.width, own::tile),
                       [](const own &b, int64_t row, int64_t at) { b.backward_q(row, at); });
}

template <class element> EDDY_CUDA_MEMBER void backward_kv(const eddy_cuda_attention &p) {
    typedef block<element> own;
    const int64_t of_k = tiles_of(p.width, own::tile) * own::tile,
                  parts = of_k / own::tile + tiles_of(p.value_width, own::tile);
    each_task<element>(p, p.columns, parts, [&](const own &b, int64_t column, int64_t at) {
        b.backward_kv(column, at < of_k ? at : at - of_k, at < of_k);
    });
}

} // namespace

#define ATTENTIONS(name, dtype)                                                                    \
    EDDY_CUDA_BLOCK_KERNEL(eddy_attention_forward_##name, eddy_cuda_attention) {                   \
        forward<eddy_cuda_##name>(parameters);                                                     \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_attention_rows_##name, eddy_cuda_attention) {                      \
        measure<eddy_cuda_##name>(parameters);                                                     \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_attention_dq_##name, eddy_cuda_attention) {                        \
        backward_q<eddy_cuda_##name>(parameters);                                                  \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_attention_dkv_##name, eddy_cuda_attention) {                       \
        backward_kv<eddy_cuda_##name>(parameters);                                                 \
    }
EDDY_CUDA_ATTENTIONS(ATTENTIONS)
