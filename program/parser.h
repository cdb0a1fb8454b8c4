/* Parsing a program (parse.h): what its sources share.
 *
 * Functions return false once something is wrong, which the cursor then knows. Thread: the parsing one's only. */
#ifndef EDDY_PROGRAM_PARSER_H
#define EDDY_PROGRAM_PARSER_H

#include <program/cursor.h>
#include <program/inference.h>
#include <program/parse.h>

typedef struct eddy_parser {
    eddy_program *program;
    eddy_code *code;
    eddy_cursor cursor;
    int64_t instruction_count; /* that the first line states */
    eddy_code_array numbered;  /* uint32_t: values by their numbers */
    eddy_code_array references;
    eddy_code_array names;         /* eddy_lexeme, per binding: as it stands in the text */
    eddy_code_array lines;         /* uint32_t, per instruction */
    eddy_code_array binding_lines; /* uint32_t */
    uint32_t *slots; /* 1 + binding, by the hash of its name; as many as a power of two */
    uint32_t slot_count;
    uint32_t generator_count;
    eddy_inference inference;
} eddy_parser;

static inline bool eddy_parser_is_at(const eddy_parser *p, const char *literal) {
    return eddy_cursor_is_at(&p->cursor, literal);
}

static inline bool eddy_parser_take(eddy_parser *p, const char *literal) {
    return eddy_cursor_take(&p->cursor, literal);
}

bool eddy_parser_fail_memory(eddy_parser *p);
EDDY_MUST_USE bool eddy_parser_add_u32(eddy_code_array *array, uint32_t value);

/* ---- values: parse_value.c ---- */

/* Room for one more name; the slot of a name, or the free one where it goes. */
EDDY_MUST_USE bool eddy_parser_grow_names(eddy_parser *p);
uint32_t *eddy_parser_find_slot(const eddy_parser *p, eddy_lexeme name);
/* Gives the binding its name, without quotes. */
EDDY_MUST_USE bool eddy_parser_set_name(eddy_parser *p, eddy_program_binding *binding,
                                        eddy_lexeme name);

/* "f32[2, 3] strides [1, 2] at 4" */
EDDY_MUST_USE bool eddy_parser_layout(eddy_parser *p, eddy_dtype *dtype, eddy_layout *layout);
/* The bytes from its first element to its last. */
EDDY_MUST_USE bool eddy_parser_span(eddy_parser *p, const eddy_layout *layout, eddy_dtype dtype,
                                    int64_t *bytes);

/* Where the value is: " on far:0", or nothing for the CPU. */
EDDY_MUST_USE bool eddy_parser_device(eddy_parser *p, uint32_t value);
EDDY_MUST_USE bool eddy_parser_add_value(eddy_parser *p, eddy_value_kind kind, int64_t bytes,
                                         uint32_t *value);
/* A value without a name: "%3". It begins with the number that is next. */
EDDY_MUST_USE bool eddy_parser_number(eddy_parser *p, int64_t *number);
bool eddy_parser_is_next(const eddy_parser *p, int64_t number);
EDDY_MUST_USE bool eddy_parser_begin(eddy_parser *p, eddy_value_kind kind, int64_t bytes,
                                     uint32_t *value);
/* Values that lines before have begun. */
EDDY_MUST_USE bool eddy_parser_find_name(eddy_parser *p, eddy_lexeme name, uint32_t *value);
EDDY_MUST_USE bool eddy_parser_find_number(eddy_parser *p, int64_t number, uint32_t *value);

/* ---- instructions: parse_instruction.c ---- */

EDDY_MUST_USE bool eddy_parser_instruction(eddy_parser *p);

#endif
