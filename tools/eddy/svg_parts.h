/* What pictures have in common: the page, texts in XML, colours. */
#ifndef TOOLS_EDDY_SVG_PARTS_H
#define TOOLS_EDDY_SVG_PARTS_H

#include "command.h"

#include <stddef.h>
#include <stdio.h>

/* Writes a picture of so many pixels to the file that --output names, or standard output; `put` puts what is in it. TOOL_OK or TOOL_FAILED. */
int svg_write(const tool_arguments *arguments, int width, int height,
              void (*put)(FILE *to, const void *picture), const void *picture);

void svg_put_text(FILE *to, const char *text, size_t length);
/* "#cb4d4d": the first 20 differ. */
const char *svg_color(size_t number);
/* The same for the same name, in all pictures; two names may have the same. */
const char *svg_op_color(const char *name, size_t length);

#endif
