/* Plans, run by a kernel on the stream that the context has (kernels/dnn_conv.cu, dnn_graph.cu). */
#include <string.h>
#include <tests/fake_cuda/dnn/attribute.h>
#include <tests/fake_cuda/dnn/fault.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/finding.h>

#define WORKSPACE_ALIGNMENT 16

/* What is launched: a convolution, or a graph of other operations. */
typedef struct work {
    bool is_graph;
    fake_dnn_conv conv;
    fake_dnn_graph_run run;
} work;

/* NULL: the pack has none of this number. */
static void *address_of(const fake_dnn_object *pack, int64_t number) {
    const fake_dnn_value *numbers = fake_dnn_value_of(pack, EDDY_DNN_PACK_NUMBERS),
                         *addresses = fake_dnn_value_of(pack, EDDY_DNN_PACK_ADDRESSES);
    for (int64_t n = 0; n < numbers->count && n < addresses->count; n++)
        if (numbers->elements[n].integer == number)
            return addresses->elements[n].address;
    return NULL;
}

static const char *misfit(const void *data, int64_t alignment) {
    return !data ? "no address of a tensor"
           : (uintptr_t)data % (uint64_t)alignment != 0
               ? "a tensor that is less aligned than it was said to be"
               : NULL;
}

/* NULL, or what is wrong. Addresses go to where their tensor is. */
static const char *read_convolution(const fake_dnn_object *plan, const fake_dnn_object *pack,
                                    fake_dnn_conv *p) {
    const fake_dnn_question *question = plan->question;
    const char *wrong = NULL;
    p->shape = question->shape;
    for (int k = 0; k < FAKE_DNN_TENSORS && !wrong; k++) {
        p->data[k] = address_of(pack, question->numbers[k]);
        wrong = misfit(p->data[k], question->alignments[k]);
    }
    return wrong;
}

/* Strides are not below 0. */
static bool is_within_workspace(const fake_dnn_graph_tensor *tensor, const fake_dnn_graph_run *p) {
    uintptr_t begin = (uintptr_t)tensor->data, end = begin, workspace = (uintptr_t)p->workspace;
    for (int d = 0; d < FAKE_DNN_AXES; d++)
        end += (uintptr_t)((tensor->is.sizes[d] - 1) * tensor->is.strides[d] *
                           fake_dnn_type_bytes(tensor->type));
    return begin < workspace + p->workspace_bytes && workspace <= end;
}

/* Values are the host's, and read now. */
static const char *read_graph(const fake_dnn_object *plan, const fake_dnn_object *pack,
                              fake_dnn_graph_run *p) {
    const fake_dnn_question *question = plan->question;
    const char *wrong = NULL;
    p->graph = question->graph;
    for (int t = 0; t < p->graph.tensor_count && !wrong; t++) {
        fake_dnn_graph_tensor *tensor = &p->graph.tensors[t];
        if (tensor->place == FAKE_DNN_NOWHERE)
            continue;
        void *data = address_of(pack, question->graph_numbers[t]);
        wrong = misfit(data, question->graph_alignments[t]);
        if (tensor->place == FAKE_DNN_IN_MEMORY)
            tensor->data = data;
        else if (!wrong)
            tensor->value = *(const float *)data;
        if (tensor->place == FAKE_DNN_IN_MEMORY && !wrong && is_within_workspace(tensor, p))
            wrong = "a tensor that lies in the workspace";
    }
    return wrong;
}

static const char *read_work(const fake_dnn_object *plan, const fake_dnn_object *pack, work *to) {
    void *workspace = fake_dnn_value_of(pack, EDDY_DNN_PACK_WORKSPACE)->elements->address;
    uint64_t bytes = plan->engine.workspace_bytes;
    to->is_graph = plan->question->is_graph;
    to->conv =
        (fake_dnn_conv){.workspace = workspace, .workspace_bytes = bytes, .how = plan->engine.how};
    to->run = (fake_dnn_graph_run){
        .workspace = workspace, .workspace_bytes = bytes, .how = plan->engine.how};
    if (bytes > 0 && (!workspace || (uintptr_t)workspace % WORKSPACE_ALIGNMENT != 0))
        return "no workspace, or one that is not aligned";
    return to->is_graph ? read_graph(plan, pack, &to->run)
                        : read_convolution(plan, pack, &to->conv);
}

static eddy_dnn_status launch(eddy_cu_function function, void *p, size_t bytes,
                              eddy_cu_stream stream) {
    void *extra[] = {(void *)1, p, (void *)2, &bytes, NULL};
    eddy_cu_result result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
    return result == 0                       ? 0
           : result == EDDY_CU_OUT_OF_MEMORY ? EDDY_DNN_DEVICE_ALLOC_FAILED
                                             : EDDY_DNN_EXECUTION_FAILED;
}

eddy_dnn_status cudnnBackendExecute(eddy_dnn_context context, eddy_dnn_descriptor plan_handle,
                                    eddy_dnn_descriptor pack_handle) {
    static const char name[] = "cudnnBackendExecute";
    eddy_dnn_status status = fake_dnn_fault(FAKE_cudnnBackendExecute);
    work given;
    eddy_cu_function function = NULL;
    eddy_cu_stream stream = NULL;
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    const fake_dnn_object *of = fake_dnn_object_of(context, FAKE_DNN_CONTEXT, name),
                          *plan = fake_dnn_final_of(plan_handle, EDDY_DNN_PLAN, name),
                          *pack = fake_dnn_final_of(pack_handle, EDDY_DNN_VARIANT_PACK, name);
    const char *wrong = "what is none";
    if (of && plan && pack) {
        wrong = read_work(plan, pack, &given);
        function = given.is_graph ? of->compute : of->convolve;
        stream = of->stream;
    }
    if (wrong)
        fake_finding("plan: %s is given %s", name, wrong);
    pthread_mutex_unlock(&fake_dnn_lock);
    if (wrong)
        return EDDY_DNN_BAD_PARAM;
    return given.is_graph ? launch(function, &given.run, sizeof(given.run), stream)
                          : launch(function, &given.conv, sizeof(given.conv), stream);
}
