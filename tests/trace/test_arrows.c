#include <criterion/criterion.h>
#include <stdlib.h>
#include <trace/arrows.h>

static int drawn;
static eddy_arrow_end last_from, last_to;

static void draw(void *context, eddy_arrow_kind kind, const eddy_arrow_end *from,
                 const eddy_arrow_end *to) {
    (void)context, (void)kind;
    drawn++;
    last_from = *from;
    last_to = *to;
}

static void note_kernel(eddy_arrows *arrows, uint64_t key) {
    eddy_arrow_end end = {key, (int64_t)key * 100, 50, (uint32_t)(key % 7)};
    eddy_arrows_note_kernel(arrows, &end);
}

Test(arrows, are_drawn_once_both_ends_are_known_in_any_order) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    eddy_arrows_note(arrows, 1, 2);
    eddy_arrows_draw(arrows, draw, NULL);
    note_kernel(arrows, 2);
    eddy_arrows_draw(arrows, draw, NULL); /* the other ring comes next time */
    cr_assert_eq(drawn, 0);
    note_kernel(arrows, 1);
    eddy_arrows_draw(arrows, draw, NULL);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 1);
    cr_assert(last_from.key == 1 && last_to.key == 2 && last_to.row == 2);
    cr_assert_eq(arrows->lost, 0);
    free(arrows);
}

Test(arrows, from_what_is_not_in_the_file_are_lost) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    eddy_arrows_note(arrows, 1, 2);
    note_kernel(arrows, 2);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(arrows->lost, 0);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(arrows->lost, 1);
    cr_assert_eq(arrows->count, 0);
    /* Another kernel has the place of the first. */
    note_kernel(arrows, 3);
    note_kernel(arrows, 3 + EDDY_ARROWS_KERNELS);
    eddy_arrows_note(arrows, 3, 3 + EDDY_ARROWS_KERNELS);
    eddy_arrows_draw(arrows, draw, NULL);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(arrows->lost, 2);
    cr_assert_eq(drawn, 0);
    free(arrows);
}

/* What never runs as a kernel makes room for others. */
Test(arrows, that_wait_for_ever_are_bounded) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    for (uint64_t n = 1; n <= 3 * EDDY_ARROWS_WAITING; n++)
        eddy_arrows_note(arrows, 1, 1000000 + n);
    cr_assert_leq(arrows->count, EDDY_ARROWS_WAITING);
    cr_assert_eq(arrows->lost + arrows->count, 3 * EDDY_ARROWS_WAITING);
    note_kernel(arrows, 1);
    note_kernel(arrows, 1000000 + 3 * EDDY_ARROWS_WAITING);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 1);
    free(arrows);
}

/* Where they are in one row one is seen within the other. */
Test(arrows, are_drawn_to_other_rows_only) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    eddy_arrow_end call = {1, 10, 5, 1}, other = {2, 10, 5, 6};
    note_kernel(arrows, 1);
    eddy_arrows_note_call(arrows, &call);
    eddy_arrows_note_call(arrows, &other);
    cr_assert_eq(arrows->count, 1);
    note_kernel(arrows, 2);
    call = (eddy_arrow_end){3, 10, 5, 3};
    eddy_arrows_note_call(arrows, &call); /* ahead of its kernel */
    note_kernel(arrows, 3);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 1);
    cr_assert(last_from.row == 6 && last_to.row == 2);
    cr_assert_eq(arrows->count, 0);
    note_kernel(arrows, 1 + 7);
    eddy_arrows_note(arrows, 1, 1 + 7);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 1);
    cr_assert_eq(arrows->lost, 0);
    free(arrows);
}

/* Each numbers its instructions from 1 on. */
Test(arrows, of_two_runtimes_do_not_mix) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    uint64_t second = UINT64_C(2) << 48;
    note_kernel(arrows, 1);
    note_kernel(arrows, 2);
    note_kernel(arrows, second + 1);
    note_kernel(arrows, second + 2);
    eddy_arrows_note(arrows, 1, 2);
    eddy_arrows_note(arrows, second + 1, second + 2);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 2);
    cr_assert_eq(last_from.key, second + 1);
    cr_assert_eq(last_to.key, second + 2);
    cr_assert_eq(arrows->lost, 0);
    free(arrows);
}
