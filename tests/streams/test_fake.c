#include "conformance.h"
#include <streams/fake.h>

static eddy_work_queue *create_ordered(void) {
    return eddy_fake_queue_create(true);
}

static eddy_work_queue *create_unordered(void) {
    return eddy_fake_queue_create(false);
}

static void pump(eddy_work_queue *stream, const eddy_sleep_word *finished, uint32_t goal) {
    uint64_t choice = 1;
    while (eddy_load_acquire((eddy_sleep_word *)(uintptr_t)finished) < goal) {
        choice = choice * 6364136223846793005u + 1;
        cr_assert(eddy_fake_queue_step(stream, choice >> 33, NULL, NULL));
    }
}

static const conformance_kind ordered = {
    .is_ordered = true, .create = create_ordered, .pump = pump};
static const conformance_kind unordered = {
    .is_ordered = false, .create = create_unordered, .pump = pump};

CONFORMANCE_SUITE(fake_ordered, ordered)
CONFORMANCE_SUITE(fake_unordered, unordered)

static conformance_run begin(bool is_ordered) {
    return conformance_begin(is_ordered ? &ordered : &unordered);
}

Test(fake, it_holds_what_it_is_given) {
    conformance_run run = begin(false);
    conformance_work works[3];
    cr_assert_not(eddy_fake_queue_step(run.stream, 0, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        conformance_dispatch(&run, &works[i], i);
        cr_assert_eq(eddy_fake_queue_held(run.stream), i + 1);
    }
    cr_assert_eq(works[0].times_run, 0);
    conformance_await(&run, &unordered, 3);
    cr_assert_eq(eddy_fake_queue_held(run.stream), 0);
    conformance_end(&run);
}

Test(fake, the_choice_decides_the_order_of_an_unordered_one_only) {
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        conformance_run run = begin(is_ordered);
        conformance_work works[5];
        for (int i = 0; i < 5; i++)
            conformance_dispatch(&run, &works[i], i);
        static const uint64_t choices[5] = {4, 1, 7, 1,
                                            0}; /* of 5, 4, 3, 2, 1: works 4, 1, 2, 3, 0 */
        static const int expected[5] = {4, 1, 2, 3, 0};
        for (uint32_t i = 0; i < 5; i++) {
            cr_assert(eddy_fake_queue_step(run.stream, choices[i], NULL, NULL));
            cr_assert_eq(works[is_ordered ? (int)i : expected[i]].position, i, "step %u", i);
        }
        conformance_end(&run);
    }
}

static eddy_status fail_odd(void *context, const eddy_work *work) {
    ++*(int *)context;
    return ((const conformance_work *)(const void *)work)->number % 2 ? EDDY_DEVICE_LOST : EDDY_OK;
}

Test(fake, it_fails_what_the_test_decides) {
    conformance_run run = begin(true);
    conformance_work works[4];
    int asked = 0;
    for (int i = 0; i < 4; i++)
        conformance_dispatch(&run, &works[i], i);
    for (int i = 0; i < 4; i++)
        cr_assert(eddy_fake_queue_step(run.stream, 0, fail_odd, &asked));
    cr_assert_eq(asked, 4);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(works[i].failure, i % 2 ? EDDY_DEVICE_LOST : EDDY_OK);
    conformance_end(&run);
}
