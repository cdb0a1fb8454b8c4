#include <base/assert.h>
#include <base/log.h>
#include <base/memory.h>
#include <kernels/cuda/gemm.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/blas.h>
#include <streams/cuda/gemm.h>
#include <streams/cuda/geometry.h>
#include <streams/cuda/launch.h>
#include <streams/cuda/provider.h>
#include <streams/cuda/question.h>
#include <streams/cuda/workspace.h>
#include <string.h>

/* What NVIDIA recommends: the most that an algorithm may ask for, on devices from Hopper on and before. */
#define WORKSPACE_BYTES ((uint64_t)32 << 20)
#define WORKSPACE_BYTES_BEFORE ((uint64_t)4 << 20)
#define HOPPER 90

/* Geometries that are remembered: each has a few places, from which the one goes that was asked for least recently. */
#define SETS 128
#define PLACES 4

enum { A, B, C, OUT, LAYOUTS };

/* What an algorithm depends on. Without padding. */
typedef struct geometry {
    eddy_cuda_gemm gemm;
    uint32_t alignment[LAYOUTS]; /* bytes that divide an address and the steps between batches */
    uint32_t row_alignment;
    uint32_t has_workspace; /* 0: there is no memory for one */
} geometry;
_Static_assert(sizeof(geometry) == sizeof(eddy_cuda_gemm) + (LAYOUTS + 2) * sizeof(uint32_t) &&
                   sizeof(geometry) % sizeof(uint64_t) == 0,
               "no padding");

/* An answer of the library. */
typedef struct algorithm {
    geometry of;
    uint64_t asked_at;                 /* 0: the place is free */
    bool is_found;                     /* else it has none, and the rest is not there */
    eddy_blas_product product;         /* the bias is set at each launch */
    eddy_blas_layout layouts[LAYOUTS]; /* C: NULL, where it is that of OUT */
    eddy_blas_algorithm algorithm;
    size_t workspace_bytes;
} algorithm;

struct eddy_cuda_gemms {
    eddy_blas_context context;
    uint64_t workspace_bytes_most;
    bool allows_tf32;
    uint64_t now; /* questions so far */
    algorithm known[SETS][PLACES];
};

bool eddy_cuda_gemm_open(bool *has_started) {
    if (eddy_cuda_provider_open(&eddy_cuda_blas_provider))
        *has_started = true;
    return eddy_cuda_provider_is_open(&eddy_cuda_blas_provider);
}

/* ---- the library's objects; names are the library's, whose matrices lie column by column: its A is our b, its rows are our columns ---- */

static const struct {
    eddy_blas_type type, scale;
    eddy_blas_compute sums;
} types[EDDY_DTYPE_COUNT] = {
    [EDDY_F32] = {EDDY_BLAS_F32, EDDY_BLAS_F32, EDDY_BLAS_SUMS_F32},
    [EDDY_F64] = {EDDY_BLAS_F64, EDDY_BLAS_F64, EDDY_BLAS_SUMS_F64},
    [EDDY_F16] = {EDDY_BLAS_F16, EDDY_BLAS_F32, EDDY_BLAS_SUMS_F32},
    [EDDY_BF16] = {EDDY_BLAS_BF16, EDDY_BLAS_F32, EDDY_BLAS_SUMS_F32},
};

static eddy_blas_status set_product(eddy_blas_product product, int attribute, int32_t value) {
    return eddy_cuda_blas.product_set(product, (eddy_blas_attribute_of_product)attribute, &value,
                                      sizeof(value));
}

static eddy_blas_status set_row(eddy_blas_product product, const void *row) {
    return eddy_cuda_blas.product_set(product, EDDY_BLAS_PRODUCT_BIAS, &row, sizeof(row));
}

static eddy_blas_status make_product(const geometry *of, bool allows_tf32,
                                     eddy_blas_product *product) {
    const eddy_cuda_gemm *gemm = &of->gemm;
    eddy_blas_compute sums = allows_tf32 && gemm->dtype == EDDY_F32 ? EDDY_BLAS_SUMS_F32_OF_TF32
                                                                    : types[gemm->dtype].sums;
    eddy_blas_status status =
        eddy_cuda_blas.product_create(product, sums, types[gemm->dtype].scale);
    if (status == 0 && gemm->is_b_transposed)
        status = set_product(*product, EDDY_BLAS_PRODUCT_TRANSPOSE_A, EDDY_BLAS_IS_TRANSPOSED);
    if (status == 0 && gemm->is_a_transposed)
        status = set_product(*product, EDDY_BLAS_PRODUCT_TRANSPOSE_B, EDDY_BLAS_IS_TRANSPOSED);
    if (status != 0 || gemm->addend != EDDY_CUDA_GEMM_ROW)
        return status;
    status = set_product(*product, EDDY_BLAS_PRODUCT_EPILOGUE, EDDY_BLAS_EPILOGUE_BIAS);
    /* The address is none: the library looks how it is aligned. */
    return status == 0 ? set_row(*product, (const void *)(uintptr_t)of->row_alignment) : status;
}

static eddy_blas_status make_layout(const eddy_cuda_gemm *gemm, int64_t rows, int64_t columns,
                                    const eddy_cuda_gemm_matrix *matrix, eddy_blas_layout *layout) {
    eddy_blas_status status = eddy_cuda_blas.layout_create(
        layout, types[gemm->dtype].type, (uint64_t)rows, (uint64_t)columns, matrix->leading);
    int32_t batches = (int32_t)gemm->batches;
    if (status != 0 || batches == 1)
        return status;
    status =
        eddy_cuda_blas.layout_set(*layout, EDDY_BLAS_LAYOUT_BATCH_COUNT, &batches, sizeof(batches));
    if (status == 0)
        status = eddy_cuda_blas.layout_set(*layout, EDDY_BLAS_LAYOUT_BATCH_OFFSET, &matrix->batch,
                                           sizeof(matrix->batch));
    return status;
}

static eddy_blas_status make_layouts(const eddy_cuda_gemm *gemm, eddy_blas_layout *layouts) {
    bool turns_a = gemm->is_a_transposed, turns_b = gemm->is_b_transposed;
    eddy_blas_status status =
        make_layout(gemm, turns_b ? gemm->depth : gemm->columns,
                    turns_b ? gemm->columns : gemm->depth, &gemm->b, &layouts[A]);
    if (status == 0)
        status = make_layout(gemm, turns_a ? gemm->rows : gemm->depth,
                             turns_a ? gemm->depth : gemm->rows, &gemm->a, &layouts[B]);
    if (status == 0 && gemm->addend == EDDY_CUDA_GEMM_MATRIX)
        status = make_layout(gemm, gemm->columns, gemm->rows, &gemm->c, &layouts[C]);
    return status == 0 ? make_layout(gemm, gemm->columns, gemm->rows, &gemm->out, &layouts[OUT])
                       : status;
}

static eddy_blas_layout layout_of_c(const algorithm *found) {
    return found->layouts[C] ? found->layouts[C] : found->layouts[OUT];
}

static eddy_blas_status make_preference(const geometry *of, uint64_t workspace_bytes,
                                        eddy_blas_preference *preference) {
    uint32_t reductions = EDDY_BLAS_REDUCTION_IN_SUMS;
    eddy_blas_status status = eddy_cuda_blas.preference_create(preference);
    if (status == 0)
        status = eddy_cuda_blas.preference_set(*preference, EDDY_BLAS_PREFERENCE_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof(workspace_bytes));
    if (status == 0)
        status = eddy_cuda_blas.preference_set(*preference, EDDY_BLAS_PREFERENCE_REDUCTIONS,
                                               &reductions, sizeof(reductions));
    static const eddy_blas_attribute_of_preference attributes[LAYOUTS] = {
        EDDY_BLAS_PREFERENCE_ALIGNMENT_A, EDDY_BLAS_PREFERENCE_ALIGNMENT_B,
        EDDY_BLAS_PREFERENCE_ALIGNMENT_C, EDDY_BLAS_PREFERENCE_ALIGNMENT_D};
    for (int k = 0; k < LAYOUTS && status == 0; k++)
        status = eddy_cuda_blas.preference_set(*preference, attributes[k], &of->alignment[k],
                                               sizeof(of->alignment[k]));
    return status;
}

/* ---- asking ---- */

static void forget(algorithm *known) {
    if (known->product)
        (void)eddy_cuda_blas.product_destroy(known->product);
    for (int k = 0; k < LAYOUTS; k++)
        if (known->layouts[k])
            (void)eddy_cuda_blas.layout_destroy(known->layouts[k]);
    *known = (algorithm){0};
}

static eddy_blas_status choose(const eddy_cuda_gemms *gemms, algorithm *asked,
                               eddy_blas_preference preference) {
    eddy_blas_choice choice = {0};
    int found = 0;
    eddy_blas_status status = eddy_cuda_blas.choose(
        gemms->context, asked->product, asked->layouts[A], asked->layouts[B], layout_of_c(asked),
        asked->layouts[OUT], preference, 1, &choice, &found);
    if (status == 0 && (found < 1 || choice.status != 0))
        return EDDY_BLAS_NOT_SUPPORTED;
    asked->is_found = status == 0;
    asked->algorithm = choice.algorithm;
    asked->workspace_bytes = choice.workspace_bytes;
    return status;
}

/* Fills in what the library says of the geometry, as far as it comes. */
static eddy_blas_status ask(const eddy_cuda_gemms *gemms, algorithm *asked) {
    const geometry *of = &asked->of;
    eddy_blas_preference preference = NULL;
    eddy_blas_status status = make_product(of, gemms->allows_tf32, &asked->product);
    if (status == 0)
        status = make_layouts(&of->gemm, asked->layouts);
    if (status == 0)
        status =
            make_preference(of, of->has_workspace ? gemms->workspace_bytes_most : 0, &preference);
    if (status == 0)
        status = choose(gemms, asked, preference);
    if (preference)
        (void)eddy_cuda_blas.preference_destroy(preference);
    return status;
}

/* The place of the geometry, or one for it, which is free then. */
static algorithm *place_of(eddy_cuda_gemms *gemms, const geometry *of) {
    algorithm *set = gemms->known[eddy_cuda_geometry_hash(of, sizeof(*of)) % SETS], *oldest = set;
    for (int k = 0; k < PLACES; k++) {
        if (set[k].asked_at != 0 && memcmp(&set[k].of, of, sizeof(*of)) == 0)
            return &set[k];
        if (set[k].asked_at < oldest->asked_at)
            oldest = &set[k];
    }
    forget(oldest);
    return oldest;
}

/* NULL: the library has none, or lacks memory to say so, and will be asked again. */
static algorithm *algorithm_of(eddy_cuda_gemms *gemms, eddy_backend *backend, const geometry *of) {
    algorithm *known = place_of(gemms, of);
    if (known->asked_at == 0) {
        known->of = *of;
        eddy_cuda_question_begin(backend);
        eddy_blas_status status = ask(gemms, known);
        eddy_cuda_question_end(backend);
        if (status != 0)
            forget(known);
        if (status == EDDY_BLAS_ALLOC_FAILED)
            return NULL;
        known->of = *of;
    }
    EDDY_ASSERT(!known->is_found || (known->product && known->layouts[OUT]));
    known->asked_at = ++gemms->now;
    return known->is_found ? known : NULL;
}

/* ---- what a call needs ---- */

/* Algorithms tell no more apart. */
static uint32_t alignment_of(const void *address, int64_t step_bytes) {
    uint64_t bits = (uint64_t)(uintptr_t)address | (uint64_t)step_bytes;
    return bits % 256 == 0 ? 256 : bits % 16 == 0 ? 16 : (uint32_t)(bits & -bits);
}

static geometry geometry_of(const eddy_cuda_gemm *gemm, const eddy_cuda_gemm_operands *operands) {
    int64_t bytes = (int64_t)eddy_dtype_bytes((eddy_dtype)gemm->dtype);
    bool has_row = gemm->addend == EDDY_CUDA_GEMM_ROW;
    EDDY_ASSERT(gemm->rows > 0 && gemm->depth > 0 && gemm->columns > 0 && gemm->batches > 0);
    EDDY_ASSERT(gemm->addend == EDDY_CUDA_GEMM_NOTHING || operands->c);
    geometry of = {.gemm = *gemm,
                   .alignment = {alignment_of(operands->b, gemm->b.batch * bytes),
                                 alignment_of(operands->a, gemm->a.batch * bytes), 0,
                                 alignment_of(operands->out, gemm->out.batch * bytes)},
                   .row_alignment = has_row ? alignment_of(operands->c, 0) : 0,
                   .has_workspace = true};
    of.alignment[C] = gemm->addend == EDDY_CUDA_GEMM_MATRIX
                          ? alignment_of(operands->c, gemm->c.batch * bytes)
                          : of.alignment[OUT];
    return of;
}

/* Within an entry. NULL: no memory. Without a context it refuses everything. */
static eddy_cuda_gemms *create(eddy_backend *backend) {
    eddy_cuda_gemms *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_CACHE);
    if (!made)
        return NULL;
    made->allows_tf32 = backend->options.allows_tf32;
    made->workspace_bytes_most = eddy_cuda_backend_device(backend)->capability >= HOPPER
                                     ? WORKSPACE_BYTES
                                     : WORKSPACE_BYTES_BEFORE;
    eddy_cuda_question_begin(backend);
    eddy_blas_status status = eddy_cuda_blas.create(&made->context);
    eddy_cuda_question_end(backend);
    if (status != 0) {
        eddy_log_line("cuda: cuBLASLt does not start on a device, where all is Eddy's: status %d",
                      (int)status);
        made->context = NULL;
    }
    return made;
}

void eddy_cuda_gemms_destroy(eddy_cuda_gemms *gemms) {
    if (!gemms)
        return;
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < PLACES; k++)
            forget(&gemms->known[s][k]);
    if (gemms->context)
        (void)eddy_cuda_blas.destroy(gemms->context);
    eddy_memory_release(gemms, sizeof(*gemms), EDDY_MEMORY_CACHE);
}

/* Within an entry. */
static algorithm *find(eddy_backend *backend, const geometry *of) {
    eddy_cuda_gemms **gemms = eddy_cuda_backend_gemms(backend);
    if (!*gemms)
        *gemms = create(backend);
    return *gemms && (*gemms)->context ? algorithm_of(*gemms, backend, of) : NULL;
}

/* ---- launching ---- */

/* A launch of a product: what it was given, and what was found for it. */
typedef struct gemm_launch {
    eddy_backend_launch *launch;
    const eddy_cuda_gemm_operands *operands;
    algorithm *found; /* NULL: there is none */
    void *workspace;
} gemm_launch;

/* False: the device is lost. */
static bool begin(gemm_launch *one, const geometry *of) {
    eddy_backend *backend = one->launch->queue->backend;
    if (!eddy_cuda_backend_begin(backend))
        return false;
    one->found = find(backend, of);
    return eddy_cuda_backend_end(backend, 0) == EDDY_OK;
}

/* Without memory for its workspace another algorithm may do. */
static bool begin_with_workspace(gemm_launch *one, const eddy_cuda_gemm *gemm) {
    eddy_backend_queue *queue = one->launch->queue;
    geometry of = geometry_of(gemm, one->operands);
    if (!begin(one, &of))
        return false;
    if (!one->found || one->found->workspace_bytes == 0)
        return true;
    one->workspace = eddy_cuda_workspace_take(queue, (int64_t)one->found->workspace_bytes);
    if (one->workspace)
        return true;
    of.has_workspace = false;
    return begin(one, &of);
}

static eddy_blas_status multiply(const gemm_launch *one) {
    const algorithm *found = one->found;
    const eddy_cuda_gemm *gemm = &found->of.gemm;
    const eddy_cuda_gemm_operands *operands = one->operands;
    bool has_row = gemm->addend == EDDY_CUDA_GEMM_ROW,
         is_f64 = types[gemm->dtype].scale == EDDY_BLAS_F64;
    double alpha = operands->alpha,
           beta = gemm->addend == EDDY_CUDA_GEMM_MATRIX ? operands->beta : 0;
    float alpha_f32 = (float)alpha, beta_f32 = (float)beta;
    eddy_blas_status status = has_row ? set_row(found->product, operands->c) : 0;
    if (status != 0)
        return status;
    const eddy_cuda_gemms *gemms = *eddy_cuda_backend_gemms(one->launch->queue->backend);
    return eddy_cuda_blas.multiply(
        gemms->context, found->product, is_f64 ? (const void *)&alpha : &alpha_f32, operands->b,
        found->layouts[A], operands->a, found->layouts[B], is_f64 ? (const void *)&beta : &beta_f32,
        found->layouts[C] ? operands->c : operands->out, layout_of_c(found), operands->out,
        found->layouts[OUT], &found->algorithm, one->workspace,
        one->workspace ? found->workspace_bytes : 0, eddy_cuda_backend_stream(one->launch->queue));
}

/* What the library refuses it has not launched: another kernel does it, now and later. Everything else is the device's. */
static bool launch_found(const gemm_launch *one) {
    eddy_backend_launch *launch = one->launch;
    eddy_backend *backend = launch->queue->backend;
    if (!eddy_cuda_launch_gate(launch) || !eddy_cuda_backend_begin(backend))
        return true;
    eddy_blas_status status = multiply(one);
    if (status == EDDY_BLAS_ALLOC_FAILED && eddy_cuda_backend_spare(backend))
        status = multiply(one);
    switch (status) {
    case EDDY_BLAS_NOT_SUPPORTED:
    case EDDY_BLAS_ARCH_MISMATCH:
    case EDDY_BLAS_INVALID_VALUE:
        if (eddy_cuda_backend_spoil(backend)) {
            (void)eddy_cuda_backend_end(backend, 0);
            return true;
        }
        one->found->is_found = false;
        return eddy_cuda_backend_end(backend, 0) != EDDY_OK;
    case EDDY_BLAS_ALLOC_FAILED:
        if (eddy_cuda_backend_end(backend, 0) == EDDY_OK) {
            eddy_backend_fail(launch, EDDY_OUT_OF_MEMORY);
            launch->has_failed = true;
        }
        return true;
    default:
        eddy_cuda_backend_end_library(backend, status == 0);
        return true;
    }
}

bool eddy_cuda_gemm_can(const eddy_kernel_call *call, const eddy_cuda_gemm *gemm,
                        const eddy_cuda_gemm_operands *operands) {
    gemm_launch one = {.launch = call->launch, .operands = operands};
    geometry of = geometry_of(gemm, operands);
    return !call->launch->writes_in_place && begin(&one, &of) && one.found;
}

bool eddy_cuda_gemm_launch(const eddy_kernel_call *call, const eddy_cuda_gemm *gemm,
                           const eddy_cuda_gemm_operands *operands) {
    eddy_backend_launch *launch = call->launch;
    gemm_launch one = {.launch = launch, .operands = operands};
    EDDY_ASSERT(eddy_cuda_provider_is_open(&eddy_cuda_blas_provider));
    if (launch->writes_in_place)
        return false;
    if (launch->has_failed || !begin_with_workspace(&one, gemm))
        return true;
    bool is_launched = one.found && launch_found(&one);
    eddy_cuda_workspace_give(launch, one.workspace);
    return is_launched;
}
