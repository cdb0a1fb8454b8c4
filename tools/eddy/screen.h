/* What the terminal is, text that may go to it, and tables on it. */
#ifndef TOOLS_EDDY_SCREEN_H
#define TOOLS_EDDY_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Columns: of COLUMNS, of the terminal, or 80 (also where output goes to a pipe); at least 20. */
int tool_width(void);
/* Standard output is a terminal that shows colours, and NO_COLOR is not set. */
bool tool_has_color(void);
/* Text of a file, or of whom it may be: what a terminal would take for a command becomes `?`, and so do bytes that are no UTF-8. Returns the number of characters. */
int tool_put_plain(FILE *to, const char *text, size_t length);
/* `text` in lines of the screen's width, each after `indent` spaces; the first line goes on where the cursor is, in column `at`. */
void tool_wrap(const char *text, int indent, int at);
/* Bytes of the character of UTF-8 that begins there, of `length` (a 0 among them ends the text); 0: there is none, or one that no screen is to get, as control characters. */
int tool_character(const char *text, size_t length);
/* The text with '?' for each byte that is none of such a character, cut between two of them to what `size` holds with a 0. */
void tool_clean(char *to, size_t size, const char *text, size_t length);

/* These put clean text, in lines that the screen is wide enough for. A heading is bold. */
#define TOOL_LINE_BYTES 6000 /* longer texts are cut: one with a path in it is not */
void tool_heading(const char *text);
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A table: the first column is text, cut to what the screen leaves (its end stays, with dots before it); others are numbers, ready as text. */
#define TOOL_COLUMNS_MOST 10
#define TOOL_CELL_BYTES 24

typedef struct tool_table {
    int column_count;
    const char *headings[TOOL_COLUMNS_MOST];
} tool_table;

typedef struct tool_row {
    const char *text;
    char cells[TOOL_COLUMNS_MOST - 1][TOOL_CELL_BYTES];
} tool_row;

void tool_table_print(const tool_table *table, const tool_row *rows, size_t count);

/* "1.23 ms", "45 us": three digits. */
void tool_format_ns(int64_t ns, char cell[TOOL_CELL_BYTES]);
/* "1.23 MB", of 10^6. */
void tool_format_bytes(int64_t bytes, char cell[TOOL_CELL_BYTES]);
void tool_format_count(int64_t count, char cell[TOOL_CELL_BYTES]);
/* "12.3 %"; "" where the whole is 0. */
void tool_format_share(int64_t part, int64_t whole, char cell[TOOL_CELL_BYTES]);

#endif
