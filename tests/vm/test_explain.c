/* What a storage waits for, back to where that begins. */
#include "session.h"

static char text[4000];

static const char *explain(vm_session *session, eddy_storage_number storage) {
    size_t length;
    eddy_vm_explain(session->vm, storage, text, sizeof(text), &length);
    cr_assert_eq(length, strlen(text));
    return text;
}

#define EXPECT(session, storage, expected)                                                         \
    cr_assert_str_eq(explain(&(session), storage), expected, "%s", text)

static void await_nodes(vm_session *session, uint64_t count) {
    while (eddy_vm_counters_read(session->vm).nodes_made < count)
        sched_yield();
}

Test(explain, a_chain_goes_back_to_what_runs) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1), b = session_make_from(&session, 2, 1, &a),
                        c = session_make_from(&session, 3, 2, (eddy_storage_number[]){a, b}),
                        d = session_make_from(&session, 4, 1, &c);
    await_nodes(&session, 4);
    EXPECT(session, a, "#1 synthetic(1 operands) runs, or waits for a thread that runs it\n");
    EXPECT(session, d,
           "#4 synthetic(2 operands) waits for\n"
           "#3 synthetic(3 operands) waits for 2, the oldest of them\n"
           "#1 synthetic(1 operands) runs, or waits for a thread that runs it\n");
    session_step(&session);
    while (eddy_fake_queue_held(session.fake) < 1)
        sched_yield();
    EXPECT(session, a, "it waits for nothing: what writes it has run, and others read it\n");
    EXPECT(session, c,
           "#3 synthetic(3 operands) waits for\n"
           "#2 synthetic(2 operands) runs, or waits for a thread that runs it\n");
    for (int i = 0; i < 3; i++)
        session_step(&session);
    session_settle(&session);
    EXPECT(session, d, "it waits for nothing: its elements are there\n");
    eddy_storage_number all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

Test(explain, a_lend_and_a_failure_are_named) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    session_overwrite(&session, a, 2);
    await_nodes(&session, 2);
    explain(&session, a);
    cr_assert_not_null(strstr(text, "#3 synthetic(1 operands) waits for\n#2 map"), "%s", text);
    cr_assert_not_null(strstr(text, "is lent, until its lender gives it back\n"), "%s", text);
    eddy_vm_lend_end(session.vm, lend, false);
    eddy_storage_number failed = session_make_failing(&session, 3);
    eddy_storage_number poisoned = session_make_from(&session, 4, 1, &failed);
    session_settle(&session);
    explain(&session, poisoned);
    cr_assert_not_null(strstr(text, "failed"), "%s", text);
    eddy_storage_number all[] = {a, failed, poisoned};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

/* Of a long one the first lines and the last. */
Test(explain, a_long_chain_is_cut_in_the_middle) {
    enum { LENGTH = 100 };
    eddy_storage_number made[LENGTH];
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, false);
    session.stream = session.held;
    for (int i = 0; i < LENGTH; i++)
        made[i] =
            i == 0 ? session_make(&session, 1) : session_make_from(&session, i, 1, &made[i - 1]);
    await_nodes(&session, LENGTH);
    explain(&session, made[LENGTH - 1]);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    cr_assert_eq(lines, 14, "%s", text);
    cr_assert_eq(strncmp(text, "#100 ", 5), 0);
    cr_assert_not_null(strstr(text, "87 more in between\n#1 "), "%s", text);
    /* As snprintf. */
    char few[20];
    size_t length;
    eddy_vm_explain(session.vm, made[LENGTH - 1], few, sizeof(few), &length);
    cr_assert_eq(length, strlen(text));
    cr_assert_eq(strncmp(few, text, sizeof(few) - 1), 0);
    eddy_vm_explain(session.vm, made[LENGTH - 1], NULL, 0, &length);
    cr_assert_eq(length, strlen(text));
    for (int i = 0; i < LENGTH; i++)
        session_step(&session);
    session_settle(&session);
    for (int i = 0; i < LENGTH; i++)
        session_release(&session, made[i]);
    session_close(&session);
}

Test(explain, the_live_instructions_are_a_graph) {
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    size_t length;
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1), b = session_make_from(&session, 2, 1, &a),
                        c = session_make_from(&session, 3, 2, (eddy_storage_number[]){a, b});
    await_nodes(&session, 3);
    cr_assert(eddy_vm_dump_dot(session.vm, text, sizeof(text), &length));
    cr_assert_eq(length, strlen(text));
    cr_assert_str_eq(
        text, "digraph eddy {\n"
              "  node [shape=box fontname=\"sans-serif\"]\n"
              "  n1 [label=\"#1 synthetic(1 operands)\\nstream 1, runs, or waits for a thread that "
              "runs it\" style=filled fillcolor=lightblue]\n"
              "  n2 [label=\"#2 synthetic(2 operands)\\nstream 1, waits\"]\n"
              "  n1 -> n2\n"
              "  n3 [label=\"#3 synthetic(3 operands)\\nstream 1, waits\"]\n"
              "  n1 -> n3\n"
              "  n2 -> n3\n"
              "}\n");
    for (int i = 0; i < 3; i++)
        session_step(&session);
    session_settle(&session);
    eddy_storage_number all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

static _Atomic bool is_over;

static void *ask(void *context) {
    vm_session *session = context;
    char own[500];
    size_t length;
    while (!eddy_load_acquire(&is_over))
        eddy_vm_explain(session->vm, 1, own, sizeof(own), &length);
    return NULL;
}

/* Who asks takes the role for a moment, whatever others do. */
Test(explain, threads_may_ask_at_any_moment) {
    ON_EACH_PATH(session) {
        pthread_t threads[2];
        eddy_storage_number made[200];
        eddy_store_relaxed(&is_over, false);
        made[0] = session_make(&session, 0);
        for (int t = 0; t < 2; t++)
            start_thread(&threads[t], ask, &session);
        for (int i = 1; i < 200; i++)
            made[i] = session_make_from(&session, i, 1, &made[i - 1]);
        session_settle(&session);
        eddy_store_release(&is_over, true);
        for (int t = 0; t < 2; t++)
            join_thread(threads[t]);
        for (int i = 0; i < 200; i++)
            session_release(&session, made[i]);
    }
}

/* What an issuer runs itself, and how that fails, is written under the submission lock alone. */
Test(explain, threads_may_ask_while_issuers_run_and_fail) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2});
    pthread_t threads[2];
    eddy_store_relaxed(&is_over, false);
    session.cost_ps = COST_CALLER;
    eddy_storage_number a = session_make(&session, 0);
    cr_assert_eq(a, 1);
    for (int t = 0; t < 2; t++)
        start_thread(&threads[t], ask, &session);
    for (int i = 0; i < 2000; i++) {
        if (i % 2)
            session_mix_in_failing(&session, a, i);
        else
            session_overwrite(&session, a, i);
    }
    session_settle(&session);
    eddy_store_release(&is_over, true);
    for (int t = 0; t < 2; t++)
        join_thread(threads[t]);
    explain(&session, a);
    cr_assert_not_null(strstr(text, "failed"), "%s", text);
    session_release(&session, a);
    session_close(&session);
}

Test(explain, a_closed_vm_says_so) {
    vm_session session = session_open((eddy_runtime_options){.threads = 2});
    eddy_storage_number a = session_make(&session, 1);
    session_settle(&session);
    session_release(&session, a);
    cr_assert_eq(eddy_vm_close(session.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    EXPECT(session, a, "the runtime is shut down\n");
    eddy_vm_destroy(session.vm);
}
