/* Branches and loops that programs can hold.
 *
 * In C a branch is an `if` on a number that was read, and a loop a `while`: both work with ops as with anything else, and a recording
 * (<eddy/program.h>) sees the way that was taken. These functions call functions instead, so that a recording sees all ways, and a run of
 * the program takes its own:
 *
 *     static eddy_status halve(void *context, eddy_list carried, eddy_tensor **outputs) {
 *         outputs[0] = eddy_mul_s(carried.items[0], EDDY_S(0.5));
 *         return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
 *     }
 *     static eddy_status is_large(void *context, eddy_list carried, eddy_tensor **outputs) {
 *         outputs[0] = eddy_gt_s(carried.items[0], EDDY_S(1));
 *         return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
 *     }
 *     eddy_while(is_large, halve, NULL, EDDY_LIST(x), NULL, &small);
 *
 * Outside of a recording they read the predicate and call the function that it asks for, which waits for what was computed so far.
 *
 * While the thread records, each function is called once more, to be recorded (the body of a loop up to three times): those calls do not run, what they return has no
 * elements (a read of them fails with UNSUPPORTED), and tensors that were there before stay as they are. So a function has no effects but through ops: one that
 * counts its calls counts those too. The functions give the same dtypes and shapes whatever way is taken. A recording
 * that meets what a program cannot repeat is spoiled, and calls go on as they do outside of one (eddy_can_record says why):
 * gradients that go back through a loop without most_steps, gradients that a way begins to keep, failures. docs/programs.md.
 *
 * Unless a function says otherwise: any thread; failures fill the calling thread's error slot. */
#ifndef EDDY_CONTROL_H
#define EDDY_CONTROL_H

#include <eddy/export.h>
#include <eddy/options.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of a program as a function: computes the outputs, all of them, from inputs, and returns a status. Tensors that it makes belong to
 * a scope that ends when it returns; an output outlives it. It neither begins nor ends a recording, and does not release its inputs: eddy_release refuses it
 * with INVALID_ARGUMENT where no scope owns them. */
typedef eddy_status eddy_block(void *context, eddy_list inputs, eddy_tensor **outputs);

typedef struct eddy_cond_options {
    size_t size;
    int64_t timeout; /* ns that the call may wait for the predicate; 0: no limit */
} eddy_cond_options;

/* Calls `then` where the predicate, one bool, is true, else `otherwise`. inputs go to both as they are. outputs: room for output_count
 * pointers, written on success with row-major tensors, owned as <eddy/tensor.h> says, which share no memory with others. They require
 * gradients as the results of the calls would; while the thread records, as those of either function would (of a loop: those of a step, also
 * where there was none).
 *
 * Waits for the predicate, except where calls are recorded and do not run. INVALID_ARGUMENT (a function is NULL, an output was not set),
 * DTYPE_MISMATCH and SHAPE_MISMATCH (the predicate), TIMED_OUT, WOULD_DEADLOCK, the predicate's error, what the function returned, OUT_OF_MEMORY. Where
 * nothing but the recording of the calls runs, also what the function returned that the predicate does not ask for, and SHAPE_MISMATCH and
 * DTYPE_MISMATCH where the two differ. */
EDDY_API eddy_status eddy_cond(eddy_tensor *predicate, eddy_block *then, eddy_block *otherwise,
                               void *context, eddy_list inputs, int64_t output_count,
                               const eddy_cond_options *options, eddy_tensor **outputs);

typedef struct eddy_while_options {
    size_t size;
    /* The call fails once it would begin another step: INVALID_ARGUMENT. A run of a program fails at this loop, late, and what the loop writes
     * is poisoned. In a recording gradients go back through a loop only if it has a bound: what they need of each step is kept for as many. 0: no bound. */
    int64_t most_steps;
    int64_t timeout; /* ns that each wait for a predicate may take; 0: no limit */
    int64_t
        list_count; /* so many outputs of the body, behind the carried ones, are rows of lists; needs most_steps */
} eddy_while_options;

/* While `test`, given the carried tensors, gives true, `body` replaces them: it is given the tensors and gives as many. Both get the same context. The
 * first ones are copies of `carried`, so that a body may write in place what it was given. outputs: room for as many pointers, written
 * on success with what is carried in the end, as eddy_cond does. With list_count the body gives so many tensors more, of the same shapes in each step, and
 * behind what is carried stand as many lists: the rows of all steps along a new axis 0, most_steps of them, 0 for steps that there were not.
 *
 * Waits for the predicate of each step. The errors of eddy_cond; while the thread records, carried tensors keep their dtypes and
 * shapes. */
EDDY_API eddy_status eddy_while(eddy_block *test, eddy_block *body, void *context,
                                eddy_list carried, const eddy_while_options *options,
                                eddy_tensor **outputs);

typedef struct eddy_scan_options {
    size_t size;
    int64_t step_count; /* where there are no xs: so many steps; else 0 */
    bool
        is_reversed; /* from the last slice to the first; what is stacked keeps the order of the slices */
    bool is_rolled; /* a recording holds one loop instead of the ops of each step */
} eddy_scan_options;

/* One step for each slice of xs along axis 0, which all have as many: `body` is given the carried tensors, then a slice (without that axis) of each of xs, and gives
 * output_count tensors: what is carried on, then others. outputs, written on success as eddy_cond does: what is carried in the
 * end, then each of the others stacked along a new axis 0. The first carried tensors are copies of `carried`, so that a body may write in place
 * what it was given.
 *
 * Waits for nothing but shapes of xs that depend on data: the number of steps is known. A recording sees the ops of each step, one step after the other; so gradients go back
 * through it, and random ops may be among them. With is_rolled it holds a loop, as of eddy_while: less code, what gradients need in lists. INVALID_ARGUMENT (no step, and something to stack; fewer outputs than are carried),
 * SHAPE_MISMATCH (of xs; of what is stacked), what the body returned, OUT_OF_MEMORY. */
EDDY_API eddy_status eddy_scan(eddy_block *body, void *context, eddy_list carried, eddy_list xs,
                               int64_t output_count, const eddy_scan_options *options,
                               eddy_tensor **outputs);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_cond(...) EDDY_AT_CALL_SITE(eddy_cond(__VA_ARGS__))
#define eddy_while(...) EDDY_AT_CALL_SITE(eddy_while(__VA_ARGS__))
#define eddy_scan(...) EDDY_AT_CALL_SITE(eddy_scan(__VA_ARGS__))
#endif
#endif
