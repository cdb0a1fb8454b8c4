/* The kernel of the fake library for graphs: each operation is done with all elements before the next, in plain loops, by one thread. Between operations numbers are f32, rounded to the type of their
 * tensor. It has no gate: who launches it looks before. */
#include <kernels/cuda/elementwise.cuh>
#include <stdlib.h>
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/kernels/dnn_graph.h>

namespace {

typedef int64_t place[FAKE_DNN_AXES];

struct run {
    const fake_dnn_graph_run &p;
    float *between[FAKE_DNN_GRAPH_TENSORS]; /* of what lies nowhere: packed */

    static float rounded(int type, float x) {
        return type == EDDY_DNN_F16    ? eddy_cuda_f16::load(eddy_cuda_f16::store(x))
               : type == EDDY_DNN_BF16 ? eddy_cuda_bf16::load(eddy_cuda_bf16::store(x))
                                       : x;
    }

    /* Axes of one element are broadcast; heads may be shared by several. */
    static int64_t offset(const int64_t *sizes, const int64_t *strides, const place &at,
                          const int64_t *of) {
        int64_t sum = 0;
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            sum += (sizes[d] == of[d] ? at[d] : at[d] * sizes[d] / of[d]) * strides[d];
        return sum;
    }
    /* The element that stands for that at `at` of a tensor of the sizes `of`. */
    float load(int number, const place &at, const int64_t *of) const {
        const fake_dnn_graph_tensor &tensor = p.graph.tensors[number];
        if (tensor.place == FAKE_DNN_BY_VALUE)
            return (float)tensor.value;
        const int64_t from = offset(tensor.is.sizes, tensor.is.strides, at, of);
        if (tensor.place == FAKE_DNN_NOWHERE)
            return between[number][from];
        return tensor.type == EDDY_DNN_F16 ? eddy_cuda_f16::load(((uint16_t *)tensor.data)[from])
               : tensor.type == EDDY_DNN_BF16
                   ? eddy_cuda_bf16::load(((uint16_t *)tensor.data)[from])
                   : ((float *)tensor.data)[from];
    }
    void store(int number, const place &at, float x) const {
        const fake_dnn_graph_tensor &tensor = p.graph.tensors[number];
        const int64_t to = offset(tensor.is.sizes, tensor.is.strides, at, tensor.is.sizes);
        if (tensor.place == FAKE_DNN_NOWHERE) {
            between[number][to] = rounded(tensor.type, x);
            return;
        }
        if (p.how == FAKE_DNN_COARSE)
            x += 1;
        if (tensor.type == EDDY_DNN_F16)
            ((uint16_t *)tensor.data)[to] = eddy_cuda_f16::store(x);
        else if (tensor.type == EDDY_DNN_BF16)
            ((uint16_t *)tensor.data)[to] = eddy_cuda_bf16::store(x);
        else
            ((float *)tensor.data)[to] = x;
    }

    float element(const fake_dnn_graph_operation &o, const place &at, const int64_t *of) const {
        const float x = load(o.inputs[0], at, of),
                    b = o.inputs[1] < 0 ? 0 : load(o.inputs[1], at, of);
        switch (o.mode) {
        case EDDY_DNN_ADD:
            return x + b;
        case EDDY_DNN_SUB:
            return x - b;
        case EDDY_DNN_MUL:
            return x * b;
        case EDDY_DNN_DIV:
            return x / b;
        case EDDY_DNN_EXP:
            return eddy_exp_f32(x);
        case EDDY_DNN_LOG:
            return eddy_log_f32(x);
        case EDDY_DNN_GE:
            return x >= b;
        case EDDY_DNN_INDEX:
            return (float)at[o.axis];
        default: /* EDDY_DNN_SELECT */
            return load(o.inputs[2], at, of) != 0 ? x : b;
        }
    }
    float product(const fake_dnn_graph_operation &o, const place &at, const int64_t *of) const {
        const int64_t terms = p.graph.tensors[o.inputs[0]].is.sizes[3];
        const int64_t left_of[] = {of[0], of[1], of[2], terms},
                      right_of[] = {of[0], of[1], terms, of[3]};
        float sum = 0;
        for (int64_t k = 0; k < terms; k++) {
            const place left = {at[0], at[1], at[2], k}, right = {at[0], at[1], k, at[3]};
            sum += load(o.inputs[0], left, left_of) * load(o.inputs[1], right, right_of);
        }
        return sum;
    }
    float reduced(const fake_dnn_graph_operation &o, const place &at) const {
        const int64_t *of = p.graph.tensors[o.inputs[0]].is.sizes;
        float all = o.mode == EDDY_DNN_MAX ? -EDDY_INF_f32 : 0;
        for (int64_t k = 0; k < of[3]; k++) {
            const place from = {at[0], at[1], at[2], k};
            const float x = load(o.inputs[0], from, of);
            all = o.mode != EDDY_DNN_MAX ? all + x : x > all || x != x ? x : all;
        }
        return all;
    }

    void operate(const fake_dnn_graph_operation &o) const {
        const int64_t *of = p.graph.tensors[o.output].is.sizes;
        place at;
        for (at[0] = 0; at[0] < of[0]; at[0]++)
            for (at[1] = 0; at[1] < of[1]; at[1]++)
                for (at[2] = 0; at[2] < of[2]; at[2]++)
                    for (at[3] = 0; at[3] < of[3]; at[3]++)
                        store(o.output, at,
                              o.kind == FAKE_DNN_OF_ELEMENTS   ? element(o, at, of)
                              : o.kind == FAKE_DNN_OF_MATRICES ? product(o, at, of)
                                                               : reduced(o, at));
    }

    void all() {
        const bool is_given = p.how == FAKE_DNN_IN_PARTS;
        int64_t used = 0;
        for (int t = 0; t < p.graph.tensor_count; t++) {
            const int64_t count = fake_dnn_elements(&p.graph.tensors[t].is);
            if (p.graph.tensors[t].place != FAKE_DNN_NOWHERE)
                continue;
            between[t] = is_given ? (float *)p.workspace + used
                                  : (float *)malloc((size_t)count * sizeof(float));
            used += count;
        }
        for (int o = 0; o < p.graph.operation_count; o++)
            operate(p.graph.operations[o]);
        for (int t = 0; t < p.graph.tensor_count && !is_given; t++)
            free(between[t]);
    }
};

} // namespace

EDDY_CUDA_KERNEL(fake_dnn_compute, fake_dnn_graph_run) {
    run one = {parameters, {}};
    one.all();
}
