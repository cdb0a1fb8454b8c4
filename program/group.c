#include <program/group.h>
#include <program/superinstruction.h>

#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <program/cut.h>
#include <program/join.h>
#include <string.h>

static bool can_be_member(const eddy_code *code, const eddy_code_instruction *instruction) {
    uint32_t count = instruction->operand_count;
    const eddy_kernel *kernel = instruction->kernel;
    if (!instruction->op->is_elementwise || instruction->op->may_fail || count < 2 ||
        count > EDDY_PLANE_OPERANDS || kernel->run != eddy_kernel_run_elementwise ||
        kernel->prepare)
        return false;
    const eddy_code_operand *operands = eddy_code_operand_at(code, instruction->operands_at);
    for (uint32_t k = 0; k < count; k++)
        if (eddy_code_operand_is_absent(&operands[k]) ||
            ((operands[k].access & EDDY_CODE_WRITES) != 0) != (k == count - 1))
            return false;
    return true;
}

/* ---- reductions of rows ---- */

/* Dims that are one, with the distance of its elements: `count` elements so far, inner ones first. */
typedef struct merged {
    int64_t count, stride;
} merged;

static bool merge_dim(merged *dims, int64_t dim, int64_t stride) {
    if (dim == 1)
        return true;
    if (dims->count == 1)
        dims->stride = stride;
    else if (stride != dims->count * dims->stride)
        return false;
    dims->count *= dim;
    return true;
}

/* Whether what is reduced to one element lies there contiguous, in order. */
static bool find_rows(const eddy_layout *layout, uint32_t axes, merged *rows, merged *columns) {
    *rows = *columns = (merged){1, 1};
    for (int32_t d = layout->rank - 1; d >= 0; d--)
        if (!merge_dim(axes >> d & 1 ? columns : rows, layout->dims[d], layout->strides[d]))
            return false;
    return columns->stride == 1;
}

static bool is_plane_of_rows(const eddy_code *code, const eddy_code_instruction *instruction,
                             eddy_plane *plane) {
    if (!instruction->kernel->rows || instruction->operand_count != 2)
        return false;
    const eddy_code_operand *in = eddy_code_operand_at(code, instruction->operands_at),
                            *out = in + 1;
    if (in->dtype != EDDY_F32 || out->dtype != EDDY_F32 || in->value == out->value)
        return false;
    const eddy_attributes_reduce *attributes =
        (const void *)eddy_code_words(code, instruction->attributes_at);
    eddy_layout layout;
    merged rows, columns, results = {1, 1};
    eddy_code_operand_layout(code, in, &layout);
    if (!find_rows(&layout, attributes->axes, &rows, &columns) || rows.count < 2 ||
        columns.count < EDDY_GROUP_LEAST_COLUMNS || columns.count > EDDY_KERNEL_ROW_ELEMENTS)
        return false;
    eddy_code_operand_layout(code, out, &layout);
    for (int32_t d = layout.rank - 1; d >= 0; d--)
        if (!merge_dim(&results, layout.dims[d], layout.strides[d]))
            return false;
    *plane = (eddy_plane){.rows = rows.count,
                          .columns = columns.count,
                          .is_reduced = true,
                          .strides = {{rows.stride, 1}, {results.stride, 0}}};
    return true;
}

/* ---- planes ---- */

/* Of its device: that is launched alone. Code that comes from a text names the host's. */
static bool has_own_kernel(const eddy_code *code, const eddy_code_instruction *instruction) {
    return instruction->operand_count > 0 &&
           eddy_cut_has_own_kernels(eddy_code_instruction_device(code, instruction));
}

bool eddy_plane_make(const eddy_code *code, const eddy_code_instruction *instruction,
                     eddy_plane *plane) {
    if (has_own_kernel(code, instruction))
        return false;
    if (is_plane_of_rows(code, instruction, plane))
        return true;
    if (!can_be_member(code, instruction))
        return false;
    eddy_joint joint;
    eddy_join_make(code, instruction, &joint);
    int32_t rank = joint.shape.rank;
    if (rank > 2)
        return false;
    *plane = (eddy_plane){.rows = rank == 2 ? joint.shape.dims[0] : 1,
                          .columns = rank > 0 ? joint.shape.dims[rank - 1] : 1,
                          .is_flat = rank < 2};
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        plane->strides[k][0] = rank == 2 ? joint.strides[k][0] : 0;
        plane->strides[k][1] = rank > 0 ? joint.strides[k][rank - 1] : 1;
    }
    return true;
}

void eddy_plane_shape(eddy_plane *plane, int64_t rows, int64_t columns) {
    EDDY_ASSERT(plane->is_flat && (plane->columns == rows * columns || plane->columns == rows));
    plane->is_of_rows = plane->columns == rows && columns > 1;
    plane->rows = rows;
    plane->columns = columns;
    for (uint32_t k = 0; k < EDDY_PLANE_OPERANDS; k++) {
        int64_t stride = plane->strides[k][1];
        plane->strides[k][0] = plane->is_of_rows ? stride : columns * stride;
        plane->strides[k][1] = plane->is_of_rows ? 0 : stride;
    }
}

bool eddy_group_orders(const eddy_code *code, const eddy_code_instruction *a,
                       const eddy_code_instruction *b) {
    for (uint32_t i = 0; i < a->operand_count; i++)
        for (uint32_t k = 0; k < b->operand_count; k++) {
            const eddy_code_operand *x = eddy_code_operand_at(code, a->operands_at + i),
                                    *y = eddy_code_operand_at(code, b->operands_at + k);
            if (x->value == y->value && (x->access | y->access) & EDDY_CODE_WRITES)
                return true;
        }
    return false;
}

/* Whether the operands show the same elements in the same places of the plane. */
static bool shows_same(const eddy_code_operand *x, const int64_t *strides,
                       const eddy_code_operand *y, const int64_t *others) {
    return x->offset == y->offset && x->dtype == y->dtype && strides[0] == others[0] &&
           strides[1] == others[1];
}

bool eddy_group_fits(const eddy_code *code, const eddy_code_instruction *a, const eddy_plane *x,
                     const eddy_code_instruction *b, const eddy_plane *y) {
    for (uint32_t i = 0; i < a->operand_count; i++)
        for (uint32_t k = 0; k < b->operand_count; k++) {
            const eddy_code_operand *one = eddy_code_operand_at(code, a->operands_at + i),
                                    *other = eddy_code_operand_at(code, b->operands_at + k);
            if (one->value == other->value && (one->access | other->access) & EDDY_CODE_WRITES &&
                !shows_same(one, x->strides[i], other, y->strides[k]))
                return false;
        }
    return true;
}

/* ---- slots ---- */

void eddy_group_count_uses(const eddy_code *code, uint32_t *uses) {
    memset(uses, 0, code->values.count * sizeof(*uses));
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(code, instruction->operands_at + k)->value;
            if (value != EDDY_CODE_NONE)
                uses[value]++;
        }
    }
}

/* Operands within the group that name the value, and the last member with one. */
static uint32_t uses_within(const eddy_code *code, const eddy_group_slots *group, uint32_t value,
                            uint32_t *last) {
    uint32_t found = 0;
    for (uint32_t m = 0; m < group->count; m++)
        for (uint32_t k = 0; k < group->members[m]->operand_count; k++)
            if (eddy_code_operand_at(code, group->members[m]->operands_at + k)->value == value) {
                found++;
                *last = m;
            }
    return found;
}

static void set_slots(const eddy_code *code, eddy_group_slots *group, uint32_t value, int8_t slot) {
    for (uint32_t m = 0; m < group->count; m++)
        for (uint32_t k = 0; k < group->members[m]->operand_count; k++)
            if (eddy_code_operand_at(code, group->members[m]->operands_at + k)->value == value)
                group->slots[m][k] = slot;
}

static int64_t elements_of(const eddy_code *code, const eddy_code_operand *operand) {
    return eddy_code_value_at(code, operand->value)->bytes /
           eddy_dtype_size((eddy_dtype)operand->dtype);
}

bool eddy_group_find_slots(const eddy_code *code, const uint32_t *bases, const uint32_t *uses,
                           eddy_group_slots *group) {
    /* 1 + the member after which the slot is free. */
    uint32_t busy_until[EDDY_GROUP_SLOTS + EDDY_GROUP_ROW_SLOTS] = {0};
    memset(group->slots, -1, sizeof(group->slots));
    for (uint32_t m = 0; m < group->count; m++) {
        const eddy_code_instruction *member = group->members[m];
        const eddy_code_operand *result =
            eddy_code_operand_at(code, member->operands_at + member->operand_count - 1);
        uint32_t last = m;
        if (!(result->access & EDDY_CODE_MAKES) || bases[result->value] != 0 ||
            uses_within(code, group, result->value, &last) != uses[result->value])
            continue;
        bool is_of_rows = elements_of(code, result) < group->elements;
        uint32_t slot = is_of_rows ? EDDY_GROUP_SLOTS : 0,
                 end = EDDY_GROUP_SLOTS + (is_of_rows ? EDDY_GROUP_ROW_SLOTS : 0);
        while (slot < end && busy_until[slot] > m)
            slot++;
        if (slot == end)
            return false;
        busy_until[slot] = last + 1;
        set_slots(code, group, result->value, (int8_t)slot);
    }
    return true;
}

/* ---- at other sizes ---- */

/* The plane of the group is that of a member with two dims, if there is one. */
static bool find_planes(const eddy_code *code, eddy_group_slots *group, eddy_plane *planes) {
    int64_t rows = 1, columns = 1;
    for (uint32_t m = 0; m < group->count; m++) {
        if (!eddy_plane_make(code, group->members[m], &planes[m]))
            return false;
        if (m > 0 && planes[m].is_flat)
            continue;
        rows = planes[m].rows;
        columns = planes[m].columns;
    }
    for (uint32_t m = 0; m < group->count; m++) {
        if (planes[m].is_flat && planes[m].columns != rows * columns && planes[m].columns != rows)
            return false;
        if (planes[m].is_flat)
            eddy_plane_shape(&planes[m], rows, columns);
        if (planes[m].rows != rows || planes[m].columns != columns)
            return false;
    }
    group->elements = rows * columns;
    return true;
}

bool eddy_group_holds(const eddy_code *code, const uint32_t *bases, const uint32_t *uses,
                      const eddy_code_group *group) {
    eddy_plane planes[EDDY_GROUP_MEMBERS];
    eddy_group_slots slots = {.count = group->count};
    for (uint32_t m = 0; m < group->count; m++)
        slots.members[m] = eddy_code_instruction_at(code, group->first + m);
    if (!find_planes(code, &slots, planes))
        return false;
    for (uint32_t m = 0; m < group->count; m++)
        for (uint32_t k = 0; k < m; k++)
            if (!eddy_group_fits(code, slots.members[k], &planes[k], slots.members[m], &planes[m]))
                return false;
    return eddy_group_find_slots(code, bases, uses, &slots) &&
           (!group->is_chain || eddy_superinstruction_is_all(code, uses, &slots));
}
