#include "gradient_cases.h"
#include "described.h"
#include "gradient_chains.h"
#include "random.h"

#include <base/dtype.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

const gradient_case gradient_cases[] = {
#define GRADIENT(op, operands, attributes) {#op, operands, attributes, NULL},
#include <functional/op_gradients.h>
#define CHAIN(name, operands, result) {#name, operands, "", chain_##name},
    CHAINS(CHAIN)};
const size_t gradient_case_count = sizeof(gradient_cases) / sizeof(gradient_cases[0]);

int64_t gradient_element_count(const eddy_shape *shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape->rank; d++)
        count *= shape->dims[d];
    return count;
}

/* Numbers that differ by more than any step, so that no maximum and no kink is near two of them. */
static void fill(double *values, int64_t count, double least, double most) {
    for (int64_t i = 0; i < count; i++)
        values[i] =
            least + (most - least) *
                        ((double)((i * 37 + 11) % 97) + 0.3 + 0.1 * (double)random_below(4)) / 98;
}

static void add_variable(gradient_problem *p, const char *word, double least, double most) {
    const char *end;
    cr_assert_lt(p->count, GRADIENT_VARIABLE_MAX);
    eddy_shape *shape = &p->shapes[p->count];
    double *values = p->values[p->count++];
    *shape = described_shape(word, &end);
    cr_assert_leq(gradient_element_count(shape), GRADIENT_ELEMENT_MAX, "%s", word);
    if (*end == '=')
        described_values(end + 1, values, gradient_element_count(shape));
    else
        fill(values, gradient_element_count(shape), least, most);
}

void gradient_problem_make(gradient_problem *p, const gradient_case *c) {
    *p = (gradient_problem){.which = c};
    double least = -2, most = 2;
    char word[DESCRIBED_WORD_MAX];
    for (const char *text = c->operands; described_word(&text, word);) {
        const char *dots = strstr(word, "..");
        if (dots) {
            least = atof(word);
            most = atof(dots + 2);
        } else if (*word == '[') {
            add_variable(p, word, least, most);
        }
    }
    for (int i = 0; i < GRADIENT_OUTPUT_MAX; i++)
        p->weights[i] = 0.25 + (double)random_below(1000) / 1000;
}

static void add_operands(described *call, const char *text, eddy_tensor *const *x) {
    char word[DESCRIBED_WORD_MAX];
    for (int next = 0; described_word(&text, word);) {
        if (strstr(word, ".."))
            continue;
        cr_assert_lt(call->operand_count, DESCRIBED_MAX);
        call->operands[call->operand_count++] = *word == '['   ? x[next++]
                                                : *word == '#' ? x[atoi(word + 1)]
                                                               : described_tensor(word);
    }
}

static eddy_tensor *joined(eddy_tensor *const *outputs, int32_t count) {
    eddy_tensor *result = NULL;
    for (int32_t i = 0; i < count; i++)
        if (eddy_dtype_is_float(eddy_dtype_of(outputs[i])))
            result = !result ? outputs[i]
                             : eddy_cat(EDDY_LIST(eddy_flatten(result, 0, -1),
                                                  eddy_flatten(outputs[i], 0, -1)),
                                        0);
    return result;
}

eddy_tensor *gradient_case_output(const gradient_case *c, eddy_tensor *const *x) {
    if (c->run)
        return c->run(x);
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX] = {0};
    described call;
    described_read(&call, described_op(c->name), "", c->attributes);
    add_operands(&call, c->operands, x);
    cr_assert_eq(eddy_seed(5), EDDY_OK);
    return described_call(&call, "", outputs) == EDDY_OK ? joined(outputs, call.op->output_count)
                                                         : NULL;
}
