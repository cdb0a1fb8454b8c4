/* For tests of devices that lack memory: late calls, two devices that copy from each other, a generator. */
#ifndef EDDY_TESTS_SHORT_OF_MEMORY_H
#define EDDY_TESTS_SHORT_OF_MEMORY_H

#include "by_hand.h"
#include <tests/rounds.h>

static inline uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline eddy_storage_number make_late(vm_session *session, int64_t seed,
                                            eddy_storage_number input, int64_t cells) {
    eddy_vm_operand operands[2] = {{.storage = input},
                                   {.access = EDDY_ACCESS_MUT2,
                                    .is_new = true,
                                    .covers_all = true,
                                    .device = session->device}};
    synthetic_arguments arguments = {.seed = seed, .late_count = cells, .accesses = 1 << 2};
    cr_assert_eq(
        session_submit(session, &synthetic_late_op, operands, 2, &arguments, sizeof(arguments)),
        EDDY_OK);
    return operands[1].storage;
}

/* ---- far devices that copy from each other, and lend their queues as streams ---- */

typedef struct across {
    void *to;
    const void *from;
    int64_t bytes;
} across;

static inline void run_across(void *context) {
    const across *self = context;
    memcpy(self->to, self->from, (size_t)self->bytes);
}

static inline eddy_status copy_across(eddy_backend_queue *queue, void *to, eddy_backend *other,
                                      const void *from, int64_t bytes) {
    across all = {eddy_far_translate(queue->backend, to), eddy_far_translate(other, from), bytes};
    return eddy_far_launch(queue, run_across, &all, sizeof(all));
}

static inline void *lend_queue(eddy_backend_queue *queue) {
    return queue;
}

static inline eddy_status end_lend_of_queue(eddy_backend_queue *queue) {
    (void)queue;
    return EDDY_OK;
}

static eddy_backend_class across_class __attribute__((unused));

/* The session of a further device of the VM. */
static inline vm_session with_far(vm_session from, eddy_far_options options) {
    vm_session session = from;
    eddy_backend *far = eddy_far_create(&options);
    cr_assert_not_null(far);
    if (!across_class.name) {
        across_class = *far->class;
        across_class.copy_across = copy_across;
        across_class.lend_begin = lend_queue;
        across_class.lend_end = end_lend_of_queue;
    }
    far->class = &across_class;
    session_add(&session, far);
    return session;
}

#endif
