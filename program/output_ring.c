/* Rings: which outputs a run makes old. */
#include <program/output_ring.h>

#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/handle/tensor.h>
#include <program/run.h>

/* The outputs of one run that the ring holds. */
typedef struct eddy_ring_place {
    struct eddy_ring_place *next;
    uint64_t run; /* its number */
    uint32_t count;
    uint32_t room;
    struct {
        eddy_tensor *root; /* a reference, each root once */
        uint32_t output;
        bool is_held; /* by others than the ring, when it became old */
    } outputs[];
} eddy_ring_place;

struct eddy_output_ring {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_program *program;       /* const after init: a reference */
    int64_t runs;                /* const after init */
    eddy_lock lock;              /* no other is taken while it is held */
    eddy_ring_place *oldest;     /* lock: lock; by the numbers of their runs */
    uint64_t last;               /* lock: lock; number of the last run */
};

/* ---- places ---- */

static size_t place_bytes(uint32_t room) {
    return sizeof(eddy_ring_place) + room * sizeof(((eddy_ring_place *)NULL)->outputs[0]);
}

static eddy_ring_place *place_create(uint32_t room) {
    eddy_ring_place *place = eddy_memory_acquire_zeroed(place_bytes(room), EDDY_MEMORY_PROGRAM);
    if (place)
        place->room = room;
    return place;
}

static void places_destroy(eddy_ring_place *place) {
    while (place) {
        eddy_ring_place *next = place->next;
        for (uint32_t i = 0; i < place->count; i++)
            eddy_tensor_drop(place->outputs[i].root);
        eddy_memory_release(place, place_bytes(place->room), EDDY_MEMORY_PROGRAM);
        place = next;
    }
}

/* Lock: ring->lock. */
static void insert(eddy_output_ring *ring, eddy_ring_place *place) {
    eddy_ring_place **at = &ring->oldest;
    while (*at && (*at)->run < place->run)
        at = &(*at)->next;
    place->next = *at;
    *at = place;
}

/* Lock: ring->lock. Those that the run makes old. One that has not come back yet is left to a later run. */
static eddy_ring_place *take_stale(eddy_output_ring *ring, uint64_t run) {
    eddy_ring_place *stale = NULL, **end = &stale;
    while (ring->oldest && run - ring->oldest->run >= (uint64_t)ring->runs) {
        *end = ring->oldest;
        ring->oldest = ring->oldest->next;
        end = &(*end)->next;
        *end = NULL;
    }
    return stale;
}

/* ---- what is gone ---- */

static size_t gone_bytes(uint32_t count) {
    return sizeof(eddy_ring_gone) + count * sizeof(((eddy_ring_gone *)NULL)->items[0]);
}

/* Nobody else can get hold of what the ring alone holds. */
static uint32_t count_held(eddy_ring_place *stale) {
    uint32_t count = 0;
    for (; stale; stale = stale->next)
        for (uint32_t i = 0; i < stale->count; i++) {
            stale->outputs[i].is_held = eddy_load_acquire(&stale->outputs[i].root->references) > 1;
            count += stale->outputs[i].is_held;
        }
    return count;
}

static bool make_gone(eddy_ring_turn *turn) {
    uint32_t count = count_held(turn->stale);
    turn->gone = NULL;
    if (count == 0)
        return true;
    eddy_ring_gone *gone = eddy_memory_acquire(gone_bytes(count), EDDY_MEMORY_PROGRAM);
    if (!gone)
        return false;
    *gone = (eddy_ring_gone){.program = eddy_program_retain(turn->ring->program),
                             .runs = turn->ring->runs,
                             .taken_by = turn->place->run};
    for (const eddy_ring_place *place = turn->stale; place; place = place->next)
        for (uint32_t i = 0; i < place->count; i++) {
            if (!place->outputs[i].is_held)
                continue;
            gone->items[gone->count].output = place->outputs[i].output;
            gone->items[gone->count++].run = place->run;
        }
    turn->gone = gone;
    return true;
}

void eddy_ring_gone_fill(const eddy_ring_gone *gone, uint32_t i, eddy_origin origin,
                         uint64_t sequence, eddy_error *error) {
    EDDY_ASSERT(i < gone->count);
    const eddy_program_binding *binding =
        eddy_program_binding_of(gone->program, EDDY_ROLE_OUTPUT, gone->items[i].output);
    eddy_error_fill(error, EDDY_INVALID_ARGUMENT, origin, sequence,
                    "output %s of run %llu of the ring is gone: run %llu has taken its place (the "
                    "ring keeps %lld %s)",
                    binding->name, (unsigned long long)gone->items[i].run,
                    (unsigned long long)gone->taken_by, (long long)gone->runs,
                    gone->runs == 1 ? "run" : "runs");
}

void eddy_ring_gone_destroy(eddy_ring_gone *gone) {
    if (!gone)
        return;
    eddy_program_release(&gone->program);
    eddy_memory_release(gone, gone_bytes(gone->count), EDDY_MEMORY_PROGRAM);
}

/* ---- turns ---- */

/* What a run that was not submitted has taken is put back. */
static void put_back(eddy_ring_turn *turn) {
    eddy_output_ring *ring = turn->ring;
    eddy_lock_acquire(&ring->lock);
    /* Unless another run was submitted meanwhile. */
    if (ring->last == turn->place->run)
        ring->last--;
    while (turn->stale) {
        eddy_ring_place *place = turn->stale;
        turn->stale = place->next;
        insert(ring, place);
    }
    eddy_lock_release(&ring->lock);
}

static void discard(eddy_ring_turn *turn) {
    places_destroy(turn->place);
    places_destroy(turn->stale);
    eddy_ring_gone_destroy(turn->gone);
    eddy_output_ring_release(&turn->ring);
}

eddy_status eddy_ring_turn_begin(eddy_ring_turn *turn, eddy_output_ring *ring,
                                 const eddy_program *program, eddy_origin origin) {
    if (!ring)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no ring");
    if (ring->program != program)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the ring is another program's");
    *turn = (eddy_ring_turn){.place = place_create(program->output_count)};
    if (!turn->place)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a place in the ring");
    turn->ring = eddy_output_ring_retain(ring);
    return EDDY_OK;
}

bool eddy_ring_turn_take(eddy_ring_turn *turn) {
    eddy_output_ring *ring = turn->ring;
    eddy_lock_acquire(&ring->lock);
    turn->place->run = ++ring->last;
    turn->stale = take_stale(ring, turn->place->run);
    eddy_lock_release(&ring->lock);
    return make_gone(turn);
}

bool eddy_ring_turn_holds(const eddy_ring_turn *turn, eddy_storage_number storage) {
    bool is_found = false;
    eddy_lock_acquire(&turn->ring->lock);
    for (const eddy_ring_place *place = turn->ring->oldest; place; place = place->next)
        for (uint32_t i = 0; i < place->count; i++)
            is_found |= place->outputs[i].root->storage == storage;
    eddy_lock_release(&turn->ring->lock);
    return is_found;
}

void eddy_ring_turn_operands(const eddy_ring_turn *turn, eddy_vm_operand *operands) {
    for (const eddy_ring_place *place = turn->stale; place; place = place->next)
        for (uint32_t i = 0; i < place->count; i++)
            if (place->outputs[i].is_held)
                *operands++ = (eddy_vm_operand){.storage = place->outputs[i].root->storage,
                                                .access = EDDY_ACCESS_MUT,
                                                .covers_all = true,
                                                .is_given_up = true};
}

/* The tape sees a write: what it has saved of them is no longer there. */
void eddy_ring_turn_submitted(eddy_ring_turn *turn) {
    turn->is_submitted = true;
    turn->gone = NULL;
    for (const eddy_ring_place *place = turn->stale; place; place = place->next)
        for (uint32_t i = 0; i < place->count; i++)
            eddy_tensor_written(place->outputs[i].root);
}

/* The number among the program's outputs of the run's. */
static uint32_t number_of(const eddy_ring_turn *turn, uint32_t output) {
    if (turn->outputs == 0)
        return output;
    uint64_t left = turn->outputs;
    for (uint32_t i = 0; i < output; i++)
        left &= left - 1;
    return (uint32_t)__builtin_ctzll(left);
}

uint32_t eddy_ring_turn_room(const eddy_ring_turn *turn) {
    return turn->place->room;
}

void eddy_ring_turn_note(eddy_ring_turn *turn, uint32_t output, const eddy_tensor *tensor) {
    eddy_ring_place *place = turn->place;
    for (uint32_t i = 0; i < place->count; i++)
        if (place->outputs[i].root == tensor->root)
            return;
    EDDY_ASSERT(place->count < place->room);
    eddy_tensor_retain(tensor->root);
    place->outputs[place->count].output = number_of(turn, output);
    place->outputs[place->count++].root = tensor->root;
}

void eddy_ring_turn_end(eddy_ring_turn *turn, eddy_status status) {
    eddy_output_ring *ring = turn->ring;
    if (status == EDDY_OK) {
        eddy_lock_acquire(&ring->lock);
        insert(ring, turn->place);
        eddy_lock_release(&ring->lock);
        turn->place = NULL;
    } else if (!turn->is_submitted && turn->place->run > 0) {
        put_back(turn);
    }
    discard(turn);
}

/* ---- the ring ---- */

eddy_output_ring *eddy_output_ring_create(eddy_program *program, int64_t runs) {
    eddy_origin origin = EDDY_ORIGIN("output_ring_create");
    if (eddy_program_check(program, origin) != EDDY_OK)
        return NULL;
    if (runs < 1) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "a ring of %lld runs", (long long)runs);
        return NULL;
    }
    eddy_output_ring *ring = eddy_memory_acquire_zeroed(sizeof(*ring), EDDY_MEMORY_PROGRAM);
    if (!ring) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a ring");
        return NULL;
    }
    eddy_store_relaxed(&ring->references, 1u);
    ring->program = eddy_program_retain(program);
    ring->runs = runs;
    return ring;
}

eddy_output_ring *eddy_output_ring_retain(eddy_output_ring *ring) {
    if (ring)
        eddy_add_relaxed(&ring->references, 1u);
    return ring;
}

void eddy_output_ring_release(eddy_output_ring **ring) {
    eddy_output_ring *released = ring ? *ring : NULL;
    if (!released)
        return;
    *ring = NULL;
    if (eddy_sub_acq_rel(&released->references, 1u) != 1)
        return;
    places_destroy(released->oldest);
    eddy_program_release(&released->program);
    eddy_memory_release(released, sizeof(*released), EDDY_MEMORY_PROGRAM);
}

eddy_status eddy_output_ring_run(eddy_output_ring *ring, eddy_list inputs, eddy_tensor **outputs) {
    eddy_origin origin = EDDY_ORIGIN("output_ring_run");
    eddy_ring_turn turn;
    eddy_status status = eddy_ring_turn_begin(&turn, ring, ring ? ring->program : NULL, origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_run_make(&(eddy_run){.program = turn.ring->program,
                                       .caller = eddy_caller_get(),
                                       .origin = origin,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .turn = &turn});
    eddy_ring_turn_end(&turn, status);
    return status;
}
