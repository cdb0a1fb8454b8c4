/* The interpreter's description of an op: names, operands, attributes, a shape rule and kernels. The table of built-in ops is
 * generated from functional/ops; registered ops make the same struct at run time. */
#ifndef EDDY_INTERPRETER_CALL_OP_H
#define EDDY_INTERPRETER_CALL_OP_H

#include <base/assert.h>
#include <eddy/device.h>
#include <eddy/dtype.h>
#include <eddy/op.h>
#include <eddy/scalar.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <kernels/kernel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct eddy_op_operand {
    const char *name;
    eddy_operand_kind kind;
    bool is_mut;   /* written in place (optimisers, copy_into's target) */
    bool is_bool;  /* must be bool and takes no part in promotion (where's condition) */
    bool is_index; /* late errors name its element that is out of range */
    bool
        is_spec_only; /* only dtype and shape are used (zeros_like): no operand of the instruction, no view for the
                            kernel; infer sees it, and it gives the device */
} eddy_op_operand;

/* Attribute types are public (<eddy/op.h>). Until `infer` has run the struct holds: AXES bit a for axis a, bit 15 + a for
 * axis -a, 0 for all, EDDY_AXES_NAMELESS for an empty list (afterwards, bits 0 to 15 only); AXIS the given number (afterwards, 0 or more). */
#define EDDY_AXES_NAMELESS UINT32_MAX /* 32 axes cannot be named */

typedef struct eddy_op_attribute {
    const char *name;
    eddy_attribute_type type;
    size_t offset; /* in the attribute struct */
    bool is_required;
    bool is_fixed; /* always its default (zeros' value 0): eddy_call refuses it */
    bool
        is_held; /* SCALAR: converted (base/number.h) to the compute dtype, of ops that are not elementwise to the result's */
    bool
        zero_is_none; /* INT: 0 means that the option is left out; eddy_call refuses an explicit 0 */
    eddy_scalar default_value; /* INT, FLOAT, BOOL, SCALAR, DTYPE, AXIS, CHOICE */
    const char *choices;       /* CHOICE: "mean sum none"; NULL elsewhere */
} eddy_op_attribute;

/* One inference: specs in, specs out, on the caller's thread, no allocation, no lock. */
typedef struct eddy_infer {
    const struct eddy_op *op;
    const eddy_spec *inputs; /* the items of lists in a row */
    int64_t input_count;
    const int64_t *list_counts; /* items of each EDDY_OPERAND_LIST operand, in order */
    void *attributes;    /* the call's own copy: a rule may normalise it (negative axes, masks) */
    eddy_spec *outputs;  /* to fill: op->output_count */
    const void *address; /* the caller, for errors */
} eddy_infer;

/* Fails the call: fills the thread's slot with op name, the given sentence and the operands' dtypes and shapes. */
eddy_status eddy_infer_fail(const eddy_infer *infer, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);

/* Converts *number, the attribute of that name, to the dtype (docs/numbers.md); OUT_OF_RANGE if an integer dtype does not hold it. */
eddy_status eddy_infer_number(const eddy_infer *infer, const char *name, eddy_scalar *number,
                              eddy_dtype dtype);

typedef enum eddy_op_promotion {
    EDDY_PROMOTE_NONE, /* operands are not cast; the rule checks them */
    EDDY_PROMOTE_SAME, /* inputs are promoted to one dtype (PyTorch's rules, 0-dim and scalar categories) */
    EDDY_PROMOTE_FLOAT, /* the same, and ints and bool become f32 (exp, div) */
    EDDY_PROMOTE_INT_SUM, /* bool and small ints count as i64 (sum) - no cast of the input, output only */
} eddy_op_promotion;

typedef enum eddy_op_result {
    EDDY_RESULT_COMPUTE, /* the promoted dtype */
    EDDY_RESULT_BOOL,    /* comparisons */
    EDDY_RESULT_RULE,    /* set by `infer` */
} eddy_op_result;

#define EDDY_OP_OUTPUT_MAX 8

typedef struct eddy_gradient eddy_gradient;

typedef struct eddy_op {
    const char *name; /* "add"; registered ones have a dot: "user.smooth" */
    uint32_t
        id; /* of a built-in op, its index in the table, if it is in the table; EDDY_OP_REGISTERED for others */
    const eddy_op_operand *operands;
    int32_t operand_count;
    const char *const *outputs; /* names of outputs */
    int32_t output_count;       /* 0 for ops that only write in place */
    const eddy_op_attribute *attributes;
    int32_t attribute_count;
    size_t attribute_bytes; /* of the attribute struct */
    size_t
        kernel_attribute_bytes; /* its first bytes, which are all that kernels read; the rest (a creation op's shape
                                      and dtype) serves `infer` */

    bool
        is_elementwise; /* operands broadcast together: the kernel's views share one shape. A mut operand (copy_into's
                            target) must have that shape itself. */
    bool has_late_shape; /* outputs are mut2 */
    bool
        is_random; /* the attribute struct begins with uint64_t seed, counter, which the interpreter fills */
    int32_t
        chance_of; /* with is_random or redraws: 1 + the attribute, a double, that is 0 if a call draws nothing and seed and
                            counter are 0; 0: every call draws */
    int32_t
        redraws; /* 1 + the attribute, an INT, that is the seed of an earlier draw; the next one is its counter. 0: none */
    bool allows_alias;   /* _into and _inplace: the target may be exactly an input */
    bool alias_is_first; /* with allows_alias: of the inputs, only the first */
    bool
        crosses_devices; /* of two operands: the first is brought to the device of the second, which is written */
    bool indices_from_end; /* negative indices count from the end: late errors show the range */
    bool is_registered;
    bool
        may_fail; /* its kernel may find fault with its data, or it has effects: it is never left out */
    eddy_op_promotion promotion;
    eddy_op_result result;
    /* 1 + the operand whose order of axes in memory new outputs of its rank take (channels last stays
     * channels last); 0: row-major. No list precedes that operand; of a list it is the first item. */
    int32_t layout_of;
    int32_t
        last_where; /* 1 + the attribute, a bool, that makes new outputs, images, channels last instead; 0: none */
    int32_t
        skips_of; /* 1 + the list whose items may be EDDY_NONE: items at that position are left out of all lists */
    int32_t
        scalar_count; /* the first so many attributes are EDDY_ATTRIBUTE_SCALAR and promote with the inputs */
    bool numbers_wrap; /* integers wrap around in this op, and so do its scalars */

    /* Shapes and dtypes of outputs. NULL for elementwise ops, which only broadcast and promote. */
    eddy_status (*infer)(eddy_infer *infer);

    /* Elementwise: kernels[compute dtype], NULL if not supported. Others: kernels[0] serves every dtype that `infer`
     * accepts. */
    const eddy_kernel *const *kernels;
    /* Of a registered op its kernel for each kind of device, NULL where it has none. NULL for all others. */
    const eddy_kernel *const *device_kernels;

    /* Its gradient (gradient.h); NULL: it has none, and a recorded call is refused. */
    const eddy_gradient *gradient;

    /* The meaning of INVALID_ARGUMENT from its kernel, a clause; NULL if the kernel never returns it. */
    const char *late_invalid;

    /* Documentation, one paragraph, shown in `eddy_call`'s schema and errors. */
    const char *summary;
} eddy_op;

#define EDDY_OP_REGISTERED UINT32_MAX

/* The table of built-in ops, in the order of their ids (generated). */
extern const eddy_op *const eddy_op_table[];
extern const uint32_t eddy_op_table_count;
/* Built-in ops have ids below this: those of the table, and fused gradients, which are in no table. */
extern const uint32_t eddy_op_id_count;

/* An op by name, built-in or registered; NULL if there is none. Any thread. */
const eddy_op *eddy_op_find(const char *name);
/* The same among the library's own ops, gradients in one loop included, which only recorded programs name. */
const eddy_op *eddy_op_find_built_in(const char *name);

/* The kernel of a call that computes in a valid dtype; NULL if there is none. */
static inline const eddy_kernel *eddy_op_kernel_for(const eddy_op *op, eddy_dtype compute) {
    return op->kernels ? op->kernels[op->is_elementwise ? compute : 0] : NULL;
}
/* A kernel that is no op's, of a kind of device that runs no code of the host: by its name; NULL: there is none. */
const eddy_kernel *eddy_op_kernel_by_name(const char *name, eddy_dtype dtype,
                                          eddy_device_kind kind);
/* That of a built-in op on a kind of device that runs no code of the host; NULL: there is none. */
const eddy_kernel *eddy_op_kernel_of_plugin(const eddy_op *op, eddy_dtype compute,
                                            eddy_device_kind kind);
/* The same on a device of that kind. */
static inline const eddy_kernel *eddy_op_kernel_on(const eddy_op *op, eddy_dtype compute,
                                                   eddy_device_kind kind) {
    if (EDDY_UNLIKELY(op->device_kernels != NULL))
        return op->device_kernels[kind];
    return EDDY_UNLIKELY(kind == EDDY_DEVICE_CUDA) ? eddy_op_kernel_of_plugin(op, compute, kind)
                                                   : eddy_op_kernel_for(op, compute);
}

#endif
