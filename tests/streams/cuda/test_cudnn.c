/* NVIDIA's own cuDNN takes the descriptions of convolutions and attention, and makes plans of them by engines whose numbers are Eddy's: for a GPU that is described to it, so that none is needed. Nothing is
 * launched. The kernels of attention are compiled, and loaded by a driver that takes anything (any_driver.c). */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <kernels/cuda/dnn_attention.h>
#include <kernels/cuda/dnn_conv.h>
#include <stdio.h>
#include <streams/cuda/dnn_plan.h>
#include <streams/cuda/provider.h>
#include <string.h>

/* What stands for a GPU in the library since 9.8: a descriptor in the place of a context. */
#define DEVICE 38
#define DEVICE_TEXT 2702
#define HEURISTICS_DEVICE 204
#define PLAN_DEVICE 407
#define TYPE_CHAR 24
#define VERSION_WITH_DEVICES 90800

#define WORKSPACE ((uint64_t)256 << 20)

/* As an H100 has it, but for the capability. */
static const char device_text[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"deviceVer\":%d0,\"driverVer\":13000,"
    "\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";

static eddy_cuda_dnn_entries own; /* the library's, where the table has those below */
static eddy_dnn_descriptor device;

/* Where a context would say what the device is, the descriptor does. */
static eddy_dnn_status set(eddy_dnn_descriptor descriptor, eddy_dnn_attribute attribute,
                           eddy_dnn_type type, int64_t count, const void *elements) {
    if (attribute == EDDY_DNN_GRAPH_HANDLE)
        return 0;
    if (attribute == EDDY_DNN_PLAN_HANDLE)
        return own.descriptor_set(descriptor, PLAN_DEVICE, EDDY_DNN_TYPE_DESCRIPTOR, 1, &device);
    eddy_dnn_status status = own.descriptor_set(descriptor, attribute, type, count, elements);
    if (status == 0 && attribute == EDDY_DNN_HEURISTICS_MODE)
        status =
            own.descriptor_set(descriptor, HEURISTICS_DEVICE, EDDY_DNN_TYPE_DESCRIPTOR, 1, &device);
    return status;
}

/* Whether the library takes a device of the capability, which plans are for from now on. */
static bool describe(int capability) {
    char text[sizeof(device_text) + 16];
    int length = snprintf(text, sizeof(text), device_text, capability);
    return own.descriptor_create(DEVICE, &device) == 0 &&
           own.descriptor_set(device, DEVICE_TEXT, TYPE_CHAR, length, text) == 0 &&
           own.descriptor_finalize(device) == 0;
}

/* NULL, or why the library cannot be asked. */
static const char *open_library(void) {
    if (device)
        return NULL;
    (void)eddy_cuda_provider_open(&eddy_cuda_dnn_provider);
    if (!eddy_cuda_provider_is_open(&eddy_cuda_dnn_provider))
        return eddy_cuda_dnn_provider.why;
    if (eddy_cuda_dnn.version() < VERSION_WITH_DEVICES)
        return "the library takes no device that is described";
    own = eddy_cuda_dnn;
    eddy_cuda_dnn.descriptor_set = set;
    return describe(90) ? NULL : "the library describes devices in another way";
}

static void begin(void) {
    const char *why_not = open_library();
    if (why_not)
        cr_skip_test("%s", why_not);
}

/* ---- what is asked ---- */

typedef struct question {
    eddy_cuda_dnn_way way;
    eddy_dtype dtype;
    bool are_last, adds; /* images have channels last; the result is added to */
    int64_t groups;
} question;

static void lay(eddy_op_view *view, int64_t *strides, bool is_last) {
    const int64_t *shape = view->shape;
    int64_t channel = is_last ? 1 : shape[2] * shape[3], column = is_last ? shape[1] : 1;
    strides[0] = shape[1] * shape[2] * shape[3];
    strides[1] = channel;
    strides[2] = shape[3] * column;
    strides[3] = column;
    view->strides = strides;
}

static eddy_cuda_dnn_geometry geometry_of(const question *q) {
    int64_t shapes[][4] = {{4, 24, 14, 15}, {36, 24 / q->groups, 3, 3}, {4, 36, 7, 8}},
            strides[3][4];
    eddy_op_view views[3];
    for (int k = 0; k < 3; k++) {
        views[k] = (eddy_op_view){.dtype = q->dtype, .rank = 4, .shape = shapes[k]};
        lay(&views[k], strides[k], q->are_last && k != EDDY_CUDA_DNN_AT_WEIGHT);
    }
    eddy_attributes_conv attributes = {
        .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}, .groups = q->groups};
    eddy_cuda_dnn_geometry of = {.alignment = {16, 16, 16}, .has_workspace = true};
    cr_assert(
        eddy_cuda_dnn_conv_of(q->way, &views[0], &views[1], &views[2], &attributes, &of.question));
    of.question.conv.adds = q->adds;
    return of;
}

static eddy_dnn_context no_context(void) {
    static int nothing;
    return (eddy_dnn_context)(void *)&nothing;
}

/* ---- */

#define NOTES 32

/* A bit for each note of the engine that a plan is made of. */
static uint32_t notes_of(eddy_dnn_descriptor config) {
    eddy_dnn_descriptor engine;
    int notes[NOTES];
    int64_t count = 0;
    uint32_t bits = 0;
    cr_assert_eq(own.descriptor_create(EDDY_DNN_ENGINE, &engine), 0);
    cr_assert_eq(own.descriptor_get(config, EDDY_DNN_ENGINE_CONFIG_ENGINE, EDDY_DNN_TYPE_DESCRIPTOR,
                                    1, &count, &engine),
                 0);
    cr_assert_eq(
        own.descriptor_get(engine, EDDY_DNN_ENGINE_NOTES, EDDY_DNN_TYPE_NOTE, NOTES, &count, notes),
        0);
    for (int64_t k = 0; k < count; k++)
        bits |= 1u << notes[k];
    cr_assert_eq(own.descriptor_destroy(engine), 0);
    return bits;
}

static void expect_plan(const question *q) {
    eddy_cuda_dnn_geometry of = geometry_of(q);
    eddy_cuda_dnn_plan plan;
    eddy_dnn_status status = eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE);
    cr_assert_eq(status, 0, "way %d, %s, %s, %d groups: %d", q->way, eddy_dtype_name(q->dtype),
                 q->are_last ? "channels last" : "by rows", (int)q->groups, status);
    uint32_t allowed = 1u << EDDY_DNN_NOTE_STRICT_NAN;
    if (q->dtype != EDDY_F32)
        allowed |= 1u << EDDY_DNN_NOTE_TENSOR_CORES;
    cr_assert_eq(notes_of(plan.config) & ~allowed, 0);
    cr_assert(plan.workspace_bytes >= 0 && plan.workspace_bytes <= (int64_t)WORKSPACE);
    eddy_cuda_dnn_plan_fini(&plan);
}

Test(cudnn, plans_convolutions_and_their_gradients, .init = begin) {
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    static const int64_t groups[] = {1, 4, 12};
    for (int way = EDDY_CUDA_DNN_FORWARD; way <= EDDY_CUDA_DNN_WEIGHT; way++)
        for (int d = 0; d < 4; d++)
            for (int g = 0; g < 3; g++)
                for (int form = 0; form < 4; form++)
                    expect_plan(&(question){.way = (eddy_cuda_dnn_way)way,
                                            .dtype = dtypes[d],
                                            .are_last = form & 1,
                                            .adds = form & 2,
                                            .groups = groups[g]});
}

/* ---- attention ---- */

typedef struct attention_question {
    eddy_dtype dtype;
    int64_t batches, heads, shared_heads, rows, columns, width, value_width;
    bool is_causal, are_heads_inside; /* [B, L, H, D] in memory */
} attention_question;

/* Of [batches, heads, rows, columns], as it lies. */
static eddy_cuda_attention_operand matrix_of(const attention_question *q, int64_t heads,
                                             int64_t rows, int64_t columns) {
    const int64_t bytes = eddy_dtype_size(q->dtype), row = columns * bytes;
    eddy_cuda_attention_operand operand = {.data = (void *)(uintptr_t)4096, .column = bytes};
    operand.row = q->are_heads_inside ? heads * row : row;
    operand.batch[0] = heads * rows * row;
    operand.batch[1] = heads == 1 ? 0 : q->are_heads_inside ? row : rows * row;
    return operand;
}

static eddy_cuda_dnn_geometry attention_geometry(const attention_question *q) {
    eddy_cuda_attention p = {.rank = 2,
                             .sizes = {q->batches, q->heads},
                             .rows = q->rows,
                             .columns = q->columns,
                             .width = q->width,
                             .value_width = q->value_width,
                             .scale = 0.125,
                             .is_causal = q->is_causal};
    p.operands[EDDY_CUDA_ATTENTION_Q] = matrix_of(q, q->heads, q->rows, q->width);
    p.operands[EDDY_CUDA_ATTENTION_K] = matrix_of(q, q->shared_heads, q->columns, q->width);
    p.operands[EDDY_CUDA_ATTENTION_V] = matrix_of(q, q->shared_heads, q->columns, q->value_width);
    p.operands[EDDY_CUDA_ATTENTION_OUT] = matrix_of(q, q->heads, q->rows, q->value_width);
    eddy_cuda_dnn_geometry of = {.alignment = {16, 16, 16, 16}, .has_workspace = true};
    cr_assert(eddy_cuda_dnn_attention_of(&p, q->dtype, &of.question));
    return of;
}

static void expect_attention(const attention_question *q, int capability) {
    eddy_cuda_dnn_geometry of = attention_geometry(q);
    eddy_cuda_dnn_plan plan;
    eddy_dnn_status status = eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE);
    cr_assert_eq(status, 0, "capability %d, %s, %d x %d, widths %d, %d, %s, %s: %d", capability,
                 eddy_dtype_name(q->dtype), (int)q->rows, (int)q->columns, (int)q->width,
                 (int)q->value_width, q->is_causal ? "causal" : "all",
                 q->are_heads_inside ? "heads inside" : "heads outside", status);
    const uint32_t allowed = 1u << EDDY_DNN_NOTE_STRICT_NAN | 1u << EDDY_DNN_NOTE_TENSOR_CORES;
    cr_assert_eq(notes_of(plan.config) & ~allowed, 0);
    cr_assert_geq(plan.workspace_bytes, q->batches * q->heads * q->rows * 4);
    eddy_cuda_dnn_plan_fini(&plan);
}

Test(cudnn, plans_attention, .init = begin) {
    static const eddy_dtype dtypes[] = {EDDY_F16, EDDY_BF16};
    for (int d = 0; d < 2; d++)
        for (int form = 0; form < 4; form++) {
            attention_question q = {.dtype = dtypes[d],
                                    .batches = 2,
                                    .heads = 4,
                                    .shared_heads = d == 0 ? 4 : 1,
                                    .rows = 128,
                                    .columns = 128,
                                    .width = 64,
                                    .value_width = 64,
                                    .is_causal = form & 1,
                                    .are_heads_inside = form & 2};
            if (form == 3) /* each is compiled, for half a second */
                expect_attention(&q, 90);
            q.rows = 77, q.columns = 100, q.width = 40, q.value_width = 128;
            expect_attention(&q, 90);
        }
}

/* A step of inference has one row; and a graph alone in its batch, with one head. */
Test(cudnn, plans_attention_of_few_rows_and_for_other_devices, .init = begin) {
    static const int capabilities[] = {80, 86, 90, 100, 120};
    for (int c = 0; c < 5; c++) {
        cr_assert(describe(capabilities[c]));
        attention_question q = {.dtype = EDDY_BF16,
                                .batches = 1,
                                .heads = 1,
                                .shared_heads = 1,
                                .rows = 1,
                                .columns = 300,
                                .width = 64,
                                .value_width = 64};
        expect_attention(&q, capabilities[c]);
        q.rows = 300, q.is_causal = true;
        expect_attention(&q, capabilities[c]);
    }
}

static eddy_cuda_dnn_geometry small_geometry(eddy_dtype dtype, bool is_causal) {
    return attention_geometry(&(attention_question){.dtype = dtype,
                                                    .batches = 1,
                                                    .heads = 2,
                                                    .shared_heads = 2,
                                                    .rows = 16,
                                                    .columns = 16,
                                                    .width = 64,
                                                    .value_width = 64,
                                                    .is_causal = is_causal});
}

/* Where it has no plan it says so: of GPUs before tensor cores for bf16. */
Test(cudnn, refuses_attention_that_it_does_not_have, .init = begin) {
    cr_assert(describe(75));
    eddy_cuda_dnn_geometry of = small_geometry(EDDY_BF16, false);
    eddy_cuda_dnn_plan plan;
    eddy_dnn_status status = eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE);
    cr_assert_eq(status / 1000 * 1000, EDDY_DNN_NOT_SUPPORTED, "%d", status);
    eddy_cuda_dnn_plan_fini(&plan);
}

/* There has to be memory for what is beside. */
Test(cudnn, plans_no_attention_without_a_workspace, .init = begin) {
    eddy_cuda_dnn_geometry of = small_geometry(EDDY_F16, false);
    eddy_cuda_dnn_plan plan;
    eddy_dnn_status status = eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, 0);
    cr_assert_eq(status / 1000 * 1000, EDDY_DNN_NOT_SUPPORTED, "%d", status);
    eddy_cuda_dnn_plan_fini(&plan);
}

/* ---- */

#define CONFIGS 64

/* And at addresses that only elements divide. */
Test(cudnn, plans_for_other_devices_and_any_alignment, .init = begin) {
    static const int capabilities[] = {75, 80, 86, 100, 120};
    for (int c = 0; c < 5; c++) {
        cr_assert(describe(capabilities[c]));
        for (int way = EDDY_CUDA_DNN_FORWARD; way <= EDDY_CUDA_DNN_WEIGHT; way++)
            for (int d = 0; d < 3; d++) {
                static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16};
                const question q = {.way = (eddy_cuda_dnn_way)way,
                                    .dtype = dtypes[d],
                                    .adds = way != EDDY_CUDA_DNN_WEIGHT,
                                    .groups = 3};
                eddy_cuda_dnn_geometry of = geometry_of(&q);
                for (int k = 0; k < EDDY_CUDA_DNN_CONV_TENSORS; k++)
                    of.alignment[k] = (uint32_t)eddy_dtype_bytes(q.dtype);
                eddy_cuda_dnn_plan plan;
                eddy_dnn_status status =
                    eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE);
                cr_assert_eq(status, 0, "capability %d, way %d, %s: %d", capabilities[c], way,
                             eddy_dtype_name(q.dtype), status);
                eddy_cuda_dnn_plan_fini(&plan);
            }
    }
}

/* Of f32 there are engines that Eddy does not take. */
Test(cudnn, would_take_tf32_by_itself, .init = begin) {
    eddy_cuda_dnn_geometry of = geometry_of(&(question){.dtype = EDDY_F32, .groups = 1});
    eddy_cuda_dnn_plan plan;
    cr_assert_eq(eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE), 0);
    int mode = EDDY_DNN_HEURISTICS_A, coarse = 0;
    int64_t count = 0;
    eddy_dnn_descriptor heuristics, all[CONFIGS];
    cr_assert_eq(own.descriptor_create(EDDY_DNN_HEURISTICS, &heuristics), 0);
    cr_assert_eq(
        set(heuristics, EDDY_DNN_HEURISTICS_GRAPH, EDDY_DNN_TYPE_DESCRIPTOR, 1, &plan.graph), 0);
    cr_assert_eq(set(heuristics, EDDY_DNN_HEURISTICS_MODE, EDDY_DNN_TYPE_HEURISTICS_MODE, 1, &mode),
                 0);
    cr_assert_eq(own.descriptor_finalize(heuristics), 0);
    for (int k = 0; k < CONFIGS; k++)
        cr_assert_eq(own.descriptor_create(EDDY_DNN_ENGINE_CONFIG, &all[k]), 0);
    cr_assert_eq(own.descriptor_get(heuristics, EDDY_DNN_HEURISTICS_RESULTS,
                                    EDDY_DNN_TYPE_DESCRIPTOR, CONFIGS, &count, all),
                 0);
    for (int64_t k = 0; k < count; k++)
        coarse += notes_of(all[k]) >> EDDY_DNN_NOTE_TENSOR_CORES & 1;
    cr_assert_gt(coarse, 0);
    for (int k = 0; k < CONFIGS; k++)
        cr_assert_eq(own.descriptor_destroy(all[k]), 0);
    cr_assert_eq(own.descriptor_destroy(heuristics), 0);
    eddy_cuda_dnn_plan_fini(&plan);
}

Test(cudnn, plans_without_a_workspace, .init = begin) {
    for (int way = EDDY_CUDA_DNN_FORWARD; way <= EDDY_CUDA_DNN_WEIGHT; way++) {
        eddy_cuda_dnn_geometry of =
            geometry_of(&(question){.way = (eddy_cuda_dnn_way)way, .dtype = EDDY_F16, .groups = 1});
        eddy_cuda_dnn_plan plan;
        cr_assert_eq(eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, 0), 0);
        cr_assert_eq(plan.workspace_bytes, 0);
        eddy_cuda_dnn_plan_fini(&plan);
    }
}

Test(cudnn, refuses_what_does_not_fit, .init = begin) {
    eddy_cuda_dnn_geometry of = geometry_of(&(question){.dtype = EDDY_F32, .groups = 1});
    eddy_cuda_dnn_plan plan;
    of.question.conv.padding[0] = 2;
    eddy_dnn_status status = eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE);
    cr_assert_eq(status / 1000 * 1000, EDDY_DNN_BAD_PARAM, "%d", status);
    eddy_cuda_dnn_plan_fini(&plan);
}

static int executions;

static eddy_dnn_status execute_nothing(eddy_dnn_context context, eddy_dnn_descriptor plan,
                                       eddy_dnn_descriptor pack) {
    cr_assert(context && plan && pack);
    executions++;
    return 0;
}

/* Addresses are taken, with a workspace or without. */
Test(cudnn, takes_addresses, .init = begin) {
    eddy_cuda_dnn_geometry of = geometry_of(&(question){.dtype = EDDY_F32, .groups = 1});
    eddy_cuda_dnn_plan plan;
    cr_assert_eq(eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, 0), 0);
    char memory[4];
    eddy_cuda_dnn_operands operands = {.data = {&memory[0], &memory[1], &memory[2]}};
    eddy_cuda_dnn.execute = execute_nothing;
    cr_assert_eq(eddy_cuda_dnn_plan_execute(&plan, no_context(), &operands, NULL), 0);
    cr_assert_eq(eddy_cuda_dnn_plan_execute(&plan, no_context(), &operands, &memory[3]), 0);
    cr_assert_eq(executions, 2);
    eddy_cuda_dnn_plan_fini(&plan);
}

/* Of numbers, too, and of what is beside. */
Test(cudnn, takes_addresses_of_attention, .init = begin) {
    _Alignas(256) static char memory[4][256];
    eddy_cuda_dnn.execute = execute_nothing;
    for (int is_causal = 0; is_causal < 2; is_causal++) {
        eddy_cuda_dnn_geometry of = small_geometry(EDDY_F16, is_causal);
        eddy_cuda_dnn_plan plan;
        eddy_cuda_dnn_operands operands = {.data = {memory[0], memory[1], memory[2], memory[3]},
                                           .scale = 0.5f};
        cr_assert_eq(eddy_cuda_dnn_plan_init(&plan, no_context(), &of, false, WORKSPACE), 0);
        cr_assert_eq(eddy_cuda_dnn_plan_execute(&plan, no_context(), &operands, memory[0]), 0);
        cr_assert_eq(executions, is_causal + 1);
        eddy_cuda_dnn_plan_fini(&plan);
    }
}

/* 77: without the library all was skipped. */
int main(int argc, char **argv) {
    struct criterion_test_set *tests = criterion_initialize();
    bool is_fine = !criterion_handle_args(argc, argv, true) || criterion_run_all_tests(tests);
    criterion_finalize(tests);
    const char *why_not = is_fine ? open_library() : NULL;
    if (why_not) {
        fprintf(stderr, "%s\n", why_not);
        return 77;
    }
    return is_fine ? 0 : 1;
}
