/* argmax, argmin, max_dim and min_dim: the first of the largest (smallest) elements; NaN comes before all numbers. */
#include <kernels/cuda/reduce.cuh>

/* The lowest index wins among equals, so that the order in which pairs are joined does not show. */
template <class type> struct found {
    type best;
    int64_t index;
};
static_assert(sizeof(found<float>) == EDDY_CUDA_SEARCH_BYTES &&
                  sizeof(found<int64_t>) == EDDY_CUDA_SEARCH_BYTES,
              "partials are as long as the host takes them to be");

template <class type> EDDY_CUDA_MEMBER bool is_number(type x) {
    return x == x;
}

#define SEARCHING(name, nothing_value, comparison)                                                 \
    template <class type> struct searching_##name {                                                \
        typedef typename type::value real;                                                         \
        typedef found<real> value;                                                                 \
        static EDDY_CUDA_MEMBER value nothing() {                                                  \
            return {nothing_value, INT64_MAX};                                                     \
        }                                                                                          \
        static EDDY_CUDA_MEMBER bool is_better(real a, real b) {                                   \
            return a comparison b || (!is_number(a) && is_number(b));                              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value join(value a, value b) {                                     \
            const bool takes_first =                                                               \
                is_better(a.best, b.best) || (!is_better(b.best, a.best) && a.index < b.index);    \
            return takes_first ? a : b;                                                            \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value identity() {                                                 \
            return nothing();                                                                      \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value finish(value x, const eddy_cuda_reduce &) {                  \
            return x;                                                                              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER int64_t store(value x) {                                           \
            return x.index;                                                                        \
        }                                                                                          \
    };
SEARCHING(argmax, type::lowest(), >)
SEARCHING(argmin, type::highest(), <)

#define SEARCH(op, of, of_dtype, compute)                                                          \
    struct op##_##of : searching_##op<eddy_cuda_type_##compute> {                                  \
        typedef eddy_cuda_##of element;                                                            \
        typedef eddy_cuda_one_sweep<op##_##of> block;                                              \
        typedef int64_t result;                                                                    \
        static EDDY_CUDA_MEMBER value take(typename element::computed x, int64_t index) {          \
            return {(real)x, index};                                                               \
        }                                                                                          \
        static EDDY_CUDA_MEMBER void store_best(const eddy_cuda_reduce &p, int64_t output,         \
                                                value x) {                                         \
            if (p.best)                                                                            \
                *(element::stored *)((char *)p.best + eddy_cuda_offset(p.kept, 2, output)) =       \
                    element::store((element::computed)x.best);                                     \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, strided, op##_##of)                               \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, join, op##_##of)
EDDY_CUDA_SEARCHES(SEARCH)
