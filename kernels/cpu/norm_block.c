#include <kernels/cpu/norm_block.h>

#define LANES EDDY_NORM_LANES

/* sum += TERM(i) for all i, in lanes that are then halved. */
#define SUM(real, sum, TERM)                                                                                           \
    do {                                                                                                               \
        real lanes_[LANES] = {0};                                                                                      \
        int64_t i_ = 0;                                                                                                \
        for (; i_ + LANES <= count; i_ += LANES)                                                                       \
            for (int l_ = 0; l_ < LANES; l_++)                                                                         \
                lanes_[l_] += TERM(i_ + l_);                                                                           \
        for (int l_ = 0; i_ + l_ < count; l_++)                                                                        \
            lanes_[l_] += TERM(i_ + l_);                                                                               \
        for (int half_ = LANES / 2; half_ > 0; half_ /= 2)                                                             \
            for (int l_ = 0; l_ < half_; l_++)                                                                         \
                lanes_[l_] += lanes_[l_ + half_];                                                                      \
        sum = lanes_[0];                                                                                               \
    } while (0)

#define NORM(name, real)                                                                                               \
    static void moments_##name(const void *data, int64_t count, double *mean, double *squares) {                       \
        const real *restrict x = data;                                                                                 \
        real sum, square_sum;                                                                                          \
        SUM(real, sum, ELEMENT);                                                                                       \
        real shift = sum / (real)count;                                                                                \
        SUM(real, sum, DISTANCE);                                                                                      \
        SUM(real, square_sum, SQUARED_DISTANCE);                                                                       \
        double rest = (double)sum / (double)count; /* what rounding left between shift and the mean */                 \
        *mean = (double)shift + rest;                                                                                  \
        *squares = (double)square_sum - rest * (double)sum;                                                            \
    }                                                                                                                  \
    static double square_sum_##name(const void *data, int64_t count) {                                                 \
        const real *restrict x = data;                                                                                 \
        real sum;                                                                                                      \
        SUM(real, sum, SQUARE);                                                                                        \
        return (double)sum;                                                                                            \
    }                                                                                                                  \
    static void apply_##name(void *data, const void *weight, const void *bias, double mean, double scale,              \
                             int64_t count) {                                                                          \
        real *restrict x = data, shift = (real)mean, by = (real)scale;                                                 \
        const real *restrict w = weight, *restrict b = bias;                                                           \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = (x[i] - shift) * by * w[i] + b[i];                                                                  \
    }                                                                                                                  \
    static void products_##name(const void *grad, const void *data, const void *weight, double from, int64_t count,    \
                                double sums[2]) {                                                                      \
        const real *restrict g = grad, *restrict x = data, *restrict w = weight;                                       \
        real shift = (real)from, sum, product;                                                                         \
        SUM(real, sum, WEIGHTED);                                                                                      \
        SUM(real, product, WEIGHTED_PRODUCT);                                                                          \
        sums[0] = (double)sum;                                                                                         \
        sums[1] = (double)product;                                                                                     \
    }                                                                                                                  \
    static double product_##name(const void *grad, const void *data, double from, int64_t count) {                     \
        const real *restrict g = grad, *restrict x = data;                                                             \
        real shift = (real)from, product;                                                                              \
        SUM(real, product, PRODUCT);                                                                                   \
        return (double)product;                                                                                        \
    }                                                                                                                  \
    static void backward_##name(void *grad, const void *data, const void *weight, double mean, double scale,           \
                                double level, double slope, int64_t count) {                                           \
        real *restrict g = grad, shift = (real)mean, by = (real)scale, less = (real)level, times = (real)slope;        \
        const real *restrict x = data, *restrict w = weight;                                                           \
        for (int64_t i = 0; i < count; i++)                                                                            \
            g[i] = by * (g[i] * w[i] - less - (x[i] - shift) * times);                                                 \
    }                                                                                                                  \
    static void accumulate_##name(double *restrict into, const void *grad, const void *data, double mean,              \
                                  double scale, int64_t count) {                                                       \
        const real *restrict g = grad, *restrict x = data;                                                             \
        real shift = (real)mean, by = (real)scale;                                                                     \
        for (int64_t i = 0; i < count; i++)                                                                            \
            into[i] += (double)(g[i] * ((x[i] - shift) * by));                                                         \
    }

#define ELEMENT(i) x[i]
#define SQUARE(i) (x[i] * x[i])
#define DISTANCE(i) (x[i] - shift)
#define SQUARED_DISTANCE(i) ((x[i] - shift) * (x[i] - shift))
#define WEIGHTED(i) (g[i] * w[i])
#define WEIGHTED_PRODUCT(i) (g[i] * w[i] * (x[i] - shift))
#define PRODUCT(i) (g[i] * (x[i] - shift))

NORM(f32, float)
NORM(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        moments_##name, square_sum_##name, apply_##name, products_##name, product_##name, backward_##name,             \
            accumulate_##name                                                                                          \
    }
const eddy_norm_blocks EDDY_ISA_NAME(eddy_cpu_norm_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
