/* A place in a text that is read from front to back, and what was found wrong with it first.
 *
 * Functions that return bool return false after a failure, which stays in the cursor with the number of its line: callers stop then. Nothing is
 * read beyond the end, and no function takes longer than in proportion to what it reads. */
#ifndef EDDY_PROGRAM_CURSOR_H
#define EDDY_PROGRAM_CURSOR_H

#include <base/assert.h>
#include <base/shape.h>
#include <eddy/export.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct eddy_cursor {
    const char *at, *end;
    uint32_t line; /* from 1 */
    eddy_status status;
    uint32_t failed_line; /* 0: the text as a whole */
    char reason[320];
} eddy_cursor;

/* A part of the text. */
typedef struct eddy_lexeme {
    const char *start;
    size_t length;
} eddy_lexeme;

void eddy_cursor_init(eddy_cursor *cursor, const char *text, size_t length);

/* Records the first failure, on the line of the cursor; returns false. */
bool eddy_cursor_fail(eddy_cursor *cursor, eddy_status status, const char *format, ...)
    EDDY_PRINTF(3, 4);
/* INVALID_ARGUMENT: "expected WHAT, not 'x'", with what is there. */
bool eddy_cursor_expected(eddy_cursor *cursor, const char *what);

/* Whether the literal stands here; if so, it is passed. */
bool eddy_cursor_take(eddy_cursor *cursor, const char *literal);
bool eddy_cursor_is_at(const eddy_cursor *cursor, const char *literal);
EDDY_MUST_USE bool eddy_cursor_pass(eddy_cursor *cursor, const char *literal);
EDDY_MUST_USE bool eddy_cursor_pass_line_end(eddy_cursor *cursor);

/* "sum_2": a letter or '_', then letters, digits, '_' and '.'. */
EDDY_MUST_USE bool eddy_cursor_word(eddy_cursor *cursor, const char *what, eddy_lexeme *word);
bool eddy_lexeme_is(eddy_lexeme slice, const char *word);
/* "-12", from `least` to `most`, as it is printed. */
EDDY_MUST_USE bool eddy_cursor_integer(eddy_cursor *cursor, const char *what, int64_t least,
                                       int64_t most, int64_t *value);
/* "[2, 3]": EDDY_RANK_MAX integers at most, which begin at `least`. */
EDDY_MUST_USE bool eddy_cursor_integers(eddy_cursor *cursor, const char *what, int64_t least,
                                        int32_t *count, int64_t *values);
/* A name of a binding, quoted or not: as it stands in the text. */
EDDY_MUST_USE bool eddy_cursor_name(eddy_cursor *cursor, eddy_lexeme *name);

#endif
