/* The kernels of a reduction: of contiguous rows, of any strides, and the one that joins what splits have left. */
#ifndef EDDY_KERNELS_CUDA_REDUCE_CUH
#define EDDY_KERNELS_CUDA_REDUCE_CUH

#include <kernels/cast.h>
#include <kernels/cuda/dims.cuh>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/reduce.h>

/* Threads of a block, and values that it keeps. */
#define EDDY_CUDA_REDUCE_THREADS 256

/* ---- types ---- */

/* In which is computed: of a value, and of one in which sums and products of integers wrap around. Values of bool are words, which shuffles take. */
#define EDDY_CUDA_TYPE(tag, type, wrapping_type, lowest_value, highest_value)                      \
    struct eddy_cuda_type_##tag {                                                                  \
        typedef type value;                                                                        \
        typedef wrapping_type wrapping;                                                            \
        static EDDY_CUDA_MEMBER value lowest() {                                                   \
            return lowest_value;                                                                   \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value highest() {                                                  \
            return highest_value;                                                                  \
        }                                                                                          \
    };
EDDY_CUDA_TYPE(f32, float, float, -EDDY_INF_f32, EDDY_INF_f32)
EDDY_CUDA_TYPE(f64, double, double, -EDDY_INF_f64, EDDY_INF_f64)
EDDY_CUDA_TYPE(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
EDDY_CUDA_TYPE(truth, int32_t, int32_t, 0, 1)
#undef EDDY_CUDA_TYPE

/* ---- a block of threads ---- */

/* What a thread works on. */
struct eddy_cuda_part {
    uint32_t place, member, number;   /* within the lanes, the team, and the tasks at once */
    uint32_t place_step, member_step; /* threads from place to place, from member to member */

    EDDY_CUDA_MEMBER explicit eddy_cuda_part(const eddy_cuda_reduce &p) {
        const uint32_t t = threadIdx.x;
        place_step = p.is_across ? p.abreast : 1;
        member_step = place_step * p.places;
        number = p.is_across ? t % p.abreast : t / (p.places * p.team);
        place = t / place_step % p.places;
        member = t / member_step % p.team;
    }
    EDDY_CUDA_MEMBER bool is_first() const {
        return place == 0 && member == 0;
    }
};

/* A thread's block of elements in the task number `first` + its own: [begin, begin + count) of the output. Beyond the tasks, or the output, there are none. */
struct eddy_cuda_task {
    int64_t number, output, begin, count;

    EDDY_CUDA_MEMBER eddy_cuda_task(const eddy_cuda_reduce &p, const eddy_cuda_part &part,
                                    int64_t tasks, int64_t first) {
        number = first + part.number;
        const int64_t split = p.splits == 1 ? 0 : number / p.outputs;
        output = number - split * p.outputs;
        begin = (split * p.team + part.member) * EDDY_CUDA_REDUCE_BLOCK;
        const int64_t left = number < tasks && begin < p.count ? p.count - begin : 0;
        count = left < EDDY_CUDA_REDUCE_BLOCK ? left : EDDY_CUDA_REDUCE_BLOCK;
    }
};

/* Joins the values of the threads, pairs of neighbours first. Those of the first member are left with the whole. */
template <class op>
EDDY_CUDA_MEMBER typename op::value eddy_cuda_join_team(const eddy_cuda_reduce &p,
                                                        const eddy_cuda_part &part,
                                                        typename op::value mine) {
    EDDY_CUDA_SHARED(typename op::value, values, EDDY_CUDA_REDUCE_THREADS);
    if (p.team == 1)
        return mine;
    values[threadIdx.x] = mine;
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (uint32_t apart = 1; apart < p.team; apart *= 2) {
        if (part.place == 0 && part.member % (2 * apart) == 0) {
            mine = op::join(mine, values[threadIdx.x + apart * part.member_step]);
            values[threadIdx.x] = mine;
        }
        __syncthreads();
    }
    return mine;
}

/* Part of all ops that have one output. */
struct eddy_cuda_one_output {
    template <class value>
    static EDDY_CUDA_MEMBER void store_best(const eddy_cuda_reduce &, int64_t, value) {
    }
};

/* The result of an output, of what is left of the tree. */
template <class op>
EDDY_CUDA_MEMBER void eddy_cuda_store_result(const eddy_cuda_reduce &p, int64_t output,
                                             typename op::value whole) {
    if (p.count == 0)
        whole = op::identity();
    *(typename op::result *)((char *)p.out + eddy_cuda_offset(p.kept, 1, output)) =
        op::store(op::finish(whole, p));
    op::store_best(p, output, whole);
}

template <class op>
EDDY_CUDA_MEMBER void eddy_cuda_store_split(const eddy_cuda_reduce &p, int64_t task,
                                            typename op::value whole) {
    if (p.splits == 1)
        eddy_cuda_store_result<op>(p, task, whole);
    else
        ((typename op::value *)p.partials)[task] = whole;
}

/* ---- contiguous elements ---- */

/* Neighbouring lanes of one thread: as many elements as it reads at once. */
template <class op, int width> struct eddy_cuda_lane_group {
    typedef typename op::value value;
    typedef typename op::element::stored stored;
    value lane[width];

    EDDY_CUDA_MEMBER eddy_cuda_lane_group() {
        for (int k = 0; k < width; k++)
            lane[k] = op::nothing();
    }
    EDDY_CUDA_MEMBER void join_whole(const stored *x) {
        typedef typename eddy_cuda_words<EDDY_CUDA_VECTOR_BYTES>::type words_type;
        stored elements[width];
        const words_type words = *(const words_type *)x;
        memcpy(elements, &words, sizeof(elements));
        for (int k = 0; k < width; k++)
            lane[k] = op::join(lane[k], op::take(op::element::load(elements[k]), 0));
    }
    EDDY_CUDA_MEMBER void join_some(const stored *x, int64_t count) {
        for (int k = 0; k < width; k++)
            if (k < count)
                lane[k] = op::join(lane[k], op::take(op::element::load(x[k]), 0));
    }
    /* A block's elements from the thread's own on: `step` of them are one each lane's. */
    EDDY_CUDA_MEMBER void join_block(const stored *x, int64_t left, int step, bool is_aligned) {
        if (is_aligned && left > EDDY_CUDA_REDUCE_BLOCK - EDDY_CUDA_REDUCE_LANES) {
            EDDY_CUDA_UNROLLED
            for (int r = 0; r < EDDY_CUDA_REDUCE_BLOCK / EDDY_CUDA_REDUCE_LANES - 1; r++)
                join_whole(x + r * EDDY_CUDA_REDUCE_LANES);
            x += EDDY_CUDA_REDUCE_BLOCK - EDDY_CUDA_REDUCE_LANES;
            left -= EDDY_CUDA_REDUCE_BLOCK - EDDY_CUDA_REDUCE_LANES;
        }
        EDDY_CUDA_ROLLED
        for (; left > 0; left -= step, x += step) {
            if (is_aligned && left >= width)
                join_whole(x);
            else
                join_some(x, left);
        }
    }
    /* Lanes of half the places away, a quarter, ..., then of this thread. Right in the first place. */
    EDDY_CUDA_MEMBER value halve(uint32_t places) {
        EDDY_CUDA_ROLLED
        for (uint32_t half = places / 2; half > 0; half /= 2)
            for (int k = 0; k < width; k++)
                lane[k] = op::join(lane[k], __shfl_down_sync(0xffffffffu, lane[k], half));
        for (int half = width / 2; half > 0; half /= 2)
            for (int k = 0; k < half; k++)
                lane[k] = op::join(lane[k], lane[k + half]);
        return lane[0];
    }
};

/* Elements of each output are contiguous. Not across. */
template <class op> EDDY_CUDA_MEMBER void eddy_cuda_reduce_rows(const eddy_cuda_reduce &p) {
    typedef typename op::element::stored stored;
    constexpr int width = EDDY_CUDA_VECTOR_BYTES / sizeof(stored);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const eddy_cuda_part part(p);
    const int64_t tasks = p.outputs * p.splits, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < tasks; first += step) {
        const eddy_cuda_task task(p, part, tasks, first);
        eddy_cuda_lane_group<op, width> lanes;
        if (task.count > 0) {
            const stored *row =
                (const stored *)((const char *)p.in + eddy_cuda_offset(p.kept, 0, task.output));
            lanes.join_block(row + task.begin + part.place * width,
                             task.count - (int64_t)part.place * width, (int)p.places * width,
                             p.is_aligned);
        }
        const typename op::value whole = eddy_cuda_join_team<op>(p, part, lanes.halve(p.places));
        if (task.number < tasks && part.is_first())
            eddy_cuda_store_split<op>(p, task.number, whole);
    }
}

/* ---- any strides ---- */

/* One lane of a thread: what `take` makes of each element and its number. */
template <class op, class taking>
EDDY_CUDA_MEMBER typename op::value
eddy_cuda_strided_lane(const eddy_cuda_reduce &p, const eddy_cuda_part &part, const char *in,
                       int64_t begin, int64_t end, const taking &take) {
    typedef typename op::element element;
    typedef typename element::stored stored;
    const int64_t stride = p.reduced.strides[0][0];
    typename op::value lane = op::nothing();
    if (p.reduced.rank == 1) {
        EDDY_CUDA_UNROLLED
        for (int64_t i = begin + part.place; i < end; i += p.places)
            lane = op::join(lane, take(element::load(*(const stored *)(in + i * stride)), i));
        return lane;
    }
    EDDY_CUDA_ROLLED
    for (int64_t i = begin + part.place; i < end; i += p.places) {
        const char *at = in + eddy_cuda_offset(p.reduced, 0, i);
        lane = op::join(lane, take(element::load(*(const stored *)at), i));
    }
    return lane;
}

/* Right in the first place. */
template <class op>
EDDY_CUDA_MEMBER typename op::value
eddy_cuda_halve(const eddy_cuda_reduce &p, const eddy_cuda_part &part, typename op::value lane) {
    EDDY_CUDA_SHARED(typename op::value, values, EDDY_CUDA_REDUCE_THREADS);
    EDDY_CUDA_ROLLED
    for (uint32_t half = p.places / 2; half > 0; half /= 2) {
        values[threadIdx.x] = lane;
        __syncthreads();
        if (part.place < half)
            lane = op::join(lane, values[threadIdx.x + half * part.place_step]);
        __syncthreads();
    }
    return lane;
}

/* That of the first place, in all places: what a further sweep is about. */
template <class value>
EDDY_CUDA_MEMBER value eddy_cuda_share(const eddy_cuda_part &part, value mine) {
    EDDY_CUDA_SHARED(value, values, EDDY_CUDA_REDUCE_THREADS);
    values[threadIdx.x] = mine;
    __syncthreads();
    mine = values[threadIdx.x - part.place * part.place_step];
    __syncthreads();
    return mine;
}

/* How most ops reduce a block: `op::take` in one sweep. */
template <class op> struct eddy_cuda_one_sweep {
    struct taking {
        EDDY_CUDA_MEMBER typename op::value operator()(typename op::element::computed x,
                                                       int64_t index) const {
            return op::take(x, index);
        }
    };
    static EDDY_CUDA_MEMBER typename op::value reduce(const eddy_cuda_reduce &p,
                                                      const eddy_cuda_part &part, const char *in,
                                                      int64_t begin, int64_t end) {
        return eddy_cuda_halve<op>(p, part,
                                   eddy_cuda_strided_lane<op>(p, part, in, begin, end, taking()));
    }
};

template <class op> EDDY_CUDA_MEMBER void eddy_cuda_reduce_strided(const eddy_cuda_reduce &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const eddy_cuda_part part(p);
    const int64_t tasks = p.outputs * p.splits, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < tasks; first += step) {
        const eddy_cuda_task task(p, part, tasks, first);
        const char *in = (const char *)p.in;
        if (task.count > 0)
            in += eddy_cuda_offset(p.kept, 0, task.output);
        const typename op::value whole = eddy_cuda_join_team<op>(
            p, part, op::block::reduce(p, part, in, task.begin, task.begin + task.count));
        if (task.number < tasks && part.is_first())
            eddy_cuda_store_split<op>(p, task.number, whole);
    }
}

/* ---- splits ---- */

/* Joins the partials of each output in place, those of neighbouring outputs by neighbouring threads. A split is a block of the tree, or a whole subtree. */
template <class op> EDDY_CUDA_MEMBER void eddy_cuda_reduce_join(const eddy_cuda_reduce &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    typename op::value *const partials = (typename op::value *)p.partials;
    const int64_t place = threadIdx.x / p.abreast, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < p.outputs; first += step) {
        const int64_t output = first + threadIdx.x % p.abreast;
        EDDY_CUDA_ROLLED
        for (int64_t apart = 1; apart < p.splits; apart *= 2) {
            EDDY_CUDA_ROLLED
            for (int64_t s = 2 * apart * place; output < p.outputs && s + apart < p.splits;
                 s += 2 * apart * p.places) {
                typename op::value *const into = &partials[s * p.outputs + output];
                *into = op::join(*into, into[apart * p.outputs]);
            }
            __syncthreads();
        }
        if (output < p.outputs && place == 0)
            eddy_cuda_store_result<op>(p, output, partials[output]);
    }
}

/* EDDY_CUDA_REDUCTION(stem, op): the three kernels. Who compiles them for the host may note what they touch (tests/fake_cuda/kernels/grid.h). */
#ifndef EDDY_CUDA_NOTE_REDUCTION
#define EDDY_CUDA_NOTE_REDUCTION(name, form, ...)
#endif
#define EDDY_CUDA_REDUCTION_KERNEL(stem, form, ...)                                                \
    EDDY_CUDA_NOTE_REDUCTION(stem##_##form, form, __VA_ARGS__)                                     \
    EDDY_CUDA_BLOCK_KERNEL(stem##_##form, eddy_cuda_reduce) {                                      \
        eddy_cuda_reduce_##form<__VA_ARGS__>(parameters);                                          \
    }
#define EDDY_CUDA_REDUCTION(stem, ...)                                                             \
    EDDY_CUDA_REDUCTION_KERNEL(stem, rows, __VA_ARGS__)                                            \
    EDDY_CUDA_REDUCTION_KERNEL(stem, strided, __VA_ARGS__)                                         \
    EDDY_CUDA_REDUCTION_KERNEL(stem, join, __VA_ARGS__)

#endif
