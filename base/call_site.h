/* Where a public function was called from: its return address, or, if EDDY_CALL_SITES noted "file:line" for the call, a site
 * that holds both.
 *
 * Tape nodes and records of instructions carry one machine word about their call, which a late error may need after the caller has
 * returned. The word is a return address or the address of a site: an entry of a table of the process, one for each pair. Code that
 * shows the word asks for the two parts. Any thread; look-ups take no lock. */
#ifndef EDDY_BASE_CALL_SITE_H
#define EDDY_BASE_CALL_SITE_H

#include <base/assert.h>
#include <eddy/call_sites.h>

/* <calling thread> only: what EDDY_CALL_SITES noted. */
extern _Thread_local const char *eddy_call_site_noted
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The site of this address and the noted place; the address itself if the table is full. */
const void *eddy_call_site_intern(const void *address);

/* In a public function: the word about its call. */
#define EDDY_CALL_ADDRESS()                                                                        \
    (EDDY_LIKELY(eddy_call_site_noted == NULL)                                                     \
         ? (const void *)__builtin_return_address(0)                                               \
         : eddy_call_site_intern(__builtin_return_address(0)))

/* The two parts: the return address, and the place or NULL. */
const void *eddy_call_site_address(const void *word);
const char *eddy_call_site_place(const void *word);

/* The call that an error or an instruction comes from. */
typedef struct eddy_origin {
    const char *op;      /* the public function without eddy_, static text; NULL: none */
    const void *address; /* the word about its call, or NULL */
} eddy_origin;

/* In a public function. */
#define EDDY_ORIGIN(op) ((eddy_origin){op, EDDY_CALL_ADDRESS()})

/* In a forked child. */
void eddy_call_site_fork_child(void);

#endif
