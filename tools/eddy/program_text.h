/* The text of a program (docs/program-format.md) with its plan, as far as pictures need it. */
#ifndef TOOLS_EDDY_PROGRAM_TEXT_H
#define TOOLS_EDDY_PROGRAM_TEXT_H

#include "text_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the text, which has no final 0. */
typedef struct text_piece {
    const char *at;
    size_t length;
} text_piece;

typedef enum text_role {
    TEXT_MADE, /* by an instruction */
    TEXT_INPUT,
    TEXT_DONATED,
    TEXT_STATE,
    TEXT_CONSTANT,
    TEXT_CAPTURED,
} text_role;

/* By the number of its name in `names`. */
typedef struct text_value {
    text_role role;
    text_piece layout; /* "f32[2, 3]", of its binding, or as an instruction makes it */
} text_value;

typedef enum text_access { TEXT_READS, TEXT_MAKES, TEXT_CHANGES, TEXT_SETS } text_access;

typedef struct text_operand {
    uint32_t value;
    text_access access;
    text_piece layout;
    int64_t bytes; /* of its elements; 0 where that is not known */
    bool is_in_arena;
    int64_t offset_bytes; /* there */
} text_operand;

/* Operands: the results, which stand before the sign, then the others but those that are absent. */
typedef struct text_instruction {
    text_piece op, attributes;
    text_piece plan; /* what stands about it behind #; of length 0: nothing */
    uint32_t operands_at, operand_count, result_count;
    uint32_t group; /* of those that run as one, from 1 on; 0: none */
} text_instruction;

typedef struct text_output {
    text_piece name, layout;
    uint32_t value;
} text_output;

typedef struct text_list {
    void *items;
    size_t count, room;
} text_list;

typedef struct program_text {
    text_table names; /* of values, as they are written */
    text_list values, operands, instructions, outputs;
    uint32_t group_count;
    int64_t arena_bytes, alive_bytes; /* alive_bytes: at once; -1: there is no plan */
    size_t bad_line;                  /* the first that could not be read; 0: none */
} program_text;

/* `text` stays the caller's, and has to live as long; it is written to while it is read. False: bad_line says where. */
bool program_text_read(program_text *program, char *text, size_t length);
void program_text_fini(program_text *program);

const text_value *program_text_value(const program_text *program, uint32_t value);
const text_operand *program_text_operand(const program_text *program, size_t i);
const text_instruction *program_text_instruction(const program_text *program, size_t i);
const text_output *program_text_output(const program_text *program, size_t i);

bool text_piece_is(text_piece piece, const char *word);

#endif
