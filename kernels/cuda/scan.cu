/* cumsum, cumprod and the gradient of cumprod. */
#include <kernels/cuda/joining.cuh>
#include <kernels/cuda/scan.h>

#define THREADS 256
#define WARP 32

/* ---- tasks ---- */

/* Elements of one block of a line; none beyond the tasks. */
struct task {
    const char *in[2];
    char *out;
    int64_t count;

    EDDY_CUDA_MEMBER void find(const eddy_cuda_scan_call &p, int inputs, int64_t number) {
        const int64_t block = number / p.lines.lines, line = number - block * p.lines.lines,
                      begin = block * p.length, left = p.lines.count - begin;
        count = block >= p.blocks ? 0 : left < p.length ? left : p.length;
        if (count == 0)
            return;
        out = (char *)p.out + eddy_cuda_offset(p.lines.dims, 0, line) + begin * p.lines.strides[0];
        for (int k = 0; k < inputs; k++)
            in[k] = (const char *)p.in[k] + eddy_cuda_offset(p.lines.dims, k + 1, line) +
                    begin * p.lines.strides[k + 1];
    }
};

/* The tasks of a block of threads, one each, and their next elements, `step` of each. Where neighbouring lines are neighbours in memory each thread reads and writes its
 * own; else the threads of a warp together do so for one line after the other, so that neighbours are read at once. All threads of a warp call a function together. */
template <class value> struct window {
    static constexpr int step = EDDY_CUDA_SCAN_STEP;
    task *tasks;                 /* of the whole block of threads */
    value (*elements)[step + 1]; /* one more, so that neighbouring lines lie in different banks */
    const eddy_cuda_scan_call &p;

    EDDY_CUDA_MEMBER int64_t own_count() const {
        return tasks[threadIdx.x].count;
    }
    /* Of a step's move number k: whose element, and which. */
    EDDY_CUDA_MEMBER uint32_t owner(int k) const {
        const uint32_t lane = threadIdx.x % WARP;
        return p.lines.is_across ? threadIdx.x : threadIdx.x - lane + (k * WARP + lane) / step;
    }
    EDDY_CUDA_MEMBER int place(int k) const {
        return p.lines.is_across ? k : (int)((k * WARP + threadIdx.x % WARP) % step);
    }
    EDDY_CUDA_MEMBER void find(int inputs, int64_t number) {
        __syncwarp();
        tasks[threadIdx.x].find(p, inputs, number);
        __syncwarp();
    }
    /* Elements from `begin` on of an input to x, `nothing` behind the last. All loads are on their way before the first is used. */
    template <class element>
    EDDY_CUDA_MEMBER void fetch(int input, int64_t begin, value nothing, value *x) {
        for (int k = 0; k < step; k++) {
            const task &of = tasks[owner(k)];
            const int64_t i = begin + place(k);
            x[k] = nothing;
            if (i < of.count)
                x[k] = (value)element::load(
                    *(const typename element::stored *)(of.in[input] +
                                                        i * p.lines.strides[input + 1]));
        }
        if (p.lines.is_across)
            return;
        for (int k = 0; k < step; k++)
            elements[owner(k)][place(k)] = x[k];
        __syncwarp();
        for (int k = 0; k < step; k++)
            x[k] = elements[threadIdx.x][k];
        __syncwarp();
    }
    /* The other way round; `store` makes an element of the output of a value. */
    template <class storing> EDDY_CUDA_MEMBER void put(int64_t begin, const value *x) {
        if (!p.lines.is_across) {
            for (int k = 0; k < step; k++)
                elements[threadIdx.x][k] = x[k];
            __syncwarp();
        }
        for (int k = 0; k < step; k++) {
            const task &of = tasks[owner(k)];
            const int64_t i = begin + place(k);
            if (i < of.count)
                *(typename storing::result *)(of.out + i * p.lines.strides[0]) =
                    storing::store(p.lines.is_across ? x[k] : elements[owner(k)][place(k)]);
        }
        __syncwarp();
    }
};

#define WINDOW(name, value)                                                                        \
    EDDY_CUDA_SHARED(task, tasks, THREADS);                                                        \
    typedef value window_elements[EDDY_CUDA_SCAN_STEP + 1];                                        \
    EDDY_CUDA_SHARED(window_elements, elements, THREADS);                                          \
    window<value> name = {tasks, elements, p}

/* ---- sums and products ---- */

template <class op> EDDY_CUDA_MEMBER void run_scan(const eddy_cuda_scan_call &p) {
    typedef typename op::value value;
    constexpr int step = EDDY_CUDA_SCAN_STEP;
    WINDOW(own, value);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t count = p.lines.lines * p.blocks, threads = (int64_t)gridDim.x * THREADS;
    value *const totals = (value *)p.totals;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < count; first += threads) {
        const int64_t number = first + threadIdx.x;
        own.find(1, number);
        value total = op::nothing(), before = op::nothing();
        if (p.blocks > 1 && !p.finds_totals && number < count)
            before = totals[number];
        EDDY_CUDA_ROLLED
        for (int64_t begin = 0; begin < p.length; begin += step) {
            value x[step];
            own.template fetch<typename op::element>(0, begin, op::nothing(), x);
            for (int k = 0; k < step; k++) {
                total = op::join(total, x[k]);
                x[k] = op::join(before, total);
            }
            if (!p.finds_totals)
                own.template put<op>(begin, x);
        }
        if (p.finds_totals && number < count)
            totals[number] = total;
    }
}

/* Of each line the totals before its blocks, in place of those of the blocks. */
template <class joining> EDDY_CUDA_MEMBER void run_join(const eddy_cuda_scan_call &p) {
    typedef typename joining::value value;
    constexpr int step = EDDY_CUDA_SCAN_STEP;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x, lines = p.lines.lines;
    EDDY_CUDA_ROLLED
    for (int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; line < lines;
         line += threads) {
        value *const totals = (value *)p.totals + line;
        value before = joining::nothing();
        EDDY_CUDA_ROLLED
        for (int64_t begin = 0; begin < p.blocks; begin += step) {
            value x[step];
            for (int k = 0; k < step; k++)
                x[k] = begin + k < p.blocks ? totals[(begin + k) * lines] : joining::nothing();
            for (int k = 0; k < step; k++) {
                if (begin + k < p.blocks)
                    totals[(begin + k) * lines] = before;
                before = joining::join(before, x[k]);
            }
        }
    }
}

/* ---- the gradient of cumprod ----
 *
 * The CPU's (kernels/cpu/reduce/scan.c): p[k] s[k], with p[k] the product of all elements before k, and s[k] = grad[k] + x[k + 1] s[k + 1]. The products are found step
 * by step on the way there, and within each step again on the way back. Behind the last element is 1 with the gradient 0, which changes neither. */

template <class op> EDDY_CUDA_MEMBER void run_backward(const eddy_cuda_scan_call &p) {
    constexpr int step = EDDY_CUDA_SCAN_STEP;
    WINDOW(own, double);
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t lines = p.lines.lines, threads = (int64_t)gridDim.x * THREADS,
                  last = (p.lines.count - 1) / step * step;
    EDDY_CUDA_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < lines; first += threads) {
        double *const products = (double *)p.totals + first + threadIdx.x;
        double product = 1, after = 0, x[step], grad[step], before[step];
        own.find(2, first + threadIdx.x);
        EDDY_CUDA_ROLLED
        for (int64_t begin = 0; begin <= last; begin += step) {
            own.template fetch<typename op::element>(1, begin, 1, x);
            if (own.own_count() > 0)
                products[begin / step * lines] = product;
            for (int k = 0; k < step; k++)
                product *= x[k];
        }
        EDDY_CUDA_ROLLED
        for (int64_t begin = last; begin >= 0; begin -= step) {
            own.template fetch<typename op::element>(0, begin, 0, grad);
            own.template fetch<typename op::element>(1, begin, 1, x);
            before[0] = own.own_count() > 0 ? products[begin / step * lines] : 1;
            for (int k = 1; k < step; k++)
                before[k] = before[k - 1] * x[k - 1];
            for (int k = step - 1; k >= 0; k--) {
                const double sum = grad[k] + after;
                after = x[k] * sum;
                /* Behind a zero the gradient is 0, even if the sum has overflowed. */
                grad[k] = before[k] == 0 ? 0 : before[k] * sum;
            }
            own.template put<op>(begin, grad);
        }
    }
}

/* ---- the kernels ---- */

#define JOINING_cumsum eddy_cuda_joining_sum
#define JOINING_cumprod eddy_cuda_joining_prod

#define SCAN(op, of, of_dtype, compute, result_type)                                               \
    struct op##_##of : JOINING_##op<eddy_cuda_type_##compute> {                                    \
        typedef eddy_cuda_##of element;                                                            \
        typedef eddy_cuda_##result_type::stored result;                                            \
        static EDDY_CUDA_MEMBER result store(value x) {                                            \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_##compute, result_type)(x);              \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of, eddy_cuda_scan_call) {                                \
        run_scan<op##_##of>(parameters);                                                           \
    }
EDDY_CUDA_SCANS(SCAN)

EDDY_CUDA_KERNEL(eddy_scan_join_f64, eddy_cuda_scan_call) {
    run_join<eddy_cuda_joining_sum<eddy_cuda_type_f64>>(parameters);
}
EDDY_CUDA_KERNEL(eddy_scan_join_i64, eddy_cuda_scan_call) {
    run_join<eddy_cuda_joining_sum<eddy_cuda_type_i64>>(parameters);
}

#define BACKWARD(op, of, of_dtype)                                                                 \
    struct op##_##of {                                                                             \
        typedef eddy_cuda_##of element;                                                            \
        typedef element::stored result;                                                            \
        static EDDY_CUDA_MEMBER result store(double x) {                                           \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_f64, of)(x);                             \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_BLOCK_KERNEL(eddy_##op##_##of, eddy_cuda_scan_call) {                                \
        run_backward<op##_##of>(parameters);                                                       \
    }
EDDY_CUDA_SCANS_BACKWARD(BACKWARD)
