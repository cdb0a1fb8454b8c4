/* A stack of its own, on which a function runs until it hands over to another one. All on one thread. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_FIBER_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_FIBER_H

#include <stddef.h>
#include <ucontext.h>

struct eddy_fiber {
#ifdef __x86_64__
    void *pointer; /* of the stack, while another fiber runs */
#else
    ucontext_t context;
#endif
    const void
        *stack; /* its lowest byte; of the thread's own stack AddressSanitizer alone knows it */
    size_t bytes;
    void *fake; /* AddressSanitizer's */
};

/* `run` takes over when the fiber is switched to first, and does not return. It begins with eddy_fiber_begin. */
void eddy_fiber_init(eddy_fiber *fiber, void *stack, size_t bytes, void (*run)(void));

/* Tells where it came from. */
void eddy_fiber_begin(eddy_fiber *from);

/* Returns when somebody switches to `from` again; with `is_last` nobody will. */
void eddy_fiber_switch(eddy_fiber *from, eddy_fiber *to, bool is_last);

#endif
