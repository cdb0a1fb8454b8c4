/* C11 atomics with the memory order in the name. The only way to access shared fields in this library; standalone
 * fences are not used (ThreadSanitizer does not understand them). */
#ifndef EDDY_BASE_ATOMIC_H
#define EDDY_BASE_ATOMIC_H

#include <stdatomic.h>

#define eddy_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define eddy_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define eddy_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)
#define eddy_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define eddy_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define eddy_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define eddy_exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define eddy_exchange_release(p, v) atomic_exchange_explicit((p), (v), memory_order_release)
#define eddy_exchange_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define eddy_exchange_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define eddy_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define eddy_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define eddy_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define eddy_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define eddy_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define eddy_sub_release(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_release)
#define eddy_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define eddy_sub_seq_cst(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst)
#define eddy_or_relaxed(p, v) atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define eddy_or_seq_cst(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define eddy_and_seq_cst(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)
#define eddy_or_acq_rel(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
/* Weak or strong compare and exchange: on success `order`, on failure a relaxed (acquire for the _acq forms) load. */
#define eddy_cas_relaxed(p, expected, desired)                                                     \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_relaxed,      \
                                            memory_order_relaxed)
#define eddy_cas_acquire(p, expected, desired)                                                     \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acquire,      \
                                            memory_order_relaxed)
#define eddy_cas_release(p, expected, desired)                                                     \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_release,      \
                                            memory_order_relaxed)
#define eddy_cas_acq_rel(p, expected, desired)                                                     \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acq_rel,      \
                                            memory_order_acquire)
#define eddy_cas_seq_cst(p, expected, desired)                                                     \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_seq_cst,      \
                                            memory_order_seq_cst)

#define EDDY_CACHE_LINE 64

/* Tells the core that this is a spin loop. */
static inline void eddy_atomic_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
