/* The manual page eddy(1), from the table of commands. */
#ifndef TOOLS_EDDY_MANUAL_H
#define TOOLS_EDDY_MANUAL_H

void manual_put(void);

#endif
