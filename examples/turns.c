#include "turns.h"

#include <stdio.h>
#include <time.h>

#define BLOCK_STEPS 16
#define LAST_TIMED_BLOCK 24

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* All blocks after the timed ones are one. */
static int64_t block_of(int64_t step) {
    int64_t block = step / BLOCK_STEPS;
    return block <= LAST_TIMED_BLOCK ? block : LAST_TIMED_BLOCK + 1;
}

static bool is_timed(int64_t block) {
    return block > 0 && block <= LAST_TIMED_BLOCK;
}

static bool block_is_replayed(int64_t block) {
    return !is_timed(block) || block % 2 == 0;
}

void turns_init(turns *t) {
    *t = (turns){.block = -1};
}

bool turns_is_replayed(int64_t step) {
    return block_is_replayed(block_of(step));
}

bool turns_is_due(const turns *t, int64_t step) {
    return block_of(step) != t->block;
}

void turns_pause(turns *t) {
    if (is_timed(t->block))
        t->seconds[block_is_replayed(t->block)] += now_s() - t->begin_s;
    t->block = -1;
}

void turns_begin(turns *t, int64_t step) {
    turns_pause(t);
    t->block = block_of(step);
    t->begin_s = now_s();
}

void turns_count(turns *t, int64_t step) {
    if (is_timed(block_of(step)))
        t->steps[turns_is_replayed(step)]++;
}

void turns_print(const turns *t) {
    if (t->steps[0] == 0 || t->steps[1] == 0) {
        printf("too few steps to compare replays with calls\n");
        return;
    }
    double called = t->seconds[0] / (double)t->steps[0],
           replayed = t->seconds[1] / (double)t->steps[1];
    printf("a step took %.0f us by calls, %.0f us replayed: %.2f times as fast\n", called * 1e6,
           replayed * 1e6, called / replayed);
}
