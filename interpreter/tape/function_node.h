/* The node of a custom function (<eddy/function.h>).
 *
 * Threads: any. */
#ifndef EDDY_INTERPRETER_TAPE_FUNCTION_NODE_H
#define EDDY_INTERPRETER_TAPE_FUNCTION_NODE_H

#include <eddy/function.h>
#include <interpreter/tape/autograd.h>

/* The function of a node; NULL if it is that of another call. */
const eddy_function *eddy_function_of(const eddy_autograd_node *node);
/* Whether it has said that its backward depends on its arguments alone. */
bool eddy_function_is_pure(const eddy_function *function);
/* eddy_autograd_node_copy of such a node: it shares the context. */
eddy_autograd_node *eddy_function_copy(const eddy_autograd_node *node);

#endif
