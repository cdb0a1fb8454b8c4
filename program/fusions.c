#include <program/fusions.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <program/build_cache.h>
#include <program/cut.h>
#include <program/group.h>
#include <program/passes/passes.h>
#include <program/program.h>
#include <program/steps.h>
#include <string.h>

/* Values that one fusion may name: a bit each in `depends`. */
#define VALUES_MOST 64

/* ---- one that is being found ---- */

/* A value that members name. */
typedef struct named {
    uint32_t value;
    uint32_t uses;                   /* operands of members */
    uint32_t writes;                 /* members that write it */
    uint32_t written_at;             /* operand of the first of them; the others have its layout */
    uint8_t first_step, last_step;   /* the members that write it first and last */
    bool is_loaded;                  /* read before it was written */
    bool is_covered, may_be_covered; /* first written whole; where a run gives all of an input */
    bool is_uneven;                  /* written with the errors of more than before */
    uint64_t depends; /* values whose errors it has: bits, by what they were before the fusion */
} named;

/* An input: a value with a layout. */
typedef struct loaded {
    uint8_t named;
    uint32_t operand;
    uint32_t member;
} loaded;

typedef struct finding {
    const eddy_program *program;
    const eddy_code *code;
    const eddy_executable *executable;
    const bool *is_kept;  /* per value: it is there after a run */
    const uint32_t *uses; /* per value, of all calls */
    bool is_by_step;      /* places are steps; else partitions */
    uint32_t first;       /* place */
    uint32_t count;       /* of members */
    eddy_shape shape;
    named values[VALUES_MOST];
    uint32_t value_count;
    loaded loads[EDDY_FUSION_OPERANDS];
    uint32_t load_count;
    eddy_fusion fusion;
} finding;

/* The instruction at a place; EDDY_CODE_NONE: a partition that is no call. */
static uint32_t instruction_at(const finding *f, uint32_t place) {
    return f->is_by_step ? f->executable->first_of[place]
                         : f->executable->partitions.items[place].call;
}

static const eddy_code_instruction *member_at(const finding *f, uint32_t m) {
    return eddy_code_instruction_at(f->code, instruction_at(f, f->first + m));
}

static const eddy_code_operand *operand_at(const finding *f, uint32_t operand) {
    return eddy_code_operand_at(f->code, operand);
}

/* ---- may a call be a member? ---- */

static const char *kernel_name(const eddy_code_instruction *call) {
    const eddy_kernel *kernel = eddy_op_kernel_for(call->op, (eddy_dtype)call->compute);
    return kernel ? kernel->name : "";
}

static bool is_copy(const eddy_code_instruction *call) {
    return strcmp(kernel_name(call), "copy") == 0 && call->operand_count == 2;
}

static bool is_kind(const eddy_code_instruction *call) {
    const eddy_op *op = call->op;
    return (op->is_elementwise || is_copy(call)) && !op->may_fail && !op->is_random &&
           !op->is_registered && call->operand_count >= 2 &&
           call->operand_count <= EDDY_FUSION_STEP_INPUTS + 1;
}

/* Its last operand alone is written, and none is absent. Calls that take over memory of others' storages have more to say of these than one instruction can. */
static bool has_one_result(const finding *f, const eddy_code_instruction *call) {
    for (uint32_t k = 0; k < call->operand_count; k++) {
        const eddy_code_operand *operand = operand_at(f, call->operands_at + k);
        bool is_last = k == call->operand_count - 1;
        if (eddy_code_operand_is_absent(operand) ||
            ((operand->access & EDDY_CODE_WRITES) != 0) != is_last ||
            (!f->is_by_step && eddy_code_value_at(f->code, operand->value)->shares != 0))
            return false;
    }
    return true;
}

static bool has_elements(const int64_t *dims, int32_t rank) {
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] == 0)
            return false;
    return true;
}

/* ---- adding one ---- */

static named *find_named(finding *f, uint32_t value) {
    for (uint32_t i = 0; i < f->value_count; i++)
        if (f->values[i].value == value)
            return &f->values[i];
    if (f->value_count == VALUES_MOST)
        return NULL;
    named *fresh = &f->values[f->value_count];
    *fresh = (named){.value = value, .depends = UINT64_C(1) << f->value_count++};
    return fresh;
}

/* The number of the input; EDDY_FUSION_OPERANDS: there is no room for it. */
static uint8_t find_load(finding *f, const named *of, uint32_t operand) {
    uint32_t number = (uint32_t)(of - f->values), i = 0;
    while (i < f->load_count &&
           (f->loads[i].named != number ||
            !eddy_code_has_same_layout(f->code, operand_at(f, f->loads[i].operand),
                                       operand_at(f, operand))))
        i++;
    if (i == EDDY_FUSION_OPERANDS)
        return EDDY_FUSION_OPERANDS;
    if (i == f->load_count)
        f->loads[f->load_count++] =
            (loaded){.named = (uint8_t)number, .operand = operand, .member = f->count};
    f->fusion.input_dtypes[i] = operand_at(f, operand)->dtype;
    return (uint8_t)i;
}

/* What a member reads: what an earlier one has written in the same places, or an input. */
static bool read(finding *f, uint32_t operand, eddy_fusion_step *step, uint64_t *depends) {
    named *of = find_named(f, operand_at(f, operand)->value);
    if (!of)
        return false;
    of->uses++;
    *depends |= of->depends;
    if (of->writes > 0) {
        step->inputs[step->input_count++] = (uint8_t)(EDDY_FUSION_OPERANDS + of->last_step);
        return eddy_code_has_same_layout(f->code, operand_at(f, of->written_at),
                                         operand_at(f, operand));
    }
    uint8_t number = find_load(f, of, operand);
    of->is_loaded = true;
    step->inputs[step->input_count++] = number;
    return number < EDDY_FUSION_OPERANDS;
}

/* Whether the members see the value where this one writes it. */
static bool is_seen_there(const finding *f, const named *of, uint32_t operand) {
    const eddy_code_operand *written = operand_at(f, operand);
    if (of->writes > 0 &&
        !eddy_code_has_same_layout(f->code, operand_at(f, of->written_at), written))
        return false;
    for (uint32_t i = 0; i < f->load_count; i++)
        if (f->loads[i].named == (uint32_t)(of - f->values) &&
            !eddy_code_has_same_layout(f->code, operand_at(f, f->loads[i].operand), written))
            return false;
    return true;
}

static bool write(finding *f, uint32_t operand, eddy_fusion_step *step, uint64_t depends) {
    const eddy_code_operand *written = operand_at(f, operand);
    named *of = find_named(f, written->value);
    if (!of || !is_seen_there(f, of, operand))
        return false;
    bool is_covered = (written->access & (EDDY_CODE_COVERS | EDDY_CODE_MAKES)) != 0,
         may_be_covered = (written->access & EDDY_CODE_COVERS_INPUT) != 0;
    /* One instruction cannot both read an error and heal it. */
    if (of->is_loaded && (is_covered || may_be_covered))
        return false;
    uint64_t all = is_covered ? depends : depends | of->depends;
    of->is_uneven |= of->writes > 0 && all != of->depends;
    of->depends = all;
    of->may_be_covered |= may_be_covered;
    if (of->writes == 0) {
        of->is_covered = is_covered;
        of->written_at = operand;
        of->first_step = (uint8_t)f->count;
    }
    of->uses++;
    of->writes++;
    of->last_step = (uint8_t)f->count;
    step->result = written->dtype;
    return true;
}

static bool add_attributes(finding *f, const eddy_code_instruction *call, eddy_fusion_step *step) {
    size_t words = (call->op->kernel_attribute_bytes + sizeof(int64_t) - 1) / sizeof(int64_t);
    step->attributes_at = f->fusion.word_count;
    if (f->fusion.word_count + words > EDDY_FUSION_WORDS)
        return false;
    f->fusion.word_count = (uint8_t)(f->fusion.word_count + words);
    return true;
}

/* False: the call is no member of this one, which is of no use as it is then. */
static bool add_member(finding *f) {
    const eddy_code_instruction *call = member_at(f, f->count);
    uint32_t result = call->operands_at + call->operand_count - 1;
    if (f->count == EDDY_FUSION_STEPS || !is_kind(call) || !has_one_result(f, call))
        return false;
    const eddy_code_operand *written = operand_at(f, result);
    const int64_t *dims = eddy_code_dims(f->code, written);
    size_t bytes = (size_t)written->rank * sizeof(*dims);
    if (f->count == 0) {
        f->shape.rank = written->rank;
        if (bytes > 0)
            memcpy(f->shape.dims, dims, bytes);
    }
    if (f->shape.rank != written->rank || (bytes > 0 && memcmp(f->shape.dims, dims, bytes) != 0) ||
        !has_elements(dims, written->rank))
        return false;
    eddy_fusion_step *step = &f->fusion.steps[f->count];
    uint64_t depends = 0;
    step->kernel = kernel_name(call);
    step->compute = is_copy(call) ? 0 : call->compute;
    for (uint32_t k = call->operands_at; k < result; k++)
        if (!read(f, k, step, &depends))
            return false;
    if (!write(f, result, step, depends) || !add_attributes(f, call, step))
        return false;
    f->count++;
    return true;
}

/* ---- are the members so far a fusion? ---- */

/* Whether it is there after the fusion. */
static bool is_output(const finding *f, const named *value) {
    return value->writes > 0 && (f->is_kept[value->value] || value->uses < f->uses[value->value]);
}

/* The values that the instruction reads, or writes in part: an error in one of them, and it does not run. */
static uint64_t find_sources(const finding *f) {
    uint64_t sources = 0;
    for (uint32_t i = 0; i < f->value_count; i++) {
        const named *value = &f->values[i];
        if (value->is_loaded || (is_output(f, value) && !value->is_covered))
            sources |= UINT64_C(1) << i;
    }
    return sources;
}

static bool holds(const finding *f) {
    uint64_t sources = find_sources(f);
    uint32_t outputs = 0;
    bool may_be_covered = false;
    for (uint32_t i = 0; i < f->value_count; i++) {
        const named *value = &f->values[i];
        if (!is_output(f, value))
            continue;
        if (value->is_uneven || value->depends != sources)
            return false;
        may_be_covered |= value->may_be_covered;
        outputs++;
    }
    return f->count >= 2 && outputs > 0 && (outputs == 1 || !may_be_covered) &&
           f->load_count + outputs <= EDDY_FUSION_OPERANDS;
}

static eddy_device device_at(const finding *f, uint32_t place) {
    return eddy_code_instruction_device(
        f->code, eddy_code_instruction_at(f->code, instruction_at(f, place)));
}

/* Whether a call of a device with kernels of its own is there. */
static bool has_call(const finding *f, uint32_t place) {
    if (!f->is_by_step)
        return instruction_at(f, place) != EDDY_CODE_NONE;
    const eddy_step *step = &f->executable->steps[place];
    return (eddy_step_is_constant(step) || eddy_step_is_patched(step)) &&
           eddy_cut_has_own_kernels(device_at(f, place));
}

/* Whether one kernel may have the calls of both places. */
static bool is_beside(const finding *f, uint32_t place, uint32_t other) {
    eddy_device a = device_at(f, place), b = device_at(f, other);
    const eddy_step_rows *rows = &f->executable->step_rows;
    return a.kind == b.kind && a.index == b.index &&
           (!f->is_by_step ||
            eddy_step_rows_around(rows, place) == eddy_step_rows_around(rows, other));
}

static uint32_t place_count(const finding *f) {
    return f->is_by_step ? f->executable->step_count : f->executable->partitions.count;
}

/* The members from a place on that are one; less than 2: there is none. */
static uint32_t find_length(finding *f, uint32_t first) {
    uint32_t length = 0;
    f->first = first;
    f->count = f->value_count = f->load_count = 0;
    f->fusion = (eddy_fusion){0};
    f->shape = (eddy_shape){0};
    for (uint32_t p = first; p < place_count(f) && has_call(f, p) && is_beside(f, first, p); p++) {
        if (!add_member(f))
            break;
        if (holds(f))
            length = f->count;
    }
    return length;
}

/* ---- making one ---- */

static void add_view(const finding *f, eddy_fused_calls *calls, uint32_t operand, uint32_t member,
                     uint8_t access) {
    const eddy_code_operand *from = operand_at(f, operand);
    eddy_fused_view *view = &calls->views[calls->view_count++];
    const eddy_place *place = &f->executable->value_places[from->value];
    eddy_layout layout;
    *view = (eddy_fused_view){
        .place = {.base = place->base,
                  .offset =
                      place->offset + from->offset * eddy_dtype_size((eddy_dtype)from->dtype)},
        .user = f->first + member,
        .operand = operand,
        .access = access,
        .dtype = from->dtype};
    eddy_code_operand_layout(f->code, from, &layout);
    bool broadcasts = eddy_layout_broadcast(&layout, &f->shape, view->strides);
    EDDY_ASSERT(broadcasts);
}

static void add_views(finding *f, eddy_fused_calls *calls) {
    for (uint32_t i = 0; i < f->load_count; i++)
        add_view(f, calls, f->loads[i].operand, f->loads[i].member, EDDY_CODE_READS);
    for (uint32_t i = 0; i < f->value_count; i++) {
        const named *value = &f->values[i];
        if (!is_output(f, value))
            continue;
        if (f->fusion.output_count == 0)
            calls->blamed = value->last_step;
        f->fusion.outputs[f->fusion.output_count++] = value->last_step;
        add_view(f, calls, value->written_at, value->first_step,
                 operand_at(f, value->written_at)->access);
    }
}

/* As a call does: in the order in which a result is written. */
static void merge_dims(const finding *f, eddy_fused_calls *calls) {
    int64_t strides[EDDY_FUSION_OPERANDS][EDDY_RANK_MAX];
    int count = (int)calls->view_count;
    for (int k = 0; k < count; k++)
        memcpy(strides[k], calls->views[k].strides, sizeof(strides[k]));
    calls->rank = f->shape.rank;
    memcpy(calls->dims, f->shape.dims, sizeof(calls->dims));
    eddy_layout_sort(calls->rank, calls->dims, strides, count, count - 1);
    eddy_layout_collapse(&calls->rank, calls->dims, strides, count);
    for (int k = 0; k < count; k++)
        memcpy(calls->views[k].strides, strides[k], sizeof(strides[k]));
}

static void find_extents(eddy_fused_calls *calls) {
    for (uint32_t k = 0; k < calls->view_count; k++) {
        eddy_fused_view *view = &calls->views[k];
        int64_t bytes = eddy_dtype_size((eddy_dtype)view->dtype);
        view->high = bytes;
        for (int32_t d = 0; d < calls->rank; d++) {
            int64_t to_last = (calls->dims[d] - 1) * view->strides[d] * bytes;
            *(to_last < 0 ? &view->low : &view->high) += to_last;
        }
    }
}

static void add_words(const finding *f, eddy_fused_calls *calls) {
    calls->word_count = f->fusion.word_count;
    for (uint32_t m = 0; m < f->count; m++) {
        const eddy_code_instruction *call = member_at(f, m);
        uint32_t instruction = instruction_at(f, f->first + m),
                 at = f->fusion.steps[m].attributes_at;
        memcpy(calls->words + at,
               eddy_packed_attributes(eddy_executable_call(f->executable, instruction)->packed),
               call->op->kernel_attribute_bytes);
        for (uint32_t k = 0; k < call->patch_count; k++) {
            const eddy_patch *patch = &f->executable->patches[call->patches_at + k];
            EDDY_ASSERT(calls->patch_count < EDDY_FUSION_WORDS);
            calls->patches[calls->patch_count++] = (eddy_patch){patch->from, at + patch->to};
        }
        if (!f->is_by_step)
            calls->cost_ps += f->executable->partitions.items[f->first + m].cost_ps;
        calls->last = instruction;
    }
}

/* Of members that were found again, so many. */
static bool make(finding *f, eddy_fused_calls *calls) {
    const eddy_runtime *runtime = f->program->runtime;
    *calls = (eddy_fused_calls){.first = f->first, .count = f->count, .input_count = f->load_count};
    f->fusion.step_count = (uint8_t)f->count;
    f->fusion.input_count = (uint8_t)f->load_count;
    add_views(f, calls);
    merge_dims(f, calls);
    find_extents(calls);
    add_words(f, calls);
    calls->kernel = eddy_made_kernel_create(&f->fusion, device_at(f, f->first), runtime->cache_dir,
                                            runtime->uses_one_thread);
    return calls->kernel != NULL;
}

/* With `length` members again: what was looked at behind them is forgotten. */
static void find_again(finding *f, uint32_t length) {
    f->count = f->value_count = f->load_count = 0;
    f->fusion = (eddy_fusion){0};
    while (f->count < length) {
        bool is_member = add_member(f);
        EDDY_ASSERT(is_member);
    }
    EDDY_ASSERT(holds(f));
}

static bool add_fusion(finding *f, eddy_fusions *fusions, uint32_t length) {
    if (fusions->count == fusions->room) {
        uint32_t room = fusions->room * 2 + 4;
        eddy_fused_calls *grown = eddy_memory_grow(fusions->items, fusions->room * sizeof(*grown),
                                                   room * sizeof(*grown), EDDY_MEMORY_PROGRAM);
        if (!grown)
            return false;
        fusions->items = grown;
        fusions->room = room;
    }
    find_again(f, length);
    if (!make(f, &fusions->items[fusions->count]))
        return false;
    fusions->count++;
    return true;
}

/* ---- all of it ---- */

/* Externals, outputs, and what calls behind a run read. */
static void find_kept(const eddy_program *program, bool *is_kept) {
    const eddy_code *code = &program->code;
    for (uint32_t v = 0; v < code->values.count; v++)
        is_kept[v] = eddy_code_value_at(code, v)->kind != EDDY_VALUE_MADE;
    for (uint32_t i = 0; i < program->bindings.count; i++)
        is_kept[eddy_program_binding_at(program, i)->value] = true;
    for (uint32_t i = code->instructions.count; i < eddy_code_call_count(code); i++) {
        const eddy_code_instruction *call = eddy_code_call_at(code, i);
        for (uint32_t k = 0; k < call->operand_count; k++)
            if (!eddy_code_operand_is_absent(eddy_code_operand_at(code, call->operands_at + k)))
                is_kept[eddy_code_operand_at(code, call->operands_at + k)->value] = true;
    }
}

static bool find_all(finding *f, eddy_fusions *fusions) {
    for (uint32_t p = 0; p < place_count(f);) {
        uint32_t length = has_call(f, p) ? find_length(f, p) : 0;
        if (length >= 2 && !add_fusion(f, fusions, length))
            return false;
        p += length >= 2 ? length : 1;
    }
    return true;
}

bool eddy_fusions_make(eddy_program *program) {
    eddy_executable *executable = &program->built->executable;
    const eddy_code *code = &program->code;
    uint32_t values = code->values.count;
    if (!program->has_devices || !eddy_cut_has_calls(code) ||
        !(program->passes & 1u << EDDY_PASS_NUMBER_fuse))
        return true;
    size_t bytes = values * (sizeof(uint32_t) + sizeof(bool));
    uint32_t *uses = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    finding *f = eddy_memory_acquire(sizeof(*f), EDDY_MEMORY_PROGRAM);
    bool has_memory = uses && f;
    if (has_memory) {
        bool *is_kept = (bool *)(uses + values);
        eddy_group_count_uses(code, uses);
        find_kept(program, is_kept);
        *f = (finding){.program = program,
                       .code = code,
                       .executable = executable,
                       .is_kept = is_kept,
                       .uses = uses,
                       .is_by_step = !eddy_cut_is_by_call(code)};
        has_memory = find_all(f, &executable->fusions);
    }
    eddy_memory_release(f, sizeof(*f), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(uses, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

uint32_t eddy_fusions_from(const eddy_fusions *fusions, uint32_t place) {
    uint32_t low = 0, high = fusions->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fusions->items[middle].first < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- running one ---- */

void eddy_fused_calls_fill(const eddy_fused_calls *calls, const int64_t *words, int64_t *to) {
    memcpy(to, calls->words, calls->word_count * sizeof(*to));
    for (uint32_t k = 0; k < calls->patch_count; k++)
        to[calls->patches[k].to] = words[calls->patches[k].from];
}

void eddy_fused_calls_run(const eddy_fused_calls *calls, char *const *data,
                          const int64_t *attributes, eddy_kernel_call *call) {
    eddy_op_view views[EDDY_FUSION_OPERANDS];
    for (uint32_t k = 0; k < calls->view_count; k++)
        views[k] = (eddy_op_view){.data = data[k],
                                  .dtype = (eddy_dtype)calls->views[k].dtype,
                                  .rank = calls->rank,
                                  .shape = calls->dims,
                                  .strides = calls->views[k].strides};
    call->kernel = eddy_made_kernel_ready(calls->kernel);
    call->views = views;
    call->view_count = (int32_t)calls->view_count;
    call->attributes = attributes;
    call->kernel->run(call);
}

/* ---- life ---- */

void eddy_fusions_fini(eddy_fusions *fusions) {
    for (uint32_t i = 0; i < fusions->count; i++)
        eddy_made_kernel_release(fusions->items[i].kernel);
    eddy_memory_release(fusions->items, fusions->room * sizeof(*fusions->items),
                        EDDY_MEMORY_PROGRAM);
    *fusions = (eddy_fusions){0};
}

void eddy_fusions_await(const eddy_fusions *fusions) {
    for (uint32_t i = 0; i < fusions->count; i++)
        eddy_made_kernel_await(fusions->items[i].kernel);
}

int64_t eddy_fusions_bytes(const eddy_fusions *fusions) {
    return (int64_t)(fusions->room * sizeof(*fusions->items));
}
