/* Recorded functions: a C function that calls ops is recorded once for each kind of arguments, and replayed after that.
 *
 *     static eddy_status step(void *context, eddy_recorded_call *call) {
 *         struct model *m = context;
 *         ...ordinary calls on call->inputs, with call->scalars as rates...
 *         call->outputs[0] = eddy_detach(loss);
 *         return EDDY_OK;
 *     }
 *     eddy_recorded *recorded = eddy_recorded_create(step, &model, 1, NULL);
 *     eddy_recorded_run(recorded, EDDY_LIST(x, labels), EDDY_SCALARS(EDDY_S(rate)), &loss);
 *
 * The first two calls with inputs of the same dtypes, shapes and strides run the function, and are recorded. If they have become the same
 * program, it is replayed from the third call on, with the bits that the function would give: results, random numbers, what it
 * writes to tensors of its own (parameters, moments, kept gradients). The function itself then does not run: what it does besides
 * calling ops (printing, counting) happens in the calls that are recorded alone. Where the two differ, or where something cannot be replayed,
 * the function runs at each call, and eddy_recorded_explain says why. What the function reads of its inputs (a length, a flag), and of small
 * tensors of its own before it writes to them, decides too: each value has a program, and calls wait for these tensors. What it reads
 * of what it has computed decides in the midst of a replay, which is waited for: with a value that was not read in a recording the replay has not happened, and the function
 * runs. docs/programs.md says which reads these are.
 *
 * Under autograd a replay is one op of the tape: hooks, kept gradients and eddy_backward_to of an output that another output was computed from are
 * refused then (UNSUPPORTED). docs/programs.md. */
#ifndef EDDY_RECORDED_H
#define EDDY_RECORDED_H

#include <eddy/export.h>
#include <eddy/scalar.h>
#include <eddy/status.h>
#include <eddy/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_recorded eddy_recorded;

/* A call of the function. */
typedef struct eddy_recorded_call {
    size_t size;
    eddy_list inputs; /* as given */
    /* As given. Pass them on to ops as they are: EDDY_S of a value would be a constant of the program, and with a copy of another value the function
     * is not replayed, as far as the recordings show that. */
    const eddy_scalar *scalars;
    int64_t scalar_count;
    eddy_tensor **outputs; /* to fill; all NULL at first */
    int64_t output_count;
} eddy_recorded_call;

/* Calls ops and fills the outputs, owned as results of ops are. EDDY_OK, or the status of what failed. */
typedef eddy_status eddy_recorded_body(void *context, eddy_recorded_call *call);

typedef struct eddy_recorded_options {
    size_t size;
    /* A call of a function that has been found not to be replayable fails with UNSUPPORTED, instead of running it. */
    bool is_strict;
    /* Of all programs, beside the tensors that they hold; the least recently used are dropped. 0: 256 MB. */
    int64_t most_bytes;
    /* What the function does depends on the sizes of its inputs in no other way than through the shapes of its tensors: from programs of two sizes, or of four
     * pairs where two sizes change independently, those of others follow, without a recording (docs/programs.md). */
    bool foretells_shapes;
    /* With foretells_shapes: all sizes from 2 up to this one ("up to N") follow once a third size was recorded, in steps of what the recorded ones differ by, and
     * are replayed at their first call. Their programs share what is planned, once, for the largest, and each run takes memory for that. A size above it is not
     * recorded: the function runs, or a strict one fails. 0: the last edge is the largest size, if there are edges. */
    int64_t most_size;
    /* The largest sizes of buckets, increasing from 2 or more; the last is at least most_size. Each bucket is planned for its own largest size, once a size of it was
     * recorded. NULL: one bucket, up to most_size. Copied. */
    const int64_t *bucket_edges;
    int64_t bucket_edge_count;
    /* Bytes of the programs of all buckets' sizes; beyond it the least frequently used are dropped, and derived again when they are called. 0: 64 MB. */
    int64_t most_derived_bytes;
} eddy_recorded_options;

/* Numbers that may differ from call to call: EDDY_SCALARS(EDDY_S(rate)). */
typedef struct eddy_scalars {
    const eddy_scalar *items;
    int64_t count;
} eddy_scalars;

#ifndef __cplusplus
#define EDDY_SCALARS(...)                                                                          \
    ((eddy_scalars){(const eddy_scalar[]){__VA_ARGS__},                                            \
                    (int64_t)(sizeof((eddy_scalar[]){__VA_ARGS__}) / sizeof(eddy_scalar))})
#endif

/* A recorded function, one reference, the caller's; the context is borrowed until it is released. NULL with INVALID_ARGUMENT (no body,
 * a negative count or limit, sizes that are no buckets) or OUT_OF_MEMORY in the slot. */
EDDY_API eddy_recorded *eddy_recorded_create(eddy_recorded_body *body, void *context,
                                             int64_t output_count,
                                             const eddy_recorded_options *options);
EDDY_API eddy_recorded *eddy_recorded_retain(eddy_recorded *recorded);
/* Gives up a reference and clears the pointer. */
EDDY_API void eddy_recorded_release(eddy_recorded **recorded);

/* Calls the function, or replays what it did. outputs: written on success only; owned as results of ops are. Returns the function's status, or the
 * errors of eddy_program_run. Inside a recording the function runs, and its ops become part of that. Any thread; calls of several threads run at
 * once, as far as the function allows it. */
EDDY_API eddy_status eddy_recorded_run(eddy_recorded *recorded, eddy_list inputs,
                                       eddy_scalars scalars, eddy_tensor **outputs);

/* For each kind of arguments one line: the inputs, how often the function ran and a program was replayed, how often it ran though there was a program, which did
 * not serve that call ("missed"), and why it is not replayed, where it is not; where the last call failed, or went on after a failed op, that it was not recorded. 100 lines at most: those used last. Then one line for each bucket: the sizes seen, how many
 * programs were derived from what they share, how many are kept, and why some were not derived; and one where the programs of two sizes say nothing of
 * a third. As snprintf: returns the length of the whole text. */
EDDY_API int eddy_recorded_explain(eddy_recorded *recorded, char *buffer, size_t size);

#ifdef __cplusplus
}

#include <initializer_list>

namespace eddy_detail {
inline eddy_scalars scalars(std::initializer_list<eddy_scalar> items) {
    return {items.begin(), static_cast<int64_t>(items.size())};
}
} // namespace eddy_detail
#define EDDY_SCALARS(...) (::eddy_detail::scalars({__VA_ARGS__}))
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_recorded_create(...) EDDY_AT_CALL_SITE(eddy_recorded_create(__VA_ARGS__))
#define eddy_recorded_retain(...) EDDY_AT_CALL_SITE(eddy_recorded_retain(__VA_ARGS__))
#define eddy_recorded_release(...) EDDY_AT_CALL_SITE_VOID(eddy_recorded_release(__VA_ARGS__))
#define eddy_recorded_run(...) EDDY_AT_CALL_SITE(eddy_recorded_run(__VA_ARGS__))
#define eddy_recorded_explain(...) EDDY_AT_CALL_SITE(eddy_recorded_explain(__VA_ARGS__))
#endif
#endif
