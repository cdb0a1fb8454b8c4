/* Whether the calls of two recordings are the same.
 *
 * alike: but for sizes, which a recording of another size differs in (foretell_gradient.c). */
#ifndef EDDY_PROGRAM_CALLS_ALIKE_H
#define EDDY_PROGRAM_CALLS_ALIKE_H

#include <program/gradient_calls.h>

bool eddy_calls_call_is_alike(const eddy_calls_call *a, const eddy_calls_call *b);
bool eddy_calls_loop_is_alike(const eddy_calls_loop *a, const eddy_calls_loop *b);
bool eddy_calls_place_is_alike(const eddy_calls_place *a, const eddy_calls_place *b);
bool eddy_calls_saved_is_equal(const eddy_calls_saved *a, const eddy_calls_saved *b);
bool eddy_calls_number_is_equal(const eddy_calls_number *a, const eddy_calls_number *b);

/* All of it, sizes too. */
bool eddy_calls_is_equal(const eddy_gradient_calls *a, const eddy_gradient_calls *b);

#endif
