#include <base/dtype.h>
#include <kernels/cuda/dnn_attention.h>
#include <math.h>
#include <string.h>

/* Of the library's tensors: batches, heads, and a matrix. */
enum { BATCH, HEAD, ROW, COLUMN };

/* The library plans for more, and does not say whether a grid has as many blocks. */
#define BATCHES_MOST 65535

static bool is_aligned(int64_t bytes) {
    return bytes % EDDY_CUDA_DNN_ATTENTION_ALIGNMENT == 0;
}

/* The last one of the batch dims is heads, and the one before, if there is one, batches. */
static bool read_batches(const eddy_cuda_attention *p, const eddy_cuda_attention_operand *operand,
                         int64_t bytes, eddy_cuda_dnn_tensor *tensor) {
    for (int axis = BATCH; axis <= HEAD; axis++) {
        int32_t d = p->rank - 2 + axis;
        tensor->sizes[axis] = d < 0 ? 1 : p->sizes[d];
        tensor->strides[axis] = d < 0 ? 0 : operand->batch[d] / bytes;
        if (tensor->sizes[axis] == 0 || tensor->sizes[axis] > BATCHES_MOST ||
            (d >= 0 && !is_aligned(operand->batch[d])))
            return false;
    }
    return true;
}

/* As is said of a dim of one element. */
static void lay(eddy_cuda_dnn_tensor *tensor, int axis, int64_t beyond) {
    if (tensor->sizes[axis] == 1)
        tensor->strides[axis] = beyond;
}

/* `is_shared`: all heads may have the same matrix. */
static bool read_matrix(const eddy_cuda_attention *p, int operand, int64_t bytes, int64_t rows,
                        int64_t columns, bool is_shared, eddy_cuda_dnn_tensor *tensor) {
    const eddy_cuda_attention_operand *from = &p->operands[operand];
    if (!is_aligned((int64_t)(uintptr_t)from->data) || !is_aligned(columns * bytes) ||
        (rows > 1 && (!is_aligned(from->row) || from->row < columns * bytes)) ||
        from->column != bytes || !read_batches(p, from, bytes, tensor))
        return false;
    tensor->sizes[ROW] = rows;
    tensor->sizes[COLUMN] = columns;
    tensor->strides[COLUMN] = 1;
    tensor->strides[ROW] = from->row / bytes;
    if (is_shared && tensor->strides[HEAD] == 0)
        tensor->sizes[HEAD] = 1;
    lay(tensor, ROW, columns);
    lay(tensor, HEAD, rows * tensor->strides[ROW]);
    lay(tensor, BATCH, tensor->sizes[HEAD] * tensor->strides[HEAD]);
    return tensor->strides[HEAD] > 0 && tensor->strides[BATCH] > 0;
}

static void swap(int64_t *a, int64_t *b) {
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

static bool takes(const eddy_cuda_attention *p, eddy_dtype dtype) {
    float scale = (float)p->scale;
    return (dtype == EDDY_F16 || dtype == EDDY_BF16) && p->mask == EDDY_CUDA_ATTENTION_NO_MASK &&
           !p->drops && p->rank <= 2 && p->rows > 0 && p->columns > 0 && p->width > 0 &&
           p->value_width > 0 && scale > 0 && isfinite(scale);
}

bool eddy_cuda_dnn_attention_of(const eddy_cuda_attention *p, eddy_dtype dtype,
                                eddy_cuda_dnn_question *question) {
    const int64_t bytes = eddy_dtype_size(dtype);
    eddy_cuda_dnn_tensor *tensors = question->tensors, *k = &tensors[EDDY_CUDA_DNN_AT_K];
    memset(question, 0, sizeof(*question));
    if (!takes(p, dtype) ||
        !read_matrix(p, EDDY_CUDA_ATTENTION_Q, bytes, p->rows, p->width, false,
                     &tensors[EDDY_CUDA_DNN_AT_Q]) ||
        !read_matrix(p, EDDY_CUDA_ATTENTION_K, bytes, p->columns, p->width, true, k) ||
        !read_matrix(p, EDDY_CUDA_ATTENTION_V, bytes, p->columns, p->value_width, true,
                     &tensors[EDDY_CUDA_DNN_AT_V]) ||
        !read_matrix(p, EDDY_CUDA_ATTENTION_OUT, bytes, p->rows, p->value_width, false,
                     &tensors[EDDY_CUDA_DNN_AT_OUT]) ||
        k->sizes[HEAD] != tensors[EDDY_CUDA_DNN_AT_V].sizes[HEAD])
        return false;
    swap(&k->sizes[ROW], &k->sizes[COLUMN]);
    swap(&k->strides[ROW], &k->strides[COLUMN]);
    question->kind = EDDY_CUDA_DNN_IS_ATTENTION;
    question->tensor_count = EDDY_CUDA_DNN_ATTENTION_TENSORS;
    question->dtype = dtype;
    question->attention.is_causal = p->is_causal;
    return true;
}
