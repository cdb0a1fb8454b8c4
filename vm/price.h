/* The times of calls on this machine, alone and with helpers, measured at run time. Estimates cannot tell which is faster. */
#ifndef EDDY_VM_PRICE_H
#define EDDY_VM_PRICE_H

#include <stdbool.h>
#include <stdint.h>

/* An op in a class of cost. One for the process; threads may update it at once, and an update may be lost. */
typedef struct eddy_price eddy_price;

/* `what` is an op's name, or what else runs by itself (a program's executable), compared by address. Never NULL; an entry that was not used for long may be
 * replaced. */
eddy_price *eddy_price_find(const void *what, uint32_t cost_ns);
/* Whether its slices should be offered to helpers now: the faster way so far; at first, and now and then, the other way. */
bool eddy_price_asks_helpers(eddy_price *price);
/* Records the time of a run, with or without helpers. */
void eddy_price_note(eddy_price *price, bool has_asked, int64_t ns);
/* Its time alone, and whether helpers are known not to help; 0 and false while unknown. */
int64_t eddy_price_alone_ns(const eddy_price *price);
bool eddy_price_is_whole(const eddy_price *price);

#endif
