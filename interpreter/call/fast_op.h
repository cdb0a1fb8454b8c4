/* The data of fast calls: elementwise calls whose operands have one shape and one layout without gaps, at the start of
 * their storage.
 *
 * Such a call needs no dims: its arguments are the number of elements and the number of the interned shape, 8
 * bytes, and the op's attributes. The other data belong to its descriptor, one per op and compute dtype, made
 * on first use. */
#ifndef EDDY_INTERPRETER_CALL_FAST_OP_H
#define EDDY_INTERPRETER_CALL_FAST_OP_H

#include <base/assert.h>
#include <base/atomic.h>
#include <interpreter/call/op.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vm/vm.h>

#define EDDY_FAST_OPERANDS 4 /* inputs and the output */
#define EDDY_FAST_ATTRIBUTE_BYTES 48

typedef struct eddy_fast_op {
    eddy_vm_descriptor descriptor; /* first: callbacks find the fast op by it */
    const eddy_op *op;
    const eddy_kernel *kernel; /* NULL: this dtype takes a general call */
    eddy_loop_fn *loop; /* for the chosen instruction set; NULL: only the kernel as a whole */
    int64_t strides[EDDY_FAST_OPERANDS]; /* bytes of an element */
    int64_t result_bytes;                /* the same of the output */
    int64_t element_bytes;               /* the same of all operands together */
    int64_t near_count;                  /* elements up to which they fit the caches */
    eddy_vm_operand output;              /* a new result, but for its size */
    size_t attribute_bytes;              /* what the kernel reads */
    int64_t scalar_offset;               /* in the attributes; -1: none */
    uint8_t input_count;
    uint8_t dtype; /* compute */
    uint8_t result;
    uint8_t scalar_kinds; /* scalars of this kind or a lower one do not change the dtype */
    bool scalar_wraps;    /* and are never refused */
} eddy_fast_op;

/* Arguments of an instruction. */
typedef struct eddy_fast_arguments {
    uint32_t count;        /* elements */
    uint32_t shape_number; /* of all operands (shape_table.h) */
    uint64_t attributes[EDDY_FAST_ATTRIBUTE_BYTES / 8];
} eddy_fast_arguments;

/* For each op, EDDY_DTYPE_COUNT fast ops. atomic: stored (release) by the thread that makes them, read acquire. Const pointer after
 * init. */
extern _Atomic(eddy_fast_op *) *eddy_fast_op_table;

/* Once, before the first op; false without memory. */
bool eddy_fast_ops_init(void);
/* In a forked child. */
void eddy_fast_ops_fork_child(void);
/* Makes the fast ops of an op; NULL without memory. */
const eddy_fast_op *eddy_fast_op_make(const eddy_op *op);

/* The fast op for a dtype; NULL if there is none (or no memory: a general call serves). The op is built
 * in. */
static inline const eddy_fast_op *eddy_fast_op_find(const eddy_op *op, uint8_t dtype) {
    const eddy_fast_op *ops = eddy_load_acquire(&eddy_fast_op_table[op->id]);
    if (EDDY_UNLIKELY(ops == NULL) && !(ops = eddy_fast_op_make(op)))
        return NULL;
    return EDDY_LIKELY(ops[dtype].kernel != NULL) ? &ops[dtype] : NULL;
}

#endif
