#include <float.h>
#include <math.h>
#include <streams/cuda/dnn_attention.h>

/* Of what lies in the workspace. */
#define ALIGNMENT 256

/* Versions from here on take an infinity for a hidden score; for those before it is the lowest number, as in NVIDIA's own code. */
#define VERSION_WITH_INFINITY 91000

/* The graph while it is made. What lies between operations has a number, too. */
typedef struct attention {
    eddy_cuda_dnn_build *build;
    const eddy_cuda_dnn_question *question;
    int64_t next_number;
} attention;

static eddy_cuda_dnn_tensor packed(const int64_t *sizes) {
    eddy_cuda_dnn_tensor tensor;
    int64_t step = 1;
    for (int d = EDDY_CUDA_AXES - 1; d >= 0; d--) {
        tensor.sizes[d] = sizes[d];
        tensor.strides[d] = step;
        step *= sizes[d];
    }
    return tensor;
}

/* [B, H, L, columns] */
static eddy_cuda_dnn_tensor rows_of(const eddy_cuda_dnn_question *question, int64_t columns) {
    const int64_t *q = question->tensors[EDDY_CUDA_DNN_AT_Q].sizes;
    return packed((const int64_t[]){q[0], q[1], q[2], columns});
}

/* ---- tensors ---- */

static eddy_dnn_descriptor between(attention *a, int type, int64_t columns) {
    const eddy_cuda_dnn_tensor tensor = rows_of(a->question, columns);
    return eddy_cuda_dnn_add_tensor(a->build, EDDY_CUDA_DNN_NOWHERE, a->next_number++, type,
                                    &tensor, ALIGNMENT);
}

static eddy_dnn_descriptor scores(attention *a, int type) {
    return between(a, type, a->question->tensors[EDDY_CUDA_DNN_AT_V].sizes[2]);
}

/* One number for each row. */
static eddy_dnn_descriptor column(attention *a) {
    return between(a, EDDY_DNN_F32, 1);
}

static eddy_dnn_descriptor value(attention *a, int64_t number) {
    const eddy_cuda_dnn_tensor tensor = packed((const int64_t[]){1, 1, 1, 1});
    return eddy_cuda_dnn_add_tensor(a->build, EDDY_CUDA_DNN_BY_VALUE, number, EDDY_DNN_F32, &tensor,
                                    sizeof(float));
}

static eddy_dnn_descriptor statistics(attention *a) {
    const eddy_cuda_dnn_tensor tensor = rows_of(a->question, 1);
    return eddy_cuda_dnn_add_tensor(a->build, EDDY_CUDA_DNN_IN_MEMORY, EDDY_CUDA_DNN_AT_STATISTICS,
                                    EDDY_DNN_F32, &tensor, ALIGNMENT);
}

/* ---- operations ---- */

static void multiply(attention *a, eddy_dnn_descriptor left, eddy_dnn_descriptor right,
                     eddy_dnn_descriptor to) {
    static const int sums = EDDY_DNN_F32;
    const eddy_dnn_descriptor matmul = EDDY_CUDA_DNN_ADD(
        a->build, EDDY_DNN_MATMUL, {EDDY_DNN_MATMUL_SUMS, EDDY_DNN_TYPE_DATA_TYPE, 1, &sums});
    EDDY_CUDA_DNN_ADD_OPERATION(a->build, EDDY_DNN_PRODUCT,
                                {EDDY_DNN_PRODUCT_MATMUL, EDDY_DNN_TYPE_DESCRIPTOR, 1, &matmul},
                                {EDDY_DNN_PRODUCT_A, EDDY_DNN_TYPE_DESCRIPTOR, 1, &left},
                                {EDDY_DNN_PRODUCT_B, EDDY_DNN_TYPE_DESCRIPTOR, 1, &right},
                                {EDDY_DNN_PRODUCT_C, EDDY_DNN_TYPE_DESCRIPTOR, 1, &to});
}

/* The operands besides x: NULL, where the mode has none. */
typedef struct others {
    eddy_dnn_descriptor b, t;
} others;

static eddy_dnn_descriptor operate(attention *a, eddy_dnn_descriptor pointwise,
                                   eddy_dnn_descriptor x, others more, eddy_dnn_descriptor y) {
    eddy_cuda_dnn_setting settings[5] = {
        {EDDY_DNN_OF_ELEMENTS_POINTWISE, EDDY_DNN_TYPE_DESCRIPTOR, 1, &pointwise},
        {EDDY_DNN_OF_ELEMENTS_X, EDDY_DNN_TYPE_DESCRIPTOR, 1, &x},
        {EDDY_DNN_OF_ELEMENTS_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1, &y}};
    size_t count = 3;
    if (more.b)
        settings[count++] =
            (eddy_cuda_dnn_setting){EDDY_DNN_OF_ELEMENTS_B, EDDY_DNN_TYPE_DESCRIPTOR, 1, &more.b};
    if (more.t)
        settings[count++] =
            (eddy_cuda_dnn_setting){EDDY_DNN_OF_ELEMENTS_T, EDDY_DNN_TYPE_DESCRIPTOR, 1, &more.t};
    eddy_cuda_dnn_add_operation(a->build, EDDY_DNN_OF_ELEMENTS, settings, count);
    return y;
}

/* y, which is written. */
static eddy_dnn_descriptor compute(attention *a, int mode, int type, eddy_dnn_descriptor x,
                                   others more, eddy_dnn_descriptor y) {
    const eddy_dnn_descriptor pointwise = EDDY_CUDA_DNN_ADD(
        a->build, EDDY_DNN_POINTWISE, {EDDY_DNN_POINTWISE_MODE, EDDY_DNN_TYPE_POINTWISE, 1, &mode},
        {EDDY_DNN_POINTWISE_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1, &type});
    return operate(a, pointwise, x, more, y);
}

/* Where each score is along the axis. */
static eddy_dnn_descriptor place_along(attention *a, eddy_dnn_descriptor like, int64_t axis) {
    static const int mode = EDDY_DNN_INDEX, type = EDDY_DNN_I32;
    const eddy_dnn_descriptor pointwise = EDDY_CUDA_DNN_ADD(
        a->build, EDDY_DNN_POINTWISE, {EDDY_DNN_POINTWISE_MODE, EDDY_DNN_TYPE_POINTWISE, 1, &mode},
        {EDDY_DNN_POINTWISE_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1, &type},
        {EDDY_DNN_POINTWISE_AXIS, EDDY_DNN_TYPE_INT64, 1, &axis});
    return operate(a, pointwise, like, (others){0}, scores(a, EDDY_DNN_I32));
}

static eddy_dnn_descriptor reduce(attention *a, int mode, eddy_dnn_descriptor x) {
    static const int type = EDDY_DNN_F32;
    const eddy_dnn_descriptor y = column(a),
                              reduction = EDDY_CUDA_DNN_ADD(
                                  a->build, EDDY_DNN_REDUCTION,
                                  {EDDY_DNN_REDUCTION_MODE, EDDY_DNN_TYPE_REDUCTION, 1, &mode},
                                  {EDDY_DNN_REDUCTION_TYPE, EDDY_DNN_TYPE_DATA_TYPE, 1, &type});
    EDDY_CUDA_DNN_ADD_OPERATION(
        a->build, EDDY_DNN_OF_ROWS,
        {EDDY_DNN_OF_ROWS_REDUCTION, EDDY_DNN_TYPE_DESCRIPTOR, 1, &reduction},
        {EDDY_DNN_OF_ROWS_X, EDDY_DNN_TYPE_DESCRIPTOR, 1, &x},
        {EDDY_DNN_OF_ROWS_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1, &y});
    return y;
}

/* ---- all of it ---- */

/* Column j of row i is hidden where j > i. */
static eddy_dnn_descriptor hide(attention *a, eddy_dnn_descriptor x) {
    const eddy_dnn_descriptor row = place_along(a, x, 2), place = place_along(a, x, 3),
                              shown = compute(a, EDDY_DNN_GE, EDDY_DNN_BOOL, row,
                                              (others){.b = place}, scores(a, EDDY_DNN_BOOL));
    return compute(a, EDDY_DNN_SELECT, EDDY_DNN_F32, x,
                   (others){value(a, EDDY_CUDA_DNN_AT_LOWEST), shown}, scores(a, EDDY_DNN_F32));
}

/* Rounded to the type, as the second product takes them. The logarithm of sums is what makes the library see a softmax here, whether it is of use or not. */
static eddy_dnn_descriptor weigh(attention *a, eddy_dnn_descriptor x, int type) {
    const eddy_dnn_descriptor largest = reduce(a, EDDY_DNN_MAX, x),
                              down = compute(a, EDDY_DNN_SUB, EDDY_DNN_F32, x,
                                             (others){.b = largest}, scores(a, EDDY_DNN_F32)),
                              power = compute(a, EDDY_DNN_EXP, EDDY_DNN_F32, down, (others){0},
                                              scores(a, EDDY_DNN_F32)),
                              sum = reduce(a, EDDY_DNN_SUM, power),
                              logarithm = compute(a, EDDY_DNN_LOG, EDDY_DNN_F32, sum, (others){0},
                                                  column(a));
    compute(a, EDDY_DNN_ADD, EDDY_DNN_F32, largest, (others){.b = logarithm}, statistics(a));
    return compute(a, EDDY_DNN_DIV, EDDY_DNN_F32, power, (others){.b = sum}, scores(a, type));
}

void eddy_cuda_dnn_attention_build(eddy_cuda_dnn_build *build, const eddy_cuda_dnn_geometry *of) {
    attention a = {build, &of->question, EDDY_CUDA_DNN_ATTENTION_NUMBERS};
    eddy_dnn_descriptor operands[EDDY_CUDA_DNN_ATTENTION_TENSORS];
    for (int k = 0; k < EDDY_CUDA_DNN_ATTENTION_TENSORS; k++)
        operands[k] = eddy_cuda_dnn_add_operand(build, of, k);
    const eddy_dnn_descriptor products = scores(&a, EDDY_DNN_F32);
    multiply(&a, operands[EDDY_CUDA_DNN_AT_Q], operands[EDDY_CUDA_DNN_AT_K], products);
    eddy_dnn_descriptor x =
        compute(&a, EDDY_DNN_MUL, EDDY_DNN_F32, products,
                (others){.b = value(&a, EDDY_CUDA_DNN_AT_SCALE)}, scores(&a, EDDY_DNN_F32));
    if (of->question.attention.is_causal)
        x = hide(&a, x);
    x = weigh(&a, x, eddy_cuda_dnn_types[of->question.dtype].data);
    multiply(&a, x, operands[EDDY_CUDA_DNN_AT_V], operands[EDDY_CUDA_DNN_AT_OUT]);
}

int64_t eddy_cuda_dnn_attention_statistics(const eddy_cuda_dnn_question *question) {
    const int64_t *q = question->tensors[EDDY_CUDA_DNN_AT_Q].sizes;
    int64_t bytes = q[0] * q[1] * q[2] * (int64_t)sizeof(float);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int eddy_cuda_dnn_attention_count(const eddy_cuda_dnn_question *question) {
    return question->attention.is_causal ? EDDY_CUDA_DNN_ATTENTION_NUMBERS
                                         : EDDY_CUDA_DNN_AT_LOWEST;
}

void eddy_cuda_dnn_attention_addresses(const eddy_cuda_dnn_operands *operands, void *statistics,
                                       const void **addresses) {
    static const float infinity = -INFINITY, lowest = -FLT_MAX;
    addresses[EDDY_CUDA_DNN_AT_SCALE] = &operands->scale;
    addresses[EDDY_CUDA_DNN_AT_STATISTICS] = statistics;
    addresses[EDDY_CUDA_DNN_AT_LOWEST] =
        eddy_cuda_dnn.version() < VERSION_WITH_INFINITY ? &lowest : &infinity;
}
