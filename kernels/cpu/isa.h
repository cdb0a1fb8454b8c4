/* Instruction sets: the files named *_block.c are compiled once per instruction set and export one table of functions
 * each; everything else is compiled once and picks the table at run time.
 *
 * A block file is compiled with EDDY_ISA_SUFFIX set to portable, v2, v3 or v4 (see meson.build); EDDY_ISA_TABLES says
 * that the build has the x86-64 ones. */
#ifndef EDDY_KERNELS_CPU_ISA_H
#define EDDY_KERNELS_CPU_ISA_H

#include <base/cpu.h>

#ifndef EDDY_ISA_SUFFIX
#define EDDY_ISA_SUFFIX portable
#endif

#define EDDY_ISA_PASTE_(name, suffix) name##_##suffix
#define EDDY_ISA_PASTE(name, suffix) EDDY_ISA_PASTE_(name, suffix)
/* The name under which a block file exports its table. */
#define EDDY_ISA_NAME(name) EDDY_ISA_PASTE(name, EDDY_ISA_SUFFIX)

#ifdef EDDY_ISA_TABLES
#define EDDY_ISA_DECLARE_FOR(type, name)                                                                               \
    extern const type name##_portable, name##_v2, name##_v3, name##_v4;                                                \
    static inline const type *name##_for(eddy_isa isa) {                                                               \
        return isa >= EDDY_ISA_V4   ? &name##_v4                                                                       \
               : isa >= EDDY_ISA_V3 ? &name##_v3                                                                       \
               : isa >= EDDY_ISA_V2 ? &name##_v2                                                                       \
                                    : &name##_portable;                                                                \
    }
#else
#define EDDY_ISA_DECLARE_FOR(type, name)                                                                               \
    extern const type name##_portable;                                                                                 \
    static inline const type *name##_for(eddy_isa isa) {                                                               \
        (void)isa;                                                                                                     \
        return &name##_portable;                                                                                       \
    }
#endif

/* Declares the tables and what answers one: name_for(isa) the one for a level, name() the one for the chosen level. */
#define EDDY_ISA_DECLARE(type, name)                                                                                   \
    EDDY_ISA_DECLARE_FOR(type, name)                                                                                   \
    static inline const type *name(void) {                                                                             \
        return name##_for(eddy_isa_chosen());                                                                          \
    }

#endif
