/* The order of locks. A lock with a rank is taken only by who holds none of its rank or a higher one, and nobody waits, works for others or
 * calls user code while holding one. Check builds follow what each thread holds, and stop where that is broken; elsewhere nothing is
 * left of this. */
#ifndef EDDY_BASE_ORDER_H
#define EDDY_BASE_ORDER_H

typedef enum eddy_lock_rank {
    EDDY_RANK_NONE,       /* not followed: what is held while others work, or over user code */
    EDDY_RANK_SUBMISSION, /* a VM's; its holder waits for nothing but what follows */
    EDDY_RANK_POOLS,      /* the list of all pools of blocks */
    EDDY_RANK_POOL,       /* one pool's bins */
    EDDY_RANK_LEAF,       /* no other is taken under it */
} eddy_lock_rank;

#ifdef EDDY_CHECKS
/* The calling thread takes one (before it does), or gives it up. */
void eddy_order_taken(eddy_lock_rank rank);
void eddy_order_given_up(eddy_lock_rank rank);
/* The calling thread holds none. */
void eddy_order_check(void);
#else
static inline void eddy_order_check(void) {
}
#endif

#endif
