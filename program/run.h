/* A run of a program while it is made: what was given, and what its instruction gets of it. Of the calling thread, which runs nothing
 * else meanwhile. */
#ifndef EDDY_PROGRAM_RUN_H
#define EDDY_PROGRAM_RUN_H

#include <program/output_ring.h>
#include <program/path.h>
#include <program/program.h>

/* Arguments of the instruction: a reference of the program, then per base but the first the bytes by which it is shifted, then the words
 * of the run (code.h), unless they are those of `late`. */
typedef struct eddy_run_arguments {
    eddy_program *program;
    eddy_part part;
    uint32_t partition;
    eddy_late_draws *late; /* a reference, or NULL */
    eddy_path *path;       /* a reference, or NULL */
    eddy_ring_gone *gone;  /* owned: of the operands behind the bases; or NULL */
    int64_t words[];
} eddy_run_arguments;

typedef struct eddy_run {
    eddy_program *program;
    eddy_caller *caller;
    eddy_origin origin;
    eddy_list inputs;
    /* One for each binding of the role, EDDY_NONE where none was given; NULL: none was. */
    eddy_tensor *const *targets; /* what outputs are written into: others are new tensors */
    eddy_tensor *const *states;  /* others are the program's own */
    const eddy_scalar *scalars;  /* as many as the program was recorded with */
    eddy_tensor **outputs;       /* the user's, in a row; or, where it is NULL: */
    eddy_tensor **const *places; /* one for each output; NULL: it is not handed out, or none is */
    eddy_ring_turn *turn;        /* in a ring; NULL: it is in none */
    eddy_path *path; /* of a program whose function reads what it has computed: borrowed; NULL */
    eddy_tensor
        *arena; /* of a run that follows it: the root of what its two parts share; else NULL */
    eddy_vm_operand *operands; /* base_count - 1, and room for an arena */
    eddy_tensor **
        handles; /* new ones: of the outputs, then the roots of made storages that no output is all of */
    eddy_tensor *
        *given; /* per external: what was given for it; NULL: it is what the program holds */
    eddy_tensor **
        roots; /* per made storage: that of its target; without one NULL until the run is submitted */
    eddy_run_arguments *arguments;
    /* Per output: the result of a call behind the run (late_calls.h), or NULL; NULL: there are none. */
    eddy_tensor **late_outputs;
    eddy_late_draws *late; /* a reference: words that change while it runs; or NULL */
    const char **
        unfit; /* set to the reason in place of an error where the arguments do not fit; NULL: the error */
    const int64_t
        *given_draws; /* two words for each draw, in place of drawing; NULL: the run draws */
    int64_t *drawn;   /* room for those words; NULL: nobody wants them */
} eddy_run;

/* Makes a run of which everything down to `places` is given. The errors of eddy_program_run, recorded. */
EDDY_MUST_USE eddy_status eddy_run_make(eddy_run *r);
/* The same, whose outputs carry no gradient. */
EDDY_MUST_USE eddy_status eddy_run_make_untraced(eddy_run *r);
/* Whether it could be made, but for memory: nothing happens. The same errors. */
EDDY_MUST_USE eddy_status eddy_run_check(eddy_run *r);
/* Whether a run is to be a node of the tape (gradient.h): gradients are on, and one would go on from it. */
bool eddy_run_is_traced(const eddy_run *r);
/* The run that is. UNSUPPORTED with targets, or with tensors in the place of state. */
EDDY_MUST_USE eddy_status eddy_run_make_traced(eddy_run *r);

/* Checks what was given and fills in operands, shifts, given tensors and the roots of targets. On failure nothing has happened: the errors of
 * eddy_program_run, recorded. */
EDDY_MUST_USE eddy_status eddy_run_bind(const eddy_run *r);

/* ---- run_partitions.c ---- */

/* Submits a run in partitions, in place of one instruction. *has_begun: some have been, whatever became of the others. OUT_OF_MEMORY, SHUT_DOWN, FORKED, recorded. */
EDDY_MUST_USE eddy_status eddy_run_submit_partitions(const eddy_run *r, bool *has_begun);

/* What a call of a partition gets for an operand with that access: a storage that it makes, or one that is there. */
eddy_vm_operand eddy_run_operand_for(const eddy_run *r, const eddy_partition *partition,
                                     uint32_t base, uint8_t access);

/* ---- run_fusion.c ---- */

/* Submits the calls of a fusion as one instruction. False: its kernel is not there, and they are to be submitted one by one. */
bool eddy_run_submit_fused(const eddy_run *r, uint32_t fusion, eddy_status *status);

/* ---- run_numbers.c ---- */

/* Fills in the words of the run: draws, and the numbers given, as their uses want them. Failures are recorded, but those that *unfit tells. */
EDDY_MUST_USE eddy_status eddy_run_draw(eddy_run *r);
EDDY_MUST_USE eddy_status eddy_run_convert(const eddy_run *r);
/* Takes the draws back: the generators are as before, where nobody has drawn from them since. */
void eddy_run_undraw(const eddy_run *r);
/* Where the run draws while it runs: waits until it is over, and generators are where the calls would leave them. */
EDDY_MUST_USE eddy_status eddy_run_await_draws(const eddy_run *r);

/* ---- run.c ---- */

/* An instruction of the VM for a run, or for one part of it. */
typedef struct eddy_run_part {
    eddy_part part;
    uint32_t partition; /* of EDDY_PART_PARTITION */
    eddy_device device;
    const eddy_vm_descriptor *descriptor;
    eddy_vm_operand *operands;
    uint32_t operand_count;
    int64_t cost_ps;
    uint32_t part_count; /* sequence numbers, as in eddy_vm_call */
    eddy_ring_gone *gone;
    const void *address; /* of the recorded call, of a partition that is one; else NULL */
} eddy_run_part;

/* Of runs; of those that give something up. */
extern const eddy_vm_descriptor eddy_run_descriptor, eddy_run_giving_descriptor;

EDDY_MUST_USE eddy_status eddy_run_submit_part(const eddy_run *r, const eddy_run_part *part);
/* A partition that is a call (cut.h), or several (fusions.h): with arguments of the descriptor's own. */
EDDY_MUST_USE eddy_status eddy_run_submit_call(const eddy_run *r, const eddy_run_part *part,
                                               const void *arguments, size_t bytes);

/* The run cannot take its turn in its ring. */
EDDY_MUST_USE eddy_status eddy_run_fail_place(const eddy_run *r);

/* A made storage without a target belongs to the output that is all of it, or to a vector of its bytes, which only its views hold. Of those
 * that were submitted. */
void eddy_run_find_roots(const eddy_run *r);

/* Where an output goes; NULL: nobody wants it. */
eddy_tensor **eddy_run_place(const eddy_run *r, uint32_t output);

/* A new handle of a value of a run that was submitted, with the binding's layout, which no scope owns; NULL without memory. */
eddy_tensor *eddy_run_view(const eddy_run *r, const eddy_program_binding *binding);

/* The root of what an external is in this run, with the elements by which bindings are shifted in it; NULL for what the run makes. */
eddy_tensor *eddy_run_root(const eddy_run *r, uint32_t operand, int64_t *shift);

#endif
