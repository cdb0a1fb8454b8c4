#include "../calls.h"
#include <eddy/generator.h>
#include <interpreter/handle/generator.h>
#include <pthread.h>

typedef struct draw {
    uint64_t seed, counter;
} draw;

static draw draw_own(void) {
    draw d;
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    cr_assert_eq(eddy_runtime_of_caller(caller, (eddy_origin){"test", NULL}, &runtime), EDDY_OK);
    cr_assert_eq(eddy_generator_draw(caller, runtime, NULL, (eddy_origin){"test", NULL}, &d.seed,
                                     &d.counter),
                 EDDY_OK);
    return d;
}

Test(generator, is_seed_and_counter) {
    eddy_generator *g = eddy_generator_create(42);
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime = eddy_runtime_current();
    for (uint64_t i = 0; i < 3; i++) {
        draw d;
        cr_assert_eq(eddy_generator_draw(caller, runtime, g, (eddy_origin){"test", NULL}, &d.seed,
                                         &d.counter),
                     EDDY_OK);
        cr_assert(d.seed == 42 && d.counter == i);
    }
    uint64_t seed, counter;
    cr_assert_eq(eddy_generator_state(g, &seed, &counter), EDDY_OK);
    cr_assert(seed == 42 && counter == 3);
    cr_assert_eq(eddy_generator_restore(g, 7, 1), EDDY_OK);
    eddy_generator_state(g, &seed, &counter);
    cr_assert(seed == 7 && counter == 1);
    eddy_generator *same = eddy_generator_retain(g);
    eddy_generator_release(&g);
    cr_assert_null(g);
    eddy_generator_release(&same);
    eddy_generator_release(&same);
    cr_assert_eq(eddy_generator_state(NULL, &seed, &counter), EDDY_INVALID_ARGUMENT);
}

Test(generator, the_first_thread_has_the_runtimes_seed) {
    cr_assert_eq(eddy_seed(5), EDDY_OK);
    draw a = draw_own(), b = draw_own();
    cr_assert(a.seed == 5 && a.counter == 0 && b.counter == 1);
    eddy_seed(5);
    draw c = draw_own();
    cr_assert(c.seed == 5 && c.counter == 0, "seed restarts the counter");
}

static void *draw_on_thread(void *context) {
    *(draw *)context = draw_own();
    return NULL;
}

Test(generator, threads_differ_and_two_runs_agree) {
    draw runs[2][4];
    for (int run = 0; run < 2; run++) {
        eddy_seed(11);
        runs[run][0] = draw_own();
        for (int i = 1; i < 4; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, draw_on_thread, &runs[run][i]);
            pthread_join(thread, NULL);
        }
    }
    cr_assert_eq(memcmp(runs[0], runs[1], sizeof(runs[0])), 0);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            cr_assert_neq(runs[0][i].seed, runs[0][k].seed);
}

Test(generator, many_runtimes_do_not_pile_up) {
    for (int i = 0; i < 50; i++) {
        eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
        eddy_runtime_use(runtime);
        draw_own();
        eddy_runtime_use(NULL);
        eddy_runtime_release(&runtime);
    }
    cr_assert_leq(eddy_caller_get()->generator_count, 8);
}
