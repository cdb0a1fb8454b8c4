/* What the tape of a loop's body has saved: values that each step overwrites.
 *
 * Forwards, each step puts them into lists, a row a step. Backwards, each step gets its rows, and the nodes of the body's tape are given these in
 * place of what they had saved. What a way of a branch in the body has saved is there on that way alone: it is put and got
 * on the same way of a branch of its own, on the same predicate.
 *
 * A loop in the body has rows of its own for what its steps make. What they read of the step that it is in (a tensor that the outer loop carries, one that the
 * step has made, the predicate of a branch) stays the same in all of them: it is a row of the outer loop's lists, and the outer loop gives it to the nodes of the
 * inner loop's tape before that goes back.
 *
 * What nodes have drawn is saved like tensors: seed and counter, as a row (draw_ops.h).
 *
 *   forwards    list_set(a, n, list)  if(p)  list_set(b, n, list)  else()  list_set(c, n, list)  end_if()
 *   backwards   a = list_get(list, n)  if(p')  b = list_get(list, n)  else()  c = list_get(list, n)  end_if()
 *
 * Thread: the recording one's. */
#ifndef EDDY_PROGRAM_SAVED_H
#define EDDY_PROGRAM_SAVED_H

#include <program/branch_tape.h>
#include <program/code.h>
#include <program/pointer_index.h>

typedef struct eddy_saved {
    eddy_code_array parts; /* eddy_saved_part: rows, and the marks of branches around them */
    eddy_code_array slots; /* eddy_saved_slot */
    eddy_code_array turns; /* eddy_saved_turn */
    /* The slot of a node, and the part that has the elements of a root: the latest one. */
    eddy_pointer_index slot_of, part_of;
    uint32_t row_count; /* parts that are rows */
    uint32_t first;     /* the body's values are those from this one on */
} eddy_saved;

/* Values that come from a list already, in each step its row, and are not written to: they need no list of their own. */
typedef struct eddy_saved_known {
    eddy_tensor *const *tensors;
    int64_t count;
} eddy_saved_known;

/* Finds what the way's tape, of a body whose values are those from `first` on, has saved. What was overwritten
 * since shows in a pass through it. OUT_OF_MEMORY, recorded. */
EDDY_MUST_USE eddy_status eddy_saved_find(const eddy_block_call *call, const eddy_way_tape *way,
                                          uint32_t first, const eddy_saved_known *known,
                                          eddy_saved *saved);
void eddy_saved_fini(eddy_saved *saved);

/* Where a row is that a node of the body's tape had saved, or drawn. */
typedef struct eddy_saved_row {
    uint32_t list;      /* number of its list */
    bool is_known;      /* a known value's, else one of those that the steps put */
    eddy_layout layout; /* within a row */
    eddy_autograd word; /* of the saved tensor, held by `saved`; 0: none */
} eddy_saved_row;

/* The row of a node's slot, of seed and counter of its draw, and of a branch's predicate. False where no list has it. */
bool eddy_saved_find_slot(const eddy_saved *saved, const eddy_autograd_node *node, uint32_t slot,
                          eddy_saved_row *row);
bool eddy_saved_find_drawn(const eddy_saved *saved, const eddy_autograd_node *node,
                           eddy_saved_row *row);
bool eddy_saved_find_predicate(const eddy_saved *saved, const eddy_branch_tape *branch,
                               eddy_saved_row *row);

/* Whether both have the same rows, in dtype and size, on the same ways. */
bool eddy_saved_is_alike(const eddy_saved *a, const eddy_saved *b);

/* A list for each row, of known values the one that they come from: references. */
EDDY_MUST_USE eddy_status eddy_saved_make_lists(const eddy_block_call *call,
                                                const eddy_saved *saved, int64_t step_count,
                                                eddy_tensor *const *known_lists,
                                                eddy_tensor **lists);
/* Puts what one step has saved into the lists, as row `at`. */
EDDY_MUST_USE eddy_status eddy_saved_put(const eddy_block_call *call, const eddy_saved *saved,
                                         eddy_tensor *const *lists, eddy_tensor *at);
/* Gives the nodes what that step had saved; known_at: its row in the lists of known values. */
EDDY_MUST_USE eddy_status eddy_saved_get(const eddy_block_call *call, eddy_saved *saved,
                                         eddy_tensor *const *lists, eddy_tensor *at,
                                         eddy_tensor *known_at);

#endif
