/* Resident memory of a process, as the kernel counts it. For Eddy's programs and the peers'.
 *
 * Plain C and C++, header only. */
#ifndef BENCH_RESIDENT_H
#define BENCH_RESIDENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of /proc/self/status, in MiB. Ends the program if there is no such line. */
static inline double bench_resident_line(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (file && kib < 0 && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)))
            kib = atol(line + strlen(name));
    if (file)
        fclose(file);
    if (kib < 0) {
        fprintf(stderr, "no %s in /proc/self/status\n", name);
        exit(1);
    }
    return (double)kib / 1024;
}

/* Resets the kernel's peak. Returns the resident memory now, in MiB. */
static inline double bench_resident_begin(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file || fputs("5", file) < 0 || fclose(file)) {
        fprintf(stderr, "/proc/self/clear_refs cannot be written: no peak of memory\n");
        exit(1);
    }
    return bench_resident_line("VmRSS:");
}

/* Peak of resident memory since bench_resident_begin, less `before`, which that call returned; in MiB. */
static inline double bench_resident_peak(double before) {
    return bench_resident_line("VmHWM:") - before;
}

#endif
