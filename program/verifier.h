/* Verifying a program (verify.h): what its sources share.
 *
 * Checks return false once something is wrong, with the verdict filled in. Thread: the verifying one's only. */
#ifndef EDDY_PROGRAM_VERIFIER_H
#define EDDY_PROGRAM_VERIFIER_H

#include <program/inference.h>
#include <program/reach.h>
#include <program/verify.h>

/* What is known of a value so far. */
typedef struct eddy_verifier_value {
    uint8_t dtype; /* EDDY_DTYPE_COUNT: not known yet */
    bool is_external, is_bound;
    bool is_written, is_begun;
} eddy_verifier_value;

typedef struct eddy_verifier {
    const eddy_program *program;
    const eddy_code *code;
    eddy_verdict *verdict;
    eddy_verifier_value *values;
    bool *draws; /* those that an instruction has taken */
    eddy_inference inference;
    eddy_code_array spans; /* room for check_overlap */
    eddy_reach reach;
    int64_t pairs; /* of operands that may still be compared element by element */
    eddy_status status;
} eddy_verifier;

/* The verdict: INVALID_ARGUMENT, OUT_OF_MEMORY. Both return false. */
bool eddy_verifier_fail(eddy_verifier *v, const char *format, ...) EDDY_PRINTF(2, 3);
bool eddy_verifier_fail_memory(eddy_verifier *v);

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
