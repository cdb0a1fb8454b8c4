#include <kernels/cpu/move/fill_block.h>

static void count_i64(int64_t *out, int64_t first, int64_t step, int64_t count) {
    uint64_t value = (uint64_t)first;
    for (int64_t i = 0; i < count; i++, value += (uint64_t)step)
        out[i] = (int64_t)value;
}

/* Pieces are counted in int32_t, since every instruction set converts it to double in one instruction. */
#define PIECE 65536

#define LINE(name, real)                                                                           \
    static void line_##name(real *out, double base, double step, double from, double turn,         \
                            int64_t count) {                                                       \
        for (int64_t begin = 0; begin < count; begin += PIECE) {                                   \
            int32_t piece = (int32_t)(count - begin < PIECE ? count - begin : PIECE);              \
            double first = from + turn * (double)begin;                                            \
            for (int32_t i = 0; i < piece; i++)                                                    \
                out[begin + i] = (real)(base + step * (first + turn * i));                         \
        }                                                                                          \
    }

LINE(f32, float)
LINE(f64, double)

const eddy_fill_blocks EDDY_ISA_NAME(eddy_cpu_fill_blocks) = {count_i64, line_f32, line_f64};
