#include "session.h"

/* Edges are counted with the first instruction of each test held at a latch on a worker, or on a fake stream: what comes
 * after is linked while it runs. The full path, so that nothing runs on the caller. */

static vm_session open_linking(void) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 3, .uses_worker_path = true});
    session.cost_ps = COST_WORKER;
    return session;
}

typedef struct edge_count {
    uint64_t made, skipped;
} edge_count;

/* Edges of what was taken; waits until `submitted` instructions have nodes. */
static edge_count edges_after(vm_session *session, uint64_t nodes) {
    eddy_vm_counters counters;
    do {
        sched_yield();
        counters = eddy_vm_counters_read(session->vm);
    } while (counters.nodes_made < nodes);
    return (edge_count){counters.edges_made, counters.edges_skipped};
}

static void assert_edges(vm_session *session, uint64_t nodes, uint64_t made, uint64_t skipped) {
    edge_count found = edges_after(session, nodes);
    cr_assert_eq(found.made, made, "%llu edges made, not %llu", (unsigned long long)found.made,
                 (unsigned long long)made);
    cr_assert_eq(found.skipped, skipped, "%llu edges skipped, not %llu",
                 (unsigned long long)found.skipped, (unsigned long long)skipped);
}

Test(graph, read_after_write_makes_one_edge) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    eddy_storage_number b = session_make_from(&session, 1, 1, &a);
    assert_edges(&session, 2, 1, 0);
    latch_open(&latch);
    session_settle(&session);
    session_release(&session, a);
    session_release(&session, b);
    session_close(&session);
}

Test(graph, readers_make_no_edges_among_themselves) {
    vm_session session = open_linking();
    eddy_storage_number a = session_make(&session, 1);
    session_settle(&session);
    eddy_vm_counters before = eddy_vm_counters_read(session.vm);
    vm_latch latch = {0};
    eddy_storage_number readers[10];
    for (int i = 0; i < 10; i++)
        readers[i] =
            i == 0 ? session_latch(&session, &latch, 1, &a) : session_make_from(&session, i, 1, &a);
    assert_edges(&session, before.nodes_made + 10, before.edges_made, before.edges_skipped);
    for (int i = 1; i < 10; i++)
        cr_assert_eq(session_read(&session, readers[i]), value_from(i, value_of(1, 0)),
                     "beside the one at the latch");
    latch_open(&latch);
    for (int i = 0; i < 10; i++)
        session_release(&session, readers[i]);
    session_release(&session, a);
    session_close(&session);
}

/* A write takes an edge from each reader since the last write, and none from that write: the readers have it. */
Test(graph, write_after_read_makes_an_edge_per_reader) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    eddy_storage_number readers[5];
    for (int i = 0; i < 5; i++)
        readers[i] = session_make_from(&session, i, 1, &a);
    assert_edges(&session, 6, 5, 0);
    session_overwrite(&session, a, 9);
    /* One from the writer, which still runs, and five from the readers. */
    assert_edges(&session, 7, 5 + 6, 0);
    eddy_storage_number after = session_make_from(&session, 10, 1, &a);
    assert_edges(&session, 8, 5 + 6 + 1, 0);
    latch_open(&latch);
    cr_assert_eq(session_read(&session, after), value_from(10, value_of(9, 0)));
    for (int i = 0; i < 5; i++)
        session_release(&session, readers[i]);
    session_release(&session, a);
    session_release(&session, after);
    session_close(&session);
}

Test(graph, write_after_write_makes_one_edge) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    for (int i = 0; i < 4; i++) {
        session_overwrite(&session, a, i);
        assert_edges(&session, (uint64_t)i + 2, (uint64_t)i + 1, 0);
    }
    latch_open(&latch);
    cr_assert_eq(session_read(&session, a), value_of(3, 0));
    session_release(&session, a);
    session_close(&session);
}

Test(graph, reading_and_writing_the_same_storage_waits_for_the_others_and_not_for_itself) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    eddy_storage_number twice[2] = {a, a};
    session_mix_in(&session, a, 1, 2, twice);
    assert_edges(&session, 2, 1, 0);
    session_mix_in(&session, a, 2, 2, twice);
    assert_edges(&session, 3, 2, 0);
    latch_open(&latch);
    session_settle(&session);
    session_release(&session, a);
    session_close(&session);
}

Test(graph, one_ordered_stream_needs_no_edges_once_dispatched) {
    vm_session session = open_linking();
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    for (int i = 0; i < 6; i++) {
        /* The earlier one is to be in the queue when the next is linked. */
        while (eddy_fake_queue_held(session.fake) < i + 1)
            sched_yield();
        session_mix_in(&session, a, i, 0, NULL);
    }
    assert_edges(&session, 7, 0, 6);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 7; i++) {
        session_step(&session);
        if (i > 0)
            expected = synthetic_mix(expected, i - 1);
    }
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    session_close(&session);
}

/* A chain on one ordered stream behind work of another stream: all of it is in the queue as soon as the first may run. */
Test(graph, successors_on_the_stream_are_dispatched_before_their_predecessors_end) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number root = session_latch(&session, &latch, 0, NULL);
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number chain[8];
    for (int i = 0; i < 8; i++)
        chain[i] = session_make_from(&session, i, 1, i == 0 ? &root : &chain[i - 1]);
    edges_after(&session, 9);
    cr_assert_eq(eddy_fake_queue_held(session.fake), 0, "the first waits for the other stream");
    latch_open(&latch);
    while (eddy_fake_queue_held(session.fake) < 8)
        sched_yield();
    for (int i = 0; i < 8; i++)
        session_step(&session);
    int64_t root_value = session_read(&session, root), expected = root_value;
    for (int i = 0; i < 8; i++)
        expected = value_from(i, expected);
    cr_assert_eq(session_read(&session, chain[7]), expected);
    session_release(&session, root);
    for (int i = 0; i < 8; i++)
        session_release(&session, chain[i]);
    session_close(&session);
}

/* Linked while none of them was dispatched: a read, and the write that follows it. */
Test(graph, a_write_is_dispatched_before_the_read_ahead_of_it_ends) {
    vm_session session = open_linking();
    session_hold(&session, true);
    vm_latch latch = {0};
    eddy_storage_number a = session_make(&session, 1),
                        elsewhere = session_latch(&session, &latch, 0, NULL);
    session.stream = session.held;
    eddy_storage_number first = session_make_from(&session, 2, 1, &elsewhere);
    eddy_storage_number reader = session_make_from(&session, 3, 1, &a);
    session_mix_in(&session, a, 4, 0, NULL);
    edges_after(&session, eddy_vm_counters_read(session.vm).submitted);
    latch_open(&latch);
    while (eddy_fake_queue_held(session.fake) < 3)
        sched_yield();
    for (int i = 0; i < 3; i++)
        session_step(&session);
    cr_assert_eq(session_read(&session, reader), value_from(3, value_of(1, 0)));
    cr_assert_eq(session_read(&session, a), synthetic_mix(value_of(1, 0), 4));
    eddy_storage_number all[] = {a, elsewhere, first, reader};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

Test(graph, an_unordered_stream_lets_independent_instructions_overtake) {
    vm_session session = open_linking();
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number made[5];
    for (int i = 0; i < 5; i++)
        made[i] = session_make(&session, i);
    while (eddy_fake_queue_held(session.fake) < 5)
        sched_yield();
    /* Newest first. */
    for (int i = 4; i >= 0; i--) {
        cr_assert_not(eddy_vm_is_ready(session.vm, made[i]));
        cr_assert(eddy_fake_queue_step(session.fake, (uint64_t)i, NULL, NULL));
        cr_assert_eq(session_read(&session, made[i]), value_of(i, 0));
        session_release(&session, made[i]);
    }
    session_close(&session);
}

/* The third read costs what the first did: edges per read do not grow with the readers that wait already. */
Test(graph, a_read_costs_the_same_however_many_readers_wait) {
    vm_session session = open_linking();
    vm_latch latch = {0};
    eddy_storage_number a = session_latch(&session, &latch, 0, NULL);
    enum { READERS = 3000 };
    static eddy_storage_number readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = session_make_from(&session, i, 1, &a);
    assert_edges(&session, READERS + 1, READERS, 0);
    session_overwrite(&session, a, 1);
    assert_edges(&session, READERS + 2, 2 * READERS + 1, 0);
    latch_open(&latch);
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    for (int i = 0; i < READERS; i++)
        session_release(&session, readers[i]);
    session_release(&session, a);
    session_close(&session);
}

static void fold_run(const eddy_vm_run *run) {
    int64_t sum = 0;
    for (int64_t i = 0; i + 1 < run->instruction->operand_count; i++)
        sum += ((const int64_t *)run->data[i])[0];
    *(int64_t *)run->data[run->instruction->operand_count - 1] = sum;
}

static const eddy_vm_descriptor fold_op = {.run = fold_run, .name = synthetic_name};

static void scatter_run(const eddy_vm_run *run) {
    for (int64_t i = 0; i < run->instruction->operand_count; i++)
        *(int64_t *)run->data[i] = i;
}

static const eddy_vm_descriptor scatter_op = {.run = scatter_run, .name = synthetic_name};

/* On each path: 10^5 new outputs in one instruction, then 10^5 inputs in one. */
static void run_wide(eddy_runtime_options options) {
    enum { WIDE = 100000 };
    static eddy_vm_operand operands[WIDE + 1];
    vm_session session = session_open(options);
    for (int i = 0; i < WIDE; i++)
        operands[i] = (eddy_vm_operand){
            .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    cr_assert_eq(session_submit(&session, &scatter_op, operands, WIDE, NULL, 0), EDDY_OK);
    for (int i = 0; i < WIDE; i++)
        operands[i] = (eddy_vm_operand){.storage = operands[i].storage};
    operands[WIDE] = (eddy_vm_operand){
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = 8};
    cr_assert_eq(session_submit(&session, &fold_op, operands, WIDE + 1, NULL, 0), EDDY_OK);
    cr_assert_eq(session_read(&session, operands[WIDE].storage), (int64_t)WIDE * (WIDE - 1) / 2);
    cr_assert_eq(session_read(&session, operands[77777].storage), 77777);
    for (int i = 0; i <= WIDE; i++)
        session_release(&session, operands[i].storage);
    session_close(&session);
}

Test(graph, an_instruction_may_have_a_hundred_thousand_operands) {
    run_wide((eddy_runtime_options){.threads = 2});
    run_wide((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    run_wide((eddy_runtime_options){.uses_one_thread = true});
}

Test(graph, long_arguments_arrive_whole) {
    vm_session session = open_linking();
    /* Beyond what a record takes. */
    struct {
        synthetic_arguments arguments;
        char rest[4000];
    } lengthy = {.arguments = {.seed = 5, .accesses = 1}};
    eddy_vm_operand operand = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .covers_all = true, .bytes = CELLS * 8};
    cr_assert_eq(session_submit(&session, &synthetic_op, &operand, 1, &lengthy, sizeof(lengthy)),
                 EDDY_OK);
    cr_assert_eq(session_read(&session, operand.storage), value_of(5, 0));
    session_release(&session, operand.storage);
    session_close(&session);
}

/* Everything at once: a diamond of streams, whose result depends on every edge being there. */
Test(graph, a_chain_through_three_streams_keeps_its_order) {
    vm_session session = open_linking();
    session_hold(&session, true);
    eddy_vm_stream *ordered;
    cr_assert_eq(eddy_vm_stream_create(session.vm, true, 0, NULL, &ordered), EDDY_OK);
    eddy_vm_stream *streams[3] = {NULL, session.held, ordered};
    eddy_storage_number a = session_make(&session, 1);
    int64_t expected = value_of(1, 0);
    for (int i = 0; i < 30; i++) {
        session.stream = streams[i % 3];
        session_mix_in(&session, a, i, 0, NULL);
        expected = synthetic_mix(expected, i);
    }
    for (int i = 0; i < 10; i++)
        session_step(&session);
    cr_assert_eq(session_read(&session, a), expected);
    session_release(&session, a);
    eddy_vm_stream_release(ordered);
    session_close(&session);
}

/* ---- the table of kinds ---- */

Test(kinds, each_has_a_name_and_what_its_rules_need) {
    for (int k = 0; k < EDDY_KIND_COUNT; k++) {
        const eddy_instruction_kind_row *kind = &eddy_instruction_kinds[k];
        cr_assert_not_null(kind->name, "kind %d has no row", k);
        cr_assert((kind->run != NULL) == (k > EDDY_KIND_CALL), "%s", kind->name);
        cr_assert(kind->event || !(kind->rules & EDDY_KIND_MAKES_EVENT), "%s", kind->name);
        cr_assert((kind->rules & EDDY_KIND_HAS_WAITER) || !(kind->rules & EDDY_KIND_IS_WAIT), "%s",
                  kind->name);
        cr_assert((kind->rules & EDDY_KIND_IS_USERS) || !kind->completed, "%s", kind->name);
    }
}
