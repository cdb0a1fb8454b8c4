#include <base/name_table.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(name_table, a_name_keeps_its_number_and_a_number_its_name) {
    static const char add[] = "add", mul[] = "mul";
    uint32_t first = eddy_name_number(add), second = eddy_name_number(mul);
    cr_assert(first > 0 && first < EDDY_NAMES_MOST && second > 0 && first != second);
    cr_assert_eq(eddy_name_number(add), first);
    cr_assert_str_eq(eddy_name_text(first), "add");
    cr_assert_str_eq(eddy_name_text(0), "");
}

/* An op may be gone, and another one lie where it was. */
Test(name_table, another_name_at_the_same_place_has_none) {
    char name[EDDY_NAME_BYTES] = "add";
    uint32_t number = eddy_name_number(name);
    cr_assert_gt(number, 0);
    strcpy(name, "mul");
    cr_assert_eq(eddy_name_number(name), 0);
    cr_assert_str_eq(eddy_name_text(number), "add");
    strcpy(name, "add");
    cr_assert_eq(eddy_name_number(name), number);
}

Test(name_table, a_name_that_is_too_long_has_none) {
    char longest[EDDY_NAME_BYTES], longer[EDDY_NAME_BYTES + 1];
    memset(longest, 'a', sizeof(longest) - 1);
    memset(longer, 'b', sizeof(longer) - 1);
    longest[sizeof(longest) - 1] = longer[sizeof(longer) - 1] = '\0';
    cr_assert_gt(eddy_name_number(longest), 0);
    cr_assert_eq(eddy_name_number(longer), 0);
}

#define THREADS 4
#define NAMES 3000

static char names[NAMES][8];

static void *ask_for_all(void *context) {
    uint32_t *numbers = context;
    for (int i = 0; i < NAMES; i++)
        numbers[i] = eddy_name_number(names[i]);
    return NULL;
}

/* More than there is room for: what has a number has the same one on each thread, and nothing else has it. */
Test(name_table, threads_agree_until_it_is_full) {
    static uint32_t numbers[THREADS][NAMES], owners[EDDY_NAMES_MOST];
    pthread_t threads[THREADS];
    int with = 0;
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof(names[i]), "op%d", i);
    for (int t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, ask_for_all, numbers[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < NAMES; i++) {
        uint32_t number = eddy_name_number(names[i]);
        for (int t = 0; t < THREADS; t++)
            cr_assert_eq(numbers[t][i], number);
        if (number == 0)
            continue;
        with++;
        cr_assert_eq(owners[number]++, 0);
        cr_assert_str_eq(eddy_name_text(number), names[i]);
    }
    cr_assert(with > 500 && with < (int)EDDY_NAMES_MOST, "%d", with);
}
