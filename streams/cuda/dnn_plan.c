#include <streams/cuda/dnn_attention.h>
#include <streams/cuda/dnn_conv.h>
#include <streams/cuda/dnn_plan.h>
#include <string.h>

/* Of a list of engines: those that are looked at. */
#define CONFIGS_MOST 64
/* More than there are notes. */
#define NOTES_MOST 32

const eddy_cuda_dnn_type eddy_cuda_dnn_types[EDDY_DTYPE_COUNT] = {
    [EDDY_F32] = {EDDY_DNN_F32, EDDY_DNN_F32},
    [EDDY_F64] = {EDDY_DNN_F64, EDDY_DNN_F64},
    [EDDY_F16] = {EDDY_DNN_F16, EDDY_DNN_F32},
    [EDDY_BF16] = {EDDY_DNN_BF16, EDDY_DNN_F32},
};

/* ---- the graph ---- */

eddy_dnn_descriptor eddy_cuda_dnn_add_operand(eddy_cuda_dnn_build *build,
                                              const eddy_cuda_dnn_geometry *of, int number) {
    return eddy_cuda_dnn_add_tensor(build, EDDY_CUDA_DNN_IN_MEMORY, number,
                                    eddy_cuda_dnn_types[of->question.dtype].data,
                                    &of->question.tensors[number], of->alignment[number]);
}

static eddy_dnn_status make_graph(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                  const eddy_cuda_dnn_geometry *of) {
    eddy_cuda_dnn_build *build = &plan->build;
    if (of->question.kind == EDDY_CUDA_DNN_IS_ATTENTION)
        eddy_cuda_dnn_attention_build(build, of);
    else
        eddy_cuda_dnn_conv_build(build, of);
    if (build->status != 0)
        return build->status;
    return EDDY_CUDA_DNN_MAKE(EDDY_DNN_GRAPH, &plan->graph,
                              {EDDY_DNN_GRAPH_HANDLE, EDDY_DNN_TYPE_HANDLE, 1, &context},
                              {EDDY_DNN_GRAPH_OPERATIONS, EDDY_DNN_TYPE_DESCRIPTOR,
                               build->operation_count, build->operations});
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
    eddy_dnn_status status = eddy_cuda_dnn_create(EDDY_DNN_ENGINE, &engine);
    if (status != 0)
        return status;
    status = eddy_cuda_dnn.descriptor_get(config, EDDY_DNN_ENGINE_CONFIG_ENGINE,
                                          EDDY_DNN_TYPE_DESCRIPTOR, 1, &count, &engine);
    if (status == 0)
        status = eddy_cuda_dnn.descriptor_get(engine, EDDY_DNN_ENGINE_NOTES, EDDY_DNN_TYPE_NOTE,
                                              NOTES_MOST, &count, notes);
    *is_fine = status == 0 && count <= NOTES_MOST && are_fine(notes, count, has_tensor_cores);
    eddy_cuda_dnn_forget(&engine);
    return status;
}

/* NOT_SUPPORTED: another configuration may do. */
static eddy_dnn_status try_config(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                  eddy_dnn_descriptor config, bool has_tensor_cores,
                                  uint64_t workspace_most) {
    bool is_fine = false;
    int64_t count = 0;
    eddy_dnn_descriptor *made = &plan->plan;
    eddy_dnn_status status = look_at(config, has_tensor_cores, &is_fine);
    if (status != 0 || !is_fine)
        return status != 0 ? status : EDDY_DNN_NOT_SUPPORTED;
    status = EDDY_CUDA_DNN_MAKE(
        EDDY_DNN_PLAN, made, {EDDY_DNN_PLAN_HANDLE, EDDY_DNN_TYPE_HANDLE, 1, &context},
        {EDDY_DNN_PLAN_ENGINE_CONFIG, EDDY_DNN_TYPE_DESCRIPTOR, 1, &config});
    if (status == 0)
        status =
            eddy_cuda_dnn.descriptor_get(*made, EDDY_DNN_PLAN_WORKSPACE_BYTES, EDDY_DNN_TYPE_INT64,
                                         1, &count, &plan->workspace_bytes);
    plan->workspace_bytes += plan->statistics_bytes;
    if (status == 0 && (uint64_t)plan->workspace_bytes > workspace_most)
        status = EDDY_DNN_NOT_SUPPORTED;
    if (status != 0)
        eddy_cuda_dnn_forget(made);
    return status;
}

/* A list of the library's. */
typedef struct configs {
    eddy_dnn_descriptor heuristics, all[CONFIGS_MOST];
    int64_t count; /* that are filled in */
} configs;

static void configs_fini(configs *list) {
    for (int k = 0; k < CONFIGS_MOST; k++)
        eddy_cuda_dnn_forget(&list->all[k]);
    eddy_cuda_dnn_forget(&list->heuristics);
}

/* Of a failure the list has what was made so far. */
static eddy_dnn_status configs_init(configs *list, eddy_dnn_descriptor graph, int mode) {
    *list = (configs){0};
    int64_t there = 0;
    eddy_dnn_status status =
        EDDY_CUDA_DNN_MAKE(EDDY_DNN_HEURISTICS, &list->heuristics,
                           {EDDY_DNN_HEURISTICS_GRAPH, EDDY_DNN_TYPE_DESCRIPTOR, 1, &graph},
                           {EDDY_DNN_HEURISTICS_MODE, EDDY_DNN_TYPE_HEURISTICS_MODE, 1, &mode});
    if (status == 0)
        status = eddy_cuda_dnn.descriptor_get(list->heuristics, EDDY_DNN_HEURISTICS_RESULTS,
                                              EDDY_DNN_TYPE_DESCRIPTOR, 0, &there, NULL);
    if (there > CONFIGS_MOST)
        there = CONFIGS_MOST;
    for (int64_t k = 0; k < there && status == 0; k++)
        status = eddy_cuda_dnn_create(EDDY_DNN_ENGINE_CONFIG, &list->all[k]);
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
    eddy_dnn_status status = configs_init(&list, plan->graph, mode);
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
        plan->config = list.all[k];
        list.all[k] = NULL;
    }
    configs_fini(&list);
    return status;
}

/* ---- plans ---- */

eddy_dnn_status eddy_cuda_dnn_plan_init(eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                        const eddy_cuda_dnn_geometry *of, bool allows_tf32,
                                        uint64_t workspace_most) {
    const eddy_cuda_dnn_question *question = &of->question;
    *plan = (eddy_cuda_dnn_plan){.tensor_count = question->tensor_count,
                                 .count = question->tensor_count};
    if (question->kind == EDDY_CUDA_DNN_IS_ATTENTION) {
        plan->count = eddy_cuda_dnn_attention_count(question);
        plan->statistics_bytes = eddy_cuda_dnn_attention_statistics(question);
    }
    if ((uint64_t)plan->statistics_bytes > workspace_most)
        return EDDY_DNN_NOT_SUPPORTED;
    bool has_tensor_cores = allows_tf32 || of->question.dtype != EDDY_F32;
    eddy_dnn_status status = make_graph(plan, context, of);
    if (status != 0)
        return status;
    status = choose(plan, context, EDDY_DNN_HEURISTICS_A, has_tensor_cores, workspace_most);
    if (status == 0 || eddy_dnn_lacks_memory(status))
        return status;
    return choose(plan, context, EDDY_DNN_HEURISTICS_FALLBACK, has_tensor_cores, workspace_most);
}

void eddy_cuda_dnn_plan_fini(eddy_cuda_dnn_plan *plan) {
    eddy_cuda_dnn_forget(&plan->plan);
    eddy_cuda_dnn_forget(&plan->config);
    eddy_cuda_dnn_forget(&plan->graph);
    eddy_cuda_dnn_build_fini(&plan->build);
}

eddy_dnn_status eddy_cuda_dnn_plan_execute(const eddy_cuda_dnn_plan *plan, eddy_dnn_context context,
                                           const eddy_cuda_dnn_operands *operands,
                                           void *workspace) {
    static const int64_t numbers[EDDY_CUDA_DNN_ATTENTION_NUMBERS] = {0, 1, 2, 3, 4, 5, 6};
    const void *addresses[EDDY_CUDA_DNN_ATTENTION_NUMBERS];
    eddy_dnn_descriptor pack = NULL;
    void *rest = workspace ? (char *)workspace + plan->statistics_bytes : NULL;
    memcpy(addresses, operands->data, (size_t)plan->tensor_count * sizeof(void *));
    if (plan->count > plan->tensor_count)
        eddy_cuda_dnn_attention_addresses(operands, workspace, addresses);
    eddy_dnn_status status =
        EDDY_CUDA_DNN_MAKE(EDDY_DNN_VARIANT_PACK, &pack,
                           {EDDY_DNN_PACK_NUMBERS, EDDY_DNN_TYPE_INT64, plan->count, numbers},
                           {EDDY_DNN_PACK_ADDRESSES, EDDY_DNN_TYPE_ADDRESS, plan->count, addresses},
                           {EDDY_DNN_PACK_WORKSPACE, EDDY_DNN_TYPE_ADDRESS, 1, &rest});
    if (status == 0)
        status = eddy_cuda_dnn.execute(context, plan->plan, pack);
    eddy_cuda_dnn_forget(&pack);
    return status;
}
