/* Products on a CUDA device by the library of products, on its fake (tests/fake_cuda/blas): when it is asked, what happens without memory and where calls fail. That products are right is for
 * test_cuda_product.c to say, which runs with the library and without. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <streams/cuda/blas.h>
#include <string.h>
#include <tests/fake_cuda/findings.h>
#include <tests/functional/failing_call.h>
#include <tests/functional/twin.h>

/* NULL: the library is not there, or is not the fake one. */
static void *symbol_of(const char *name) {
    void *library = dlopen(EDDY_BLAS_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

/* Calls of an entry so far; 0 while the library is not loaded. */
static long calls_of(const char *entry) {
    long (*calls)(const char *);
    *(void **)&calls = symbol_of("fake_blas_calls");
    return calls ? calls(entry) : 0;
}

static long products(void) {
    return calls_of("cublasLtMatmul");
}

static long questions(void) {
    return calls_of("cublasLtMatmulAlgoGetHeuristic");
}

static int objects(void) {
    int (*count)(void);
    *(void **)&count = symbol_of("fake_blas_objects");
    return count ? count() : 0;
}

/* Contiguous, of small integers: any order of sums has the same bits. */
static twin matrix(int64_t rows, int64_t columns) {
    float elements[64 * 64];
    cr_assert_leq(rows * columns, 64 * 64);
    for (int64_t i = 0; i < rows * columns; i++)
        elements[i] = (float)(i * 7 % 13 - 6);
    return twin_of(elements, EDDY_SHAPE(rows, columns), EDDY_F32);
}

static void expect_product(twin a, twin b) {
    twin_expect_equal("a product", eddy_matmul(a.here, b.here), eddy_matmul(a.there, b.there));
}

static void expect_square(int64_t size) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = matrix(size, size);
    expect_product(x, x);
    eddy_scope_end(scope);
}

/* A size whose square the library takes; it refuses some, by the seed. */
static int64_t size_that_is_taken(int64_t from) {
    for (int64_t size = from;; size++) {
        long before = products();
        expect_square(size);
        if (products() > before)
            return size;
    }
}

static void expect_products_by(const char *expected) {
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(TWIN_THERE, &info), EDDY_OK);
    cr_assert_str_eq(info.products, expected);
}

Test(gemm, most_products_are_the_librarys) {
    expect_products_by("");
    for (int64_t size = 1; size <= 40; size++)
        expect_square(size);
    cr_assert_gt(products(), 25, "%ld of 40", products());
    cr_assert_eq(questions(), 40);
    expect_products_by("cuBLASLt 13.0.0");
    twin_expect_no_findings();
}

Test(gemm, it_is_asked_once_for_a_geometry) {
    int64_t size = size_that_is_taken(5);
    long asked = questions(), multiplied = products();
    for (int i = 0; i < 3; i++)
        expect_square(size);
    cr_assert_eq(questions(), asked);
    cr_assert_eq(products(), multiplied + 3);
    twin_expect_no_findings();
}

/* How many of 40 products of 1 + 2^-12, which TF32 does not hold, with ones are those of ones. Others are right. */
static int products_of_tf32(bool allows_tf32) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .allows_tf32 = allows_tf32));
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_runtime_release(&runtime);
    int rounded = 0;
    for (int64_t size = 1; size <= 40; size++) {
        eddy_scope *scope = eddy_scope_begin();
        const eddy_full_options *there = EDDY_OPTIONS(full, .device = TWIN_THERE);
        eddy_shape shape = EDDY_SHAPE(size, size);
        double exact = (double)size * (1 + 1.0 / 4096), of_f32, of_f64;
        eddy_scalar factor = EDDY_S(1 + 1.0 / 4096);
        eddy_tensor *x = eddy_full(shape, factor, EDDY_F32, there),
                    *y = eddy_full(shape, factor, EDDY_F64, there);
        of_f32 = eddy_item_f64(
            eddy_max(eddy_matmul(x, eddy_ones_like(x, NULL)), EDDY_ALL_AXES, NULL), NULL);
        of_f64 = eddy_item_f64(
            eddy_max(eddy_matmul(y, eddy_ones_like(y, NULL)), EDDY_ALL_AXES, NULL), NULL);
        cr_assert(of_f32 == exact || of_f32 == (double)size, "%.17g", of_f32);
        cr_assert_eq(of_f64, exact);
        rounded += of_f32 == (double)size;
        eddy_scope_end(scope);
    }
    return rounded;
}

Test(gemm, f32_is_rounded_to_tf32_on_request_alone) {
    cr_assert_eq(products_of_tf32(false), 0);
    cr_assert_gt(products_of_tf32(true), 25);
    cr_assert_eq(products_of_tf32(false), 0);
    twin_expect_no_findings();
}

/* Of rows that begin elsewhere the algorithm may not be the same. */
Test(gemm, it_is_asked_again_for_another_alignment) {
    eddy_scope *scope = eddy_scope_begin();
    twin all = matrix(33, 8), b = matrix(8, 8);
    for (int64_t begin = 0; begin < 2; begin++) {
        eddy_tensor *here = eddy_slice(eddy_reshape(all.here, EDDY_SHAPE(264)), 0, begin,
                                       64 + begin, 1),
                    *there = eddy_slice(eddy_reshape(all.there, EDDY_SHAPE(264)), 0, begin,
                                        64 + begin, 1);
        long asked = questions();
        expect_product(
            (twin){eddy_reshape(here, EDDY_SHAPE(8, 8)), eddy_reshape(there, EDDY_SHAPE(8, 8))}, b);
        cr_assert_eq(questions(), asked + 1);
    }
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* 128 sets of 4 places, each with a product and three layouts or fewer; and the context. */
#define OBJECTS_MOST (128 * 4 * 4 + 1)

Test(gemm, what_is_remembered_is_bounded) {
    for (int64_t rows = 1; rows <= 32; rows++)
        for (int64_t columns = 1; columns <= 32; columns++) {
            eddy_scope *scope = eddy_scope_begin();
            expect_product(matrix(rows, 2), matrix(2, columns));
            eddy_scope_end(scope);
        }
    cr_assert_eq(questions(), 32 * 32);
    cr_assert_leq(objects(), OBJECTS_MOST);
    cr_assert_gt(objects(), OBJECTS_MOST / 2);
    twin_expect_no_findings();
}

static eddy_device_memory memory_of_device(void) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    cr_assert_eq(eddy_device_memory_read(TWIN_THERE, &memory), EDDY_OK);
    return memory;
}

Test(gemm, a_workspace_is_the_devices_memory_and_comes_back) {
    for (int64_t size = 50; size <= 64; size++)
        expect_square(size);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_device_memory memory = memory_of_device();
    cr_assert_eq(memory.live_bytes, 0);
    /* x, the product, and a workspace as large. */
    cr_assert_gt(memory.peak_bytes, 2 * 64 * 64 * 4);
    cr_assert_gt(eddy_device_memory_trim(TWIN_THERE), 0);
    cr_assert_eq(memory_of_device().cached_bytes, 0);
    twin_expect_no_findings();
}

/* Heads of rows, two strides of batches and a column out of two: copied ahead of the product, where each element is used often enough. */
Test(gemm, factors_that_lie_otherwise_are_copied) {
    float elements[2 * 20 * 3 * 16];
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
        elements[i] = (float)(i * 5 % 11) - 5;
    long before = products();
    for (int64_t rows = 16; rows < 20; rows++) {
        eddy_scope *scope = eddy_scope_begin();
        twin all = twin_of(elements, EDDY_SHAPE(2, rows, 3, 16), EDDY_F32),
             heads = {eddy_transpose(all.here, 1, 2), eddy_transpose(all.there, 1, 2)},
             turned = {eddy_transpose(heads.here, 2, 3), eddy_transpose(heads.there, 2, 3)},
             apart = {eddy_slice(all.here, 3, 0, 16, 2), eddy_slice(all.there, 3, 0, 16, 2)};
        expect_product(heads, turned);
        expect_product(turned, heads);
        expect_product((twin){eddy_transpose(apart.here, 2, 3), eddy_transpose(apart.there, 2, 3)},
                       all);
        eddy_scope_end(scope);
    }
    cr_assert_gt(products(), before + 6, "%ld of 12", products() - before);
    twin_expect_no_findings();
}

static eddy_tensor *squares_of(eddy_tensor *x) {
    return eddy_sum(eddy_mul(x, x), EDDY_ALL_AXES, NULL);
}

/* And so are their gradients. Of images whose channels lie apart only that of the weight is none. */
Test(gemm, convolutions_of_one_elements_windows_are_products) {
    float elements[2 * 8 * 5 * 5];
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
        elements[i] = (float)(i * 5 % 7) - 3;
    for (int64_t channels = 3; channels <= 8; channels++) {
        eddy_scope *scope = eddy_scope_begin();
        twin images = twin_of(elements, EDDY_SHAPE(2, 5, 5, channels), EDDY_F32),
             x = {eddy_permute(images.here, EDDY_AXES(0, 3, 1, 2)),
                  eddy_permute(images.there, EDDY_AXES(0, 3, 1, 2))},
             weight = twin_of(elements, EDDY_SHAPE(6, channels, 1, 1), EDDY_F32);
        eddy_tensor *leaves[] = {x.here, weight.here, x.there, weight.there};
        for (int i = 0; i < 4; i++)
            cr_assert_eq(eddy_requires_grad_set(leaves[i] = eddy_detach(leaves[i]), true), EDDY_OK);
        long asked = questions();
        for (int i = 0; i < 4; i += 2)
            cr_assert_eq(
                eddy_backward(squares_of(eddy_conv2d(leaves[i], leaves[i + 1], EDDY_NONE, NULL))),
                EDDY_OK);
        for (int i = 0; i < 2; i++)
            twin_expect_equal("a gradient", eddy_grad_of(leaves[i]), eddy_grad_of(leaves[i + 2]));
        cr_assert_eq(questions(), asked + 3);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* A copy is not worth it. */
Test(gemm, a_factor_that_is_used_once_is_not_copied) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = matrix(40, 40), column = matrix(20, 1),
         apart = {eddy_slice(x.here, 1, 0, 40, 2), eddy_slice(x.there, 1, 0, 40, 2)};
    expect_product(apart, column);
    cr_assert_eq(questions(), 0);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

#define STREAMS 3

/* What one stream's product has for a workspace another's may have after it, and not before. */
Test(gemm, products_of_several_streams_stay_apart) {
    eddy_stream *streams[STREAMS];
    eddy_scope *scope = eddy_scope_begin();
    twin x[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        streams[s] = eddy_stream_create(TWIN_THERE, NULL);
        x[s] = matrix(40 + s, 40 + s);
    }
    for (int round = 0; round < 480; round++) {
        int s = round % STREAMS;
        int64_t rows = 20 + round / STREAMS % 20;
        twin part = {eddy_slice(x[s].here, 0, 0, rows, 1), eddy_slice(x[s].there, 0, 0, rows, 1)};
        cr_assert_eq(eddy_stream_scope_begin(streams[s]), EDDY_OK);
        eddy_tensor *there = eddy_matmul(part.there, x[s].there);
        eddy_stream_scope_end();
        twin sum = {eddy_add(eddy_matmul(part.here, x[s].here), part.here),
                    eddy_add(there, part.there)};
        if (s == STREAMS - 1)
            twin_expect_equal("a product", sum.here, sum.there);
    }
    eddy_scope_end(scope);
    for (int s = 0; s < STREAMS; s++)
        eddy_stream_release(&streams[s]);
    twin_expect_no_findings();
}

/* Room for the product, and none for the workspace. */
Test(gemm, without_memory_for_a_workspace_another_algorithm_does) {
    bool has_asked_twice = false;
    cr_assert_eq(eddy_device_memory_limit_set(TWIN_THERE, 2 << 20), EDDY_OK);
    for (int64_t size = 50; size <= 64; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = matrix(size, size);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
        int64_t left = memory_of_device().cached_bytes,
                product = (size * size * 4 + 511) / 512 * 512;
        eddy_tensor *rest = eddy_empty(EDDY_SHAPE(left - product - 512), EDDY_U8,
                                       EDDY_OPTIONS(empty, .device = TWIN_THERE));
        cr_assert_eq(eddy_wait(rest, EDDY_FOREVER), EDDY_OK);
        long asked = questions();
        expect_product(x, x);
        has_asked_twice |= questions() == asked + 2;
        eddy_scope_end(scope);
    }
    cr_assert(has_asked_twice);
    twin_expect_no_findings();
}

/* The library cannot look whether it is to do nothing. */
Test(gemm, what_is_written_in_part_is_not_the_librarys) {
    int64_t size = size_that_is_taken(7);
    eddy_scope *scope = eddy_scope_begin();
    twin x = matrix(size, size), whole = matrix(size, size), all = matrix(2 * size, size);
    twin part = {eddy_slice(all.here, 0, size, 2 * size, 1),
                 eddy_slice(all.there, 0, size, 2 * size, 1)};
    long before = products();
    cr_assert_eq(eddy_matmul_into(x.here, x.here, part.here), EDDY_OK);
    cr_assert_eq(eddy_matmul_into(x.there, x.there, part.there), EDDY_OK);
    twin_expect_equal("a part", all.here, all.there);
    cr_assert_eq(products(), before);
    cr_assert_eq(eddy_matmul_into(x.here, x.here, whole.here), EDDY_OK);
    cr_assert_eq(eddy_matmul_into(x.there, x.there, whole.there), EDDY_OK);
    twin_expect_equal("all of it", whole.here, whole.there);
    cr_assert_eq(products(), before + 1);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Rows of x, of which one is not there. */
static twin rows_that_are_not_there(twin x) {
    int64_t wrong[] = {0, 1000};
    twin index = twin_of(wrong, EDDY_SHAPE(2), EDDY_I64);
    return (twin){eddy_index_select(x.here, index.here, 0),
                  eddy_index_select(x.there, index.there, 0)};
}

/* It is launched all the same, and says that it is not to be believed: what is to write in place behind it writes nothing. */
Test(gemm, a_product_of_what_has_failed_is_poisoned) {
    int taken = 0;
    for (int64_t size = 3; size < 12; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = matrix(size, size), target = matrix(2, size), bad = rows_that_are_not_there(x);
        long before = products();
        twin product = {eddy_matmul(bad.here, x.here), eddy_matmul(bad.there, x.there)};
        cr_assert_eq(eddy_add_inplace(target.here, product.here), EDDY_OK);
        cr_assert_eq(eddy_add_inplace(target.there, product.there), EDDY_OK);
        twin_expect_error(product.here, product.there);
        twin_expect_error(target.here, target.there);
        taken += products() > before;
        cr_assert_eq(eddy_recover(EDDY_LIST(target.here, target.there)), EDDY_OK);
        twin_expect_equal("what was skipped", target.here, target.there);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
        eddy_scope_end(scope);
    }
    cr_assert_gt(taken, 0);
    twin_expect_no_findings();
}

Test(gemm, a_library_that_is_too_old_is_not_used) {
    setenv("FAKE_CUDA_BLAS_VERSION", "120900", 1);
    for (int64_t size = 1; size < 10; size++)
        expect_square(size);
    cr_assert_eq(calls_of("cublasLtGetVersion"), 1);
    cr_assert_eq(questions() + products(), 0);
    expect_products_by("Eddy");
    twin_expect_no_findings();
}

Test(gemm, everything_goes_with_the_runtime) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    for (int64_t size = 1; size < 20; size++)
        expect_square(size);
    cr_assert_gt(objects(), 0);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    eddy_runtime_release(&runtime);
    cr_assert_eq(objects(), 0);
    cr_assert_eq(fake_cuda_findings_so_far(), 0);
}

/* ---- each call of the library fails once ---- */

/* Products of several geometries, some of them twice, with each kind of addend. What is read is right, or an error says why there is nothing. */
static bool are_products_well(void) {
    bool is_well = true;
    for (int64_t size = 3; size < 9; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = matrix(size, size), row = matrix(1, size);
        float here[128], there[128];
        eddy_tensor *bias = eddy_reshape(row.here, EDDY_SHAPE(size)),
                    *bias_there = eddy_reshape(row.there, EDDY_SHAPE(size));
        eddy_tensor *y = eddy_addmm(x.here, x.here, eddy_linear(x.here, x.here, bias), NULL),
                    *y_there = eddy_addmm(x.there, x.there,
                                          eddy_linear(x.there, x.there, bias_there), NULL);
        y = eddy_matmul(eddy_stack(EDDY_LIST(y, x.here), 0), eddy_stack(EDDY_LIST(x.here, y), 0));
        y_there = eddy_matmul(eddy_stack(EDDY_LIST(y_there, x.there), 0),
                              eddy_stack(EDDY_LIST(x.there, y_there), 0));
        size_t bytes = (size_t)(2 * size * size) * sizeof(float);
        is_well &= eddy_read(y, here, bytes, NULL) == EDDY_OK;
        if (y_there && eddy_read(y_there, there, bytes, NULL) == EDDY_OK)
            is_well &= memcmp(here, there, bytes) == 0;
        else
            is_well &= eddy_error_take(NULL) != EDDY_OK;
        eddy_scope_end(scope);
        (void)eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
    }
    return is_well;
}

static const failing_run run = {.options = {.size = sizeof(eddy_runtime_options)},
                                .is_well = are_products_well,
                                .calls_of = calls_of,
                                .objects = objects};

Test(gemm, each_call_of_the_library_may_fail) {
    static const char *const entries[] = {
#define SYMBOL(symbol, name, result, parameters) #symbol,
        EDDY_BLAS_LIST(SYMBOL)
#undef SYMBOL
    };
    static const int statuses[] = {EDDY_BLAS_ALLOC_FAILED, EDDY_BLAS_INVALID_VALUE,
                                   EDDY_BLAS_EXECUTION_FAILED, EDDY_BLAS_NOT_SUPPORTED};
    for (size_t e = 1; e < sizeof(entries) / sizeof(*entries); e++) /* the first has no status */
        for (int number = 1; number <= 3; number += 2)
            for (size_t s = 0; s < sizeof(statuses) / sizeof(*statuses); s++)
                if (!fails_well(&run, entries[e], number, statuses[s]))
                    cr_assert(number > 1, "%s is not called", entries[e]);
}

/* The library's own launches and the loading of its kernel, those of Eddy's looks and copies ahead of it, memory for a workspace. */
Test(gemm, calls_of_the_driver_behind_it_may_fail) {
    static const int results[] = {EDDY_CU_OUT_OF_MEMORY, EDDY_CU_LAUNCH_FAILED};
    for (int r = 0; r < 2; r++) {
        for (int number = 1; number <= 40; number += 3)
            (void)fails_well(&run, "cuLaunchKernel", number, results[r]);
        for (int number = 1; number <= 5; number++) {
            (void)fails_well(&run, "cuModuleLoadData", number, results[r]);
            /* The first is the device's start. */
            (void)fails_well(&run, "cuMemAlloc_v2", number + 1, results[r]);
        }
    }
}

/* What becomes of the call that was to launch. */
static eddy_status status_of_failure(const char *text) {
    setenv("FAKE_CUDA_FAIL_ENTRY", text, 1);
    int64_t size = 1;
    for (;; size++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = matrix(size, size);
        eddy_status status = eddy_wait(eddy_matmul(x.there, x.there), EDDY_FOREVER);
        eddy_error_take(NULL);
        eddy_scope_end(scope);
        if (products() > 0)
            return status;
    }
}

Test(gemm, a_product_gets_what_the_pool_keeps) {
    setenv("FAKE_CUDA_FAIL_ENTRY", "cublasLtMatmul:1:3", 1);
    eddy_tensor *small = keep_a_chunk(TWIN_THERE);
    cr_assert_eq(status_of_failure("cublasLtMatmul:1:3"), EDDY_OK);
    eddy_release(&small);
    twin_expect_no_findings();
}

Test(gemm, without_memory_a_product_fails) {
    cr_assert_eq(status_of_failure("cublasLtMatmul:1:3"), EDDY_OUT_OF_MEMORY);
    expect_square(8);
}

Test(gemm, what_is_refused_late_is_not_the_librarys) {
    cr_assert_eq(status_of_failure("cublasLtMatmul:1:15"), EDDY_OK);
    long asked = questions(), multiplied = products();
    for (int64_t size = 1; size < 20 && questions() == asked; size++)
        expect_square(size);
    cr_assert_gt(products(), multiplied); /* others are */
    twin_expect_no_findings();
}

Test(gemm, another_failure_is_a_lost_device) {
    cr_assert_eq(status_of_failure("cublasLtMatmul:1"), EDDY_DEVICE_LOST);
    eddy_scope *scope = eddy_scope_begin();
    twin x = matrix(2, 2);
    cr_assert_eq(eddy_wait(x.there, EDDY_FOREVER), EDDY_DEVICE_LOST);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}
