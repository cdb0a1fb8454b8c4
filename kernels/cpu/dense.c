#include <base/assert.h>
#include <kernels/cpu/dense.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Elements moved at a time. A gather loads them one by one and stores them as a vector; a scatter does the reverse. */
#define GROUP 4

#define MOVE(type)                                                                                 \
    INLINE type load_##type(const char *p) {                                                       \
        return *(const type *)(const void *)p;                                                     \
    }                                                                                              \
    static void fill_##type(void *restrict to, const char *from, int64_t count) {                  \
        type *restrict out = to, value = load_##type(from);                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = value;                                                                        \
    }                                                                                              \
    static void gather_##type(void *restrict to, const char *restrict from, int64_t stride,        \
                              int64_t count) {                                                     \
        type *restrict out = to;                                                                   \
        for (; count >= GROUP; count -= GROUP, from += GROUP * stride, out += GROUP) {             \
            type group[GROUP] = {load_##type(from), load_##type(from + stride),                    \
                                 load_##type(from + 2 * stride), load_##type(from + 3 * stride)};  \
            memcpy(out, group, sizeof(group));                                                     \
        }                                                                                          \
        for (; count > 0; count--, from += stride)                                                 \
            *out++ = load_##type(from);                                                            \
    }                                                                                              \
    static void scatter_##type(char *restrict to, int64_t stride, const void *restrict from,       \
                               int64_t count) {                                                    \
        const type *restrict in = from;                                                            \
        for (; count >= GROUP; count -= GROUP, to += GROUP * stride, in += GROUP) {                \
            *(type *)(void *)to = in[0];                                                           \
            *(type *)(void *)(to + stride) = in[1];                                                \
            *(type *)(void *)(to + 2 * stride) = in[2];                                            \
            *(type *)(void *)(to + 3 * stride) = in[3];                                            \
        }                                                                                          \
        for (; count > 0; count--, to += stride)                                                   \
            *(type *)(void *)to = *in++;                                                           \
    }

MOVE(uint32_t)
MOVE(uint64_t)

typedef void fill_fn(void *restrict to, const char *from, int64_t count);
typedef void gather_fn(void *restrict to, const char *restrict from, int64_t stride, int64_t count);
typedef void scatter_fn(char *restrict to, int64_t stride, const void *restrict from,
                        int64_t count);

typedef struct movers {
    fill_fn *fill;
    gather_fn *gather;
    scatter_fn *scatter;
} movers;

INLINE void run(const movers move, eddy_loop_fn *loop, int32_t target, int64_t element_bytes,
                char *const *data, const int64_t *strides, int64_t count, const void *attributes) {
    _Alignas(64) char buffers[EDDY_DENSE_OPERANDS][EDDY_DENSE_BYTES];
    char *at[EDDY_DENSE_OPERANDS];
    int64_t steps[EDDY_DENSE_OPERANDS];
    int64_t chunk = EDDY_DENSE_BYTES / element_bytes;
    if (chunk > count)
        chunk = count;
    for (int32_t k = 0; k <= target; k++) {
        at[k] = buffers[k];
        steps[k] = element_bytes;
        if (strides[k] == 0 && k < target)
            move.fill(at[k], data[k], chunk);
    }
    for (int64_t begin = 0; begin < count; begin += chunk) {
        int64_t length = count - begin < chunk ? count - begin : chunk;
        for (int32_t k = 0; k <= target; k++) {
            char *here = data[k] + begin * strides[k];
            if (strides[k] == element_bytes)
                at[k] = here;
            else if (strides[k] != 0 && k < target)
                move.gather(at[k], here, strides[k], length);
        }
        loop(at, steps, length, attributes);
        if (strides[target] != element_bytes)
            move.scatter(data[target] + begin * strides[target], strides[target], at[target],
                         length);
    }
}

void eddy_dense_run(eddy_loop_fn *loop, int32_t operand_count, int64_t element_bytes,
                    char *const *data, const int64_t *strides, int64_t count,
                    const void *attributes) {
    static const movers of_4 = {fill_uint32_t, gather_uint32_t, scatter_uint32_t};
    static const movers of_8 = {fill_uint64_t, gather_uint64_t, scatter_uint64_t};
    EDDY_ASSERT(operand_count <= EDDY_DENSE_OPERANDS);
    EDDY_ASSERT(element_bytes == 4 || element_bytes == 8);
    if (element_bytes == 4)
        run(of_4, loop, operand_count - 1, 4, data, strides, count, attributes);
    else
        run(of_8, loop, operand_count - 1, 8, data, strides, count, attributes);
}
