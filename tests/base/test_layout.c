#include <base/shape.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static eddy_layout contiguous(eddy_shape shape) {
    eddy_layout layout = {.rank = shape.rank};
    memcpy(layout.dims, shape.dims, sizeof(layout.dims));
    eddy_shape_strides_contiguous(shape.rank, shape.dims, layout.strides);
    return layout;
}

/* The element that the flat row-major number `at` names. */
static int64_t element(int32_t rank, const int64_t *dims, const int64_t *strides, int64_t offset,
                       int64_t at) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        offset += at % dims[d] * strides[d];
        at /= dims[d];
    }
    return offset;
}

static int64_t count_of(const eddy_layout *layout) {
    int64_t count = 0;
    cr_assert(eddy_shape_count(layout->rank, layout->dims, &count));
    return count;
}

static uint64_t random_state = 7;

static int64_t random_below(int64_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % bound;
}

/* A small layout with any strides, broadcast and negative ones included. */
static eddy_layout random_layout(void) {
    eddy_layout layout = {.rank = (int32_t)random_below(5), .offset = 100};
    for (int32_t d = 0; d < layout.rank; d++) {
        layout.dims[d] = random_below(10) == 0 ? 0 : 1 + random_below(4);
        layout.strides[d] = random_below(3) == 0 ? random_below(5) - 2 : 0;
    }
    if (random_below(2)) {
        int64_t stride = 1;
        for (int32_t d = layout.rank - 1; d >= 0; d--) {
            layout.strides[d] = stride;
            stride *= (layout.dims[d] ? layout.dims[d] : 1) * (1 + (random_below(3) == 0));
        }
    }
    return layout;
}

Test(layout, contiguous_strides_are_row_major) {
    eddy_layout layout = contiguous(EDDY_SHAPE(2, 3, 4));
    cr_assert(layout.strides[0] == 12 && layout.strides[1] == 4 && layout.strides[2] == 1);
    cr_assert(eddy_layout_is_contiguous(&layout));
    layout = contiguous(EDDY_SHAPE(2, 0, 4));
    cr_assert(layout.strides[0] == 4 && layout.strides[1] == 4 && layout.strides[2] == 1);
    cr_assert(eddy_layout_is_contiguous(&layout));
    layout = contiguous(EDDY_SHAPE(2, 1, 4));
    layout.strides[1] = 77;
    cr_assert(eddy_layout_is_contiguous(&layout), "strides of single elements do not matter");
    layout.strides[0] = 5;
    cr_assert_not(eddy_layout_is_contiguous(&layout));
    layout = contiguous(EDDY_SHAPE());
    cr_assert(eddy_layout_is_contiguous(&layout));
}

Test(layout, extent_and_injectivity_agree_with_enumeration) {
    for (int round = 0; round < 20000; round++) {
        eddy_layout layout = random_layout();
        int64_t count = count_of(&layout), low, high, least = INT64_MAX, most = INT64_MIN;
        bool seen[4096] = {false}, repeats = false;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = element(layout.rank, layout.dims, layout.strides, layout.offset, i);
            least = at < least ? at : least;
            most = at > most ? at : most;
            repeats |= seen[at];
            seen[at] = true;
        }
        eddy_layout_extent(&layout, &low, &high);
        if (count == 0)
            cr_assert_eq(low, high);
        else
            cr_assert(low == least && high == most + 1, "round %d", round);
        if (eddy_layout_is_injective(&layout))
            cr_assert_not(repeats, "round %d", round);
        if (eddy_layout_is_contiguous(&layout))
            cr_assert(eddy_layout_is_injective(&layout), "round %d", round);
    }
}

Test(layout, injectivity_is_proven_for_the_usual_views) {
    eddy_layout transposed = contiguous(EDDY_SHAPE(3, 4));
    transposed.dims[0] = 4, transposed.dims[1] = 3, transposed.strides[0] = 1,
    transposed.strides[1] = 4;
    cr_assert(eddy_layout_is_injective(&transposed));
    eddy_layout flipped = {.rank = 1, .offset = 3, .dims = {4}, .strides = {-1}};
    cr_assert(eddy_layout_is_injective(&flipped));
    eddy_layout sliced = {.rank = 2, .dims = {3, 2}, .strides = {10, 3}};
    cr_assert(eddy_layout_is_injective(&sliced));
    eddy_layout expanded = {.rank = 2, .dims = {3, 2}, .strides = {0, 1}};
    cr_assert_not(eddy_layout_is_injective(&expanded));
}

Test(layout, broadcast_strides_are_zero_where_repeated) {
    eddy_layout layout = contiguous(EDDY_SHAPE(3, 1));
    eddy_shape shape = EDDY_SHAPE(2, 3, 4);
    int64_t strides[EDDY_RANK_MAX];
    cr_assert(eddy_layout_broadcast(&layout, &shape, strides));
    cr_assert(strides[0] == 0 && strides[1] == 1 && strides[2] == 0);
    shape = EDDY_SHAPE(3, 1);
    cr_assert(eddy_layout_broadcast(&layout, &shape, strides));
    cr_assert(strides[0] == 1 && strides[1] == 1);
    shape = EDDY_SHAPE(4, 4);
    cr_assert_not(eddy_layout_broadcast(&layout, &shape, strides));
    shape = EDDY_SHAPE(3);
    cr_assert_not(eddy_layout_broadcast(&layout, &shape, strides), "a view does not lose dims");
}

Test(layout, view_keeps_the_order_of_elements) {
    int made = 0;
    for (int round = 0; round < 40000; round++) {
        eddy_layout layout = random_layout();
        int64_t count = count_of(&layout);
        /* A random factoring of the count. */
        eddy_shape shape = {.rank = 0};
        int64_t left = count;
        while (shape.rank < 5 && (left > 1 || random_below(3) == 0)) {
            int64_t factor = 1 + random_below(4);
            if (left % factor == 0) {
                shape.dims[shape.rank++] = factor;
                left /= factor;
            }
        }
        if (left != 1)
            shape.dims[shape.rank++] = left;
        int64_t strides[EDDY_RANK_MAX];
        if (!eddy_layout_view(&layout, &shape, strides)) {
            cr_assert_not(eddy_layout_is_contiguous(&layout),
                          "round %d: contiguous layouts view as anything", round);
            continue;
        }
        made++;
        for (int64_t i = 0; i < count; i++)
            cr_assert_eq(element(layout.rank, layout.dims, layout.strides, layout.offset, i),
                         element(shape.rank, shape.dims, strides, layout.offset, i), "round %d",
                         round);
    }
    cr_assert_gt(made, 5000);
}

Test(layout, view_finds_what_pytorch_finds) {
    int64_t strides[EDDY_RANK_MAX];
    eddy_layout sliced = {.rank = 2, .dims = {4, 6}, .strides = {12, 1}};
    eddy_shape split = EDDY_SHAPE(2, 2, 3, 2), merged = EDDY_SHAPE(24), wrong = EDDY_SHAPE(5, 5);
    cr_assert(eddy_layout_view(&sliced, &split, strides));
    cr_assert(strides[0] == 24 && strides[1] == 12 && strides[2] == 2 && strides[3] == 1);
    cr_assert_not(eddy_layout_view(&sliced, &merged, strides));
    cr_assert_not(eddy_layout_view(&sliced, &wrong, strides));
    eddy_layout single = {.rank = 0};
    eddy_shape ones = EDDY_SHAPE(1, 1);
    cr_assert(eddy_layout_view(&single, &ones, strides));
    cr_assert(strides[0] == 1 && strides[1] == 1);
    eddy_layout expanded = {.rank = 2, .dims = {3, 4}, .strides = {0, 0}};
    eddy_shape flat = EDDY_SHAPE(12);
    cr_assert(eddy_layout_view(&expanded, &flat, strides) && strides[0] == 0);
}

Test(layout, collapse_walks_the_same_elements) {
    int64_t rank_before = 0, rank_after = 0;
    for (int round = 0; round < 20000; round++) {
        eddy_layout a = random_layout(), b = a;
        for (int32_t d = 0; d < b.rank; d++)
            b.strides[d] = random_below(2) ? a.strides[d] : random_below(6);
        int32_t rank = a.rank;
        int64_t dims[EDDY_RANK_MAX], strides[2][EDDY_RANK_MAX], count = count_of(&a);
        memcpy(dims, a.dims, sizeof(dims));
        memcpy(strides[0], a.strides, sizeof(dims));
        memcpy(strides[1], b.strides, sizeof(dims));
        eddy_layout_collapse(&rank, dims, strides, 2);
        int64_t collapsed_count = -1;
        cr_assert(eddy_shape_count(rank, dims, &collapsed_count));
        cr_assert_eq(collapsed_count, count, "round %d", round);
        for (int64_t i = 0; i < count; i++) {
            cr_assert_eq(element(a.rank, a.dims, a.strides, 0, i),
                         element(rank, dims, strides[0], 0, i));
            cr_assert_eq(element(b.rank, b.dims, b.strides, 0, i),
                         element(rank, dims, strides[1], 0, i));
        }
        for (int32_t d = 0; d < rank; d++)
            cr_assert_neq(dims[d], 1);
        rank_before += a.rank;
        rank_after += rank;
    }
    cr_assert_lt(rank_after, rank_before);
    eddy_layout whole = contiguous(EDDY_SHAPE(2, 3, 1, 4));
    int32_t rank = whole.rank;
    eddy_layout_collapse(&rank, whole.dims, &whole.strides, 1);
    cr_assert(rank == 1 && whole.dims[0] == 24 && whole.strides[0] == 1);
}

/* Elements of both as pairs, summed in a way that does not depend on their order. */
static uint64_t mixed(int32_t rank, const int64_t *dims, int64_t (*strides)[EDDY_RANK_MAX],
                      int64_t count) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t pair = (uint64_t)element(rank, dims, strides[0], 0, i) << 32;
        pair ^= (uint64_t)element(rank, dims, strides[1], 0, i);
        sum += pair * pair * UINT64_C(0x9e3779b97f4a7c15) + (pair >> 7);
    }
    return sum;
}

Test(layout, sorted_dims_walk_one_operand_forward) {
    int moved = 0;
    for (int round = 0; round < 20000; round++) {
        eddy_layout a = random_layout();
        int64_t dims[EDDY_RANK_MAX], strides[2][EDDY_RANK_MAX], count = count_of(&a);
        memcpy(dims, a.dims, sizeof(dims));
        for (int32_t d = 0; d < a.rank; d++)
            strides[1][d] = random_below(2) ? a.strides[d] : random_below(6) - 3;
        memcpy(strides[0], a.strides, sizeof(a.strides));
        uint64_t before = mixed(a.rank, dims, strides, count);
        eddy_layout_sort(a.rank, dims, strides, 2, 1);
        cr_assert_eq(mixed(a.rank, dims, strides, count), before, "round %d", round);
        for (int32_t d = 1; d < a.rank; d++)
            cr_assert_geq(llabs(strides[1][d - 1]), llabs(strides[1][d]));
        moved += memcmp(dims, a.dims, (size_t)a.rank * sizeof(*dims)) != 0;
    }
    cr_assert_gt(moved, 1000);
    int64_t dims[EDDY_RANK_MAX] = {2, 3, 4}, strides[1][EDDY_RANK_MAX] = {{5, 5, -5}};
    eddy_layout_sort(3, dims, strides, 1, 0);
    cr_assert(dims[0] == 2 && dims[1] == 3 && dims[2] == 4, "equal strides keep their order");
}

/* ---- layouts that follow others ---- */

#define MOST_OPERANDS 3

static void expect_follows(eddy_shape shape, int operand_count, int64_t (*operands)[EDDY_RANK_MAX],
                           const int64_t *wanted) {
    int64_t got[EDDY_RANK_MAX];
    eddy_shape_strides_follow(shape.rank, shape.dims, operands, operand_count, got);
    for (int32_t d = 0; d < shape.rank; d++)
        cr_expect_eq(got[d], wanted[d], "axis %d: %lld, not %lld", (int)d, (long long)got[d],
                     (long long)wanted[d]);
}
#define FOLLOWS(shape, wanted, ...)                                                                \
    do {                                                                                           \
        int64_t operands_[][EDDY_RANK_MAX] = {__VA_ARGS__};                                        \
        const int64_t wanted_[] = wanted;                                                          \
        expect_follows(shape, sizeof(operands_) / sizeof(operands_[0]), operands_, wanted_);       \
    } while (0)
#define STRIDES(...)                                                                               \
    { __VA_ARGS__ }

Test(layout, strides_follow_the_first_operand_that_says) {
    const eddy_shape image = EDDY_SHAPE(2, 3, 5, 7);
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {105, 1, 21, 3});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {105, 1, 21, 3}, {105, 35, 7, 1});
    FOLLOWS(image, STRIDES(105, 35, 7, 1), {105, 35, 7, 1}, {105, 1, 21, 3});
    /* Bias per channel, row, column, number: they leave the others to say. */
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {0, 1, 0, 0}, {105, 1, 21, 3});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {0, 0, 0, 1}, {105, 1, 21, 3});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {0, 0, 7, 1}, {105, 1, 21, 3});
    FOLLOWS(image, STRIDES(105, 1, 3, 15), {0, 0, 1, 5}, {105, 1, 21, 3});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {0, 0, 0, 0}, {105, 1, 21, 3});
    /* Gaps go, backwards goes forwards, what repeats comes outside. */
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {2000, 2, 200, 20});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {-105, 1, -21, -3});
    FOLLOWS(image, STRIDES(105, 1, 21, 3), {0, 1, 21, 3});
    FOLLOWS(EDDY_SHAPE(3, 4), STRIDES(4, 1), {0, 0});
    FOLLOWS(EDDY_SHAPE(3, 4), STRIDES(1, 3), {1, 3});
    /* Single elements beside others of their stride come inside, wherever the axis stands. */
    FOLLOWS(EDDY_SHAPE(1, 3, 5, 7), STRIDES(3, 1, 21, 3), {3, 1, 21, 3});
    FOLLOWS(EDDY_SHAPE(4, 1), STRIDES(1, 1), {1, 1});
    FOLLOWS(EDDY_SHAPE(2, 0, 3), STRIDES(3, 1, 1), {3, 1, 1});
    int64_t none = 7;
    eddy_shape_strides_follow(0, image.dims, NULL, 0, &none);
    cr_assert_eq(none, 7);
}

/* Whatever the operands are like, the strides leave no gap; and those of one operand without gaps come back. */
Test(layout, strides_that_follow_have_no_gaps) {
    for (int round = 0; round < 20000; round++) {
        eddy_layout layout = random_layout();
        int operand_count = (int)random_below(MOST_OPERANDS + 1);
        int64_t operands[MOST_OPERANDS][EDDY_RANK_MAX], low, high;
        for (int i = 0; i < operand_count; i++)
            for (int32_t d = 0; d < layout.rank; d++)
                operands[i][d] = random_below(9) - 3;
        eddy_shape_strides_follow(layout.rank, layout.dims, operands, operand_count,
                                  layout.strides);
        cr_assert(eddy_layout_is_injective(&layout), "round %d", round);
        eddy_layout_extent(&layout, &low, &high);
        cr_assert_eq(high - low, count_of(&layout), "round %d", round);
        bool has_single = false;
        for (int32_t d = 0; d < layout.rank; d++)
            has_single |= layout.dims[d] < 2;
        if (has_single)
            continue;
        int64_t again[EDDY_RANK_MAX];
        memcpy(operands[0], layout.strides, sizeof(layout.strides));
        eddy_shape_strides_follow(layout.rank, layout.dims, operands, 1, again);
        cr_assert_eq(memcmp(again, layout.strides, sizeof(*again) * (size_t)layout.rank), 0,
                     "round %d", round);
    }
}
