/* Operands that a call gives up. */
#include "session.h"
#include <base/status.h>

/* ---- the call ---- */

static void gone(const eddy_vm_instruction *instruction, int64_t operand, eddy_error *error) {
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, (eddy_origin){"give_up", NULL},
                    instruction->sequence - 1 - (uint64_t)operand, "operand %lld was given up",
                    (long long)operand);
}

static const eddy_vm_descriptor give_up_op = {.run = synthetic_run,
                                              .name = synthetic_name,
                                              .describe = synthetic_describe,
                                              .explain = synthetic_explain,
                                              .end = synthetic_end,
                                              .gone = gone};

#define OPERANDS 8

typedef struct giving {
    int64_t seed;
    bool fails;
    eddy_storage_number input; /* 0: none */
    eddy_storage_number given; /* written in place before it is gone */
    eddy_storage_number bare;  /* not touched; 0: none */
    int64_t bytes;             /* of the result */
} giving;

/* Operand 0 is the result, 1 the input, then what is given up. */
static eddy_storage_number give(vm_session *session, const giving *g) {
    eddy_vm_operand operands[OPERANDS] = {{.access = EDDY_ACCESS_MUT,
                                           .is_new = true,
                                           .covers_all = true,
                                           .bytes = g->bytes ? g->bytes : CELLS * 8}};
    synthetic_arguments arguments = {.seed = g->seed, .fails = g->fails, .accesses = 1};
    int64_t count = 1;
    if (g->input)
        operands[count++] = (eddy_vm_operand){.storage = g->input};
    if (g->given) {
        arguments.accesses |= INT64_C(2) << 2 * count;
        operands[count++] =
            (eddy_vm_operand){.storage = g->given, .access = EDDY_ACCESS_MUT, .is_given_up = true};
    }
    if (g->bare) {
        arguments.accesses |= INT64_C(3) << 2 * count;
        operands[count++] = (eddy_vm_operand){
            .storage = g->bare, .access = EDDY_ACCESS_MUT, .covers_all = true, .is_given_up = true};
    }
    eddy_vm_call call = {
        .instruction = {.descriptor = &give_up_op, .arguments = &arguments, .operand_count = count},
        .argument_bytes = sizeof(arguments),
        .operands = operands,
        .stream = session->stream,
        .cost_ps = session->cost_ps,
        .part_count = OPERANDS};
    cr_assert_eq(synthetic_submit(session->vm, &call), EDDY_OK);
    return operands[0].storage;
}

/* Too large for the caches, so that counters see it come and go. */
#define BIG (1 << 20)

static eddy_storage_number make_big(vm_session *session, int64_t seed) {
    return give(session, &(giving){.seed = seed, .bytes = BIG});
}

static bool holds_big(vm_session *session) {
    return session_settled_counters(session).bytes_live >= BIG;
}

static void assert_gone(vm_session *session, eddy_storage_number storage, int64_t operand) {
    char text[64];
    snprintf(text, sizeof(text), "operand %lld was given up", (long long)operand);
    cr_assert_eq(eddy_vm_wait_storage(session->vm, storage, &forever), EDDY_INVALID_ARGUMENT);
    eddy_error error = taken_error();
    cr_assert_str_eq(error.message, text);
}

/* ---- tests ---- */

Test(give_up, what_was_given_up_is_an_error_to_who_reads_it_and_to_what_is_made_of_it) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
        eddy_storage_number made = give(&session, &(giving){.seed = 3, .given = a, .bare = b});
        eddy_storage_number of_a = session_make_from(&session, 4, 1, &a);
        cr_assert_eq(session_read(&session, made), value_of(3, 0));
        assert_gone(&session, a, 1);
        assert_gone(&session, b, 2);
        assert_gone(&session, of_a, 1);
        session_settle(&session);
        eddy_vm_counters counters = eddy_vm_counters_read(session.vm);
        cr_assert_eq(counters.errors_made, 2, "one for each storage");
        cr_assert_eq(counters.errors_seen, 2, "which nobody has to be told");
        session_release(&session, a);
        session_release(&session, b);
        session_release(&session, of_a);
        session_release(&session, made);
    }
}

Test(give_up, its_memory_goes_back_and_a_write_of_all_of_it_takes_it_anew) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = make_big(&session, 1);
        cr_assert(holds_big(&session));
        eddy_storage_number made = give(&session, &(giving){.seed = 3, .given = a});
        cr_assert_not(holds_big(&session));
        session_mix_in(&session, a, 5, 0, NULL);
        assert_gone(&session, a, 1);
        session_overwrite(&session, a, 2);
        cr_assert_eq(session_read(&session, a), value_of(2, 0));
        cr_assert(holds_big(&session));
        session_release(&session, a);
        session_release(&session, made);
    }
}

Test(give_up, whatever_became_of_the_call) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7);
        eddy_storage_number a[3] = {make_big(&session, 1), make_big(&session, 2),
                                    make_big(&session, 3)};
        eddy_storage_number made[3] = {
            give(&session, &(giving){.seed = 4, .input = bad, .given = a[0]}),
            give(&session, &(giving){.seed = 5, .fails = true, .given = a[1]}),
            give(&session, &(giving){.seed = 6, .bytes = INT64_MAX / 4, .given = a[2]})};
        assert_gone(&session, a[0], 2);
        assert_gone(&session, a[1], 1);
        assert_gone(&session, a[2], 1);
        cr_assert_eq(eddy_vm_wait_storage(session.vm, made[0], &forever), EDDY_OUT_OF_RANGE);
        cr_assert_not_null(strstr(taken_error().message, "seed 7"));
        cr_assert_eq(eddy_vm_wait_storage(session.vm, made[1], &forever), EDDY_OUT_OF_RANGE);
        cr_assert_not_null(strstr(taken_error().message, "seed 5"));
        cr_assert_eq(eddy_vm_wait_storage(session.vm, made[2], &forever), EDDY_OUT_OF_MEMORY);
        taken_error();
        cr_assert_not(holds_big(&session));
        session_release(&session, bad);
        for (int i = 0; i < 3; i++) {
            session_release(&session, a[i]);
            session_release(&session, made[i]);
        }
    }
}

Test(give_up, what_is_bare_is_not_looked_at) {
    ON_EACH_PATH(session) {
        eddy_storage_number bad = session_make_failing(&session, 7);
        eddy_storage_number made = give(&session, &(giving){.seed = 4, .bare = bad});
        cr_assert_eq(session_read(&session, made), value_of(4, 0), "no error of the call's");
        assert_gone(&session, bad, 1);
        eddy_storage_number big = make_big(&session, 1);
        session_release(&session, give(&session, &(giving){.seed = 2, .bare = big}));
        eddy_storage_number again = give(&session, &(giving){.seed = 5, .bare = big});
        cr_assert_eq(session_read(&session, again), value_of(5, 0));
        cr_assert_not(holds_big(&session), "it takes no memory to be given up");
        session_release(&session, big);
        session_release(&session, bad);
        session_release(&session, made);
        session_release(&session, again);
    }
}

Test(give_up, what_is_bare_makes_room_for_what_the_call_makes) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_one_thread = true});
    eddy_memory_limit_set(4 * BIG);
    eddy_storage_number big = give(&session, &(giving){.seed = 1, .bytes = 3 * BIG});
    eddy_storage_number next = give(&session, &(giving){.seed = 2, .bytes = 3 * BIG, .bare = big});
    cr_assert_eq(eddy_vm_wait_storage(session.vm, next, &forever), EDDY_OK);
    assert_gone(&session, big, 1);
    eddy_memory_limit_set(0);
    session_release(&session, big);
    session_release(&session, next);
    session_close(&session);
}

Test(give_up, a_storage_may_be_read_and_given_up_by_one_call) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make(&session, 1);
        eddy_storage_number made = give(&session, &(giving){.seed = 4, .input = a, .bare = a});
        cr_assert_eq(session_read(&session, made), value_from(4, value_of(1, 0)));
        assert_gone(&session, a, 2);
        session_release(&session, a);
        session_release(&session, made);
    }
}

Test(give_up, it_waits_for_reads_and_lends_that_came_before) {
    vm_session session = session_open_threads(2);
    session.cost_ps = 1000000000;
    vm_latch latch = {0};
    eddy_storage_number a = session_make(&session, 1), b = session_make(&session, 2);
    eddy_storage_number read = session_latch(&session, &latch, 1, &a);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, b, false, &forever, &data, &lend), EDDY_OK);
    eddy_storage_number made = give(&session, &(giving){.seed = 4, .given = a, .bare = b});
    const eddy_vm_wait now = {0, test_origin};
    cr_assert_eq(eddy_vm_wait_storage(session.vm, made, &now), EDDY_TIMED_OUT);
    taken_error();
    latch_open(&latch);
    cr_assert_eq(eddy_vm_wait_storage(session.vm, read, &forever), EDDY_OK);
    cr_assert_eq(((const int64_t *)data)[0], value_of(2, 0), "as long as it is lent");
    eddy_vm_lend_end(session.vm, lend, false);
    cr_assert_eq(session_read(&session, made), value_of(4, 0));
    assert_gone(&session, a, 1);
    assert_gone(&session, b, 2);
    session_release(&session, a);
    session_release(&session, b);
    session_release(&session, read);
    session_release(&session, made);
    session_close(&session);
}

Test(give_up, memory_that_a_lender_has_handed_on_stays) {
    ON_EACH_PATH(session) {
        eddy_storage_number a = session_make(&session, 1);
        void *data;
        eddy_vm_lend *lend;
        cr_assert_eq(eddy_vm_lend_begin(session.vm, a, false, &forever, &data, &lend), EDDY_OK);
        eddy_vm_lend_keep(session.vm, lend);
        eddy_vm_lend_end(session.vm, lend, false);
        eddy_storage_number made = give(&session, &(giving){.seed = 4, .bare = a});
        assert_gone(&session, a, 1);
        eddy_storage_number other = session_make(&session, 5);
        cr_assert_eq(session_read(&session, other), value_of(5, 0));
        cr_assert_eq(((const int64_t *)data)[0], value_of(1, 0), "and nobody else has it");
        session_release(&session, a);
        session_release(&session, made);
        session_release(&session, other);
        /* Its number names another storage, whose memory nobody has handed on. */
        session_settle(&session);
        for (int i = 0; i < 4; i++) {
            eddy_storage_number next = make_big(&session, 6);
            session_release(&session, give(&session, &(giving){.seed = 7, .bare = next}));
            cr_assert_not(holds_big(&session));
            session_release(&session, next);
        }
    }
}
