/* Where oneDNN has Winograd's algorithm: version 2 on processors with AVX-512. Asks the library, not Eddy. */
#ifndef EDDY_TESTS_KERNELS_WINOGRAD_H
#define EDDY_TESTS_KERNELS_WINOGRAD_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#ifdef EDDY_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

/* In the portable build, or with EDDY_ISA=portable, Eddy does not call the library. */
static inline bool winograd_is_there(void) {
#ifdef EDDY_HAVE_DNNL
    return eddy_isa_chosen() != EDDY_ISA_PORTABLE && dnnl_version()->major == 2 &&
           (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
#else
    return false;
#endif
}

#endif
