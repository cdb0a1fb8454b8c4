/* What the kernels of normalisations share: chunks of elements in a block's memory, their sums, and the results of them. */
#ifndef EDDY_KERNELS_CUDA_NORM_CUH
#define EDDY_KERNELS_CUDA_NORM_CUH

#include <kernels/cast.h>
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/norm.h>

/* ---- threads and tasks ---- */

/* A thread's row, one chunk each, and its number within it. */
struct eddy_cuda_norm_thread {
    uint32_t row, member, members;

    EDDY_CUDA_MEMBER eddy_cuda_norm_thread(const eddy_cuda_normalisation &p, bool is_across) {
        members = EDDY_CUDA_NORM_THREADS / p.abreast;
        row = is_across ? threadIdx.x % p.abreast : threadIdx.x / members;
        member = is_across ? threadIdx.x / p.abreast : threadIdx.x % members;
    }
};

/* Number `first` + row. Beyond the tasks there are no elements. */
struct eddy_cuda_norm_task {
    int64_t place, chunk, begin;
    int32_t count;

    EDDY_CUDA_MEMBER eddy_cuda_norm_task(const eddy_cuda_normalisation &p, int64_t first,
                                         uint32_t row) {
        const int64_t number = first + row;
        chunk = p.chunk_count == 1 ? 0 : number / p.place_count;
        place = number - chunk * p.place_count;
        begin = chunk * EDDY_NORM_CHUNK;
        const int64_t left = number < p.place_count * p.chunk_count ? p.element_count - begin : 0;
        count = (int32_t)(left < EDDY_NORM_CHUNK ? left : EDDY_NORM_CHUNK);
    }
};

/* ---- weights ---- */

/* The quotient of an element's number and the segment. */
EDDY_SCALAR int64_t eddy_cuda_norm_run_of(const eddy_cuda_normalisation &p, int64_t element) {
    if (p.segment == 1 || p.segment == p.element_count)
        return p.segment == 1 ? element : 0;
    return p.by_segment.divisor == 0 || element > INT32_MAX
               ? element / p.segment
               : (int64_t)eddy_cuda_quotient((uint32_t)element, p.by_segment);
}

/* The weight of a place's first element. */
EDDY_SCALAR int64_t eddy_cuda_norm_first_weight(const eddy_cuda_normalisation &p, int64_t place) {
    return p.period == 1 ? 0 : place % p.period * p.runs;
}

template <class element>
EDDY_CUDA_MEMBER typename element::computed eddy_cuda_norm_number(const eddy_cuda_norm_vector &of,
                                                                  int64_t i) {
    const char *at = (const char *)of.data + i * of.step;
    if (sizeof(typename element::stored) == 2 && of.is_f32)
        return *(const float *)at;
    return element::load(*(const typename element::stored *)at);
}

template <class element>
EDDY_CUDA_MEMBER typename element::computed
eddy_cuda_norm_number_or(const eddy_cuda_norm_vector &of, int64_t i,
                         typename element::computed absent) {
    return of.data ? eddy_cuda_norm_number<element>(of, i) : absent;
}

/* ---- a block's memory ---- */

/* Brings a chunk's elements there. */
template <class element>
EDDY_CUDA_MEMBER void eddy_cuda_norm_bring(const eddy_cuda_normalisation &p, int operand,
                                           const eddy_cuda_norm_thread &thread,
                                           const eddy_cuda_norm_task &task,
                                           typename element::computed *to) {
    typedef typename element::stored stored;
    typedef eddy_cuda_words<EDDY_CUDA_VECTOR_BYTES>::type words_type;
    constexpr int width = EDDY_CUDA_VECTOR_BYTES / sizeof(stored);
    if (task.count == 0)
        return;
    const char *from =
        (const char *)p.data[operand] + eddy_cuda_offset(p.places, operand, task.place);
    int whole = 0;
    if (p.vectors >> operand & 1) {
        whole = task.count / width * width;
        EDDY_CUDA_UNROLLED
        for (int i = (int)thread.member * width; i < whole; i += (int)thread.members * width) {
            stored elements[width];
            const words_type words = *(const words_type *)((const stored *)from + task.begin + i);
            memcpy(elements, &words, sizeof(elements));
            for (int k = 0; k < width; k++)
                to[i + k] = element::load(elements[k]);
        }
    }
    if (p.elements.rank == 1) {
        const int64_t stride = p.elements.strides[operand][0];
        from += task.begin * stride;
        EDDY_CUDA_UNROLLED
        for (int i = whole + (int)thread.member; i < task.count; i += (int)thread.members)
            to[i] = element::load(*(const stored *)(from + i * stride));
        return;
    }
    EDDY_CUDA_ROLLED
    for (int i = (int)thread.member; i < task.count; i += (int)thread.members)
        to[i] = element::load(
            *(const stored *)(from + eddy_cuda_offset(p.elements, operand, task.begin + i)));
}

/* Writes result(i), of each element of a chunk. */
template <class element, class results>
EDDY_CUDA_MEMBER void eddy_cuda_norm_write(const eddy_cuda_normalisation &p, int operand,
                                           const eddy_cuda_norm_thread &thread,
                                           const eddy_cuda_norm_task &task, const results &result) {
    typedef typename element::stored stored;
    typedef eddy_cuda_words<EDDY_CUDA_VECTOR_BYTES>::type words_type;
    constexpr int width = EDDY_CUDA_VECTOR_BYTES / sizeof(stored);
    if (task.count == 0)
        return;
    char *to = (char *)p.data[operand] + eddy_cuda_offset(p.places, operand, task.place);
    int whole = 0;
    if (p.vectors >> operand & 1) {
        whole = task.count / width * width;
        EDDY_CUDA_ROLLED
        for (int i = (int)thread.member * width; i < whole; i += (int)thread.members * width) {
            stored elements[width];
            for (int k = 0; k < width; k++)
                elements[k] = element::store(result(i + k));
            words_type words;
            memcpy(&words, elements, sizeof(elements));
            *(words_type *)((stored *)to + task.begin + i) = words;
        }
    }
    EDDY_CUDA_ROLLED
    for (int i = whole + (int)thread.member; i < task.count; i += (int)thread.members)
        *(stored *)(to + eddy_cuda_offset(p.elements, operand, task.begin + i)) =
            element::store(result(i));
}

/* ---- sums ---- */

/* Of the lanes of a row. Right in the first. */
template <class real> EDDY_CUDA_MEMBER real eddy_cuda_norm_halve(uint32_t lanes, real lane) {
    EDDY_CUDA_ROLLED
    for (uint32_t half = lanes / 2; half > 0; half /= 2)
        lane += __shfl_down_sync(0xffffffffu, lane, half);
    return lane;
}

/* That of a row's first lane, in all of them. */
template <class real>
EDDY_CUDA_MEMBER real eddy_cuda_norm_share(const eddy_cuda_norm_thread &thread, real mine) {
    return __shfl_sync(0xffffffffu, mine, threadIdx.x % 32 / thread.members * thread.members);
}

/* The mean of a chunk and the squares of the distances from it. Right in a row's first thread. */
template <class real>
EDDY_CUDA_MEMBER eddy_norm_sums eddy_cuda_norm_moments(const eddy_cuda_normalisation &p,
                                                       const eddy_cuda_norm_thread &thread,
                                                       const real *x, int count) {
    const int step = (int)p.lanes, first = (int)thread.member, end = first < step ? count : 0;
    real sum = 0, distances = 0, squared = 0;
    EDDY_CUDA_UNROLLED
    for (int i = first; i < end; i += step)
        sum += x[i];
    const real shift =
        eddy_cuda_norm_share(thread, eddy_cuda_norm_halve(p.lanes, sum)) / (real)count;
    EDDY_CUDA_UNROLLED
    for (int i = first; i < end; i += step) {
        const real distance = x[i] - shift;
        distances += distance;
        squared += distance * distance;
    }
    distances = eddy_cuda_norm_halve(p.lanes, distances);
    squared = eddy_cuda_norm_halve(p.lanes, squared);
    if (first != 0)
        return {0, 0, 0, 0};
    const double all = (double)distances;
    const double rest = all / (double)count; /* mean - shift, the rounding error of shift */
    return {(double)shift + rest, (double)squared - rest * all, 0, 0};
}

template <class real>
EDDY_CUDA_MEMBER eddy_norm_sums eddy_cuda_norm_squares(const eddy_cuda_normalisation &p,
                                                       const eddy_cuda_norm_thread &thread,
                                                       const real *x, int count) {
    const int step = (int)p.lanes, end = (int)thread.member < step ? count : 0;
    real sum = 0;
    EDDY_CUDA_UNROLLED
    for (int i = (int)thread.member; i < end; i += step)
        sum += x[i] * x[i];
    return {0, (double)eddy_cuda_norm_halve(p.lanes, sum), 0, 0};
}

/* Adds the sums that the gradient needs; `slopes`: grad * weight. */
template <class real>
EDDY_CUDA_MEMBER void
eddy_cuda_norm_add_slopes(const eddy_cuda_normalisation &p, const eddy_cuda_norm_thread &thread,
                          const real *x, const real *slopes, int count, eddy_norm_sums *sums) {
    const int step = (int)p.lanes, end = (int)thread.member < step ? count : 0;
    const real shift = eddy_cuda_norm_share(thread, (real)sums->mean);
    real weighted = 0, distant = 0;
    EDDY_CUDA_UNROLLED
    for (int i = (int)thread.member; i < end; i += step) {
        weighted += slopes[i];
        distant += slopes[i] * (x[i] - shift);
    }
    sums->sum = (double)eddy_cuda_norm_halve(p.lanes, weighted);
    sums->product = (double)eddy_cuda_norm_halve(p.lanes, distant);
}

/* ---- statistics ---- */

EDDY_SCALAR double eddy_cuda_norm_scale(const eddy_cuda_normalisation &p, double variance) {
    return 1 / eddy_sqrt_f64(variance + p.eps);
}

EDDY_SCALAR eddy_cuda_norm_statistics eddy_cuda_norm_statistics_of(const eddy_cuda_normalisation &p,
                                                                   const eddy_norm_total &total) {
    const double n = (double)p.element_count;
    eddy_cuda_norm_statistics made = {total.sums.mean,
                                      eddy_cuda_norm_scale(p, total.sums.squares / n), 0, 0};
    if (!p.has_grad)
        return made;
    made.level = p.is_centred ? total.sums.sum / n : 0;
    made.slope =
        made.scale * made.scale * eddy_norm_product(&total, p.is_centred, p.element_count) / n;
    return made;
}

EDDY_SCALAR uint16_t eddy_cuda_norm_narrow(double value, const eddy_cuda_f16 *) {
    return EDDY_CAST_REAL64_TO_f16(value);
}
EDDY_SCALAR uint16_t eddy_cuda_norm_narrow(double value, const eddy_cuda_bf16 *) {
    return EDDY_CAST_REAL64_TO_bf16(value);
}
EDDY_SCALAR float eddy_cuda_norm_narrow(double value, const eddy_cuda_f32 *) {
    return (float)value;
}
EDDY_SCALAR double eddy_cuda_norm_narrow(double value, const eddy_cuda_f64 *) {
    return value;
}

template <class element>
EDDY_CUDA_MEMBER void eddy_cuda_norm_put(const eddy_cuda_norm_vector &to, int64_t i, double value) {
    char *at = (char *)to.data + i * to.step;
    if (sizeof(typename element::stored) == 2 && to.is_f32)
        *(float *)at = (float)value;
    else
        *(typename element::stored *)at = eddy_cuda_norm_narrow(value, (const element *)NULL);
}

template <class element>
EDDY_CUDA_MEMBER void eddy_cuda_norm_blend(const eddy_cuda_normalisation &p,
                                           const eddy_cuda_norm_vector &to, int64_t i,
                                           double value) {
    if (to.data)
        eddy_cuda_norm_put<element>(
            to, i,
            (1 - p.momentum) * (double)eddy_cuda_norm_number<element>(to, i) + p.momentum * value);
}

/* Blends a place's statistics into the caller's. */
template <class element>
EDDY_CUDA_MEMBER void eddy_cuda_norm_update(const eddy_cuda_normalisation &p, int64_t place,
                                            const eddy_norm_sums &sums) {
    eddy_cuda_norm_blend<element>(p, p.mean, place, sums.mean);
    eddy_cuda_norm_blend<element>(p, p.variance, place,
                                  sums.squares / ((double)p.element_count - 1));
}

/* ---- the kernels that bring chunks ---- */

typedef enum eddy_cuda_norm_form {
    EDDY_CUDA_NORM_WHOLE,
    EDDY_CUDA_NORM_PARTS,
    EDDY_CUDA_NORM_APPLY
} eddy_cuda_norm_form;

/* Of a block: chunks of x, and behind them those of grad * weight. */
template <class element, bool has_grad, eddy_cuda_norm_form form> struct eddy_cuda_norm_block {
    typedef typename element::computed real;
    const eddy_cuda_normalisation &p;
    real *const memory;
    eddy_cuda_norm_statistics *const statistics; /* of each row */

    EDDY_CUDA_MEMBER real *x(uint32_t row) const {
        return memory + row * p.row;
    }
    EDDY_CUDA_MEMBER real *slopes(uint32_t row) const {
        return memory + (p.abreast + row) * p.row;
    }

    /* Threads multiply others' elements, where vectors were brought. */
    EDDY_CUDA_MEMBER void bring(const eddy_cuda_norm_thread &thread,
                                const eddy_cuda_norm_task &task) const {
        eddy_cuda_norm_bring<element>(p, 0, thread, task, x(thread.row));
        if (!has_grad)
            return;
        real *to = slopes(thread.row);
        eddy_cuda_norm_bring<element>(p, 1, thread, task, to);
        if (!p.weight.data)
            return;
        __syncthreads();
        const int64_t first = eddy_cuda_norm_first_weight(p, task.place);
        EDDY_CUDA_ROLLED
        for (int i = (int)thread.member; i < task.count; i += (int)thread.members)
            to[i] = to[i] * eddy_cuda_norm_number<element>(
                                p.weight, first + eddy_cuda_norm_run_of(p, task.begin + i));
    }

    EDDY_CUDA_MEMBER void sum(const eddy_cuda_norm_thread &thread,
                              const eddy_cuda_norm_task &task) const {
        eddy_norm_sums sums = p.is_centred
                                  ? eddy_cuda_norm_moments(p, thread, x(thread.row), task.count)
                                  : eddy_cuda_norm_squares(p, thread, x(thread.row), task.count);
        if (has_grad)
            eddy_cuda_norm_add_slopes(p, thread, x(thread.row), slopes(thread.row), task.count,
                                      &sums);
        if (thread.member != 0 || task.count == 0)
            return;
        if (form == EDDY_CUDA_NORM_PARTS) {
            p.parts[task.chunk * p.place_count + task.place] = sums;
            return;
        }
        eddy_norm_total total = {};
        eddy_norm_join(&total, 0, &sums, task.count);
        statistics[thread.row] = eddy_cuda_norm_statistics_of(p, total);
        eddy_cuda_norm_update<element>(p, task.place, sums);
    }

    EDDY_CUDA_MEMBER void write(const eddy_cuda_norm_thread &thread,
                                const eddy_cuda_norm_task &task) const {
        const eddy_cuda_norm_statistics &of =
            form == EDDY_CUDA_NORM_APPLY ? p.statistics[task.place] : statistics[thread.row];
        if (task.count == 0)
            return;
        const real shift = (real)of.mean, by = (real)of.scale;
        const real *from = x(thread.row);
        if (has_grad) {
            const real less = (real)of.level, times = (real)of.slope, *slope = slopes(thread.row);
            eddy_cuda_norm_write<element>(p, 2, thread, task, [&](int i) {
                return by * (slope[i] - less - (from[i] - shift) * times);
            });
            return;
        }
        const int64_t first = eddy_cuda_norm_first_weight(p, task.place);
        eddy_cuda_norm_write<element>(p, 1, thread, task, [&](int i) {
            const int64_t at = first + eddy_cuda_norm_run_of(p, task.begin + i);
            return (from[i] - shift) * by * eddy_cuda_norm_number_or<element>(p.weight, at, 1) +
                   eddy_cuda_norm_number_or<element>(p.bias, at, 0);
        });
    }
};

template <class element, bool has_grad, eddy_cuda_norm_form form>
EDDY_CUDA_MEMBER void eddy_cuda_norm_run(const eddy_cuda_normalisation &p) {
    typedef typename element::computed real;
    EDDY_CUDA_SHARED(real, memory, EDDY_CUDA_NORM_BYTES / sizeof(real));
    EDDY_CUDA_SHARED(eddy_cuda_norm_statistics, statistics, EDDY_CUDA_NORM_ROWS);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const eddy_cuda_norm_block<element, has_grad, form> block = {p, memory, statistics};
    const eddy_cuda_norm_thread summing(p, false), moving(p, p.is_across);
    const int64_t tasks = p.place_count * p.chunk_count, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < tasks; first += step) {
        const eddy_cuda_norm_task task(p, first, moving.row);
        block.bring(moving, task);
        __syncthreads();
        if (form != EDDY_CUDA_NORM_APPLY) {
            block.sum(summing, eddy_cuda_norm_task(p, first, summing.row));
            __syncthreads();
        }
        if (form != EDDY_CUDA_NORM_PARTS) {
            block.write(moving, task);
            __syncthreads();
        }
    }
}

#endif
