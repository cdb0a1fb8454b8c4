/* Sorting records: their keys, a tile of them in a block's memory, and the merge of two runs. By merge paths, as S. Odeh, O. Green, Z. Mwassi, O. Shmueli and Y. Birk, "Merge Path"
 * (2012): with the parts of CUB's merge sort of a block, whose own loop has one length of a run for each form that is compiled. */
#ifndef EDDY_KERNELS_CUDA_SORT_CUH
#define EDDY_KERNELS_CUDA_SORT_CUH

#include <cub/block/block_merge_sort.cuh>
#include <kernels/cuda/bits.cuh>
#include <kernels/cuda/sort.h>
#include <kernels/float_key.h>

/* ---- records ---- */

/* The last record is behind all others. */
struct eddy_cuda_records_narrow {
    typedef uint64_t record;
    static EDDY_CUDA_MEMBER record make(uint64_t key, int64_t index) {
        return key << 32 | (uint64_t)index;
    }
    static EDDY_CUDA_MEMBER record last() {
        return UINT64_MAX;
    }
    static EDDY_CUDA_MEMBER bool is_less(record a, record b) {
        return a < b;
    }
    static EDDY_CUDA_MEMBER uint64_t key(record of) {
        return of >> 32;
    }
    static EDDY_CUDA_MEMBER int64_t index(record of) {
        return (int64_t)(of & UINT32_MAX);
    }
};

struct eddy_cuda_records_wide {
    typedef eddy_cuda_sort_wide record;
    static EDDY_CUDA_MEMBER record make(uint64_t key, int64_t index) {
        return {key, (uint64_t)index};
    }
    static EDDY_CUDA_MEMBER record last() {
        return {UINT64_MAX, UINT64_MAX};
    }
    static EDDY_CUDA_MEMBER bool is_less(const record &a, const record &b) {
        return a.key < b.key || (a.key == b.key && a.index < b.index);
    }
    static EDDY_CUDA_MEMBER uint64_t key(const record &of) {
        return of.key;
    }
    static EDDY_CUDA_MEMBER int64_t index(const record &of) {
        return (int64_t)of.index;
    }
};

template <class records> struct eddy_cuda_record_less {
    EDDY_CUDA_MEMBER bool operator()(const typename records::record &a,
                                     const typename records::record &b) const {
        return records::is_less(a, b);
    }
};

/* As on the host (kernels/cpu/sort/sort_key.c). */
EDDY_SCALAR uint64_t eddy_cuda_sort_key(const eddy_cuda_sort_call &p, const void *element) {
    const uint64_t bits = eddy_cuda_bits(element, p.element_bytes),
                   all = UINT64_MAX >> (64 - 8 * p.element_bytes);
    uint64_t key = bits;
    switch (p.kind) {
    case EDDY_CUDA_SORT_SIGNED:
        key = bits ^ all ^ all >> 1;
        break;
    case EDDY_CUDA_SORT_F16:
        key = EDDY_F16_KEY((uint32_t)bits);
        break;
    case EDDY_CUDA_SORT_BF16:
        key = EDDY_BF16_KEY((uint32_t)bits);
        break;
    case EDDY_CUDA_SORT_F32:
        key = EDDY_F32_KEY((uint32_t)bits);
        break;
    case EDDY_CUDA_SORT_F64:
        key = eddy_f64_key(bits);
        break;
    default:
        break;
    }
    return p.is_descending ? key ^ all : key;
}

/* ---- lines ---- */

/* Bytes from the first element of an operand to the first one of a line. */
EDDY_SCALAR int64_t eddy_cuda_sort_line(const eddy_cuda_sort_call &p, int operand, int64_t line) {
    int64_t offset = 0;
    EDDY_CUDA_ROLLED
    for (int d = p.rank - 1; d > 0; d--) {
        offset += line % p.dims[d] * p.strides[operand][d];
        line /= p.dims[d];
    }
    return p.rank > 0 ? offset + line * p.strides[operand][0] : 0;
}

/* Element `at` of the line of the result is element `index` of the input's, with all of its bits. */
EDDY_SCALAR void eddy_cuda_sort_put(const eddy_cuda_sort_call &p, int64_t line, int64_t at,
                                    int64_t index) {
    const int64_t named =
        eddy_cuda_sort_line(p, EDDY_CUDA_SORT_INDICES, line) + at * p.steps[EDDY_CUDA_SORT_INDICES];
    *(int64_t *)((char *)p.indices + named) = index;
    if (!p.values)
        return;
    const char *element = (const char *)p.in + eddy_cuda_sort_line(p, EDDY_CUDA_SORT_IN, line) +
                          index * p.steps[EDDY_CUDA_SORT_IN];
    char *value = (char *)p.values + eddy_cuda_sort_line(p, EDDY_CUDA_SORT_VALUES, line) +
                  at * p.steps[EDDY_CUDA_SORT_VALUES];
    eddy_cuda_bits_put(value, p.element_bytes, eddy_cuda_bits(element, p.element_bytes));
}

/* ---- tiles ---- */

/* A block's memory for a tile: merges read a record behind the last one. */
#define EDDY_CUDA_SORT_ROOM (EDDY_CUDA_SORT_TILE + 1)

/* Writes a thread's records of the merge of a's and b's, which lie one behind the other: those from record `first` of the merge on. The memory of both may be the tile that is
 * written. All threads of the block come here together. */
template <class records>
EDDY_CUDA_MEMBER void eddy_cuda_sort_merge_each(typename records::record *tile, int a, int a_count,
                                                int b_count, int first) {
    const eddy_cuda_record_less<records> less;
    typename records::record mine[EDDY_CUDA_SORT_EACH];
    int places[EDDY_CUDA_SORT_EACH];
    const int b = a + a_count, all = a_count + b_count, begin = first < all ? first : all,
              of_a = cub::MergePath(tile + a, tile + b, a_count, b_count, begin, less),
              of_b = begin - of_a;
    cub::SerialMerge(tile, a + of_a, b + of_b, a_count - of_a, b_count - of_b, mine, places, less);
    __syncthreads();
    EDDY_CUDA_UNROLLED
    for (int k = 0; k < EDDY_CUDA_SORT_EACH; k++)
        if (first + k < all)
            tile[a + first + k] = mine[k];
    __syncthreads();
}

/* Sorts each run of the block's records, in a thread first. Begins and ends with all threads together. */
template <class records>
EDDY_CUDA_MEMBER void eddy_cuda_sort_runs(typename records::record *tile, int run) {
    typename records::record mine[EDDY_CUDA_SORT_EACH];
    cub::NullType alone[EDDY_CUDA_SORT_EACH];
    const int first = (int)threadIdx.x * EDDY_CUDA_SORT_EACH;
    EDDY_CUDA_UNROLLED
    for (int k = 0; k < EDDY_CUDA_SORT_EACH; k++)
        mine[k] = tile[first + k];
    cub::StableOddEvenSort(mine, alone, eddy_cuda_record_less<records>());
    EDDY_CUDA_UNROLLED
    for (int k = 0; k < EDDY_CUDA_SORT_EACH; k++)
        tile[first + k] = mine[k];
    __syncthreads();
    EDDY_CUDA_ROLLED
    for (int sorted = EDDY_CUDA_SORT_EACH; sorted < run; sorted *= 2) {
        const int within = first & (2 * sorted - 1);
        eddy_cuda_sort_merge_each<records>(tile, first - within, sorted, sorted, within);
    }
}

/* Which line's record stands at a place of the block's memory, and which one of it. */
struct eddy_cuda_sort_place {
    int64_t line, index;
    int64_t within; /* number in the tile */
    bool is_there;

    EDDY_CUDA_MEMBER eddy_cuda_sort_place(const eddy_cuda_sort_call &p, int64_t unit, uint32_t at) {
        const uint32_t run = (uint32_t)p.run;
        const int64_t tile = unit * (EDDY_CUDA_SORT_TILE / run) + at / run;
        line = p.tiles == 1 ? tile : tile / p.tiles;
        within = at & (run - 1);
        index = (tile - line * p.tiles) * p.run + within;
        is_there = line < p.lines && index < p.count;
    }
};

/* A thread's place number `i`: neighbouring threads have neighbours in memory. */
EDDY_SCALAR uint32_t eddy_cuda_sort_at(const eddy_cuda_sort_call &p, uint32_t i) {
    const uint32_t run = (uint32_t)p.run, at_once = EDDY_CUDA_SORT_TILE / run;
    return p.is_across ? i % at_once * run + i / at_once : i;
}

template <class records>
EDDY_CUDA_MEMBER void eddy_cuda_sort_tile(const eddy_cuda_sort_call &p, int64_t unit) {
    EDDY_CUDA_SHARED(typename records::record, tile, EDDY_CUDA_SORT_ROOM);
    EDDY_CUDA_ROLLED
    for (uint32_t i = threadIdx.x; i < EDDY_CUDA_SORT_TILE; i += blockDim.x) {
        const uint32_t at = eddy_cuda_sort_at(p, i);
        const eddy_cuda_sort_place place(p, unit, at);
        tile[at] = records::last();
        if (place.is_there) {
            const char *line =
                (const char *)p.in + eddy_cuda_sort_line(p, EDDY_CUDA_SORT_IN, place.line);
            tile[at] = records::make(
                eddy_cuda_sort_key(p, line + place.index * p.steps[EDDY_CUDA_SORT_IN]),
                place.index);
        }
    }
    __syncthreads();
    eddy_cuda_sort_runs<records>(tile, (int)p.run);
    EDDY_CUDA_ROLLED
    for (uint32_t i = threadIdx.x; i < EDDY_CUDA_SORT_TILE; i += blockDim.x) {
        const uint32_t at = eddy_cuda_sort_at(p, i);
        const eddy_cuda_sort_place place(p, unit, at);
        if (!place.is_there || place.within >= p.kept)
            continue;
        if (!p.to)
            eddy_cuda_sort_put(p, place.line, place.index, records::index(tile[at]));
        else
            ((typename records::record *)p.to)[place.line * p.count + place.index] = tile[at];
    }
    __syncthreads();
}

/* ---- two runs ---- */

/* What is needed of two neighbouring runs of a line, and a part of their merge that fits the block's memory. */
struct eddy_cuda_sort_part {
    int64_t base;       /* records from the first one of all lines to the first run */
    int64_t a, b;       /* records of each */
    int64_t begin, end; /* of the merge */

    EDDY_CUDA_MEMBER eddy_cuda_sort_part(const eddy_cuda_sort_call &p, int64_t unit, int64_t pairs,
                                         int64_t parts) {
        const int64_t part = unit % parts, pair = unit / parts % pairs, line = unit / parts / pairs,
                      first = pair * 2 * p.run, left = p.count - first;
        base = line * p.count + first;
        a = least(least(p.run, left), p.kept);
        b = left > p.run ? least(least(p.run, left - p.run), p.kept) : 0;
        begin = part * EDDY_CUDA_SORT_TILE;
        end = least(least(a + b, p.kept), begin + EDDY_CUDA_SORT_TILE);
    }
    static EDDY_CUDA_MEMBER int64_t least(int64_t x, int64_t y) {
        return x < y ? x : y;
    }
};

/* All threads of the block have one part, so that they leave together. */
template <class records>
EDDY_CUDA_MEMBER void eddy_cuda_sort_merge(const eddy_cuda_sort_call &p,
                                           const eddy_cuda_sort_part &part) {
    typedef typename records::record record;
    EDDY_CUDA_SHARED(record, tile, EDDY_CUDA_SORT_ROOM);
    EDDY_CUDA_SHARED(int64_t, taken, 2);
    if (part.begin >= part.end)
        return;
    const record *a = (const record *)p.from + part.base, *b = a + p.run;
    if (threadIdx.x < 2)
        taken[threadIdx.x] =
            cub::MergePath(a, b, part.a, part.b, threadIdx.x == 0 ? part.begin : part.end,
                           eddy_cuda_record_less<records>());
    __syncthreads();
    const int64_t from_a = taken[0], from_b = part.begin - from_a, all = part.end - part.begin,
                  of_a = taken[1] - from_a;
    EDDY_CUDA_ROLLED
    for (int64_t i = threadIdx.x; i < all; i += blockDim.x)
        tile[i] = i < of_a ? a[from_a + i] : b[from_b + i - of_a];
    __syncthreads();
    eddy_cuda_sort_merge_each<records>(tile, 0, (int)of_a, (int)(all - of_a),
                                       (int)threadIdx.x * EDDY_CUDA_SORT_EACH);
    EDDY_CUDA_ROLLED
    for (int64_t i = threadIdx.x; i < all; i += blockDim.x)
        ((record *)p.to)[part.base + part.begin + i] = tile[i];
    __syncthreads();
}

#endif
