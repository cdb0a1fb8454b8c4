/* Fields of option structs, which may be NULL or come from a program compiled with an older library. */
#ifndef EDDY_BASE_OPTION_H
#define EDDY_BASE_OPTION_H

#include <base/clock.h>
#include <stddef.h>
#include <stdint.h>

/* A field of an option struct that may be NULL or older (shorter) than this library's: 0 if the struct lacks it.
 * A size of 0 means the struct of version 0.2. */
#define EDDY_HAS_OPTION(options, field)                                                            \
    ((options) != NULL &&                                                                          \
     ((options)->size == 0 ||                                                                      \
      (options)->size >= offsetof(__typeof__(*(options)), field) + sizeof((options)->field)))
#define EDDY_OPTION(options, field) (EDDY_HAS_OPTION(options, field) && (options)->field)

/* The deadline of a call with these options: their field `timeout` from now; 0 means none. */
#define EDDY_OPTION_DEADLINE(options)                                                              \
    (EDDY_OPTION(options, timeout) ? eddy_clock_deadline((options)->timeout) : EDDY_CLOCK_FOREVER)

#endif
