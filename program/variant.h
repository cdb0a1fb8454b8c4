/* Programs for some of the outputs: a run by name that fetches fewer computes what these need, effects and what may fail included.
 *
 * A variant is made when its set of outputs is first asked for, of the code as it was before the passes, and kept; where it has no fewer
 * instructions, the program itself runs. Sequence numbers, draws and errors are those of the program.
 *
 * Any thread. Lock: variants->lock; variants are made outside of it, and of two that are made at once one is given up. */
#ifndef EDDY_PROGRAM_VARIANT_H
#define EDDY_PROGRAM_VARIANT_H

#include <base/sleep.h>
#include <program/program.h>

/* A bit for each output. */
#define EDDY_VARIANT_OUTPUTS_MOST 64
/* Other sets run the program itself. */
#define EDDY_VARIANTS_MOST 16

typedef struct eddy_variant {
    uint64_t outputs;
    eddy_program *program; /* a reference; NULL: the program itself */
} eddy_variant;

typedef struct eddy_program_variants {
    eddy_code code;            /* before the passes */
    eddy_code_array externals; /* eddy_program_external, with references: before the passes */
    eddy_lock lock;
    uint32_t count; /* lock: lock, and so are the items */
    eddy_variant items[EDDY_VARIANTS_MOST];
} eddy_program_variants;

/* Keeps what variants are made of, before the program is built: where it has several outputs and drops dead code. */
EDDY_MUST_USE eddy_status eddy_program_keep_source(eddy_program *program, eddy_origin origin);
/* After a load: the source holds what the program holds; what that does not use no variant uses. */
void eddy_program_source_take(eddy_program *program);
void eddy_program_variants_destroy(eddy_program_variants *variants);
/* The bytes of the source and of all variants so far. */
int64_t eddy_program_variants_bytes(eddy_program_variants *variants);

/* The program to run for these outputs, a reference: a variant, or the program itself. Never fails: without memory it is that. */
eddy_program *eddy_program_variant_for(eddy_program *program, uint64_t outputs);

#endif
