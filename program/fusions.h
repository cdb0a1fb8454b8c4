/* Fusions: calls in a row of a device that runs no code of the host, which are one kernel where that has been made (streams/made_kernel.h). Until then, and where it cannot be made, they are the calls that they are
 * (cut.h).
 *
 *   partitions   | linear | add | relu | mul | sum |         calls
 *                         '-- one instruction --'            once there is a kernel
 *
 * In rounds (rounds.h) they are steps, and one launch of the round; either is a place in the order of the run.
 *
 * Members are elementwise calls and copies of one shape. A value that one of them writes, the others see in the same places, so that a thread needs no other's results. What lives within the fusion alone is
 * never in memory. Each result depends on the same tensors, those that the fusion reads or writes in part: so what an error among them leaves is what it leaves call by call. For the same reason what is there
 * afterwards is written once, or each time with the errors of the same tensors. */
#ifndef EDDY_PROGRAM_FUSIONS_H
#define EDDY_PROGRAM_FUSIONS_H

#include <kernels/fusion.h>
#include <program/executable.h>
#include <streams/made_kernel.h>

typedef struct eddy_program eddy_program;

/* An operand of the kernel: an input, or an output. */
typedef struct eddy_fused_view {
    eddy_place place;               /* of its first element; `view` has no meaning */
    uint32_t user;                  /* the place in the order that uses it first, or writes it */
    uint32_t operand;               /* of the code, of that */
    uint8_t access;                 /* EDDY_CODE_* bits of that */
    uint8_t dtype;                  /* eddy_dtype */
    int64_t strides[EDDY_RANK_MAX]; /* elements */
    int64_t low, high;              /* bytes that it takes, from its first element on */
} eddy_fused_view;

typedef struct eddy_fused_calls {
    eddy_made_kernel *kernel; /* a reference */
    uint32_t first, count;    /* partitions, or steps */
    uint32_t view_count, input_count;
    eddy_fused_view views[EDDY_FUSION_OPERANDS]; /* inputs, then outputs */
    int32_t rank;                                /* of all views, dims merged */
    int64_t dims[EDDY_RANK_MAX];
    int64_t words[EDDY_FUSION_WORDS]; /* attributes, but for those that a run fills in */
    uint32_t word_count;
    eddy_patch patches[EDDY_FUSION_WORDS];
    uint32_t patch_count;
    int64_t cost_ps;
    uint32_t last; /* the instruction that stands for all of them in messages */
    uint32_t
        blamed; /* the member that any error of what is read comes to: it gives the first output */
} eddy_fused_calls;

/* Finds the fusions of a program whose executable is made but for them; their kernels begin to be made. False without memory. */
EDDY_MUST_USE bool eddy_fusions_make(eddy_program *program);
/* The number of the first that begins at the place or behind it; the number of all: none does. */
uint32_t eddy_fusions_from(const eddy_fusions *fusions, uint32_t place);
/* The attributes with a run's words, to room for word_count. */
void eddy_fused_calls_fill(const eddy_fused_calls *calls, const int64_t *words, int64_t *to);
/* Runs the kernel, which is there: `data` has where each view's first element is, `call` team, error and launch. */
void eddy_fused_calls_run(const eddy_fused_calls *calls, char *const *data,
                          const int64_t *attributes, eddy_kernel_call *call);
void eddy_fusions_fini(eddy_fusions *fusions);
/* Waits until all kernels are there, or known not to come. */
void eddy_fusions_await(const eddy_fusions *fusions);
int64_t eddy_fusions_bytes(const eddy_fusions *fusions);

#endif
