/* The rows small_*, and those named replay_ instead: the same programs as recorded functions, in which the steps are replayed. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/ours/small_programs.h>

/* Runs after which every step of a run is replayed: the first two are recorded. */
#define RUNS_UNTIL_REPLAYED 3
#define ROW_BYTES 64

static void run(void *work) {
    small_run(work);
}

/* Ends the program if the replayed runs do not have the bits of the calls. Calls come first: gradients that they keep are changes that a
 * recorded function would see. */
static void check_bits(small *replayed, const char *row) {
    small by_calls;
    small_init(&by_calls, row, false);
    for (int i = 0; i < RUNS_UNTIL_REPLAYED; i++)
        small_run(&by_calls);
    for (int i = 0; i < RUNS_UNTIL_REPLAYED; i++)
        small_run(replayed);
    if (!small_equals(&by_calls, replayed)) {
        fprintf(stderr, "small: %s: its replay and its calls have other bits\n", row);
        exit(1);
    }
    small_fini(&by_calls);
}

/* Ends the program if steps have been called since there were `steps_before` of them. */
static void check_replayed(const small *s, int64_t steps_before) {
    char text[4096];
    if (!s->recorded || s->called_steps == steps_before)
        return;
    eddy_recorded_explain(s->recorded, text, sizeof(text));
    fprintf(stderr, "small: steps were called, not replayed: %s", text);
    exit(1);
}

int main(int argc, char **argv) {
    const char *rows = argc > 1 ? argv[1] : "";
    bool is_replayed = !strncmp(rows, "replay_", 7);
    char row[ROW_BYTES];
    snprintf(row, sizeof(row), "%s%s", is_replayed ? "small_" : "", rows + (is_replayed ? 7 : 0));
    small s;
    small_init(&s, row, is_replayed);
    bench_program measured = {.run = run, .work = &s};
    if (is_replayed)
        check_bits(&s, row);
    int64_t steps = s.called_steps;
    bench_program_begin(&measured);
    path_counts before = path_now();
    bench_program_measure(&measured, bench_sample_count(argc, argv, 2));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    check_replayed(&s, steps);
    bench_program_print(&measured, rows, eddy_version_text(), path);
    small_fini(&s);
    return 0;
}
