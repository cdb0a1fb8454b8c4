/* File and line of calls, for errors.
 *
 * A program that defines EDDY_CALL_SITES before it includes <eddy/eddy.h> has each call that can fail wrapped in EDDY_AT_CALL_SITE, and
 * errors, also late ones, then name "file:line" beside the return address; so do the lines of eddy_leaks_report. Each op costs
 * two more calls and a table look-up. The first 8192 places of a program are recorded; later ones have the address
 * alone. GNU C and C++ only. */
#ifndef EDDY_CALL_SITES_H
#define EDDY_CALL_SITES_H

#include <eddy/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Notes the place ("file:line", in static storage; NULL for none) of this thread's next calls, until one fails, and returns the place noted
 * before, so that a nested call can restore it. Never blocks, never fails. */
EDDY_API const char *eddy_call_site_set(const char *place);

#ifdef __cplusplus
}
#define EDDY_CALL_SITE_AUTO auto
#else
#define EDDY_CALL_SITE_AUTO __auto_type
#endif

#define EDDY_CALL_SITE_TEXT_(x) #x
#define EDDY_CALL_SITE_TEXT(x) EDDY_CALL_SITE_TEXT_(x)
#define EDDY_CALL_SITE_PLACE __FILE__ ":" EDDY_CALL_SITE_TEXT(__LINE__)

/* The call's value, which must not be void. Arguments that are wrapped calls themselves are evaluated inside, each under
 * its own place. */
#define EDDY_AT_CALL_SITE(...) EDDY_AT_CALL_SITE_(__COUNTER__, __VA_ARGS__)
#define EDDY_AT_CALL_SITE_(number, ...) EDDY_AT_CALL_SITE__(number, __VA_ARGS__)
#define EDDY_AT_CALL_SITE__(number, ...)                                                           \
    (__extension__({                                                                               \
        const char *eddy_outer_##number = eddy_call_site_set(EDDY_CALL_SITE_PLACE);                \
        EDDY_CALL_SITE_AUTO eddy_result_##number = __VA_ARGS__;                                    \
        eddy_call_site_set(eddy_outer_##number);                                                   \
        eddy_result_##number;                                                                      \
    }))

/* The same for a call without a value. */
#define EDDY_AT_CALL_SITE_VOID(...) EDDY_AT_CALL_SITE_VOID_(__COUNTER__, __VA_ARGS__)
#define EDDY_AT_CALL_SITE_VOID_(number, ...) EDDY_AT_CALL_SITE_VOID__(number, __VA_ARGS__)
#define EDDY_AT_CALL_SITE_VOID__(number, ...)                                                      \
    (__extension__({                                                                               \
        const char *eddy_outer_##number = eddy_call_site_set(EDDY_CALL_SITE_PLACE);                \
        __VA_ARGS__;                                                                               \
        (void)eddy_call_site_set(eddy_outer_##number);                                             \
    }))

#endif
