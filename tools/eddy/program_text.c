#include "program_text.h"

#include "memory.h"
#include <eddy/dtype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A line, as far as it is not read yet. */
typedef struct cursor {
    char *at, *end;
} cursor;

/* ---- lists ---- */

/* Room for one more item, zeroed. */
static void *append(text_list *list, size_t bytes) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        list->items = tool_realloc(list->items, room, bytes);
        list->room = room;
    }
    return memset((char *)list->items + list->count++ * bytes, 0, bytes);
}

const text_value *program_text_value(const program_text *program, uint32_t value) {
    return &((const text_value *)program->values.items)[value];
}

const text_operand *program_text_operand(const program_text *program, size_t i) {
    return &((const text_operand *)program->operands.items)[i];
}

const text_instruction *program_text_instruction(const program_text *program, size_t i) {
    return &((const text_instruction *)program->instructions.items)[i];
}

const text_output *program_text_output(const program_text *program, size_t i) {
    return &((const text_output *)program->outputs.items)[i];
}

bool text_piece_is(text_piece piece, const char *word) {
    return piece.length == strlen(word) && memcmp(piece.at, word, piece.length) == 0;
}

/* ---- words ---- */

static bool skip(cursor *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static text_piece piece_from(const char *at, const cursor *c) {
    return (text_piece){at, (size_t)(c->at - at)};
}

static bool read_number(cursor *c, int64_t *to) {
    char *end;
    if (c->at == c->end || *c->at < '0' || *c->at > '9')
        return false;
    errno = 0;
    *to = strtoll(c->at, &end, 10);
    c->at = end;
    return errno == 0 && end <= c->end;
}

/* A name as it is written, also one in quotes. */
static bool read_name(cursor *c, text_piece *to) {
    const char *begin = c->at;
    if (skip(c, "\"")) {
        while (c->at < c->end && *c->at != '"')
            c->at += *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
        if (!skip(c, "\""))
            return false;
    } else {
        while (c->at < c->end && (unsigned char)*c->at > ' ' && !strchr("\",()[]=", *c->at))
            c->at++;
    }
    *to = piece_from(begin, c);
    return to->length > 0;
}

/* "[2, 3]"; *count is the product, 0 where it is beyond 2^50. */
static bool read_dims(cursor *c, int64_t *count) {
    *count = 1;
    if (!skip(c, "["))
        return false;
    while (!skip(c, "]")) {
        int64_t dim;
        if (!read_number(c, &dim))
            return false;
        *count = dim > 0 && *count <= (INT64_C(1) << 50) / dim ? *count * dim : 0;
        (void)skip(c, ", ");
    }
    return true;
}

/* "f32[2, 3] strides [3, 1] at 4 on far:0"; the layout is the part before the device. */
static bool read_layout(cursor *c, text_piece *to, int64_t *bytes) {
    const char *begin = c->at;
    int64_t count, ignored;
    size_t size = 0;
    for (int d = 0; d < EDDY_DTYPE_COUNT && size == 0; d++)
        if (skip(c, eddy_dtype_name((eddy_dtype)d)))
            size = eddy_dtype_bytes((eddy_dtype)d);
    if (size == 0 || !read_dims(c, &count) || (skip(c, " strides ") && !read_dims(c, &ignored)) ||
        (skip(c, " at ") && !read_number(c, &ignored)))
        return false;
    *to = piece_from(begin, c);
    *bytes = count * (int64_t)size;
    if (skip(c, " on "))
        while (c->at < c->end && !strchr(" ,)", *c->at))
            c->at++;
    return true;
}

/* ---- values ---- */

/* The number of the value with that name. The table wants a final 0, which stands in the text meanwhile. */
static uint32_t value_of(program_text *p, text_piece name) {
    char *end = (char *)name.at + name.length, after = *end;
    *end = '\0';
    uint32_t number = text_table_number(&p->names, name.at);
    *end = after;
    while (p->values.count <= number)
        (void)append(&p->values, sizeof(text_value));
    return number;
}

static void set_value(program_text *p, text_piece name, text_role role, text_piece layout) {
    uint32_t value = value_of(p, name);
    if (value < p->values.count)
        ((text_value *)p->values.items)[value] = (text_value){role, layout};
}

/* ---- lines before the instructions ---- */

/* "input x f32[2]", and what else has a value. False: it is no such line, or cannot be read. */
static bool read_binding(program_text *p, cursor *c) {
    static const struct {
        const char *word;
        text_role role;
    } roles[] = {{"input ", TEXT_INPUT},
                 {"donated ", TEXT_DONATED},
                 {"state ", TEXT_STATE},
                 {"constant ", TEXT_CONSTANT}};
    text_piece name, layout;
    int64_t bytes;
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
        if (skip(c, roles[i].word)) {
            if (!read_name(c, &name) || !skip(c, " ") || !read_layout(c, &layout, &bytes))
                return false;
            set_value(p, name, roles[i].role, layout);
            return true;
        }
    if (skip(c, "captured ")) {
        const char *size;
        if (!read_name(c, &name) || !skip(c, " "))
            return false;
        size = c->at;
        if (!read_number(c, &bytes) || !skip(c, " bytes"))
            return false;
        set_value(p, name, TEXT_CAPTURED, piece_from(size, c));
        return true;
    }
    return false;
}

/* "output y f32[2] of %2", "gradient f32[2] of x". */
static bool read_output(program_text *p, cursor *c) {
    text_piece name = {"gradient", 8}, layout, value;
    int64_t bytes;
    bool is_gradient = skip(c, "gradient ");
    if (!is_gradient && (!skip(c, "output ") || !read_name(c, &name) || !skip(c, " ")))
        return false;
    if (!read_layout(c, &layout, &bytes) || !skip(c, " of ") || !read_name(c, &value))
        return false;
    uint32_t number = value_of(p, value);
    text_output *output = append(&p->outputs, sizeof(*output));
    *output = (text_output){name, layout, number};
    return true;
}

/* ---- instructions ---- */

static bool read_operand(program_text *p, cursor *c, bool is_result) {
    text_access access = skip(c, "mut ")                      ? TEXT_CHANGES
                         : skip(c, "set ") || skip(c, "put ") ? TEXT_SETS
                         : is_result                          ? TEXT_MAKES
                                                              : TEXT_READS;
    text_piece name, layout;
    int64_t bytes;
    if (!read_name(c, &name) || !skip(c, " ") || !read_layout(c, &layout, &bytes))
        return false;
    uint32_t value = value_of(p, name);
    if (access == TEXT_MAKES)
        set_value(p, name, TEXT_MADE, layout);
    text_operand *operand = append(&p->operands, sizeof(*operand));
    *operand = (text_operand){.value = value, .access = access, .layout = layout, .bytes = bytes};
    return true;
}

/* Whether "p = 0.5" comes: an attribute, and with it all that follow. */
static bool is_attribute(cursor c) {
    text_piece name;
    return read_name(&c, &name) && skip(&c, " = ");
}

/* "x f32[2], none, [a f32[2], b f32[2]], p = 0.5)" */
static bool read_arguments(program_text *p, cursor *c, text_piece *attributes) {
    bool is_first = true;
    while (!skip(c, ")")) {
        if (!is_first && !skip(c, ", "))
            return false;
        is_first = false;
        (void)skip(c, "[");
        if (is_attribute(*c)) {
            if (c->end[-1] != ')')
                return false;
            *attributes = (text_piece){c->at, (size_t)(c->end - c->at) - 1};
            c->at = c->end;
            return true;
        }
        bool is_nothing = skip(c, "none") || (c->at < c->end && *c->at == ']');
        if (!is_nothing && !read_operand(p, c, false))
            return false;
        (void)skip(c, "]");
    }
    return true;
}

/* "17: %1 f32[2], mut w f32[2] = op(...)", or an op alone. */
static bool read_instruction(program_text *p, cursor *c, uint32_t group) {
    cursor number = *c;
    int64_t ignored;
    text_piece op;
    if (read_number(&number, &ignored) && skip(&number, ": "))
        *c = number;
    cursor word = *c;
    bool has_results = read_name(&word, &op) && word.at < word.end && *word.at != '(';
    text_instruction *made = append(&p->instructions, sizeof(*made));
    made->group = group;
    made->operands_at = (uint32_t)p->operands.count;
    while (has_results && read_operand(p, c, true) && skip(c, ", "))
        continue;
    made->result_count = (uint32_t)p->operands.count - made->operands_at;
    if ((has_results && !skip(c, " = ")) || !read_name(c, &made->op) || !skip(c, "(") ||
        !read_arguments(p, c, &made->attributes))
        return false;
    made->operand_count = (uint32_t)p->operands.count - made->operands_at;
    return c->at == c->end;
}

/* ---- the plan ---- */

/* "arena + 64": one for each operand, those of results last. Where it says something else, nothing is known of the places. */
static void read_places(program_text *p, cursor *c, const text_instruction *of) {
    for (uint32_t k = 0; k < of->operand_count; k++) {
        uint32_t number = (k + of->result_count) % of->operand_count;
        text_operand *operand = &((text_operand *)p->operands.items)[of->operands_at + number];
        text_piece base;
        int64_t offset = 0;
        if ((k > 0 && !skip(c, ", ")) || !read_name(c, &base))
            return;
        bool is_tile = text_piece_is(base, "tile");
        if (!is_tile && (!skip(c, " + ") || !read_number(c, &offset)))
            return;
        (void)skip(c, " channels-last");
        operand->is_in_arena = text_piece_is(base, "arena") && !is_tile;
        operand->offset_bytes = offset;
    }
}

static void read_plan(program_text *p, cursor *c) {
    if (p->instructions.count == 0)
        return;
    text_instruction *last =
        &((text_instruction *)p->instructions.items)[p->instructions.count - 1];
    if (last->plan.length > 0)
        return; /* of a group, or of a partition, whose instructions come */
    last->plan = (text_piece){c->at, (size_t)(c->end - c->at)};
    while (c->at < c->end && !skip(c, "; "))
        c->at++;
    read_places(p, c, last);
}

/* "# arena 64 bytes by size, 64 alive at once; ..." */
static void read_memory(program_text *p, cursor *c) {
    int64_t arena, alive;
    text_piece how;
    if (skip(c, "arena ") && read_number(c, &arena) && skip(c, " bytes by ") &&
        read_name(c, &how) && skip(c, ", ") && read_number(c, &alive)) {
        p->arena_bytes = arena;
        p->alive_bytes = alive;
    }
}

/* ---- all lines ---- */

static bool read_line(program_text *p, cursor c, uint32_t *group, bool *is_group_begun) {
    if (skip(&c, "eddy program, ") || skip(&c, "draw ")) {
        return true;
    } else if (skip(&c, "fused {")) {
        *group = ++p->group_count;
        *is_group_begun = true;
    } else if (skip(&c, "}")) {
        *group = 0;
    } else if (skip(&c, "    # ")) {
        /* The first line of a group says of all of it how large its tiles are. */
        if (!*is_group_begun)
            read_plan(p, &c);
        *is_group_begun = false;
    } else if (skip(&c, "# ")) {
        read_memory(p, &c);
    } else if (!read_binding(p, &c) && !read_output(p, &c)) {
        *is_group_begun = false;
        return read_instruction(p, &c, *group);
    }
    return true;
}

bool program_text_read(program_text *program, char *text, size_t length) {
    uint32_t group = 0;
    bool is_group_begun = false;
    size_t line = 0;
    *program = (program_text){.alive_bytes = -1};
    for (char *end = text + length; text < end;) {
        char *feed = memchr(text, '\n', (size_t)(end - text));
        cursor c = {text, feed ? feed : end};
        line++;
        if (c.at < c.end && !read_line(program, c, &group, &is_group_begun)) {
            program->bad_line = line;
            return false;
        }
        text = c.end + 1;
    }
    return true;
}

void program_text_fini(program_text *program) {
    text_table_free(&program->names);
    free(program->values.items);
    free(program->operands.items);
    free(program->instructions.items);
    free(program->outputs.items);
}
