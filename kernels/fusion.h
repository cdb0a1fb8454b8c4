/* A fusion: elementwise ops one after another, over operands of one shape, that a device with kernels of its own may run as one kernel, which is made while the process runs.
 * Each op has the bits of a call of its own. Plain data. */
#ifndef EDDY_KERNELS_FUSION_H
#define EDDY_KERNELS_FUSION_H

#include <eddy/dtype.h>
#include <stdint.h>

#define EDDY_FUSION_STEPS 24
/* Inputs and outputs of all of it; inputs of one step. */
#define EDDY_FUSION_OPERANDS 16
#define EDDY_FUSION_STEP_INPUTS 4
/* Words of attributes, of all steps. */
#define EDDY_FUSION_WORDS 96

typedef struct eddy_fusion_step {
    const char *kernel;      /* the name of the CPU's; static */
    uint8_t compute, result; /* eddy_dtype */
    uint8_t input_count;
    /* Below EDDY_FUSION_OPERANDS an input; else EDDY_FUSION_OPERANDS and the number of an earlier step. */
    uint8_t inputs[EDDY_FUSION_STEP_INPUTS];
    uint8_t attributes_at; /* words */
} eddy_fusion_step;

typedef struct eddy_fusion {
    uint8_t step_count, input_count, output_count;
    uint8_t word_count; /* of attributes, each step's from a word of its own on */
    uint8_t input_dtypes[EDDY_FUSION_OPERANDS]; /* eddy_dtype */
    uint8_t outputs[EDDY_FUSION_OPERANDS];      /* the steps that give them */
    uint8_t zeros[4]; /* instead of a gap: fusions are compared as bytes, all unused ones 0 */
    eddy_fusion_step steps[EDDY_FUSION_STEPS];
} eddy_fusion;

#endif
