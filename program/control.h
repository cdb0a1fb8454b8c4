/* Branches and loops in code: marks among the instructions, nested like brackets.
 *
 *   if(p)  then ...  else()  otherwise ...  end_if()
 *   loop(most_steps)  test ...  loop_while(p)  body ...  end_loop()
 *
 * A mark is an instruction without results, which no pass moves, leaves out or lets others pass. What a branch or body gives is a value that
 * each way writes whole: the first in the order of the code makes it, the other sets it. A value that one way alone has made is
 * used within that way only. The test runs at least once. */
#ifndef EDDY_PROGRAM_CONTROL_H
#define EDDY_PROGRAM_CONTROL_H

#include <program/code.h>

typedef enum eddy_control {
    EDDY_CONTROL_NONE,
    EDDY_CONTROL_IF,
    EDDY_CONTROL_ELSE,
    EDDY_CONTROL_END_IF,
    EDDY_CONTROL_LOOP,
    EDDY_CONTROL_LOOP_WHILE,
    EDDY_CONTROL_END_LOOP,
    /* A recorded function has read the operand on the host (path.h). It stands in no branch or loop, and no text from outside has it. */
    EDDY_CONTROL_READ,
    /* The device changes (cut.h). It stands in no branch or loop, and in code that is being built alone. */
    EDDY_CONTROL_CUT,
} eddy_control;

/* So many regions may lie within each other. */
#define EDDY_CONTROL_DEPTH_MOST 64

/* What a loop says that reaches most_steps, which it takes as a long long. */
#define EDDY_CONTROL_MOST_STEPS "the predicate still holds after %lld steps, the most there may be"

/* The attribute struct of EDDY_CONTROL_LOOP. */
typedef struct eddy_control_loop {
    int64_t most_steps; /* the loop fails once it would begin another; 0: no bound */
} eddy_control_loop;

/* The mark's op, and what an op marks. */
const eddy_op *eddy_control_op(eddy_control control);
eddy_control eddy_control_of(const eddy_op *op);
/* By name; NULL if it is none. */
const eddy_op *eddy_control_find(const char *name);

/* A branch or a loop: its first, middle (else, loop_while) and last mark, by their instructions. */
typedef struct eddy_region {
    uint32_t begin, middle, end;
    uint32_t outer; /* region; EDDY_CODE_NONE: none */
    bool is_loop;
} eddy_region;

typedef struct eddy_regions {
    eddy_code_array items; /* eddy_region, in the order of their first marks */
    eddy_code_array
        of; /* uint32_t, per instruction: the innermost region that it or its mark is in, or EDDY_CODE_NONE; empty
                              where there is no region */
} eddy_regions;

/* Finds the regions of code whose marks are nested. False without memory. */
EDDY_MUST_USE bool eddy_regions_find(const eddy_code *code, eddy_regions *regions);
void eddy_regions_fini(eddy_regions *regions);

static inline const eddy_region *eddy_region_at(const eddy_regions *regions, uint32_t i) {
    return (const eddy_region *)regions->items.items + i;
}
static inline uint32_t eddy_region_of(const eddy_regions *regions, uint32_t instruction) {
    return regions->of.count == 0 ? EDDY_CODE_NONE
                                  : ((const uint32_t *)regions->of.items)[instruction];
}

/* The instruction up to which a value has to live that begins with instruction `first` and is used by `user`: the end of the outermost loop
 * that began after it, since the next step uses it again. */
uint32_t eddy_regions_last(const eddy_regions *regions, uint32_t first, uint32_t user);

/* How often a run may come to an instruction: the steps of the loops around it, as many as there may be. EDDY_REGIONS_NO_BOUND: of one of them
 * as many as it takes, or more than that number. */
#define EDDY_REGIONS_NO_BOUND (INT64_C(1) << 30)
int64_t eddy_regions_most_times(const eddy_regions *regions, const eddy_code *code,
                                uint32_t instruction);

/* Whether there are draws in branches or loops: how many, and so which numbers a draw behind them gets, depends on the way that a run takes. */
bool eddy_control_has_draws(const eddy_code *code);

/* Marks of all kinds. */
uint32_t eddy_control_count_marks(const eddy_code *code);

/* Whether the marks are nested, up to EDDY_CONTROL_DEPTH_MOST deep; *wrong: the instruction that is not, else the number of all. */
bool eddy_control_is_nested(const eddy_code *code, uint32_t *wrong);

#endif
