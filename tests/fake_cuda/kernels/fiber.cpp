/* On x86-64 a switch saves what a called function must, which takes nanoseconds. ucontext, which asks the system to keep the mask of
 * signals, takes a hundred times as long. */
#include <stdint.h>
#include <tests/fake_cuda/kernels/fiber.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {
}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {
}
#endif

#ifdef __x86_64__
extern "C" void eddy_fiber_exchange(void **save, void *load);
asm(R"(
        .text
        .globl eddy_fiber_exchange
        .hidden eddy_fiber_exchange
        .type eddy_fiber_exchange, @function
eddy_fiber_exchange:
        push %rbp
        push %rbx
        push %r12
        push %r13
        push %r14
        push %r15
        mov %rsp, (%rdi)
        mov %rsi, %rsp
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbx
        pop %rbp
        ret
        .size eddy_fiber_exchange, . - eddy_fiber_exchange
)");

/* What the first switch pops: six registers and the function. A function begins 8 bytes off a multiple of 16. */
void eddy_fiber_init(eddy_fiber *fiber, void *stack, size_t bytes, void (*run)(void)) {
    uintptr_t top = ((uintptr_t)stack + bytes) / 16 * 16;
    void **frame = (void **)top - 8;
    for (int i = 0; i < 8; i++)
        frame[i] = nullptr;
    frame[6] = (void *)run;
    *fiber = {frame, stack, bytes, nullptr};
}

static void exchange(eddy_fiber *from, eddy_fiber *to) {
    eddy_fiber_exchange(&from->pointer, to->pointer);
}
#else
void eddy_fiber_init(eddy_fiber *fiber, void *stack, size_t bytes, void (*run)(void)) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, run, 0);
    fiber->stack = stack;
    fiber->bytes = bytes;
}

static void exchange(eddy_fiber *from, eddy_fiber *to) {
    swapcontext(&from->context, &to->context);
}
#endif

void eddy_fiber_begin(eddy_fiber *from) {
    __sanitizer_finish_switch_fiber(nullptr, &from->stack, &from->bytes);
}

void eddy_fiber_switch(eddy_fiber *from, eddy_fiber *to, bool is_last) {
    __sanitizer_start_switch_fiber(is_last ? nullptr : &from->fake, to->stack, to->bytes);
    exchange(from, to);
    __sanitizer_finish_switch_fiber(from->fake, &to->stack, &to->bytes);
}
