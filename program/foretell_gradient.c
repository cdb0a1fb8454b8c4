/* How gradients go back through a run of a foretold program: its forward program and its ways are programs that are foretold as it is; nodes and edges
 * have dims and attributes that are. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/tape/function_node.h>
#include <program/calls_alike.h>
#include <program/foretell.h>
#include <program/gradient.h>
#include <string.h>

typedef struct teller {
    const eddy_program_gradient *first, *second;
    const eddy_affine *affine;
    eddy_program_gradient *third; /* being made */
    bool lacks_memory;
} teller;

/* The second array's items are checked beside this one's. */
static bool copy_items(teller *t, eddy_code_array *to, const eddy_code_array *from, size_t bytes) {
    uint32_t index;
    if (from->count == 0)
        return true;
    t->lacks_memory = !eddy_code_array_add(to, bytes, from->count, &index);
    if (!t->lacks_memory)
        memcpy(to->items, from->items, from->count * bytes);
    return !t->lacks_memory;
}

static bool is_same_array(const eddy_code_array *a, const eddy_code_array *b, size_t bytes) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * bytes) == 0);
}

static bool tell_program(teller *t, const eddy_program *first, const eddy_program *second,
                         const eddy_code *storages, eddy_program **third) {
    eddy_status status = eddy_program_foretell_part(first, second, t->affine, storages, third);
    t->lacks_memory = status == EDDY_OUT_OF_MEMORY;
    return status == EDDY_OK;
}

/* Without strides: 0 each. */
static bool tell_dims(const teller *t, int32_t rank, const int64_t *first, const int64_t *second,
                      int64_t *third) {
    eddy_layout layouts[3] = {{.rank = rank}, {.rank = rank}, {0}};
    if (rank <= 0)
        return true;
    memcpy(layouts[0].dims, first, (size_t)rank * sizeof(*first));
    memcpy(layouts[1].dims, second, (size_t)rank * sizeof(*second));
    if (!eddy_affine_layout(t->affine, &layouts[0], &layouts[1], &layouts[2]))
        return false;
    memcpy(third, layouts[2].dims, (size_t)rank * sizeof(*third));
    return true;
}

/* ---- ways ---- */

static bool tell_way(teller *t, uint32_t p) {
    const eddy_program_way *a = &t->first->ways->items[p], *b = &t->second->ways->items[p];
    eddy_program_way *way = &t->third->ways->items[p];
    if (a->roots != b->roots || !is_same_array(&a->from, &b->from, sizeof(uint32_t)) ||
        !is_same_array(&a->to, &b->to, sizeof(uint32_t)))
        return false;
    way->roots = a->roots;
    t->third->ways->count++;
    return copy_items(t, &way->from, &a->from, sizeof(uint32_t)) &&
           copy_items(t, &way->to, &a->to, sizeof(uint32_t)) &&
           tell_program(t, a->program, b->program, &t->third->forward->code, &way->program);
}

/* ---- what a node has ---- */

static bool tell_edges(teller *t) {
    const eddy_code_array *from = &t->first->edges;
    if (from->count != t->second->edges.count ||
        !copy_items(t, &t->third->edges, from, sizeof(eddy_program_edge)))
        return false;
    for (uint32_t i = 0; i < from->count; i++)
        if (eddy_program_edge_at(t->third, i)->word)
            eddy_autograd_node_retain(
                eddy_autograd_node_of(eddy_program_edge_at(t->third, i)->word));
    for (uint32_t i = 0; i < from->count; i++) {
        eddy_program_edge *edge = eddy_program_edge_at(t->third, i);
        const eddy_program_edge *other = eddy_program_edge_at(t->second, i);
        const eddy_shape *shape = &eddy_program_edge_at(t->first, i)->spec.shape;
        if (edge->input != other->input || edge->word != other->word ||
            edge->spec.dtype != other->spec.dtype || shape->rank != other->spec.shape.rank ||
            !tell_dims(t, shape->rank, shape->dims, other->spec.shape.dims, edge->spec.shape.dims))
            return false;
    }
    return true;
}

/* What is saved of the tensors that the program holds, the other one holds, too. */
static bool tell_saved(teller *t) {
    if (t->first->saved.count != t->second->saved.count)
        return false;
    for (uint32_t i = 0; i < t->first->saved.count; i++) {
        const eddy_program_saved *a = eddy_program_saved_at(t->first, i),
                                 *b = eddy_program_saved_at(t->second, i);
        if (a->value != b->value || a->output != b->output || a->input != b->input ||
            a->tensor != b->tensor || a->is_written != b->is_written)
            return false;
    }
    return copy_items(t, &t->third->saved, &t->first->saved, sizeof(eddy_program_saved));
}

static bool tell_results(teller *t) {
    if (t->first->results.count != t->second->results.count ||
        !is_same_array(&t->first->wants, &t->second->wants, sizeof(bool)) ||
        !copy_items(t, &t->third->wants, &t->first->wants, sizeof(bool)))
        return false;
    for (uint32_t i = 0; i < t->first->results.count; i++) {
        const eddy_program_result *a = eddy_program_result_at(t->first, i),
                                  *b = eddy_program_result_at(t->second, i);
        if (a->root != b->root || a->input != b->input || a->word != b->word ||
            a->stands_in != b->stands_in)
            return false;
    }
    if (!copy_items(t, &t->third->results, &t->first->results, sizeof(eddy_program_result)))
        return false;
    for (uint32_t i = 0; i < t->third->results.count; i++)
        if (eddy_program_result_at(t->third, i)->word)
            eddy_autograd_node_retain(
                eddy_autograd_node_of(eddy_program_result_at(t->third, i)->word));
    return true;
}

/* ---- nodes of calls ---- */

static bool tell_view(const teller *t, eddy_view_kind kind, const eddy_autograd_node *first,
                      const eddy_autograd_node *second, eddy_autograd_node *third) {
    if (kind == EDDY_VIEW_STRIDED) {
        const eddy_strided_attributes *a = first->attributes, *b = second->attributes;
        eddy_strided_attributes *c = third->attributes;
        return eddy_affine_layout(t->affine, &a->from, &b->from, &c->from) &&
               eddy_affine_layout(t->affine, &a->to, &b->to, &c->to);
    }
    if (!first->attributes)
        return true;
    const eddy_view_attributes *a = first->attributes, *b = second->attributes;
    eddy_view_attributes *c = third->attributes;
    if (kind == EDDY_VIEW_PERMUTE)
        return memcmp(a->axes, b->axes, (size_t)first->specs[0].rank * sizeof(*a->axes)) == 0;
    if (kind != EDDY_VIEW_PART)
        return true;
    return a->axes[0] == b->axes[0] && a->is_removed == b->is_removed &&
           memcmp(a->order, b->order, (size_t)first->specs[0].rank * sizeof(*a->order)) == 0 &&
           eddy_affine_number(t->affine, a->start, b->start, &c->start) &&
           eddy_affine_number(t->affine, a->step, b->step, &c->step) &&
           eddy_affine_number(t->affine, a->length, b->length, &c->length);
}

/* A number that each run gives: what it was when the call was recorded says nothing. */
static bool is_given(const teller *t, const eddy_calls_call *call, uint32_t attribute) {
    const eddy_gradient_calls *calls = &t->first->ways->calls;
    const eddy_op *op = call->node->op;
    uint32_t word = (uint32_t)(op->attributes[attribute].offset / sizeof(int64_t));
    for (uint32_t i = 0; i < call->number_count; i++) {
        const eddy_calls_number *number = eddy_calls_number_at(calls, call->numbers_at + i);
        if (number->draw || number->place != EDDY_CODE_NONE
                ? word == eddy_code_seed_word(op) || word == eddy_code_counter_word(op)
                : number->use.attribute == attribute)
            return true;
    }
    return false;
}

static bool tell_attributes(const teller *t, const eddy_calls_call *first,
                            const eddy_autograd_node *second, eddy_autograd_node *third) {
    const eddy_op *op = third->op;
    const char *a = first->node->attributes, *b = second->attributes;
    char *c = third->attributes;
    if (op >= eddy_view_ops && op < eddy_view_ops + EDDY_VIEW_KIND_COUNT)
        return tell_view(t, (eddy_view_kind)(op - eddy_view_ops), first->node, second, third);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        size_t offset = op->attributes[i].offset;
        if (!is_given(t, first, (uint32_t)i) &&
            !eddy_affine_attribute(t->affine, &op->attributes[i], a + offset, b + offset,
                                   c + offset))
            return false;
    }
    return op->attribute_count > 0 || op->attribute_bytes == 0 ||
           memcmp(a, b, op->attribute_bytes) == 0;
}

/* third: a copy of the first. */
static bool tell_node(const teller *t, const eddy_calls_call *first,
                      const eddy_autograd_node *second, eddy_autograd_node *third) {
    if (third->op != second->op || third->input_count != second->input_count ||
        third->output_count != second->output_count || third->list_count != second->list_count ||
        (third->list_count > 0 &&
         memcmp(third->list_counts, second->list_counts, third->list_count * sizeof(int64_t)) != 0))
        return false;
    for (uint32_t i = 0; i < third->input_count + third->output_count; i++) {
        const eddy_autograd_spec *a = &first->node->specs[i], *b = &second->specs[i];
        if (a->dtype != b->dtype || a->rank != b->rank ||
            !tell_dims(t, a->rank, first->node->dims + a->dims_at, second->dims + b->dims_at,
                       third->dims + third->specs[i].dims_at))
            return false;
    }
    return tell_attributes(t, first, second, third);
}

static bool has_function(const eddy_calls_call *call) {
    return call->node && eddy_function_of(call->node);
}

/* Not of a custom function: its nodes share a context, which may know the size. */
static bool tell_call(teller *t, uint32_t i) {
    const eddy_calls_call *a = eddy_calls_call_at(&t->first->ways->calls, i),
                          *b = eddy_calls_call_at(&t->second->ways->calls, i);
    eddy_code_array *calls = &t->third->ways->calls.calls;
    uint32_t index;
    if (!eddy_calls_call_is_alike(a, b) || has_function(a) || has_function(b))
        return false;
    eddy_autograd_node *node = a->node ? eddy_autograd_node_copy(a->node) : NULL;
    t->lacks_memory = (a->node && !node) || !eddy_code_array_add(calls, sizeof(*a), 1, &index);
    if (t->lacks_memory) {
        if (node)
            eddy_autograd_node_release(node);
        return false;
    }
    eddy_calls_call *call = eddy_calls_call_at(&t->third->ways->calls, index);
    *call = *a;
    call->node = node;
    return !node || tell_node(t, a, b->node, node);
}

static bool tell_loops(teller *t) {
    const eddy_gradient_calls *a = &t->first->ways->calls, *b = &t->second->ways->calls;
    eddy_gradient_calls *calls = &t->third->ways->calls;
    if (a->loops.count != b->loops.count ||
        !copy_items(t, &calls->loops, &a->loops, sizeof(eddy_calls_loop)))
        return false;
    for (uint32_t i = 0; i < a->loops.count; i++) {
        eddy_calls_loop *loop = eddy_calls_loop_at(calls, i);
        const eddy_calls_loop *other = eddy_calls_loop_at(b, i);
        if (!eddy_calls_loop_is_alike(loop, other) ||
            !eddy_affine_number(t->affine, loop->counts.rows, other->counts.rows,
                                &loop->counts.rows))
            return false;
    }
    return true;
}

/* ---- what the calls have saved ---- */

/* A view of what the run's node has, or of a row of lists that have as many as their loops: nothing else checks where it ends. */
static bool lies_within(const teller *t, const eddy_calls_place *place) {
    int64_t low, high, all,
        room = eddy_code_value_at(&t->third->forward->code, place->value)->bytes /
               eddy_dtype_size((eddy_dtype)place->dtype);
    for (uint32_t i = 0; i < place->list_count; i++) {
        const eddy_calls_list *list = &place->lists[i];
        int64_t rows = eddy_calls_loop_at(&t->third->ways->calls, list->loop)->counts.rows;
        if (__builtin_mul_overflow(list->stride, rows, &all) || all != room)
            return false;
        room = list->stride;
    }
    eddy_layout_extent(&place->layout, &low, &high);
    return place->layout.offset >= 0 && low >= 0 && high <= room;
}

/* third: a copy of the first. */
static bool tell_place(const teller *t, const eddy_calls_place *first,
                       const eddy_calls_place *second, eddy_calls_place *third) {
    if (!eddy_calls_place_is_alike(first, second))
        return false;
    for (uint32_t i = 0; i < first->list_count; i++)
        if (!eddy_affine_number(t->affine, first->lists[i].stride, second->lists[i].stride,
                                &third->lists[i].stride))
            return false;
    return eddy_affine_layout(t->affine, &first->layout, &second->layout, &third->layout) &&
           lies_within(t, third);
}

static bool tell_places(teller *t) {
    const eddy_gradient_calls *a = &t->first->ways->calls, *b = &t->second->ways->calls;
    eddy_gradient_calls *calls = &t->third->ways->calls;
    if (a->places.count != b->places.count ||
        !copy_items(t, &calls->places, &a->places, sizeof(eddy_calls_place)))
        return false;
    for (uint32_t i = 0; i < a->places.count; i++)
        if (!tell_place(t, eddy_calls_place_at(a, i), eddy_calls_place_at(b, i),
                        eddy_calls_place_at(calls, i)))
            return false;
    return true;
}

static bool tell_saved_of_calls(teller *t) {
    const eddy_gradient_calls *a = &t->first->ways->calls, *b = &t->second->ways->calls;
    if (a->saved.count != b->saved.count)
        return false;
    for (uint32_t i = 0; i < a->saved.count; i++)
        if (!eddy_calls_saved_is_equal(eddy_calls_saved_at(a, i), eddy_calls_saved_at(b, i)))
            return false;
    return copy_items(t, &t->third->ways->calls.saved, &a->saved, sizeof(eddy_calls_saved));
}

static bool tell_numbers(teller *t) {
    const eddy_gradient_calls *a = &t->first->ways->calls, *b = &t->second->ways->calls;
    if (a->numbers.count != b->numbers.count)
        return false;
    for (uint32_t i = 0; i < a->numbers.count; i++)
        if (!eddy_calls_number_is_equal(eddy_calls_number_at(a, i), eddy_calls_number_at(b, i)))
            return false;
    return copy_items(t, &t->third->ways->calls.numbers, &a->numbers, sizeof(eddy_calls_number));
}

static bool tell_calls(teller *t) {
    const eddy_gradient_calls *a = &t->first->ways->calls, *b = &t->second->ways->calls;
    eddy_gradient_calls *calls = &t->third->ways->calls;
    memcpy(calls->reason, a->reason, sizeof(calls->reason));
    calls->call_count = a->call_count;
    calls->loop_count = a->loop_count;
    if (strcmp(a->reason, b->reason) != 0 || a->calls.count != b->calls.count ||
        a->call_count != b->call_count || a->loop_count != b->loop_count ||
        !is_same_array(&a->edges, &b->edges, sizeof(eddy_calls_word)) ||
        !is_same_array(&a->roots, &b->roots, sizeof(eddy_calls_word)) ||
        !copy_items(t, &calls->edges, &a->edges, sizeof(eddy_calls_word)) ||
        !copy_items(t, &calls->roots, &a->roots, sizeof(eddy_calls_word)) || !tell_loops(t) ||
        !tell_places(t) || !tell_saved_of_calls(t) || !tell_numbers(t))
        return false;
    for (uint32_t i = 0; i < a->calls.count; i++)
        if (!tell_call(t, i))
            return false;
    return true;
}

/* ---- all of it ---- */

static bool tell_all(teller *t) {
    const eddy_program_ways *a = t->first->ways, *b = t->second->ways;
    eddy_program_ways *ways = t->third->ways;
    if (a->root_count != b->root_count || a->draw_count != b->draw_count ||
        a->scalar_count != b->scalar_count || a->inner != b->inner || a->count != b->count)
        return false;
    ways->root_count = a->root_count;
    ways->draw_count = a->draw_count;
    ways->scalar_count = a->scalar_count;
    ways->inner = a->inner;
    if (!tell_edges(t) || !tell_saved(t) || !tell_results(t) ||
        !tell_program(t, t->first->forward, t->second->forward, NULL, &t->third->forward))
        return false;
    for (uint32_t p = 0; p < a->count; p++)
        if (!tell_way(t, p))
            return false;
    return tell_calls(t);
}

eddy_status eddy_program_gradient_foretell(const eddy_program_gradient *first,
                                           const eddy_program_gradient *second,
                                           const eddy_affine *affine,
                                           eddy_program_gradient **gradient) {
    teller t = {first, second, affine, eddy_program_gradient_create(), false};
    if (!t.third)
        return EDDY_OUT_OF_MEMORY;
    if (tell_all(&t)) {
        *gradient = t.third;
        return EDDY_OK;
    }
    eddy_program_gradient_destroy(t.third);
    return t.lacks_memory ? EDDY_OUT_OF_MEMORY : EDDY_INVALID_ARGUMENT;
}
