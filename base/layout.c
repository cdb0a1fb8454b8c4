#include <base/shape.h>

#include <string.h>

void eddy_shape_strides_contiguous(int32_t rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        /* A size of 0 counts as 1, as PyTorch's does: the outer strides then say how far the dim would reach. */
        stride *= dims[d] > 1 ? dims[d] : 1;
    }
}

static bool is_empty(const eddy_layout *layout) {
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->dims[d] == 0)
            return true;
    return false;
}

bool eddy_layout_is_equal(const eddy_layout *a, const eddy_layout *b) {
    bool is_equal = a->rank == b->rank && a->offset == b->offset;
    for (int32_t d = 0; is_equal && d < a->rank; d++)
        is_equal = a->dims[d] == b->dims[d] && a->strides[d] == b->strides[d];
    return is_equal;
}

bool eddy_layout_is_contiguous(const eddy_layout *layout) {
    if (is_empty(layout))
        return true;
    int64_t stride = 1;
    for (int32_t d = layout->rank - 1; d >= 0; d--) {
        if (layout->dims[d] == 1)
            continue;
        if (layout->strides[d] != stride)
            return false;
        stride *= layout->dims[d];
    }
    return true;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* Whether axis `inner` should be outside axis `outer`: above 0 yes, below 0 no, 0 if no operand decides. */
static int compare_axes(const int64_t *dims, int64_t (*operands)[EDDY_RANK_MAX], int operand_count,
                        int32_t inner, int32_t outer) {
    for (int i = 0; i < operand_count; i++) {
        uint64_t in = magnitude(operands[i][inner]), out = magnitude(operands[i][outer]);
        if (in == 0 || out == 0)
            continue;
        if (in != out)
            return in < out ? -1 : 1;
        /* One of them has a single element, and it is to be the inner one. */
        if (dims[inner] > dims[outer])
            return 1;
    }
    return 0;
}

/* PyTorch's TensorIterator::reorder_dimensions: an insertion sort that passes over undecided pairs. */
void eddy_shape_strides_follow(int32_t rank, const int64_t *dims,
                               int64_t (*operands)[EDDY_RANK_MAX], int operand_count,
                               int64_t *strides) {
    int32_t order[EDDY_RANK_MAX]; /* the innermost axis first */
    for (int32_t d = 0; d < rank; d++) {
        order[d] = rank - 1 - d;
        for (int32_t at = d, to = d - 1; to >= 0; to--) {
            int sign = compare_axes(dims, operands, operand_count, order[to], order[at]);
            if (sign < 0)
                break;
            if (sign == 0)
                continue;
            int32_t axis = order[to];
            order[to] = order[at];
            order[at] = axis;
            at = to;
        }
    }
    int64_t stride = 1;
    for (int32_t i = 0; i < rank; i++) {
        strides[order[i]] = stride;
        stride *= dims[order[i]] > 1 ? dims[order[i]] : 1;
    }
}

/* Proof by nesting: with the dims in the order of their strides, each stride exceeds the reach of the smaller ones. */
bool eddy_layout_is_injective(const eddy_layout *layout) {
    if (is_empty(layout))
        return true;
    int32_t order[EDDY_RANK_MAX], count = 0;
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->dims[d] == 1)
            continue;
        int32_t at = count++;
        for (; at > 0 && magnitude(layout->strides[order[at - 1]]) > magnitude(layout->strides[d]);
             at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    uint64_t reach = 0; /* the largest distance between two elements of the dims so far */
    for (int32_t i = 0; i < count; i++) {
        uint64_t stride = magnitude(layout->strides[order[i]]);
        if (stride <= reach)
            return false;
        reach += stride * (uint64_t)(layout->dims[order[i]] - 1);
    }
    return true;
}

void eddy_layout_extent(const eddy_layout *layout, int64_t *low, int64_t *high) {
    *low = *high = layout->offset;
    if (is_empty(layout))
        return;
    for (int32_t d = 0; d < layout->rank; d++) {
        int64_t reach = layout->strides[d] * (layout->dims[d] - 1);
        *(reach < 0 ? low : high) += reach;
    }
    *high += 1;
}

bool eddy_layout_broadcast(const eddy_layout *layout, const eddy_shape *shape, int64_t *strides) {
    int32_t added = shape->rank - layout->rank;
    if (added < 0)
        return false;
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->dims[d] != shape->dims[added + d] && layout->dims[d] != 1)
            return false;
    for (int32_t d = 0; d < shape->rank; d++) {
        bool is_repeated = d < added || layout->dims[d - added] != shape->dims[d];
        strides[d] = is_repeated ? 0 : layout->strides[d - added];
    }
    return true;
}

/* PyTorch's computeStride: runs of dims that are contiguous among themselves are split anew, from the innermost outwards,
 * and every border of a run must be a border of new dims. */
bool eddy_layout_view(const eddy_layout *layout, const eddy_shape *shape, int64_t *strides) {
    int64_t old_count, new_count;
    if (!eddy_shape_count(layout->rank, layout->dims, &old_count) ||
        !eddy_shape_count(shape->rank, shape->dims, &new_count) || old_count != new_count)
        return false;
    if (old_count == 0) {
        if (eddy_shape_equal(layout->rank, layout->dims, shape->rank, shape->dims))
            memmove(strides, layout->strides, sizeof(*strides) * (size_t)shape->rank);
        else
            eddy_shape_strides_contiguous(shape->rank, shape->dims, strides);
        return true;
    }
    int64_t result[EDDY_RANK_MAX];
    int32_t target = shape->rank - 1;
    int64_t run_stride = layout->rank > 0 ? layout->strides[layout->rank - 1] : 1;
    int64_t run_count = 1;
    for (int32_t d = layout->rank - 1; d >= 0; d--) {
        run_count *= layout->dims[d];
        bool run_ends = d == 0 || (layout->dims[d - 1] != 1 &&
                                   layout->strides[d - 1] != run_count * run_stride);
        if (!run_ends)
            continue;
        int64_t cut_count = 1;
        while (target >= 0 && (cut_count < run_count || shape->dims[target] == 1)) {
            result[target] = cut_count * run_stride;
            cut_count *= shape->dims[target--];
        }
        if (cut_count != run_count)
            return false;
        if (d > 0) {
            run_stride = layout->strides[d - 1];
            run_count = 1;
        }
    }
    /* The remaining dims are sizes of 1 in front (rank 0 has no dims to walk). */
    for (; target >= 0; target--)
        result[target] = 1;
    memcpy(strides, result, sizeof(*strides) * (size_t)shape->rank);
    return true;
}

/* Whether dim `outer` continues dim `inner` in every operand. */
static bool can_merge(const int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX], int operand_count,
                      int32_t outer, int32_t inner) {
    for (int i = 0; i < operand_count; i++)
        if (strides[i][outer] != strides[i][inner] * dims[inner])
            return false;
    return true;
}

static void swap(int64_t *values, int32_t i) {
    int64_t value = values[i];
    values[i] = values[i - 1];
    values[i - 1] = value;
}

void eddy_layout_sort(int32_t rank, int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX],
                      int operand_count, int by) {
    /* Insertion sort: ranks are small, and mostly in order. */
    for (int32_t d = 1; d < rank; d++)
        for (int32_t to = d; to > 0 && magnitude(strides[by][to - 1]) < magnitude(strides[by][to]);
             to--) {
            swap(dims, to);
            for (int i = 0; i < operand_count; i++)
                swap(strides[i], to);
        }
}

void eddy_layout_collapse(int32_t *rank, int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX],
                          int operand_count) {
    int32_t kept = 0;
    for (int32_t d = 0; d < *rank; d++) {
        if (dims[d] == 1)
            continue;
        /* dims[0 .. kept) hold the result so far; d is the next inner dim. */
        bool merges = kept > 0 && can_merge(dims, strides, operand_count, kept - 1, d);
        int32_t target = merges ? kept - 1 : kept++;
        dims[target] = merges ? dims[target] * dims[d] : dims[d];
        for (int i = 0; i < operand_count; i++)
            strides[i][target] = strides[i][d];
    }
    *rank = kept;
}

bool eddy_layout_is_dense(const eddy_layout *layout) {
    int64_t reached = 1;
    bool is_taken[EDDY_RANK_MAX] = {false};
    for (int32_t k = 0; k < layout->rank; k++) {
        int32_t next = -1;
        for (int32_t d = 0; d < layout->rank; d++)
            if (!is_taken[d] && (next < 0 || layout->strides[d] < layout->strides[next]))
                next = d;
        is_taken[next] = true;
        if (layout->dims[next] == 1)
            continue;
        if (layout->strides[next] != reached)
            return false;
        reached *= layout->dims[next];
    }
    return true;
}
