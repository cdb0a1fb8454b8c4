/* The health of a run's values: poison goes from value to value within a run as it does from call to call in the VM, by the table of vm/PROTOCOL.md, section 11.
 *
 * Thread: the one that runs the instruction; of rounds (rounds.h) each that looks at one. */
#ifndef EDDY_PROGRAM_HEALTH_H
#define EDDY_PROGRAM_HEALTH_H

#include <program/executable.h>

typedef struct eddy_health {
    const eddy_executable *executable;
    const eddy_code *code;
    const eddy_vm_run *run;
    const int64_t *shifts;           /* per base but the first */
    const int64_t *bytes;            /* per operand of the run, of its storage */
    const eddy_partition *partition; /* that is run; NULL: all */
    const uint32_t *operands;        /* of a partition, per base: 1 + its operand; 0: it has none */
    bool is_front;                   /* front.h */
    eddy_poison *poison;             /* per value; from eddy_health_look on */
    uint64_t before_sequence;        /* of the instruction with ordinal 0 */
    uint64_t skipped;                /* instructions */
} eddy_health;

/* Fills in the operands of h->partition. */
void eddy_health_find_operands(const eddy_health *h, uint32_t *operands);
/* The operand that the base is; -1: a front or partition does not use it. */
static inline int64_t eddy_health_operand(const eddy_health *h, uint32_t base) {
    if (EDDY_UNLIKELY(h->partition != NULL))
        return (int64_t)h->operands[base] - 1;
    if (EDDY_LIKELY(!h->is_front))
        return base - 1;
    const eddy_front_base *at = &h->executable->front.bases[base];
    return at->is_used ? (int64_t)at->operand : -1;
}

/* Whether nothing that the run was given is poisoned. */
bool eddy_health_is_good(const eddy_health *h);
/* The poison of values when the run begins. */
void eddy_health_look(const eddy_health *h);
/* Whether an error there is one of the instruction, which does not write all of it. */
bool eddy_health_is_input(const eddy_health *h, const eddy_code_operand *operand);
/* The lowest poison of what the instruction reads; 0: none. */
eddy_poison eddy_health_blame(const eddy_health *h, const eddy_code_instruction *instruction);
/* What becomes of what it writes: it has succeeded; was skipped; has failed, which is recorded as a root with its text. `copy`: the attributes that it ran with, where
 * words of the run were filled in, else NULL. */
void eddy_health_succeed(const eddy_health *h, uint32_t instruction);
void eddy_health_skip(eddy_health *h, uint32_t instruction, eddy_poison blame);
void eddy_health_fail(const eddy_health *h, uint32_t instruction, const eddy_kernel_error *error,
                      void *copy);
/* Nobody knows which way to go: what any way of the region writes is not what it should be. */
void eddy_health_pass_over(const eddy_health *h, const eddy_jump *jump, uint64_t root);
/* What becomes of what was there before the run, and of outputs. Not of a front. */
void eddy_health_tell(const eddy_health *h);

static inline uint64_t eddy_health_sequence(const eddy_health *h, uint32_t instruction) {
    return h->before_sequence + eddy_code_instruction_at(h->code, instruction)->ordinal;
}

#endif
