/* What a thread does that finds something wrong with its element: as eddy_kernel_fail on the host. */
#ifndef EDDY_KERNELS_CUDA_FAIL_CUH
#define EDDY_KERNELS_CUDA_FAIL_CUH

#include <kernels/cuda/device.cuh>

/* Records a failure; the one with the lowest position is kept. Later launches do nothing then. The thread may go on, or end: what is written to the outputs is lost. But it
 * accesses nothing that the element would have named.
 *
 * The word is the launch's own, so that threads of one device alone compete for it until the launch is complete. It holds more than an atomic operation writes, so it has a guard. Nobody waits within the guard, not
 * even for the other threads of a warp, since what a holder does stands in the body of the loop, which it leaves by its condition alone (a flag would let the compiler move the body behind the loop): the holder comes to its release whatever the others do, as threads of a warp are scheduled
 * one by one from capability 7.0 on. Whose position is not the lowest any more, which most find out at once, needs no guard and leaves. */
EDDY_SCALAR void eddy_cuda_fail(const eddy_cuda_gate &gate, eddy_status status, int64_t position,
                                int64_t value, int64_t bound) {
    eddy_cuda_word *const own = eddy_cuda_word_of(gate);
    volatile eddy_cuda_word *word = own;
    const uint64_t ticket = eddy_cuda_ticket(gate);
    *(volatile uint64_t *)&gate.marks[ticket % EDDY_CUDA_WORDS] = ticket;
    EDDY_CUDA_ROLLED
    while (position < word->position) {
        if (atomicCAS_system(&own->guard, 0u, 1u) != 0)
            continue;
        __threadfence_system();
        if (position < word->position) {
            word->value = value;
            word->bound = bound;
            word->status = status;
            word->position = position;
        }
        __threadfence_system();
        atomicExch_system(&own->guard, 0u);
    }
}

#endif
