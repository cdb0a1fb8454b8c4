/* Any op by name: for language bindings, and for ops that the program registered (<eddy/op.h>). The installed ops.json lists the ops
 * with their operands and attributes. */
#ifndef EDDY_CALL_H
#define EDDY_CALL_H

#include <eddy/call_sites.h>
#include <eddy/device.h>
#include <eddy/export.h>
#include <eddy/generator.h>
#include <eddy/op.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An attribute of a call: the member of the union that `type` names. */
typedef struct eddy_attribute {
    const char *name;
    eddy_attribute_type type;
    union {
        int64_t integer;           /* INT, AXIS, CHOICE */
        double floating;           /* FLOAT */
        bool boolean;              /* BOOL */
        eddy_scalar scalar;        /* SCALAR */
        eddy_dtype dtype;          /* DTYPE */
        eddy_shape shape;          /* SHAPE */
        eddy_axes axes;            /* AXES; left out: all */
        eddy_device device;        /* DEVICE */
        eddy_generator *generator; /* GENERATOR, borrowed for the call */
        const char *text;          /* TEXT, borrowed for the call */
        eddy_pair pair;            /* PAIR */
    } value;
} eddy_attribute;

typedef struct eddy_attributes {
    const eddy_attribute *items;
    int64_t count;
} eddy_attributes;

/* EDDY_ATTRIBUTES({"axis", EDDY_ATTRIBUTE_AXIS, {.integer = 1}}): a pointer for one call. (C++ has this
 * initialiser since C++20, and as a GNU extension before.) */
#ifndef __cplusplus
#define EDDY_ATTRIBUTES(...)                                                                       \
    (&(const eddy_attributes){                                                                     \
        (const eddy_attribute[]){__VA_ARGS__},                                                     \
        (int64_t)(sizeof((eddy_attribute[]){__VA_ARGS__}) / sizeof(eddy_attribute))})
#endif

/* Calls the op `name`: a built-in one, also in its _into and _inplace forms ("add", "add_s", "add_into"), a registered one, or
 * a function made of ops ("einsum", "outer", "meshgrid", "split", "chunk"; compositions in ops.json).
 *
 * inputs: the operands in order (_into: the target last), EDDY_NONE for absent ones. The items of a list operand follow each
 * other; several lists have one length. attributes: in any order; NULL for none. Those left out take their
 * defaults (null in ops.json: no value means the same). An INT is accepted as FLOAT, SCALAR, AXIS, CHOICE and PAIR (twice the
 * number) too. outputs: as many pointers as
 * the op has outputs, written on success with new tensors, owned as <eddy/tensor.h> says; NULL if it has
 * none, and for _into and _inplace. meshgrid makes one output for each operand; for split and chunk the attribute capacity is
 * the length of `outputs`, and they fill the rest with NULL.
 *
 * Returns at once, as the op's function does. NOT_FOUND (no such op), INVALID_ARGUMENT (operands, attributes;
 * the message names the entry and the attribute), and the op's own errors. Any thread. */
EDDY_API eddy_status eddy_call(const char *name, eddy_list inputs,
                               const eddy_attributes *attributes, eddy_tensor **outputs);

#ifdef __cplusplus
}

#include <initializer_list>

namespace eddy_detail {
inline eddy_attributes attributes(std::initializer_list<eddy_attribute> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
} // namespace eddy_detail
#define EDDY_ATTRIBUTES(...)                                                                       \
    (&static_cast<const eddy_attributes &>(::eddy_detail::attributes({__VA_ARGS__})))
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_call(...) EDDY_AT_CALL_SITE(eddy_call(__VA_ARGS__))
#endif
#endif
