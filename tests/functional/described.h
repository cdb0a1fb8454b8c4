/* Calls as short texts: "f32[2,3] i64[2]=7 none" are operands, "axis=1 keeps_dims=true shape=[2,-1] dtype=f32" attributes.
 *
 * All elements of an operand are 1, or the number after "=", or the numbers after it, one each. "*" at its end: it is one element,
 * repeated (any size). A choice is given by name. A number for a dtype or a choice may be one that does not exist. */
#ifndef EDDY_TESTS_FUNCTIONAL_DESCRIBED_H
#define EDDY_TESTS_FUNCTIONAL_DESCRIBED_H

#include <eddy/call.h>
#include <interpreter/call/op.h>

#define DESCRIBED_MAX 20
#define DESCRIBED_WORD_MAX 96

/* An op, or what a composition looks like; NULL where there is neither. */
const eddy_op *described_op(const char *name);

typedef struct described {
    const eddy_op *op;
    eddy_tensor *operands[DESCRIBED_MAX]; /* of the innermost scope */
    int64_t operand_count;
    eddy_attribute attributes[DESCRIBED_MAX];
    char text[64]; /* of the attribute that is one */
    int64_t attribute_count;
} described;

/* The next word of *text, which is moved on; false at the end. */
bool described_word(const char **text, char *word);
/* "[2,-3]"; *end is behind it. */
eddy_shape described_shape(const char *text, const char **end);
/* "1,0,2.5", as many as there are elements, or one number for all. */
void described_values(const char *text, double *values, int64_t count);

/* Fails the test where the text cannot be read, or names an attribute that the op does not have. */
void described_read(described *call, const eddy_op *op, const char *operands,
                    const char *attributes);

/* One tensor of such a text. */
eddy_tensor *described_tensor(const char *text);
/* Of that dtype and shape, all elements 1. */
eddy_tensor *described_ones(eddy_dtype dtype, eddy_shape shape);

/* The attribute as it is given, which is added where it is not. */
eddy_attribute *described_attribute(described *call, const char *name, eddy_attribute_type type);

/* The op by name, with the suffix "", "_into" or "_inplace"; outputs has room for what the op makes. */
eddy_status described_call(const described *call, const char *suffix, eddy_tensor **outputs);

#endif
