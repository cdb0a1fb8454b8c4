/* The rows gemm_<m>x<n>x<k>_<n or t><n or t>_<dtype> of both programs (bench/shapes.h has the CPU's), and the numbers of their matrices. */
#ifndef EDDY_BENCH_CUDA_GEMM_ROW_H
#define EDDY_BENCH_CUDA_GEMM_ROW_H

#include <bench/sample.h>
#include <eddy/dtype.h>

typedef struct gemm_row {
    long m, n, k;
    bool is_a_transposed, is_b_transposed;
    eddy_dtype dtype;
} gemm_row;

/* False: the name is not one of these. */
static inline bool gemm_row_read(const char *name, gemm_row *row) {
    char a, b, dtype[8];
    if (sscanf(name, "gemm_%ldx%ldx%ld_%c%c_%7s", &row->m, &row->n, &row->k, &a, &b, dtype) != 6)
        return false;
    row->is_a_transposed = a == 't';
    row->is_b_transposed = b == 't';
    row->dtype = !strcmp(dtype, "f32") ? EDDY_F32 : !strcmp(dtype, "f16") ? EDDY_F16 : EDDY_BF16;
    return row->m > 0 && row->n > 0 && row->k > 0;
}

static inline size_t gemm_row_element_bytes(const gemm_row *row) {
    return row->dtype == EDDY_F32 ? 4 : 2;
}

/* Numbers in (-1, -0.5] and [0.5, 1): a device that multiplies zeros is faster. The caller frees them. Ends the program if there is no memory. */
static inline void *gemm_row_numbers(const gemm_row *row, long count, uint32_t *random) {
    uint16_t *halves = malloc((size_t)count * gemm_row_element_bytes(row));
    uint32_t *words = (uint32_t *)(void *)halves;
    if (!halves)
        exit(1);
    for (long i = 0; i < count; i++) {
        uint32_t bits = bench_random(random);
        if (row->dtype == EDDY_F32)
            words[i] = 0x3f000000 | (bits & 0x807fffff);
        else if (row->dtype == EDDY_F16)
            halves[i] = (uint16_t)(0x3800 | (bits & 0x83ff));
        else
            halves[i] = (uint16_t)(0x3f00 | (bits & 0x807f));
    }
    return halves;
}

#endif
