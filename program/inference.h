/* Inferring an instruction again: from its operands and attributes, what its results have to be. Of code that was recorded it changes
 * nothing; code that comes from elsewhere is refused where it does (verify.h). */
#ifndef EDDY_PROGRAM_INFERENCE_H
#define EDDY_PROGRAM_INFERENCE_H

#include <program/code.h>

#define EDDY_INFERENCE_LISTS 8

typedef struct eddy_inference {
    eddy_dtype compute;
    eddy_spec outputs[EDDY_OP_OUTPUT_MAX];
    const void *attributes; /* as the rule leaves them; those that each run gives are 0 */
    char reason[320];       /* of INVALID_ARGUMENT */
    /* Room that the next instruction uses again. */
    int64_t list_counts[EDDY_INFERENCE_LISTS];
    eddy_code_array specs; /* eddy_spec: the inputs, in the order of the op's operands */
    eddy_code_array words; /* int64_t */
} eddy_inference;

/* Whether the number of inputs and outputs is one that the op may have; its lists, if any, are equally long. */
bool eddy_inference_fits(const eddy_op *op, int64_t input_count, int64_t output_count);

/* Infers instruction i, whose operands are in their ranges and fit the op. What counts is op, operands, attributes and patches, not
 * the kernel nor the compute dtype. INVALID_ARGUMENT with the reason, no error being recorded, or OUT_OF_MEMORY. */
EDDY_MUST_USE eddy_status eddy_inference_run(eddy_inference *inference, const eddy_code *code,
                                             const eddy_code_instruction *instruction);

/* The kernel of such an instruction on a kind of device, as a recorded one has it; NULL: there is none. Marks and copies between devices run by no kernel, and have the same one everywhere. */
const eddy_kernel *eddy_inference_kernel(const eddy_op *op, eddy_dtype compute,
                                         eddy_device_kind kind);

/* Zeroed ones are allowed. */
void eddy_inference_fini(eddy_inference *inference);

#endif
