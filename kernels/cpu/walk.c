#include <base/assert.h>
#include <kernels/cpu/walk.h>

void eddy_walk_init(eddy_walk *walk, int32_t rank, const int64_t *dims) {
    walk->rank = rank;
    walk->operand_count = 0;
    for (int32_t d = 0; d < rank; d++)
        walk->dims[d] = dims[d];
}

void eddy_walk_add(eddy_walk *walk, const int64_t *strides, int64_t scale) {
    EDDY_ASSERT(walk->operand_count < EDDY_WALK_OPERANDS);
    int64_t *own = walk->strides[walk->operand_count++];
    for (int32_t d = 0; d < walk->rank; d++)
        own[d] = strides[d] * scale;
}

void eddy_walk_widen(int32_t *rank, int64_t *shape, const eddy_op_view *view) {
    int32_t more = view->rank - *rank;
    for (int32_t d = *rank - 1; d >= 0 && more > 0; d--)
        shape[d + more] = shape[d];
    for (int32_t d = 0; d < more; d++)
        shape[d] = 1;
    *rank = more > 0 ? view->rank : *rank;
    for (int32_t d = 0; d < view->rank; d++)
        if (view->shape[d] != 1)
            shape[*rank - view->rank + d] = view->shape[d];
}

int32_t eddy_walk_joint_dims(const eddy_op_view *views, int32_t count, int64_t *dims) {
    int32_t rank = 0;
    for (int32_t i = 0; i < count; i++)
        eddy_walk_widen(&rank, dims, &views[i]);
    return rank;
}

void eddy_walk_add_broadcast(eddy_walk *walk, const eddy_op_view *view) {
    int64_t strides[EDDY_RANK_MAX];
    for (int32_t d = 0; d < walk->rank; d++) {
        int32_t own = d - (walk->rank - view->rank);
        strides[d] = own < 0 || view->shape[own] == 1 ? 0 : view->strides[own];
    }
    eddy_walk_add(walk, strides, 1);
}

void eddy_walk_append(eddy_walk *walk, int64_t dim, const int64_t *strides, int32_t operand_count) {
    walk->operand_count = operand_count;
    walk->dims[walk->rank] = dim;
    for (int32_t o = 0; o < operand_count; o++)
        walk->strides[o][walk->rank] = strides[o];
    walk->rank++;
}

static bool merges(const eddy_walk *walk, int32_t outer, int32_t inner) {
    for (int32_t o = 0; o < walk->operand_count; o++) {
        int64_t spanned;
        if (__builtin_mul_overflow(walk->strides[o][inner], walk->dims[inner], &spanned) ||
            walk->strides[o][outer] != spanned)
            return false;
    }
    return true;
}

static void move(eddy_walk *walk, int32_t to, int32_t from) {
    walk->dims[to] = walk->dims[from];
    for (int32_t o = 0; o < walk->operand_count; o++)
        walk->strides[o][to] = walk->strides[o][from];
}

void eddy_walk_collapse(eddy_walk *walk) {
    int32_t kept = 0;
    for (int32_t d = 0; d < walk->rank; d++) {
        if (walk->dims[d] == 1)
            continue;
        if (kept > 0 && merges(walk, kept - 1, d)) {
            int64_t product = walk->dims[kept - 1] * walk->dims[d];
            move(walk, kept - 1, d);
            walk->dims[kept - 1] = product;
        } else {
            move(walk, kept++, d);
        }
    }
    walk->rank = kept;
}

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

void eddy_walk_sort(eddy_walk *walk) {
    if (walk->rank < 2 || walk->operand_count == 0)
        return;
    /* Insertion sort: ranks are small and mostly in order. Equal strides (broadcast) keep their order. */
    for (int32_t d = 1; d < walk->rank; d++) {
        int64_t dim = walk->dims[d], strides[EDDY_WALK_OPERANDS];
        for (int32_t o = 0; o < walk->operand_count; o++)
            strides[o] = walk->strides[o][d];
        int32_t to = d;
        while (to > 0 && magnitude(walk->strides[0][to - 1]) < magnitude(strides[0])) {
            move(walk, to, to - 1);
            to--;
        }
        walk->dims[to] = dim;
        for (int32_t o = 0; o < walk->operand_count; o++)
            walk->strides[o][to] = strides[o];
    }
}

int64_t eddy_walk_count(const eddy_walk *walk) {
    int64_t count = 1;
    for (int32_t d = 0; d < walk->rank; d++)
        count *= walk->dims[d];
    return count;
}

int64_t eddy_walk_word_count(const eddy_walk *walk) {
    return 1 + (int64_t)walk->rank * (1 + walk->operand_count);
}

int64_t *eddy_walk_write(const eddy_walk *walk, int64_t *words) {
    *words++ = walk->rank | (int64_t)walk->operand_count << 32;
    for (int32_t d = 0; d < walk->rank; d++) {
        *words++ = walk->dims[d];
        for (int32_t o = 0; o < walk->operand_count; o++)
            *words++ = walk->strides[o][d];
    }
    return words;
}

const int64_t *eddy_walk_read(eddy_walk *walk, const int64_t *words) {
    int64_t head = *words++;
    walk->rank = (int32_t)head;
    walk->operand_count = (int32_t)(head >> 32);
    for (int32_t d = 0; d < walk->rank; d++) {
        walk->dims[d] = *words++;
        for (int32_t o = 0; o < walk->operand_count; o++)
            walk->strides[o][d] = *words++;
    }
    return words;
}

void eddy_walk_seek(const eddy_walk *walk, eddy_walk_cursor *cursor, int64_t flat) {
    for (int32_t o = 0; o < walk->operand_count; o++)
        cursor->offsets[o] = 0;
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        int64_t index = flat;
        /* In most calls the number is within the innermost dim, and a division takes longer than the rest of this
         * function. */
        if (flat >= walk->dims[d]) {
            index = flat % walk->dims[d];
            flat /= walk->dims[d];
        } else {
            flat = 0;
        }
        cursor->index[d] = index;
        for (int32_t o = 0; o < walk->operand_count; o++)
            cursor->offsets[o] += index * walk->strides[o][d];
    }
}
