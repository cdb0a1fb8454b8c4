#include <base/shape.h>
#include <program/gradient.h>
#include <program/late_read.h>
#include <stdio.h>
#include <string.h>

static bool has_same_generators(const eddy_program *a, const eddy_program *b) {
    return a->generators.count == b->generators.count &&
           (a->generators.count == 0 ||
            memcmp(a->generators.items, b->generators.items,
                   a->generators.count * sizeof(eddy_generator *)) == 0);
}

static bool has_same_externals(const eddy_program *a, const eddy_program *b) {
    if (a->externals.count != b->externals.count)
        return false;
    for (uint32_t e = 0; e < a->externals.count; e++) {
        const eddy_program_external *x = eddy_program_external_at(a, e),
                                    *y = eddy_program_external_at(b, e);
        if (x->value != y->value || x->input != y->input || x->tensor != y->tensor)
            return false;
    }
    return true;
}

static bool has_same_bindings(const eddy_program *a, const eddy_program *b) {
    if (a->bindings.count != b->bindings.count)
        return false;
    for (uint32_t i = 0; i < a->bindings.count; i++) {
        const eddy_program_binding *x = eddy_program_binding_at(a, i),
                                   *y = eddy_program_binding_at(b, i);
        if (x->role != y->role || x->is_donated != y->is_donated || x->value != y->value ||
            x->dtype != y->dtype || !eddy_layout_is_equal(&x->layout, &y->layout))
            return false;
    }
    return true;
}

static bool has_same_kept(const eddy_program *a, const eddy_program *b) {
    if (a->kept.count != b->kept.count || !eddy_kept_before_is_equal(&a->befores, &b->befores))
        return false;
    for (uint32_t i = 0; i < a->kept.count; i++) {
        const eddy_program_kept *x = (const eddy_program_kept *)a->kept.items + i,
                                *y = (const eddy_program_kept *)b->kept.items + i;
        if (x->node != y->node || x->output != y->output || x->binding != y->binding)
            return false;
    }
    return true;
}

bool eddy_program_has_same_tensors(const eddy_program *a, const eddy_program *b) {
    return has_same_generators(a, b) && has_same_externals(a, b) && has_same_kept(a, b);
}

/* Whether it is a read for a callback that differs, by its callback or context. */
static bool calls_another(const eddy_code *a, const eddy_code *b, uint32_t at) {
    if (at >= a->instructions.count || at >= b->instructions.count)
        return false;
    const eddy_code_instruction *x = eddy_code_instruction_at(a, at),
                                *y = eddy_code_instruction_at(b, at);
    return eddy_late_read_is(x->op) && x->op == y->op &&
           memcmp(eddy_code_words(a, x->attributes_at), eddy_code_words(b, y->attributes_at),
                  x->op->attribute_bytes) != 0;
}

static void describe_difference(const eddy_code *a, const eddy_code *b, uint32_t at, char *reason,
                                size_t size) {
    snprintf(reason, size, "two recordings differ at instruction %u (%s)%s", at,
             at < b->instructions.count ? eddy_code_instruction_at(b, at)->op->name : "its end",
             calls_another(a, b, at) ? ": it has another callback or context" : "");
}

void eddy_program_compare(const eddy_program *a, const eddy_program *b, char *reason, size_t size) {
    uint32_t at;
    reason[0] = 0;
    if (!eddy_code_is_equal(&a->code, &b->code, &at))
        describe_difference(&a->code, &b->code, at, reason, size);
    else if (!has_same_generators(a, b))
        snprintf(reason, size, "two recordings draw from different generators");
    else if (!has_same_externals(a, b) || !has_same_kept(a, b))
        snprintf(reason, size,
                 "two recordings use different tensors of the function's own: a tensor that is "
                 "made anew in each call, or a gradient that the tape keeps from call to call "
                 "(eddy_backward_to keeps none)");
    else if (!has_same_bindings(a, b))
        snprintf(reason, size, "two recordings give different tensors as their outputs");
    else if (!eddy_program_gradient_is_equal(a->gradient, b->gradient))
        snprintf(reason, size, "gradients go back through two recordings in different ways");
}
