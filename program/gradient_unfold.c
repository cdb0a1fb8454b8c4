/* The nodes of a run's calls. */
#include <base/memory.h>
#include <base/number.h>
#include <eddy/host.h>
#include <interpreter/tape/overwritten.h>
#include <program/gradient_calls.h>
#include <program/quiet.h>
#include <string.h>

/* A step of a loop, or what is outside of loops. */
typedef struct frame {
    const struct frame *outer; /* NULL: this is outside */
    uint32_t loop;             /* whose step it is; EDDY_CODE_NONE */
    int64_t step;
    eddy_autograd_node **made; /* per call of it that is reached: a reference */
    struct ran *ran;           /* per loop in it */
    uint8_t *ways;             /* per call: of a branch, 1 + its way */
} frame;

/* A loop that has run. */
typedef struct ran {
    bool is_known;
    int64_t steps;
    frame *frames; /* per step */
    size_t bytes;
} ran;

typedef struct reached {
    const frame *in;
    uint32_t call;
} reached;

typedef struct unfolding {
    const eddy_gradient_calls *calls;
    const eddy_gradient_given *given;
    eddy_autograd_node *run;
    frame outside;
    eddy_code_array reached;    /* reached */
    eddy_code_array rans;       /* ran *: whose frames are there */
    eddy_autograd_saved *saved; /* what the run's node has saved, a reference each */
} unfolding;

static const eddy_calls_call *call_at(const unfolding *u, uint32_t i) {
    return eddy_calls_call_at(u->calls, i);
}

static const eddy_calls_loop *loop_at(const unfolding *u, uint32_t i) {
    return eddy_calls_loop_at(u->calls, i);
}

static const reached *reached_at(const unfolding *u, uint32_t i) {
    return (const reached *)u->reached.items + i;
}

static eddy_autograd_node **made_at(const unfolding *u, const reached *at) {
    return &at->in->made[call_at(u, at->call)->number];
}

/* ---- what the run's node has ---- */

static uint32_t first_saved(const unfolding *u) {
    return u->run->input_count + u->run->output_count;
}

/* False where a tensor was given up, or overwritten: the pass that comes to the run's node says so. */
static bool take_saved(const unfolding *u) {
    bool has_all = true;
    eddy_lock_acquire(&u->run->lock);
    for (uint32_t i = 0; i < u->run->extra_count; i++) {
        u->saved[i] = u->run->saved[first_saved(u) + i];
        has_all &= u->saved[i].tensor != NULL;
        if (u->saved[i].tensor)
            eddy_tensor_retain(u->saved[i].tensor);
    }
    eddy_lock_release(&u->run->lock);
    for (uint32_t i = 0; i < u->run->extra_count && has_all; i++)
        has_all = eddy_load_relaxed(&u->saved[i].tensor->root->version) == u->saved[i].version;
    return has_all;
}

static const frame *frame_of(const frame *at, uint32_t loop) {
    while (at->loop != loop)
        at = at->outer;
    return at;
}

/* The row of a list that belongs to the step. */
static int64_t row_of(const unfolding *u, const frame *at, const eddy_calls_list *list) {
    int64_t step = frame_of(at, list->loop)->step;
    return list->is_reversed ? loop_at(u, list->loop)->counts.rows - 1 - step : step;
}

/* A reference; NULL without memory. */
static eddy_tensor *view_place(const unfolding *u, const frame *at, uint32_t number,
                               const eddy_autograd_node *node) {
    const eddy_calls_place *place = eddy_calls_place_at(u->calls, number);
    eddy_tensor *of = u->saved[place->saved].tensor;
    eddy_layout layout = place->layout;
    layout.offset += of->offset;
    for (uint32_t i = 0; i < place->list_count; i++)
        layout.offset += row_of(u, at, &place->lists[i]) * place->lists[i].stride;
    eddy_tensor *view = eddy_tensor_view(eddy_caller_self, of, &layout,
                                         (eddy_origin){node->op->name, node->address});
    if (!view)
        return NULL;
    /* What the forward program hands out for the tape alone is a row of bytes. */
    view->dtype = place->dtype;
    eddy_tensor_set_device(view, place->device);
    return view;
}

/* UNSUPPORTED, nothing recorded, where nobody can say: it has an error, or the thread may not wait. */
static eddy_status read_place(const unfolding *u, const frame *at, uint32_t number, void *to,
                              size_t bytes) {
    eddy_quiet quiet;
    eddy_error failed;
    eddy_tensor *view = view_place(u, at, number, u->run);
    if (!view)
        return EDDY_OUT_OF_MEMORY;
    eddy_quiet_begin(&quiet);
    eddy_status status = eddy_read(view, to, bytes, NULL);
    eddy_quiet_end(&quiet, &failed);
    eddy_tensor_drop(view);
    return status == EDDY_OK || status == EDDY_OUT_OF_MEMORY ? status : EDDY_UNSUPPORTED;
}

/* ---- what the run has done ---- */

static size_t frame_bytes(const eddy_calls_loop *loop) {
    size_t bytes = loop->call_count * (sizeof(eddy_autograd_node *) + sizeof(uint8_t)) +
                   loop->loop_count * sizeof(ran);
    return (bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

static void lay_out(frame *at, uint32_t call_count, uint32_t loop_count, char *memory) {
    at->ran = (ran *)(void *)memory;
    at->made = (eddy_autograd_node **)(void *)(at->ran + loop_count);
    at->ways = (uint8_t *)(at->made + call_count);
}

/* Reads how many steps there were, and makes room for what they have done. */
static eddy_status find_steps(unfolding *u, const frame *at, uint32_t number, ran **found) {
    const eddy_calls_loop *loop = loop_at(u, number);
    ran *r = *found = &at->ran[loop->number];
    uint32_t index;
    if (r->is_known)
        return EDDY_OK;
    eddy_status status = read_place(u, at, loop->steps, &r->steps, sizeof(r->steps));
    if (status != EDDY_OK)
        return status;
    if (r->steps < 0 || r->steps > loop->counts.rows)
        return EDDY_UNSUPPORTED;
    size_t count = (size_t)r->steps, each = frame_bytes(loop);
    r->bytes = count * (sizeof(frame) + each) + 1;
    if (!eddy_code_array_add(&u->rans, sizeof(r), 1, &index))
        return EDDY_OUT_OF_MEMORY;
    ((ran **)u->rans.items)[index] = r;
    r->frames = eddy_memory_acquire_zeroed(r->bytes, EDDY_MEMORY_TAPE);
    if (!r->frames)
        return EDDY_OUT_OF_MEMORY;
    char *memory = (char *)(r->frames + count);
    for (size_t i = 0; i < count; i++) {
        r->frames[i] = (frame){.outer = at, .loop = number, .step = (int64_t)i};
        lay_out(&r->frames[i], loop->call_count, loop->loop_count, memory + i * each);
    }
    r->is_known = true;
    return EDDY_OK;
}

/* A step finds what the one before it has given, the first one what was there before; so do all if each gives it on as it is. */
static const eddy_calls_word *go_before(const unfolding *u, const frame **at, uint32_t number) {
    const eddy_calls_call *input = call_at(u, number);
    const eddy_calls_loop *loop = loop_at(u, input->of);
    const eddy_calls_word *given =
        eddy_gradient_calls_edge(u->calls, loop->outputs_at + input->index);
    if ((*at)->step > 0 && given->call != number) {
        --*at;
        return given;
    }
    *at = (*at)->outer;
    return eddy_gradient_calls_edge(u->calls, loop->before_at + input->index);
}

/* What the last step has given; what was there before if there was none. */
static const eddy_calls_word *go_into(const unfolding *u, const frame **at, const ran *r,
                                      const eddy_calls_call *output) {
    const eddy_calls_loop *loop = loop_at(u, output->of);
    if (r->steps == 0)
        return eddy_gradient_calls_edge(u->calls, loop->before_at + output->index);
    *at = &r->frames[r->steps - 1];
    return eddy_gradient_calls_edge(u->calls, loop->outputs_at + output->index);
}

/* Which way the run has taken. */
static eddy_status find_way(const unfolding *u, const frame *at, const eddy_calls_call *call) {
    uint8_t holds;
    if (at->ways[call->number])
        return EDDY_OK;
    eddy_status status = read_place(u, at, call->place, &holds, sizeof(holds));
    if (status == EDDY_OK)
        at->ways[call->number] = holds ? 1 : 2;
    return status;
}

/* What a branch gives, on the way that was taken. */
static const eddy_calls_word *way_of(const unfolding *u, const frame *at,
                                     const eddy_calls_call *call) {
    return eddy_gradient_calls_edge(u->calls, call->edges_at + at->ways[call->number] - 1u);
}

/* Follows a word to the call with a node of its own, and to the frame that this is in; or to what was there before the run. */
static eddy_status follow(unfolding *u, const frame **at, const eddy_calls_word **word) {
    while ((*word)->call != EDDY_CODE_NONE) {
        const eddy_calls_call *call = call_at(u, (*word)->call);
        bool is_carried = call->of != EDDY_CODE_NONE &&
                          (int64_t)call->index < loop_at(u, call->of)->counts.carried;
        ran *r;
        *at = frame_of(*at, call->loop);
        if (call->kind == EDDY_CALLS_LOOP_OUTPUT) {
            eddy_status status = find_steps(u, *at, call->of, &r);
            if (status != EDDY_OK || !is_carried)
                return status;
            *word = go_into(u, at, r, call);
        } else if (call->kind == EDDY_CALLS_LOOP_INPUT && is_carried) {
            *word = go_before(u, at, (*word)->call);
        } else if (call->kind == EDDY_CALLS_BRANCH) {
            eddy_status status = find_way(u, *at, call);
            if (status != EDDY_OK || !call->owns[(*at)->ways[call->number] - 1])
                return status;
            *word = way_of(u, *at, call);
        } else {
            return EDDY_OK;
        }
    }
    return EDDY_OK;
}

/* ---- nodes that no call of the recording has ---- */

static void note_shape(eddy_autograd_node *node, uint32_t i, uint32_t *dims_at, uint8_t dtype,
                       int32_t rank, const int64_t *dims) {
    node->specs[i] = (eddy_autograd_spec){.dtype = dtype,
                                          .rank = (int8_t)rank,
                                          .device_kind = (int8_t)node->device.kind,
                                          .device_index = (int8_t)node->device.index,
                                          .dims_at = *dims_at};
    memcpy(node->dims + *dims_at, dims, (size_t)rank * sizeof(*dims));
    *dims_at += (uint32_t)rank;
}

/* A call that joins tensors at their first axis. NULL without memory. */
static eddy_autograd_node *make_join(const char *name, const eddy_autograd_node *like,
                                     uint32_t inputs, int32_t rank) {
    const eddy_op *op = eddy_op_find(name);
    eddy_autograd_node *node =
        eddy_autograd_node_make(&(eddy_autograd_size){.inputs = inputs,
                                                      .outputs = 1,
                                                      .lists = 1,
                                                      .dims = ((size_t)inputs + 1) * (size_t)rank,
                                                      .attribute_bytes = op->attribute_bytes});
    if (!node)
        return NULL;
    node->op = op;
    node->address = like->address;
    node->device = like->device;
    node->recording = node->recorded_at = 0;
    memset(node->attributes, 0, op->attribute_bytes);
    node->list_counts[0] = inputs;
    return node;
}

/* The rows of all steps, put on top of each other. */
static eddy_autograd_node *make_stack(const eddy_autograd_node *like, int64_t steps) {
    const eddy_autograd_spec *spec = &like->specs[1];
    int64_t dims[EDDY_RANK_MAX] = {0};
    uint32_t dims_at = 0;
    eddy_autograd_node *node = make_join("stack", like, (uint32_t)steps, spec->rank);
    if (!node)
        return NULL;
    memcpy(dims, like->dims + spec->dims_at, (size_t)spec->rank * sizeof(*dims));
    dims[0] = steps;
    for (uint32_t i = 0; i < node->input_count; i++)
        note_shape(node, i, &dims_at, spec->dtype, spec->rank - 1, dims + 1);
    note_shape(node, node->input_count, &dims_at, spec->dtype, spec->rank, dims);
    return node;
}

/* Behind the stack the zeros of steps that there were not. Takes the stack. */
static eddy_autograd_node *make_filled(const eddy_autograd_node *like, eddy_autograd_node *stack,
                                       int64_t steps, int64_t rows) {
    const eddy_autograd_spec *spec = &like->specs[1];
    int64_t dims[EDDY_RANK_MAX] = {0};
    uint32_t dims_at = 0;
    eddy_autograd_node *node = make_join("cat", like, 2, spec->rank);
    if (!node) {
        eddy_autograd_node_release(stack);
        return NULL;
    }
    memcpy(dims, like->dims + spec->dims_at, (size_t)spec->rank * sizeof(*dims));
    for (uint32_t i = 0; i < 3; i++) {
        dims[0] = i == 0 ? steps : i == 1 ? rows - steps : rows;
        note_shape(node, i, &dims_at, spec->dtype, spec->rank, dims);
    }
    node->edges[0] = eddy_autograd_make(stack, 0);
    return node;
}

/* The rows that a loop gives. Without steps they are zeros. */
static eddy_autograd_node *make_rows(const unfolding *u, const frame *at,
                                     const eddy_calls_call *call) {
    const eddy_calls_loop *loop = loop_at(u, call->of);
    int64_t steps = at->ran[loop->number].steps, rows = loop->counts.rows;
    if (steps == 0)
        return eddy_autograd_node_copy(call->node);
    eddy_autograd_node *stack = make_stack(call->node, steps);
    return stack && steps < rows ? make_filled(call->node, stack, steps, rows) : stack;
}

static eddy_autograd_node *make_slice(const unfolding *u, const frame *at,
                                      const eddy_calls_call *call) {
    const eddy_loop_counts *counts = &loop_at(u, call->of)->counts;
    eddy_autograd_node *node = eddy_autograd_node_copy(call->node);
    if (node)
        ((eddy_view_attributes *)node->attributes)->start =
            counts->is_reversed ? counts->rows - 1 - at->step : at->step;
    return node;
}

static eddy_autograd_node *make_node(const unfolding *u, const frame *at,
                                     const eddy_calls_call *call) {
    if (call->kind == EDDY_CALLS_LOOP_OUTPUT)
        return make_rows(u, at, call);
    return call->kind == EDDY_CALLS_LOOP_INPUT ? make_slice(u, at, call)
                                               : eddy_gradient_calls_copy_node(call->node);
}

/* ---- the calls that are reached ---- */

static eddy_status reach(unfolding *u, const frame *at, const eddy_calls_word *word) {
    eddy_status status = follow(u, &at, &word);
    uint32_t index;
    if (status != EDDY_OK || word->call == EDDY_CODE_NONE)
        return status;
    const eddy_calls_call *call = call_at(u, word->call);
    if (at->made[call->number])
        return EDDY_OK;
    if (!eddy_code_array_add(&u->reached, sizeof(reached), 1, &index))
        return EDDY_OUT_OF_MEMORY;
    ((reached *)u->reached.items)[index] = (reached){at, word->call};
    eddy_autograd_node *made = at->made[call->number] = make_node(u, at, call);
    if (!made)
        return EDDY_OUT_OF_MEMORY;
    made->recording = u->run->recording; /* the calls were made when the run was */
    made->recorded_at = u->run->recorded_at;
    return EDDY_OK;
}

static bool is_rows(const reached *at, const unfolding *u) {
    return call_at(u, at->call)->kind == EDDY_CALLS_LOOP_OUTPUT;
}

static uint32_t edge_count(const unfolding *u, const reached *at) {
    if (is_rows(at, u))
        return (uint32_t)at->in->ran[loop_at(u, call_at(u, at->call)->of)->number].steps;
    return (*made_at(u, at))->input_count;
}

/* An edge of a call that was reached: of a branch that of the way, of rows that of a step. *in: where it begins. */
static const eddy_calls_word *edge_of(const unfolding *u, const reached *at, uint32_t edge,
                                      const frame **in) {
    const eddy_calls_call *call = call_at(u, at->call);
    const eddy_calls_loop *loop = call->of == EDDY_CODE_NONE ? NULL : loop_at(u, call->of);
    uint32_t number = call->edges_at + edge;
    *in = at->in;
    if (call->kind == EDDY_CALLS_BRANCH)
        return way_of(u, at->in, call);
    if (call->kind == EDDY_CALLS_LOOP_INPUT) {
        *in = at->in->outer;
        number = loop->before_at + call->index;
    } else if (call->kind == EDDY_CALLS_LOOP_OUTPUT) {
        const ran *r = &at->in->ran[loop->number];
        *in = &r->frames[loop->counts.is_reversed ? r->steps - 1 - edge : edge];
        number = loop->outputs_at + call->index;
    }
    return eddy_gradient_calls_edge(u->calls, number);
}

/* The calls that gradients may come to: what a way has saved that the run has not taken is not there. */
static eddy_status find_reached(unfolding *u) {
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < u->run->output_count && status == EDDY_OK; i++)
        status = reach(u, &u->outside, eddy_gradient_calls_root(u->calls, i));
    for (uint32_t k = 0; k < u->reached.count && status == EDDY_OK; k++) {
        const reached at = *reached_at(u, k);
        const eddy_calls_call *call = call_at(u, at.call);
        const frame *in;
        for (uint32_t e = 0; status == EDDY_OK && e < edge_count(u, &at); e++) {
            const eddy_calls_word *edge = edge_of(u, &at, e, &in);
            status = reach(u, in, edge);
        }
        for (uint32_t s = 0; s < call->saved_count && status == EDDY_OK; s++)
            status = reach(u, at.in, &eddy_calls_saved_at(u->calls, call->saved_at + s)->word);
    }
    return status;
}

/* ---- a call ---- */

/* A reference; 0 for none. What it leads to was reached. */
static eddy_autograd word_of(unfolding *u, const frame *at, const eddy_calls_word *word) {
    eddy_autograd found = 0;
    eddy_status status = follow(u, &at, &word);
    EDDY_ASSERT(status == EDDY_OK);
    if (word->call != EDDY_CODE_NONE)
        found = eddy_autograd_make(at->made[call_at(u, word->call)->number], word->output);
    else if (word->output != EDDY_CODE_NONE)
        found = u->run->edges[word->output];
    if (found)
        eddy_autograd_node_retain(eddy_autograd_node_of(found));
    return found;
}

static void set_drawn(const int64_t *drawn, eddy_autograd_node *node) {
    int64_t *words = node->attributes;
    words[eddy_code_seed_word(node->op)] = drawn[0];
    words[eddy_code_counter_word(node->op)] = drawn[1];
}

static eddy_status fill_number(const unfolding *u, const frame *at, const eddy_calls_number *number,
                               eddy_autograd_node *node) {
    const eddy_op *op = node->op;
    if (number->place != EDDY_CODE_NONE) {
        int64_t drawn[2];
        eddy_status status = read_place(u, at, number->place, drawn, sizeof(drawn));
        if (status == EDDY_OK)
            set_drawn(drawn, node);
        return status;
    }
    if (number->draw) {
        set_drawn(u->given->draws + 2 * (size_t)(number->draw - 1), node);
        return EDDY_OK;
    }
    const eddy_code_scalar *use = &number->use;
    eddy_scalar scalar = u->given->scalars[use->number];
    scalar.slot = 0;
    char *attribute = (char *)node->attributes + op->attributes[use->attribute].offset;
    if (use->is_double) {
        double value =
            scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
        memcpy(attribute, &value, sizeof(value));
        return EDDY_OK;
    }
    if (!eddy_number_convert(&scalar, (eddy_dtype)use->dtype, use->wraps))
        return EDDY_UNSUPPORTED; /* the run would have failed */
    memcpy(attribute, &scalar, sizeof(scalar));
    return EDDY_OK;
}

static eddy_status fill_saved(unfolding *u, const frame *at, const eddy_calls_saved *saved,
                              eddy_autograd_node *node) {
    eddy_autograd_saved *slot = &node->saved[saved->slot];
    if (saved->place == EDDY_CODE_NONE) {
        slot->tensor = EDDY_NONE;
        return EDDY_OK;
    }
    eddy_tensor *view = view_place(u, at, saved->place, node);
    if (!view)
        return EDDY_OUT_OF_MEMORY;
    eddy_autograd_set(view, word_of(u, at, &saved->word));
    eddy_overwritten_watch(view);
    uint32_t number = eddy_calls_place_at(u->calls, saved->place)->saved;
    *slot = (eddy_autograd_saved){view, u->saved[number].version, saved->result};
    return EDDY_OK;
}

static eddy_status fill(unfolding *u, const reached *at) {
    const eddy_calls_call *call = call_at(u, at->call);
    eddy_autograd_node *node = *made_at(u, at);
    uint32_t edges = edge_count(u, at);
    const frame *in;
    eddy_status status = EDDY_OK;
    /* Behind a stack of fewer rows there are zeros, which another call joins with it. */
    eddy_autograd_node *joins =
        is_rows(at, u) && node->edges[0] ? eddy_autograd_node_of(node->edges[0]) : node;
    for (uint32_t e = 0; e < edges; e++) {
        const eddy_calls_word *edge = edge_of(u, at, e, &in);
        joins->edges[e] = word_of(u, in, edge);
    }
    for (uint32_t k = 0; k < call->number_count && status == EDDY_OK; k++)
        status = fill_number(u, at->in, eddy_calls_number_at(u->calls, call->numbers_at + k), node);
    for (uint32_t k = 0; k < call->saved_count && status == EDDY_OK; k++)
        status = fill_saved(u, at->in, eddy_calls_saved_at(u->calls, call->saved_at + k), node);
    return status;
}

/* ---- all of them ---- */

/* An output without a gradient in this run, since a loop has made no step, is a call that leads nowhere. */
static eddy_status make_word(unfolding *u, uint32_t i, eddy_autograd *word) {
    const eddy_calls_word *root = eddy_gradient_calls_root(u->calls, i);
    *word = word_of(u, &u->outside, root);
    if (*word)
        return EDDY_OK;
    eddy_autograd_node *node = eddy_autograd_node_copy(call_at(u, root->call)->node);
    *word = node ? eddy_autograd_make(node, 0) : 0;
    return node ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status make_all(unfolding *u, eddy_autograd *words) {
    eddy_status status = take_saved(u) ? find_reached(u) : EDDY_UNSUPPORTED;
    for (uint32_t k = 0; k < u->reached.count && status == EDDY_OK; k++)
        status = fill(u, reached_at(u, k));
    for (uint32_t i = 0; i < u->run->output_count && status == EDDY_OK; i++)
        status = make_word(u, i, &words[i]);
    return status;
}

/* What is in use of the nodes is held by edges and words. */
static void drop_all(unfolding *u) {
    for (uint32_t i = 0; i < u->reached.count; i++)
        if (*made_at(u, reached_at(u, i)))
            eddy_autograd_node_release(*made_at(u, reached_at(u, i)));
    for (uint32_t i = u->rans.count; i-- > 0;) { /* a loop within a step before that step */
        ran *r = ((ran **)u->rans.items)[i];
        eddy_memory_release(r->frames, r->bytes, EDDY_MEMORY_TAPE);
    }
    eddy_code_array_fini(&u->reached, sizeof(reached));
    eddy_code_array_fini(&u->rans, sizeof(ran *));
    for (uint32_t i = 0; i < u->run->extra_count; i++)
        if (u->saved[i].tensor)
            eddy_tensor_drop(u->saved[i].tensor);
}

eddy_status eddy_gradient_calls_unfold(const eddy_gradient_calls *calls, eddy_autograd_node *node,
                                       const eddy_gradient_given *given, eddy_autograd *words) {
    unfolding u = {.calls = calls, .given = given, .run = node};
    eddy_calls_loop outside = {.call_count = calls->call_count, .loop_count = calls->loop_count};
    size_t saved_bytes = node->extra_count * sizeof(*u.saved),
           bytes = saved_bytes + frame_bytes(&outside);
    if (calls->reason[0])
        return EDDY_UNSUPPORTED;
    char *memory = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TAPE);
    if (!memory)
        return EDDY_OUT_OF_MEMORY;
    u.saved = (eddy_autograd_saved *)(void *)memory;
    u.outside.loop = EDDY_CODE_NONE;
    lay_out(&u.outside, outside.call_count, outside.loop_count, memory + saved_bytes);
    eddy_status status = make_all(&u, words);
    drop_all(&u);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_TAPE);
    return status;
}
