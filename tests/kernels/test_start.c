/* What starts a library: calls that it serves, and no others. Each test begins in a process in which none is started. */
#include "faults.h"
#include "planned.h"
#include "tensor.h"
#include <base/memory.h>
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/isa.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/gemm.h>

#ifdef EDDY_HAVE_DNNL
static bool starts(const eddy_kernel *kernel, const eddy_op_view *views, int32_t count,
                   const void *attributes) {
    const eddy_kernel_call call = {
        .kernel = kernel, .views = views, .view_count = count, .attributes = attributes};
    return planned_only(&call).has_started_library;
}

static bool (*plans_with)(const eddy_kernel *kernel, const eddy_op_view *views, int32_t count,
                          const void *attributes) = starts;

static bool is_portable(void) {
    return eddy_isa_chosen() == EDDY_ISA_PORTABLE;
}

/* Square matrices. */
static bool matmul_starts(eddy_dtype dtype, int64_t side) {
    const int64_t shape[] = {side, side}, strides[] = {side, 1};
    const eddy_op_view matrix = {NULL, shape, strides, dtype, 2},
                       views[] = {matrix, matrix, matrix};
    return starts(&eddy_cpu_matmul, views, 3, NULL);
}

/* The gradient of attention, a head alone. */
static bool attention_starts(int64_t rows, int64_t columns) {
    enum { WIDTH = 64 };
    const int64_t one[] = {rows, WIDTH}, other[] = {columns, WIDTH}, lies[] = {WIDTH, 1};
    const eddy_op_view q = {NULL, one, lies, EDDY_F32, 2}, k = {NULL, other, lies, EDDY_F32, 2},
                       none = {.rank = -1};
    const eddy_op_view views[] = {q, q, q, k, k, none, q, k, k};
    return starts(&eddy_cpu_sdpa_backward, views, 9,
                  &(eddy_attributes_sdpa_backward){.dropout = 0});
}

static bool conv_starts(int64_t side) {
    enum { CHANNELS = 8 };
    const int64_t image[] = {1, CHANNELS, side, side},
                  lies[] = {CHANNELS * side * side, side * side, side, 1};
    const int64_t weight[] = {CHANNELS, CHANNELS, 3, 3}, dense[] = {CHANNELS * 9, 9, 3, 1};
    const eddy_attributes_conv attributes = {
        .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1};
    const eddy_op_view x = {NULL, image, lies, EDDY_F32, 4}, w = {NULL, weight, dense, EDDY_F32, 4};
    const eddy_op_view none = {.rank = -1}, views[] = {x, w, none, x};
    return plans_with(&eddy_cpu_conv2d, views, 4, &attributes);
}

static bool pool_starts(int64_t side) {
    const int64_t image[] = {1, 16, side, side}, lies[] = {16 * side * side, side * side, side, 1};
    const int64_t half = side / 2, made[] = {1, 16, half, half},
                  made_lies[] = {16 * half * half, half * half, half, 1};
    const eddy_attributes_pool attributes = {
        .kernel_size = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
    const eddy_op_view views[] = {{NULL, image, lies, EDDY_F32, 4},
                                  {NULL, made, made_lies, EDDY_F32, 4}};
    return plans_with(&eddy_cpu_max_pool2d, views, 2, &attributes);
}

Test(start, products_that_the_library_serves_start_it) {
    cr_expect(!matmul_starts(EDDY_F32, 4) && !matmul_starts(EDDY_F32, 9), "tiny products");
    cr_expect(!matmul_starts(EDDY_F64, 64) && !matmul_starts(EDDY_I64, 64),
              "dtypes that it does not multiply");
    if (!is_portable())
        cr_expect(matmul_starts(EDDY_F32, 64) && !matmul_starts(EDDY_F32, 64), "once");
}

/* Once and for all: the library could multiply again. */
static void check_left_out(int64_t product) {
    if (is_portable())
        return;
    cr_expect_eq(eddy_gemm_choose(eddy_isa_chosen(), EDDY_F32, 64, 64, 64), EDDY_GEMM_DNNL);
    faults_refuse_product(product);
    cr_expect(matmul_starts(EDDY_F32, 64) && eddy_gemm_dnnl_is_left_out());
    cr_expect_neq(eddy_gemm_choose(eddy_isa_chosen(), EDDY_F32, 64, 64, 64), EDDY_GEMM_DNNL);
    cr_expect(!matmul_starts(EDDY_F32, 64) && eddy_gemm_dnnl_is_left_out());
}

Test(start, products_go_to_others_where_nobody_may_make_code) {
    check_left_out(0);
}

Test(start, products_go_to_others_where_some_code_cannot_be_made) {
    check_left_out(2);
}

Test(start, a_turned_product_starts_it_too) {
    const int64_t shape[] = {64, 64}, by_rows[] = {64, 1}, by_columns[] = {1, 64};
    const eddy_op_view in = {NULL, shape, by_rows, EDDY_F32, 2},
                       out = {NULL, shape, by_columns, EDDY_F32, 2};
    const eddy_op_view views[] = {in, in, out};
    if (!is_portable())
        cr_expect(starts(&eddy_cpu_matmul, views, 3, NULL));
}

Test(start, attention_starts_it) {
    cr_expect(!attention_starts(2, 3) && !attention_starts(1, 8), "tiny products");
    if (!is_portable())
        cr_expect(attention_starts(64, 64) && !attention_starts(64, 64), "once");
}

/* Scores of a row are products with a vector, which no library makes; those of the gradient of k and v are others. */
Test(start, attention_of_a_row_starts_what_its_gradient_needs) {
    if (!is_portable())
        cr_expect(attention_starts(1, 512));
}

Test(start, convolutions_that_the_library_serves_start_it) {
    cr_expect(!conv_starts(2), "a tiny image");
    if (!is_portable())
        cr_expect(conv_starts(32) && !conv_starts(32), "once");
}

Test(start, pools_that_the_library_serves_start_it) {
    cr_expect(!pool_starts(8), "a tiny image");
    if (!is_portable())
        cr_expect(pool_starts(64) && !pool_starts(64), "once");
}
static eddy_status lacking_status;

/* With the first request for what is kept refused. */
static bool lacking(const eddy_kernel *kernel, const eddy_op_view *views, int32_t count,
                    const void *attributes) {
    const eddy_kernel_call call = {
        .kernel = kernel, .views = views, .view_count = count, .attributes = attributes};
    _Alignas(8) char memory[EDDY_KERNEL_PLAN_BYTES];
    eddy_kernel_plan plan;
    plan.memory = memory;
    eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 1);
    lacking_status = eddy_kernel_prepare(&call, &plan);
    eddy_memory_fail_at(EDDY_MEMORY_CACHE, 0, 0);
    return plan.has_started_library;
}

/* It is the next one that is to register anew what has to be first at exit: whoever gets no plan does not look. */
Test(start, what_lacks_memory_starts_nothing) {
    if (is_portable())
        return;
    plans_with = lacking;
    cr_expect(!conv_starts(32) && lacking_status == EDDY_OUT_OF_MEMORY);
    cr_expect(!pool_starts(64) && lacking_status == EDDY_OUT_OF_MEMORY);
    plans_with = starts;
    cr_expect(conv_starts(32) && pool_starts(64));
}
#else
Test(start, there_is_no_library) {
    cr_expect(eddy_gemm_provider_f32(EDDY_GEMM_DNNL) == NULL);
}
#endif
