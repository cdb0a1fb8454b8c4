/* Round trip of a cache line between the first two allowed CPUs: two threads pass a word back and forth. Prints the median in
 * ns, or "0" if there is only one CPU. On a virtual machine the host may move the cores apart within seconds. */
#define _GNU_SOURCE
#include <bench/sample.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 2000
#define REPETITIONS 21

static struct {
    _Alignas(64) _Atomic uint32_t there; /* atomic: main writes, echo reads; release/acquire */
    _Alignas(64) _Atomic uint32_t back;  /* atomic: echo writes, main reads; release/acquire */
} lines;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *echo(void *cpu) {
    pin(*(int *)cpu);
    for (uint32_t i = 1; i <= ROUNDS * REPETITIONS; i++) {
        while (atomic_load_explicit(&lines.there, memory_order_acquire) != i)
            ;
        atomic_store_explicit(&lines.back, i, memory_order_release);
    }
    return NULL;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    cpu_set_t allowed;
    int cpus[2], count = 0;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[count++] = cpu;
    pthread_t thread;
    if (count < 2 || pthread_create(&thread, NULL, echo, &cpus[1])) {
        puts("0");
        return 0;
    }
    pin(cpus[0]);
    double round_trips[REPETITIONS];
    uint32_t word = 0;
    for (int r = 0; r < REPETITIONS; r++) {
        double begin = bench_now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            atomic_store_explicit(&lines.there, ++word, memory_order_release);
            while (atomic_load_explicit(&lines.back, memory_order_acquire) != word)
                ;
        }
        round_trips[r] = (bench_now_ns() - begin) / ROUNDS;
    }
    pthread_join(thread, NULL);
    qsort(round_trips, REPETITIONS, sizeof(double), ascending);
    printf("%.0f\n", round_trips[REPETITIONS / 2]);
    return 0;
}
