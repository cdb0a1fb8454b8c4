/* Making an executable: calls are packed and prepared as eager ones are, by the same functions, and values get places. */
#include <program/executable.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/packed_writer.h>
#include <interpreter/handle/shape_table.h>
#include <interpreter/host/transfer.h>
#include <program/accesses.h>
#include <program/control.h>
#include <program/crew.h>
#include <program/cut.h>
#include <program/front.h>
#include <program/fused.h>
#include <program/fusions.h>
#include <program/join.h>
#include <program/jumps.h>
#include <program/steps.h>

/* An executable being made. */
typedef struct builder {
    eddy_executable *executable;
    const eddy_code *code;
    const uint32_t *bases;
    const eddy_executable_options *options;
    eddy_origin origin;
    bool is_by_call;               /* cut.h */
    eddy_packed_arguments *packed; /* room for the largest call with its plan */
    size_t packed_room;
    uint32_t *slots; /* a hash table of prepared calls: 1 + index; as many as a power of two */
    uint32_t slot_count;
    eddy_arena_block *blocks; /* values, then the workspaces of instructions */
    uint32_t block_count;
    bool
        *outlives; /* per block: streams may use it behind its last step in the order of the code */
    uint32_t *uses;    /* per value: operands that name it */
    uint32_t *step_of; /* per instruction */
    eddy_regions regions;
} builder;

static eddy_status fail_memory(const builder *b) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, b->origin, "no memory for the program");
}

static bool acquire(void *pointer, size_t count, size_t item_bytes) {
    *(void **)pointer = eddy_memory_acquire_zeroed(count * item_bytes, EDDY_MEMORY_PROGRAM);
    return *(void **)pointer != NULL;
}

/* ---- packing ---- */

/* Whether the instruction runs by a kernel of its device's own, and is no mark. */
static bool has_own_kernel(const builder *b, const eddy_code_instruction *instruction) {
    return instruction->op != &eddy_transfer_op && instruction->operand_count > 0 &&
           eddy_control_of(instruction->op) == EDDY_CONTROL_NONE &&
           eddy_cut_has_own_kernels(eddy_code_instruction_device(b->code, instruction));
}

/* Whether it is a partition that is submitted as it is, and no step. */
static bool is_by_call(const builder *b, const eddy_code_instruction *instruction) {
    return b->is_by_call && has_own_kernel(b, instruction);
}

static void pack_header(eddy_packed_arguments *packed, const eddy_code_instruction *instruction,
                        const eddy_kernel *kernel) {
    memset(packed, 0, sizeof(*packed));
    packed->op = instruction->op;
    packed->kernel = kernel;
    packed->view_count = instruction->operand_count;
    packed->input_count = instruction->input_count;
}

static void pack_operand(const builder *b, eddy_packed_writer *writer, uint32_t i,
                         const eddy_code_operand *operand, const eddy_joint *joint) {
    eddy_packed_view *view = &writer->call->views[i];
    *view = (eddy_packed_view){.rank = -1, .is_written = (operand->access & EDDY_CODE_WRITES) != 0};
    if (eddy_code_operand_is_absent(operand))
        return;
    const int64_t *dims = eddy_code_dims(b->code, operand);
    view->dtype = operand->dtype;
    view->offset = operand->offset;
    if (joint) {
        eddy_packed_writer_joint(writer, i, joint, eddy_shape_table_intern(operand->rank, dims));
        return;
    }
    int64_t *words = eddy_packed_writer_view(writer, i, operand->rank);
    if (operand->rank > 0)
        memcpy(words, dims, 2 * (size_t)operand->rank * sizeof(*dims));
}

static size_t packed_room_of(const builder *b, const eddy_code_instruction *instruction) {
    size_t bytes = sizeof(eddy_packed_arguments) + instruction->op->kernel_attribute_bytes + 8 +
                   EDDY_KERNEL_PLAN_BYTES;
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(b->code, instruction->operands_at + i);
        size_t rank = eddy_code_operand_is_absent(operand) ? 0 : (size_t)operand->rank;
        bytes += sizeof(eddy_packed_view) + 2 * rank * sizeof(int64_t);
    }
    /* Views of elementwise calls have the rank of the result. */
    if (instruction->op->is_elementwise)
        bytes += (size_t)instruction->operand_count * 2 * EDDY_RANK_MAX * sizeof(int64_t);
    return bytes;
}

/* The call's block in b->packed, not yet prepared; returns its bytes. */
static size_t pack(const builder *b, const eddy_code_instruction *instruction,
                   const eddy_kernel *kernel) {
    eddy_joint joint;
    bool is_elementwise = instruction->op->is_elementwise;
    pack_header(b->packed, instruction, kernel);
    if (is_elementwise)
        eddy_join_make(b->code, instruction, &joint);
    eddy_packed_writer writer;
    eddy_packed_writer_begin(&writer, b->packed,
                             eddy_code_words(b->code, instruction->attributes_at));
    for (uint32_t i = 0; i < instruction->operand_count; i++)
        pack_operand(b, &writer, i, eddy_code_operand_at(b->code, instruction->operands_at + i),
                     is_elementwise ? &joint : NULL);
    return eddy_packed_writer_bytes(&writer);
}

/* ---- preparing: once for calls whose blocks are equal ---- */

static eddy_prepared_call *prepared_at(const eddy_executable *executable, uint32_t i) {
    return (eddy_prepared_call *)executable->prepared.items + i;
}

/* A prepared block differs from what it was made of by what `prepare` filled in. */
static bool is_same_call(const eddy_prepared_call *prepared, const eddy_packed_arguments *packed,
                         size_t bytes) {
    const eddy_packed_arguments *other = prepared->packed;
    size_t head = offsetof(eddy_packed_arguments, views);
    return other->op == packed->op && other->kernel == packed->kernel &&
           other->view_count == packed->view_count && other->input_count == packed->input_count &&
           other->plan_at * sizeof(int64_t) == bytes &&
           memcmp((const char *)other + head, (const char *)packed + head, bytes - head) == 0;
}

static uint32_t *slot_of(const builder *b, eddy_digest digest, size_t bytes) {
    uint32_t at = (uint32_t)digest.low & (b->slot_count - 1);
    for (;; at = (at + 1) & (b->slot_count - 1)) {
        if (b->slots[at] == 0)
            return &b->slots[at];
        const eddy_prepared_call *prepared = prepared_at(b->executable, b->slots[at] - 1);
        if (prepared->digest.low == digest.low && prepared->digest.high == digest.high &&
            is_same_call(prepared, b->packed, bytes))
            return &b->slots[at];
    }
}

/* Behind the packed block lie its views, and the strides of a loop. */
static size_t block_bytes(const eddy_packed_arguments *packed, size_t packed_bytes) {
    return packed_bytes + packed->view_count * sizeof(eddy_op_view) +
           2 * EDDY_STEP_PLACES * sizeof(int64_t);
}

static void end_prepared(eddy_prepared_call *prepared) {
    eddy_packed_end(prepared->packed);
    eddy_memory_release(prepared->packed, block_bytes(prepared->packed, prepared->bytes),
                        EDDY_MEMORY_PROGRAM);
}

/* Prepares the call in b->packed. */
static eddy_status prepare(builder *b, const eddy_code_instruction *instruction, size_t bytes,
                           eddy_digest digest, uint32_t *index) {
    eddy_prepared_call prepared = {.digest = digest};
    size_t packed_bytes = bytes;
    eddy_status status = eddy_packed_prepare(b->packed, &packed_bytes, &prepared.cost_ps);
    if (status != EDDY_OK)
        return eddy_fail(status, (eddy_origin){instruction->op->name, instruction->address},
                         "the kernel cannot be prepared: %s", eddy_status_text(status));
    prepared.bytes = packed_bytes;
    prepared.packed =
        eddy_memory_acquire(block_bytes(b->packed, packed_bytes), EDDY_MEMORY_PROGRAM);
    if (!prepared.packed) {
        eddy_packed_end(b->packed);
        return fail_memory(b);
    }
    memcpy(prepared.packed, b->packed, packed_bytes);
    prepared.views = (eddy_op_view *)(void *)((char *)prepared.packed + packed_bytes);
    prepared.loop_strides = (int64_t *)(void *)(prepared.views + b->packed->view_count);
    eddy_packed_views(prepared.packed, prepared.views);
    prepared.descriptor = eddy_packed_descriptor(prepared.packed);
    prepared.workspace_bytes = (int64_t)prepared.packed->workspace_bytes;
    if (!eddy_code_array_add(&b->executable->prepared, sizeof(prepared), 1, index)) {
        end_prepared(&prepared);
        return fail_memory(b);
    }
    *prepared_at(b->executable, *index) = prepared;
    return EDDY_OK;
}

/* Room for the attributes of a call that is patched; behind them there is room for a copy of its block, which shows them (eddy_executable_patched). */
static size_t copied_attribute_bytes(const eddy_packed_arguments *packed) {
    size_t word = sizeof(int64_t);
    return (packed->op->kernel_attribute_bytes + word - 1) / word * word;
}

/* What a step takes beside its kernel, and the least that one of a loop does. */
#define STEP_PS 4000
/* Beyond it nothing is dearer. A run whose length nobody knows is as dear. */
#define MOST_PS (INT64_C(1) << 50)

static void add_cost(const builder *b, uint32_t instruction, int64_t cost_ps) {
    eddy_executable *executable = b->executable;
    int64_t times = eddy_regions_most_times(&b->regions, b->code, instruction);
    int64_t once_ps = times > 1 ? cost_ps + STEP_PS : cost_ps;
    executable->cost_ps += cost_ps;
    if (times == EDDY_REGIONS_NO_BOUND || once_ps > (MOST_PS - executable->most_ps) / times)
        executable->most_ps = MOST_PS;
    else
        executable->most_ps += times * once_ps;
}

/* Code that comes from a text, or that passes have made, names the host's. */
static eddy_status find_kernel(const builder *b, const eddy_code_instruction *instruction,
                               const eddy_kernel **kernel) {
    *kernel = instruction->kernel;
    if (!has_own_kernel(b, instruction))
        return EDDY_OK;
    eddy_device device = eddy_code_instruction_device(b->code, instruction);
    *kernel = eddy_op_kernel_on(instruction->op, (eddy_dtype)instruction->compute, device.kind);
    return *kernel
               ? EDDY_OK
               : eddy_fail(EDDY_UNSUPPORTED,
                           (eddy_origin){instruction->op->name, instruction->address},
                           "it has no kernel for %s", eddy_runtime_device_kind_name(device.kind));
}

static eddy_status prepare_all(builder *b) {
    eddy_executable *executable = b->executable;
    for (uint32_t i = 0; i < executable->instruction_count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(b->code, i);
        EDDY_ASSERT(instruction->op == &eddy_transfer_op ||
                    eddy_code_is_on_one_device(b->code, instruction));
        const eddy_kernel *kernel;
        eddy_status status = find_kernel(b, instruction, &kernel);
        if (status != EDDY_OK)
            return status;
        size_t bytes = pack(b, instruction, kernel), head = offsetof(eddy_packed_arguments, views);
        eddy_digest digest = eddy_hash_128((char *)b->packed + head, bytes - head);
        digest.low ^= (uint64_t)(uintptr_t)instruction->op;
        uint32_t *slot = slot_of(b, digest, bytes), index;
        if (*slot == 0) {
            status = prepare(b, instruction, bytes, digest, &index);
            if (status != EDDY_OK)
                return status;
            *slot = index + 1;
        }
        executable->prepared_of[i] = *slot - 1;
        const eddy_prepared_call *prepared = prepared_at(executable, *slot - 1);
        add_cost(b, i, prepared->cost_ps);
        if (is_by_call(b, instruction) && prepared->bytes > executable->most_call_bytes)
            executable->most_call_bytes = prepared->bytes;
        size_t copied_bytes = copied_attribute_bytes(prepared->packed) + prepared->bytes;
        if (instruction->patch_count > 0 && copied_bytes > executable->most_patched_bytes)
            executable->most_patched_bytes = copied_bytes;
        if (instruction->operand_count > executable->most_views)
            executable->most_views = instruction->operand_count;
    }
    return EDDY_OK;
}

/* ---- places ---- */

/* Numbers the steps: members of a group have one. */
static void number_steps(builder *b) {
    eddy_executable *executable = b->executable;
    uint32_t step = 0, group = 0;
    for (uint32_t i = 0; i < executable->instruction_count; step++) {
        uint32_t count = 1;
        if (group < b->code->groups.count && eddy_code_group_at(b->code, group)->first == i)
            count = eddy_code_group_at(b->code, group++)->count;
        executable->first_of[step] = i;
        for (uint32_t end = i + count; i < end; i++)
            b->step_of[i] = step;
    }
    executable->step_count = step;
    executable->first_of[step] = executable->instruction_count;
}

/* What a loop finds there is alive until it ends. */
static void live(const builder *b, uint32_t value, uint32_t i) {
    eddy_arena_block *block = &b->blocks[eddy_code_holder_of(b->code, value)];
    if (block->first == UINT32_MAX)
        block->first = b->step_of[i];
    uint32_t begin = b->executable->first_of[block->first];
    uint32_t last = b->step_of[eddy_regions_last(&b->regions, begin, i)];
    if (block->last < last)
        block->last = last;
}

/* The steps at which a value is first and last named. */
static void find_lives(builder *b) {
    const eddy_code *code = b->code;
    for (uint32_t v = 0; v < code->values.count; v++) {
        const eddy_code_value *value = eddy_code_value_at(code, v);
        bool has_block = b->bases[v] == 0 && !value->is_in_tile && value->shares == 0;
        b->blocks[v] =
            (eddy_arena_block){.bytes = has_block ? value->bytes : 0, .first = UINT32_MAX};
    }
    for (uint32_t i = 0; i < b->executable->instruction_count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(code, instruction->operands_at + k)->value;
            if (value != EDDY_CODE_NONE)
                live(b, value, i);
        }
    }
    for (uint32_t v = 0; v < code->values.count; v++)
        if (b->blocks[v].first == UINT32_MAX)
            b->blocks[v] = (eddy_arena_block){0};
    b->block_count = code->values.count;
}

/* The workspace of an instruction while it runs. The VM provides that of a call. */
static eddy_arena_block workspace_of(const builder *b, uint32_t i) {
    const eddy_prepared_call *prepared = prepared_at(b->executable, b->executable->prepared_of[i]);
    return (eddy_arena_block){.bytes = is_by_call(b, eddy_code_instruction_at(b->code, i))
                                           ? 0
                                           : prepared->workspace_bytes,
                              .first = b->step_of[i],
                              .last = b->step_of[i]};
}

static void add_workspaces(builder *b) {
    for (uint32_t i = 0; i < b->executable->instruction_count; i++) {
        eddy_arena_block block = workspace_of(b, i);
        if (block.bytes > 0)
            b->blocks[b->block_count++] = block;
    }
}

/* ---- streams ---- */

/* Where a run may go other ways, or draws while it runs, its steps are in one row; and so are ops of the program's own, whose functions may do anything. */
static bool may_have_streams(const builder *b) {
    const eddy_code *code = b->code;
    if (b->options->checks_finite || eddy_control_count_marks(code) > 0 || code->draws_late ||
        code->sets_draws || b->executable->device.kind != EDDY_DEVICE_CPU)
        return false;
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_code_instruction_at(code, i)->op->is_registered)
            return false;
    return eddy_streams_may_pay(b->executable->cost_ps, b->executable->step_count,
                                &b->options->streams);
}

/* Which blocks other streams may still use when the last step in the order of the code has run. */
static void find_outliving(const builder *b, const eddy_stream_clocks *clocks,
                           const eddy_arena_lives *lives) {
    for (uint32_t i = 0; i < b->block_count; i++) {
        const uint32_t *clock = eddy_stream_clock(clocks, b->blocks[i].last),
                       *ends = lives->ends + (size_t)i * lives->stream_count;
        for (uint32_t s = 0; s < lives->stream_count; s++)
            b->outlives[i] |= ends[s] > clock[s];
    }
}

/* The arena of several streams, where it is proven. False without memory. */
static bool place_in_streams(builder *b, const eddy_accesses *accesses,
                             const eddy_stream_clocks *clocks) {
    eddy_executable *executable = b->executable;
    size_t bytes = 2 * (size_t)b->block_count * clocks->stream_count * sizeof(uint32_t);
    uint32_t *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    eddy_arena_lives lives = {.begins = memory};
    if (!memory)
        return false;
    lives.ends = memory + (size_t)b->block_count * clocks->stream_count;
    eddy_streams_find_lives(clocks, accesses, b->block_count, &lives);
    find_outliving(b, clocks, &lives);
    bool has_memory =
        eddy_arena_make_of_streams(b->blocks, b->block_count, &lives, &executable->arena);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    if (!has_memory)
        return false;
    bool is_known, is_sound = eddy_streams_check(&executable->streams, accesses, &is_known);
    EDDY_ASSERT(is_sound || !is_known);
    if (!is_known)
        return false;
    is_sound = eddy_streams_check_memory(&executable->streams, accesses, b->blocks, b->block_count,
                                         &is_known);
    EDDY_ASSERT(is_sound || !is_known);
    return is_known;
}

static bool place_in_one(builder *b) {
    return eddy_arena_make(b->blocks, b->block_count, &b->executable->arena);
}

/* Offsets of all blocks. Several streams need more memory than one: a block is alive until all of them have left it for sure. */
static bool place_blocks(builder *b) {
    eddy_executable *executable = b->executable;
    eddy_accesses accesses;
    eddy_stream_clocks clocks = {0};
    if (!may_have_streams(b))
        return place_in_one(b);
    bool has_memory =
        eddy_accesses_find(&accesses, b->code, executable) &&
        eddy_streams_make(&executable->streams, &clocks, &accesses, &b->options->streams);
    if (has_memory)
        has_memory = executable->streams.count > 1 ? place_in_streams(b, &accesses, &clocks)
                                                   : place_in_one(b);
    eddy_stream_clocks_fini(&clocks);
    eddy_accesses_fini(&accesses);
    return has_memory;
}

/* ---- a plan for several sizes ---- */

/* The blocks go to their rooms. */
static bool place_in_layout(builder *b) {
    const eddy_arena_layout *layout = b->options->layout;
    uint32_t values = b->code->values.count, block = values;
    EDDY_ASSERT(layout->value_count == values &&
                layout->instruction_count == b->executable->instruction_count);
    for (uint32_t v = 0; v < values; v++)
        if (!eddy_arena_layout_place(layout, v, &b->blocks[v]))
            return false;
    for (uint32_t i = 0; i < b->executable->instruction_count; i++)
        if (workspace_of(b, i).bytes > 0 &&
            !eddy_arena_layout_place(layout, values + i, &b->blocks[block++]))
            return false;
    b->executable->arena = layout->plan;
    return true;
}

static eddy_status fail_layout(const builder *b) {
    return eddy_fail(EDDY_INVALID_ARGUMENT, b->origin, "the arena's layout has no room for it");
}

static eddy_status plan_arena(builder *b) {
    eddy_executable *executable = b->executable;
    find_lives(b);
    add_workspaces(b);
    bool is_known;
    const eddy_arena_layout *layout = b->options->layout;
    if (layout && !place_in_layout(b))
        return fail_layout(b);
    if (!layout && !place_blocks(b))
        return fail_memory(b);
    bool is_sound = eddy_arena_check(b->blocks, b->block_count, executable->arena.bytes, &is_known);
    if (!is_known)
        return fail_memory(b);
    if (layout && !is_sound)
        return fail_layout(b);
    EDDY_ASSERT(is_sound);
    /* A value of the run alone may have the memory of a donated input. */
    for (uint32_t v = 0; v < b->code->values.count; v++) {
        uint32_t holder = eddy_code_holder_of(b->code, v);
        executable->value_places[v] =
            (eddy_place){.base = b->bases[holder], .offset = b->blocks[holder].offset};
    }
    return EDDY_OK;
}

#ifdef EDDY_CHECKS
/* Whether nobody uses the block behind its last step. */
static bool dies(const builder *b, uint32_t block) {
    return b->blocks[block].bytes > 0 && !b->outlives[block];
}

/* Lists the blocks by their last steps: a run fills what has died. */
static bool list_dying(const builder *b) {
    eddy_executable *executable = b->executable;
    uint32_t steps = executable->step_count, *at;
    if (!acquire(&executable->dying, b->block_count, sizeof(*executable->dying)) ||
        !acquire(&executable->dying_at, (size_t)steps + 2, sizeof(*executable->dying_at)))
        return false;
    at = executable->dying_at + 1; /* moves to its place while blocks are put there */
    for (uint32_t i = 0; i < b->block_count; i++)
        at[b->blocks[i].last + 1] += dies(b, i);
    for (uint32_t s = 0; s < steps; s++)
        at[s + 1] += at[s];
    for (uint32_t i = 0; i < b->block_count; i++)
        if (dies(b, i))
            executable->dying[at[b->blocks[i].last]++] = b->blocks[i];
    return true;
}
#endif

/* ---- steps ---- */

/* Lists the places of an instruction's operands that are not absent; returns their number. */
static uint32_t list_places(const builder *b, uint32_t i) {
    eddy_executable *executable = b->executable;
    const eddy_code_instruction *instruction = eddy_code_instruction_at(b->code, i);
    uint32_t at = executable->places_at[i];
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(b->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        eddy_place place = executable->value_places[operand->value];
        place.view = k;
        executable->places[at] = executable->elements[at] = place;
        executable->elements[at].offset +=
            operand->offset * eddy_dtype_size((eddy_dtype)operand->dtype);
        executable->place_bytes[at++] = eddy_code_value_at(b->code, operand->value)->bytes;
    }
    return at - executable->places_at[i];
}

/* The step of one instruction; in a group, whose step is another, its places alone, for who looks at its operands. */
static void make_single(const builder *b, uint32_t i, int64_t workspace_at, eddy_step *step) {
    eddy_executable *executable = b->executable;
    const eddy_code_instruction *instruction = eddy_code_instruction_at(b->code, i);
    uint32_t first = executable->places_at[i], count = list_places(b, i);
    executable->places_at[i + 1] = first + count;
    if (count > executable->most_places)
        executable->most_places = count;
    EDDY_ASSERT(step || !instruction->draw); /* ops that draw are not elementwise */
    if (step && is_by_call(b, instruction))
        eddy_step_make_call(step);
    else if (step)
        eddy_step_make(
            step, &(eddy_step_call){.prepared = prepared_at(executable, executable->prepared_of[i]),
                                    .places = executable->elements + first,
                                    .count = count,
                                    .patches = executable->patches + instruction->patches_at,
                                    .patch_count = instruction->patch_count,
                                    .late_draw = eddy_code_late_draw(b->code, instruction),
                                    .workspace_at = workspace_at,
                                    .checks_finite = b->options->checks_finite});
}

static bool make_group(const builder *b, uint32_t group, eddy_step *step) {
    eddy_executable *executable = b->executable;
    size_t copied_bytes;
    eddy_fused *fused = eddy_fused_create(executable, b->code, b->bases, b->uses,
                                          eddy_code_group_at(b->code, group), &copied_bytes);
    if (!fused)
        return false;
    executable->fused[executable->group_count++] = fused;
    if (copied_bytes > executable->most_patched_bytes)
        executable->most_patched_bytes = copied_bytes;
    eddy_step_make_fused(step, fused);
    return true;
}

static bool make_steps(builder *b) {
    eddy_executable *executable = b->executable;
    uint32_t block = b->code->values.count, group = 0;
    for (uint32_t s = 0; s < executable->step_count; s++) {
        uint32_t first = executable->first_of[s], end = executable->first_of[s + 1];
        for (uint32_t i = first; i < end; i++) {
            bool has_workspace = workspace_of(b, i).bytes > 0;
            make_single(b, i, has_workspace ? b->blocks[block++].offset : -1,
                        end - first == 1 ? &executable->steps[s] : NULL);
        }
        if (end - first > 1 && !make_group(b, group++, &executable->steps[s]))
            return false;
    }
    return true;
}

static void resolve_patches(builder *b) {
    const eddy_code *code = b->code;
    for (uint32_t i = 0; i < code->patches.count; i++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code, i);
        b->executable->patches[i] =
            (eddy_patch){.from = eddy_code_run_word(code, patch), .to = patch->to};
    }
}

size_t eddy_frame_room_bytes(const eddy_executable *executable) {
    return eddy_frame_lined(executable->most_places * sizeof(void *)) +
           eddy_frame_lined(executable->most_views * sizeof(eddy_op_view)) +
           eddy_frame_lined(executable->most_patched_bytes);
}

void eddy_frame_take_rooms(eddy_frame *frame, const eddy_executable *executable, char **at) {
    frame->data = eddy_frame_take(at, executable->most_places * sizeof(void *));
    frame->views = eddy_frame_take(at, executable->most_views * sizeof(eddy_op_view));
    frame->copy = eddy_frame_take(at, executable->most_patched_bytes);
}

/* Behind the arena: the frame's arrays. */
static void size_workspace(eddy_executable *executable) {
    size_t bytes = eddy_frame_lined((size_t)executable->arena.bytes) +
                   eddy_frame_lined(executable->base_count * sizeof(void *)) +
                   eddy_frame_room_bytes(executable) +
                   eddy_frame_lined(executable->jump_count * sizeof(int64_t)) +
                   eddy_frame_lined(executable->value_count * sizeof(eddy_poison));
    executable->workspace_bytes =
        (int64_t)bytes + (executable->streams.count > 1 ? eddy_crew_bytes(executable) : 0);
}

/* ---- all of it ---- */

static bool take_memory(builder *b) {
    eddy_executable *executable = b->executable;
    const eddy_code *code = b->code;
    uint32_t steps = executable->instruction_count, values = code->values.count;
    for (uint32_t i = 0; i < steps; i++) {
        size_t room = packed_room_of(b, eddy_code_instruction_at(code, i));
        b->packed_room = room > b->packed_room ? room : b->packed_room;
    }
    for (b->slot_count = 16; b->slot_count < 2 * (uint64_t)steps;)
        b->slot_count *= 2;
    return acquire(&b->packed, b->packed_room + 8, 1) &&
           acquire(&b->slots, b->slot_count, sizeof(*b->slots)) &&
           acquire(&b->blocks, (size_t)values + steps, sizeof(*b->blocks)) &&
           acquire(&b->outlives, (size_t)values + steps, sizeof(*b->outlives)) &&
           acquire(&b->uses, values, sizeof(*b->uses)) &&
           acquire(&b->step_of, steps, sizeof(*b->step_of)) &&
           eddy_regions_find(code, &b->regions) &&
           acquire(&executable->first_of, (size_t)steps + 1, sizeof(*executable->first_of)) &&
           acquire(&executable->fused, code->groups.count, sizeof(*executable->fused)) &&
           acquire(&executable->steps, steps, sizeof(*executable->steps)) &&
           acquire(&executable->prepared_of, steps, sizeof(*executable->prepared_of)) &&
           acquire(&executable->places_at, (size_t)steps + 1, sizeof(*executable->places_at)) &&
           acquire(&executable->value_places, values, sizeof(*executable->value_places)) &&
           acquire(&executable->base_values, executable->base_count,
                   sizeof(*executable->base_values)) &&
           acquire(&executable->patches, code->patches.count, sizeof(*executable->patches)) &&
           acquire(&executable->places, code->operands.count, sizeof(*executable->places)) &&
           acquire(&executable->elements, code->operands.count, sizeof(*executable->elements)) &&
           acquire(&executable->place_bytes, code->operands.count,
                   sizeof(*executable->place_bytes));
}

static void builder_fini(builder *b) {
    uint32_t values = b->code->values.count, steps = b->code->instructions.count;
    eddy_memory_release(b->packed, b->packed_room + 8, EDDY_MEMORY_PROGRAM);
    eddy_memory_release(b->slots, b->slot_count * sizeof(*b->slots), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(b->blocks, ((size_t)values + steps) * sizeof(*b->blocks),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(b->outlives, ((size_t)values + steps) * sizeof(*b->outlives),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(b->uses, values * sizeof(*b->uses), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(b->step_of, steps * sizeof(*b->step_of), EDDY_MEMORY_PROGRAM);
    eddy_regions_fini(&b->regions);
}

/* Where code runs that is not cut. */
static eddy_device device_of(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_code_instruction_at(code, i)->operand_count > 0)
            return eddy_code_instruction_device(code, eddy_code_instruction_at(code, i));
    return EDDY_CPU;
}

/* Calls are prepared, and steps numbered. */
static eddy_status begin(builder *b, uint32_t base_count) {
    const eddy_code *code = b->code;
    *b->executable = (eddy_executable){.instruction_count = code->instructions.count,
                                       .value_count = code->values.count,
                                       .operand_count = code->operands.count,
                                       .patch_count = code->patches.count,
                                       .code_group_count = code->groups.count,
                                       .base_count = base_count,
                                       .streams = {.count = 1},
                                       .device = device_of(code)};
    if (!take_memory(b))
        return fail_memory(b);
    b->is_by_call = eddy_cut_is_by_call(code);
    for (uint32_t v = 0; v < code->values.count; v++)
        if (b->bases[v] > 0)
            b->executable->base_values[b->bases[v] - 1] = v;
    eddy_status status = prepare_all(b);
    if (status == EDDY_OK)
        number_steps(b);
    return status;
}

eddy_status eddy_executable_measure(const eddy_code *code, const uint32_t *bases,
                                    uint32_t base_count, eddy_arena_layout *layout,
                                    eddy_origin origin) {
    eddy_executable executable;
    builder b = {.executable = &executable,
                 .code = code,
                 .bases = bases,
                 .options = &(eddy_executable_options){.layout = NULL},
                 .origin = origin};
    eddy_status status = begin(&b, base_count);
    if (status == EDDY_OK) {
        find_lives(&b);
        for (uint32_t v = 0; v < code->values.count; v++)
            eddy_arena_layout_widen(layout, v, &b.blocks[v]);
        for (uint32_t i = 0; i < code->instructions.count; i++) {
            eddy_arena_block block = workspace_of(&b, i);
            eddy_arena_layout_widen(layout, code->values.count + i, &block);
        }
    }
    builder_fini(&b);
    eddy_executable_fini(&executable);
    return status;
}

eddy_status eddy_executable_make(eddy_executable *executable, const eddy_code *code,
                                 const uint32_t *bases, uint32_t base_count,
                                 const eddy_executable_options *options, eddy_origin origin) {
    builder b = {.executable = executable,
                 .code = code,
                 .bases = bases,
                 .options = options,
                 .origin = origin};
    eddy_status status = begin(&b, base_count);
    if (status == EDDY_OK) {
        eddy_group_count_uses(code, b.uses);
        resolve_patches(&b);
        status = plan_arena(&b);
    }
    if (status == EDDY_OK &&
        !(make_steps(&b) && eddy_jumps_make(executable, code, &b.regions, b.step_of) &&
          eddy_front_find(executable, code) &&
          eddy_partitions_find(executable, code, b.step_of, b.blocks, b.block_count) &&
          (!options->captures_graphs || eddy_step_rows_find(executable, code))))
        status = fail_memory(&b);
#ifdef EDDY_CHECKS
    if (status == EDDY_OK && !list_dying(&b))
        status = fail_memory(&b);
    executable->dying_room = b.block_count;
#endif
    if (status == EDDY_OK)
        size_workspace(executable);
    builder_fini(&b);
    if (status != EDDY_OK)
        eddy_executable_fini(executable);
    return status;
}

void eddy_executable_fini(eddy_executable *e) {
    for (uint32_t i = 0; i < e->prepared.count; i++)
        end_prepared(prepared_at(e, i));
    eddy_code_array_fini(&e->prepared, sizeof(eddy_prepared_call));
    for (uint32_t g = 0; g < e->group_count; g++)
        eddy_fused_destroy(e->fused[g]);
    eddy_streams_fini(&e->streams);
    eddy_front_fini(e);
    eddy_partitions_fini(&e->partitions);
    eddy_fusions_fini(&e->fusions);
    eddy_step_rows_fini(&e->step_rows);
    uint32_t count = e->instruction_count;
#ifdef EDDY_CHECKS
    eddy_memory_release(e->dying, e->dying_room * sizeof(*e->dying), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->dying_at, ((size_t)e->step_count + 2) * sizeof(*e->dying_at),
                        EDDY_MEMORY_PROGRAM);
#endif
    eddy_memory_release(e->fused, e->code_group_count * sizeof(*e->fused), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->steps, count * sizeof(*e->steps), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->jumps, e->jump_count * sizeof(*e->jumps), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->first_of, ((size_t)count + 1) * sizeof(*e->first_of),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->prepared_of, count * sizeof(*e->prepared_of), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->places_at, ((size_t)count + 1) * sizeof(*e->places_at),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->value_places, e->value_count * sizeof(*e->value_places),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->base_values, e->base_count * sizeof(*e->base_values),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->patches, e->patch_count * sizeof(*e->patches), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->places, e->operand_count * sizeof(*e->places), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->elements, e->operand_count * sizeof(*e->elements), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(e->place_bytes, e->operand_count * sizeof(*e->place_bytes),
                        EDDY_MEMORY_PROGRAM);
    *e = (eddy_executable){0};
}

void eddy_executable_instruction(const eddy_executable *executable, const eddy_code *code,
                                 uint32_t i, eddy_vm_instruction *instruction) {
    const eddy_prepared_call *prepared = prepared_at(executable, executable->prepared_of[i]);
    *instruction = (eddy_vm_instruction){.descriptor = prepared->descriptor,
                                         .arguments = prepared->packed,
                                         .address = eddy_code_instruction_at(code, i)->address};
}

const void *eddy_executable_patched(const eddy_executable *executable, uint32_t i, void *copy) {
    const eddy_prepared_call *prepared = prepared_at(executable, executable->prepared_of[i]);
    const eddy_packed_arguments *packed = prepared->packed;
    char *block = (char *)copy + copied_attribute_bytes(packed);
    memcpy(block, packed, prepared->bytes);
    memcpy(block + packed->attributes_at * sizeof(int64_t), copy,
           packed->op->kernel_attribute_bytes);
    return block;
}

int64_t eddy_executable_cost(const eddy_executable *executable, uint32_t instruction) {
    return prepared_at(executable, executable->prepared_of[instruction])->cost_ps;
}

int64_t eddy_executable_bytes(const eddy_executable *e) {
    size_t bytes = e->instruction_count *
                       (sizeof(*e->steps) + sizeof(*e->prepared_of) + sizeof(*e->first_of)) +
                   e->value_count * sizeof(*e->value_places) +
                   e->base_count * sizeof(*e->base_values) + e->jump_count * sizeof(*e->jumps) +
                   (e->front.bases ? e->base_count * sizeof(*e->front.bases) : 0) +
                   e->operand_count * (2 * sizeof(*e->places) + sizeof(*e->place_bytes)) +
                   e->prepared.capacity * sizeof(eddy_prepared_call);
    for (uint32_t i = 0; i < e->prepared.count; i++)
        bytes += block_bytes(prepared_at(e, i)->packed, prepared_at(e, i)->bytes);
    for (uint32_t g = 0; g < e->group_count; g++)
        bytes += eddy_fused_bytes(e->fused[g]);
    return (int64_t)bytes + eddy_streams_bytes(&e->streams) +
           eddy_partitions_bytes(&e->partitions) + eddy_fusions_bytes(&e->fusions) +
           eddy_step_rows_bytes(&e->step_rows);
}
