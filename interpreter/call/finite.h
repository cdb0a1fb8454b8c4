/* EDDY_CHECK_FINITE: whether the outputs of an op hold a NaN, or an infinity that was not passed in.
 *
 * An infinity is passed in where an operand that the op reads holds one, or an attribute is one (masked_fill's value) that is not so by
 * default. Operands are looked at before the kernel runs, for it may write to them. */
#ifndef EDDY_INTERPRETER_CALL_FINITE_H
#define EDDY_INTERPRETER_CALL_FINITE_H

#include <base/assert.h>
#include <base/atomic.h>
#include <interpreter/call/op.h>
#include <stdbool.h>

/* What is looked for, from the least to the most. */
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

/* Whether an infinity comes in by the operands (views with data) or the kernel's attributes. */
bool eddy_finite_is_passed_in(const eddy_op *op, const void *attributes,
                              const eddy_op_view *operands, int64_t operand_count);
/* Keeps an answer for the check that follows the kernel on the same thread; and gives it. */
void eddy_finite_set_passed_in(bool is_passed_in);
bool eddy_finite_passed_in(void);

/* False where an output is not as it should be. */
bool eddy_finite_is_fine(const eddy_op_view *output, bool is_passed_in);

#endif
