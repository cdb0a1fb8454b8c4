#include <base/thread.h>
#include <criterion/criterion.h>
#include <fenv.h>
#include <signal.h>
#include <string.h>

typedef struct report {
    char name[16];
    bool blocks_signals;
    bool rounds_to_nearest;
} report;

static void look_round(void *context) {
    report *seen = context;
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    seen->blocks_signals = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) &&
                           sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGALRM);
    seen->rounds_to_nearest = fegetround() == FE_TONEAREST;
}

Test(thread, threads_are_named_deaf_to_signals_and_round_to_nearest) {
    fesetround(FE_UPWARD);
    eddy_thread thread;
    report seen = {.name = ""};
    char name[] = "eddy-a-very-long-name";
    cr_assert_eq(eddy_thread_create(&thread, name, look_round, &seen), EDDY_OK);
    memset(name, 'x', sizeof(name) - 1);
    eddy_thread_join(&thread);
    cr_assert_eq(fegetround(), FE_UPWARD, "the creator's own environment stays");
    fesetround(FE_TONEAREST);
    cr_assert_str_eq(seen.name, "eddy-a-very-lon");
    cr_assert(seen.blocks_signals);
    cr_assert(seen.rounds_to_nearest);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    cr_assert_not(sigismember(&mask, SIGINT), "the creator's own mask stays");
}

Test(thread, creation_fails_on_demand) {
    eddy_thread thread;
    report seen;
    eddy_thread_fail_at(1, 1);
    cr_assert_eq(eddy_thread_create(&thread, "a", look_round, &seen), EDDY_OK);
    eddy_thread_join(&thread);
    cr_assert_eq(eddy_thread_create(&thread, "b", look_round, &seen), EDDY_INTERNAL);
    cr_assert_eq(eddy_thread_create(&thread, "c", look_round, &seen), EDDY_OK);
    eddy_thread_join(&thread);
    eddy_thread_fail_at(0, 1);
    eddy_thread_fail_at(0, 0);
    cr_assert_eq(eddy_thread_create(&thread, "d", look_round, &seen), EDDY_OK);
    eddy_thread_join(&thread);
}
