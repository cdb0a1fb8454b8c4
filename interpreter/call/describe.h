/* Text about calls: "add(f32[64, 784], f32[64, 10])", and messages of kernel errors. Any thread, no
 * allocation. */
#ifndef EDDY_INTERPRETER_CALL_DESCRIBE_H
#define EDDY_INTERPRETER_CALL_DESCRIBE_H

#include <eddy/dtype.h>
#include <eddy/export.h>
#include <eddy/shape.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that is cut at the buffer's end, while `length` counts all of it, as snprintf does. */
typedef struct eddy_text {
    char *buffer;
    size_t size;
    size_t length;
} eddy_text;

void eddy_text_add(eddy_text *text, const char *format, ...) EDDY_PRINTF(2, 3);
/* Words as they are: many times as fast, for what is said of each kernel that a profiler is told of. */
void eddy_text_put(eddy_text *text, const char *words);
/* Where there was no room for all of it, an ellipsis ends it. */
void eddy_text_end(eddy_text *text);
/* "f32[64, 784]" */
void eddy_text_add_operand(eddy_text *text, eddy_dtype dtype, const eddy_shape *shape);
/* ", 2" for the eddy_scalar at `scalar`, which may be unaligned. */
void eddy_text_add_scalar(eddy_text *text, const void *scalar);

/* The operand that an index counts within: the first integer one. */
typedef struct eddy_indexed {
    const char *name;
    eddy_shape shape;
} eddy_indexed;

/* One sentence for a kernel's error: "cross_entropy: labels[37] is 12, out of range [0, 10) (cross_entropy(...))".
 * indexed may be NULL. As snprintf. */
int eddy_describe_error(const eddy_op *op, const eddy_indexed *indexed, const char *call,
                        const eddy_kernel_error *error, char *buffer, size_t size);

#endif
