/* A lock that nobody may hold who waits for anything but a leaf lock: the VM's submission lock. Check builds follow who holds one, and
 * stop where its holder begins to wait, works for others or takes a second one; elsewhere nothing is left of this. */
#ifndef EDDY_BASE_ORDER_H
#define EDDY_BASE_ORDER_H

#ifdef EDDY_CHECKS
/* The calling thread has taken one, or gives it up. */
void eddy_order_held(void);
void eddy_order_given_up(void);
/* The calling thread holds none. */
void eddy_order_check(void);
#else
static inline void eddy_order_held(void) {
}
static inline void eddy_order_given_up(void) {
}
static inline void eddy_order_check(void) {
}
#endif

#endif
