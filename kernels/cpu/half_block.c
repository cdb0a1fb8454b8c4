/* Conversions around the loops of f32. */
#include <base/dtype.h>
#include <kernels/cpu/half_block.h>
#include <kernels/cpu/half_run.h>

/* Elements at a time: the converted operands stay in the first-level cache. */
#define CHUNK 1024

#define INLINE static inline __attribute__((always_inline))

INLINE float widened(const char *p, bool is_bf16) {
    uint16_t bits = *(const uint16_t *)(const void *)p;
    return is_bf16 ? eddy_bf16_to_f32(bits) : eddy_half_load(bits);
}

INLINE void narrow(char *p, float value, bool is_bf16) {
    *(uint16_t *)(void *)p = is_bf16 ? eddy_f32_to_bf16(value) : eddy_half_store(value);
}

INLINE void load(float *restrict to, const char *restrict from, int64_t stride, int64_t count,
                 bool is_bf16) {
    if (stride == sizeof(uint16_t) && !is_bf16)
        eddy_half_load_run(to, (const uint16_t *)(const void *)from, count);
    else if (stride == sizeof(uint16_t))
        for (int64_t i = 0; i < count; i++)
            to[i] = widened(from + i * (int64_t)sizeof(uint16_t), is_bf16);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = widened(from + i * stride, is_bf16);
}

INLINE void store(char *restrict to, int64_t stride, const float *restrict from, int64_t count,
                  bool is_bf16) {
    if (stride == sizeof(uint16_t) && !is_bf16)
        eddy_half_store_run((uint16_t *)(void *)to, from, count);
    else if (stride == sizeof(uint16_t))
        for (int64_t i = 0; i < count; i++)
            narrow(to + i * (int64_t)sizeof(uint16_t), from[i], is_bf16);
    else
        for (int64_t i = 0; i < count; i++)
            narrow(to + i * stride, from[i], is_bf16);
}

/* An operand that broadcasts is converted once. It keeps its stride of 0 if the loop has a form for that. */
INLINE void run(const eddy_half_loop *half, char *const *data, const int64_t *strides,
                int64_t count, const void *attributes, bool is_bf16) {
    float buffers[EDDY_HALF_INPUTS + 1][CHUNK];
    char *at[EDDY_HALF_INPUTS + 1];
    int64_t steps[EDDY_HALF_INPUTS + 1];
    int32_t inputs = half->input_count;
    if (count <= 0)
        return;
    for (int32_t k = 0; k <= inputs; k++) {
        at[k] = (char *)buffers[k];
        steps[k] = sizeof(float);
    }
    for (int32_t k = 0; k < inputs; k++)
        if (strides[k] == 0) {
            float value = widened(data[k], is_bf16);
            int64_t copies = !half->is_dense ? 1 : count < CHUNK ? count : CHUNK;
            for (int64_t i = 0; i < copies; i++)
                buffers[k][i] = value;
            steps[k] = half->is_dense ? (int64_t)sizeof(float) : 0;
        }
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t length = count - begin < CHUNK ? count - begin : CHUNK;
        char *out = data[inputs] + begin * strides[inputs];
        for (int32_t k = 0; k < inputs; k++)
            if (strides[k] != 0)
                load(buffers[k], data[k] + begin * strides[k], strides[k], length, is_bf16);
        if (half->has_bool_result) {
            at[inputs] = out;
            steps[inputs] = strides[inputs];
        }
        half->loop(at, steps, length, attributes);
        if (!half->has_bool_result)
            store(out, strides[inputs], buffers[inputs], length, is_bf16);
    }
}

static void run_f16(const eddy_half_loop *half, char *const *data, const int64_t *strides,
                    int64_t count, const void *attributes) {
    run(half, data, strides, count, attributes, false);
}

static void run_bf16(const eddy_half_loop *half, char *const *data, const int64_t *strides,
                     int64_t count, const void *attributes) {
    run(half, data, strides, count, attributes, true);
}

const eddy_half_blocks EDDY_ISA_NAME(eddy_cpu_half_blocks) = {.run_f16 = run_f16,
                                                              .run_bf16 = run_bf16};
