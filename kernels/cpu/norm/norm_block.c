#include <kernels/cpu/lanes.h>
#include <kernels/cpu/norm/norm_block.h>
#include <math.h>

#define LANES EDDY_NORM_LANES

#define INLINE static inline __attribute__((always_inline))

#define ADD(a, b) ((a) + (b))

/* sum = the sum of TERM(i) for all i, in lanes that are then halved. What does not fill the lanes is one step more. */
#define SUM(real, sum, TERM)                                                                                           \
    do {                                                                                                               \
        real lanes_[LANES] = {0};                                                                                      \
        int64_t i_ = 0;                                                                                                \
        for (; i_ + LANES <= count; i_ += LANES)                                                                       \
            EDDY_LANES (l_, LANES)                                                                                     \
                lanes_[l_] += TERM(i_ + l_);                                                                           \
        int left_ = (int)(count - i_);                                                                                 \
        if (left_ > 0)                                                                                                 \
            EDDY_LANES (l_, LANES)                                                                                     \
                lanes_[l_] += l_ < left_ ? TERM(i_ + l_) : 0;                                                          \
        EDDY_LANES_HALVE(lanes_, ADD);                                                                                 \
        sum = lanes_[0];                                                                                               \
    } while (0)

#define NORM(name, real)                                                                                               \
    static void moments_##name(const void *data, int64_t count, double *mean, double *squares) {                       \
        const real *restrict x = data;                                                                                 \
        real sum;                                                                                                      \
        SUM(real, sum, ELEMENT);                                                                                       \
        real shift = sum / (real)count, distances[LANES] = {0}, squared[LANES] = {0};                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            EDDY_LANES (l, LANES) {                                                                                    \
                real distance = x[i + l] - shift;                                                                      \
                distances[l] += distance;                                                                              \
                squared[l] += distance * distance;                                                                     \
            }                                                                                                          \
        int left = (int)(count - i);                                                                                   \
        if (left > 0)                                                                                                  \
            EDDY_LANES (l, LANES) {                                                                                    \
                real distance = l < left ? x[i + l] - shift : 0;                                                       \
                distances[l] += distance;                                                                              \
                squared[l] += distance * distance;                                                                     \
            }                                                                                                          \
        EDDY_LANES_HALVE(distances, ADD);                                                                              \
        EDDY_LANES_HALVE(squared, ADD);                                                                                \
        double all = (double)distances[0],                                                                             \
               rest = all / (double)count; /* what rounding left between shift and the mean */                         \
        *mean = (double)shift + rest;                                                                                  \
        *squares = (double)squared[0] - rest * all;                                                                    \
    }                                                                                                                  \
    static double square_sum_##name(const void *data, int64_t count) {                                                 \
        const real *restrict x = data;                                                                                 \
        real sum;                                                                                                      \
        SUM(real, sum, SQUARE);                                                                                        \
        return (double)sum;                                                                                            \
    }                                                                                                                  \
    INLINE void apply_##name##_step(real *y, const real *x, const real *w, const real *b, int64_t step, real shift,    \
                                    real by, int64_t count) {                                                          \
        EDDY_LANES_INDEPENDENT                                                                                         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = (x[i] - shift) * by * w[i * step] + b[i * step];                                                    \
    }                                                                                                                  \
    static void apply_##name(void *to, const void *data, const void *weight, const void *bias, int64_t step,           \
                             double mean, double scale, int64_t count) {                                               \
        if (step)                                                                                                      \
            apply_##name##_step(to, data, weight, bias, 1, (real)mean, (real)scale, count);                            \
        else                                                                                                           \
            apply_##name##_step(to, data, weight, bias, 0, (real)mean, (real)scale, count);                            \
    }                                                                                                                  \
    static void apply_each_##name(void *data, const void *weight, const void *bias, const void *means,                 \
                                  const void *scales, int64_t count) {                                                 \
        real *restrict x = data;                                                                                       \
        const real *restrict w = weight, *restrict b = bias, *restrict mean = means, *restrict scale = scales;         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = (x[i] - mean[i]) * scale[i] * w[i] + b[i];                                                          \
    }                                                                                                                  \
    static void products_##name(const void *grad, const void *data, const void *weight, double from, int64_t count,    \
                                double sums[2]) {                                                                      \
        const real *restrict g = grad, *restrict x = data, *restrict w = weight;                                       \
        real shift = (real)from, weighted[LANES] = {0}, products[LANES] = {0};                                         \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            EDDY_LANES (l, LANES) {                                                                                    \
                real slope = g[i + l] * w[i + l];                                                                      \
                weighted[l] += slope;                                                                                  \
                products[l] += slope * (x[i + l] - shift);                                                             \
            }                                                                                                          \
        int left = (int)(count - i);                                                                                   \
        if (left > 0)                                                                                                  \
            EDDY_LANES (l, LANES) {                                                                                    \
                real slope = l < left ? g[i + l] * w[i + l] : 0;                                                       \
                weighted[l] += slope;                                                                                  \
                products[l] += l < left ? slope * (x[i + l] - shift) : 0;                                              \
            }                                                                                                          \
        EDDY_LANES_HALVE(weighted, ADD);                                                                               \
        EDDY_LANES_HALVE(products, ADD);                                                                               \
        sums[0] = (double)weighted[0];                                                                                 \
        sums[1] = (double)products[0];                                                                                 \
    }                                                                                                                  \
    static double product_##name(const void *grad, const void *data, double from, int64_t count) {                     \
        const real *restrict g = grad, *restrict x = data;                                                             \
        real shift = (real)from, product;                                                                              \
        SUM(real, product, PRODUCT);                                                                                   \
        return (double)product;                                                                                        \
    }                                                                                                                  \
    INLINE void backward_##name##_step(real *y, const real *g, const real *x, const real *w, int64_t step, real shift, \
                                       real by, real less, real times, int64_t count) {                                \
        EDDY_LANES_INDEPENDENT                                                                                         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = by * (g[i] * w[i * step] - less - (x[i] - shift) * times);                                          \
    }                                                                                                                  \
    static void backward_##name(void *to, const void *grad, const void *data, const void *weight, int64_t step,        \
                                double mean, double scale, double level, double slope, int64_t count) {                \
        if (step)                                                                                                      \
            backward_##name##_step(to, grad, data, weight, 1, (real)mean, (real)scale, (real)level, (real)slope,       \
                                   count);                                                                             \
        else                                                                                                           \
            backward_##name##_step(to, grad, data, weight, 0, (real)mean, (real)scale, (real)level, (real)slope,       \
                                   count);                                                                             \
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
#define PRODUCT(i) (g[i] * (x[i] - shift))

NORM(f32, float)
NORM(f64, double)

/* Statistics and results of one place after the other in one loop, so that the processor begins the next while the sums of one are
 * halved. */
#define PLACES(name, real)                                                                                             \
    static void places_##name(const eddy_norm_rows *rows, const void *weight, const void *bias, double eps,            \
                              bool is_centred, int64_t count) {                                                        \
        for (int64_t row = 0; row < rows->count; row++) {                                                              \
            const real *x = (const real *)rows->from + row * rows->from_stride;                                        \
            real *y = (real *)rows->to + row * rows->to_stride;                                                        \
            double mean = 0, squares;                                                                                  \
            if (is_centred)                                                                                            \
                moments_##name(x, count, &mean, &squares);                                                             \
            else                                                                                                       \
                squares = square_sum_##name(x, count);                                                                 \
            apply_##name(y, x, weight, bias, 1, mean, 1 / sqrt(squares / (double)count + eps), count);                 \
        }                                                                                                              \
    }

PLACES(f32, float)
PLACES(f64, double)

/* The same on the way back. */
#define PLACES_BACK(name, real)                                                                                        \
    static void places_back_##name(const eddy_norm_rows *rows, const void *weight, double eps, bool is_centred,        \
                                   int64_t count) {                                                                    \
        for (int64_t row = 0; row < rows->count; row++) {                                                              \
            const real *x = (const real *)rows->from + row * rows->from_stride;                                        \
            const real *g = (const real *)rows->grad + row * rows->grad_stride;                                        \
            real *y = (real *)rows->to + row * rows->to_stride;                                                        \
            double mean = 0, squares, sums[2];                                                                         \
            if (is_centred)                                                                                            \
                moments_##name(x, count, &mean, &squares);                                                             \
            else                                                                                                       \
                squares = square_sum_##name(x, count);                                                                 \
            products_##name(g, x, weight, mean, count, sums);                                                          \
            double scale = 1 / sqrt(squares / (double)count + eps), level = is_centred ? sums[0] / (double)count : 0;  \
            backward_##name(y, g, x, weight, 1, mean, scale, level, scale *scale *sums[1] / (double)count, count);     \
        }                                                                                                              \
    }

PLACES_BACK(f32, float)
PLACES_BACK(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        moments_##name, square_sum_##name, apply_##name, places_##name, apply_each_##name, products_##name,            \
            product_##name, backward_##name, places_back_##name, accumulate_##name                                     \
    }
const eddy_norm_blocks EDDY_ISA_NAME(eddy_cpu_norm_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
