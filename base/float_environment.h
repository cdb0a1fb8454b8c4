/* The default floating-point environment round a kernel: round to nearest, subnormals kept, exceptions masked.
 *
 * Enter and leave enclose a call through a pointer, across which the compiler cannot move arithmetic. If the
 * environment is the default one already they cost one read of the control register. On x86 this is that of SSE; x87's, which
 * only long double uses, is not changed. */
#ifndef EDDY_BASE_FLOAT_ENVIRONMENT_H
#define EDDY_BASE_FLOAT_ENVIRONMENT_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef uint32_t eddy_float_environment; /* MXCSR */

#define EDDY_MXCSR_DEFAULT 0x1f80u
#define EDDY_MXCSR_FLAGS 0x003fu /* sticky exception flags: no part of the environment */

static inline eddy_float_environment eddy_float_environment_enter(void) {
    uint32_t before = _mm_getcsr();
    if (__builtin_expect((before & ~EDDY_MXCSR_FLAGS) != EDDY_MXCSR_DEFAULT, 0))
        _mm_setcsr(EDDY_MXCSR_DEFAULT);
    return before;
}

static inline void eddy_float_environment_leave(eddy_float_environment before) {
    if (__builtin_expect((before & ~EDDY_MXCSR_FLAGS) != EDDY_MXCSR_DEFAULT, 0))
        _mm_setcsr(before);
}

#elif defined(__aarch64__)

typedef uint64_t eddy_float_environment; /* FPCR, whose default is 0 */

static inline void eddy_float_environment_write(uint64_t fpcr) {
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr) : "memory");
}

static inline eddy_float_environment eddy_float_environment_enter(void) {
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before) : : "memory");
    if (__builtin_expect(before != 0, 0))
        eddy_float_environment_write(0);
    return before;
}

static inline void eddy_float_environment_leave(eddy_float_environment before) {
    if (__builtin_expect(before != 0, 0))
        eddy_float_environment_write(before);
}

#else
#include <fenv.h>

typedef fenv_t eddy_float_environment;

static inline eddy_float_environment eddy_float_environment_enter(void) {
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void eddy_float_environment_leave(eddy_float_environment before) {
    fesetenv(&before);
}
#endif

#endif
