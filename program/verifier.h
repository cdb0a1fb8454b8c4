/* Verifying a program (verify.h): what its sources share.
 *
 * Checks return false once something is wrong, with the verdict filled in. Thread: the verifying one's only. */
#ifndef EDDY_PROGRAM_VERIFIER_H
#define EDDY_PROGRAM_VERIFIER_H

#include <program/control.h>
#include <program/inference.h>
#include <program/verify.h>

/* What is known of a value so far. */
typedef struct eddy_verifier_value {
    uint8_t dtype; /* EDDY_DTYPE_COUNT: not known yet */
    bool
        is_there; /* before the run, or made by an instruction so far, on each way that leads here */
    bool is_made; /* on some way */
    uint32_t way; /* the innermost way that is open where it was made; EDDY_CODE_NONE: none */
    uint32_t writes, write_count; /* operands that write it, so far and in all */
    uint32_t then;                /* 1 + the last branch whose first way has left it there */
    bool is_external, is_bound;
    bool is_written;
} eddy_verifier_value;

/* An open region. */
typedef struct eddy_verifier_region {
    uint32_t branch;        /* 1 + its number among the regions */
    uint32_t begin, middle; /* how many of `made` there were at its marks */
} eddy_verifier_region;

/* A way of a branch, or a loop, from its first mark on. */
typedef struct eddy_verifier_way {
    uint32_t outer;     /* way; EDDY_CODE_NONE: none */
    uint32_t predicate; /* value */
    int64_t offset;
    bool is_loop, is_second;
    bool is_final; /* nobody writes the predicate's value behind the mark */
} eddy_verifier_way;

typedef struct eddy_verifier {
    const eddy_program *program;
    const eddy_code *code;
    eddy_verdict *verdict;
    eddy_verifier_value *values;
    bool *draws; /* those that an instruction has taken */
    eddy_inference inference;
    eddy_code_array made;  /* uint32_t: the values that are there by instructions so far */
    eddy_code_array spans; /* room for check_overlap */
    eddy_verifier_region regions[EDDY_CONTROL_DEPTH_MOST];
    uint32_t depth, region_count;
    eddy_code_array ways; /* eddy_verifier_way */
    uint32_t way;         /* the innermost that is open */
    int64_t pairs;        /* of operands that may still be compared element by element */
    eddy_status status;
} eddy_verifier;

/* The verdict: INVALID_ARGUMENT, OUT_OF_MEMORY. Both return false. */
bool eddy_verifier_fail(eddy_verifier *v, const char *format, ...) EDDY_PRINTF(2, 3);
bool eddy_verifier_fail_memory(eddy_verifier *v);

/* verify_control.c: the marks of branches and loops, and what is there behind them. */

EDDY_MUST_USE bool eddy_verifier_mark(eddy_verifier *v, const eddy_code_instruction *instruction);
/* Whether a value that is not there was made on the same way of an earlier branch on the same predicate. */
bool eddy_verifier_is_kept(const eddy_verifier *v, uint32_t value);
/* The value is there from now on. */
EDDY_MUST_USE bool eddy_verifier_note_made(eddy_verifier *v, uint32_t value);

/* verify_operands.c */

/* More are no memory's. Below it, positions in bytes and sizes that kernels compute from them fit into 63 bits. */
#define EDDY_VERIFIER_BYTES_MOST (INT64_C(1) << 47)

/* The shape and strides are a tensor's, and all elements lie within `bytes` of storage. */
EDDY_MUST_USE bool eddy_verifier_layout(eddy_verifier *v, const eddy_layout *layout, uint8_t dtype,
                                        int64_t bytes);
/* Views do not change the dtype: a storage has one. */
EDDY_MUST_USE bool eddy_verifier_dtype(eddy_verifier *v, uint32_t value, uint8_t dtype);
/* The instruction's operands, which are as many as its op has. */
EDDY_MUST_USE bool eddy_verifier_operands(eddy_verifier *v,
                                          const eddy_code_instruction *instruction);

/* Releases their room. */
void eddy_verifier_spans_fini(eddy_verifier *v);

/* verify_attributes.c: of instruction i, whose operands are fine. */
EDDY_MUST_USE bool eddy_verifier_attributes(eddy_verifier *v, uint32_t i);

#endif
