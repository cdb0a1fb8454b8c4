/* Short texts that stay for good (base/kept_text.h). */
#include <base/kept_text.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(kept_text, one_text_is_kept_once) {
    char text[] = "compute";
    const char *kept = eddy_kept_text(text);
    cr_assert_str_eq(kept, "compute");
    text[0] = 'C';
    cr_assert_str_eq(kept, "compute");
    cr_assert_neq(eddy_kept_text(text), kept);
    cr_assert_eq(eddy_kept_text("compute"), kept);
}

Test(kept_text, long_ones_are_cut_between_two_characters) {
    char text[200];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    cr_assert_eq(strlen(eddy_kept_text(text)), EDDY_KEPT_TEXT_BYTES - 1);
    /* A character of three bytes over the end, at each place. */
    for (size_t at = EDDY_KEPT_TEXT_BYTES - 4; at < EDDY_KEPT_TEXT_BYTES; at++) {
        memset(text, 'a', sizeof(text));
        memcpy(text + at, "\xe6\x97\xa5", 3);
        text[sizeof(text) - 1] = '\0';
        size_t expected = at + 3 <= EDDY_KEPT_TEXT_BYTES - 1 ? EDDY_KEPT_TEXT_BYTES - 1 : at;
        cr_assert_eq(strlen(eddy_kept_text(text)), expected, "%zu", at);
    }
}

Test(kept_text, there_is_room_for_so_many) {
    char text[32];
    for (int i = 0; i < EDDY_KEPT_TEXTS_MOST; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        cr_assert_not_null(eddy_kept_text(text));
    }
    cr_assert_null(eddy_kept_text("one more"));
    cr_assert_str_eq(eddy_kept_text("text 7"), "text 7");
}
