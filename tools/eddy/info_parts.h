/* What `eddy info` finds out besides calls of the library: the processor, and the libraries that it stands on. */
#ifndef TOOLS_EDDY_INFO_PARTS_H
#define TOOLS_EDDY_INFO_PARTS_H

#include "command.h"

#include <eddy/device.h>
#include <jansson.h>
#include <stddef.h>

/* "v4", of the running process; NULL: it cannot be found out. Wants a runtime that runs. */
const char *info_isa_used(void);
/* The highest that the processor has. */
const char *info_isa_offered(void);
/* "sse4.2 avx2 ...": those that kernels may use. */
void info_processor_words(char *buffer, size_t size);

/* A line below others; further ones of it are indented by 4 more. */
void info_say(int indent, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* json: NULL for text. */
void info_show_cuda(const eddy_device_info *info, json_t *json);
void info_show_libraries(json_t *json);

#endif
