/* The order of locks. A thread takes a lock with a rank only if it holds none of the same or a higher rank. While it holds one it does not
 * wait, run the work of other threads, or call user code. Check builds keep the locks of each thread and abort on a violation; other
 * builds contain none of this. */
#ifndef EDDY_BASE_ORDER_H
#define EDDY_BASE_ORDER_H

typedef enum eddy_lock_rank {
    EDDY_RANK_NONE, /* not checked: a lock that is held during other threads' work, or during user code */
    EDDY_RANK_SUBMISSION, /* a VM's submission lock; its holder waits only for the locks below */
    EDDY_RANK_POOLS,      /* the list of all pools of blocks */
    EDDY_RANK_POOL,       /* one pool's bins */
    EDDY_RANK_LEAF,       /* no lock of the library's own work is taken under it */
    EDDY_RANK_LISTENER,   /* of listeners (trace.h), who may be called under any other */
} eddy_lock_rank;

#ifdef EDDY_CHECKS
/* The calling thread is about to take a lock, or has released it. */
void eddy_order_taken(eddy_lock_rank rank);
void eddy_order_given_up(eddy_lock_rank rank);
/* The calling thread holds none. */
void eddy_order_check(void);
#else
static inline void eddy_order_check(void) {
}
#endif

#endif
