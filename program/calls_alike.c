#include <program/calls_alike.h>

#include <base/shape.h>
#include <interpreter/tape/function_node.h>
#include <string.h>

/* ---- but for sizes ---- */

/* But for what their nodes have. */
bool eddy_calls_call_is_alike(const eddy_calls_call *a, const eddy_calls_call *b) {
    return a->kind == b->kind && !a->node == !b->node && a->loop == b->loop &&
           a->number == b->number && a->of == b->of && a->index == b->index &&
           a->place == b->place && a->owns[0] == b->owns[0] && a->owns[1] == b->owns[1] &&
           a->edges_at == b->edges_at && a->saved_at == b->saved_at &&
           a->saved_count == b->saved_count && a->numbers_at == b->numbers_at &&
           a->number_count == b->number_count;
}

bool eddy_calls_loop_is_alike(const eddy_calls_loop *a, const eddy_calls_loop *b) {
    return a->outer == b->outer && a->number == b->number && a->call_count == b->call_count &&
           a->loop_count == b->loop_count && a->steps == b->steps && a->before_at == b->before_at &&
           a->outputs_at == b->outputs_at && a->counts.carried == b->counts.carried &&
           a->counts.slices == b->counts.slices && a->counts.outputs == b->counts.outputs &&
           a->counts.is_reversed == b->counts.is_reversed;
}

bool eddy_calls_place_is_alike(const eddy_calls_place *a, const eddy_calls_place *b) {
    bool is_alike = a->value == b->value && a->saved == b->saved && a->dtype == b->dtype &&
                    a->device.kind == b->device.kind && a->device.index == b->device.index &&
                    a->list_count == b->list_count;
    for (uint32_t i = 0; i < a->list_count && is_alike; i++)
        is_alike = a->lists[i].loop == b->lists[i].loop &&
                   a->lists[i].is_reversed == b->lists[i].is_reversed;
    return is_alike;
}

static bool is_same_word(const eddy_calls_word *a, const eddy_calls_word *b) {
    return a->call == b->call && a->output == b->output;
}

bool eddy_calls_saved_is_equal(const eddy_calls_saved *a, const eddy_calls_saved *b) {
    return a->slot == b->slot && a->place == b->place && a->result == b->result &&
           is_same_word(&a->word, &b->word);
}

bool eddy_calls_number_is_equal(const eddy_calls_number *a, const eddy_calls_number *b) {
    return a->draw == b->draw && a->place == b->place && a->use.number == b->use.number &&
           a->use.dtype == b->use.dtype && a->use.attribute == b->use.attribute &&
           a->use.wraps == b->use.wraps;
}

/* ---- with sizes ---- */

/* What the code does not say: the shapes between one view and the next, which tell in which order a gradient is summed up. */
static bool is_same_node(const eddy_autograd_node *a, const eddy_autograd_node *b) {
    const eddy_function *function = eddy_function_of(a);
    if (function != eddy_function_of(b) || (!function && a->op != b->op) ||
        a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    for (uint32_t i = 0; i < a->input_count + a->output_count; i++) {
        const eddy_autograd_spec *x = &a->specs[i], *y = &b->specs[i];
        if (x->dtype != y->dtype || x->rank != y->rank ||
            !eddy_shape_equal(x->rank, a->dims + x->dims_at, y->rank, b->dims + y->dims_at))
            return false;
    }
    return true;
}

static bool is_same_call(const eddy_calls_call *a, const eddy_calls_call *b) {
    return eddy_calls_call_is_alike(a, b) && (!a->node || is_same_node(a->node, b->node));
}

static bool is_same_loop(const eddy_calls_loop *a, const eddy_calls_loop *b) {
    return eddy_calls_loop_is_alike(a, b) && a->counts.rows == b->counts.rows;
}

static bool is_same_place(const eddy_calls_place *a, const eddy_calls_place *b) {
    const eddy_layout *x = &a->layout, *y = &b->layout;
    bool is_same = eddy_calls_place_is_alike(a, b) && x->offset == y->offset &&
                   eddy_shape_equal(x->rank, x->dims, y->rank, y->dims) &&
                   eddy_shape_equal(x->rank, x->strides, y->rank, y->strides);
    for (uint32_t i = 0; i < a->list_count && is_same; i++)
        is_same = a->lists[i].stride == b->lists[i].stride;
    return is_same;
}

static bool has_same_counts(const eddy_gradient_calls *a, const eddy_gradient_calls *b) {
    return a->calls.count == b->calls.count && a->loops.count == b->loops.count &&
           a->edges.count == b->edges.count && a->places.count == b->places.count &&
           a->saved.count == b->saved.count && a->numbers.count == b->numbers.count &&
           a->roots.count == b->roots.count;
}

bool eddy_calls_is_equal(const eddy_gradient_calls *a, const eddy_gradient_calls *b) {
    bool is_same = has_same_counts(a, b) && strcmp(a->reason, b->reason) == 0;
    for (uint32_t i = 0; i < a->calls.count && is_same; i++)
        is_same = is_same_call(eddy_calls_call_at(a, i), eddy_calls_call_at(b, i));
    for (uint32_t i = 0; i < a->loops.count && is_same; i++)
        is_same = is_same_loop(eddy_calls_loop_at(a, i), eddy_calls_loop_at(b, i));
    for (uint32_t i = 0; i < a->edges.count && is_same; i++)
        is_same = is_same_word(eddy_gradient_calls_edge(a, i), eddy_gradient_calls_edge(b, i));
    for (uint32_t i = 0; i < a->places.count && is_same; i++)
        is_same = is_same_place(eddy_calls_place_at(a, i), eddy_calls_place_at(b, i));
    for (uint32_t i = 0; i < a->saved.count && is_same; i++)
        is_same = eddy_calls_saved_is_equal(eddy_calls_saved_at(a, i), eddy_calls_saved_at(b, i));
    for (uint32_t i = 0; i < a->numbers.count && is_same; i++)
        is_same =
            eddy_calls_number_is_equal(eddy_calls_number_at(a, i), eddy_calls_number_at(b, i));
    for (uint32_t i = 0; i < a->roots.count && is_same; i++)
        is_same = is_same_word(eddy_gradient_calls_root(a, i), eddy_gradient_calls_root(b, i));
    return is_same;
}
