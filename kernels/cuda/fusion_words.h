/* What the text of a fusion is put together of (fusion_text.h). */
#ifndef EDDY_KERNELS_CUDA_FUSION_WORDS_H
#define EDDY_KERNELS_CUDA_FUSION_WORDS_H

#include <eddy/dtype.h>
#include <stddef.h>

/* An elementwise op for a dtype that it computes in. */
typedef struct eddy_cuda_words {
    const char *name; /* of the kernel */
    eddy_dtype compute;
    const char *op;       /* the struct's name */
    const char *elements; /* of the output, then of the inputs, as elementwise.cuh calls them */
    int32_t input_count;
    const char *text; /* the struct's */
} eddy_cuda_words;

/* Generated from the list of ops (functional/generate/cuda.py). */
extern const eddy_cuda_words eddy_cuda_words_rows[];
extern const size_t eddy_cuda_words_count;

/* fusion.cuh with all that it includes; ends with a 0. */
extern const unsigned char eddy_cuda_image_fusion_words[];

#endif
