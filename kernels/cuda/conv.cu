/* conv2d, conv_transpose2d and conv2d_backward_weight. The order of a sum follows from shapes alone. */
#include <kernels/cuda/conv.h>
#include <kernels/cuda/planes.cuh>
#include <kernels/cuda/tile.cuh>

namespace {

constexpr int TILE = EDDY_CUDA_CONV_TILE, DEPTH = EDDY_CUDA_CONV_DEPTH,
              THREADS = EDDY_CUDA_CONV_THREADS;
static_assert(DEPTH == EDDY_CUDA_TILE_SIDE && THREADS == EDDY_CUDA_TILE_THREADS, "as a tile has");

/* The quotient; n becomes the rest. */
EDDY_SCALAR int64_t divide(int64_t *n, int64_t by) {
    const bool is_short = *n <= INT32_MAX && by <= INT32_MAX;
    const int64_t quotient = is_short ? (int64_t)((uint32_t)*n / (uint32_t)by) : *n / by;
    *n -= quotient * by;
    return quotient;
}

/* ---- places and taps ---- */

/* A place or a tap: what it adds to the offset and to the row and column in x, and its offset in the other matrix. */
struct spot {
    int64_t from, other, row, column;
};

/* Far outside of any image, alone and together with another one. */
EDDY_SCALAR spot nowhere() {
    return {0, 0, -(INT64_C(1) << 61), 0};
}

/* What a group and a phase have in common. */
struct part {
    int64_t group, phase;
    eddy_conv_axis rows, columns;
    int64_t places, taps;

    EDDY_CUDA_MEMBER int64_t terms(const eddy_cuda_conv &p) const {
        return p.sums_places ? places : taps;
    }
    EDDY_CUDA_MEMBER int64_t width(const eddy_cuda_conv &p) const {
        return p.sums_places ? taps : places;
    }
};

EDDY_SCALAR part part_of(const eddy_cuda_conv &p, int64_t group, int64_t phase) {
    const int64_t height = p.to.sizes[EDDY_CUDA_ROW], width = p.to.sizes[EDDY_CUDA_COLUMN];
    int64_t column_phase = phase;
    const int64_t row_phase = divide(&column_phase, p.column_phases);
    part of;
    of.group = group;
    of.phase = phase;
    of.rows = p.is_transposed ? eddy_conv_axis_transposed(&p.rows, height, row_phase)
                              : eddy_conv_axis_forward(&p.rows, height);
    of.columns = p.is_transposed ? eddy_conv_axis_transposed(&p.columns, width, column_phase)
                                 : eddy_conv_axis_forward(&p.columns, width);
    of.places = p.to.sizes[EDDY_CUDA_IMAGE] * of.rows.count * of.columns.count;
    of.taps = p.from_channels * of.rows.tap_count * of.columns.tap_count;
    return of;
}

EDDY_SCALAR spot place_of(const eddy_cuda_conv &p, const part &of, int64_t number) {
    if (number >= of.places)
        return nowhere();
    int64_t column = number, row = divide(&column, of.columns.count);
    const int64_t image = divide(&row, of.rows.count);
    return {image * p.from.strides[EDDY_CUDA_IMAGE],
            image * p.to.strides[EDDY_CUDA_IMAGE] +
                (of.rows.start + row * of.rows.step) * p.to.strides[EDDY_CUDA_ROW] +
                (of.columns.start + column * of.columns.step) * p.to.strides[EDDY_CUDA_COLUMN],
            row * of.rows.reach + of.rows.offset, column * of.columns.reach + of.columns.offset};
}

EDDY_SCALAR spot tap_of(const eddy_cuda_conv &p, const part &of, int64_t number) {
    if (number >= of.taps)
        return nowhere();
    int64_t channel = number, row = 0, column = 0;
    if (p.channels_last) {
        column = divide(&channel, p.from_channels);
        row = divide(&column, of.columns.tap_count);
    } else {
        column = number;
        row = divide(&column, of.columns.tap_count);
        channel = divide(&row, of.rows.tap_count);
    }
    return {channel * p.from.strides[EDDY_CUDA_CHANNEL],
            channel * p.weight_from + (of.rows.tap + row * of.rows.tap_step) * p.weight_row +
                (of.columns.tap + column * of.columns.tap_step) * p.weight_column,
            row * of.rows.offset_step, column * of.columns.offset_step};
}

EDDY_SCALAR spot term_of(const eddy_cuda_conv &p, const part &of, int64_t number) {
    return p.sums_places ? place_of(p, of, number) : tap_of(p, of, number);
}

EDDY_SCALAR spot column_of(const eddy_cuda_conv &p, const part &of, int64_t number) {
    return p.sums_places ? tap_of(p, of, number) : place_of(p, of, number);
}

/* ---- elements of the matrices ---- */

/* 0 outside of the image. */
template <class element>
EDDY_CUDA_MEMBER typename element::computed right_at(const eddy_cuda_conv &p, const part &of,
                                                     const spot &term, const spot &column) {
    const int64_t y = term.row + column.row, x = term.column + column.column;
    if ((uint64_t)y >= (uint64_t)p.from.sizes[EDDY_CUDA_ROW] ||
        (uint64_t)x >= (uint64_t)p.from.sizes[EDDY_CUDA_COLUMN])
        return 0;
    const char *at = (const char *)p.from.data + term.from + column.from +
                     of.group * p.from_channels * p.from.strides[EDDY_CUDA_CHANNEL] +
                     y * p.from.strides[EDDY_CUDA_ROW] + x * p.from.strides[EDDY_CUDA_COLUMN];
    return element::load(*(const typename element::stored *)at);
}

EDDY_SCALAR char *row_at(const eddy_cuda_conv_rows &rows, const part &of, int64_t row) {
    return (char *)rows.data + of.group * rows.group + row * rows.step;
}

template <class element>
EDDY_CUDA_MEMBER typename element::computed left_at(const eddy_cuda_conv &p, const part &of,
                                                    int64_t row, const spot &term) {
    return element::load(*(const typename element::stored *)(row_at(p.left, of, row) + term.other));
}

template <class element>
EDDY_CUDA_MEMBER void store(const eddy_cuda_conv &p, const part &of, int64_t row,
                            const spot &column, typename element::computed sum) {
    typedef typename element::stored stored;
    if (p.bias != nullptr) {
        const int64_t channel = of.group * p.to_channels + row;
        sum += element::load(*(const stored *)((const char *)p.bias + channel * p.bias_step));
    }
    *(stored *)(row_at(p.out, of, row) + column.other) = element::store(sum);
}

template <class element>
EDDY_CUDA_MEMBER typename element::computed *
partial_at(const eddy_cuda_conv &p, const part &of, int64_t split, int64_t row, int64_t column) {
    const int64_t phases = p.row_phases * p.column_phases;
    const int64_t matrix = (split * p.groups + of.group) * phases + of.phase;
    return (typename element::computed *)p.partials + (matrix * p.to_channels + row) * p.width +
           column;
}

/* ---- tiles ---- */

/* What a block has in shared memory. */
template <class computed> struct memory {
    eddy_cuda_stage<computed, TILE> stage;
    spot terms[DEPTH], columns[TILE];
    part of;
};

/* Terms from `term` on, but none from `end` on. */
template <class element>
EDDY_CUDA_MEMBER void fill_stage(const eddy_cuda_conv &p, memory<typename element::computed> &m,
                                 int64_t row, int64_t term, int64_t end) {
    EDDY_CUDA_ROLLED
    for (int i = 0; i < TILE / EDDY_CUDA_TILE_SIDE; i++) {
        const eddy_cuda_staged<TILE> left(p.left_along, i), right(p.right_along, i);
        const bool is_there = row + left.line < p.to_channels && term + left.term < end;
        m.stage.left[left.term][left.line] =
            is_there ? left_at<element>(p, m.of, row + left.line, m.terms[left.term]) : 0;
        m.stage.right[right.term][right.line] =
            term + right.term < end
                ? right_at<element>(p, m.of, m.terms[right.term], m.columns[right.line])
                : 0;
    }
}

/* A tile, or a split of its terms. */
struct task {
    int64_t row, column, split, group, phase;

    EDDY_CUDA_MEMBER task(const eddy_cuda_conv &p, int64_t number) : row(number) {
        column = divide(&row, p.row_tiles);
        split = divide(&column, p.column_tiles);
        phase = divide(&split, p.splits);
        group = divide(&phase, p.row_phases * p.column_phases);
        row *= TILE;
        column *= TILE;
    }
};

template <class element>
EDDY_CUDA_MEMBER void run_task(const eddy_cuda_conv &p, memory<typename element::computed> &m,
                               const task &t) {
    typedef typename element::computed computed;
    if (threadIdx.x == 0)
        m.of = part_of(p, t.group, t.phase);
    __syncthreads();
    if (threadIdx.x < TILE)
        m.columns[threadIdx.x] = column_of(p, m.of, t.column + threadIdx.x);
    const int64_t all = m.of.terms(p), begin = t.split * p.split_terms;
    const int64_t end = begin + p.split_terms < all ? begin + p.split_terms : all;
    eddy_cuda_square<computed, TILE> square;
    EDDY_CUDA_ROLLED
    for (int64_t term = begin; term < end; term += DEPTH) {
        if (threadIdx.x < DEPTH)
            m.terms[threadIdx.x] = term_of(p, m.of, term + threadIdx.x);
        __syncthreads();
        fill_stage<element>(p, m, t.row, term, end);
        __syncthreads();
        square.add(m.stage);
    }
    __syncthreads(); /* of no terms at all the columns are not there yet */
    square.each_of([&](int row, int column, computed sum) {
        if (t.row + row >= p.to_channels || t.column + column >= m.of.width(p))
            return;
        if (p.partials != nullptr)
            *partial_at<element>(p, m.of, t.split, t.row + row, t.column + column) = sum;
        else
            store<element>(p, m.of, t.row + row, m.columns[column], sum);
    });
    __syncthreads();
}

/* Those of the same columns are neighbours. */
template <class element> EDDY_CUDA_MEMBER void tiled(const eddy_cuda_conv &p) {
    EDDY_CUDA_SHARED(memory<typename element::computed>, shared, 1);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t tasks =
        p.row_tiles * p.column_tiles * p.splits * p.row_phases * p.column_phases * p.groups;
    EDDY_CUDA_ROLLED
    for (int64_t number = blockIdx.x; number < tasks; number += gridDim.x)
        run_task<element>(p, shared[0], task(p, number));
}

/* ---- element by element ---- */

/* The number of an element of the product, of all groups and phases: its row and column. */
struct element_number {
    int64_t group, phase, row, column;

    EDDY_CUDA_MEMBER element_number(const eddy_cuda_conv &p, int64_t number) {
        column = number;
        row = divide(&column, p.width);
        phase = divide(&row, p.to_channels);
        group = divide(&phase, p.row_phases * p.column_phases);
    }
};

EDDY_SCALAR int64_t element_count(const eddy_cuda_conv &p) {
    return p.groups * p.row_phases * p.column_phases * p.to_channels * p.width;
}

/* Adds up the splits of each element, in their order. */
template <class element> EDDY_CUDA_MEMBER void join(const eddy_cuda_conv &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < element_count(p);
         i += step) {
        const element_number at(p, i);
        const part of = part_of(p, at.group, at.phase);
        if (at.column >= of.width(p))
            continue;
        typename element::computed sum = 0;
        EDDY_CUDA_ROLLED
        for (int64_t split = 0; split < p.splits; split++)
            sum += *partial_at<element>(p, of, split, at.row, at.column);
        store<element>(p, of, at.row, column_of(p, of, at.column), sum);
    }
}

/* The sum of the values of all threads of a block, right in the first. */
template <class computed> EDDY_CUDA_MEMBER computed sum_of_block(computed mine) {
    EDDY_CUDA_SHARED(computed, values, THREADS);
    values[threadIdx.x] = mine;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            values[threadIdx.x] += values[threadIdx.x + half];
        __syncthreads();
    }
    mine = values[0];
    __syncthreads();
    return mine;
}

/* For groups of few rows, of which a tile would be empty for the most part: a thread computes an element, or a block if its terms are places. */
template <class element> EDDY_CUDA_MEMBER void direct(const eddy_cuda_conv &p) {
    typedef typename element::computed computed;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x,
                  step = (int64_t)gridDim.x * blockDim.x / p.lanes;
    EDDY_CUDA_ROLLED
    for (int64_t i = thread / p.lanes; i < element_count(p); i += step) {
        const element_number at(p, i);
        const part of = part_of(p, at.group, at.phase);
        if (at.column >= of.width(p))
            continue;
        const spot column = column_of(p, of, at.column);
        computed sum = 0;
        EDDY_CUDA_ROLLED
        for (int64_t term = thread % p.lanes; term < of.terms(p); term += p.lanes) {
            const spot along = term_of(p, of, term);
            sum = eddy_cuda_multiply_add(left_at<element>(p, of, at.row, along),
                                         right_at<element>(p, of, along, column), sum);
        }
        if (p.lanes > 1)
            sum = sum_of_block(sum);
        if (thread % p.lanes == 0)
            store<element>(p, of, at.row, column, sum);
    }
}

} // namespace

#define CONVS(name, dtype)                                                                         \
    EDDY_CUDA_BLOCK_KERNEL(eddy_conv_tiled_##name, eddy_cuda_conv) {                               \
        tiled<eddy_cuda_##name>(parameters);                                                       \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_conv_join_##name, eddy_cuda_conv) {                                      \
        join<eddy_cuda_##name>(parameters);                                                        \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_conv_direct_##name, eddy_cuda_conv) {                              \
        direct<eddy_cuda_##name>(parameters);                                                      \
    }
EDDY_CUDA_CONVS(CONVS)
