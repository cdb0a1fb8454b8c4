/* Numbers that are foretold, beside polynomials that give them. */
#include <criterion/criterion.h>
#include <program/affine.h>
#include <string.h>

#define ROUNDS 20000

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t between(uint64_t *state, int64_t least, int64_t most) {
    return least + (int64_t)(next_random(state) % (uint64_t)(most - least + 1));
}

/* a + b m + c n + d mn */
typedef struct polynomial {
    int64_t of[4];
} polynomial;

static int64_t value_of(const polynomial *p, eddy_sizes at) {
    return p->of[0] + p->of[1] * at.of[0] + p->of[2] * at.of[1] + p->of[3] * at.of[0] * at.of[1];
}

static eddy_sizes random_sizes(uint64_t *state, int32_t count, int64_t most) {
    return (eddy_sizes){{between(state, 2, most), count > 1 ? between(state, 2, most) : 0}};
}

/* Returns how many of the rounds have known programs that say something. */
static int try_polynomials(int32_t size_count, int64_t most, int64_t factor_most) {
    int told = 0;
    uint64_t state = 7;
    for (int round = 0; round < ROUNDS; round++) {
        polynomial p;
        eddy_sizes known[4], sizes = random_sizes(&state, size_count, most);
        int64_t numbers[4], number;
        eddy_affine affine;
        for (int i = 0; i < 4; i++)
            p.of[i] = i < 2 * size_count ? between(&state, -factor_most, factor_most) : 0;
        for (int i = 0; i < 2 * size_count; i++) {
            known[i] = random_sizes(&state, size_count, most);
            numbers[i] = value_of(&p, known[i]);
        }
        if (!eddy_affine_of(known, size_count, sizes, &affine))
            continue;
        told++;
        cr_assert(eddy_affine_number(&affine, numbers, &number), "round %d", round);
        cr_assert_eq(number, value_of(&p, sizes), "round %d: %lld", round, (long long)number);
    }
    return told;
}

Test(affine, numbers_are_those_of_the_polynomial) {
    cr_assert_gt(try_polynomials(1, 30, 1000), ROUNDS * 9 / 10);
    cr_assert_gt(try_polynomials(1, INT64_C(1) << 40, 1 << 20), ROUNDS * 9 / 10);
    cr_assert_gt(try_polynomials(2, 30, 1000), ROUNDS * 9 / 10);
    cr_assert_gt(try_polynomials(2, 4096, 1 << 20), ROUNDS * 9 / 10);
    cr_assert_gt(try_polynomials(2, 5, 9), ROUNDS / 4, "of 16 pairs many fours are on a line");
}

Test(affine, sizes_that_say_nothing) {
    eddy_affine affine;
    const eddy_sizes wanted = {{7, 7}}, equal[] = {{{4}}, {{4}}},
                     of_one_column[] = {{{4, 2}}, {{4, 3}}, {{4, 5}}, {{4, 9}}},
                     on_a_line[] = {{{4, 2}}, {{6, 2}}, {{8, 2}}, {{5, 5}}},
                     corners[] = {{{4, 2}}, {{8, 2}}, {{4, 6}}, {{8, 6}}},
                     beyond[] = {{{4, 2}}, {{INT64_C(1) << 30, 2}}, {{4, 6}}, {{8, 6}}},
                     of_one_product[] = {{{4, 16}}, {{8, 8}}, {{16, 4}}, {{2, 32}}},
                     all_apart[] = {{{4, 9}}, {{6, 3}}, {{8, 14}}, {{5, 5}}};
    cr_assert_not(eddy_affine_of(equal, 1, wanted, &affine));
    cr_assert_not(eddy_affine_of(of_one_column, 2, wanted, &affine));
    cr_assert_not(eddy_affine_of(on_a_line, 2, wanted, &affine), "nothing of mn");
    cr_assert_not(eddy_affine_of(of_one_product, 2, wanted, &affine), "no two share a size");
    cr_assert_not(eddy_affine_of(beyond, 2, wanted, &affine));
    cr_assert_not(eddy_affine_of(corners, 2, beyond[1], &affine));
    cr_assert(eddy_affine_of(corners, 2, wanted, &affine));
    cr_assert(eddy_affine_of(all_apart, 2, wanted, &affine));
}

Test(affine, numbers_that_do_not_follow) {
    eddy_affine affine;
    int64_t told;
    const eddy_sizes two[] = {{{4}}, {{8}}};
    cr_assert(eddy_affine_of(two, 1, (eddy_sizes){{6}}, &affine));
    cr_assert(eddy_affine_number(&affine, (const int64_t[]){10, 20}, &told) && told == 15);
    cr_assert_not(eddy_affine_number(&affine, (const int64_t[]){10, 21}, &told), "15.5");
    cr_assert(eddy_affine_number(&affine, (const int64_t[]){10, 10}, &told) && told == 10);
    cr_assert(eddy_affine_number(&affine, (const int64_t[]){INT64_MIN, INT64_MAX - 1}, &told) &&
                  told == -1,
              "numbers that are farther apart than 63 bits can say");
    cr_assert(eddy_affine_of(two, 1, (eddy_sizes){{12}}, &affine));
    cr_assert_not(eddy_affine_number(&affine, (const int64_t[]){0, INT64_MAX}, &told), "too large");
    const eddy_sizes four[] = {{{2, 2}}, {{3, 2}}, {{2, 3}}, {{3, 3}}};
    cr_assert(eddy_affine_of(four, 2, (eddy_sizes){{1 << 20, 1 << 20}}, &affine));
    cr_assert_not(eddy_affine_number(&affine, (const int64_t[]){0, 1, INT64_MAX, 5}, &told));
    cr_assert_not(
        eddy_affine_number(&affine, (const int64_t[]){INT64_MIN, INT64_MAX, INT64_MAX, 0}, &told));
}

/* Rows of n, m of them, begin mn behind each other: rows are as in a row-major layout, or else strides are numbers. */
Test(affine, layouts) {
    const eddy_sizes four[] = {{{2, 3}}, {{4, 3}}, {{2, 5}}, {{6, 7}}};
    eddy_layout known[4], told = {0};
    eddy_affine affine;
    for (int i = 0; i < 4; i++) {
        int64_t m = four[i].of[0], n = four[i].of[1];
        known[i] = (eddy_layout){.rank = 4,
                                 .dims = {m, n, n, 4},
                                 .strides = {4 * n * n, 4 * n, 4, 1},
                                 .offset = 4 * m * n + 1};
    }
    cr_assert(eddy_affine_of(four, 2, (eddy_sizes){{5, 11}}, &affine));
    cr_assert(eddy_affine_layout(&affine, known, &told));
    const eddy_layout expected = {
        .rank = 4, .dims = {5, 11, 11, 4}, .strides = {4 * 121, 44, 4, 1}, .offset = 4 * 55 + 1};
    cr_assert(eddy_layout_is_equal(&told, &expected));
    for (int i = 0; i < 4; i++)
        known[i].strides[0] = 5 * four[i].of[1] * four[i].of[1];
    cr_assert_not(eddy_affine_layout(&affine, known, &told) && told.strides[0] == 5 * 121,
                  "the square of a size is none of these numbers");
    for (int i = 0; i < 4; i++)
        known[i].strides[0] = 5 * four[i].of[0] * four[i].of[1];
    cr_assert(eddy_affine_layout(&affine, known, &told) && told.strides[0] == 5 * 55);
    known[3].dims[1] = 1;
    cr_assert_not(eddy_affine_layout(&affine, known, &told), "a dim of 1 has a rule of its own");
    known[3].dims[1] = 7;
    known[2].rank = 3;
    cr_assert_not(eddy_affine_layout(&affine, known, &told));
}

static bool tell(const eddy_affine *affine, eddy_attribute_type type, const void *numbers,
                 size_t bytes, void *told) {
    const char *known[4];
    eddy_op_attribute attribute = {.type = type};
    for (int i = 0; i < 4; i++)
        known[i] = (const char *)numbers + (size_t)i * bytes;
    memcpy(told, known[0], bytes);
    return eddy_affine_attribute(affine, &attribute, known, told);
}

Test(affine, attributes) {
    const eddy_sizes four[] = {{{2, 3}}, {{4, 3}}, {{2, 5}}, {{6, 7}}};
    eddy_affine affine;
    cr_assert(eddy_affine_of(four, 2, (eddy_sizes){{3, 4}}, &affine));
    int64_t ints[4], count;
    double floats[4], mean;
    eddy_scalar scalars[4], scalar;
    eddy_shape shapes[4], shape;
    int64_t pairs[4][2], pair[2];
    for (int i = 0; i < 4; i++) {
        int64_t m = four[i].of[0], n = four[i].of[1];
        ints[i] = m * n - 1;
        floats[i] = (double)(m * n);
        scalars[i] = EDDY_S(m + 2 * n);
        shapes[i] = EDDY_SHAPE(m, m * n, 3);
        pairs[i][0] = m;
        pairs[i][1] = n;
    }
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_INT, ints, sizeof(*ints), &count) && count == 11);
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_FLOAT, floats, sizeof(*floats), &mean) && mean == 12);
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_SCALAR, scalars, sizeof(*scalars), &scalar) &&
              scalar.value.integer == 11);
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_SHAPE, shapes, sizeof(*shapes), &shape) &&
              shape.dims[0] == 3 && shape.dims[1] == 12 && shape.dims[2] == 3);
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_PAIR, pairs, sizeof(*pairs), pair) && pair[0] == 3 &&
              pair[1] == 4);
    floats[1] += 0.5;
    cr_assert_not(tell(&affine, EDDY_ATTRIBUTE_FLOAT, floats, sizeof(*floats), &mean));
    scalars[2].kind = EDDY_SCALAR_FLOAT;
    cr_assert_not(tell(&affine, EDDY_ATTRIBUTE_SCALAR, scalars, sizeof(*scalars), &scalar));
    shapes[3].rank = 2;
    cr_assert_not(tell(&affine, EDDY_ATTRIBUTE_SHAPE, shapes, sizeof(*shapes), &shape));
    bool flags[] = {true, true, true, false}, flag;
    cr_assert_not(tell(&affine, EDDY_ATTRIBUTE_BOOL, flags, sizeof(*flags), &flag));
    flags[3] = true;
    cr_assert(tell(&affine, EDDY_ATTRIBUTE_BOOL, flags, sizeof(*flags), &flag) && flag);
}
