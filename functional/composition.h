/* Functions made of ops and views, as eddy_call sees them: names and attributes like those of an op, and one function instead of a
 * rule and a kernel. The table is generated from functional/ops/composition.toml. */
#ifndef EDDY_FUNCTIONAL_COMPOSITION_H
#define EDDY_FUNCTIONAL_COMPOSITION_H

#include <base/assert.h>
#include <base/call_site.h>
#include <interpreter/call/op.h>

typedef struct eddy_composition {
    eddy_op op; /* name, operands, attributes */
    /* inputs are as many as the operands, and may be NULL or EDDY_NONE; arguments is the attribute struct. */
    eddy_status (*run)(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                       eddy_origin origin);
} eddy_composition;

/* By name; NULL if there is none. Any thread. */
const eddy_composition *eddy_composition_find(const char *name);

/* einsum.c */
EDDY_MUST_USE eddy_status eddy_composition_einsum(eddy_list inputs, const void *arguments,
                                                  eddy_tensor **outputs, eddy_origin origin);
/* outer.c */
EDDY_MUST_USE eddy_status eddy_composition_outer(eddy_list inputs, const void *arguments,
                                                 eddy_tensor **outputs, eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_composition_meshgrid(eddy_list inputs, const void *arguments,
                                                    eddy_tensor **outputs, eddy_origin origin);
/* conv1d.c */
EDDY_MUST_USE eddy_status eddy_composition_conv1d(eddy_list inputs, const void *arguments,
                                                  eddy_tensor **outputs, eddy_origin origin);
/* prelu.c */
EDDY_MUST_USE eddy_status eddy_composition_prelu(eddy_list inputs, const void *arguments,
                                                 eddy_tensor **outputs, eddy_origin origin);
/* parts.c */
EDDY_MUST_USE eddy_status eddy_composition_split(eddy_list inputs, const void *arguments,
                                                 eddy_tensor **outputs, eddy_origin origin);
EDDY_MUST_USE eddy_status eddy_composition_chunk(eddy_list inputs, const void *arguments,
                                                 eddy_tensor **outputs, eddy_origin origin);

#endif
