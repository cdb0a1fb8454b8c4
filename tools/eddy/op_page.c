#include "op_list.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 4

static bool is_true(const json_t *object, const char *field) {
    return json_is_true(json_object_get(object, field));
}

static void put(const char *text) {
    (void)tool_put_plain(stdout, text, strlen(text));
}

/* ---- values ---- */

/* A number, truth value or text, in the words of C. */
static void format_value(const json_t *value, char *buffer, size_t size) {
    if (json_is_string(value))
        snprintf(buffer, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buffer, size, "%.12g", json_real_value(value));
    else
        snprintf(buffer, size, "%s",
                 json_is_true(value)    ? "true"
                 : json_is_false(value) ? "false"
                                        : "none");
}

static void put_values(const json_t *array, const char *between) {
    const json_t *value;
    size_t i;
    char text[256];
    json_array_foreach(array, i, value) {
        format_value(value, text, sizeof(text));
        put(i ? between : "");
        put(text);
    }
}

/* ---- the call ---- */

/* "conv2d(x, weight, [bias], stride = 0) -> output" */
static void put_call(const json_t *op) {
    const json_t *item, *outputs = json_object_get(op, "outputs");
    const char *comma = "";
    size_t i;
    char text[256];
    put(op_text(op, "name"));
    printf("(");
    json_array_foreach(json_object_get(op, "operands"), i, item) {
        const char *kind = op_text(item, "kind");
        bool is_optional = strcmp(kind, "optional") == 0;
        printf("%s%s%s", comma, strcmp(op_text(item, "access"), "mut") == 0 ? "mut " : "",
               is_optional ? "[" : "");
        put(op_text(item, "name"));
        printf("%s%s", is_optional ? "]" : "", strcmp(kind, "list") == 0 ? "..." : "");
        comma = ", ";
    }
    json_array_foreach(json_object_get(op, "attributes"), i, item) {
        const json_t *value = json_object_get(item, "default");
        put(comma);
        put(op_text(item, "name"));
        if (value) {
            format_value(value, text, sizeof(text));
            printf(" = ");
            put(text);
        }
        comma = ", ";
    }
    printf(")");
    if (json_array_size(outputs) > 0) {
        printf(" -> ");
        put_values(outputs, ", ");
    }
    putchar('\n');
}

/* ---- parts ---- */

static void put_heading(const char *text) {
    putchar('\n');
    tool_heading(text);
}

/* "name: text", in lines that are indented further. */
static void put_entry(const char *name, const char *text) {
    printf("%*s", INDENT, "");
    int at = INDENT + tool_put_plain(stdout, name, strlen(name)) + 1;
    putchar(':');
    if (at > 2 * INDENT) {
        tool_wrap(text, 2 * INDENT, at);
    } else {
        putchar(' ');
        tool_wrap(text, at + 1, at + 1);
    }
}

static void put_operands(const json_t *op) {
    const json_t *item;
    size_t i;
    if (json_array_size(json_object_get(op, "operands")) == 0)
        return;
    put_heading("Operands");
    json_array_foreach(json_object_get(op, "operands"), i, item) {
        printf("%*s", INDENT, "");
        put(op_text(item, "name"));
        printf(": ");
        put(op_text(item, "kind"));
        printf("%s%s\n", strcmp(op_text(item, "access"), "mut") == 0 ? ", written" : "",
               is_true(item, "shape_only") ? ", its shape and dtype alone" : "");
    }
}

static void put_attributes(const json_t *op) {
    const json_t *item;
    size_t i;
    char text[256];
    if (json_array_size(json_object_get(op, "attributes")) == 0)
        return;
    put_heading("Attributes");
    json_array_foreach(json_object_get(op, "attributes"), i, item) {
        const json_t *value = json_object_get(item, "default");
        printf("%*s", INDENT, "");
        put(op_text(item, "name"));
        printf(": ");
        put(op_text(item, "type"));
        if (json_object_get(item, "choices")) {
            printf(" (");
            put_values(json_object_get(item, "choices"), ", ");
            printf(")");
        }
        format_value(value, text, sizeof(text));
        printf("%s%s", is_true(item, "required") ? ", required" : "", value ? ", default " : "");
        put(value ? text : "");
        printf("\n%*s", 2 * INDENT, "");
        tool_wrap(op_text(item, "doc"), 2 * INDENT, 2 * INDENT);
    }
}

static void put_dtypes(const json_t *op) {
    const json_t *dtypes = json_object_get(op, "dtypes");
    static const struct {
        const char *field, *text;
    } properties[] = {{"elementwise", "elementwise"},
                      {"late_shape", "the result's shape depends on data"},
                      {"random", "draws random numbers"}};
    if (!dtypes)
        return;
    put_heading("Dtypes");
    printf("%*s", INDENT, "");
    put_values(dtypes, ", ");
    printf("\n%*spromotion: ", INDENT, "");
    put(op_text(op, "promotion"));
    printf("; result: ");
    put(op_text(op, "result"));
    for (size_t p = 0; p < sizeof(properties) / sizeof(*properties); p++)
        if (is_true(op, properties[p].field))
            printf("; %s", properties[p].text);
    putchar('\n');
}

static void put_gradient(json_t *op) {
    const char *operand;
    json_t *value, *gradient = json_object_get(op, "gradient");
    if (!gradient)
        return;
    put_heading("Gradient");
    if (json_object_size(gradient) == 0)
        printf("%*snone\n", INDENT, "");
    json_object_foreach(gradient, operand, value) {
        char text[512];
        format_value(value, text, sizeof(text));
        put_entry(operand, text);
    }
}

static void put_accuracy(const json_t *op) {
    const json_t *ulp = json_object_get(op, "ulp"), *ulp_f64 = json_object_get(op, "ulp_f64");
    char of_f32[64], of_f64[64], text[1024];
    if (!ulp)
        return;
    format_value(ulp, of_f32, sizeof(of_f32));
    format_value(ulp_f64, of_f64, sizeof(of_f64));
    bool is_other = ulp_f64 && strcmp(of_f32, of_f64) != 0;
    snprintf(text, sizeof(text), "within %s ulp%s%s%s of %s", of_f32, is_other ? " (" : "",
             is_other ? of_f64 : "", is_other ? " for f64)" : "", op_text(op, "ulp_of"));
    put_heading("Accuracy");
    printf("%*s", INDENT, "");
    tool_wrap(text, INDENT, INDENT);
}

static void put_errors(const json_t *op) {
    const json_t *item;
    size_t i;
    if (json_array_size(json_object_get(op, "errors")) == 0)
        return;
    put_heading("Errors");
    json_array_foreach(json_object_get(op, "errors"), i, item) {
        char text[1024];
        snprintf(text, sizeof(text), "%s%s", is_true(item, "late") ? "late, " : "",
                 op_text(item, "when"));
        put_entry(op_text(item, "status"), text);
    }
}

static void put_functions(const json_t *op) {
    const json_t *item;
    size_t i;
    if (json_array_size(json_object_get(op, "functions")) == 0)
        return;
    put_heading("Functions");
    json_array_foreach(json_object_get(op, "functions"), i, item) {
        put_entry(op_text(item, "name"), op_text(item, "returns"));
    }
}

void op_page_print(const json_t *op) {
    tool_heading(op_text(op, "name"));
    put_call(op);
    printf("\n");
    tool_wrap(op_text(op, "summary"), 0, 0);
    printf("Family: ");
    put(op_family(op));
    printf("\n");
    if (json_object_get(op, "expressions")) {
        printf("Computes: ");
        put_values(json_object_get(op, "expressions"), "; ");
        printf("\n");
    }
    put_operands(op);
    put_attributes(op);
    put_dtypes(op);
    put_gradient((json_t *)op);
    put_accuracy(op);
    put_errors(op);
    put_functions(op);
    printf("\nAll of it: man eddy_");
    put(op_text(op, "name"));
    printf("\n");
}
