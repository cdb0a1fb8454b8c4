/* Attributes of ops as text, and back: what inference left of them. */
#ifndef EDDY_PROGRAM_ATTRIBUTE_H
#define EDDY_PROGRAM_ATTRIBUTE_H

#include <interpreter/call/describe.h>
#include <interpreter/call/op.h>
#include <program/cursor.h>

/* The value at `place`, which is the attribute's in the op's struct. */
void eddy_attribute_format(eddy_text *text, const eddy_op_attribute *attribute, const char *place);

/* Reads such a value into a struct whose bytes are 0. */
EDDY_MUST_USE bool eddy_attribute_parse(eddy_cursor *cursor, const eddy_op_attribute *attribute,
                                        char *place);

/* A dtype by its name. */
EDDY_MUST_USE bool eddy_attribute_dtype(eddy_cursor *cursor, eddy_dtype *dtype);

#endif
