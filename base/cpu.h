/* The processors this process may use, and the instruction sets they have. */
#ifndef EDDY_BASE_CPU_H
#define EDDY_BASE_CPU_H

#include <stddef.h>
#include <stdint.h>

/* Levels that kernels are built for; the higher include the lower. The numbers are the x86-64 psABI's. */
#define EDDY_ISA_LIST(row)                                                                         \
    row(PORTABLE, portable) /* the compiler's default for the machine's family */                  \
        row(V2, v2)         /* SSE4.2, POPCNT */                                                   \
        row(V3, v3)         /* AVX2, FMA, BMI2, F16C */                                            \
        row(V4, v4)         /* AVX-512 F, BW, CD, DQ, VL */

typedef enum eddy_isa {
#define EDDY_ISA_ROW(enumerator, name) EDDY_ISA_##enumerator,
    EDDY_ISA_LIST(EDDY_ISA_ROW)
#undef EDDY_ISA_ROW
        EDDY_ISA_COUNT
} eddy_isa;

/* min(affinity mask of the calling thread, the cgroup's CPU quota rounded up), at least 1. Reads files: for start-up. */
int32_t eddy_cpu_count(void);

/* The name that the processor gives itself, cut off to `size` bytes (1 or more) with its final 0; "" where it gives none. */
void eddy_cpu_name(char *name, size_t size);

/* The highest level of this machine that the operating system has enabled. Constant; cached; any thread. */
eddy_isa eddy_isa_machine(void);

/* The level to use, constant for the life of the process: that of an eddy_isa_choose before the first call of this, else
 * that of the environment variable EDDY_ISA, else the machine's. A level above the machine's counts as the machine's.
 * A starting runtime chooses the level (eddy_options_choose_isa), so this reads the variable only if there is no runtime. */
eddy_isa eddy_isa_chosen(void);

/* Sets the level; without effect once it is set. Returns the level in use. EDDY_ISA_COUNT: the machine's. */
eddy_isa eddy_isa_choose(eddy_isa isa);

/* The level whose kernels serve `isa` in this library (option isa of the build): the highest that was built and is not
 * above it. A level below all of them gets the lowest, which the machine may not run: eddy_options_resolve refuses it. */
eddy_isa eddy_isa_served_by(eddy_isa isa);

/* "v3"; "?" for a value that is none. Static storage. */
const char *eddy_isa_name(eddy_isa isa);

/* The level of that name; EDDY_ISA_COUNT when there is none. */
eddy_isa eddy_isa_find(const char *name);

#endif
