/* index_select, gather, index, embedding, one_hot. Indices are checked while they are used. */
#include <kernels/cuda/fail.cuh>
#include <kernels/cuda/index.h>
#include <kernels/cuda/strided.cuh>

namespace {

struct place {
    int64_t given, at; /* the index as it is, and counted from the front */
};

EDDY_SCALAR place index_at(const eddy_cuda_strided &p, int operand, const int64_t *offsets) {
    const char *index = (const char *)p.data[operand] + offsets[operand];
    const uint64_t flags = p.attributes[EDDY_CUDA_PICK_FLAGS];
    const int64_t given =
        flags & EDDY_CUDA_PICK_IS_WIDE ? *(const int64_t *)index : *(const int32_t *)index;
    const bool is_from_end = given < 0 && (flags & EDDY_CUDA_PICK_FROM_END);
    return {given, is_from_end ? given + (int64_t)p.attributes[EDDY_CUDA_PICK_BOUND] : given};
}

EDDY_SCALAR bool index_fits(const eddy_cuda_strided &p, place index, int number,
                            const int64_t *offsets) {
    const int64_t bound = (int64_t)p.attributes[EDDY_CUDA_PICK_BOUND];
    if (index.at >= 0 && index.at < bound)
        return true;
    eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, eddy_cuda_number(p, number, offsets), index.given,
                   bound);
    return false;
}

template <class element> EDDY_CUDA_MEMBER void pick(const eddy_cuda_strided &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)p.attributes[EDDY_CUDA_PICK_STEP];
    const bool only_looks = p.attributes[EDDY_CUDA_PICK_FLAGS] & EDDY_CUDA_PICK_ONLY_LOOKS;
    eddy_cuda_each_place<EDDY_CUDA_PICK_OPERANDS>(p, [&](const int64_t *offsets) {
        const place index = index_at(p, EDDY_CUDA_PICK_INDEX, offsets);
        if (!index_fits(p, index, EDDY_CUDA_PICK_NUMBER, offsets) || only_looks)
            return;
        const char *from =
            (const char *)p.data[EDDY_CUDA_PICK_INPUT] + offsets[EDDY_CUDA_PICK_INPUT];
        char *to = (char *)p.data[EDDY_CUDA_PICK_OUTPUT] + offsets[EDDY_CUDA_PICK_OUTPUT];
        *(element *)to = *(const element *)(from + index.at * step);
    });
}

typedef uint8_t element_8;
typedef uint16_t element_16;
typedef uint32_t element_32;
typedef uint64_t element_64;
typedef uint4 element_128;

} // namespace

#define PICK(bits)                                                                                 \
    EDDY_CUDA_KERNEL(eddy_pick_##bits, eddy_cuda_strided) {                                        \
        pick<element_##bits>(parameters);                                                          \
    }
EDDY_CUDA_PICKS(PICK)

/* The threads of class 0 check the index for all. */
EDDY_CUDA_KERNEL(eddy_one_hot, eddy_cuda_strided) {
    const eddy_cuda_strided &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_place<EDDY_CUDA_ONE_HOT_OPERANDS>(p, [&](const int64_t *offsets) {
        const place index = index_at(p, EDDY_CUDA_ONE_HOT_INDEX, offsets);
        const int64_t own = eddy_cuda_number(p, EDDY_CUDA_ONE_HOT_CLASS, offsets);
        if (own == 0)
            (void)index_fits(p, index, EDDY_CUDA_ONE_HOT_NUMBER, offsets);
        char *to = (char *)p.data[EDDY_CUDA_ONE_HOT_OUTPUT] + offsets[EDDY_CUDA_ONE_HOT_OUTPUT];
        *(int64_t *)to = index.at == own;
    });
}
