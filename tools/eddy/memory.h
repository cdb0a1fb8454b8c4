/* Memory that is there: without it the command says so and ends with TOOL_FAILED. Nothing is half written then that was whole before; jansson and yajl take theirs here too, since neither says that a part is missing. Freed by free(). */
#ifndef TOOLS_EDDY_MEMORY_H
#define TOOLS_EDDY_MEMORY_H

#include <stddef.h>

void *tool_malloc(size_t bytes);
/* All 0. */
void *tool_calloc(size_t count, size_t bytes);
void *tool_realloc(void *block, size_t count, size_t bytes);
char *tool_strdup(const char *text);

#endif
