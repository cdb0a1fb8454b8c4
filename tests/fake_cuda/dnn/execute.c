/* Convolutions, run by a kernel on the stream that the context has (kernels/dnn_conv.cu). */
#include <string.h>
#include <tests/fake_cuda/dnn/attribute.h>
#include <tests/fake_cuda/dnn/fault.h>
#include <tests/fake_cuda/entries.h>
#include <tests/fake_cuda/finding.h>

#define WORKSPACE_ALIGNMENT 16

/* NULL, or what is wrong. Addresses go to where their tensor is. */
static const char *read_addresses(const fake_dnn_object *plan, const fake_dnn_object *pack,
                                  fake_dnn_conv *p) {
    const fake_dnn_question *question = &plan->question;
    const fake_dnn_element *numbers = fake_dnn_value_of(pack, EDDY_DNN_PACK_NUMBERS)->elements,
                           *addresses = fake_dnn_value_of(pack, EDDY_DNN_PACK_ADDRESSES)->elements;
    for (int k = 0; k < FAKE_DNN_TENSORS; k++) {
        for (int n = 0; n < FAKE_DNN_TENSORS; n++)
            if (numbers[n].integer == question->numbers[k])
                p->data[k] = addresses[n].address;
        if (!p->data[k])
            return "no address of a tensor";
        if ((uintptr_t)p->data[k] % (uint64_t)question->alignments[k] != 0)
            return "a tensor that is less aligned than it was said to be";
    }
    p->workspace = fake_dnn_value_of(pack, EDDY_DNN_PACK_WORKSPACE)->elements->address;
    if (p->workspace_bytes > 0 &&
        (!p->workspace || (uintptr_t)p->workspace % WORKSPACE_ALIGNMENT != 0))
        return "no workspace, or one that is not aligned";
    return NULL;
}

static eddy_dnn_status launch(eddy_cu_function function, fake_dnn_conv *p, eddy_cu_stream stream) {
    size_t bytes = sizeof(*p);
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
    fake_dnn_conv p = {0};
    eddy_cu_function convolve = NULL;
    eddy_cu_stream stream = NULL;
    if (status)
        return status;
    pthread_mutex_lock(&fake_dnn_lock);
    const fake_dnn_object *of = fake_dnn_object_of(context, FAKE_DNN_CONTEXT, name),
                          *plan = fake_dnn_final_of(plan_handle, EDDY_DNN_PLAN, name),
                          *pack = fake_dnn_final_of(pack_handle, EDDY_DNN_VARIANT_PACK, name);
    const char *wrong = "what is none";
    if (of && plan && pack) {
        convolve = of->convolve;
        stream = of->stream;
        p.shape = plan->question.shape;
        p.workspace_bytes = plan->engine.workspace_bytes;
        p.how = plan->engine.how;
        wrong = read_addresses(plan, pack, &p);
    }
    if (wrong)
        fake_finding("convolution: %s is given %s", name, wrong);
    pthread_mutex_unlock(&fake_dnn_lock);
    return wrong ? EDDY_DNN_BAD_PARAM : launch(convolve, &p, stream);
}
