#include <criterion/criterion.h>
#include <vm/pace.h>

#define LIGHT_NS 1000

static const char a_vm, another_vm;

/* The program goes on at 0, and is back after so long; in between so much has finished and so many were issued. */
static void stretch(eddy_pace *pace, int64_t ns, int64_t finished_ns, uint64_t issued, bool waits) {
    eddy_pace_begin(pace, (eddy_pace_moment){&a_vm, 1000000, 500, 7000});
    eddy_pace_end(pace, (eddy_pace_moment){&a_vm, 1000000 + ns, 500 + issued, 7000 + finished_ns},
                  LIGHT_NS, waits);
}

Test(pace, what_the_program_does_itself_is_its_own) {
    eddy_pace pace = {0};
    for (int i = 0; i < 50; i++)
        stretch(&pace, 100000, 0, 1, false);
    cr_assert(pace.own_ns > 90000 && pace.own_ns <= 100000, "%lld", (long long)pace.own_ns);
    for (int i = 0; i < 50; i++)
        stretch(&pace, 300, 0, 1, false);
    cr_assert_lt(pace.own_ns, 100);
}

Test(pace, calls_in_between_are_not) {
    eddy_pace pace = {0};
    for (int i = 0; i < 50; i++)
        stretch(&pace, 100000, 60000, 10, false);
    cr_assert_eq(pace.own_ns, 0);
    for (int i = 0; i < 50; i++)
        stretch(&pace, 100000, 0, 101, false);
    cr_assert_eq(pace.own_ns, 0, "they may have run in passing");
}

Test(pace, it_ends_once_and_says_how) {
    eddy_pace pace = {0};
    stretch(&pace, 100000, 0, 1, true);
    cr_assert(pace.has_waited);
    int64_t own = pace.own_ns;
    /* After a wait no stretch is open: what comes until the next dear call is beside nothing. */
    eddy_pace_end(&pace, (eddy_pace_moment){&a_vm, 900000000, 600, 7000}, LIGHT_NS, false);
    cr_assert_eq(pace.own_ns, own);
    cr_assert(pace.has_waited);
    stretch(&pace, 100000, 0, 1, false);
    cr_assert_not(pace.has_waited);
}

Test(pace, another_vm_says_nothing) {
    eddy_pace pace = {0};
    eddy_pace_begin(&pace, (eddy_pace_moment){&a_vm, 1000000, 900, 7000});
    eddy_pace_end(&pace, (eddy_pace_moment){&another_vm, 2000000, 3, 10}, LIGHT_NS, false);
    cr_assert_eq(pace.own_ns, 0);
    /* One that was made at the same place. */
    eddy_pace_begin(&pace, (eddy_pace_moment){&a_vm, 3000000, 900, 7000});
    eddy_pace_end(&pace, (eddy_pace_moment){&a_vm, 4000000, 3, 10}, LIGHT_NS, false);
    cr_assert_eq(pace.own_ns, 0);
}
