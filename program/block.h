/* Calling the functions of branches and loops (<eddy/control.h>), and recording them.
 *
 *   begin --> function, its outputs checked --> the caller uses them --> end: what else the function has made is released
 *
 * While calls run and are recorded (RUNS), a branch or loop does three things: the functions are called once each under NOTES, between marks;
 * what they changed is taken back; then the functions are called that are really due, under WATCHES, which gives the results. They are
 * shown to the recording as the values that the marks have given. Under NOTES it does the first alone, under WATCHES and outside of
 * recordings the last alone.
 *
 * Thread: the calling one's only. */
#ifndef EDDY_PROGRAM_BLOCK_H
#define EDDY_PROGRAM_BLOCK_H

#include <eddy/control.h>
#include <program/recording.h>

/* A call of eddy_cond or eddy_while. */
typedef struct eddy_block_call {
    eddy_caller *caller;
    eddy_origin origin;
    void *context;
    int64_t output_count;
    int64_t
        carried_count; /* so many first outputs take the places of the inputs, and may be these */
    eddy_recording *recording; /* NULL: calls are not recorded */
    int64_t timeout;
    eddy_device device; /* of a loop, of what the call itself makes: its inputs' */
} eddy_block_call;

/* The thread's recording, if its calls are recorded now. */
eddy_recording *eddy_block_recording(const eddy_caller *caller);

/* Calls the function in a scope of its own and checks its outputs, which stay in that scope: on OK, until eddy_block_end. The function
 * cannot release inputs that belong to no scope. */
EDDY_MUST_USE eddy_status eddy_block_begin(const eddy_block_call *call, eddy_block *function,
                                           eddy_list inputs, eddy_tensor **outputs, int64_t count,
                                           eddy_scope **scope);
void eddy_block_end(eddy_scope *scope);

/* Calls the function. outputs: a reference each, of row-major tensors that share no memory with others. */
EDDY_MUST_USE eddy_status eddy_block_run(const eddy_block_call *call, eddy_block *function,
                                         eddy_list inputs, eddy_tensor **outputs);

/* A reference of a copy of the tensor, which is like an output. */
EDDY_MUST_USE eddy_status eddy_block_copy(const eddy_block_call *call, eddy_tensor *tensor,
                                          eddy_tensor **made);

/* The predicate's value, waited for. */
EDDY_MUST_USE eddy_status eddy_block_read(const eddy_block_call *call, eddy_tensor *predicate,
                                          bool *holds);
/* Whether the tensor is one bool. */
EDDY_MUST_USE eddy_status eddy_block_check_predicate(const eddy_block_call *call,
                                                     eddy_tensor *predicate);
/* Whether `given`, output i of a way or a step, is like what it stands for. */
EDDY_MUST_USE eddy_status eddy_block_check_same(const eddy_block_call *call, int64_t i,
                                                const eddy_tensor *given, const eddy_tensor *like);

/* Whether the function that the innermost scope belongs to has the only reference of an output: it needs no copy. */
bool eddy_block_is_own(const eddy_block_call *call, const eddy_tensor *tensor);

/* Both give up the references, if the pointers are not NULL; the first makes the tensors the user's, if it can. */
EDDY_MUST_USE eddy_status eddy_block_hand_out(const eddy_block_call *call, eddy_tensor **made,
                                              eddy_tensor **outputs);
void eddy_block_drop(eddy_tensor **made, int64_t count);

/* Between the marks of a branch on the predicate, calls `note_way(context, way)` for both ways. */
EDDY_MUST_USE eddy_status eddy_block_note_ways(const eddy_block_call *call, eddy_tensor *predicate,
                                               eddy_status (*note_way)(const void *context,
                                                                       int way),
                                               const void *context);
/* Shows the recording a result of what was due as what its marks give. It is spoiled where the two are not alike. */
void eddy_block_show(const eddy_block_call *call, const eddy_tensor *made, const eddy_tensor *as);

/* Calls `note(context)` with calls recorded and not run, between two calls of that kind; what it changed is taken back. A failure spoils
 * the recording, and is returned where the calls would not run anyway, else left to who runs them. */
EDDY_MUST_USE eddy_status eddy_block_note(const eddy_block_call *call,
                                          eddy_status (*note)(void *context), void *context);
/* The same with calls run and not recorded; a failure spoils the recording and is returned. */
EDDY_MUST_USE eddy_status eddy_block_watch(const eddy_block_call *call,
                                           eddy_status (*watched)(void *context), void *context);

#endif
