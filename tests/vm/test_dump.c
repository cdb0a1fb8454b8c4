#include "session.h"
#include <eddy/log.h>

static struct {
    eddy_lock lock;
    char text[65536];
    size_t length;
    _Atomic int lines;
} lines;

static void collect(void *context, const char *line) {
    (void)context;
    eddy_lock_acquire(&lines.lock);
    lines.length += (size_t)snprintf(lines.text + lines.length, sizeof(lines.text) - lines.length,
                                     "%s\n", line);
    if (lines.length >= sizeof(lines.text))
        lines.length = sizeof(lines.text) - 1;
    eddy_lock_release(&lines.lock);
    eddy_add_release(&lines.lines, 1);
}

static bool has_line(const char *part) {
    eddy_lock_acquire(&lines.lock);
    bool found = strstr(lines.text, part) != NULL;
    eddy_lock_release(&lines.lock);
    return found;
}

/* One request is enough. */
static void dump(vm_session *session, int line_count) {
    eddy_vm_dump(session->vm);
    while (eddy_load_acquire(&lines.lines) < line_count)
        sched_yield();
}

Test(dump, each_live_instruction_says_what_it_waits_for) {
    eddy_log_set(collect, NULL);
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);             /* #1 */
    eddy_storage_number b = session_make_from(&session, 2, 1, &a); /* #2 */
    eddy_storage_number c =
        session_make_from(&session, 3, 2, (eddy_storage_number[]){a, b}); /* #3 */
    session_overwrite(&session, a, 4);                                    /* #4 */
    while (eddy_vm_counters_read(session.vm).nodes_made < 4 ||
           eddy_fake_queue_held(session.fake) < 1)
        sched_yield();
    dump(&session, 6);
    cr_assert(has_line("#1 synthetic(1 operands) stream 1 running\n"), "%s", lines.text);
    cr_assert(has_line("#2 synthetic(2 operands) stream 1 waiting, waits for #1\n"), "%s",
              lines.text);
    cr_assert(has_line("#3 synthetic(3 operands) stream 1 waiting, waits for #1 #2\n"), "%s",
              lines.text);
    cr_assert(has_line("#4 synthetic(1 operands) stream 1 waiting, waits for #1 #3 #2\n"), "%s",
              lines.text);
    cr_assert(has_line("4 live instructions\n"), "%s", lines.text);
    cr_assert(has_line("oldest: #1 synthetic(1 operands) runs"), "%s", lines.text);
    for (int i = 0; i < 4; i++)
        session_step(&session);
    session_settle(&session);
    eddy_storage_number all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        session_release(&session, all[i]);
    session_close(&session);
}

Test(dump, a_lend_is_named_as_the_reason) {
    eddy_log_set(collect, NULL);
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    eddy_storage_number a = session_make(&session, 1);
    void *data;
    eddy_vm_lend *lend;
    cr_assert_eq(eddy_vm_lend_begin(session.vm, a, true, &forever, &data, &lend), EDDY_OK);
    session_overwrite(&session, a, 2);
    while (eddy_vm_counters_read(session.vm).nodes_made < 2)
        sched_yield();
    dump(&session, 3);
    cr_assert(has_line("#2 map stream 0 lent\n"), "%s", lines.text);
    cr_assert(has_line("#3 synthetic(1 operands) stream 0 waiting, waits for #2\n"), "%s",
              lines.text);
    eddy_vm_lend_end(session.vm, lend, false);
    session_release(&session, a);
    session_close(&session);
}

Test(dump, many_instructions_are_cut_at_a_hundred_lines) {
    eddy_log_set(collect, NULL);
    vm_session session =
        session_open((eddy_runtime_options){.threads = 2, .uses_worker_path = true});
    session_hold(&session, false);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 0);
    for (int i = 1; i < 500; i++)
        session_mix_in(&session, a, i, 0, NULL);
    while (eddy_vm_counters_read(session.vm).nodes_made < 500)
        sched_yield();
    dump(&session, 102);
    cr_assert(has_line("500 live instructions\n"), "%s", lines.text);
    for (int i = 0; i < 500; i++)
        session_step(&session);
    session_release(&session, a);
    session_close(&session);
    cr_assert_eq(eddy_load_acquire(&lines.lines), 102); /* with that of the oldest */
}

Test(dump, a_time_without_progress_rings_by_itself) {
    eddy_log_set(collect, NULL);
    vm_session session = session_open(
        (eddy_runtime_options){.threads = 2, .uses_worker_path = true, .dump_after_ms = 1});
    session_hold(&session, true);
    session.stream = session.held;
    eddy_storage_number a = session_make(&session, 1);
    while (!has_line("#1 synthetic(1 operands) stream 1 running\n"))
        sched_yield();
    session_step(&session);
    session_release(&session, a);
    session_close(&session);
}

/* Nothing is live: there is nothing to wonder about. */
Test(dump, an_idle_vm_says_nothing) {
    eddy_log_set(collect, NULL);
    vm_session session = session_open(
        (eddy_runtime_options){.threads = 2, .uses_full_path = true, .dump_after_ms = 1});
    /* A second VM that is stuck shows that the time has passed, several times over. */
    vm_session stuck = session_open(
        (eddy_runtime_options){.threads = 2, .uses_worker_path = true, .dump_after_ms = 5});
    session_hold(&stuck, true);
    stuck.stream = stuck.held;
    eddy_storage_number b = session_make(&stuck, 1);
    while (eddy_load_acquire(&lines.lines) < 8)
        sched_yield();
    cr_assert_not(has_line("0 live instructions"), "%s", lines.text);
    session_step(&stuck);
    session_release(&stuck, b);
    eddy_vm_stream_release(stuck.held);
    cr_assert_eq(eddy_vm_close(stuck.vm, EDDY_CLOCK_FOREVER), EDDY_OK);
    eddy_vm_destroy(stuck.vm);
    session_close(&session);
}

Test(dump, one_thread_mode_dumps_at_the_call) {
    eddy_log_set(collect, NULL);
    vm_session session = session_open((eddy_runtime_options){.uses_one_thread = true});
    eddy_vm_dump(session.vm);
    cr_assert(has_line("0 live instructions\n"));
    session_close(&session);
}

static vm_latch sink_latch;

static void stay_in_sink(void *context, const char *line) {
    (void)context;
    (void)line;
    latch_pass(&sink_latch);
}

static void *dump_elsewhere(void *context) {
    eddy_vm_dump(context);
    return NULL;
}

/* The sink is the user's, and may take its time. */
Test(dump, the_engine_goes_on_while_the_sink_stays) {
    eddy_log_set(stay_in_sink, NULL);
    vm_session session = session_open((eddy_runtime_options){.threads = 2, .uses_full_path = true});
    pthread_t thread;
    start_thread(&thread, dump_elsewhere, session.vm);
    latch_await(&sink_latch, 1);
    eddy_storage_number a = session_make(&session, 1);
    cr_assert_eq(session_read(&session, a), value_of(1, 0));
    latch_open(&sink_latch);
    join_thread(thread);
    session_release(&session, a);
    session_close(&session);
}
