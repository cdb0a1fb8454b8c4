/* Names of ops as small numbers, for listeners (trace.h) that keep a name longer than its event. One table for the process; any thread; a name that is known costs a comparison. */
#ifndef EDDY_BASE_NAME_TABLE_H
#define EDDY_BASE_NAME_TABLE_H

#include <stdint.h>

#define EDDY_NAME_BYTES 40 /* the longest, with its 0 */

enum { EDDY_NAME_BITS = 10, EDDY_NAME_PROBES = 8 };
#define EDDY_NAMES_MOST ((1u << EDDY_NAME_BITS) + EDDY_NAME_PROBES)

/* The number of the name that lies at `name`, below EDDY_NAMES_MOST; 0 where it is too long or there is no room. Another name that comes to lie at the same place has none. The same text at several places
 * may have several numbers. */
uint32_t eddy_name_number(const char *name);
/* For good. */
const char *eddy_name_text(uint32_t number);
/* In a forked child: nobody is adding one. */
void eddy_name_table_fork_child(void);

#endif
