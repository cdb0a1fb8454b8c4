#include <base/dtype.h>
#include <base/number.h>
#include <kernels/cuda/map.h>
#include <string.h>

/* Elements of a block of the dense form, four a thread at once: what vectors of 16 bytes hold of the most common dtypes. */
#define DENSE_ELEMENTS_OF_BLOCK ((int64_t)EDDY_CUDA_BLOCK * 4)
/* Elements of one launch with 32-bit indices. */
#define STRIDED_ELEMENTS ((int64_t)1 << 30)

typedef struct map {
    const eddy_kernel_call *call;
    const eddy_cuda_forms *forms;
    const eddy_walk *walk;
    const eddy_cuda_operand *operands;
    const void *attributes;
    size_t attribute_bytes;
    bool is_fusion;
    int32_t input_count;
} map;

/* Kernels have outputs last; of an elementwise op it is the walk's first operand. */
static int32_t place_of(const map *m, int32_t operand) {
    if (m->is_fusion)
        return operand;
    return operand == 0 ? m->walk->operand_count - 1 : operand - 1;
}

/* An op without any has NULL, which memcpy does not take. */
static void copy_attributes(const map *m, void *to) {
    if (m->attribute_bytes > 0)
        memcpy(to, m->attributes, m->attribute_bytes);
}

/* ---- dense ---- */

static bool is_one(const map *m, int32_t operand) {
    return m->walk->rank == 1 && m->walk->strides[operand][0] == 0;
}

/* Every operand is contiguous, or an input of one element for all. */
static bool is_dense(const map *m) {
    if (m->walk->rank > 1)
        return false;
    for (int32_t o = 0; o < m->walk->operand_count; o++)
        if (eddy_walk_inner_stride(m->walk, o) != 1 &&
            !(place_of(m, o) < m->input_count && is_one(m, o)))
            return false;
    return true;
}

/* What the two kinds of parameters have in common. */
static void find_dense(const map *m, void **data, uint32_t *broadcast, uint32_t *is_aligned) {
    *broadcast = 0;
    *is_aligned = true;
    for (int32_t o = 0; o < m->walk->operand_count; o++) {
        int32_t place = place_of(m, o);
        data[place] = m->operands[o].data;
        if (is_one(m, o))
            *broadcast |= 1u << place;
        else if ((uintptr_t)m->operands[o].data % 16 != 0)
            *is_aligned = false;
    }
}

static void launch_dense(const map *m, int64_t count) {
    uint32_t blocks = eddy_cuda_blocks(m->call, count, DENSE_ELEMENTS_OF_BLOCK);
    if (m->is_fusion) {
        eddy_cuda_fusion_dense parameters = {.count = count};
        find_dense(m, parameters.data, &parameters.broadcast, &parameters.is_aligned);
        copy_attributes(m, parameters.attributes);
        eddy_cuda_launch(m->call, &m->forms->dense, &parameters, sizeof(parameters), blocks);
        return;
    }
    eddy_cuda_dense parameters = {.count = count};
    find_dense(m, parameters.data, &parameters.broadcast, &parameters.is_aligned);
    copy_attributes(m, parameters.attributes);
    eddy_cuda_launch(m->call, &m->forms->dense, &parameters, sizeof(parameters), blocks);
}

/* ---- strided ---- */

/* Dims from `first` on, of which that one has `length` elements. */
typedef struct part {
    int32_t first;
    int64_t length, inner; /* elements of the dims after the first */
    char *data[EDDY_CUDA_FUSION_OPERANDS];
} part;

static int64_t stride_bytes(const map *m, int32_t operand, int32_t dim) {
    return m->walk->strides[operand][dim] * eddy_dtype_size(m->operands[operand].dtype);
}

static void find_strided(const map *m, const part *of, eddy_cuda_divisor *dims, void **data,
                         int64_t (*strides)[EDDY_CUDA_RANK_MAX]) {
    int32_t rank = m->walk->rank - of->first;
    for (int32_t d = 0; d < rank; d++)
        dims[d] =
            eddy_cuda_divisor_of((uint32_t)(d == 0 ? of->length : m->walk->dims[of->first + d]));
    for (int32_t o = 0; o < m->walk->operand_count; o++) {
        int32_t place = place_of(m, o);
        data[place] = of->data[o];
        for (int32_t d = 0; d < rank; d++)
            strides[place][d] = stride_bytes(m, o, of->first + d);
    }
}

static void launch_part(const map *m, const part *of) {
    int64_t count = of->length * of->inner;
    int32_t rank = m->walk->rank - of->first;
    uint32_t blocks = eddy_cuda_blocks(m->call, count, EDDY_CUDA_BLOCK);
    if (m->is_fusion) {
        eddy_cuda_fusion_strided parameters = {.count = (uint32_t)count, .rank = rank};
        find_strided(m, of, parameters.dims, parameters.data, parameters.strides);
        copy_attributes(m, parameters.attributes);
        eddy_cuda_launch(m->call, &m->forms->strided, &parameters, sizeof(parameters), blocks);
        return;
    }
    eddy_cuda_strided parameters = {.count = (uint32_t)count, .rank = rank};
    find_strided(m, of, parameters.dims, parameters.data, parameters.strides);
    copy_attributes(m, parameters.attributes);
    eddy_cuda_launch(m->call, &m->forms->strided, &parameters, sizeof(parameters), blocks);
}

/* Elements [begin, begin + length) of its first dim. */
static part cut(const map *m, const part *of, int64_t begin, int64_t length) {
    part some = {.first = of->first, .length = length, .inner = of->inner};
    for (int32_t o = 0; o < m->walk->operand_count; o++)
        some.data[o] =
            (char *)((uintptr_t)of->data[o] + (uintptr_t)(begin * stride_bytes(m, o, of->first)));
    return some;
}

/* In parts that 32-bit indices reach. */
static void launch_strided(const map *m, const part *of) {
    if (of->length * of->inner <= STRIDED_ELEMENTS) {
        launch_part(m, of);
        return;
    }
    if (of->inner > STRIDED_ELEMENTS) {
        for (int64_t i = 0; i < of->length; i++) {
            part row = cut(m, of, i, 1);
            row.first++;
            row.length = m->walk->dims[row.first];
            row.inner /= row.length;
            launch_strided(m, &row);
        }
        return;
    }
    int64_t at_once = STRIDED_ELEMENTS / of->inner;
    for (int64_t begin = 0; begin < of->length; begin += at_once) {
        part some = cut(m, of, begin, eddy_min_i64(at_once, of->length - begin));
        launch_part(m, &some);
    }
}

static void run(const map *m) {
    int64_t count = eddy_walk_count(m->walk);
    if (count == 0)
        return;
    if (m->forms->dense.symbol && is_dense(m)) {
        launch_dense(m, count);
        return;
    }
    int64_t length = m->walk->rank > 0 ? m->walk->dims[0] : 1;
    part whole = {.length = length, .inner = count / length};
    for (int32_t o = 0; o < m->walk->operand_count; o++)
        whole.data[o] = m->operands[o].data;
    launch_strided(m, &whole);
}

void eddy_cuda_map(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                   const eddy_walk *walk, const eddy_cuda_operand *operands, const void *attributes,
                   size_t attribute_bytes) {
    EDDY_ASSERT(walk->operand_count <= EDDY_CUDA_ELEMENTWISE_OPERANDS &&
                attribute_bytes <= EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES);
    run(&(map){.call = call,
               .forms = forms,
               .walk = walk,
               .operands = operands,
               .attributes = attributes,
               .attribute_bytes = attribute_bytes,
               .input_count = walk->operand_count - 1});
}

void eddy_cuda_map_fusion(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                          const eddy_walk *walk, const eddy_cuda_operand *operands,
                          int32_t input_count, const void *attributes, size_t attribute_bytes) {
    EDDY_ASSERT(walk->operand_count <= EDDY_CUDA_FUSION_OPERANDS &&
                attribute_bytes <= EDDY_CUDA_FUSION_WORDS * sizeof(uint64_t));
    run(&(map){.call = call,
               .forms = forms,
               .walk = walk,
               .operands = operands,
               .attributes = attributes,
               .attribute_bytes = attribute_bytes,
               .is_fusion = true,
               .input_count = input_count});
}
