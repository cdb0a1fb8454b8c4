/* Gradients of slices of one tensor: side by side, with gaps, overlapping, along several axes, beside a use of the whole. Weights are
 * small whole numbers, so that sums are exact in any order. */
#include "taped.h"

#define ROWS 5
#define COLUMNS 7
#define SLICES_MAX 5

#define CASE(name) TAPED_TEST(slices, name)

typedef struct slice {
    int axis;
    int64_t start, length, step;
    bool is_selected;
} slice;

static uint32_t state;

static int64_t below(int64_t bound) {
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 16) % bound;
}

static slice some_slice(bool is_plain) {
    slice s = {.axis = is_plain ? 1 : (int)below(2), .step = is_plain || below(3) ? 1 : 2};
    int64_t dim = s.axis == 0 ? ROWS : COLUMNS;
    s.start = below(dim);
    s.length = below((dim - s.start + s.step - 1) / s.step + 1);
    s.is_selected = !is_plain && below(4) == 0;
    if (s.is_selected)
        s.length = s.step = 1;
    return s;
}

static eddy_tensor *taken(eddy_tensor *x, slice s) {
    return s.is_selected ? eddy_select(x, s.axis, s.start)
                         : eddy_slice(x, s.axis, s.start, s.start + s.length * s.step, s.step);
}

/* The slice's elements, times numbers from `first` on in row-major order, summed; the numbers go to *want. */
static eddy_tensor *weighed(eddy_tensor *x, slice s, float first, float want[ROWS][COLUMNS]) {
    float weights[ROWS * COLUMNS];
    int64_t count = 0, rows = s.axis == 0 ? s.length : ROWS,
            columns = s.axis == 1 ? s.length : COLUMNS;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t row = s.axis == 0 ? s.start + i * s.step : i,
                    column = s.axis == 1 ? s.start + j * s.step : j;
            weights[count] = first + (float)count;
            want[row][column] += weights[count++];
        }
    eddy_tensor *part = taken(x, s),
                *by = eddy_from_data(weights, eddy_shape_of(part), EDDY_F32, NULL);
    return eddy_sum(eddy_mul(part, by), EDDY_ALL_AXES, NULL);
}

static void expect_gradient(eddy_tensor *gradient, float want[ROWS][COLUMNS], int number) {
    float got[ROWS][COLUMNS];
    cr_assert_eq(eddy_read(gradient, got, sizeof(got), NULL), EDDY_OK);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            cr_assert_eq(got[i][j], want[i][j], "case %d, element [%d, %d]: %g instead of %g",
                         number, i, j, (double)got[i][j], (double)want[i][j]);
}

/* `is_leaf`: slices of the leaf itself, otherwise of what an op made of it. The leaf lies row by row or column by column. */
static void check(const slice *slices, int count, bool is_whole_used, bool is_leaf, bool is_turned,
                  int number) {
    eddy_scope *scope = eddy_scope_begin();
    float want[ROWS][COLUMNS] = {{0}};
    eddy_tensor *x = is_turned ? eddy_t(eddy_ones(EDDY_SHAPE(COLUMNS, ROWS), EDDY_F32, NULL))
                               : eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    leaf(x);
    eddy_tensor *of = is_leaf ? x : eddy_add_s(x, EDDY_S(1)),
                *loss = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    for (int i = 0; i < count; i++)
        loss = eddy_add(loss, weighed(of, slices[i], (float)(100 * i + 1), want));
    if (is_whole_used) {
        loss = eddy_add(loss, eddy_sum(of, EDDY_ALL_AXES, NULL));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            want[i / COLUMNS][i % COLUMNS] += 1;
    }
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    expect_gradient(eddy_grad_of(x), want, number);
    eddy_scope_end(scope);
}

CASE(any_slices_meet_in_the_gradient_of_the_whole) {
    state = 7;
    for (int number = 0; number < 400; number++) {
        slice slices[SLICES_MAX];
        int count = 1 + (int)below(SLICES_MAX);
        for (int i = 0; i < count; i++)
            slices[i] = some_slice(number % 2);
        check(slices, count, below(3) == 0, below(2), below(2), number);
    }
}

CASE(slices_side_by_side_in_any_order) {
    static const slice thirds[] = {{1, 0, 2, 1, false}, {1, 2, 1, 1, true}, {1, 3, 4, 1, false}};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++)
        for (int used = 1; used <= 3; used++) {
            slice slices[3];
            for (int i = 0; i < used; i++)
                slices[i] = thirds[orders[o][i]];
            check(slices, used, false, o % 2, used % 2, 10 * o + used);
        }
}

/* What is kept of one backward is added to by the next, and is nobody else's. */
CASE(a_second_backward_adds) {
    float want[ROWS][COLUMNS] = {{0}};
    eddy_tensor *x = leaf(eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL));
    for (int i = 0; i < 2; i++)
        cr_assert_eq(eddy_backward(weighed(x, (slice){0, i, 3, 1, false}, 1, want)), EDDY_OK);
    expect_gradient(eddy_grad_of(x), want, 0);
}

/* The same tensor comes back to two: adding a slice's gradient to the one must not reach the other. */
CASE(a_shared_gradient_is_not_written_to) {
    for (int is_slice_first = 0; is_slice_first < 2; is_slice_first++) {
        eddy_tensor *x = leaf(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL));
        eddy_tensor *y = leaf(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL));
        eddy_tensor *a = eddy_neg(x), *b = eddy_neg(y),
                    *part = eddy_sum(eddy_narrow(a, 0, 1, 1), EDDY_ALL_AXES, NULL);
        eddy_tensor *whole = eddy_sum(eddy_add(a, b), EDDY_ALL_AXES, NULL);
        float got[2];
        cr_assert_eq(eddy_backward(is_slice_first ? eddy_add(part, whole) : eddy_add(whole, part)),
                     EDDY_OK);
        cr_assert_eq(eddy_read(eddy_grad_of(y), got, sizeof(got), NULL), EDDY_OK);
        cr_assert(got[0] == -1 && got[1] == -1);
        cr_assert_eq(eddy_read(eddy_grad_of(x), got, sizeof(got), NULL), EDDY_OK);
        cr_assert(got[0] == -1 && got[1] == -2);
    }
}

/* So that going back through the permutation and a reshape takes no copy. */
CASE(the_gradient_lies_as_what_was_sliced) {
    eddy_tensor *x = leaf(eddy_ones(EDDY_SHAPE(2, 3, 4, 5), EDDY_F32, NULL));
    eddy_tensor *turned = eddy_permute(eddy_add_s(x, EDDY_S(1)), EDDY_AXES(2, 0, 3, 1)),
                *loss = NULL;
    cr_assert_eq(eddy_grad_keep(turned), EDDY_OK);
    for (int i = 0; i < 4; i++) {
        eddy_tensor *sum = eddy_sum(eddy_select(turned, 0, i), EDDY_ALL_AXES, NULL);
        loss = loss ? eddy_add(loss, sum) : sum;
    }
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    for (int32_t d = 0; d < 4; d++)
        cr_assert_eq(eddy_stride_of(eddy_grad_of(turned), d), eddy_stride_of(turned, d), "axis %d",
                     (int)d);
}
