/* Instruction sets: the files named *_block.c are compiled once per instruction set and export one table of functions
 * each. All other files are compiled once and select the table at run time.
 *
 * A block file is compiled with EDDY_ISA_SUFFIX set to portable, v2, v3 or v4. The build's option isa says which of them
 * exist: for each level, EDDY_ISA_FOR_<LEVEL> is the suffix of the table that serves it (meson.build). Only this file and
 * eddy_isa_served_by depend on it: other code gets a level's table from name_for(level). */
#ifndef EDDY_KERNELS_CPU_ISA_H
#define EDDY_KERNELS_CPU_ISA_H

#include <base/cpu.h>

#define EDDY_ISA_PASTE_(name, suffix) name##_##suffix
#define EDDY_ISA_PASTE(name, suffix) EDDY_ISA_PASTE_(name, suffix)
/* The name under which a block file exports its table. */
#define EDDY_ISA_NAME(name) EDDY_ISA_PASTE(name, EDDY_ISA_SUFFIX)
/* The name of the table that serves a level; several levels may share one. */
#define EDDY_ISA_TABLE(name, level) EDDY_ISA_PASTE(name, EDDY_ISA_FOR_##level)

/* Declares the tables and the functions that return one: name_for(isa) for a level, name() for the chosen level. */
#define EDDY_ISA_DECLARE(type, name)                                                               \
    extern const type EDDY_ISA_TABLE(name, PORTABLE), EDDY_ISA_TABLE(name, V2),                    \
        EDDY_ISA_TABLE(name, V3), EDDY_ISA_TABLE(name, V4);                                        \
    static inline const type *name##_for(eddy_isa isa) {                                           \
        return isa >= EDDY_ISA_V4   ? &EDDY_ISA_TABLE(name, V4)                                    \
               : isa >= EDDY_ISA_V3 ? &EDDY_ISA_TABLE(name, V3)                                    \
               : isa >= EDDY_ISA_V2 ? &EDDY_ISA_TABLE(name, V2)                                    \
                                    : &EDDY_ISA_TABLE(name, PORTABLE);                             \
    }                                                                                              \
    static inline const type *name(void) {                                                         \
        return name##_for(eddy_isa_chosen());                                                      \
    }

#endif
