/* What the terminal is, and tables on it. */
#ifndef TOOLS_EDDY_SCREEN_H
#define TOOLS_EDDY_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns: of COLUMNS, of the terminal, or 80 (also where output goes to a pipe); at least 20. */
int tool_width(void);
/* Standard output is a terminal that shows colours, and NO_COLOR is not set. */
bool tool_has_color(void);
/* A heading, underlined or bold. */
void tool_heading(const char *text);

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
