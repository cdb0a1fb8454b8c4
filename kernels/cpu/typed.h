/* Functions compiled once for each element type: a file x_<element>_block.c defines EDDY_ELEMENT (the suffix of its names) and
 * EDDY_REAL (its C type), and includes x_typed.h. */
#ifndef EDDY_KERNELS_CPU_TYPED_H
#define EDDY_KERNELS_CPU_TYPED_H

#include <kernels/cpu/isa.h>

/* name_f32 where EDDY_ELEMENT is f32. */
#define EDDY_TYPED(name) EDDY_ISA_PASTE(name, EDDY_ELEMENT)

typedef EDDY_REAL real;

#endif
