/* Peer of the empty_* rows: OpenMP tasks with `depend`, created by one thread and run by all. */
#include <bench/sample.h>
#include <bench/shapes.h>
#include <omp.h>

/* libgomp walks the list of all tasks that wait for an address. With more tasks the fan would take minutes on one thread. */
#define FAN_TASKS 6500

static char objects[BENCH_DAG_OBJECTS];
static char *volatile sink;

static void chain(void) {
    for (int i = 0; i < BENCH_TASKS; i++) {
#pragma omp task depend(inout : objects[0])
        { sink = objects; }
    }
}

static void independent(void) {
    for (int i = 0; i < BENCH_TASKS; i++) {
#pragma omp task
        { sink = objects; }
    }
}

static void fan(void) {
    for (int i = 0; i < FAN_TASKS; i++) {
        if (i % (BENCH_FAN_READERS + 1) == 0) {
#pragma omp task depend(out : objects[0])
            { sink = objects; }
        } else {
#pragma omp task depend(in : objects[0])
            { sink = objects; }
        }
    }
}

static void dag(void) {
    uint32_t state = 1;
    for (int i = 0; i < BENCH_TASKS; i++) {
        uint32_t a = bench_random(&state) % BENCH_DAG_OBJECTS,
                 b = bench_random(&state) % BENCH_DAG_OBJECTS;
        uint32_t c = bench_random(&state) % BENCH_DAG_OBJECTS;
#pragma omp task depend(in : objects[a], objects[b]) depend(out : objects[c])
        { sink = objects; }
    }
}

static const struct {
    const char *row;
    void (*issue)(void);
    int tasks;
} shapes[] = {
    {"empty_chain", chain, BENCH_TASKS},
    {"empty_independent", independent, BENCH_TASKS},
    {"empty_fan", fan, FAN_TASKS},
    {"empty_dag", dag, BENCH_TASKS},
};

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        if (strcmp(row, shapes[s].row))
            continue;
        bench_samples samples = {.count = 0};
        for (int i = -2; i < count; i++) {
            double begin = 0, end = 0;
#pragma omp parallel
#pragma omp single
            {
                begin = bench_now_ns();
                shapes[s].issue();
#pragma omp taskwait
                end = bench_now_ns();
            }
            if (i >= 0)
                bench_samples_push(&samples, (end - begin) / shapes[s].tasks);
        }
        char version[64];
        snprintf(version, sizeof(version), "gcc %s, %d threads", __VERSION__,
                 omp_get_max_threads());
        bench_print_row(row, "ns", version, NULL, &samples);
        return 0;
    }
    fprintf(stderr, "openmp_tasks: no such row: %s\n", row);
    return 2;
}
