#include <criterion/criterion.h>
#include <interpreter/call/overlap.h>
#include <stdlib.h>

static bool overlaps_by_hand(const eddy_layout *a, const eddy_layout *b) {
    bool touched[256] = {false};
    for (int pass = 0; pass < 2; pass++) {
        const eddy_layout *l = pass ? b : a;
        int64_t count = 1;
        for (int32_t d = 0; d < l->rank; d++)
            count *= l->dims[d];
        for (int64_t i = 0; i < count; i++) {
            int64_t place = l->offset, rest = i;
            for (int32_t d = l->rank - 1; d >= 0; d--) {
                place += rest % l->dims[d] * l->strides[d];
                rest /= l->dims[d];
            }
            if (pass && touched[place])
                return true;
            touched[place] |= !pass;
        }
    }
    return false;
}

Test(overlap, agrees_with_trying_every_element) {
    srand(1);
    int found = 0;
    for (int round = 0; round < 20000; round++) {
        eddy_layout l[2];
        for (int k = 0; k < 2; k++) {
            l[k] = (eddy_layout){.rank = rand() % 4, .offset = rand() % 30};
            for (int32_t d = 0; d < l[k].rank; d++) {
                l[k].dims[d] = rand() % 5;
                l[k].strides[d] = rand() % 14;
            }
        }
        bool truth = overlaps_by_hand(&l[0], &l[1]);
        found += truth;
        cr_assert_eq(eddy_overlap_layouts(&l[0], &l[1]), truth, "round %d", round);
    }
    cr_assert(found > 1000 && found < 19000);
}

Test(overlap, hard_cases_end) {
    eddy_layout a = {.rank = 8}, b = {.rank = 8, .offset = 1};
    for (int d = 0; d < 8; d++) {
        a.dims[d] = b.dims[d] = 1000;
        a.strides[d] = 982451653 + 2 * d * 7919;
        b.strides[d] = 961748941 + 2 * d * 104729;
    }
    eddy_overlap_layouts(&a, &b);
}

Test(overlap, huge_extents_do_not_overflow) {
    eddy_layout a = {.rank = 1, .dims = {(int64_t)1 << 40}, .strides = {(int64_t)1 << 22}};
    eddy_layout b = {
        .rank = 1, .offset = 1, .dims = {(int64_t)1 << 40}, .strides = {(int64_t)1 << 22}};
    cr_assert_not(eddy_overlap_layouts(&a, &b));
    b.offset = (int64_t)1 << 22;
    cr_assert(eddy_overlap_layouts(&a, &b));
}
