/* Whether the operations of a graph fit together. */
#include <streams/cuda/dnn.h>
#include <tests/fake_cuda/dnn/question.h>

typedef struct look {
    const fake_dnn_graph *graph;
    bool is_known[FAKE_DNN_GRAPH_TENSORS]; /* it is given, or a former operation has written it */
} look;

static const fake_dnn_graph_tensor *tensor_of(const look *at, int number) {
    return &at->graph->tensors[number];
}

/* Each axis as long as the output's, or of one element. */
static bool is_broadcast(const look *at, int from, const fake_dnn_graph_tensor *to) {
    for (int d = 0; d < FAKE_DNN_AXES; d++) {
        int64_t size = tensor_of(at, from)->is.sizes[d];
        if (size != to->is.sizes[d] && size != 1)
            return false;
    }
    return true;
}

static int inputs_of(int mode) {
    return mode == EDDY_DNN_EXP || mode == EDDY_DNN_LOG || mode == EDDY_DNN_INDEX ? 1
           : mode == EDDY_DNN_SELECT                                              ? 3
                                                                                  : 2;
}

static const char *misfit_of_elements(const look *at, const fake_dnn_graph_operation *o) {
    const fake_dnn_graph_tensor *y = tensor_of(at, o->output);
    int wanted = inputs_of(o->mode);
    for (int k = 0; k < FAKE_DNN_GRAPH_INPUTS; k++) {
        if ((o->inputs[k] >= 0) != (k < wanted))
            return "operands that are missing, or too many";
        if (k < wanted && !is_broadcast(at, o->inputs[k], y))
            return "operands of other sizes than the result";
    }
    if ((o->mode == EDDY_DNN_INDEX) != (o->axis >= 0) || o->axis >= FAKE_DNN_AXES)
        return "an axis";
    if ((o->mode == EDDY_DNN_INDEX) != (y->type == EDDY_DNN_I32) ||
        (o->mode == EDDY_DNN_GE) != (y->type == EDDY_DNN_BOOL))
        return "the type of a result";
    if (o->mode == EDDY_DNN_SELECT && tensor_of(at, o->inputs[2])->type != EDDY_DNN_BOOL)
        return "a choice that is none";
    return NULL;
}

static const char *misfit_of_matrices(const look *at, const fake_dnn_graph_operation *o) {
    const int64_t *a = tensor_of(at, o->inputs[0])->is.sizes,
                  *b = tensor_of(at, o->inputs[1])->is.sizes,
                  *c = tensor_of(at, o->output)->is.sizes;
    if (a[0] != c[0] || b[0] != c[0] || a[1] != c[1] || c[1] % b[1] != 0)
        return "batches or heads";
    if (a[2] != c[2] || a[3] != b[2] || b[3] != c[3])
        return "matrices of other sizes";
    /* NVIDIA's refuses these. */
    if (tensor_of(at, o->inputs[0])->type != tensor_of(at, o->inputs[1])->type)
        return "factors of several types";
    return NULL;
}

static const char *misfit_of_rows(const look *at, const fake_dnn_graph_operation *o) {
    const int64_t *x = tensor_of(at, o->inputs[0])->is.sizes,
                  *y = tensor_of(at, o->output)->is.sizes;
    return x[0] != y[0] || x[1] != y[1] || x[2] != y[2] || y[3] != 1 ? "rows of other sizes" : NULL;
}

static const char *misfit(look *at, const fake_dnn_graph_operation *o) {
    for (int k = 0; k < FAKE_DNN_GRAPH_INPUTS; k++)
        if (o->inputs[k] >= 0 && !at->is_known[o->inputs[k]])
            return "an operand that nothing has written";
    if (at->is_known[o->output])
        return "a result that is written twice, or given";
    at->is_known[o->output] = true;
    return o->kind == FAKE_DNN_OF_ELEMENTS   ? misfit_of_elements(at, o)
           : o->kind == FAKE_DNN_OF_MATRICES ? misfit_of_matrices(at, o)
                                             : misfit_of_rows(at, o);
}

static bool is_written(const fake_dnn_graph *graph, int tensor) {
    for (int o = 0; o < graph->operation_count; o++)
        if (graph->operations[o].output == tensor)
            return true;
    return false;
}

const char *fake_dnn_graph_misfit(const fake_dnn_graph *graph) {
    look at = {.graph = graph};
    for (int t = 0; t < graph->tensor_count; t++) {
        const fake_dnn_graph_tensor *tensor = &graph->tensors[t];
        for (int d = 0; d < FAKE_DNN_AXES; d++)
            if (tensor->is.sizes[d] < 1 || tensor->is.strides[d] < 1)
                return "a dim of no elements, or without a stride";
        at.is_known[t] = !is_written(graph, t);
        if (at.is_known[t] && tensor->place == FAKE_DNN_NOWHERE)
            return "an operand that lies nowhere, and that nothing writes";
        if (tensor->place == FAKE_DNN_BY_VALUE && fake_dnn_elements(&tensor->is) != 1)
            return "a value of several elements";
    }
    for (int o = 0; o < graph->operation_count; o++) {
        const char *wrong = misfit(&at, &graph->operations[o]);
        if (wrong)
            return wrong;
    }
    return NULL;
}
