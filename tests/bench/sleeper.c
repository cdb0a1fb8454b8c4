/* A program measured as those of the small_* rows: a run sleeps, and once touches memory that it keeps. Its version says how it was
 * called: "cpus=1 one_thread=1 openmp=2 threads=2". */
#include <bench/programs.h>
#include <sched.h>

#define SLEEP_MS 20
#define KEPT_MIB 24

static void run(void *work) {
    char **kept = work;
    struct timespec pause = {.tv_nsec = SLEEP_MS * 1000000L};
    while (nanosleep(&pause, &pause) != 0)
        continue;
    if (*kept)
        return;
    *kept = malloc(KEPT_MIB << 20);
    if (!*kept)
        exit(1);
    memset(*kept, 1, KEPT_MIB << 20);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

int main(int argc, char **argv) {
    const char *rows = argc > 1 ? argv[1] : "";
    long long size;
    if (!bench_program_has("small_gru_b%lld", rows, &size) &&
        !bench_program_has("small_tree", rows, &size)) {
        fprintf(stderr, "sleeper: no such row: %s\n", rows);
        return 2;
    }
    char *kept = NULL, version[160];
    bench_program program = {.run = run, .work = &kept};
    bench_program_begin(&program);
    bench_program_measure(&program, bench_sample_count(argc, argv, 2));
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof(cpus), &cpus);
    snprintf(version, sizeof(version), "cpus=%d one_thread=%s openmp=%s threads=%s",
             CPU_COUNT(&cpus), variable("EDDY_ONE_THREAD"), variable("OMP_NUM_THREADS"),
             variable("EDDY_THREADS"));
    bench_program_print(&program, rows, version, NULL);
    free(kept);
    return 0;
}
