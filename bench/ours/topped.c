/* The row observe_top: how much of a core the thread takes that writes the counters for `eddy top` (EDDY_TOP), while another one issues adds of 16 floats with EDDY_TIMES. */
#include "must.h"
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <dirent.h>
#include <eddy/eddy.h>

#define SAMPLE_NS 1e9

/* The clock that counts while the thread of this name runs, as Linux numbers them; ends the program where there is no such thread. */
static clockid_t thread_clock(const char *name) {
    DIR *tasks = opendir("/proc/self/task");
    int found = -1;
    for (struct dirent *task; tasks && found < 0 && (task = readdir(tasks));) {
        char path[512], text[64] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", task->d_name);
        FILE *comm = fopen(path, "re");
        if (!comm)
            continue;
        if (fgets(text, sizeof(text), comm) && strncmp(text, name, strlen(name)) == 0)
            found = atoi(task->d_name);
        fclose(comm);
    }
    if (tasks)
        closedir(tasks);
    if (found < 0) {
        fprintf(stderr, "topped: there is no thread %s\n", name);
        exit(1);
    }
    return (clockid_t)((~(unsigned)found << 3) | 6);
}

static double ran_ns(clockid_t clock) {
    struct timespec ran;
    if (clock_gettime(clock, &ran) != 0) {
        perror("topped: the clock of a thread");
        exit(1);
    }
    return (double)ran.tv_sec * 1e9 + (double)ran.tv_nsec;
}

static double sample(eddy_tensor *x, clockid_t writer) {
    double began = bench_now_ns(), ran = ran_ns(writer);
    while (bench_now_ns() - began < SAMPLE_NS)
        for (int i = 0; i < 1000; i++) {
            eddy_tensor *y = eddy_add(x, x);
            eddy_release(&y);
        }
    must(eddy_sync(EDDY_FOREVER));
    return 100 * (ran_ns(writer) - ran) / (bench_now_ns() - began);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    if (strcmp(row, "observe_top")) {
        fprintf(stderr, "topped: no such row: %s\n", row);
        return 2;
    }
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .shows_top = true, .takes_times = true));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    eddy_tensor *x = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL));
    bench_samples samples = {.count = 0};
    clockid_t writer = thread_clock("eddy-top");
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(x, writer));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&x);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
    bench_print_row(row, "%", eddy_version_text(), path, &samples);
    return 0;
}
