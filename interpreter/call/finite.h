/* EDDY_CHECK_FINITE: whether the outputs of an op hold a NaN, or an infinity that was not passed in.
 *
 * An infinity is passed in if an operand that the op reads holds one, or if an attribute is infinite (masked_fill's value) and its default
 * is not. Operands are tested before the kernel runs, since it may write to them. */
#ifndef EDDY_INTERPRETER_CALL_FINITE_H
#define EDDY_INTERPRETER_CALL_FINITE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <interpreter/call/op.h>
#include <stdbool.h>

/* What is tested, from the least to the most. */
typedef enum eddy_finite_mode {
    EDDY_FINITE_OFF,
    EDDY_FINITE_NAN,
    EDDY_FINITE_ALL
} eddy_finite_mode;

/* atomic: relaxed; the most that a runtime of the process has asked for. */
extern _Atomic uint32_t eddy_finite_asked __attribute__((visibility("hidden")));

void eddy_finite_ask(eddy_finite_mode mode);

static inline bool eddy_finite_wants_operands(void) {
    return EDDY_UNLIKELY(eddy_load_relaxed(&eddy_finite_asked) == EDDY_FINITE_ALL);
}

/* Whether the operands (views with data) or the kernel's attributes pass an infinity in. */
bool eddy_finite_is_passed_in(const eddy_op *op, const void *attributes,
                              const eddy_op_view *operands, int64_t operand_count);
/* Store the result for the check after the kernel, on the same thread, and return it. */
void eddy_finite_set_passed_in(bool is_passed_in);
bool eddy_finite_passed_in(void);

/* False if the output holds a NaN or an infinity that is an error. */
bool eddy_finite_is_fine(const eddy_op_view *output, bool is_passed_in);

/* ---- on a device that runs no code of the host, whose kernels look; the launching thread ---- */

/* Around the launch of a call that is checked: ahead of it, at the operands that it reads, if these can pass an infinity in, */
void eddy_finite_launch_operands(const eddy_op *op, const eddy_kernel_call *call,
                                 int64_t operand_count);
/* and behind it, at an output, which is operand number `operand` of the instruction. What is found is the failure of the call. */
void eddy_finite_launch_output(const eddy_op *op, const eddy_kernel_call *call,
                               const eddy_op_view *output, int64_t operand);

#endif
