/* What the kernels of the fake of cuDNN touch. */
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/kernels/dnn_graph.h>
#include <tests/fake_cuda/kernels/touches.h>

static void touch_conv(const fake_dnn_conv &p, touch_fn *say, void *context) {
    const int64_t bytes = p.shape.type == EDDY_DNN_F64 ? 8 : p.shape.type == EDDY_DNN_F32 ? 4 : 2;
    for (int k = 0; k < FAKE_DNN_TENSORS; k++) {
        const fake_dnn_tensor &tensor = p.shape.tensors[k];
        range all = {0, bytes};
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            all.reach(tensor.sizes[d] - 1, tensor.strides[d] * bytes);
        all.touch(say, context, p.data[k], k == fake_dnn_written(&p.shape));
    }
    if (p.workspace_bytes > 0)
        say(context, p.workspace, p.workspace_bytes, true);
}

extern "C" void fake_dnn_convolve_touches(const void *parameters, touch_fn *say, void *context);
void fake_dnn_convolve_touches(const void *parameters, touch_fn *say, void *context) {
    touch_conv(*(const fake_dnn_conv *)parameters, say, context);
}

static bool is_written(const fake_dnn_graph &graph, int tensor) {
    for (int o = 0; o < graph.operation_count; o++)
        if (graph.operations[o].output == tensor)
            return true;
    return false;
}

static void touch_graph(const fake_dnn_graph_run &p, touch_fn *say, void *context) {
    for (int t = 0; t < p.graph.tensor_count; t++) {
        const fake_dnn_graph_tensor &tensor = p.graph.tensors[t];
        if (tensor.place != FAKE_DNN_IN_MEMORY)
            continue;
        const int64_t bytes = fake_dnn_type_bytes(tensor.type);
        range all = {0, bytes};
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            all.reach(tensor.is.sizes[d] - 1, tensor.is.strides[d] * bytes);
        all.touch(say, context, tensor.data, is_written(p.graph, t));
    }
    if (p.workspace_bytes > 0)
        say(context, p.workspace, p.workspace_bytes, true);
}

extern "C" void fake_dnn_compute_touches(const void *parameters, touch_fn *say, void *context);
void fake_dnn_compute_touches(const void *parameters, touch_fn *say, void *context) {
    touch_graph(*(const fake_dnn_graph_run *)parameters, say, context);
}
