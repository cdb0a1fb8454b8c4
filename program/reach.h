/* What is there at an instruction, whatever way a run has taken to it (control.h).
 *
 * A value that both ways of a branch write whole is there behind it; what one way alone has made is there on that way, and on the same way of a
 * later branch on the same predicate, or a copy of it, as long as nobody has written that: so gradients go back through branches. What the body of a loop
 * has made is there in that step.
 *
 * The code's marks are nested. Instructions are passed in their order. */
#ifndef EDDY_PROGRAM_REACH_H
#define EDDY_PROGRAM_REACH_H

#include <program/control.h>

typedef struct eddy_reach_value {
    bool is_there; /* on each way that leads here */
    bool is_made;  /* on some way */
    uint32_t way;  /* the innermost that was open where it was made; EDDY_CODE_NONE: none */
    uint32_t join; /* the last branch whose first way was found to have left it there */
    uint32_t writes, write_count; /* operands that write it, so far and in all */
    /* Of a copy of one truth value: of which, after so many writes. */
    bool is_copy;
    uint32_t copied, copied_writes;
    int64_t copied_offset;
} eddy_reach_value;

/* A way of a branch, or a loop, from its first mark on. */
typedef struct eddy_reach_way {
    uint32_t outer;     /* way; EDDY_CODE_NONE: none */
    uint32_t loop;      /* the innermost around it, itself not; EDDY_CODE_NONE: none */
    uint32_t predicate; /* value */
    int64_t offset;
    uint32_t writes; /* of the predicate, so far */
    bool is_loop, is_second;
    bool is_final; /* nobody writes the predicate behind the mark */
} eddy_reach_way;

/* An open region. */
typedef struct eddy_reach_region {
    uint32_t branch;        /* 1 + its number among the regions */
    uint32_t begin, middle; /* how many of `made` there were at its marks */
} eddy_reach_region;

typedef struct eddy_reach {
    const eddy_code *code;
    eddy_reach_value *values;
    uint32_t value_count; /* of the code, when it began */
    eddy_code_array
        made; /* uint32_t: the values that are there by instructions so far, and were not before the first */
    eddy_code_array ways; /* eddy_reach_way */
    uint32_t way;         /* the innermost that is open */
    eddy_reach_region regions[EDDY_CONTROL_DEPTH_MOST];
    uint32_t depth, region_count;
} eddy_reach;

/* At the first instruction. False without memory. */
EDDY_MUST_USE bool eddy_reach_init(eddy_reach *reach, const eddy_code *code);
void eddy_reach_fini(eddy_reach *reach);

/* Whether the value is there, as the next instruction sees it. */
bool eddy_reach_has(const eddy_reach *reach, uint32_t value);
/* Whether the operand is one of the next instruction's: it is there, begins, or is set on the other way of a branch that has made it. */
bool eddy_reach_allows(const eddy_reach *reach, const eddy_code_operand *operand);
/* Passes the next instruction. False without memory. */
EDDY_MUST_USE bool eddy_reach_pass(eddy_reach *reach, const eddy_code_instruction *instruction);
/* Passes all instructions. *wrong: the first with an operand that is not there, or the number of all. False without memory. */
EDDY_MUST_USE bool eddy_reach_pass_all(eddy_reach *reach, uint32_t *wrong);

#endif
