/* The programs of the small_* rows (bench/programs.h), as steps that are called or replayed: one code for both. */
#ifndef BENCH_OURS_SMALL_PROGRAMS_H
#define BENCH_OURS_SMALL_PROGRAMS_H

#include <bench/ours/trainee.h>
#include <bench/programs.h>
#include <eddy/eddy.h>
#include <examples/transformer.h>
#include <stdbool.h>

/* State of any of the programs. Each uses only some of the fields. */
typedef struct small {
    const struct small_program *program;
    trainee net;
    transformer decoder;
    eddy_tensor *x, *labels;
    int64_t batch;
    eddy_recorded *recorded; /* replays the steps; NULL: they are calls */
    int64_t called_steps;    /* steps that ran as calls, those that were recorded included */
    /* What the last run computed: the result of its last step, and the decoder's text. */
    eddy_tensor *result;
    int64_t tokens[BENCH_DECODE_TOKENS + 1];
} small;

/* Makes the program of a row small_<program>: the same numbers each time. Ends the program on failure, as all functions here do. */
void small_init(small *s, const char *row, bool is_replayed);
void small_fini(small *s);
/* Runs it once; returns when all its ops have run. */
void small_run(small *s);
/* Whether two instances of a program have the same bits in their results and parameters. */
bool small_equals(small *a, small *b);

#endif
