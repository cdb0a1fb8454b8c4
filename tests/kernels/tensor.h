/* Tensors for kernel tests: memory with guard bytes round and between the elements, in many layouts. */
#ifndef EDDY_TESTS_KERNELS_TENSOR_H
#define EDDY_TESTS_KERNELS_TENSOR_H

#include <kernels/kernel.h>

typedef enum layout {
    CONTIGUOUS,
    UNALIGNED, /* contiguous, one element past a 64-byte boundary */
    STRIDED,   /* every dim twice as wide as it needs */
    NEGATIVE,  /* every other dim runs backwards */
    TURNED,    /* dims in reverse order in memory */
    BROADCAST, /* the first dim has stride 0 (inputs only) */
    LAYOUT_COUNT
} layout;

/* Layouts that an output may have. */
#define OUTPUT_LAYOUTS BROADCAST

typedef struct tensor {
    eddy_op_view view;
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
    int64_t count;
    char *memory;
    char *before; /* memory as it was made */
    size_t bytes;
} tensor;

const char *layout_name(layout l);

/* A tensor whose memory holds noise. */
tensor tensor_make(eddy_dtype dtype, int32_t rank, const int64_t *shape, layout l);
void tensor_free(tensor *t);

/* Elements by flat row-major number, as double or (exactly) as i64. */
void *tensor_at(const tensor *t, int64_t flat);
double tensor_get(const tensor *t, int64_t flat);
/* All elements; the caller frees them. */
double *tensor_values(const tensor *t);
int64_t tensor_get_int(const tensor *t, int64_t flat);
void tensor_set(tensor *t, int64_t flat, double value);
void tensor_set_int(tensor *t, int64_t flat, int64_t value);

/* What is left of an integer in the dtype's width: how kernels compute, where a store saturates. */
int64_t tensor_wrap_int(eddy_dtype dtype, int64_t value);

/* Random values: floats normal-ish in [-range, range], integers in the same range (u8, bool: from 0). Values of broadcast
 * elements agree. */
void tensor_fill(tensor *t, double range);

/* True when no byte outside the elements has changed since the tensor was made. */
bool tensor_guards_hold(const tensor *t);
/* True when both have the same elements, bit for bit (NaN included). */
bool tensor_same(const tensor *a, const tensor *b);
/* The same, but any NaN agrees with any other. */
bool tensor_agrees(const tensor *a, const tensor *b);

/* A reproducible generator: seeded from EDDY_TEST_SEED, else fixed. */
extern uint64_t test_seed;
uint64_t test_random(void);
int64_t test_below(int64_t bound);
double test_unit(void);

/* Runs a kernel on these tensors with a guarded workspace filled with noise. Returns the error's status, and the record to
 * *error unless NULL. */
eddy_status run_kernel(const eddy_kernel *kernel, tensor *const *tensors, int32_t count,
                       const void *attributes, eddy_kernel_team *team, eddy_kernel_error *error);

/* |got - want| in units of the last place of `want` in the dtype; 0 where both are NaN or equal, infinite where they
 * differ in being finite. */
double ulp_distance(eddy_dtype dtype, double got, double want);

/* "op f32 [3, 5] strided seed 42": for the messages of failures. */
const char *describe(const char *op, const tensor *t, layout l);

#endif
