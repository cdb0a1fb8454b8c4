/* The generated table says what the interpreter relies on. */
#include <criterion/criterion.h>
#include <functional/loops_list.h>
#include <functional/op_table.h>
#include <string.h>

#define EACH(op)                                                                                   \
    for (uint32_t n_ = 0; n_ < eddy_op_table_count; n_++)                                          \
        for (const eddy_op *op = eddy_op_table[n_]; op; op = NULL)

Test(op_table, ids_are_places_and_names_find_their_op) {
    EACH(op) {
        cr_assert_eq(op->id, n_);
        cr_assert_eq(eddy_op_find(op->name), op, "%s", op->name);
        cr_assert_eq(eddy_op_find_built_in(op->name), op, "%s", op->name);
        cr_assert(!strchr(op->name, '.'), "%s: dots are for registered ops", op->name);
        cr_assert(op->summary && op->summary[0], "%s", op->name);
    }
    cr_assert_null(eddy_op_find(""));
    cr_assert_null(eddy_op_find("zzz"));
    cr_assert_null(eddy_op_find("ad"));
}

/* Of each loop; gradients in one loop are those whose ids are beyond the table's. */
static const eddy_op *const looped[] = {
#define OP_OF(group, loop, op, dtype, ulp) &eddy_op_##op,
    EDDY_LOOPS_LIST(OP_OF)};

Test(op_table, gradients_in_one_loop_have_ids_and_no_names) {
    uint32_t last = eddy_op_table_count - 1;
    for (size_t i = 0; i < sizeof(looped) / sizeof(looped[0]); i++) {
        if (looped[i]->id < eddy_op_table_count)
            continue;
        cr_assert_lt(looped[i]->id, eddy_op_id_count, "%s", looped[i]->name);
        cr_assert_null(eddy_op_find(looped[i]->name), "%s", looped[i]->name);
        cr_assert_eq(eddy_op_find_built_in(looped[i]->name), looped[i], "%s", looped[i]->name);
        cr_assert_null(looped[i]->gradient, "%s", looped[i]->name);
        last = looped[i]->id > last ? looped[i]->id : last;
    }
    cr_assert_eq(last, eddy_op_id_count - 1);
    cr_assert_gt(eddy_op_id_count, eddy_op_table_count);
}

Test(op_table, names_are_sorted) {
    for (uint32_t i = 1; i < eddy_op_table_count; i++)
        cr_assert_lt(strcmp(eddy_op_by_name[i - 1]->name, eddy_op_by_name[i]->name), 0);
}

Test(op_table, elementwise_ops_have_a_loop_for_each_of_their_dtypes) {
    EACH(op) {
        if (!op->is_elementwise)
            continue;
        int found = 0;
        for (int d = 0; d < EDDY_DTYPE_COUNT; d++) {
            const eddy_kernel *kernel = op->kernels[d];
            if (!kernel)
                continue;
            found++;
            cr_assert(kernel->run && kernel->cost_base_ps > 0, "%s", op->name);
            cr_assert(eddy_kernel_loop(kernel) || op->output_count == 0, "%s", op->name);
        }
        cr_assert_gt(found, 0, "%s", op->name);
        cr_assert(op->promotion != EDDY_PROMOTE_FLOAT || !op->kernels[EDDY_I32], "%s", op->name);
    }
}

Test(op_table, other_ops_have_a_rule_and_a_kernel) {
    EACH(op) {
        if (op->is_elementwise)
            continue;
        cr_assert(op->infer && op->kernels && op->kernels[0] && op->kernels[0]->run, "%s",
                  op->name);
        cr_assert(op->promotion == EDDY_PROMOTE_NONE && op->result == EDDY_RESULT_RULE, "%s",
                  op->name);
        cr_assert_eq(op->has_late_shape, op->kernels[0]->count != NULL, "%s", op->name);
    }
}

Test(op_table, attributes_lie_in_their_struct) {
    static const size_t sizes[] = {sizeof(int64_t),    sizeof(double),
                                   sizeof(bool),       sizeof(eddy_scalar),
                                   sizeof(eddy_dtype), sizeof(eddy_shape),
                                   sizeof(uint32_t),   sizeof(int32_t),
                                   sizeof(int32_t),    [EDDY_ATTRIBUTE_PAIR] = sizeof(eddy_pair)};
    EACH(op) {
        cr_assert_leq(op->kernel_attribute_bytes, op->attribute_bytes, "%s", op->name);
        for (int32_t i = 0; i < op->attribute_count; i++) {
            const eddy_op_attribute *attribute = &op->attributes[i];
            size_t end = attribute->offset + sizes[attribute->type];
            cr_assert_leq(end, op->attribute_bytes, "%s.%s", op->name, attribute->name);
            for (int32_t j = 0; j < i; j++) {
                const eddy_op_attribute *other = &op->attributes[j];
                cr_assert(end <= other->offset ||
                              other->offset + sizes[other->type] <= attribute->offset,
                          "%s: %s and %s overlap", op->name, attribute->name, other->name);
            }
            cr_assert_eq(attribute->choices != NULL, attribute->type == EDDY_ATTRIBUTE_CHOICE, "%s",
                         op->name);
        }
        if (op->is_random)
            cr_assert_geq(op->kernel_attribute_bytes, 16, "%s: no room for seed and counter",
                          op->name);
    }
}

Test(op_table, scalars_that_promote_stand_first) {
    EACH(op) {
        cr_assert(op->scalar_count == 0 || op->is_elementwise, "%s", op->name);
        cr_assert_leq(op->scalar_count, op->attribute_count, "%s", op->name);
        for (int32_t i = 0; i < op->scalar_count; i++)
            cr_assert_eq(op->attributes[i].type, EDDY_ATTRIBUTE_SCALAR, "%s", op->name);
        bool is_scalar_form =
            strlen(op->name) > 2 && strcmp(op->name + strlen(op->name) - 2, "_s") == 0;
        cr_assert(!is_scalar_form || op->scalar_count == 1, "%s", op->name);
    }
}

Test(op_table, something_is_written) {
    EACH(op) {
        bool has_mut = false;
        for (int32_t i = 0; i < op->operand_count; i++)
            has_mut = has_mut || op->operands[i].is_mut;
        cr_assert(has_mut || op->output_count > 0, "%s", op->name);
    }
}
