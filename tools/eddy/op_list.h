/* The op list, as ops.json has it. */
#ifndef TOOLS_EDDY_OP_LIST_H
#define TOOLS_EDDY_OP_LIST_H

#include "command.h"

#include <jansson.h>

/* From where it was installed, or from the build; freed with json_decref. NULL: it has said why it cannot be read. */
json_t *op_list_load(const tool_arguments *arguments);

/* Ops and compositions, one after the other; NULL behind the last. */
json_t *op_list_at(const json_t *list, size_t i);
json_t *op_list_find(const json_t *list, const char *name);
/* The text of a field; "" where there is none. */
const char *op_text(const json_t *object, const char *field);
const char *op_family(const json_t *op);

/* Everything about the op, for a terminal. */
void op_page_print(const json_t *op);

#endif
