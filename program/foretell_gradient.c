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
    const eddy_program_gradient *const *known;
    const eddy_affine *affine;
    eddy_program_gradient *told; /* being made */
    bool lacks_memory;
} teller;

static bool copy_items(teller *t, eddy_code_array *to, const eddy_code_array *from, size_t bytes) {
    uint32_t index;
    if (from->count == 0)
        return true;
    t->lacks_memory = !eddy_code_array_add(to, bytes, from->count, &index);
    if (!t->lacks_memory)
        memcpy(to->items, from->items, from->count * bytes);
    return !t->lacks_memory;
}

/* ---- whether two are alike but for numbers ---- */

static bool is_same_array(const eddy_code_array *a, const eddy_code_array *b, size_t bytes) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * bytes) == 0);
}

static bool has_same_ways(const eddy_program_ways *a, const eddy_program_ways *b) {
    if (a->root_count != b->root_count || a->draw_count != b->draw_count ||
        a->scalar_count != b->scalar_count || a->inner != b->inner || a->count != b->count)
        return false;
    for (uint32_t p = 0; p < a->count; p++)
        if (a->items[p].roots != b->items[p].roots ||
            !is_same_array(&a->items[p].from, &b->items[p].from, sizeof(uint32_t)) ||
            !is_same_array(&a->items[p].to, &b->items[p].to, sizeof(uint32_t)))
            return false;
    return true;
}

static bool has_same_edges(const eddy_program_gradient *a, const eddy_program_gradient *b) {
    if (a->edges.count != b->edges.count)
        return false;
    for (uint32_t i = 0; i < a->edges.count; i++) {
        const eddy_program_edge *edge = eddy_program_edge_at(a, i),
                                *other = eddy_program_edge_at(b, i);
        if (edge->input != other->input || edge->word != other->word ||
            edge->spec.dtype != other->spec.dtype ||
            edge->spec.shape.rank != other->spec.shape.rank)
            return false;
    }
    return true;
}

/* What is saved of the tensors that the program holds, the other one holds, too. */
static bool has_same_saved(const eddy_program_gradient *a, const eddy_program_gradient *b) {
    if (a->saved.count != b->saved.count)
        return false;
    for (uint32_t i = 0; i < a->saved.count; i++) {
        const eddy_program_saved *saved = eddy_program_saved_at(a, i),
                                 *other = eddy_program_saved_at(b, i);
        if (saved->value != other->value || saved->output != other->output ||
            saved->input != other->input || saved->tensor != other->tensor ||
            saved->is_written != other->is_written)
            return false;
    }
    return true;
}

static bool has_same_results(const eddy_program_gradient *a, const eddy_program_gradient *b) {
    if (a->results.count != b->results.count || !is_same_array(&a->wants, &b->wants, sizeof(bool)))
        return false;
    for (uint32_t i = 0; i < a->results.count; i++) {
        const eddy_program_result *result = eddy_program_result_at(a, i),
                                  *other = eddy_program_result_at(b, i);
        if (result->root != other->root || result->input != other->input ||
            result->word != other->word || result->stands_in != other->stands_in)
            return false;
    }
    return true;
}

static bool is_same_node(const eddy_autograd_node *a, const eddy_autograd_node *b) {
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count ||
        a->list_count != b->list_count ||
        (a->list_count > 0 &&
         memcmp(a->list_counts, b->list_counts, a->list_count * sizeof(int64_t)) != 0))
        return false;
    for (uint32_t i = 0; i < a->input_count + a->output_count; i++)
        if (a->specs[i].dtype != b->specs[i].dtype || a->specs[i].rank != b->specs[i].rank)
            return false;
    return true;
}

/* A custom function's nodes share a context, which may know the size. */
static bool is_same_call(const eddy_calls_call *a, const eddy_calls_call *b) {
    return eddy_calls_call_is_alike(a, b) &&
           (!a->node || (!eddy_function_of(a->node) && !eddy_function_of(b->node) &&
                         is_same_node(a->node, b->node)));
}

static bool has_same_calls(const eddy_gradient_calls *a, const eddy_gradient_calls *b) {
    if (strcmp(a->reason, b->reason) != 0 || a->calls.count != b->calls.count ||
        a->call_count != b->call_count || a->loop_count != b->loop_count ||
        a->loops.count != b->loops.count || a->places.count != b->places.count ||
        a->saved.count != b->saved.count || a->numbers.count != b->numbers.count ||
        !is_same_array(&a->edges, &b->edges, sizeof(eddy_calls_word)) ||
        !is_same_array(&a->roots, &b->roots, sizeof(eddy_calls_word)))
        return false;
    for (uint32_t i = 0; i < a->loops.count; i++)
        if (!eddy_calls_loop_is_alike(eddy_calls_loop_at(a, i), eddy_calls_loop_at(b, i)))
            return false;
    for (uint32_t i = 0; i < a->places.count; i++)
        if (!eddy_calls_place_is_alike(eddy_calls_place_at(a, i), eddy_calls_place_at(b, i)))
            return false;
    for (uint32_t i = 0; i < a->saved.count; i++)
        if (!eddy_calls_saved_is_equal(eddy_calls_saved_at(a, i), eddy_calls_saved_at(b, i)))
            return false;
    for (uint32_t i = 0; i < a->numbers.count; i++)
        if (!eddy_calls_number_is_equal(eddy_calls_number_at(a, i), eddy_calls_number_at(b, i)))
            return false;
    for (uint32_t i = 0; i < a->calls.count; i++)
        if (!is_same_call(eddy_calls_call_at(a, i), eddy_calls_call_at(b, i)))
            return false;
    return true;
}

static bool is_alike(const eddy_program_gradient *a, const eddy_program_gradient *b) {
    return has_same_ways(a->ways, b->ways) && has_same_edges(a, b) && has_same_saved(a, b) &&
           has_same_results(a, b) && has_same_calls(&a->ways->calls, &b->ways->calls);
}

/* ---- programs ---- */

/* storages: as eddy_program_foretell_part. */
static bool tell_program(teller *t, const eddy_program *const *known, const eddy_code *storages,
                         eddy_program **told) {
    eddy_status status = eddy_program_foretell_part(known, t->affine, storages, told);
    t->lacks_memory = status == EDDY_OUT_OF_MEMORY;
    return status == EDDY_OK;
}

static bool tell_forward(teller *t) {
    const eddy_program *known[EDDY_KNOWN_MOST];
    for (int32_t p = 0; p < t->affine->count; p++)
        known[p] = t->known[p]->forward;
    return tell_program(t, known, NULL, &t->told->forward);
}

static bool tell_way(teller *t, uint32_t w) {
    const eddy_program *known[EDDY_KNOWN_MOST];
    const eddy_program_way *first = &t->known[0]->ways->items[w];
    eddy_program_way *way = &t->told->ways->items[w];
    for (int32_t p = 0; p < t->affine->count; p++)
        known[p] = t->known[p]->ways->items[w].program;
    way->roots = first->roots;
    t->told->ways->count++;
    return copy_items(t, &way->from, &first->from, sizeof(uint32_t)) &&
           copy_items(t, &way->to, &first->to, sizeof(uint32_t)) &&
           tell_program(t, known, &t->told->forward->code, &way->program);
}

/* ---- what a node has ---- */

/* known: dims of each program, whose rank is a tensor's. Without strides: 0 each. */
static bool tell_dims(const teller *t, int32_t rank, const int64_t *const *known, int64_t *told) {
    eddy_layout layouts[EDDY_KNOWN_MOST], layout = {0};
    if (rank <= 0)
        return true;
    for (int32_t p = 0; p < t->affine->count; p++) {
        layouts[p] = (eddy_layout){.rank = rank};
        memcpy(layouts[p].dims, known[p], (size_t)rank * sizeof(**known));
    }
    if (!eddy_affine_layout(t->affine, layouts, &layout))
        return false;
    memcpy(told, layout.dims, (size_t)rank * sizeof(*told));
    return true;
}

static bool tell_edges(teller *t) {
    if (!copy_items(t, &t->told->edges, &t->known[0]->edges, sizeof(eddy_program_edge)))
        return false;
    for (uint32_t i = 0; i < t->told->edges.count; i++)
        if (eddy_program_edge_at(t->told, i)->word)
            eddy_autograd_node_retain(
                eddy_autograd_node_of(eddy_program_edge_at(t->told, i)->word));
    for (uint32_t i = 0; i < t->told->edges.count; i++) {
        const int64_t *known[EDDY_KNOWN_MOST];
        eddy_shape *shape = &eddy_program_edge_at(t->told, i)->spec.shape;
        for (int32_t p = 0; p < t->affine->count; p++)
            known[p] = eddy_program_edge_at(t->known[p], i)->spec.shape.dims;
        if (!tell_dims(t, shape->rank, known, shape->dims))
            return false;
    }
    return true;
}

static bool tell_results(teller *t) {
    if (!copy_items(t, &t->told->wants, &t->known[0]->wants, sizeof(bool)) ||
        !copy_items(t, &t->told->results, &t->known[0]->results, sizeof(eddy_program_result)))
        return false;
    for (uint32_t i = 0; i < t->told->results.count; i++)
        if (eddy_program_result_at(t->told, i)->word)
            eddy_autograd_node_retain(
                eddy_autograd_node_of(eddy_program_result_at(t->told, i)->word));
    return true;
}

/* ---- nodes of calls ---- */

static const eddy_calls_call *call_of(const teller *t, int32_t p, uint32_t i) {
    return eddy_calls_call_at(&t->known[p]->ways->calls, i);
}

static bool tell_strided(const teller *t, uint32_t i, eddy_strided_attributes *told) {
    eddy_layout from[EDDY_KNOWN_MOST], to[EDDY_KNOWN_MOST];
    for (int32_t p = 0; p < t->affine->count; p++) {
        const eddy_strided_attributes *known = call_of(t, p, i)->node->attributes;
        from[p] = known->from;
        to[p] = known->to;
    }
    return eddy_affine_layout(t->affine, from, &told->from) &&
           eddy_affine_layout(t->affine, to, &told->to);
}

static bool tell_part(const teller *t, uint32_t i, int32_t rank, eddy_view_attributes *told) {
    int64_t start[EDDY_KNOWN_MOST], step[EDDY_KNOWN_MOST], length[EDDY_KNOWN_MOST];
    for (int32_t p = 0; p < t->affine->count; p++) {
        const eddy_view_attributes *known = call_of(t, p, i)->node->attributes;
        if (known->axes[0] != told->axes[0] || known->is_removed != told->is_removed ||
            memcmp(known->order, told->order, (size_t)rank * sizeof(*told->order)) != 0)
            return false;
        start[p] = known->start;
        step[p] = known->step;
        length[p] = known->length;
    }
    return eddy_affine_number(t->affine, start, &told->start) &&
           eddy_affine_number(t->affine, step, &told->step) &&
           eddy_affine_number(t->affine, length, &told->length);
}

static bool has_same_axes(const teller *t, uint32_t i, int32_t rank) {
    const eddy_view_attributes *first = call_of(t, 0, i)->node->attributes;
    for (int32_t p = 1; p < t->affine->count; p++) {
        const eddy_view_attributes *other = call_of(t, p, i)->node->attributes;
        if (memcmp(first->axes, other->axes, (size_t)rank * sizeof(*first->axes)) != 0)
            return false;
    }
    return true;
}

static bool tell_view(const teller *t, uint32_t i, eddy_view_kind kind, eddy_autograd_node *told) {
    int32_t rank = told->specs[0].rank;
    if (kind == EDDY_VIEW_STRIDED)
        return tell_strided(t, i, told->attributes);
    if (!told->attributes)
        return true;
    if (kind == EDDY_VIEW_PERMUTE)
        return has_same_axes(t, i, rank);
    return kind != EDDY_VIEW_PART || tell_part(t, i, rank, told->attributes);
}

/* A number that each run gives: what it was when the call was recorded says nothing. */
static bool is_given(const teller *t, const eddy_calls_call *call, uint32_t attribute) {
    const eddy_gradient_calls *calls = &t->known[0]->ways->calls;
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

static bool tell_attributes(const teller *t, uint32_t i, eddy_autograd_node *told) {
    const eddy_op *op = told->op;
    const char *known[EDDY_KNOWN_MOST], *of[EDDY_KNOWN_MOST];
    if (op >= eddy_view_ops && op < eddy_view_ops + EDDY_VIEW_KIND_COUNT)
        return tell_view(t, i, (eddy_view_kind)(op - eddy_view_ops), told);
    for (int32_t p = 0; p < t->affine->count; p++) {
        known[p] = call_of(t, p, i)->node->attributes;
        if (op->attribute_count == 0 && op->attribute_bytes > 0 &&
            memcmp(known[0], known[p], op->attribute_bytes) != 0)
            return false;
    }
    for (int32_t a = 0; a < op->attribute_count; a++) {
        size_t offset = op->attributes[a].offset;
        for (int32_t p = 0; p < t->affine->count; p++)
            of[p] = known[p] + offset;
        if (!is_given(t, call_of(t, 0, i), (uint32_t)a) &&
            !eddy_affine_attribute(t->affine, &op->attributes[a], of,
                                   (char *)told->attributes + offset))
            return false;
    }
    return true;
}

/* told: a copy of the first. */
static bool tell_node(const teller *t, uint32_t i, eddy_autograd_node *told) {
    for (uint32_t k = 0; k < told->input_count + told->output_count; k++) {
        const int64_t *known[EDDY_KNOWN_MOST];
        for (int32_t p = 0; p < t->affine->count; p++) {
            const eddy_autograd_node *node = call_of(t, p, i)->node;
            known[p] = node->dims + node->specs[k].dims_at;
        }
        if (!tell_dims(t, told->specs[k].rank, known, told->dims + told->specs[k].dims_at))
            return false;
    }
    return tell_attributes(t, i, told);
}

static bool tell_call(teller *t, uint32_t i) {
    const eddy_calls_call *first = call_of(t, 0, i);
    eddy_code_array *calls = &t->told->ways->calls.calls;
    uint32_t index;
    eddy_autograd_node *node = first->node ? eddy_autograd_node_copy(first->node) : NULL;
    t->lacks_memory =
        (first->node && !node) || !eddy_code_array_add(calls, sizeof(*first), 1, &index);
    if (t->lacks_memory) {
        if (node)
            eddy_autograd_node_release(node);
        return false;
    }
    eddy_calls_call *call = eddy_calls_call_at(&t->told->ways->calls, index);
    *call = *first;
    call->node = node;
    return !node || tell_node(t, i, node);
}

static bool tell_loops(teller *t) {
    eddy_gradient_calls *calls = &t->told->ways->calls;
    if (!copy_items(t, &calls->loops, &t->known[0]->ways->calls.loops, sizeof(eddy_calls_loop)))
        return false;
    for (uint32_t i = 0; i < calls->loops.count; i++) {
        int64_t rows[EDDY_KNOWN_MOST];
        for (int32_t p = 0; p < t->affine->count; p++)
            rows[p] = eddy_calls_loop_at(&t->known[p]->ways->calls, i)->counts.rows;
        if (!eddy_affine_number(t->affine, rows, &eddy_calls_loop_at(calls, i)->counts.rows))
            return false;
    }
    return true;
}

/* ---- what the calls have saved ---- */

/* A view of what the run's node has, or of a row of lists that have as many as their loops: nothing else checks where it ends. */
static bool lies_within(const teller *t, const eddy_calls_place *place) {
    int64_t low, high, all,
        room = eddy_code_value_at(&t->told->forward->code, place->value)->bytes /
               eddy_dtype_size((eddy_dtype)place->dtype);
    for (uint32_t i = 0; i < place->list_count; i++) {
        const eddy_calls_list *list = &place->lists[i];
        int64_t rows = eddy_calls_loop_at(&t->told->ways->calls, list->loop)->counts.rows;
        if (__builtin_mul_overflow(list->stride, rows, &all) || all != room)
            return false;
        room = list->stride;
    }
    eddy_layout_extent(&place->layout, &low, &high);
    return place->layout.offset >= 0 && low >= 0 && high <= room;
}

/* told: a copy of the first. */
static bool tell_place(const teller *t, uint32_t i, eddy_calls_place *told) {
    const eddy_calls_place *known[EDDY_KNOWN_MOST];
    eddy_layout layouts[EDDY_KNOWN_MOST];
    int64_t strides[EDDY_KNOWN_MOST];
    for (int32_t p = 0; p < t->affine->count; p++) {
        known[p] = eddy_calls_place_at(&t->known[p]->ways->calls, i);
        layouts[p] = known[p]->layout;
    }
    for (uint32_t l = 0; l < told->list_count; l++) {
        for (int32_t p = 0; p < t->affine->count; p++)
            strides[p] = known[p]->lists[l].stride;
        if (!eddy_affine_number(t->affine, strides, &told->lists[l].stride))
            return false;
    }
    return eddy_affine_layout(t->affine, layouts, &told->layout) && lies_within(t, told);
}

static bool tell_places(teller *t) {
    eddy_gradient_calls *calls = &t->told->ways->calls;
    if (!copy_items(t, &calls->places, &t->known[0]->ways->calls.places, sizeof(eddy_calls_place)))
        return false;
    for (uint32_t i = 0; i < calls->places.count; i++)
        if (!tell_place(t, i, eddy_calls_place_at(calls, i)))
            return false;
    return true;
}

static bool tell_calls(teller *t) {
    const eddy_gradient_calls *first = &t->known[0]->ways->calls;
    eddy_gradient_calls *calls = &t->told->ways->calls;
    memcpy(calls->reason, first->reason, sizeof(calls->reason));
    calls->call_count = first->call_count;
    calls->loop_count = first->loop_count;
    if (!copy_items(t, &calls->edges, &first->edges, sizeof(eddy_calls_word)) ||
        !copy_items(t, &calls->roots, &first->roots, sizeof(eddy_calls_word)) ||
        !copy_items(t, &calls->saved, &first->saved, sizeof(eddy_calls_saved)) ||
        !copy_items(t, &calls->numbers, &first->numbers, sizeof(eddy_calls_number)) ||
        !tell_loops(t) || !tell_places(t))
        return false;
    for (uint32_t i = 0; i < first->calls.count; i++)
        if (!tell_call(t, i))
            return false;
    return true;
}

/* ---- all of it ---- */

static bool tell_all(teller *t) {
    const eddy_program_ways *first = t->known[0]->ways;
    eddy_program_ways *ways = t->told->ways;
    for (int32_t p = 1; p < t->affine->count; p++)
        if (!is_alike(t->known[0], t->known[p]))
            return false;
    ways->root_count = first->root_count;
    ways->draw_count = first->draw_count;
    ways->scalar_count = first->scalar_count;
    ways->inner = first->inner;
    if (!tell_edges(t) ||
        !copy_items(t, &t->told->saved, &t->known[0]->saved, sizeof(eddy_program_saved)) ||
        !tell_results(t) || !tell_forward(t))
        return false;
    for (uint32_t w = 0; w < first->count; w++)
        if (!tell_way(t, w))
            return false;
    return tell_calls(t);
}

eddy_status eddy_program_gradient_foretell(const eddy_program_gradient *const *known,
                                           const eddy_affine *affine,
                                           eddy_program_gradient **gradient) {
    teller t = {known, affine, eddy_program_gradient_create(), false};
    if (!t.told)
        return EDDY_OUT_OF_MEMORY;
    if (tell_all(&t)) {
        *gradient = t.told;
        return EDDY_OK;
    }
    eddy_program_gradient_destroy(t.told);
    return t.lacks_memory ? EDDY_OUT_OF_MEMORY : EDDY_INVALID_ARGUMENT;
}
