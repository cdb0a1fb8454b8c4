#include <base/status.h>
#include <criterion/criterion.h>
#include <vm/errors.h>

static eddy_errors errors;

static void add(uint64_t sequence) {
    eddy_error error;
    eddy_error_fill(&error, EDDY_OUT_OF_RANGE, (eddy_origin){"op", NULL}, sequence, "failure %llu",
                    (unsigned long long)sequence);
    eddy_errors_add(&errors, &error);
}

static uint64_t unseen(void) {
    uint64_t count = errors.dropped_unseen;
    for (int i = 0; i < EDDY_ERRORS_MAX; i++)
        count += errors.records[i].sequence != 0 && !errors.is_seen[i];
    return count;
}

Test(errors, the_lowest_unseen_is_handed_out_with_the_count_of_the_rest) {
    add(7);
    add(3);
    add(9);
    eddy_error error;
    cr_assert(eddy_errors_take_unseen(&errors, &error));
    cr_assert_eq(error.sequence, 3);
    cr_assert_eq(error.more, 2);
    cr_assert_str_eq(error.message, "failure 3");
    cr_assert_eq(errors.made, 3);
    cr_assert_eq(errors.seen, 3);
    cr_assert_not(eddy_errors_take_unseen(&errors, &error));
}

Test(errors, finding_a_record_counts_it_as_seen_once) {
    add(5);
    cr_assert_not(eddy_errors_is_seen(&errors, 5));
    eddy_error error;
    for (int i = 0; i < 3; i++) {
        eddy_errors_find(&errors, 5, &error);
        cr_assert_str_eq(error.message, "failure 5");
    }
    cr_assert(eddy_errors_is_seen(&errors, 5));
    cr_assert_eq(errors.seen, 1);
    cr_assert_not(eddy_errors_take_unseen(&errors, &error));
}

Test(errors, made_is_seen_plus_unseen_also_when_the_pool_overflows) {
    for (uint64_t n = 1; n <= 3 * EDDY_ERRORS_MAX; n++) {
        add(n);
        cr_assert_eq(errors.made, errors.seen + unseen());
    }
    cr_assert_eq(errors.dropped_unseen, 2 * EDDY_ERRORS_MAX);
    eddy_error error;
    cr_assert(eddy_errors_take_unseen(&errors, &error));
    cr_assert_eq(error.sequence, 1);
    cr_assert_eq(error.more, 3 * EDDY_ERRORS_MAX - 1);
    cr_assert_eq(errors.made, errors.seen);
}

Test(errors, seen_records_make_room_for_new_ones) {
    for (uint64_t n = 1; n <= EDDY_ERRORS_MAX; n++)
        add(n);
    eddy_error error;
    eddy_errors_find(&errors, 40, &error);
    add(1000);
    eddy_errors_find(&errors, 1000, &error);
    cr_assert_str_eq(error.message, "failure 1000");
    eddy_errors_find(&errors, 40, &error);
    cr_assert_eq(error.status, EDDY_KERNEL_FAILED);
    cr_assert_eq(error.sequence, 40);
    cr_assert(eddy_errors_is_seen(&errors, 40), "it was");
    cr_assert_eq(errors.made, errors.seen + unseen());
}

/* Whoever asks at once is told, however many others nobody has asked for; and a sync hands out the first of all. */
Test(errors, the_newest_and_the_first_are_kept_when_the_pool_overflows) {
    eddy_error error;
    for (uint64_t n = 1; n <= 3 * EDDY_ERRORS_MAX; n++)
        add(n);
    for (uint64_t n = 2 * EDDY_ERRORS_MAX + 2; n <= 3 * EDDY_ERRORS_MAX; n++) {
        eddy_errors_find(&errors, n, &error);
        cr_assert_eq(error.status, EDDY_OUT_OF_RANGE, "%d", (int)n);
    }
    cr_assert(eddy_errors_take_unseen(&errors, &error));
    cr_assert_eq(error.sequence, 1);
}

/* 128 unseen fill the pool, one more takes the place of the second; readers then see the others: that one is still reported. */
Test(errors, one_that_was_only_counted_is_reported_all_the_same) {
    for (uint64_t n = 1; n <= EDDY_ERRORS_MAX + 1; n++)
        add(n);
    eddy_error error;
    for (uint64_t n = 1; n <= EDDY_ERRORS_MAX + 1; n++)
        eddy_errors_find(&errors, n, &error);
    cr_assert_eq(unseen(), 1);
    cr_assert(eddy_errors_take_unseen(&errors, &error));
    cr_assert_neq(error.status, EDDY_OK);
    cr_assert_eq(error.more, 0);
    cr_assert_eq(errors.made, errors.seen);
    cr_assert_not(eddy_errors_take_unseen(&errors, &error));
}

/* What the program brings about itself may be much, and must not make failures forgotten. */
Test(errors, what_the_program_knows_of_takes_no_record_of_a_failure) {
    add(1);
    eddy_error error;
    eddy_errors_find(&errors, 1, &error);
    for (uint64_t n = 2; n <= 1 + 2 * EDDY_ERRORS_KNOWN_MAX; n++) {
        eddy_error_fill(&error, EDDY_INVALID_ARGUMENT, (eddy_origin){"op", NULL}, n, "known %llu",
                        (unsigned long long)n);
        eddy_errors_add_known(&errors, &error);
    }
    cr_assert_eq(errors.made, errors.seen);
    cr_assert_not(eddy_errors_take_unseen(&errors, &error));
    eddy_errors_find(&errors, 1, &error);
    cr_assert_str_eq(error.message, "failure 1");
    uint64_t oldest = 2 + EDDY_ERRORS_KNOWN_MAX;
    cr_assert(eddy_errors_has(&errors, oldest));
    cr_assert_not(eddy_errors_has(&errors, oldest - 1));
    eddy_errors_find(&errors, oldest, &error);
    cr_assert_eq(error.status, EDDY_INVALID_ARGUMENT);
    cr_assert_eq(errors.made, errors.seen);
}
