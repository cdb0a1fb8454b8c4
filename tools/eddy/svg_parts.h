/* What pictures have in common: texts in XML, and a colour for each op. */
#ifndef TOOLS_EDDY_SVG_PARTS_H
#define TOOLS_EDDY_SVG_PARTS_H

#include <stddef.h>
#include <stdio.h>

void svg_put_text(FILE *to, const char *text, size_t length);
/* "#cb4d4d", the same for the same name. */
const char *svg_op_color(const char *name, size_t length);

#endif
