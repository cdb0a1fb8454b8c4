/* Measures what replaying steps gains. Calls and replays give the same numbers, so that blocks of both may take turns: the first block
 * is replayed and not timed, the next ones are called, replayed, called .. and timed; all that follow are replayed. */
#ifndef EXAMPLES_TURNS_H
#define EXAMPLES_TURNS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct turns {
    int64_t block; /* that is being timed; -1: none */
    double begin_s, seconds[2];
    int64_t steps[2]; /* [0] called, [1] replayed */
} turns;

void turns_init(turns *t);
bool turns_is_replayed(int64_t step);
/* Whether a block begins with this step. Then everything before has to have ended, and turns_begin follows. */
bool turns_is_due(const turns *t, int64_t step);
void turns_begin(turns *t, int64_t step);
void turns_count(turns *t, int64_t step);
/* Everything has ended: what follows is no step, and not timed. */
void turns_pause(turns *t);
/* One line to stdout. */
void turns_print(const turns *t);

#endif
