#include <program/saved.h>

#include <base/memory.h>
#include <base/status.h>
#include <program/draw_ops.h>
#include <program/loop_tape.h>
#include <program/recording.h>
#include <program/tensor_list.h>
#include <string.h>

typedef struct eddy_saved_part {
    eddy_control mark;        /* of a branch; NONE: a row */
    eddy_tensor *root;        /* row: a reference; NULL: of what a node has drawn */
    eddy_autograd_node *node; /* such a row: a reference */
    eddy_tensor *row;         /* row, while it is got: a reference */
    bool is_open;             /* row, while they are found: it is there where the next one is */
    eddy_branch_tape *branch; /* IF: a node that a slot or an output holds */
    uint32_t known;           /* row: 1 + the known value that it is; 0: none */
    uint32_t list;            /* row: the number of its list */
    uint32_t predicate;       /* IF: its row, or EDDY_CODE_NONE if it is no value of the body */
} eddy_saved_part;

typedef struct eddy_saved_slot {
    eddy_autograd_node *node; /* a reference */
    uint32_t slot, part;
    eddy_layout layout;
    eddy_autograd word; /* of the tensor: a reference */
} eddy_saved_slot;

/* A branch within a loop of the body: the step has made its predicate. */
typedef struct eddy_saved_turn {
    eddy_branch_tape *branch; /* a node that a slot or an output holds */
    uint32_t part;
} eddy_saved_turn;

static eddy_saved_part *part_at(const eddy_saved *s, uint32_t i) {
    return (eddy_saved_part *)s->parts.items + i;
}

static bool is_row(const eddy_saved_part *part) {
    return part->mark == EDDY_CONTROL_NONE;
}

static eddy_saved_slot *slot_at(const eddy_saved *s, uint32_t i) {
    return (eddy_saved_slot *)s->slots.items + i;
}

static eddy_saved_turn *turn_at(const eddy_saved *s, uint32_t i) {
    return (eddy_saved_turn *)s->turns.items + i;
}

static eddy_status fail_memory(const eddy_block_call *call) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, call->origin, "no memory to record the call");
}

void eddy_saved_fini(eddy_saved *saved) {
    for (uint32_t i = 0; i < saved->parts.count; i++) {
        if (part_at(saved, i)->root)
            eddy_tensor_drop(part_at(saved, i)->root);
        if (part_at(saved, i)->node)
            eddy_autograd_node_release(part_at(saved, i)->node);
    }
    for (uint32_t i = 0; i < saved->slots.count; i++) {
        const eddy_saved_slot *slot = slot_at(saved, i);
        eddy_autograd_node_release(slot->node);
        if (slot->word)
            eddy_autograd_node_release(eddy_autograd_node_of(slot->word));
    }
    eddy_code_array_fini(&saved->parts, sizeof(eddy_saved_part));
    eddy_code_array_fini(&saved->slots, sizeof(eddy_saved_slot));
    eddy_code_array_fini(&saved->turns, sizeof(eddy_saved_turn));
    eddy_pointer_index_fini(&saved->slot_of);
    eddy_pointer_index_fini(&saved->part_of);
    saved->row_count = 0;
}

/* ---- finding ---- */

/* A loop within the body, and the one that it is in. */
typedef struct inner_loop {
    const eddy_saved *saved;
    const struct inner_loop *around; /* NULL: the body itself */
} inner_loop;

/* The nodes of one way: a list of all that were met, of which those from `next` on are to be looked at. */
typedef struct nodes {
    eddy_code_array items; /* eddy_autograd_node * */
    eddy_pointer_index met;
    uint32_t next;
    uint64_t serial; /* of the way */
    struct nodes
        *around; /* of the way, or the body, that it is in, which is not done yet; or NULL */
} nodes;

typedef struct finder {
    const eddy_block_call *call;
    uint32_t first;
    const eddy_saved_known *known;
    eddy_saved *saved;
    const inner_loop *loop; /* whose tape is looked at; NULL: the body's own */
    nodes *nodes;           /* of the way that is looked at */
} finder;

/* The node that a word of one way leads to may be one of a way around that, whose own nodes do not lead there: the edges of a branch or loop are those that gradients of the first
 * order come to, while those of gradients go through all calls. */
static bool meet(nodes *n, eddy_autograd word) {
    eddy_autograd_node *node = eddy_autograd_node_of(word);
    uint32_t index;
    while (word && n && node->recording != n->serial)
        n = n->around;
    if (!word || !n)
        return true;
    if (eddy_pointer_index_find(&n->met, node, 0) != EDDY_CODE_NONE)
        return true;
    if (!eddy_code_array_add(&n->items, sizeof(node), 1, &index) ||
        !eddy_pointer_index_set(&n->met, node, 0, index))
        return false;
    ((eddy_autograd_node **)n->items.items)[index] = node;
    return true;
}

static eddy_status add_part(const finder *f, eddy_saved_part part, uint32_t *index) {
    if (!eddy_code_array_add(&f->saved->parts, sizeof(part), 1, index))
        return fail_memory(f->call);
    part.list = f->saved->row_count;
    f->saved->row_count += is_row(&part);
    *part_at(f->saved, *index) = part;
    return EDDY_OK;
}

/* 1 + the known value that the tensor's storage is; 0. */
static uint32_t find_known(const finder *f, const eddy_tensor *tensor) {
    for (int64_t i = 0; i < f->known->count; i++)
        if (f->known->tensors[i]->root == tensor->root)
            return 1 + (uint32_t)i;
    return 0;
}

/* The part that the tensor's storage is; EDDY_CODE_NONE if the body has not made it. */
static eddy_status find_row(const finder *f, const eddy_tensor *tensor, uint32_t *part) {
    const eddy_recording *recording = f->call->recording;
    uint32_t value = eddy_recording_value_of(recording, tensor);
    *part = EDDY_CODE_NONE;
    if (value == EDDY_CODE_NONE || value < f->first ||
        eddy_code_value_at(&recording->code, value)->kind != EDDY_VALUE_MADE)
        return EDDY_OK;
    *part = eddy_pointer_index_find(&f->saved->part_of, tensor->root, 0);
    if (*part != EDDY_CODE_NONE && part_at(f->saved, *part)->is_open)
        return EDDY_OK;
    eddy_status status = add_part(
        f, (eddy_saved_part){.root = tensor->root, .is_open = true, .known = find_known(f, tensor)},
        part);
    if (status != EDDY_OK)
        return status;
    eddy_tensor_retain(tensor->root);
    return eddy_pointer_index_set(&f->saved->part_of, tensor->root, 0, *part)
               ? EDDY_OK
               : fail_memory(f->call);
}

/* Whether a loop within the body gets it back itself, in each of its own steps. */
static bool is_slot_of_loop(const finder *f, const eddy_autograd_node *node, uint32_t i) {
    for (const inner_loop *loop = f->loop; loop; loop = loop->around)
        if (eddy_pointer_index_find(&loop->saved->slot_of, node, i) != EDDY_CODE_NONE)
            return true;
    return false;
}

static eddy_status add_slot(const finder *f, eddy_autograd_node *node, uint32_t i) {
    const eddy_autograd_saved *saved = &node->saved[i];
    uint32_t part, index;
    if (!saved->tensor || eddy_tensor_is_none(saved->tensor) || is_slot_of_loop(f, node, i))
        return EDDY_OK;
    eddy_status status = find_row(f, saved->tensor, &part);
    if (status != EDDY_OK || part == EDDY_CODE_NONE)
        return status;
    if (!eddy_code_array_add(&f->saved->slots, sizeof(eddy_saved_slot), 1, &index))
        return fail_memory(f->call);
    eddy_saved_slot *slot = slot_at(f->saved, index);
    *slot =
        (eddy_saved_slot){.node = node, .slot = i, .part = part, .word = saved->tensor->autograd};
    eddy_autograd_node_retain(node);
    if (slot->word)
        eddy_autograd_node_retain(eddy_autograd_node_of(slot->word));
    eddy_tensor_layout(saved->tensor, &slot->layout);
    return eddy_pointer_index_set(&f->saved->slot_of, node, i, index) ? EDDY_OK
                                                                      : fail_memory(f->call);
}

static eddy_status find_way(const finder *f, const eddy_way_tape *way);

/* What is found on a way is there on that way alone. */
static eddy_status find_on(const finder *f, const eddy_way_tape *way, eddy_saved_part mark) {
    uint32_t at;
    eddy_status status = add_part(f, mark, &at);
    if (status == EDDY_OK)
        status = find_way(f, way);
    for (uint32_t i = at; i < f->saved->parts.count; i++)
        part_at(f->saved, i)->is_open = false;
    return status;
}

static eddy_status find_branch(const finder *f, eddy_branch_tape *branch) {
    eddy_saved_part begin = {.mark = EDDY_CONTROL_IF, .branch = branch},
                    middle = {.mark = EDDY_CONTROL_ELSE}, end = {.mark = EDDY_CONTROL_END_IF};
    eddy_status status = find_row(f, branch->predicate, &begin.predicate);
    uint32_t index;
    if (status == EDDY_OK)
        status = find_on(f, &branch->ways[0], begin);
    if (status == EDDY_OK)
        status = find_on(f, &branch->ways[1], middle);
    return status == EDDY_OK ? add_part(f, end, &index) : status;
}

static bool has_predicate(const eddy_saved *saved, const eddy_branch_tape *branch) {
    for (uint32_t i = 0; i < saved->parts.count; i++)
        if (part_at(saved, i)->branch == branch && part_at(saved, i)->predicate != EDDY_CODE_NONE)
            return true;
    for (uint32_t i = 0; i < saved->turns.count; i++)
        if (turn_at(saved, i)->branch == branch)
            return true;
    return false;
}

static bool is_predicate_of_loop(const finder *f, const eddy_branch_tape *branch) {
    for (const inner_loop *loop = f->loop; loop; loop = loop->around)
        if (has_predicate(loop->saved, branch))
            return true;
    return false;
}

static eddy_status add_turn(const finder *f, eddy_branch_tape *branch) {
    uint32_t part, index;
    eddy_status status = find_row(f, branch->predicate, &part);
    if (status != EDDY_OK || part == EDDY_CODE_NONE)
        return status;
    if (!eddy_code_array_add(&f->saved->turns, sizeof(eddy_saved_turn), 1, &index))
        return fail_memory(f->call);
    *turn_at(f->saved, index) = (eddy_saved_turn){.branch = branch, .part = part};
    return EDDY_OK;
}

/* Its ways may read what the step has made before the loop, which is there whatever way is taken: no marks. */
static eddy_status find_branch_of_loop(const finder *f, eddy_branch_tape *branch) {
    eddy_status status = is_predicate_of_loop(f, branch) ? EDDY_OK : add_turn(f, branch);
    for (int way = 0; way < 2 && status == EDDY_OK; way++)
        status = find_way(f, &branch->ways[way]);
    return status;
}

/* A loop within the body saves what its own steps make; what they read of the body's step is saved here. */
static eddy_status find_loop(const finder *f, const eddy_loop_tape *tape) {
    inner_loop loop = {.saved = &tape->saved, .around = f->loop};
    finder within = *f;
    within.loop = &loop;
    return find_way(&within, &tape->body);
}

/* Whether the gradient of the node's call may need the numbers that it has drawn. */
static bool has_drawn(const eddy_autograd_node *node) {
    double chance = 1;
    if (!node->op || !node->op->is_random)
        return false;
    if (node->op->chance_of > 0)
        memcpy(&chance,
               (const char *)node->attributes +
                   node->op->attributes[node->op->chance_of - 1].offset,
               sizeof(chance));
    return chance != 0;
}

static eddy_status add_drawn(const finder *f, eddy_autograd_node *node) {
    uint32_t index;
    eddy_status status = add_part(f, (eddy_saved_part){.node = node}, &index);
    if (status != EDDY_OK)
        return status;
    eddy_autograd_node_retain(node);
    return EDDY_OK;
}

static eddy_status find_node(const finder *f, eddy_autograd_node *node) {
    eddy_status status = has_drawn(node) && !f->loop ? add_drawn(f, node) : EDDY_OK;
    for (uint32_t i = 0; i < eddy_autograd_saved_count(node) && status == EDDY_OK; i++)
        status = add_slot(f, node, i);
    eddy_branch_tape *branch = eddy_branch_tape_of(node);
    const eddy_loop_tape *loop = eddy_loop_tape_of(node);
    if (status == EDDY_OK && branch)
        status = f->loop ? find_branch_of_loop(f, branch) : find_branch(f, branch);
    return status == EDDY_OK && loop ? find_loop(f, loop) : status;
}

static eddy_status find_nodes(const finder *f, const eddy_way_tape *way) {
    nodes *n = f->nodes;
    for (int64_t i = 0; i < way->count; i++)
        if (!meet(n, way->outputs[i]->autograd))
            return fail_memory(f->call);
    for (; n->next < n->items.count; n->next++) {
        eddy_autograd_node *node = ((eddy_autograd_node **)n->items.items)[n->next];
        eddy_status status = find_node(f, node);
        if (status != EDDY_OK)
            return status;
        for (uint32_t e = 0; e < node->input_count; e++)
            if (!meet(n, node->edges[e]))
                return fail_memory(f->call);
    }
    return EDDY_OK;
}

static eddy_status find_way(const finder *f, const eddy_way_tape *way) {
    nodes n = {.serial = way->serial, .around = f->nodes};
    finder within = *f;
    within.nodes = &n;
    eddy_status status = find_nodes(&within, way);
    eddy_code_array_fini(&n.items, sizeof(eddy_autograd_node *));
    eddy_pointer_index_fini(&n.met);
    return status;
}

eddy_status eddy_saved_find(const eddy_block_call *call, const eddy_way_tape *way, uint32_t first,
                            const eddy_saved_known *known, eddy_saved *saved) {
    finder f = {.call = call, .first = first, .known = known, .saved = saved};
    *saved = (eddy_saved){.first = first};
    return find_way(&f, way);
}

/* ---- where they are ---- */

static eddy_saved_row row_of(const eddy_saved *saved, uint32_t part, const eddy_layout *layout) {
    return (eddy_saved_row){.list = part_at(saved, part)->list,
                            .is_known = part_at(saved, part)->known != 0,
                            .layout = *layout};
}

bool eddy_saved_find_slot(const eddy_saved *saved, const eddy_autograd_node *node, uint32_t slot,
                          eddy_saved_row *row) {
    uint32_t at = eddy_pointer_index_find(&saved->slot_of, node, slot);
    if (at == EDDY_CODE_NONE)
        return false;
    const eddy_saved_slot *found = slot_at(saved, at);
    *row = row_of(saved, found->part, &found->layout);
    row->word = found->word;
    return true;
}

bool eddy_saved_find_drawn(const eddy_saved *saved, const eddy_autograd_node *node,
                           eddy_saved_row *row) {
    static const eddy_layout words = {.rank = 1, .dims = {2}, .strides = {1}};
    for (uint32_t i = 0; i < saved->parts.count; i++)
        if (part_at(saved, i)->node == node) {
            *row = row_of(saved, i, &words);
            return true;
        }
    return false;
}

bool eddy_saved_find_predicate(const eddy_saved *saved, const eddy_branch_tape *branch,
                               eddy_saved_row *row) {
    uint32_t found = EDDY_CODE_NONE;
    for (uint32_t i = 0; i < saved->parts.count; i++)
        if (part_at(saved, i)->branch == branch && part_at(saved, i)->predicate != EDDY_CODE_NONE)
            found = part_at(saved, i)->predicate;
    for (uint32_t i = 0; i < saved->turns.count; i++)
        if (turn_at(saved, i)->branch == branch)
            found = turn_at(saved, i)->part;
    if (found == EDDY_CODE_NONE)
        return false;
    eddy_layout layout;
    eddy_tensor_layout(branch->predicate, &layout);
    *row = row_of(saved, found, &layout);
    return true;
}

static bool is_part_alike(const eddy_saved_part *a, const eddy_saved_part *b) {
    if (a->mark != b->mark || a->predicate != b->predicate || a->known != b->known ||
        !a->root != !b->root || !a->node != !b->node)
        return false;
    return !a->root || (a->root->dtype == b->root->dtype && a->root->count == b->root->count);
}

bool eddy_saved_is_alike(const eddy_saved *a, const eddy_saved *b) {
    bool is_alike = a->parts.count == b->parts.count;
    for (uint32_t i = 0; i < a->parts.count && is_alike; i++)
        is_alike = is_part_alike(part_at(a, i), part_at(b, i));
    return is_alike;
}

/* ---- lists ---- */

eddy_status eddy_saved_make_lists(const eddy_block_call *call, const eddy_saved *saved,
                                  int64_t step_count, eddy_tensor *const *known_lists,
                                  eddy_tensor **lists) {
    eddy_status status = EDDY_OK;
    uint32_t row = 0;
    for (uint32_t i = 0; i < saved->parts.count && status == EDDY_OK; i++) {
        const eddy_saved_part *part = part_at(saved, i);
        if (!is_row(part))
            continue;
        if (part->known) {
            lists[row] = known_lists[part->known - 1];
            eddy_tensor_retain(lists[row++]);
            continue;
        }
        eddy_dtype dtype = part->root ? (eddy_dtype)part->root->dtype : EDDY_I64;
        int64_t elements = part->root ? part->root->count : 2;
        status = eddy_tensor_list_make(call->caller, call->device, dtype, elements, step_count,
                                       &lists[row++]);
    }
    return status;
}

static void mark(const eddy_block_call *call, const eddy_saved_part *part) {
    eddy_recording_mark(call->recording, part->mark, part->branch ? part->branch->predicate : NULL,
                        NULL, call->origin);
}

/* All elements of a storage in a row. */
static eddy_status flatten(const eddy_block_call *call, eddy_tensor *root, eddy_tensor **flat) {
    eddy_layout layout = {.rank = 1, .dims = {root->count}, .strides = {1}};
    *flat = eddy_tensor_view(call->caller, root, &layout, call->origin);
    return *flat ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

/* What a step puts into its list: all elements of a storage, or a seed and a counter. */
static eddy_status make_row(const eddy_block_call *call, const eddy_saved_part *part,
                            eddy_tensor **row) {
    return part->node ? eddy_draw_op_get(call->caller, &call->device, part->node->attributes,
                                         call->origin.address, row)
                      : flatten(call, part->root, row);
}

eddy_status eddy_saved_put(const eddy_block_call *call, const eddy_saved *saved,
                           eddy_tensor *const *lists, eddy_tensor *at) {
    eddy_status status = EDDY_OK;
    uint32_t row = 0;
    for (uint32_t i = 0; i < saved->parts.count && status == EDDY_OK; i++) {
        const eddy_saved_part *part = part_at(saved, i);
        eddy_tensor *made;
        if (!is_row(part)) {
            mark(call, part);
            continue;
        }
        eddy_tensor *list = lists[row++];
        if (part->known)
            continue;
        status = make_row(call, part, &made);
        if (status != EDDY_OK)
            break;
        status = eddy_tensor_list_set(call->caller, made, at, list, call->origin.address);
        eddy_tensor_drop(made);
    }
    return status;
}

/* ---- and back ---- */

static eddy_status show(const eddy_block_call *call, eddy_tensor *row, const eddy_layout *layout,
                        eddy_tensor **shown) {
    *shown = eddy_tensor_view(call->caller, row, layout, call->origin);
    return *shown ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status turn_to_row(const eddy_block_call *call, const eddy_saved *saved,
                               eddy_branch_tape *branch, uint32_t part) {
    eddy_layout layout;
    eddy_tensor *predicate;
    if (part == EDDY_CODE_NONE)
        return EDDY_OK;
    eddy_tensor_layout(branch->predicate, &layout);
    eddy_status status = show(call, part_at(saved, part)->row, &layout, &predicate);
    if (status == EDDY_OK)
        eddy_branch_tape_set_predicate(branch, predicate, call->recording->recorder.events);
    return status;
}

static eddy_status get_row(const eddy_block_call *call, eddy_tensor *list, eddy_tensor *at,
                           eddy_saved_part *part) {
    eddy_status status =
        eddy_tensor_list_get(call->caller, list, at, call->origin.address, &part->row);
    return status == EDDY_OK && part->node
               ? eddy_draw_op_set(call->caller, part->row, part->node->attributes,
                                  call->origin.address)
               : status;
}

static eddy_status get_rows(const eddy_block_call *call, const eddy_saved *saved,
                            eddy_tensor *const *lists, eddy_tensor *at, eddy_tensor *known_at) {
    eddy_status status = EDDY_OK;
    uint32_t row = 0;
    for (uint32_t i = 0; i < saved->parts.count && status == EDDY_OK; i++) {
        eddy_saved_part *part = part_at(saved, i);
        if (is_row(part)) {
            status = get_row(call, lists[row++], part->known ? known_at : at, part);
            continue;
        }
        if (part->branch)
            status = turn_to_row(call, saved, part->branch, part->predicate);
        if (status == EDDY_OK)
            mark(call, part);
    }
    return status;
}

static void replace(const eddy_saved_slot *slot, eddy_tensor *tensor) {
    eddy_autograd_node *node = slot->node;
    eddy_lock_acquire(&node->lock);
    eddy_autograd_saved *saved = &node->saved[slot->slot];
    eddy_tensor *before = saved->tensor;
    saved->tensor = tensor;
    saved->version = eddy_load_relaxed(&tensor->root->version);
    eddy_lock_release(&node->lock);
    if (before)
        eddy_tensor_drop(before);
}

static eddy_status fill_slots(const eddy_block_call *call, const eddy_saved *saved) {
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < saved->slots.count && status == EDDY_OK; i++) {
        const eddy_saved_slot *slot = slot_at(saved, i);
        eddy_tensor *shown;
        status = show(call, part_at(saved, slot->part)->row, &slot->layout, &shown);
        if (status == EDDY_OK)
            replace(slot, shown);
    }
    for (uint32_t i = 0; i < saved->turns.count && status == EDDY_OK; i++)
        status = turn_to_row(call, saved, turn_at(saved, i)->branch, turn_at(saved, i)->part);
    return status;
}

eddy_status eddy_saved_get(const eddy_block_call *call, eddy_saved *saved,
                           eddy_tensor *const *lists, eddy_tensor *at, eddy_tensor *known_at) {
    eddy_status status = get_rows(call, saved, lists, at, known_at);
    if (status == EDDY_OK)
        status = fill_slots(call, saved);
    for (uint32_t i = 0; i < saved->parts.count; i++) {
        eddy_saved_part *part = part_at(saved, i);
        if (part->row)
            eddy_tensor_drop(part->row);
        part->row = NULL;
    }
    return status;
}
