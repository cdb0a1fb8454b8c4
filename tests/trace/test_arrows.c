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

static void note_kernel(eddy_arrows *arrows, uint64_t sequence) {
    eddy_arrow_end end = {sequence, (int64_t)sequence * 100, 50, (uint32_t)sequence % 7, 0};
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
    cr_assert(last_from.sequence == 1 && last_to.sequence == 2 && last_to.row == 2);
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
    eddy_arrow_end call = {1, 10, 5, 1, 0}, other = {2, 10, 5, 6, 0};
    note_kernel(arrows, 1);
    eddy_arrows_note_call(arrows, &call);
    eddy_arrows_note_call(arrows, &other);
    cr_assert_eq(arrows->count, 1);
    note_kernel(arrows, 2);
    call = (eddy_arrow_end){3, 10, 5, 3, 0};
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

/* What a device has done is in a row of its own. */
Test(arrows, what_a_device_has_done_finds_its_launch) {
    eddy_arrows *arrows = calloc(1, sizeof(*arrows));
    eddy_arrow_end done = {.sequence = 1, .at_ns = 300, .row = 1};
    eddy_arrows_note_done(arrows, &done);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 0);
    note_kernel(arrows, 1);
    eddy_arrows_draw(arrows, draw, NULL);
    cr_assert_eq(drawn, 1);
    cr_assert(last_from.at_ns == 300 && last_to.at_ns == 100);
    free(arrows);
}
