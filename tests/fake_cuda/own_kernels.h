/* Kernels for the fake's own tests: what they are called, and their parameters. */
#ifndef EDDY_TESTS_FAKE_CUDA_OWN_KERNELS_H
#define EDDY_TESTS_FAKE_CUDA_OWN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Of those that are no elementwise ones. */
typedef struct test_words {
    uint64_t *at;
    uint64_t count, value;
} test_words;

typedef void test_touch(void *context, const void *begin, size_t bytes, int is_write);

#pragma GCC visibility push(default)
#define TEST_KERNEL(name)                                                                          \
    void name(const void *parameters);                                                             \
    extern const unsigned name##_bytes
TEST_KERNEL(test_store);
TEST_KERNEL(test_store_beyond);
TEST_KERNEL(test_look);
TEST_KERNEL(eddy_test_add_dense);
TEST_KERNEL(eddy_test_copy_strided);
#undef TEST_KERNEL
extern const unsigned char eddy_test_add_dense_element_bytes[],
    eddy_test_copy_strided_element_bytes[];
void test_store_touches(const void *parameters, test_touch *touch, void *context);
void test_store_beyond_touches(const void *parameters, test_touch *touch, void *context);
void eddy_grid_run(void (*kernel)(const void *), const void *parameters, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes);
#pragma GCC visibility pop

#endif
