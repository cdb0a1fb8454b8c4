#include <base/status.h>
#include <criterion/criterion.h>
#include <eddy/call_sites.h>
#include <pthread.h>
#include <string.h>

Test(status, first_error_is_kept_and_the_rest_are_counted) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    int here;
    cr_assert_eq(eddy_fail(EDDY_SHAPE_MISMATCH, (eddy_origin){"add", &here}, "[%d] and [%d]", 2, 3),
                 EDDY_SHAPE_MISMATCH);
    cr_assert_eq(eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"mul", NULL}, "second"),
                 EDDY_OUT_OF_MEMORY);
    cr_assert_eq(eddy_fail(EDDY_IO, (eddy_origin){"read", NULL}, "third"), EDDY_IO);
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(error.status, EDDY_SHAPE_MISMATCH);
    cr_assert_str_eq(error.op, "add");
    cr_assert_str_eq(error.message, "add: [2] and [3]");
    cr_assert_eq(error.address, (const void *)&here);
    cr_assert_str_eq(error.place, "");
    cr_assert_eq(error.sequence, 0u);
    cr_assert_eq(error.more, 2u);
}

Test(status, taking_clears_the_slot) {
    eddy_fail(EDDY_IO, (eddy_origin){"read", NULL}, "once");
    eddy_error error;
    cr_assert_eq(eddy_error_take(NULL), EDDY_IO);
    cr_assert_eq(eddy_error_take(&error), EDDY_OK);
    cr_assert_eq(error.status, EDDY_OK);
    cr_assert_str_eq(error.message, "");
    cr_assert_str_eq(error.op, "");
    cr_assert_eq(error.more, 0u);
    eddy_fail(EDDY_TORN, (eddy_origin){"map", NULL}, "again");
    cr_assert_eq(eddy_error_take(&error), EDDY_TORN);
    cr_assert_eq(error.more, 0u);
}

Test(status, an_outcome_is_the_first_failure_of_its_own_calls) {
    eddy_outcome outer, inner, next;
    eddy_fail(EDDY_IO, (eddy_origin){"read", NULL}, "an older one, which nobody takes");
    eddy_outcome_begin(&outer);
    cr_assert_eq(outer.first, EDDY_OK);
    eddy_outcome_begin(&inner);
    eddy_fail(EDDY_SHAPE_MISMATCH, (eddy_origin){"add", NULL}, "first");
    eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){"mul", NULL}, "second");
    eddy_outcome_end(&inner);
    eddy_outcome_begin(&next);
    eddy_fail(EDDY_OUT_OF_RANGE, (eddy_origin){"gather", NULL}, "third");
    eddy_outcome_end(&next);
    eddy_outcome_end(&outer);
    eddy_fail(EDDY_TIMED_OUT, (eddy_origin){"wait", NULL}, "after them all");
    cr_assert_eq(eddy_outcome_why(&inner), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(eddy_outcome_why(&next), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_outcome_why(&outer), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(eddy_error_take(NULL), EDDY_IO);
}

Test(status, what_is_set_aside_is_nobodys_failure) {
    eddy_outcome outer, inside;
    eddy_outcome_begin(&outer);
    eddy_outcome *before = eddy_outcome_set_aside();
    eddy_fail(EDDY_IO, (eddy_origin){"read", NULL}, "in a callback");
    eddy_outcome_begin(&inside);
    eddy_fail(EDDY_NOT_FOUND, (eddy_origin){"load", NULL}, "there too");
    eddy_outcome_end(&inside);
    eddy_outcome_go_on(before);
    cr_assert_eq(outer.first, EDDY_OK);
    cr_assert_eq(eddy_outcome_why(&outer), EDDY_INVALID_ARGUMENT, "an operand was NULL");
    cr_assert_eq(inside.first, EDDY_NOT_FOUND);
    eddy_fail(EDDY_SHAPE_MISMATCH, (eddy_origin){"add", NULL}, "its own");
    eddy_outcome_end(&outer);
    cr_assert_eq(outer.first, EDDY_SHAPE_MISMATCH);
}

Test(status, long_texts_are_cut_and_end) {
    char name[200], text[2000];
    memset(name, 'n', sizeof(name));
    memset(text, 't', sizeof(text));
    name[sizeof(name) - 1] = text[sizeof(text) - 1] = '\0';
    eddy_fail(EDDY_INTERNAL, (eddy_origin){name, NULL}, "%s", text);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_eq(strlen(error.op), sizeof(error.op) - 1);
    cr_assert_eq(strlen(error.message), sizeof(error.message) - 1);
    eddy_fail(EDDY_INTERNAL, (eddy_origin){NULL, NULL}, "no op");
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "");
    cr_assert_str_eq(error.message, "no op");
}

Test(status, a_late_record_is_handed_over_whole) {
    eddy_error late, error;
    eddy_error_fill(&late, EDDY_KERNEL_FAILED, (eddy_origin){"gather", NULL}, 42, "index %d", 7);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK, "filling a record leaves the slot alone");
    cr_assert_eq(eddy_fail_record(&late), EDDY_KERNEL_FAILED);
    cr_assert_eq(eddy_fail_record(&late), EDDY_KERNEL_FAILED);
    cr_assert_eq(eddy_error_take(&error), EDDY_KERNEL_FAILED);
    cr_assert_eq(error.sequence, 42u);
    cr_assert_str_eq(error.op, "gather");
    cr_assert_str_eq(error.message, "index 7");
    cr_assert_eq(error.more, 1u);
}

static void *fail_elsewhere(void *result) {
    *(eddy_status *)result = eddy_error_take(NULL);
    eddy_fail(EDDY_FORKED, (eddy_origin){"other", NULL}, "of the other thread");
    return NULL;
}

Test(status, each_thread_has_its_own_slot) {
    eddy_fail(EDDY_TIMED_OUT, (eddy_origin){"wait", NULL}, "here");
    pthread_t thread;
    eddy_status seen = EDDY_INTERNAL;
    pthread_create(&thread, NULL, fail_elsewhere, &seen);
    pthread_join(thread, NULL);
    cr_assert_eq(seen, EDDY_OK);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_TIMED_OUT);
    cr_assert_eq(error.more, 0u);
}

static eddy_status failing_call(int argument) {
    return eddy_fail(EDDY_INVALID_ARGUMENT, (eddy_origin){"failing", NULL}, "%d", argument);
}

static int succeeding_call(int argument) {
    return argument;
}

Test(status, a_noted_place_belongs_to_its_own_call) {
    eddy_error error;
    failing_call(1);
    eddy_error_take(&error);
    cr_assert_str_eq(error.place, "", "nothing noted");

    EDDY_AT_CALL_SITE(failing_call(2));
    eddy_error_take(&error);
    char *base = strstr(error.place, "test_status.c:");
    cr_assert_not_null(base, "%s", error.place);

    /* The outer call's place is back after the inner one. */
    const char *outer = eddy_call_site_set("outer.c:1");
    cr_assert_null(outer);
    cr_assert_eq(EDDY_AT_CALL_SITE(succeeding_call(EDDY_AT_CALL_SITE(succeeding_call(5)))), 5);
    failing_call(3);
    eddy_error_take(&error);
    cr_assert_str_eq(error.place, "outer.c:1");
    failing_call(4);
    eddy_error_take(&error);
    cr_assert_str_eq(error.place, "", "a place is used once");
}

Test(status, every_status_has_a_name_and_a_text) {
#define EDDY_STATUS_ROW(name, value, text)                                                         \
    cr_assert_str_eq(eddy_status_name(EDDY_##name), "EDDY_" #name);                                \
    cr_assert_str_eq(eddy_status_text(EDDY_##name), text);                                         \
    cr_assert_eq((int)EDDY_##name, value);
    EDDY_STATUS_LIST(EDDY_STATUS_ROW)
#undef EDDY_STATUS_ROW
    cr_assert_str_eq(eddy_status_name((eddy_status)999), "?");
    cr_assert_not_null(eddy_status_text((eddy_status)999));
}
