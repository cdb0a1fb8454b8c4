/* Kernels for the fake's own tests, with the interface of the library of all kernels. Each runs its whole grid at once. */
#include <kernels/cuda/parameters.h>
#include <tests/fake_cuda/own_kernels.h>

/* ---- writes words, and says so ---- */

const unsigned test_store_bytes = sizeof(test_words);

void test_store(const void *parameters) {
    const test_words *store = parameters;
    for (uint64_t i = 0; i < store->count; i++)
        store->at[i] = store->value;
}

void test_store_touches(const void *parameters, test_touch *touch, void *context) {
    const test_words *store = parameters;
    touch(context, store->at, store->count * sizeof(uint64_t), 1);
}

/* ---- the same, with a lie: it writes one word more ---- */

const unsigned test_store_beyond_bytes = sizeof(test_words);

void test_store_beyond(const void *parameters) {
    test_words store = *(const test_words *)parameters;
    store.count++;
    test_store(&store);
}

void test_store_beyond_touches(const void *parameters, test_touch *touch, void *context) {
    test_store_touches(parameters, touch, context);
}

/* ---- reads words, of which it says nothing ---- */

const unsigned test_look_bytes = sizeof(test_words);

void test_look(const void *parameters) {
    const test_words *look = parameters;
    (void)*(volatile uint64_t *)look->at;
}

/* ---- as Eddy's kernels ---- */

const unsigned eddy_test_add_dense_bytes = sizeof(eddy_cuda_dense);
const unsigned char eddy_test_add_dense_element_bytes[] = {4, 4, 4, 4, 4};

void eddy_test_add_dense(const void *parameters) {
    const eddy_cuda_dense *dense = parameters;
    const float *a = dense->data[0], *b = dense->data[1];
    float *sum = dense->data[2];
    for (int64_t i = 0; i < dense->count; i++)
        sum[i] = a[i] + b[i];
}

static char *element(const eddy_cuda_strided *strided, int operand, uint32_t index) {
    char *at = strided->data[operand];
    for (int d = strided->rank - 1; d >= 0; d--) {
        uint32_t size = d > 0 ? strided->dims[d].divisor : UINT32_MAX;
        at += strided->strides[operand][d] * (int64_t)(index % size);
        index /= size;
    }
    return at;
}

const unsigned eddy_test_copy_strided_bytes = sizeof(eddy_cuda_strided);
const unsigned char eddy_test_copy_strided_element_bytes[] = {8, 8, 8, 8, 8};

void eddy_test_copy_strided(const void *parameters) {
    const eddy_cuda_strided *strided = parameters;
    for (uint32_t i = 0; i < strided->count; i++)
        *(uint64_t *)(void *)element(strided, 1, i) = *(uint64_t *)(void *)element(strided, 0, i);
}

void eddy_grid_run(void (*kernel)(const void *), const void *parameters, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes) {
    (void)grid;
    (void)block;
    (void)shared_bytes;
    kernel(parameters);
}
