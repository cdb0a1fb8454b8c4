/* What has changed of the tape, for programs, which know their own changes alone. */
#include <interpreter/tape/autograd.h>

/* atomic: relaxed; what they count is ordered by the program */
static _Atomic uint64_t changes;

uint64_t eddy_autograd_changes(void) {
    return eddy_load_relaxed(&changes);
}

void eddy_autograd_note_change(void) {
    eddy_add_relaxed(&changes, UINT64_C(1));
}

void eddy_autograd_note_leaf(const eddy_tensor *tensor) {
    eddy_autograd_note_change();
    if (tensor->root != tensor)
        eddy_add_relaxed(&tensor->root->view_leaves, 1u);
}
