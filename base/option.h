/* Fields of option structs, which a caller may leave out, or have from an older library. */
#ifndef EDDY_BASE_OPTION_H
#define EDDY_BASE_OPTION_H

#include <base/clock.h>
#include <stddef.h>
#include <stdint.h>

/* A field of an option struct that may be NULL or older (shorter) than this library's: 0 where it is not there.
 * A size of 0 stands for the struct of version 0.2. */
#define EDDY_HAS_OPTION(options, field)                                                            \
    ((options) != NULL &&                                                                          \
     ((options)->size == 0 ||                                                                      \
      (options)->size >= offsetof(__typeof__(*(options)), field) + sizeof((options)->field)))
#define EDDY_OPTION(options, field) (EDDY_HAS_OPTION(options, field) && (options)->field)

/* When a call with these options gives up waiting: their field `timeout` from now, 0 means never. */
#define EDDY_OPTION_DEADLINE(options)                                                              \
    (EDDY_OPTION(options, timeout) ? eddy_clock_deadline((options)->timeout) : EDDY_CLOCK_FOREVER)

#endif
