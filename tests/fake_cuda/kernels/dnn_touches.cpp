/* What the kernel of the fake library of convolutions touches. */
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/kernels/dnn_conv.h>
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
