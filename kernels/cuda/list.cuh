/* Kernels of lists of tensors: which elements a block of threads has, and the two kernels of an op that updates each element in place. */
#ifndef EDDY_KERNELS_CUDA_LIST_CUH
#define EDDY_KERNELS_CUDA_LIST_CUH

#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/list.h>

/* Elements begin .. end - 1 of an item. */
struct eddy_cuda_chunk {
    int item;
    int64_t begin, end;

    EDDY_CUDA_MEMBER eddy_cuda_chunk(const eddy_cuda_list &p, int64_t number) {
        int last = p.items - 1;
        item = 0;
        EDDY_CUDA_ROLLED
        while (item < last) {
            const int middle = (item + last + 1) / 2;
            if (p.item[middle].first <= number)
                item = middle;
            else
                last = middle - 1;
        }
        begin = (number - p.item[item].first) * p.chunk;
        const int64_t left = p.item[item].count - begin;
        end = begin + (left < p.chunk ? left : p.chunk);
    }
};

/* Neighbouring elements of the operands of an item. An op has so many `operands`, of which it leaves number `unwritten` as it is, and updates one element of each. */
template <class op, class element> struct eddy_cuda_neighbours {
    typedef typename element::stored stored;
    static constexpr int lanes = (int)(EDDY_CUDA_VECTOR_BYTES / sizeof(stored)) < 4
                                     ? (int)(EDDY_CUDA_VECTOR_BYTES / sizeof(stored))
                                     : 4;
    typedef typename eddy_cuda_words<lanes * sizeof(stored)>::type words_type;
    stored elements[op::operands][lanes];

    EDDY_CUDA_MEMBER void load(const eddy_cuda_list_item &item, int64_t at, int count,
                               bool is_whole) {
        for (int o = 0; o < op::operands; o++) {
            const stored *from = (const stored *)item.data[o] + at;
            if (is_whole) {
                const words_type words = *(const words_type *)from;
                memcpy(elements[o], &words, sizeof(words));
            } else
                for (int i = 0; i < lanes; i++)
                    elements[o][i] = from[i < count ? i : count - 1];
        }
    }
    EDDY_CUDA_MEMBER void update(const op &step) {
        for (int i = 0; i < lanes; i++) {
            typename element::computed x[op::operands];
            for (int o = 0; o < op::operands; o++)
                x[o] = element::load(elements[o][i]);
            step(x);
            for (int o = 0; o < op::operands; o++)
                elements[o][i] = element::store(x[o]);
        }
    }
    EDDY_CUDA_MEMBER void store(const eddy_cuda_list_item &item, int64_t at, int count,
                                bool is_whole) const {
        for (int o = 0; o < op::operands; o++) {
            stored *to = (stored *)item.data[o] + at;
            if (o == op::unwritten)
                continue;
            if (is_whole) {
                words_type words;
                memcpy(&words, elements[o], sizeof(words));
                *(words_type *)to = words;
            } else
                for (int i = 0; i < lanes; i++)
                    if (i < count)
                        to[i] = elements[o][i];
        }
    }
};

template <class op, class element>
EDDY_CUDA_MEMBER void eddy_cuda_update_list(const eddy_cuda_list &p) {
    typedef eddy_cuda_neighbours<op, element> neighbours;
    constexpr int lanes = neighbours::lanes;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const op step(p.attributes);
    if (step.has_nothing_to_do())
        return;
    EDDY_CUDA_ROLLED
    for (int64_t number = blockIdx.x; number < p.chunks; number += gridDim.x) {
        const eddy_cuda_chunk chunk(p, number);
        const eddy_cuda_list_item &item = p.item[chunk.item];
        uintptr_t addresses = 0;
        for (int o = 0; o < op::operands; o++)
            addresses |= (uintptr_t)item.data[o];
        EDDY_CUDA_ROLLED
        for (int64_t at = chunk.begin + (int64_t)threadIdx.x * lanes; at < chunk.end;
             at += (int64_t)blockDim.x * lanes) {
            const int count = chunk.end - at < lanes ? (int)(chunk.end - at) : lanes;
            const bool is_whole = count == lanes && addresses % EDDY_CUDA_VECTOR_BYTES == 0;
            neighbours x;
            x.load(item, at, count, is_whole);
            x.update(step);
            x.store(item, at, count, is_whole);
        }
    }
}

/* An item of any strides. The first operand comes last, as the output of a walk does. */
template <class op, class element>
EDDY_CUDA_MEMBER void eddy_cuda_update_strided(const eddy_cuda_strided &p) {
    typedef typename element::stored stored;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const op step(p.attributes);
    if (step.has_nothing_to_do())
        return;
    eddy_cuda_each_place<op::operands>(p, [&](const int64_t *offsets) {
        typename element::computed x[op::operands];
        stored *at[op::operands];
        for (int o = 0; o < op::operands; o++) {
            const int place = (o + op::operands - 1) % op::operands;
            at[o] = (stored *)((char *)p.data[place] + offsets[place]);
            x[o] = element::load(*at[o]);
        }
        step(x);
        for (int o = 0; o < op::operands; o++)
            if (o != op::unwritten)
                *at[o] = element::store(x[o]);
    });
}

#endif
