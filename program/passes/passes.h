/* Passes: they turn the code of a program into code that computes the same bits with less work and memory.
 *
 * Fast ones (EDDY_FAST_PASS_LIST), and those that take less memory (EDDY_MEMORY_PASS_LIST), may round otherwise. They run only where they are named.
 * Fast ones leave code whose text still says what the calls were: an instruction may get the fast kernel of its op, an op that is the same sum, or
 * operands that lie in another order. Of what is done in parts the text says the parts. All other passes keep the rounding of each op and its order of sums.
 * What may fail or has effects stays; draws are taken as they were recorded. A pass sees the code once its values have bases (program/executable.h), and
 * runs before kernels are prepared. EDDY_PASS_LIST (<eddy/program.h>) lists the passes, in the order in which they run.
 *
 * Threads: the code is that of one thread, as it is being made. */
#ifndef EDDY_PROGRAM_PASSES_PASSES_H
#define EDDY_PROGRAM_PASSES_PASSES_H

#include <eddy/program.h>
#include <program/bases.h>
#include <program/code.h>

/* A bit for each pass. */
typedef enum eddy_pass {
#define EDDY_PASS_ROW(name, sentence) EDDY_PASS_NUMBER_##name,
    EDDY_PASS_LIST(EDDY_PASS_ROW) EDDY_FAST_PASS_LIST(EDDY_PASS_ROW)
        EDDY_MEMORY_PASS_LIST(EDDY_PASS_ROW)
#undef EDDY_PASS_ROW
            EDDY_PASS_COUNT
} eddy_pass;

/* Those that leave instructions out. */
#define EDDY_PASSES_REDUCING                                                                       \
    (1u << EDDY_PASS_NUMBER_cast | 1u << EDDY_PASS_NUMBER_transfer | 1u << EDDY_PASS_NUMBER_dead | \
     1u << EDDY_PASS_NUMBER_same | 1u << EDDY_PASS_NUMBER_richer)
/* Those whose ops devices of calls (cut.h) have no kernels for. */
#define EDDY_PASSES_OF_HOST (1u << EDDY_PASS_NUMBER_accumulate | 1u << EDDY_PASS_NUMBER_subbatch)
/* Those that say what runs together, and where results lie: of the code of two sizes they need that it is alike. They come last. */
#define EDDY_PASSES_GROUPING (1u << EDDY_PASS_NUMBER_fuse | 1u << EDDY_PASS_NUMBER_place)

/* Runs the passes whose bits are set. False without memory: the code is as it was, or as some of the passes have left it. */
EDDY_MUST_USE bool eddy_passes_run(eddy_code *code, eddy_bases *bases, uint32_t passes);
/* The same for the code of two sizes, `most` the larger, which are alike but for dims, strides, offsets, bytes and attributes: what pays is decided by
 * `most`, and done to both where it may be done in both. A pass that finds other equal layouts in one of them leaves code that is not
 * alike: who calls looks at it before the next ones of EDDY_PASSES_GROUPING. */
EDDY_MUST_USE bool eddy_passes_run_both(eddy_code *most, eddy_code *least, const uint32_t *bases,
                                        uint32_t passes);

/* ---- one by one ---- bases: per value, 0 for those that live within a run */

/* Leaves out copies, and casts back, of what stays as it is; casts of casts become one. */
EDDY_MUST_USE bool eddy_pass_cast(eddy_code *code, const uint32_t *bases);

/* Leaves out copies back to the device that elements came from, and copies on from there. */
EDDY_MUST_USE bool eddy_pass_transfer(eddy_code *code, const uint32_t *bases);

/* Leaves out instructions that nobody needs: all that they write lives within the run, and is not read afterwards. */
EDDY_MUST_USE bool eddy_pass_dead(eddy_code *code, const uint32_t *bases);

/* Common subexpressions: leaves out instructions that compute what an earlier one has computed. */
EDDY_MUST_USE bool eddy_pass_same(eddy_code *code, const uint32_t *bases);

/* Leaves out instructions whose result is among those of a richer op of the same operand. */
EDDY_MUST_USE bool eddy_pass_richer(eddy_code *code, const uint32_t *bases);

/* fast: images lie channels-last between convolutions. */
EDDY_MUST_USE bool eddy_pass_layout(eddy_code *code, const uint32_t *bases);

/* memory: gradients of weights are added up over sub-batches. It adds values. */
EDDY_MUST_USE bool eddy_pass_subbatch(eddy_code *code, const uint32_t *bases);

/* fast: a product that is only added to a value is computed there (product_op.h). */
EDDY_MUST_USE bool eddy_pass_accumulate(eddy_code *code, const uint32_t *bases);

/* fast: convolutions get their fast kernels, which use Winograd's algorithm where it serves. */
EDDY_MUST_USE bool eddy_pass_winograd(eddy_code *code, const uint32_t *bases);

/* Leaves out copies whose source can be written to their target at once. */
EDDY_MUST_USE bool eddy_pass_move(eddy_code *code, const uint32_t *bases);
/* sized: code that is alike, and whose sizes say what pays. */
EDDY_MUST_USE bool eddy_pass_move_as(eddy_code *code, const eddy_code *sized,
                                     const uint32_t *bases);

/* Groups elementwise instructions that read or write common values, so that they run tile by tile (fused.h). */
EDDY_MUST_USE bool eddy_pass_fuse(eddy_code *code, const uint32_t *bases);
/* least: code that is alike, in which the groups may be as well. */
EDDY_MUST_USE bool eddy_pass_fuse_both(eddy_code *most, eddy_code *least, const uint32_t *bases);

/* Results of elementwise instructions take over the memory of an operand that is used there for the last time. */
EDDY_MUST_USE bool eddy_pass_place(eddy_code *code, const uint32_t *bases);

#endif
