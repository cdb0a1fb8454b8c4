/* What calls take on this machine, alone and with helpers, as measured while running. An estimate says nothing of either. */
#ifndef EDDY_VM_PRICE_H
#define EDDY_VM_PRICE_H

#include <stdbool.h>
#include <stdint.h>

/* An op at a class of cost. Of the process; threads may meet in it, and an update may be lost. */
typedef struct eddy_price eddy_price;

/* `op` is the op's name, known by its address. Never NULL; what has not been called for long may have been forgotten. */
eddy_price *eddy_price_find(const char *op, uint32_t cost_ns);
/* Whether its slices should be offered to helpers now: as far as known, the better way; now and then, and at first, the other one. */
bool eddy_price_asks_helpers(eddy_price *price);
/* It was run so, and took so long. */
void eddy_price_note(eddy_price *price, bool has_asked, int64_t ns);
/* What it takes alone, and whether helpers are known to be of no use; 0 and false while unknown. */
int64_t eddy_price_alone_ns(const eddy_price *price);
bool eddy_price_is_whole(const eddy_price *price);

#endif
