#include <base/assert.h>
#include <streams/cuda/dnn_plan.h>

/* Of a list of engines: those that are looked at. */
#define CONFIGS_MOST 64
/* More than there are notes. */
#define NOTES_MOST 32
#define DIMS 2

static const struct {
    int data, sums;
    eddy_dnn_type scale; /* the type of alpha and beta */
} types[EDDY_DTYPE_COUNT] = {
    [EDDY_F32] = {EDDY_DNN_F32, EDDY_DNN_F32, EDDY_DNN_TYPE_FLOAT},
    [EDDY_F64] = {EDDY_DNN_F64, EDDY_DNN_F64, EDDY_DNN_TYPE_DOUBLE},
    [EDDY_F16] = {EDDY_DNN_F16, EDDY_DNN_F32, EDDY_DNN_TYPE_FLOAT},
    [EDDY_BF16] = {EDDY_DNN_BF16, EDDY_DNN_F32, EDDY_DNN_TYPE_FLOAT},
};

static const struct {
    eddy_dnn_kind kind;
    eddy_dnn_attribute first;
} operations[] = {
    [EDDY_CUDA_DNN_FORWARD] = {EDDY_DNN_FORWARD, EDDY_DNN_FORWARD_FIRST},
    [EDDY_CUDA_DNN_X] = {EDDY_DNN_BACKWARD_X, EDDY_DNN_BACKWARD_X_FIRST},
    [EDDY_CUDA_DNN_WEIGHT] = {EDDY_DNN_BACKWARD_WEIGHT, EDDY_DNN_BACKWARD_WEIGHT_FIRST},
};

/* ---- descriptors ---- */

typedef struct setting {
    eddy_dnn_attribute attribute;
    eddy_dnn_type type;
    int64_t count;
    const void *elements;
} setting;

static eddy_dnn_status create(eddy_dnn_kind kind, eddy_dnn_descriptor *made) {
    EDDY_ASSERT(!*made);
    eddy_dnn_status status = eddy_cuda_dnn.descriptor_create(kind, made);
    if (status != 0)
        *made = NULL;
    return status;
}

/* Whatever fails, what was made is in *made. */
static eddy_dnn_status make(eddy_dnn_kind kind, const setting *settings, size_t count,
                            eddy_dnn_descriptor *made) {
    eddy_dnn_status status = create(kind, made);
    for (size_t k = 0; k < count && status == 0; k++)
        status = eddy_cuda_dnn.descriptor_set(*made, settings[k].attribute, settings[k].type,
                                              settings[k].count, settings[k].elements);
    return status == 0 ? eddy_cuda_dnn.descriptor_finalize(*made) : status;
}
#define MAKE(kind, made, ...)                                                                      \
    make(kind, (const setting[]){__VA_ARGS__},                                                     \
         sizeof((const setting[]){__VA_ARGS__}) / sizeof(setting), made)

static void forget(eddy_dnn_descriptor *descriptor) {
    if (*descriptor)
        (void)eddy_cuda_dnn.descriptor_destroy(*descriptor);
    *descriptor = NULL;
}

/* ---- the operation ---- */

static eddy_dnn_status make_tensor(const eddy_cuda_dnn_geometry *of, int number,
                                   eddy_dnn_descriptor *made) {
    const eddy_cuda_dnn_tensor *tensor = &of->conv.tensors[number];
    int64_t name = number, alignment = of->alignment[number];
    return MAKE(
        EDDY_DNN_TENSOR, made, {EDDY_DNN_TENSOR_NUMBER, EDDY_DNN_TYPE_INT64, 1, &name},
        {EDDY_DNN_TENSOR_DATA_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1, &types[of->conv.dtype].data},
        {EDDY_DNN_TENSOR_SIZES, EDDY_DNN_TYPE_INT64, EDDY_CUDA_AXES, tensor->sizes},
        {EDDY_DNN_TENSOR_STRIDES, EDDY_DNN_TYPE_INT64, EDDY_CUDA_AXES, tensor->strides},
        {EDDY_DNN_TENSOR_ALIGNMENT, EDDY_DNN_TYPE_INT64, 1, &alignment});
}

static eddy_dnn_status make_window(const eddy_cuda_dnn_conv *conv, eddy_dnn_descriptor *made) {
    static const int64_t dims = DIMS;
    static const int mode = EDDY_DNN_CROSS_CORRELATION;
    return MAKE(EDDY_DNN_CONVOLUTION, made,
                {EDDY_DNN_CONVOLUTION_SUMS, EDDY_DNN_TYPE_DATA_TYPE, 1, &types[conv->dtype].sums},
                {EDDY_DNN_CONVOLUTION_MODE, EDDY_DNN_TYPE_MODE, 1, &mode},
                {EDDY_DNN_CONVOLUTION_DIMS, EDDY_DNN_TYPE_INT64, 1, &dims},
                {EDDY_DNN_CONVOLUTION_STRIDES, EDDY_DNN_TYPE_INT64, DIMS, conv->stride},
                {EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD, EDDY_DNN_TYPE_INT64, DIMS, conv->padding},
                {EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND, EDDY_DNN_TYPE_INT64, DIMS, conv->padding},
                {EDDY_DNN_CONVOLUTION_DILATIONS, EDDY_DNN_TYPE_INT64, DIMS, conv->dilation});
}

static eddy_dnn_status make_operation(const eddy_cuda_dnn_conv *conv,
                                      const eddy_dnn_descriptor *parts, eddy_dnn_descriptor *made) {
    const eddy_dnn_attribute first = operations[conv->way].first;
    const eddy_dnn_type type = types[conv->dtype].scale;
    const double wide[] = {1, conv->adds};
    const float narrow[] = {1, conv->adds};
    bool is_wide = type == EDDY_DNN_TYPE_DOUBLE;
    const void *alpha = is_wide ? (const void *)&wide[0] : &narrow[0],
               *beta = is_wide ? (const void *)&wide[1] : &narrow[1];
    return MAKE(
        operations[conv->way].kind, made, {first + EDDY_DNN_OPERATION_ALPHA, type, 1, alpha},
        {first + EDDY_DNN_OPERATION_BETA, type, 1, beta},
        {first + EDDY_DNN_OPERATION_CONVOLUTION, EDDY_DNN_TYPE_DESCRIPTOR, 1,
         &parts[EDDY_CUDA_DNN_PART_WINDOW]},
        {first + EDDY_DNN_OPERATION_WEIGHT, EDDY_DNN_TYPE_DESCRIPTOR, 1,
         &parts[EDDY_CUDA_DNN_PART_WEIGHT]},
        {first + EDDY_DNN_OPERATION_X, EDDY_DNN_TYPE_DESCRIPTOR, 1, &parts[EDDY_CUDA_DNN_PART_X]},
        {first + EDDY_DNN_OPERATION_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1, &parts[EDDY_CUDA_DNN_PART_Y]});
}

/* All up to the graph, which is the operation alone. */
static eddy_dnn_status make_graph(eddy_dnn_context context, const eddy_cuda_dnn_geometry *of,
                                  eddy_dnn_descriptor *parts) {
    eddy_dnn_status status = 0;
    for (int k = 0; k < EDDY_CUDA_DNN_TENSORS && status == 0; k++)
        status = make_tensor(of, k, &parts[EDDY_CUDA_DNN_PART_X + k]);
    if (status == 0)
        status = make_window(&of->conv, &parts[EDDY_CUDA_DNN_PART_WINDOW]);
    if (status == 0)
        status = make_operation(&of->conv, parts, &parts[EDDY_CUDA_DNN_PART_OPERATION]);
    if (status != 0)
        return status;
    return MAKE(EDDY_DNN_GRAPH, &parts[EDDY_CUDA_DNN_PART_GRAPH],
                {EDDY_DNN_GRAPH_HANDLE, EDDY_DNN_TYPE_HANDLE, 1, &context},
                {EDDY_DNN_GRAPH_OPERATIONS, EDDY_DNN_TYPE_DESCRIPTOR, 1,
                 &parts[EDDY_CUDA_DNN_PART_OPERATION]});
}

/* ---- engines ---- */

/* Whether an engine may compute so: sums of products of the elements as they are (which of f32 tensor cores do not take), the same each time, of which those that a window does not reach have no part (an infinity would spread by way of
 * FFT and Winograd). Of notes that are not known nobody knows. */
static bool are_fine(const int *notes, int64_t count, bool has_tensor_cores) {
    for (int64_t k = 0; k < count; k++)
        if (notes[k] != EDDY_DNN_NOTE_STRICT_NAN &&
            (notes[k] != EDDY_DNN_NOTE_TENSOR_CORES || !has_tensor_cores))
            return false;
    return true;
}

/* *is_fine: of the engine of a configuration. */
static eddy_dnn_status look_at(eddy_dnn_descriptor config, bool has_tensor_cores, bool *is_fine) {
    eddy_dnn_descriptor engine = NULL;
    int notes[NOTES_MOST];
    int64_t count = 0;
    eddy_dnn_status status = create(EDDY_DNN_ENGINE, &engine);
    if (status != 0)
        return status;
    status = eddy_cuda_dnn.descriptor_get(config, EDDY_DNN_ENGINE_CONFIG_ENGINE,
                                          EDDY_DNN_TYPE_DESCRIPTOR, 1, &count, &engine);
    if (status == 0)
        status = eddy_cuda_dnn.descriptor_get(engine, EDDY_DNN_ENGINE_NOTES, EDDY_DNN_TYPE_NOTE,
                                              NOTES_MOST, &count, notes);
    *is_fine = status == 0 && count <= NOTES_MOST && are_fine(notes, count, has_tensor_cores);
    forget(&engine);
    return status;
}

/* NOT_SUPPORTED: another configuration may do. */
static eddy_dnn_status try_config(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                  eddy_dnn_descriptor config, bool has_tensor_cores,
                                  uint64_t workspace_most) {
    bool is_fine = false;
    int64_t count = 0;
    eddy_dnn_descriptor *made = &plan->parts[EDDY_CUDA_DNN_PART_PLAN];
    eddy_dnn_status status = look_at(config, has_tensor_cores, &is_fine);
    if (status != 0 || !is_fine)
        return status != 0 ? status : EDDY_DNN_NOT_SUPPORTED;
    status = MAKE(EDDY_DNN_PLAN, made, {EDDY_DNN_PLAN_HANDLE, EDDY_DNN_TYPE_HANDLE, 1, &context},
                  {EDDY_DNN_PLAN_ENGINE_CONFIG, EDDY_DNN_TYPE_DESCRIPTOR, 1, &config});
    if (status == 0)
        status =
            eddy_cuda_dnn.descriptor_get(*made, EDDY_DNN_PLAN_WORKSPACE_BYTES, EDDY_DNN_TYPE_INT64,
                                         1, &count, &plan->workspace_bytes);
    if (status == 0 && (uint64_t)plan->workspace_bytes > workspace_most)
        status = EDDY_DNN_NOT_SUPPORTED;
    if (status != 0)
        forget(made);
    return status;
}

/* A list of the library's. */
typedef struct configs {
    eddy_dnn_descriptor heuristics, all[CONFIGS_MOST];
    int64_t count; /* that are filled in */
} configs;

static void configs_fini(configs *list) {
    for (int k = 0; k < CONFIGS_MOST; k++)
        forget(&list->all[k]);
    forget(&list->heuristics);
}

/* Of a failure the list has what was made so far. */
static eddy_dnn_status configs_init(configs *list, eddy_dnn_descriptor graph, int mode) {
    *list = (configs){0};
    int64_t there = 0;
    eddy_dnn_status status =
        MAKE(EDDY_DNN_HEURISTICS, &list->heuristics,
             {EDDY_DNN_HEURISTICS_GRAPH, EDDY_DNN_TYPE_DESCRIPTOR, 1, &graph},
             {EDDY_DNN_HEURISTICS_MODE, EDDY_DNN_TYPE_HEURISTICS_MODE, 1, &mode});
    if (status == 0)
        status = eddy_cuda_dnn.descriptor_get(list->heuristics, EDDY_DNN_HEURISTICS_RESULTS,
                                              EDDY_DNN_TYPE_DESCRIPTOR, 0, &there, NULL);
    if (there > CONFIGS_MOST)
        there = CONFIGS_MOST;
    for (int64_t k = 0; k < there && status == 0; k++)
        status = create(EDDY_DNN_ENGINE_CONFIG, &list->all[k]);
    if (status == 0 && there > 0)
        status =
            eddy_cuda_dnn.descriptor_get(list->heuristics, EDDY_DNN_HEURISTICS_RESULTS,
                                         EDDY_DNN_TYPE_DESCRIPTOR, there, &list->count, list->all);
    if (list->count > there)
        list->count = there;
    return status;
}

static eddy_dnn_status choose(eddy_cuda_dnn_plan *plan, eddy_dnn_context context, int mode,
                              bool has_tensor_cores, uint64_t workspace_most) {
    configs list;
    eddy_dnn_status status = configs_init(&list, plan->parts[EDDY_CUDA_DNN_PART_GRAPH], mode);
    int64_t k = 0;
    if (status == 0) {
        status = EDDY_DNN_NOT_SUPPORTED;
        for (; k < list.count; k++) {
            status = try_config(plan, context, list.all[k], has_tensor_cores, workspace_most);
            if (status == 0 || eddy_dnn_lacks_memory(status))
                break;
        }
    }
    if (status == 0) {
        plan->parts[EDDY_CUDA_DNN_PART_CONFIG] = list.all[k];
        list.all[k] = NULL;
    }
    configs_fini(&list);
    return status;
}

/* ---- plans ---- */

eddy_dnn_status eddy_cuda_dnn_plan_init(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                        const eddy_cuda_dnn_geometry *of, bool allows_tf32,
                                        uint64_t workspace_most) {
    *plan = (eddy_cuda_dnn_plan){0};
    bool has_tensor_cores = allows_tf32 || of->conv.dtype != EDDY_F32;
    eddy_dnn_status status = make_graph(context, of, plan->parts);
    if (status != 0)
        return status;
    status = choose(plan, context, EDDY_DNN_HEURISTICS_A, has_tensor_cores, workspace_most);
    if (status == 0 || eddy_dnn_lacks_memory(status))
        return status;
    return choose(plan, context, EDDY_DNN_HEURISTICS_FALLBACK, has_tensor_cores, workspace_most);
}

void eddy_cuda_dnn_plan_fini(eddy_cuda_dnn_plan *plan) {
    for (int k = EDDY_CUDA_DNN_PARTS - 1; k >= 0; k--)
        forget(&plan->parts[k]);
}

eddy_dnn_status eddy_cuda_dnn_plan_execute(const eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                           const eddy_cuda_dnn_operands *operands,
                                           void *workspace) {
    static const int64_t numbers[EDDY_CUDA_DNN_TENSORS] = {
        EDDY_CUDA_DNN_AT_X, EDDY_CUDA_DNN_AT_WEIGHT, EDDY_CUDA_DNN_AT_Y};
    eddy_dnn_descriptor pack = NULL;
    eddy_dnn_status status = MAKE(
        EDDY_DNN_VARIANT_PACK, &pack,
        {EDDY_DNN_PACK_NUMBERS, EDDY_DNN_TYPE_INT64, EDDY_CUDA_DNN_TENSORS, numbers},
        {EDDY_DNN_PACK_ADDRESSES, EDDY_DNN_TYPE_ADDRESS, EDDY_CUDA_DNN_TENSORS, operands->data},
        {EDDY_DNN_PACK_WORKSPACE, EDDY_DNN_TYPE_ADDRESS, 1, &workspace});
    if (status == 0)
        status = eddy_cuda_dnn.execute(context, plan->parts[EDDY_CUDA_DNN_PART_PLAN], pack);
    forget(&pack);
    return status;
}
