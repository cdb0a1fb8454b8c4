/* max_pool2d, avg_pool2d and their gradients. Elements of a window are taken in row-major order; so are the windows that an element of the image is in. */
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/planes.cuh>
#include <kernels/cuda/pool.h>

namespace {

/* The part of a window that is in the image: rows and columns. */
struct window {
    eddy_pool_window rows, columns;
};

EDDY_SCALAR window window_of(const eddy_cuda_pool &p, int64_t oh, int64_t ow) {
    return {eddy_pool_window_of(&p.height, oh), eddy_pool_window_of(&p.width, ow)};
}

/* ---- maxima ---- */

template <class type> EDDY_CUDA_MEMBER bool is_nan(type x) {
    return x != x;
}

/* The largest element, and its number within its plane. */
template <class element> struct choice {
    typename element::computed best;
    int64_t at;
};

/* Of equals the first stays, and so does the first NaN. */
template <class element>
EDDY_CUDA_MEMBER choice<element> largest(const eddy_cuda_pool &p, const eddy_cuda_planes &x,
                                         const char *plane, const window &w) {
    typedef typename element::stored stored;
    choice<element> chosen = {};
    EDDY_CUDA_ROLLED
    for (int64_t r = 0; r < w.rows.count; r++) {
        const int64_t h = w.rows.first + r * p.height.dilation;
        const char *row = plane + h * x.strides[EDDY_CUDA_ROW];
        EDDY_CUDA_ROLLED
        for (int64_t c = 0; c < w.columns.count; c++) {
            const int64_t column = w.columns.first + c * p.width.dilation;
            const typename element::computed value =
                element::load(*(const stored *)(row + column * x.strides[EDDY_CUDA_COLUMN]));
            const bool is_first = r == 0 && c == 0;
            if (is_first || value > chosen.best || (is_nan(value) && !is_nan(chosen.best)))
                chosen = {value, h * p.width.in + column};
        }
    }
    return chosen;
}

template <class element> EDDY_CUDA_MEMBER void max_pool(const eddy_cuda_pool &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        const choice<element> chosen =
            largest<element>(p, p.image, eddy_cuda_plane_at(p.image, place),
                             window_of(p, place.at[EDDY_CUDA_ROW], place.at[EDDY_CUDA_COLUMN]));
        if (p.small.data != nullptr)
            *(typename element::stored *)eddy_cuda_element_at(p.small, place) =
                element::store(chosen.best);
        if (p.indices.data != nullptr)
            *(int64_t *)eddy_cuda_element_at(p.indices, place) = chosen.at;
    });
}

/* ---- averages ---- */

/* What sums begin with: of f16 and bf16 the first element, of others 0, to which -0 does not stay. */
template <class element> EDDY_CUDA_MEMBER typename element::computed beginning() {
    return sizeof(typename element::stored) == 2 ? -0.0f : 0.0f;
}

template <class element>
EDDY_CUDA_MEMBER typename element::computed row_sum(const char *at, int64_t step, int64_t count,
                                                    typename element::computed sum) {
    EDDY_CUDA_ROLLED
    for (int64_t c = 0; c < count; c++)
        sum += element::load(*(const typename element::stored *)(at + c * step));
    return sum;
}

template <class element> EDDY_CUDA_MEMBER void avg_pool(const eddy_cuda_pool &p) {
    typedef typename element::computed computed;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t row_step = p.image.strides[EDDY_CUDA_ROW],
                  column_step = p.image.strides[EDDY_CUDA_COLUMN];
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        const int64_t oh = place.at[EDDY_CUDA_ROW], ow = place.at[EDDY_CUDA_COLUMN];
        const window w = window_of(p, oh, ow);
        const char *at = eddy_cuda_plane_at(p.image, place) + w.rows.first * row_step +
                         w.columns.first * column_step;
        computed total = row_sum<element>(at, column_step, w.columns.count, beginning<element>());
        EDDY_CUDA_ROLLED
        for (int64_t r = 1; r < w.rows.count; r++) {
            const computed before = p.in_sequence ? total : beginning<element>();
            const computed sum =
                row_sum<element>(at + r * row_step, column_step, w.columns.count, before);
            total = p.in_sequence ? sum : total + sum;
        }
        const double divisor = eddy_pool_divisor_of(p.counting, &p.height, &p.width, oh, ow);
        *(typename element::stored *)eddy_cuda_element_at(p.small, place) =
            element::store(total / (computed)divisor);
    });
}

/* ---- gradients ---- */

/* Adds up what term(oh, ow, element of grad) is for each window that reaches over a place of the image. */
template <class element, class taking>
EDDY_CUDA_MEMBER void gather(const eddy_cuda_pool &p, const eddy_cuda_place &place,
                             const taking &term) {
    typedef typename element::stored stored;
    int64_t top, bottom, left, right;
    eddy_pool_covering(&p.height, place.at[EDDY_CUDA_ROW], &top, &bottom);
    eddy_pool_covering(&p.width, place.at[EDDY_CUDA_COLUMN], &left, &right);
    const char *plane = eddy_cuda_plane_at(p.small, place);
    typename element::computed sum = 0;
    EDDY_CUDA_ROLLED
    for (int64_t oh = top; oh < bottom; oh++) {
        const char *row = plane + oh * p.small.strides[EDDY_CUDA_ROW];
        EDDY_CUDA_ROLLED
        for (int64_t ow = left; ow < right; ow++)
            sum += term(oh, ow, (const stored *)(row + ow * p.small.strides[EDDY_CUDA_COLUMN]));
    }
    *(stored *)eddy_cuda_element_at(p.image, place) = element::store(sum);
}

/* Of windows whose largest element is another one an element gets 0, which changes no sum that began with 0. */
template <class element> EDDY_CUDA_MEMBER void max_route(const eddy_cuda_pool &p) {
    typedef typename element::computed computed;
    typedef typename element::stored stored;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        const int64_t own = place.at[EDDY_CUDA_ROW] * p.width.in + place.at[EDDY_CUDA_COLUMN];
        const bool has_indices = p.indices.data != nullptr;
        const char *plane =
            has_indices ? eddy_cuda_plane_at(p.indices, place) : eddy_cuda_plane_at(p.x, place);
        gather<element>(p, place, [&](int64_t oh, int64_t ow, const stored *grad) -> computed {
            const int64_t at =
                has_indices ? *(const int64_t *)(plane + oh * p.indices.strides[EDDY_CUDA_ROW] +
                                                 ow * p.indices.strides[EDDY_CUDA_COLUMN])
                            : largest<element>(p, p.x, plane, window_of(p, oh, ow)).at;
            return at == own ? element::load(*grad) : 0;
        });
    });
}

template <class element> EDDY_CUDA_MEMBER void avg_spread(const eddy_cuda_pool &p) {
    typedef typename element::computed computed;
    typedef typename element::stored stored;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        gather<element>(p, place, [&](int64_t oh, int64_t ow, const stored *grad) -> computed {
            const double divisor = eddy_pool_divisor_of(p.counting, &p.height, &p.width, oh, ow);
            return element::load(*grad) / (computed)divisor;
        });
    });
}

/* ---- adding where indices say ---- */

/* A plane's part: its places [begin, end). */
struct unit {
    eddy_cuda_place place; /* of the plane */
    int64_t part, begin, end;

    EDDY_CUDA_MEMBER unit(const eddy_cuda_pool_put &p, int64_t number) : place() {
        const int64_t plane = number % p.planes, channels = p.grad.sizes[EDDY_CUDA_CHANNEL];
        place.at[EDDY_CUDA_IMAGE] = plane / channels;
        place.at[EDDY_CUDA_CHANNEL] = plane % channels;
        part = number / p.planes;
        begin = part * p.part;
        end = begin + p.part < p.bound ? begin + p.part : p.bound;
    }
};

/* An element of a plane, and its place. */
template <class element> struct item {
    int64_t at; /* below 0: it is not for this unit */
    typename element::computed value;

    /* The element of this number in the plane; beyond `count` there is none. */
    EDDY_CUDA_MEMBER item(const eddy_cuda_pool_put &p, const unit &u, int64_t number, int64_t count)
        : at(-1), value(0) {
        if (number >= count)
            return;
        eddy_cuda_place from = u.place;
        const int64_t columns = p.grad.sizes[EDDY_CUDA_COLUMN];
        from.at[EDDY_CUDA_ROW] = eddy_cuda_long_quotient(number, columns, p.by_row[0]);
        from.at[EDDY_CUDA_COLUMN] = number - from.at[EDDY_CUDA_ROW] * columns;
        const char *index = eddy_cuda_element_at(p.indices, from);
        const int64_t given = p.is_wide ? *(const int64_t *)index : *(const int32_t *)index;
        if (given >= u.begin && given < u.end) {
            at = given;
            value = element::load(
                *(const typename element::stored *)eddy_cuda_element_at(p.grad, from));
        } else if (u.part == 0 && (given < 0 || given >= p.bound)) {
            const int64_t plane = from.at[EDDY_CUDA_IMAGE] * p.grad.sizes[EDDY_CUDA_CHANNEL] +
                                  from.at[EDDY_CUDA_CHANNEL];
            eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, plane * count + number, given, p.bound);
        }
    }
};

template <class element>
EDDY_CUDA_MEMBER typename element::computed *ground_at(const eddy_cuda_pool_put &p, const unit &u,
                                                       int64_t at) {
    const int64_t columns = p.ground.sizes[EDDY_CUDA_COLUMN];
    eddy_cuda_place to = u.place;
    to.at[EDDY_CUDA_ROW] = eddy_cuda_long_quotient(at, columns, p.by_row[1]);
    to.at[EDDY_CUDA_COLUMN] = at - to.at[EDDY_CUDA_ROW] * columns;
    return (typename element::computed *)eddy_cuda_element_at(p.ground, to);
}

/* 32 elements at a time. Of those for one place the first one's lane adds all, in their order. All lanes call it. */
template <class element>
EDDY_CUDA_MEMBER void put_by_warp(const eddy_cuda_pool_put &p, const unit &u, int64_t count,
                                  typename element::computed *values) {
    const int lane = (int)(threadIdx.x % 32);
    EDDY_CUDA_ROLLED
    for (int64_t first = 0; first < count; first += 32) {
        const item<element> mine(p, u, first + lane, count);
        values[lane] = mine.value;
        const unsigned equals = __match_any_sync(0xffffffffu, mine.at);
        __syncwarp();
        if (mine.at >= 0 && (equals & ((1u << lane) - 1)) == 0) {
            typename element::computed *to = ground_at<element>(p, u, mine.at);
            typename element::computed sum = *to;
            for (int other = lane; other < 32; other++)
                if (equals >> other & 1)
                    sum += values[other];
            *to = sum;
        }
        __syncwarp();
    }
}

template <class element>
EDDY_CUDA_MEMBER void put_by_thread(const eddy_cuda_pool_put &p, const unit &u, int64_t count) {
    EDDY_CUDA_ROLLED
    for (int64_t i = 0; i < count; i++) {
        const item<element> one(p, u, i, count);
        if (one.at >= 0)
            *ground_at<element>(p, u, one.at) += one.value;
    }
}

template <class element> EDDY_CUDA_MEMBER void max_put(const eddy_cuda_pool_put &p) {
    EDDY_CUDA_SHARED(typename element::computed, values, 256);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x,
                  threads = (int64_t)gridDim.x * blockDim.x, lanes = p.is_across ? 1 : 32;
    const int64_t count = p.grad.sizes[EDDY_CUDA_ROW] * p.grad.sizes[EDDY_CUDA_COLUMN];
    EDDY_CUDA_ROLLED
    for (int64_t number = thread / lanes; number < p.planes * p.parts; number += threads / lanes) {
        const unit u(p, number);
        if (p.is_across)
            put_by_thread<element>(p, u, count);
        else
            put_by_warp<element>(p, u, count, values + threadIdx.x / 32 * 32);
    }
}

} // namespace

#define MAX(name, dtype)                                                                           \
    EDDY_CUDA_KERNEL(eddy_max_pool_##name, eddy_cuda_pool) {                                       \
        max_pool<eddy_cuda_##name>(parameters);                                                    \
    }
EDDY_CUDA_POOL_DTYPES(MAX)

#define FLOATS(name, dtype)                                                                        \
    EDDY_CUDA_KERNEL(eddy_avg_pool_##name, eddy_cuda_pool) {                                       \
        avg_pool<eddy_cuda_##name>(parameters);                                                    \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_max_route_##name, eddy_cuda_pool) {                                      \
        max_route<eddy_cuda_##name>(parameters);                                                   \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_avg_spread_##name, eddy_cuda_pool) {                                     \
        avg_spread<eddy_cuda_##name>(parameters);                                                  \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_max_put_##name, eddy_cuda_pool_put) {                              \
        max_put<eddy_cuda_##name>(parameters);                                                     \
    }
EDDY_CUDA_POOL_FLOATS(FLOATS)
