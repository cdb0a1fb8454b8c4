#include <program/cut.h>

#include <base/memory.h>
#include <interpreter/host/transfer.h>
#include <program/control.h>
#include <program/draw_ops.h>
#include <program/late_calls.h>
#include <stdio.h>
#include <string.h>

/* Beyond so many instructions the order stays: it takes a look at all of them for each change of the device. */
#define ORDERED_MOST 16384

static eddy_control control_at(const eddy_code *code, uint32_t i) {
    return eddy_control_of(eddy_code_instruction_at(code, i)->op);
}

static bool is_transfer(const eddy_code *code, uint32_t i) {
    return eddy_code_instruction_at(code, i)->op == &eddy_transfer_op;
}

static bool is_same_device(eddy_device a, eddy_device b) {
    return a.kind == b.kind && a.index == b.index;
}

/* A mark without a predicate is on every device. */
static bool has_device(const eddy_code *code, uint32_t i) {
    return eddy_code_instruction_at(code, i)->operand_count > 0;
}

static eddy_device device_at(const eddy_code *code, uint32_t i) {
    return eddy_code_instruction_device(code, eddy_code_instruction_at(code, i));
}

static bool has_branches(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (control_at(code, i) == EDDY_CONTROL_IF || control_at(code, i) == EDDY_CONTROL_LOOP)
            return true;
    return false;
}

static bool has_donated(const eddy_code *code) {
    for (uint32_t v = 0; v < code->values.count; v++)
        if (eddy_code_value_at(code, v)->is_donated)
            return true;
    return false;
}

bool eddy_cut_has_calls(const eddy_code *code) {
    for (uint32_t i = 0, end = eddy_late_calls_first(code); i < end; i++)
        if (has_device(code, i) && eddy_cut_has_own_kernels(device_at(code, i)))
            return true;
    return false;
}

bool eddy_cut_is_by_call(const eddy_code *code) {
    return !code->has_rounds && eddy_cut_has_calls(code) && !has_branches(code) &&
           !has_donated(code) && !eddy_draw_ops_has_set(code);
}

/* Whether instructions first .. end - 1 are on several devices. */
static bool is_mixed(const eddy_code *code, uint32_t first, uint32_t end) {
    uint32_t seen = EDDY_CODE_NONE;
    for (uint32_t i = first; i < end; i++) {
        if (!has_device(code, i))
            continue;
        if (is_transfer(code, i) ||
            (seen != EDDY_CODE_NONE && !is_same_device(device_at(code, i), device_at(code, seen))))
            return true;
        seen = i;
    }
    return false;
}

bool eddy_cut_is_needed(const eddy_code *code) {
    return is_mixed(code, 0, eddy_late_calls_first(code)) || eddy_cut_is_by_call(code);
}

/* Whether partitions begin within a branch or a loop. */
static bool has_mixed_region(const eddy_code *code) {
    uint32_t depth = 0, first = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        eddy_control control = control_at(code, i);
        if ((control == EDDY_CONTROL_IF || control == EDDY_CONTROL_LOOP) && depth++ == 0)
            first = i;
        if ((control == EDDY_CONTROL_END_IF || control == EDDY_CONTROL_END_LOOP) && --depth == 0 &&
            is_mixed(code, first, i))
            return true;
    }
    return false;
}

static bool has_read(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (control_at(code, i) == EDDY_CONTROL_READ)
            return true;
    return false;
}

void eddy_cut_judge(const eddy_code *code, char *reason, size_t size) {
    bool is_cut = eddy_cut_is_needed(code),
         is_several = is_mixed(code, 0, eddy_late_calls_first(code));
    reason[0] = 0;
    if (!is_cut && !eddy_cut_has_calls(code))
        return;
    const char *why = has_mixed_region(code) ? "the device changes within a branch or a loop"
                      : is_cut && eddy_control_has_draws(code)
                          ? "random numbers are drawn in a branch or a loop"
                      : has_read(code) ? "what it has computed is read on the host"
                                       : NULL;
    if (why)
        snprintf(reason, size, "calls are on %s, and %s", is_several ? "several devices" : "cuda",
                 why);
}

/* ---- order ---- */

/* An edge: `to` comes after the instruction in whose list it is. */
typedef struct edge {
    uint32_t to;
    uint32_t next; /* 1 + the next one in the list; 0: none */
} edge;

typedef struct ordering {
    eddy_code *code;
    uint32_t count;
    eddy_code_array edges;
    uint32_t *first; /* per instruction: 1 + its first edge; 0: none */
    uint32_t *
        pending; /* per instruction: those that it comes after and that are not placed; NONE: it is placed itself */
    uint32_t *writer; /* per value: 1 + the last instruction that wrote it; 0: none */
    uint32_t *
        readers; /* per value: 1 + an edge list of those that have read it since; `to` is the reader */
    uint32_t failing; /* 1 + the last instruction that may fail; 0: none */
    eddy_code_instruction *placed;
    uint32_t placed_count;
} ordering;

static bool add_edge(ordering *o, uint32_t *list, uint32_t to) {
    uint32_t index;
    if (!eddy_code_array_add(&o->edges, sizeof(edge), 1, &index))
        return false;
    ((edge *)o->edges.items)[index] = (edge){to, *list};
    *list = index + 1;
    return true;
}

static bool come_after(ordering *o, uint32_t to, uint32_t from) {
    o->pending[to]++;
    return add_edge(o, &o->first[from], to);
}

static bool note_write(ordering *o, uint32_t i, uint32_t value) {
    if (o->writer[value] != 0 && o->writer[value] != i + 1 &&
        !come_after(o, i, o->writer[value] - 1))
        return false;
    for (uint32_t at = o->readers[value]; at != 0;) {
        edge reader = ((const edge *)o->edges.items)[at - 1];
        if (reader.to != i && !come_after(o, i, reader.to))
            return false;
        at = reader.next;
    }
    o->readers[value] = 0;
    o->writer[value] = i + 1;
    return true;
}

static bool note_read(ordering *o, uint32_t i, uint32_t value) {
    if (o->writer[value] != 0 && !come_after(o, i, o->writer[value] - 1))
        return false;
    return add_edge(o, &o->readers[value], i);
}

/* Reads first: an instruction comes after none of its own. */
static bool find_edges(ordering *o) {
    for (uint32_t i = 0; i < o->count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(o->code, i);
        /* Of several that fail the first is to blame. */
        if (instruction->op->may_fail && o->failing != 0 && !come_after(o, i, o->failing - 1))
            return false;
        if (instruction->op->may_fail)
            o->failing = i + 1;
        for (int writes = 0; writes < 2; writes++)
            for (uint32_t k = 0; k < instruction->operand_count; k++) {
                const eddy_code_operand *operand =
                    eddy_code_operand_at(o->code, instruction->operands_at + k);
                bool is_write = operand->access & EDDY_CODE_WRITES;
                if (eddy_code_operand_is_absent(operand) || is_write != (writes == 1))
                    continue;
                if (!(is_write ? note_write(o, i, operand->value)
                               : note_read(o, i, operand->value)))
                    return false;
            }
    }
    return true;
}

static void place(ordering *o, uint32_t i) {
    o->placed[o->placed_count++] = *eddy_code_instruction_at(o->code, i);
    o->pending[i] = EDDY_CODE_NONE;
    for (uint32_t at = o->first[i]; at != 0; at = ((const edge *)o->edges.items)[at - 1].next)
        o->pending[((const edge *)o->edges.items)[at - 1].to]--;
}

/* Places all copies that can be, in their order: what depends on one comes later in the code. */
static void place_transfers(ordering *o) {
    for (uint32_t i = 0; i < o->count; i++)
        if (o->pending[i] == 0 && is_transfer(o->code, i))
            place(o, i);
}

/* And all that the device of the first one can do then. */
static void place_device(ordering *o) {
    uint32_t first = 0;
    while (first < o->count && o->pending[first] != 0)
        first++;
    for (uint32_t i = first; i < o->count; i++)
        if (o->pending[i] == 0 && !is_transfer(o->code, i) &&
            is_same_device(device_at(o->code, i), device_at(o->code, first)))
            place(o, i);
}

static bool order(eddy_code *code) {
    uint32_t count = eddy_late_calls_first(code), values = code->values.count;
    size_t bytes = count * (sizeof(eddy_code_instruction) + 2 * sizeof(uint32_t)) +
                   2 * (size_t)values * sizeof(uint32_t);
    ordering o = {.code = code, .count = count};
    o.placed = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!o.placed)
        return false;
    o.first = (uint32_t *)(void *)(o.placed + count);
    o.pending = o.first + count;
    o.writer = o.pending + count;
    o.readers = o.writer + values;
    bool has_memory = find_edges(&o);
    while (has_memory && o.placed_count < count) {
        place_transfers(&o);
        place_device(&o);
    }
    if (has_memory && count > 0)
        memcpy(code->instructions.items, o.placed, count * sizeof(*o.placed));
    eddy_code_array_fini(&o.edges, sizeof(edge));
    eddy_memory_release(o.placed, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

/* ---- cuts ---- */

/* Whether there is a cut before instruction i; *device: the last one before it that is on one, NONE: there was none. */
static bool is_cut(const eddy_code *code, uint32_t i, bool is_by_call, uint32_t *device) {
    uint32_t before = *device, at = i;
    /* A loop is where its first instruction is; other marks stand within. */
    while (control_at(code, at) == EDDY_CONTROL_LOOP)
        at++;
    if (!has_device(code, at))
        return false;
    *device = at;
    if (before == EDDY_CODE_NONE)
        return false;
    return is_transfer(code, before) || is_transfer(code, at) ||
           (is_by_call && eddy_cut_has_own_kernels(device_at(code, at))) ||
           !is_same_device(device_at(code, before), device_at(code, at));
}

static void insert_all(eddy_code *code, const eddy_code_instruction *old, uint32_t count) {
    eddy_code before = *code;
    uint32_t device = EDDY_CODE_NONE, to = 0;
    before.instructions = (eddy_code_array){(void *)old, count, count};
    bool is_by_call = eddy_cut_is_by_call(&before);
    for (uint32_t i = 0; i < count; i++) {
        bool is_late = eddy_late_calls_include(old[i].op);
        if (!is_late && is_cut(&before, i, is_by_call, &device)) {
            eddy_code_instruction *cut = eddy_code_instruction_at(code, to++);
            *cut = (eddy_code_instruction){.op = eddy_control_op(EDDY_CONTROL_CUT),
                                           .address = old[i].address,
                                           .operands_at = old[i].operands_at,
                                           .attributes_at = old[i].attributes_at,
                                           .patches_at = old[i].patches_at,
                                           .ordinal = old[i].ordinal,
                                           .source = old[i].source,
                                           .compute = EDDY_F32};
            cut->kernel = eddy_op_kernel_for(cut->op, EDDY_F32);
        }
        *eddy_code_instruction_at(code, to++) = old[i];
    }
    EDDY_ASSERT(to == code->instructions.count);
}

static uint32_t count_cuts(const eddy_code *code) {
    uint32_t device = EDDY_CODE_NONE, cuts = 0;
    bool is_by_call = eddy_cut_is_by_call(code);
    for (uint32_t i = 0, count = eddy_late_calls_first(code); i < count; i++)
        cuts += is_cut(code, i, is_by_call, &device);
    return cuts;
}

static bool insert(eddy_code *code) {
    uint32_t count = code->instructions.count, cuts = count_cuts(code), index;
    size_t bytes = count * sizeof(eddy_code_instruction);
    eddy_code_instruction *old = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    bool has_memory = old && eddy_code_array_add(&code->instructions, sizeof(eddy_code_instruction),
                                                 cuts, &index);
    if (has_memory) {
        memcpy(old, code->instructions.items, bytes);
        insert_all(code, old, count);
    }
    eddy_memory_release(old, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

uint32_t eddy_cut_count(const eddy_code *code) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->instructions.count; i++)
        count += control_at(code, i) == EDDY_CONTROL_CUT;
    return count;
}

bool eddy_cut_make(eddy_code *code) {
    if (!eddy_cut_is_needed(code))
        return true;
    bool keeps_order =
        eddy_control_count_marks(code) > 0 || code->instructions.count > ORDERED_MOST;
    code->is_cut = true;
    return (keeps_order || order(code)) && insert(code);
}
