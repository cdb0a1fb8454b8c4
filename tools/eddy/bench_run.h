/* One run of a measuring program: on one processor or all, in an environment that does not depend on the shell. */
#ifndef TOOLS_EDDY_BENCH_RUN_H
#define TOOLS_EDDY_BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_RUN_SECONDS 600 /* then it is killed */

typedef struct bench_run {
    const char *program; /* path */
    const char *rows;    /* "a,b" */
    int64_t samples, threads;
    bool is_pinned;           /* to one processor */
    const char *variables[8]; /* "NAME=VALUE"; NULL ends them */
} bench_run;

/* Calls `take` with each line that it prints, without its end. False: `why` says what happened, in one line. */
bool bench_run_program(const bench_run *run, void (*take)(void *context, char *line), void *context,
                       char *why, int size);

#endif
