/* Sizes that recordings vouch for, beside all sums of their differences. */
#include <criterion/criterion.h>
#include <program/size_lattice.h>
#include <string.h>

static int64_t next_random(uint64_t *state, int64_t most) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(*state >> 33) % (most + 1);
}

static bool has(const eddy_sizes *recorded, int count, eddy_sizes sizes) {
    eddy_size_lattice lattice = {0};
    for (int i = 1; i < count; i++)
        eddy_size_lattice_add(&lattice, recorded[0], recorded[i]);
    return eddy_size_lattice_has(&lattice, recorded[0], sizes);
}

Test(size_lattice, one_size_is_multiples) {
    const eddy_sizes recorded[] = {{{24}}, {{8}}, {{16}}, {{20}}};
    for (int64_t size = 0; size < 60; size++) {
        cr_assert_eq(has(recorded, 1, (eddy_sizes){{size}}), size == 24);
        cr_assert_eq(has(recorded, 3, (eddy_sizes){{size}}), size % 8 == 0);
        cr_assert_eq(has(recorded, 4, (eddy_sizes){{size}}), size % 4 == 0);
    }
    const eddy_sizes large[] = {{{INT64_MAX}}, {{2}}};
    cr_assert(has(large, 2, (eddy_sizes){{2}}));
    cr_assert_not(has(large, 2, (eddy_sizes){{3}}));
}

Test(size_lattice, the_product_has_steps_of_its_own) {
    const eddy_sizes corners[] = {{{4, 6}}, {{8, 6}}, {{4, 10}}, {{8, 10}}, {{6, 8}}};
    cr_assert_not(has(corners, 5, (eddy_sizes){{6, 6}}), "24, 48, 40, 80, 48 and 36");
    cr_assert(has(corners, 5, (eddy_sizes){{4, 14}}));
    const eddy_sizes sums[] = {{{4, 6}}, {{6, 4}}, {{5, 5}}};
    cr_assert_not(has(sums, 3, (eddy_sizes){{5, 6}}), "whose sums are all 10");
    cr_assert_not(has(sums, 3, (eddy_sizes){{4, 7}}));
}

/* A remainder of a + b m + c n + d mn that all recorded sizes share, those that follow have, too. */
Test(size_lattice, remainders_are_shared) {
    uint64_t state = 3;
    int followed = 0;
    for (int round = 0; round < 20000; round++) {
        eddy_sizes recorded[8], sizes = {{next_random(&state, 30), next_random(&state, 30)}};
        int count = 2 + (int)next_random(&state, 6);
        int64_t a[3], divisor = 2 + next_random(&state, 14), remainder = -1;
        bool is_shared = true;
        for (int i = 0; i < 3; i++)
            a[i] = next_random(&state, 40);
        for (int i = 0; i < count; i++) {
            /* Every other round has sizes that are likely to share one. */
            int64_t times = round % 2 ? divisor : 1;
            recorded[i] = (eddy_sizes){
                {times * next_random(&state, 5) + 2, times * next_random(&state, 5) + 3}};
            int64_t m = recorded[i].of[0], n = recorded[i].of[1],
                    found = (a[0] * m + a[1] * n + a[2] * m * n) % divisor;
            is_shared &= i == 0 || found == remainder;
            remainder = found;
        }
        if (!is_shared || !has(recorded, count, sizes))
            continue;
        followed++;
        cr_assert_eq((a[0] * sizes.of[0] + a[1] * sizes.of[1] + a[2] * sizes.of[0] * sizes.of[1]) %
                         divisor,
                     remainder, "round %d", round);
    }
    cr_assert_gt(followed, 20, "%d", followed);
}

/* Each difference is there; where numbers are too large, it is not. */
Test(size_lattice, sums_of_differences_follow) {
    uint64_t state = 9;
    for (int round = 0; round < 5000; round++) {
        int64_t most = round % 3 == 0 ? 5 : round % 3 == 1 ? 1000 : 100000;
        eddy_sizes recorded[6];
        for (int i = 0; i < 6; i++)
            recorded[i] = (eddy_sizes){{next_random(&state, most), next_random(&state, most)}};
        for (int i = 0; i < 6; i++)
            cr_assert(has(recorded, 6, recorded[i]), "round %d, %d", round, i);
    }
}

/* Both sizes are multiples of 3, and one is of 9, so that all products are multiples of 27; that of multiples of 3 alone is none. */
Test(size_lattice, large_numbers_do_not_make_sizes_follow) {
    uint64_t state = 11;
    const int64_t most = (INT64_C(1) << 30) / 9 - 1;
    for (int round = 0; round < 5000; round++) {
        eddy_sizes recorded[6];
        for (int i = 0; i < 6; i++)
            recorded[i] = (eddy_sizes){{(i % 2 ? 9 : 3) * next_random(&state, most),
                                        (i % 2 ? 3 : 9) * next_random(&state, most)}};
        int64_t m = 9 * next_random(&state, most) + 3, n = 9 * next_random(&state, most) + 3;
        cr_assert_not(has(recorded, 6, (eddy_sizes){{m, n}}), "round %d", round);
    }
}
