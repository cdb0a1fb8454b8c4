/* The gradients of normalisations with respect to their weights, of the statistics of x: each weight's terms are added up in the order of places, in the CPU's blocks of
 * places. */
#include <kernels/cuda/norm.cuh>

/* ---- products: elements in a row that share a weight ---- */

/* A chunk's part of a run: elements [begin, end) of the chunk. None, if there is no such run in it. */
struct piece {
    int32_t begin, end;

    EDDY_CUDA_MEMBER piece(const eddy_cuda_normalisation &p, const eddy_cuda_norm_task &task,
                           int64_t run) {
        const int64_t first = run * p.segment - task.begin, last = first + p.segment;
        begin = (int32_t)(first < 0 ? 0 : first < task.count ? first : task.count);
        end = (int32_t)(last < task.count ? last : task.count);
    }
};

/* Of grad * (x - mean), of each piece of the row's chunk; 16 threads sum one. */
template <class real>
EDDY_CUDA_MEMBER void sum_pieces(const eddy_cuda_normalisation &p,
                                 const eddy_cuda_norm_thread &thread,
                                 const eddy_cuda_norm_task &task, const real *x, const real *grad) {
    const uint32_t lane = thread.member % EDDY_NORM_LANES,
                   at_once = thread.members / EDDY_NORM_LANES;
    const int64_t first = eddy_cuda_norm_run_of(p, task.begin);
    eddy_cuda_norm_statistics of = {0, 0, 0, 0};
    if (task.count > 0)
        of = p.statistics[task.place];
    const real shift = (real)of.mean;
    EDDY_CUDA_ROLLED
    for (uint32_t done = 0; done < p.runs_most; done += at_once) {
        const int64_t run = first + done + thread.member / EDDY_NORM_LANES;
        const piece own(p, task, run);
        real sum = 0;
        EDDY_CUDA_UNROLLED
        for (int i = own.begin + (int)lane; i < own.end; i += EDDY_NORM_LANES)
            sum += grad[i] * (x[i] - shift);
        sum = eddy_cuda_norm_halve(EDDY_NORM_LANES, sum);
        if (lane == 0 && own.begin < own.end)
            p.pieces[(task.place * p.runs + run) * p.pieces_most + task.chunk -
                     run * p.segment / EDDY_NORM_CHUNK] = of.scale * (double)sum;
    }
}

template <class element> EDDY_CUDA_MEMBER void products(const eddy_cuda_normalisation &p) {
    typedef typename element::computed real;
    EDDY_CUDA_SHARED(real, memory, EDDY_CUDA_NORM_BYTES / sizeof(real));
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const eddy_cuda_norm_block<element, true, EDDY_CUDA_NORM_PARTS> block = {p, memory, NULL};
    const eddy_cuda_norm_thread summing(p, false), moving(p, p.is_across);
    const int64_t tasks = p.place_count * p.chunk_count, step = (int64_t)gridDim.x * p.abreast;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * p.abreast; first < tasks; first += step) {
        block.bring(moving, eddy_cuda_norm_task(p, first, moving.row));
        __syncthreads();
        sum_pieces(p, summing, eddy_cuda_norm_task(p, first, summing.row), block.x(summing.row),
                   block.slopes(summing.row));
        __syncthreads();
    }
}

/* ---- sums over places ---- */

/* The term of a place, of one element of it. */
template <class element>
EDDY_CUDA_MEMBER double term_of(const eddy_cuda_normalisation &p, int64_t place, int64_t number) {
    typedef typename element::computed real;
    real values[2];
    for (int k = 0; k < 2; k++)
        values[k] = element::load(
            *(const typename element::stored *)((const char *)p.data[k] +
                                                eddy_cuda_offset(p.places, k, place) +
                                                eddy_cuda_offset(p.elements, k, number)));
    const eddy_cuda_norm_statistics of = p.statistics[place];
    return (double)(values[1] * ((values[0] - (real)of.mean) * (real)of.scale));
}

/* The sum of a weight's terms in a block of places, to which those of a place that has run number `run` are added. */
template <class element>
EDDY_CUDA_MEMBER double sum_of(const eddy_cuda_normalisation &p, int64_t place, int64_t end,
                               int64_t run) {
    double sum = 0;
    const int64_t pieces =
        ((run + 1) * p.segment - 1) / EDDY_NORM_CHUNK - run * p.segment / EDDY_NORM_CHUNK + 1;
    if (!p.pieces) {
        EDDY_CUDA_UNROLLED
        for (; place < end; place += p.period)
            sum += term_of<element>(p, place, run);
        return sum;
    }
    EDDY_CUDA_ROLLED
    for (; place < end; place += p.period) {
        const double *own = p.pieces + (place * p.runs + run) * p.pieces_most;
        EDDY_CUDA_UNROLLED
        for (int64_t k = 0; k < pieces; k++)
            sum += own[k];
    }
    return sum;
}

template <class element> EDDY_CUDA_MEMBER void weights(const eddy_cuda_normalisation &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t all = p.weight_count * p.block_count, step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < all; n += step) {
        const int64_t block = n / p.weight_count, weight = n - block * p.weight_count;
        const int64_t begin = p.place_count * block / p.block_count,
                      end = p.place_count * (block + 1) / p.block_count;
        const int64_t with_it = weight / p.runs; /* the first place that has it */
        const int64_t ahead = (with_it - begin % p.period + p.period) % p.period;
        const double sum = sum_of<element>(p, begin + ahead, end, weight - with_it * p.runs);
        if (p.block_count == 1)
            eddy_cuda_norm_put<element>(p.out, weight, sum);
        else
            p.partials[n] = sum;
    }
}

/* Of all blocks, in order. */
template <class element> EDDY_CUDA_MEMBER void add(const eddy_cuda_normalisation &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t weight = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; weight < p.weight_count;
         weight += step) {
        double sum = p.partials[weight];
        EDDY_CUDA_UNROLLED
        for (int64_t block = 1; block < p.block_count; block++)
            sum += p.partials[block * p.weight_count + weight];
        eddy_cuda_norm_put<element>(p.out, weight, sum);
    }
}

#define NORM(of, of_dtype, unused)                                                                 \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_products_##of, eddy_cuda_normalisation) {                     \
        products<eddy_cuda_##of>(parameters);                                                      \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_norm_weights_##of, eddy_cuda_normalisation) {                            \
        weights<eddy_cuda_##of>(parameters);                                                       \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_norm_add_##of, eddy_cuda_normalisation) {                                \
        add<eddy_cuda_##of>(parameters);                                                           \
    }
EDDY_CUDA_NORM_DTYPES(NORM, )
